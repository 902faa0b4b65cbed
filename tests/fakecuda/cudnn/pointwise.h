/* tests/fakecuda/cudnn/pointwise.h: the modes of pointwise operations. */
#pragma once

#include "tests/fakecuda/cudnn/program.h"

enum { FAKEDNN_PW_INPUTS = 4 }; /* x, b, t, dy */

/* Which of the inputs a mode reads, as bits by slot; 0: the double lacks the mode. */
unsigned fakednn_pointwise_inputs(int32_t mode);
/* y[i * step[4]] = mode(...) of n elements; the inputs are at in[slot] + i * step[slot]. `index`: the value
 * of CUDNN_POINTWISE_GEN_INDEX for the first element, and how much it grows with each. */
void fakednn_pointwise_row(const fakednn_node *node, const float *const in[FAKEDNN_PW_INPUTS], float *out,
                           const int64_t step[FAKEDNN_PW_INPUTS + 1], int64_t n, const float index[2]);
