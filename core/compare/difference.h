/* core/compare/difference.h: the largest difference between two tensors. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

typedef struct tn_difference {
  double largest; /* the largest absolute difference; INFINITY where one alone is a number */
  double ulp;     /* the same in units in the last place of the expected element there */
  double expected, found;
  double magnitude; /* the largest finite element that is expected */
  int64_t at;       /* row-major index of the largest difference; -1: all are equal */
} tn_difference;

/* Both are row-major. Two infinities of one sign are equal, and so are two NaN. */
tn_difference tn_difference_of(const tn_type *type, const void *expected, const void *found);

/* Elements that differ: for booleans and integers there is no rounding. */
double tn_difference_ulp(int32_t dtype, double expected, double difference);

/* Half a unit in the last place of 1: the largest relative error of a rounding; 0 for integers. */
double tn_difference_epsilon(int32_t dtype);
