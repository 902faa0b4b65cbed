/* core/base/element.h: elements of every dtype as doubles. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tenon/base.h"

/* All dtypes: bool, whole numbers, floats, in each kind from the narrowest on. Codes do not have this order.
 */
extern const int32_t tn_dtype_order[TN_DTYPES - 1];

/* The least and the greatest number of a type of whole numbers or of bool, as doubles within its range. */
void tn_element_range(int32_t dtype, double *low, double *high);

/* Element i of contiguous elements. An i64 beyond 2^53 is rounded. */
double tn_element_load(int32_t dtype, const void *from, int64_t i);
/* Stores a number. Floats round to nearest, ties to even, once; NaN stays NaN. Of an integer dtype the number
 * must be an element. */
void tn_element_store(int32_t dtype, void *to, int64_t i, double v);
/* A matrix (rows, columns) of elements of `bytes` each, as (columns, rows); the two do not overlap. */
void tn_elements_transpose(size_t bytes, int64_t rows, int64_t columns, const void *from, void *to);
