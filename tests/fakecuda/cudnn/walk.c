/* tests/fakecuda/cudnn/walk.c: see walk.h. */
#include <string.h>
#include "tests/fakecuda/cudnn/walk.h"

static int64_t step_of(const fakednn_tensor *t, int32_t axis) {
  return t && t->dims[axis] > 1 ? t->strides[axis] : 0;
}

/* The dimension with the smallest stride of those that are longer than 1. */
static int32_t choose_row(const fakednn_tensor *shape, const fakednn_tensor *first) {
  int32_t row = shape->rank - 1;
  int64_t least = INT64_MAX;
  for (int32_t i = shape->rank - 1; i >= 0; i--) {
    int64_t step = step_of(first ? first : shape, i);
    if (shape->dims[i] == 1 || step == 0 || step >= least) continue;
    least = step;
    row = i;
  }
  return row;
}

void fakednn_walk_begin(fakednn_walk *walk, const fakednn_tensor *shape, const fakednn_tensor *const *tensors,
                        int n) {
  memset(walk, 0, sizeof *walk);
  walk->n = n;
  walk->row_axis = choose_row(shape, tensors[0]);
  walk->length = shape->dims[walk->row_axis];
  for (int32_t i = 0; i < shape->rank; i++) {
    if (i == walk->row_axis || shape->dims[i] == 1) continue;
    for (int t = 0; t < n; t++) walk->steps[t][walk->rank] = step_of(tensors[t], i);
    walk->axis[walk->rank] = i;
    walk->dims[walk->rank++] = shape->dims[i];
  }
  for (int t = 0; t < n; t++) walk->step[t] = step_of(tensors[t], walk->row_axis);
}

bool fakednn_walk_next(fakednn_walk *walk) {
  for (int i = walk->rank - 1; i >= 0; i--) {
    bool carry = ++walk->at[i] == walk->dims[i];
    if (carry) walk->at[i] = 0;
    for (int t = 0; t < walk->n; t++) walk->offset[t] += walk->steps[t][i] * (carry ? 1 - walk->dims[i] : 1);
    if (!carry) return true;
  }
  return false;
}

int64_t fakednn_walk_index(const fakednn_walk *walk, int32_t axis) {
  for (int i = 0; i < walk->rank; i++) {
    if (walk->axis[i] == axis) return walk->at[i];
  }
  return 0;
}
