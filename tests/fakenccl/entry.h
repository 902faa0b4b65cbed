/* tests/fakenccl/entry.h: the name of the entry point that runs on this thread. */
#pragma once

void fakenccl_entry_set(const char *name);
const char *fakenccl_entry(void);
