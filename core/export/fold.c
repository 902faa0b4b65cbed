/* core/export/fold.c: see fold.h. */
#include "core/export/fold.h"

#include <math.h>
#include <string.h>

#include "core/graph/input_state.h"
#include "tenon/attributes.h"

enum { NORM_X, NORM_MEAN, NORM_VARIANCE, NORM_WEIGHT, NORM_BIAS };
enum { CONV_KERNEL = 1, CONV_BIAS = 2 };

static bool fold_is_conv(const tn_gnode *node) {
  const char *op = node->op->item.name;
  return strcmp(op, "conv1d") == 0 || strcmp(op, "conv2d") == 0 || strcmp(op, "conv3d") == 0;
}

const char *tn_export_state_path(const tn_graph *g, const tn_gnode *node, int32_t i) {
  if (i >= node->n_in || node->in[i] == 0) return NULL;
  const tn_gnode *maker = tn_graph_maker(g, node->in[i]);
  const tn_state_attributes *a = maker->attributes;
  return maker->op == &tn_op_state && a->type.dtype == TN_F32 ? a->path : NULL;
}

const char *tn_export_kernel_path(const tn_graph *g, const tn_gnode *conv) {
  tn_val v = conv->in[CONV_KERNEL];
  if (!tn_graph_is(g, v, "fake_quantize_channels")) return tn_export_state_path(g, conv, CONV_KERNEL);
  return tn_export_state_path(g, tn_graph_maker(g, v), 0);
}

/* Whether operands from `first` on are states, or absent. */
static bool fold_has_states(const tn_graph *g, const tn_gnode *node, int32_t first) {
  for (int32_t i = first; i < node->n_in; i++)
    if (node->in[i] != 0 && tn_export_state_path(g, node, i) == NULL) return false;
  return true;
}

static bool fold_fits(const tn_graph *g, const int32_t *reads, const tn_gnode *norm) {
  if (strcmp(norm->op->item.name, "batch_norm_apply") != 0 || reads[norm->in[NORM_X]] != 1) return false;
  const tn_gnode *conv = tn_graph_maker(g, norm->in[NORM_X]);
  return fold_is_conv(conv) && fold_has_states(g, norm, NORM_MEAN) &&
         tn_export_kernel_path(g, conv) != NULL && fold_has_states(g, conv, CONV_BIAS);
}

tn_val *tn_export_fold_find(tn_arena *arena, const tn_graph *g, const int32_t *reads) {
  tn_val *folded = tn_arena_alloc(arena, g->values.n * sizeof *folded);
  if (folded == NULL) return NULL;
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    if (node->n_out > 0 && reads[node->first_out] > 0 && fold_fits(g, reads, node))
      folded[node->in[NORM_X]] = node->first_out;
  }
  return folded;
}

const tn_export_norm *tn_export_fold_norm(tn_arena *arena, const tn_graph *g, const tn_gnode *conv,
                                          tn_val by) {
  const tn_gnode *node = tn_graph_maker(g, by);
  const tn_norm_attributes *a = node->attributes;
  tn_export_norm *norm = tn_arena_alloc(arena, sizeof *norm);
  if (norm == NULL) return NULL;
  *norm = (tn_export_norm){.mean = tn_export_state_path(g, node, NORM_MEAN),
                           .variance = tn_export_state_path(g, node, NORM_VARIANCE),
                           .weight = tn_export_state_path(g, node, NORM_WEIGHT),
                           .bias = tn_export_state_path(g, node, NORM_BIAS),
                           .kernel_bias = tn_export_state_path(g, conv, CONV_BIAS),
                           .epsilon = a->epsilon,
                           .channels = tn_graph_type(g, conv->in[CONV_KERNEL])->dims[0]};
  return norm;
}

/* ---- contents ---- */

typedef struct fold_reader {
  tn_export_read *read;
  void *context;
} fold_reader;

/* A vector of a state, or of one number where the path is NULL. */
static tn_status fold_vector(const fold_reader *r, const char *path, int64_t n, float otherwise, float *to) {
  for (int64_t i = 0; i < n; i++) to[i] = otherwise;
  return path != NULL ? r->read(r->context, path, to, (size_t)n * sizeof *to) : TN_OK;
}

/* factor = weight / sqrt(variance + epsilon), and shift = (bias of the kernel - mean) factor + bias; room for
 * three vectors. */
static tn_status fold_factors(const fold_reader *r, const tn_export_norm *norm, float *factor, float *shift,
                              float *room) {
  int64_t n = norm->channels;
  float *mean = room, *variance = room + n, *kernel_bias = room + 2 * n;
  TN_TRY(fold_vector(r, norm->mean, n, 0, mean));
  TN_TRY(fold_vector(r, norm->variance, n, 1, variance));
  TN_TRY(fold_vector(r, norm->weight, n, 1, factor));
  TN_TRY(fold_vector(r, norm->bias, n, 0, shift));
  TN_TRY(fold_vector(r, norm->kernel_bias, n, 0, kernel_bias));
  for (int64_t i = 0; i < n; i++) {
    double f = factor[i] / sqrt((double)variance[i] + norm->epsilon);
    shift[i] = (float)((kernel_bias[i] - (double)mean[i]) * f + shift[i]);
    factor[i] = (float)f;
  }
  return TN_OK;
}

static tn_status fold_contents(const fold_reader *r, const tn_export_norm *norm, const char *path,
                               int64_t count, float *room, float *to) {
  int64_t n = norm->channels, row = count / (n > 0 ? n : 1);
  float *factor = room, *shift = room + n;
  TN_TRY(fold_factors(r, norm, factor, shift, room + 2 * n));
  if (path == NULL) {
    memcpy(to, shift, (size_t)count * sizeof *to);
    return TN_OK;
  }
  TN_TRY(r->read(r->context, path, to, (size_t)count * sizeof *to));
  for (int64_t i = 0; i < count; i++) to[i] *= factor[i / row];
  return TN_OK;
}

tn_status tn_export_fold_factors(tn_env *env, tn_export_read *read, void *context, const tn_export_norm *norm,
                                 float *factor) {
  const fold_reader r = {read, context};
  size_t n = (size_t)norm->channels;
  float *room = tn_alloc(env, n * 4 * sizeof *room + 1);
  if (room == NULL) return TN_ENOMEM;
  tn_status status = fold_factors(&r, norm, factor, room, room + n);
  tn_release(env, room);
  return status;
}

tn_status tn_export_fold_read(tn_env *env, tn_export_read *read, void *context, const tn_export_norm *norm,
                              const char *path, int64_t count, float *to) {
  const fold_reader r = {read, context};
  float *room = tn_alloc(env, (size_t)norm->channels * 5 * sizeof *room + 1);
  if (room == NULL) return TN_ENOMEM;
  tn_status status = fold_contents(&r, norm, path, count, room, to);
  tn_release(env, room);
  return status;
}
