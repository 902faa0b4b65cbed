/* plugins/transforms/geometry/boxes.c: boxes and points go the way of the pixels, by the inverse of the map.
 * A box becomes the smallest one around its four corners. */
#include "plugins/transforms/geometry/geometry.h"

#include <math.h>
#include <string.h>

/* The way of a place from the operand to the result, and the sizes of both. */
typedef struct box_way {
  const geometry *g;
  picture in, out;
  projective forward;
} box_way;

/* The displacement at a place of the operand stands for that at its result, as in torchvision: the inverse
 * has no closed form. */
static void box_displace(const box_way *w, double to[2]) {
  const geometry *g = w->g;
  if (g->across == NULL) return;
  int64_t x = (int64_t)fmin(fmax(to[0], 0), (double)(w->out.width - 1));
  int64_t y = (int64_t)fmin(fmax(to[1], 0), (double)(w->out.height - 1));
  to[0] -= (double)g->across[y * w->out.width + x];
  to[1] -= (double)g->down[y * w->out.width + x];
}

static void box_point(const box_way *w, double x, double y, double to[2]) {
  const geometry *g = w->g;
  window from = g->from, at = g->to;
  if (g->whole) {
    from = (window){0, 0, w->in.height, w->in.width};
    at = (window){0, 0, w->out.height, w->out.width};
  }
  to[0] = x;
  to[1] = y;
  if (g->kind == GEOMETRY_PART) {
    to[0] = (x - (double)from.left) * ((double)at.width / (double)from.width) + (double)at.left;
    to[1] = (y - (double)from.top) * ((double)at.height / (double)from.height) + (double)at.top;
  } else if (g->kind == GEOMETRY_FLIP) {
    if (g->direction == FLIP_VERTICAL)
      to[1] = (double)w->in.height - y;
    else
      to[0] = (double)w->in.width - x;
  } else {
    projective_point(&w->forward, x, y, to);
    box_displace(w, to);
  }
}

void box_cut(float box[4], double height, double width) {
  const double most[2] = {width, height};
  for (int i = 0; i < 4; i++) box[i] = (float)fmin(fmax((double)box[i], 0), most[i % 2]);
  if (!(box[2] > box[0] && box[3] > box[1])) memset(box, 0, 4 * sizeof(float));
}

static void box_move(const box_way *w, const float *in, float *out) {
  double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY}, to[2];
  memset(out, 0, 4 * sizeof(float));
  if (!(in[2] > in[0] && in[3] > in[1])) return;
  if (w->g->needs_centre && !geometry_has_centre(w->g->from, in)) return;
  for (int corner = 0; corner < 4; corner++) {
    box_point(w, (double)in[corner & 1 ? 2 : 0], (double)in[corner & 2 ? 3 : 1], to);
    for (int i = 0; i < 2; i++) {
      low[i] = fmin(low[i], to[i]);
      high[i] = fmax(high[i], to[i]);
    }
  }
  for (int i = 0; i < 2; i++) {
    out[i] = (float)low[i];
    out[2 + i] = (float)high[i];
  }
  box_cut(out, (double)w->out.height, (double)w->out.width);
}

tn_status move_places(tn_transform_call *c, const geometry *g, int32_t k) {
  box_way w = {.g = g, .in = picture_of(&c->in_type[0]), .out = picture_of(&c->out_type[0])};
  const float *in = c->in[k];
  float *out = c->out[k];
  int64_t n = c->in_type[k].dims[0], step = c->in_type[k].dims[1];
  if (g->kind >= GEOMETRY_AFFINE && !projective_inverse(&g->places, &w.forward)) {
    memset(out, 0, (size_t)(n * step) * sizeof(float));
    return TN_OK;
  }
  for (int64_t i = 0; i < n; i++, in += step, out += step) {
    double to[2];
    if (step == 4) {
      box_move(&w, in, out);
      continue;
    }
    box_point(&w, (double)in[0], (double)in[1], to);
    out[0] = (float)to[0];
    out[1] = (float)to[1];
  }
  return TN_OK;
}

/* The class number that losses and metrics leave out. */
enum { BOX_NO_CLASS = -100 };

int box_has_row(const tn_type *type, int64_t n) {
  int is_number = type->dtype == TN_I32 || type->dtype == TN_I64 || type->dtype == TN_F32;
  return is_number && type->rank >= 1 && type->dims[0] == n;
}

void box_clear_row(const tn_type *type, int64_t i, void *values) {
  int64_t row = type->dims[0] > 0 ? tn_type_count(type) / type->dims[0] : 0;
  for (int64_t j = i * row; j < (i + 1) * row; j++) {
    if (type->dtype == TN_F32) ((float *)values)[j] = 0;
    if (type->dtype == TN_I32) ((int32_t *)values)[j] = BOX_NO_CLASS;
    if (type->dtype == TN_I64) ((int64_t *)values)[j] = BOX_NO_CLASS;
  }
}
