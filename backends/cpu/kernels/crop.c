/* backends/cpu/kernels/crop.c: a part of each picture of a batch, row by row: zeros, a copy, zeros. A task
 * has one plane. Indices outside of x give zeros, so every start is valid. */
#include "backends/shared/define_kernel.h"

#include <string.h>

/* A part of an axis: results first .. last - 1 come from x, the first of them from element `from`; the others
 * are zero. */
typedef struct crop_axis {
  int64_t first, last, from;
  int mirrored;
} crop_axis;

typedef struct crop_job {
  const tn_view *x, *y;
  const tn_view *start, *mirror; /* NULL: 0 */
  int64_t planes;                /* of a sample */
  int64_t in[2], out[2];         /* height, width */
  size_t item;
} crop_job;

static int64_t crop_clamp(int64_t v, int64_t low, int64_t high) {
  return v < low ? low : v > high ? high : v;
}

static int64_t crop_pair(const tn_view *pairs, int64_t sample, int axis) {
  if (pairs == NULL) return 0;
  int64_t at = 2 * sample + axis;
  return pairs->type.dtype == TN_I32 ? ((const int32_t *)pairs->data)[at]
                                     : ((const int64_t *)pairs->data)[at];
}

static crop_axis crop_find_axis(const crop_job *j, int64_t sample, int axis) {
  int64_t in = j->in[axis], out = j->out[axis];
  /* beyond these bounds the whole part is zero; they keep the sums below small */
  int64_t start = crop_clamp(crop_pair(j->start, sample, axis), -out, in);
  int64_t first = start < 0 ? -start : 0, last = in - start < out ? in - start : out;
  crop_axis a = {first, last, start + first, crop_pair(j->mirror, sample, axis) != 0};
  if (!a.mirrored) return a;
  a.first = out - last;
  a.last = out - first;
  a.from = start + last - 1;
  return a;
}

/* Copies n elements in reverse order; `from` is the last one. */
static void crop_reverse(const uint8_t *from, uint8_t *to, int64_t n, size_t item) {
  for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * item, from - (size_t)i * item, item);
}

static void crop_row(const crop_job *j, const crop_axis *a, const uint8_t *x, uint8_t *y) {
  size_t item = j->item;
  int64_t n = a->last - a->first;
  memset(y, 0, (size_t)a->first * item);
  memset(y + (size_t)a->last * item, 0, (size_t)(j->out[1] - a->last) * item);
  y += (size_t)a->first * item;
  x += (size_t)a->from * item;
  if (!a->mirrored)
    memcpy(y, x, (size_t)n * item);
  else if (item == 1)
    crop_reverse(x, y, n, 1);
  else if (item == 4)
    crop_reverse(x, y, n, 4);
  else
    crop_reverse(x, y, n, item);
}

static void crop_plane(void *arg, int64_t plane) {
  const crop_job *j = arg;
  int64_t sample = plane / j->planes;
  crop_axis rows = crop_find_axis(j, sample, 0), columns = crop_find_axis(j, sample, 1);
  size_t in_row = (size_t)j->in[1] * j->item, out_row = (size_t)j->out[1] * j->item;
  const uint8_t *x = (const uint8_t *)j->x->data + (size_t)(plane * j->in[0]) * in_row;
  uint8_t *y = (uint8_t *)j->y->data + (size_t)(plane * j->out[0]) * out_row;
  for (int64_t i = 0; i < j->out[0]; i++, y += out_row) {
    int64_t step = rows.mirrored ? rows.first - i : i - rows.first;
    if (i < rows.first || i >= rows.last || columns.first >= columns.last)
      memset(y, 0, out_row);
    else
      crop_row(j, &columns, x + (size_t)(rows.from + step) * in_row, y);
  }
}

static const tn_view *crop_operand(const tn_launch *l, int32_t i) {
  return i < l->n_in && l->in[i].data != NULL ? &l->in[i] : NULL;
}

static tn_status crop_launch(tn_launch *l) {
  const tn_type *x = &l->in[0].type, *y = &l->out[0].type;
  crop_job j = {.x = &l->in[0],
                .y = &l->out[0],
                .start = crop_operand(l, 1),
                .mirror = crop_operand(l, 2),
                .planes = 1,
                .item = tn_dtype_size(x->dtype)};
  for (int32_t d = 1; d < x->rank - 2; d++) j.planes *= x->dims[d];
  for (int axis = 0; axis < 2; axis++) {
    j.in[axis] = x->dims[x->rank - 2 + axis];
    j.out[axis] = y->dims[x->rank - 2 + axis];
  }
  if (tn_type_count(y) > 0) tn_parallel(l, x->dims[0] * j.planes, crop_plane, &j);
  return TN_OK;
}

static tn_status crop_query(tn_query *q) {
  return tn_offer(q,
                  (tn_variant){.name = "rows", .cost_s = 2 * (double)tn_type_bytes(q->match->out[0]) / 1e10});
}

TN_DEFINE_KERNEL(cpu, crop, "crop", "y = crop(x, start?, mirror?)", "parts of pictures, row by row",
                 .query = crop_query, .launch = crop_launch);
