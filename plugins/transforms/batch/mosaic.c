/* plugins/transforms/batch/mosaic.c: mosaic (Bochkovskiy et al., "YOLOv4", 2020): four pictures of a batch
 * meet at a point, each cut by the others. The result has the size of a picture, so that they keep their
 * scale: it is the middle of the canvas of twice that size which other implementations make first. */
#include <string.h>

#include "plugins/transforms/geometry/geometry.h"

typedef struct mosaic_options {
  double p, visible;
  tn_floats center;
} mosaic_options;

enum { MOSAIC_PARTS = 4 };

static const tn_option options[] = {
    TN_OPT(mosaic_options, p, TN_OPT_FLOAT, "1", "[0, 1]", "probability, for each sample"),
    TN_OPT(mosaic_options, center, TN_OPT_FLOATS, "[0.25, 0.75]", "[0, 1]",
           "the point where the pictures meet, in parts of height and width: least and greatest"),
    TN_OPT(mosaic_options, visible, TN_OPT_FLOAT, "0.1", "[0, 1]",
           "a box of which less than this part is left becomes zeros, and its label -100"),
    TN_OPT_END};

/* ---- fields ---- */

/* The type of one sample. */
static tn_type mosaic_row(const tn_type *batched) {
  tn_type row = {batched->dtype, batched->rank - 1, {0}};
  memcpy(row.dims, batched->dims + 1, (size_t)row.rank * sizeof *row.dims);
  return row;
}

static int mosaic_is_picture(const tn_type *row, const tn_type *first) {
  return row->rank >= 2 && row->dims[row->rank - 2] == first->dims[first->rank - 2] &&
         row->dims[row->rank - 1] == first->dims[first->rank - 1];
}

/* The field of boxes, or -1. */
static int32_t mosaic_find_boxes(int32_t n, const tn_type *in) {
  for (int32_t k = 1; k < n; k++) {
    tn_type row = mosaic_row(&in[k]);
    if (field_kind(k, &row) == FIELD_BOXES) return k;
  }
  return -1;
}

static tn_status mosaic_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const mosaic_options *o = opts;
  tn_type first = mosaic_row(&in[0]);
  int32_t boxes = mosaic_find_boxes(n, in);
  TN_TRY(range_check(env, "center", &o->center));
  if (first.rank < 2)
    return tn_fail(env, TN_EINVAL, NULL, "field 0 has rank %d, expected a picture", (int)first.rank);
  for (int32_t k = 0; k < n; k++) {
    tn_type row = mosaic_row(&in[k]);
    out[k] = in[k];
    if (k != boxes && mosaic_is_picture(&row, &first)) continue;
    if (boxes < 0 || !box_has_row(&row, in[boxes].dims[1]))
      return tn_fail(env, TN_EINVAL, NULL,
                     "field %d is %s of rank %d, expected a picture or a mask of the size of field 0, boxes "
                     "f32[n, 4], or i32, i64 or f32 with a row for each box",
                     (int)k, tn_dtype_name(row.dtype), (int)row.rank);
    out[k].dims[1] *= MOSAIC_PARTS;
  }
  return TN_OK;
}

/* ---- one sample ---- */

/* Part of the result that shows sample `from`, whose pixels are moved by `down` and `across`. */
typedef struct mosaic_part {
  int64_t from, down, across;
  window at;
} mosaic_part;

typedef struct mosaic {
  mosaic_part part[MOSAIC_PARTS];
  int n; /* 1: the sample alone */
} mosaic;

/* The sample itself is on the upper left; those before it in the batch follow in the order of reading. */
static mosaic mosaic_draw(const mosaic_options *o, tn_rng rng, int64_t sample, int64_t batch, picture p) {
  mosaic m = {.n = tn_rng_uniform(&rng) < o->p ? MOSAIC_PARTS : 1};
  double y = tn_rng_between(&rng, o->center.v[0], o->center.v[1]);
  double x = tn_rng_between(&rng, o->center.v[0], o->center.v[1]);
  int64_t middle = (int64_t)(y * (double)p.height), across = (int64_t)(x * (double)p.width);
  if (m.n == 1) {
    m.part[0] = (mosaic_part){sample, 0, 0, {0, 0, p.height, p.width}};
    return m;
  }
  for (int i = 0; i < MOSAIC_PARTS; i++) {
    int lower = i / 2, right = i % 2;
    m.part[i] = (mosaic_part){.from = ((sample - i) % batch + batch) % batch,
                              .down = lower ? middle : middle - p.height,
                              .across = right ? across : across - p.width,
                              .at = {.top = lower ? middle : 0,
                                     .left = right ? across : 0,
                                     .height = lower ? p.height - middle : middle,
                                     .width = right ? p.width - across : across}};
  }
  return m;
}

static void mosaic_paste(const mosaic *m, const tn_type *type, const char *in, int64_t sample, char *out) {
  picture p = picture_of(type);
  int64_t planes = p.planes / type->dims[0];
  size_t item = tn_dtype_size(type->dtype);
  for (int i = 0; i < m->n; i++) {
    const mosaic_part *part = &m->part[i];
    for (int64_t plane = 0; plane < planes; plane++)
      for (int64_t y = part->at.top; y < part->at.top + part->at.height; y++) {
        int64_t to = ((sample * planes + plane) * p.height + y) * p.width + part->at.left;
        int64_t from = ((part->from * planes + plane) * p.height + y - part->down) * p.width + part->at.left -
                       part->across;
        memcpy(out + (size_t)to * item, in + (size_t)from * item, (size_t)part->at.width * item);
      }
  }
}

/* Whether enough of the box is in the part; then it is moved and cut there. */
static int mosaic_move_box(const mosaic_part *part, double visible, const float in[4], float box[4]) {
  const window *at = &part->at;
  float whole = (in[2] - in[0]) * (in[3] - in[1]);
  for (int i = 0; i < 4; i++) {
    double low = (double)(i % 2 ? at->top : at->left), size = (double)(i % 2 ? at->height : at->width);
    double place = (double)in[i] + (double)(i % 2 ? part->down : part->across);
    box[i] = (float)(place < low ? low : place > low + size ? low + size : place);
  }
  float left = (box[2] - box[0]) * (box[3] - box[1]);
  return box[2] > box[0] && box[3] > box[1] && (double)left >= visible * (double)whole;
}

/* A row of a field for each box of each part; boxes are also moved. */
static void mosaic_rows(const mosaic *m, const mosaic_options *o, const tn_transform_call *c, int32_t boxes,
                        int32_t k, int64_t sample) {
  int64_t n = c->in_type[boxes].dims[1];
  tn_type row = mosaic_row(&c->out_type[k]);
  size_t bytes = row.dims[0] > 0 ? tn_type_bytes(&row) / (size_t)row.dims[0] : 0;
  char *out = (char *)c->out[k] + (size_t)(sample * row.dims[0]) * bytes;
  for (int64_t i = 0; i < MOSAIC_PARTS * n; i++) {
    int64_t which = i / n, from = which < m->n ? m->part[which].from * n + i % n : 0;
    float box[4];
    if (which >= m->n ||
        !mosaic_move_box(&m->part[which], o->visible, (const float *)c->in[boxes] + 4 * from, box))
      box_clear_row(&row, i, out);
    else if (k == boxes)
      memcpy(out + (size_t)i * bytes, box, sizeof box);
    else
      memcpy(out + (size_t)i * bytes, (const char *)c->in[k] + (size_t)from * bytes, bytes);
  }
}

static tn_status mosaic_apply(tn_transform_call *c, const void *opts) {
  const mosaic_options *o = opts;
  tn_type first = mosaic_row(&c->in_type[0]);
  int32_t boxes = mosaic_find_boxes(c->n, c->in_type);
  for (int64_t s = 0; s < c->in_type[0].dims[0]; s++) {
    mosaic m = mosaic_draw(o, tn_rng_at(c->key, (uint64_t)s), s, c->in_type[0].dims[0], picture_of(&first));
    for (int32_t k = 0; k < c->n; k++) {
      tn_type row = mosaic_row(&c->in_type[k]);
      if (k != boxes && mosaic_is_picture(&row, &first))
        mosaic_paste(&m, &c->in_type[k], c->in[k], s, c->out[k]);
      else
        mosaic_rows(&m, o, c, boxes, k, s);
    }
  }
  return TN_OK;
}

const tn_transform mosaic_transform = {
    .item = TN_ITEM(
        tn_transform, TN_TRANSFORM, "mosaic",
        "four pictures of a batch in one, with their masks and boxes (training only; <- image, boxes, "
        "labels)",
        mosaic_options, options),
    .granularity = TN_PER_BATCH,
    .training_only = 1,
    .types =
        "a picture, then pictures and masks of its size, boxes f32[n, 4], fields with a row for each box",
    .example = "transforms = to_float\n    mosaic <- image, boxes, labels",
    .infer = mosaic_infer,
    .apply = mosaic_apply,
};
