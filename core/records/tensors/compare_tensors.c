/* core/records/tensors/compare_tensors.c: tn_compare_tensors. */
#include <math.h>
#include <stdlib.h>

#include "core/base/element.h"
#include "core/records/tensors/tensor_files.h"
#include "core/run/result.h"
#include "tenon/folders.h"

/* A tensor that both have. */
typedef struct compared_tensor {
  const tn_stored_tensor *a, *b;
  double largest, relative; /* infinite: where one of them alone is not finite */
  int64_t at;               /* the element with the largest difference */
} compared_tensor;

typedef struct comparison {
  const void *handle;
  tn_arena arena;
  tn_tensor_files a, b;
  bool optimizer;
  compared_tensor *common;
  int32_t n_common;
  json_t *only_a, *only_b, *shapes, *unread;
} comparison;

/* ---- one tensor ---- */

static double diff_elements(double x, double y) {
  if (x == y || (isnan(x) && isnan(y))) return 0;
  double d = fabs(x - y);
  return isnan(d) ? (double)INFINITY : d;
}

static void diff_data(compared_tensor *c, const void *x, const void *y) {
  int64_t n = tn_type_count(&c->a->type);
  for (int64_t i = 0; i < n; i++) {
    double u = tn_element_load(c->a->type.dtype, x, i), v = tn_element_load(c->b->type.dtype, y, i);
    double d = diff_elements(u, v), scale = fmax(fabs(u), fabs(v));
    double relative = d > 0 && isfinite(scale) ? d / scale : d;
    if (d > c->largest) c->at = i;
    c->largest = fmax(c->largest, d);
    c->relative = fmax(c->relative, relative);
  }
}

static tn_status diff_pair(comparison *c, compared_tensor *pair) {
  void *x = NULL, *y = NULL;
  tn_status status = tn_stored_tensor_read(c->handle, pair->a, &x);
  if (status == TN_OK) status = tn_stored_tensor_read(c->handle, pair->b, &y);
  if (status == TN_OK) diff_data(pair, x, y);
  tn_release(c->handle, x);
  tn_release(c->handle, y);
  return status;
}

/* ---- all of them ---- */

static json_t *diff_shape_text(const tn_stored_tensor *t) {
  json_t *shape = json_array();
  for (int32_t i = 0; i < t->type.rank; i++) json_array_append_new(shape, json_integer(t->type.dims[i]));
  return shape;
}

static tn_status diff_tensor(comparison *c, const tn_stored_tensor *a, const tn_stored_tensor *b) {
  if (!tn_type_same_dims(&a->type, &b->type)) {
    json_array_append_new(c->shapes, json_pack("{s:o, s:o, s:o}", "path", tn_json_text(a->name), "a",
                                               diff_shape_text(a), "b", diff_shape_text(b)));
    return TN_OK;
  }
  if (a->type.dtype == TN_ANY || b->type.dtype == TN_ANY) {
    json_array_append_new(c->unread, tn_json_text(a->name));
    return TN_OK;
  }
  compared_tensor *grown = tn_arena_grow(&c->arena, c->common, (size_t)c->n_common, sizeof *grown);
  if (grown == NULL) return TN_ENOMEM;
  c->common = grown;
  grown[c->n_common] = (compared_tensor){.a = a, .b = b};
  return diff_pair(c, &grown[c->n_common++]);
}

static tn_status diff_all(comparison *c) {
  for (int32_t i = 0; i < c->a.n; i++) {
    const tn_stored_tensor *a = &c->a.tensors[i];
    if (a->optimizer && !c->optimizer) continue;
    const tn_stored_tensor *b = tn_tensor_files_find(&c->b, a->optimizer, a->name);
    if (b == NULL)
      json_array_append_new(c->only_a, tn_json_text(a->name));
    else
      TN_TRY(diff_tensor(c, a, b));
  }
  for (int32_t i = 0; i < c->b.n; i++) {
    const tn_stored_tensor *b = &c->b.tensors[i];
    if ((!b->optimizer || c->optimizer) && tn_tensor_files_find(&c->a, b->optimizer, b->name) == NULL)
      json_array_append_new(c->only_b, tn_json_text(b->name));
  }
  return TN_OK;
}

/* ---- the result ---- */

/* The largest difference first, then by name. */
static int diff_by_difference(const void *x, const void *y) {
  const compared_tensor *a = x, *b = y;
  if (a->largest != b->largest) return a->largest > b->largest ? -1 : 1;
  return a < b ? -1 : 1;
}

static json_t *diff_json(comparison *c) {
  json_t *tensors = json_array();
  bool equal = json_array_size(c->only_a) + json_array_size(c->only_b) + json_array_size(c->shapes) +
                   json_array_size(c->unread) ==
               0;
  if (c->n_common > 1) qsort(c->common, (size_t)c->n_common, sizeof *c->common, diff_by_difference);
  for (int32_t i = 0; i < c->n_common; i++) {
    const compared_tensor *t = &c->common[i];
    equal = equal && t->largest == 0;
    json_array_append_new(tensors,
                          json_pack("{s:o, s:s, s:s, s:o, s:o, s:I}", "path", tn_json_text(t->a->name),
                                    "a_dtype", tn_stored_tensor_dtype(t->a), "b_dtype",
                                    tn_stored_tensor_dtype(t->b), "largest", tn_json_real(t->largest),
                                    "relative", tn_json_real(t->relative), "at", (json_int_t)t->at));
  }
  return json_pack("{s:b, s:o, s:o, s:O, s:O, s:O, s:O, s:o}", "equal", (int)equal, "a",
                   tn_json_text(c->a.path), "b", tn_json_text(c->b.path), "only_a", c->only_a, "only_b",
                   c->only_b, "shapes", c->shapes, "unread", c->unread, "tensors", tensors);
}

static void diff_close(comparison *c) {
  tn_tensor_files_close(&c->a);
  tn_tensor_files_close(&c->b);
  tn_arena_free(&c->arena);
  json_decref(c->only_a);
  json_decref(c->only_b);
  json_decref(c->shapes);
  json_decref(c->unread);
}

tn_status tn_compare_tensors(tn_context *context, const char *a, const char *b, int32_t optimizer,
                             char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, a, "a");
  TN_NEED(context, b, "b");
  comparison c = {.handle = context,
                  .arena = tn_arena_new(context),
                  .optimizer = optimizer != 0,
                  .only_a = json_array(),
                  .only_b = json_array(),
                  .shapes = json_array(),
                  .unread = json_array()};
  tn_status status = tn_tensor_files_open(context, a, true, &c.a);
  tn_status other = status == TN_OK ? tn_tensor_files_open(context, b, true, &c.b) : status;
  status = other == TN_OK ? diff_all(&c) : other;
  if (status == TN_OK) status = tn_json_take(context, diff_json(&c), json);
  diff_close(&c);
  return status;
}
