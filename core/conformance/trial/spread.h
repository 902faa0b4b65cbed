/* core/conformance/trial/spread.h: how far the results of a use move with the rounding of values that are
 * narrower than its dtype, as the products in bf16 of an optimizer in f32. A sum near the middle of two
 * numbers of bf16 is rounded to either of them, by its order and precision, and later operations enlarge
 * that. The reference repeats the use with the rounding of each such value drawn anew (Monte Carlo
 * arithmetic: Parker, 1997); the largest move bounds what rounding explains. */
#pragma once

#include "core/conformance/reference/reference.h"

/* The largest change of an element of an output, over some runs; 0 where the graph has no floats narrower
 * than `dtype`. The reference has run, and has its results of before afterwards. */
tn_status tn_spread_measure(tn_env *env, tn_reference *reference, int32_t dtype, const char *output,
                            double *spread);
