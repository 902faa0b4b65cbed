/* tests/fakecuda/kernels/warp.h: operations of the lanes of a warp. */
#pragma once

#include "tests/fakecuda/kernels/block.h"

/* The thread that runs arrives. Returns the lanes that may go on: the mask of `call` if all of its lanes are
 * there now, with their results, otherwise 0. Fails the block where a lane of the mask cannot arrive any
 * more. */
uint32_t fake_warp_arrive(fake_block *block, fake_warp *call);
/* The thread that runs has exited: fails the block where a lane waits for it. */
void fake_warp_exit(fake_block *block);
/* Which lanes a thread waits for. */
void fake_warp_describe(const fake_block *block, int32_t thread, char *text, size_t bytes);
