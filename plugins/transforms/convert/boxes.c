/* plugins/transforms/convert/boxes.c: other forms of boxes, and boxes that are too small. */
#include <string.h>

#include "plugins/transforms/geometry/geometry.h"

enum { BOX_XYXY, BOX_XYWH, BOX_CXCYWH };

typedef struct boxes_options {
  int32_t from, to;
  double min_size, min_area;
} boxes_options;

#define FORMS "xyxy|xywh|cxcywh"
static const tn_option convert_options[] = {
    TN_OPT(boxes_options, from, TN_OPT_ENUM, NULL, FORMS,
           "corners; corner and size, as in COCO; centre and size"),
    TN_OPT(boxes_options, to, TN_OPT_ENUM, "xyxy", FORMS, "the form of the result"), TN_OPT_END};
static const tn_option sanitize_options[] = {
    TN_OPT(boxes_options, min_size, TN_OPT_FLOAT, "1", "> 0", "least width and height"),
    TN_OPT(boxes_options, min_area, TN_OPT_FLOAT, "1", "> 0", "least area"), TN_OPT_END};

static tn_status boxes_check(tn_env *env, int32_t k, const tn_type *type) {
  if (type->dtype == TN_F32 && type->rank == 2 && type->dims[1] == 4) return TN_OK;
  return tn_fail(env, TN_EINVAL, NULL, "field %d is %s of rank %d, expected boxes: f32[n, 4]", (int)k,
                 tn_dtype_name(type->dtype), (int)type->rank);
}

static tn_status convert_boxes_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                     tn_type *out) {
  (void)opts;
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < n; k++) {
    out[k] = in[k];
    status = boxes_check(env, k, &in[k]);
  }
  return status;
}

static void box_to_corners(int32_t form, float b[4]) {
  for (int i = 0; i < 2; i++) {
    if (form == BOX_CXCYWH) b[i] -= b[2 + i] / 2;
    if (form != BOX_XYXY) b[2 + i] += b[i];
  }
}

static void box_from_corners(int32_t form, float b[4]) {
  for (int i = 0; i < 2; i++) {
    if (form != BOX_XYXY) b[2 + i] -= b[i];
    if (form == BOX_CXCYWH) b[i] += b[2 + i] / 2;
  }
}

static tn_status convert_boxes_apply(tn_transform_call *c, const void *opts) {
  const boxes_options *o = opts;
  for (int32_t k = 0; k < c->n; k++) {
    float *box = c->out[k];
    memcpy(box, c->in[k], tn_type_bytes(&c->in_type[k]));
    for (int64_t i = 0; i < c->in_type[k].dims[0]; i++, box += 4) {
      box_to_corners(o->from, box);
      box_from_corners(o->to, box);
    }
  }
  return TN_OK;
}

static tn_status sanitize_boxes_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                      tn_type *out) {
  (void)opts;
  TN_TRY(boxes_check(env, 0, &in[0]));
  for (int32_t k = 0; k < n; k++) {
    out[k] = in[k];
    if (!box_has_row(&in[k], in[0].dims[0]))
      return tn_fail(env, TN_EINVAL, NULL,
                     "field %d is %s of rank %d, expected i32, i64 or f32 with a row for each box of field 0",
                     (int)k, tn_dtype_name(in[k].dtype), (int)in[k].rank);
  }
  return TN_OK;
}

static tn_status sanitize_boxes_apply(tn_transform_call *c, const void *opts) {
  const boxes_options *o = opts;
  const float *box = c->in[0];
  for (int32_t k = 0; k < c->n; k++) memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
  for (int64_t i = 0; i < c->in_type[0].dims[0]; i++, box += 4) {
    double width = (double)box[2] - (double)box[0], height = (double)box[3] - (double)box[1];
    if (width >= o->min_size && height >= o->min_size && width * height >= o->min_area) continue;
    for (int32_t k = 0; k < c->n; k++) box_clear_row(&c->in_type[k], i, c->out[k]);
  }
  return TN_OK;
}

const tn_transform convert_boxes_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "convert_boxes", "another form of boxes (<- boxes)",
                    boxes_options, convert_options),
    .types = "boxes: f32[n, 4]",
    .example = "transforms =\n    convert_boxes(from=xywh) <- boxes\n    to_float",
    .infer = convert_boxes_infer,
    .apply = convert_boxes_apply,
};

const tn_transform sanitize_boxes_transform = {
    .item =
        TN_ITEM(tn_transform, TN_TRANSFORM, "sanitize_boxes",
                "boxes that are too small become zeros, and their labels -100, which losses leave out (<- "
                "boxes, labels)",
                boxes_options, sanitize_options),
    .types = "boxes: f32[n, 4], then fields with a row for each box: i32, i64 or f32",
    .example = "transforms =\n    sanitize_boxes <- boxes, labels\n    to_float",
    .infer = sanitize_boxes_infer,
    .apply = sanitize_boxes_apply,
};
