/* tests/fakecuda/cudnn/walk.h: rows of elements of several tensors of one shape at a time. */
#pragma once

#include "tests/fakecuda/cudnn/program.h"

enum { FAKEDNN_WALKED = 5 };

/* Rows are along the dimension of the smallest stride of the first tensor. */
typedef struct fakednn_walk {
  int n, rank;                                  /* tensors; dimensions apart from that of the rows */
  int64_t dims[FAKEDNN_RANK], at[FAKEDNN_RANK]; /* of those dimensions */
  int32_t axis[FAKEDNN_RANK], row_axis;         /* which dimensions of the shape they are */
  int64_t steps[FAKEDNN_WALKED][FAKEDNN_RANK];
  int64_t length, step[FAKEDNN_WALKED]; /* of a row; from element to element in it */
  int64_t offset[FAKEDNN_WALKED];       /* of the row's first element */
} fakednn_walk;

/* Begins at the first row of a shape; tensors with a dimension of 1 repeat along it. NULL tensors stay at 0.
 */
void fakednn_walk_begin(fakednn_walk *walk, const fakednn_tensor *shape, const fakednn_tensor *const *tensors,
                        int n);
/* The next row; false: that was the last one. */
bool fakednn_walk_next(fakednn_walk *walk);
/* The index of the row's first element along a dimension of the shape. */
int64_t fakednn_walk_index(const fakednn_walk *walk, int32_t axis);
