/* core/base/element.h: elements of every dtype as doubles. */
#pragma once

#include <stdint.h>

#include "tenon/base.h"

/* Element i of contiguous elements. An i64 beyond 2^53 is rounded. */
double tn_element_load(int32_t dtype, const void *from, int64_t i);
/* Stores a number. Floats round to nearest, ties to even, once; NaN stays NaN. Of an integer dtype the number
 * must be an element. */
void tn_element_store(int32_t dtype, void *to, int64_t i, double v);
