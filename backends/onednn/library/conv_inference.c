/* backends/onednn/library/conv_inference.c: a convolution of a model that does not train, with what follows
 * it: a batch_norm by given statistics, a residual, a relu. The batch_norm is folded into weights and bias
 * once, and the weights are packed as the library likes them best:
 *
 *     (conv(x, w) + b - mean) * s + beta = conv(x, w s) + ((b - mean) s + beta),  s = gamma / sqrt(variance +
 * e)
 */
#include <math.h>
#include <string.h>

#include "backends/onednn/library/conv.h"
#include "backends/onednn/kernels/kernels.h"

/* ---- what was matched ---------------------------------------------------------------------------- */

/* Numbers of operands; -1: absent. */
typedef struct fold_match {
  tn_dnn_conv conv;
  int32_t w, bias, mean, variance, gamma, beta;
  double epsilon;
} fold_match;

static int32_t operand_of(const tn_match *m, const tn_match_node *node, int32_t k) {
  if (k >= node->node->n_in || node->in[k] < 0 || node->in[k] >= m->n_in || m->in[node->in[k]] == NULL)
    return -1;
  return node->in[k];
}

static void read_node(const tn_match *m, const tn_match_node *n, fold_match *f) {
  if (strcmp(n->node->op, "batch_norm_apply") == 0) {
    f->mean = operand_of(m, n, 1);
    f->variance = operand_of(m, n, 2);
    f->gamma = operand_of(m, n, 3);
    f->beta = operand_of(m, n, 4);
    f->epsilon = ((const tn_norm_attributes *)n->node->attributes)->epsilon;
  } else if (strcmp(n->node->op, "add") == 0) {
    int32_t first = operand_of(m, n, 0);
    f->conv.added_at = first >= 0 ? first : operand_of(m, n, 1);
    f->conv.added = m->in[f->conv.added_at];
  } else if (strcmp(n->node->op, "relu") == 0) {
    f->conv.relu = true;
  }
}

static fold_match read_match(const tn_match *m) {
  const tn_match_node *conv = &m->nodes[0];
  fold_match f = {
      .w = 1, .bias = operand_of(m, conv, 2), .mean = -1, .variance = -1, .gamma = -1, .beta = -1};
  f.conv =
      (tn_dnn_conv){TN_DNN_CONV_FORWARD, conv->node->attributes, .x = m->in[0],
                    .w = m->in[1],       .y = m->out[0],         .bias = f.bias >= 0 ? m->in[f.bias] : NULL};
  for (int32_t i = 1; i < m->n_nodes; i++) read_node(m, &m->nodes[i], &f);
  return f;
}

static tn_status check_constant(tn_env *env, const tn_match *m, const fold_match *f) {
  const int32_t folded[] = {f->w, f->bias, f->mean, f->variance, f->gamma, f->beta};
  for (size_t i = 0; i < sizeof folded / sizeof folded[0]; i++) {
    if (folded[i] < 0) continue;
    if (m->constant == NULL || !m->constant[folded[i]])
      return tn_fail(env, TN_EUNSUPPORTED, "state",
                     "its weights may change: they are folded for inference only");
    int32_t dtype = m->in[folded[i]]->dtype;
    if (dtype != TN_F32 && dtype != TN_BF16)
      return tn_fail(env, TN_EUNSUPPORTED, "dtype", "it folds f32 and bf16, not %s", tn_dtype_name(dtype));
  }
  if (f->conv.added != NULL && !tn_type_same_dims(f->conv.added, f->conv.y))
    return tn_fail(env, TN_EUNSUPPORTED, "shape", "what is added is broadcast");
  return TN_OK;
}

/* ---- recipes ------------------------------------------------------------------------------------- */

/* Weights in f32 at the start of the workspace, and from there into the folded memory. */
static tn_status pack_recipe(tn_dnn_recipe *r, const tn_dnn_conv *c, const tn_dnn_folded *folded) {
  tn_type w = tn_dnn_group_weights(c);
  tn_layout plain = tn_layout_row_major(w.rank);
  tn_dnn_arg from = {0, TN_DNN_WORKSPACE, 0, NULL}, to = {0, TN_DNN_KEPT, 0, folded->w};
  w.dtype = TN_F32;
  tn_status status = tn_dnn_memory(r, &w, &plain, &from.desc);
  if (status != TN_OK) return status;
  from.at = tn_dnn_room(r, from.desc);
  return tn_dnn_add_reorder(r, &from, &to);
}

typedef struct recipes {
  tn_dnn_recipe run, pack;
  tn_dnn_conv_layouts layouts;
  tn_dnn_folded folded;
} recipes;

static tn_status write_recipes(recipes *r, tn_env *env, const void *backend, int32_t threads,
                               const tn_dnn_conv *c, int32_t how) {
  tn_status status = tn_dnn_start(&r->run, env, backend, threads);
  if (status == TN_OK) status = tn_dnn_start(&r->pack, env, backend, threads);
  if (status == TN_OK) status = tn_dnn_conv_recipe(&r->run, c, how, &r->layouts, &r->folded);
  return status == TN_OK ? pack_recipe(&r->pack, c, &r->folded) : status;
}

static void finish_recipes(recipes *r) {
  tn_dnn_finish(&r->run);
  tn_dnn_finish(&r->pack);
}

static int64_t workspace_of(const recipes *r) {
  int64_t run = tn_dnn_workspace(&r->run), pack = tn_dnn_workspace(&r->pack);
  return run > pack ? run : pack;
}

/* ---- query --------------------------------------------------------------------------------------- */

enum { OPERANDS = 8 };

static void offer(tn_query *q, const tn_dnn_conv *c, int32_t how, const recipes *r) {
  static const char *const names[] = {"folded", "folded winograd", "folded in f32", "folded winograd in f32"};
  tn_operand_layout in[OPERANDS] = {{0}}, out = {TN_LAYOUT_FIXED, 0, r->layouts.y};
  const int32_t share[1][2] = {{c->added_at, 0}};
  in[0] = (tn_operand_layout){TN_LAYOUT_FIXED, 0, r->layouts.x};
  if (c->added != NULL) in[c->added_at] = out;
  tn_variant v = {.struct_size = sizeof v,
                  .id = how,
                  .name = names[how & (TN_DNN_WINOGRAD | TN_DNN_IN_F32)],
                  .in = in,
                  .out = &out,
                  .workspace_bytes = workspace_of(r),
                  .prepared_bytes = 2 * TN_DNN_KEEP_BYTES,
                  .folded_bytes = r->folded.bytes,
                  .n_inplace = c->added != NULL ? 1 : 0,
                  .inplace = share,
                  .cost_s = tn_dnn_conv_estimate_s(c, how, q->device->threads),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
}

static tn_status query_one(tn_query *q, const tn_dnn_conv *c, int32_t how) {
  recipes r = {.run = {0}};
  tn_status status = write_recipes(&r, &q->env, q->backend, q->device->threads, c, how);
  if (status == TN_OK) offer(q, c, how, &r);
  finish_recipes(&r);
  return status;
}

static tn_status query(tn_query *q) {
  fold_match f = read_match(q->match);
  tn_status status = check_constant(&q->env, q->match, &f);
  return status == TN_OK ? tn_dnn_conv_ways(q, &f.conv, TN_DNN_FOLDED, query_one) : status;
}

/* ---- prepare ------------------------------------------------------------------------------------- */

typedef struct plan {
  void *run, *pack; /* cooked */
  fold_match match; /* types in it are the launch's own; only numbers are read */
  int64_t outputs, row, bias_offset;
} plan;

static void release(tn_env *env, void *made) {
  plan *p = made;
  if (p == NULL) return;
  tn_dnn_release(env, p->run);
  tn_dnn_release(env, p->pack);
  tn_delete(env, p);
}

static tn_status prepare(tn_prepare *p, void **made) {
  fold_match f = read_match(p->match);
  recipes r = {.run = {0}};
  plan *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_status status = write_recipes(&r, &p->env, p->backend, p->device->threads, &f.conv, p->variant);
  if (status == TN_OK) status = tn_dnn_cook(&r.run, &keep->run);
  if (status == TN_OK) status = tn_dnn_cook(&r.pack, &keep->pack);
  keep->match = f;
  keep->outputs = f.conv.w->dims[0];
  keep->row = tn_type_count(f.conv.w) / keep->outputs;
  keep->bias_offset = r.folded.bias_offset;
  finish_recipes(&r);
  if (status == TN_OK)
    *made = keep;
  else
    release(&p->env, keep);
  return status;
}

/* ---- fold ---------------------------------------------------------------------------------------- */

static float element(const tn_view *v, int64_t i) {
  if (v->type.dtype == TN_F32) return ((const float *)v->data)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)v->data)[i] << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static double number(const tn_launch *l, int32_t operand, int64_t i, double otherwise) {
  return operand >= 0 ? (double)element(&l->in[operand], i) : otherwise;
}

static void fold_channel(void *arg, int64_t o) {
  const tn_launch *l = arg;
  const plan *p = l->plan;
  const fold_match *f = &p->match;
  bool norm = f->mean >= 0;
  double s = norm ? number(l, f->gamma, o, 1) / sqrt(number(l, f->variance, o, 1) + f->epsilon) : 1;
  double shift = norm ? number(l, f->beta, o, 0) - number(l, f->mean, o, 0) * s : 0;
  float *w = (float *)l->workspace + o * p->row, *bias = (float *)((char *)l->folded + p->bias_offset);
  for (int64_t i = 0; i < p->row; i++) w[i] = (float)(s * (double)element(&l->in[f->w], o * p->row + i));
  bias[o] = (float)(number(l, f->bias, o, 0) * s + shift);
}

static tn_status fold(tn_launch *l) {
  const plan *p = l->plan;
  tn_parallel(l, p->outputs, fold_channel, l);
  return tn_dnn_execute(p->pack, l);
}

static tn_status launch(tn_launch *l) { return tn_dnn_execute(((const plan *)l->plan)->run, l); }

#define FOLDED(name, text, what)                                                                             \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name, what),    \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query,                                                        \
                                      .prepare = prepare,                                                    \
                                      .release = release,                                                    \
                                      .launch = launch,                                                      \
                                      .fold = fold}

#define NORMED "c = conv2d(x, w, bias?); n = batch_norm_apply(c, mean, variance, gamma?, beta?)"

FOLDED(conv2d_folded, "y = conv2d(x, w, bias?)", "convolutions with packed weights");
FOLDED(conv2d_relu_folded, "c = conv2d(x, w, bias?); y = relu(c)",
       "convolutions with packed weights, and relu");
FOLDED(conv2d_norm_folded, NORMED, "convolutions with a batch_norm folded into their weights");
FOLDED(conv2d_norm_relu_folded, NORMED "; y = relu(n)", "the same, and relu");
FOLDED(conv2d_norm_add_folded, NORMED "; y = add(n, r)", "the same, and a residual");
FOLDED(conv2d_norm_add_relu_folded, NORMED "; s = add(n, r); y = relu(s)", "the same, a residual and relu");
