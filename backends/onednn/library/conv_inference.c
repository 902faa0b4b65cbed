/* backends/onednn/library/conv_inference.c: a convolution in inference with the ops behind it: a batch_norm
 * with given statistics, a residual, a relu. The batch_norm is folded into weights and bias once, and the
 * weights are packed into the layout of the primitive:
 *
 *     (conv(x, w) + b - mean) * s + beta = conv(x, w s) + ((b - mean) s + beta)
 *
 * with s = gamma / sqrt(variance + epsilon). The weights of a transposed convolution are packed, too. */
#include <math.h>
#include <string.h>

#include "backends/onednn/library/conv.h"
#include "backends/shared/define_kernel.h"

/* ---- the match ----------------------------------------------------------------------------------- */

/* The numbers of the operands; -1: absent. */
typedef struct conv_folded_match {
  tn_dnnl_conv conv;
  int32_t w, bias, mean, variance, gamma, beta;
  double epsilon;
} conv_folded_match;

static int32_t conv_folded_operand(const tn_match *m, const tn_match_node *node, int32_t k) {
  if (k >= node->node->n_in || node->in[k] < 0 || node->in[k] >= m->n_in || m->in[node->in[k]] == NULL)
    return -1;
  return node->in[k];
}

/* The activations that are computed with the convolution, by the names of their ops. */
#define ACTIVATIONS(row)                                                                                     \
  row(relu, TN_DNNL_RELU) row(relu6, TN_DNNL_RELU6) row(silu, TN_DNNL_SILU)                                  \
      row(hardswish, TN_DNNL_HARDSWISH) row(sigmoid, TN_DNNL_SIGMOID) row(hardsigmoid, TN_DNNL_HARDSIGMOID)

static int32_t conv_folded_activation(const char *op) {
#define ROW(name, activation)                                                                                \
  if (strcmp(op, #name) == 0) return activation;
  ACTIVATIONS(ROW)
#undef ROW
  return TN_DNNL_NONE;
}

static void conv_folded_read_node(const tn_match *m, const tn_match_node *n, conv_folded_match *f) {
  if (strcmp(n->node->op, "batch_norm_apply") == 0) {
    f->mean = conv_folded_operand(m, n, 1);
    f->variance = conv_folded_operand(m, n, 2);
    f->gamma = conv_folded_operand(m, n, 3);
    f->beta = conv_folded_operand(m, n, 4);
    f->epsilon = ((const tn_norm_attributes *)n->node->attributes)->epsilon;
  } else if (strcmp(n->node->op, "add") == 0) {
    int32_t first = conv_folded_operand(m, n, 0);
    f->conv.added_at = first >= 0 ? first : conv_folded_operand(m, n, 1);
    f->conv.added = m->in[f->conv.added_at];
  } else {
    f->conv.activation = conv_folded_activation(n->node->op);
  }
}

static conv_folded_match conv_folded_read_match(const tn_match *m) {
  const tn_match_node *conv = &m->nodes[0];
  conv_folded_match f = {
      .w = 1, .bias = conv_folded_operand(m, conv, 2), .mean = -1, .variance = -1, .gamma = -1, .beta = -1};
  f.conv = tn_dnnl_conv_of(m);
  for (int32_t i = 1; i < m->n_nodes; i++) conv_folded_read_node(m, &m->nodes[i], &f);
  return f;
}

static tn_status conv_folded_check(tn_env *env, const tn_match *m, const conv_folded_match *f) {
  const int32_t folded[] = {f->w, f->bias, f->mean, f->variance, f->gamma, f->beta};
  for (size_t i = 0; i < sizeof folded / sizeof folded[0]; i++) {
    if (folded[i] < 0) continue;
    if (m->constant == NULL || !m->constant[folded[i]])
      return tn_fail(env, TN_EUNSUPPORTED, "state",
                     "its weights may change; they are folded for inference only");
    int32_t dtype = m->in[folded[i]]->dtype;
    if (dtype != TN_F32 && dtype != TN_BF16)
      return tn_fail(env, TN_EUNSUPPORTED, "dtype", "it folds f32 and bf16, not %s", tn_dtype_name(dtype));
  }
  if (f->conv.added != NULL && !tn_type_same_dims(f->conv.added, f->conv.y))
    return tn_fail(env, TN_EUNSUPPORTED, "shape", "the residual is broadcast");
  return TN_OK;
}

/* ---- lists --------------------------------------------------------------------------------------- */

/* The packing of weights, from f32 at the start of the workspace into the folded memory. */
static tn_status conv_folded_pack_list(tn_primitive_list *r, const tn_dnnl_conv *c,
                                       const tn_dnnl_folded *folded) {
  tn_type w = tn_dnnl_group_weights(c);
  tn_layout plain = tn_layout_row_major(w.rank);
  tn_primitive_arg from = {0, TN_ARG_WORKSPACE, 0, NULL}, to = {0, TN_ARG_FOLDED, 0, folded->w};
  w.dtype = TN_F32;
  TN_TRY(tn_dnnl_memory(r, &w, &plain, &from.desc));
  from.at = tn_primitive_list_allocate(r, from.desc);
  return tn_primitive_list_add_reorder(r, &from, &to);
}

typedef struct conv_folded_lists {
  tn_primitive_list run, pack;
  tn_dnnl_conv_layouts layouts;
  tn_dnnl_folded folded;
} conv_folded_lists;

static tn_status conv_folded_start_lists(conv_folded_lists *r, tn_env *env, const void *backend,
                                         int32_t threads, const tn_dnnl_conv *c, int32_t how) {
  tn_status status = tn_primitive_list_start(&r->run, env, backend, threads);
  if (status == TN_OK) status = tn_primitive_list_start(&r->pack, env, backend, threads);
  if (status == TN_OK) status = tn_dnnl_conv_list(&r->run, c, how, &r->layouts, &r->folded);
  return status == TN_OK ? conv_folded_pack_list(&r->pack, c, &r->folded) : status;
}

static void conv_folded_finish_lists(conv_folded_lists *r) {
  tn_primitive_list_finish(&r->pack);
  tn_primitive_list_finish(&r->run);
}

static int64_t conv_folded_workspace(const conv_folded_lists *r) {
  int64_t run = tn_primitive_list_workspace(&r->run), pack = tn_primitive_list_workspace(&r->pack);
  return run > pack ? run : pack;
}

/* ---- query --------------------------------------------------------------------------------------- */

enum { OPERANDS = 8 };

static void conv_folded_offer(tn_query *q, const tn_dnnl_conv *c, int32_t how, const conv_folded_lists *r) {
  const tn_operand_layout x = {TN_LAYOUT_FIXED, 0, r->layouts.x}, y = {TN_LAYOUT_FIXED, 0, r->layouts.y};
  bool forward = c->direction == TN_CONV_FORWARD;
  tn_operand_layout in[OPERANDS] = {forward ? x : y}, out = forward ? y : x;
  const int32_t inplace[1][2] = {{c->added_at, 0}};
  if (c->added != NULL) in[c->added_at] = out;
  tn_offer(q, (tn_variant){.id = how,
                           .name = tn_dnnl_conv_name(how),
                           .in = in,
                           .out = &out,
                           .workspace_bytes = conv_folded_workspace(r),
                           .prepared_bytes = 2 * TN_PRIMITIVE_LIST_BYTES,
                           .folded_bytes = r->folded.bytes,
                           .n_inplace = c->added != NULL ? 1 : 0,
                           .inplace = inplace,
                           .cost_s = tn_dnnl_conv_cost_s(c, how, q->device)});
}

static tn_status conv_folded_add(tn_query *q, const tn_dnnl_conv *c, int32_t how) {
  conv_folded_lists r = {.run = {0}};
  tn_status status = conv_folded_start_lists(&r, &q->env, q->backend, q->device->threads, c, how);
  if (status == TN_OK) conv_folded_offer(q, c, how, &r);
  conv_folded_finish_lists(&r);
  return status;
}

static tn_status conv_folded_query(tn_query *q) {
  conv_folded_match f = conv_folded_read_match(q->match);
  tn_status status = conv_folded_check(&q->env, q->match, &f);
  return status == TN_OK ? tn_dnnl_conv_variants(q, &f.conv, TN_CONV_FOLDED, conv_folded_add) : status;
}

/* ---- prepare ------------------------------------------------------------------------------------- */

typedef struct conv_folded_kernel {
  void *run, *pack;        /* compiled lists */
  conv_folded_match match; /* launches read only its numbers; its types are not valid then */
  int64_t outputs, row, bias_offset;
} conv_folded_kernel;

static void conv_folded_release(tn_env *env, void *made) {
  conv_folded_kernel *p = made;
  if (p == NULL) return;
  tn_primitive_list_release(env, p->run);
  tn_primitive_list_release(env, p->pack);
  tn_delete(env, p);
}

static tn_status conv_folded_prepare(tn_prepare *p, void **made) {
  conv_folded_match f = conv_folded_read_match(p->match);
  conv_folded_lists r = {.run = {0}};
  conv_folded_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  tn_status status =
      conv_folded_start_lists(&r, &p->env, p->backend, p->device->threads, &f.conv, p->variant);
  if (status == TN_OK) status = tn_primitive_list_compile(&r.run, &kernel->run);
  if (status == TN_OK) status = tn_primitive_list_compile(&r.pack, &kernel->pack);
  kernel->match = f;
  kernel->outputs = f.conv.w->dims[0];
  kernel->row = tn_type_count(f.conv.w) / kernel->outputs;
  kernel->bias_offset = r.folded.bias_offset;
  conv_folded_finish_lists(&r);
  if (status == TN_OK)
    *made = kernel;
  else
    conv_folded_release(&p->env, kernel);
  return status;
}

/* ---- fold ---------------------------------------------------------------------------------------- */

static float conv_folded_element(const tn_view *v, int64_t i) {
  if (v->type.dtype == TN_F32) return ((const float *)v->data)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)v->data)[i] << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static double conv_folded_number(const tn_launch *l, int32_t operand, int64_t i, double absent) {
  return operand >= 0 ? (double)conv_folded_element(&l->in[operand], i) : absent;
}

static void conv_folded_channel(void *arg, int64_t o) {
  const tn_launch *l = arg;
  const conv_folded_kernel *p = l->prepared;
  const conv_folded_match *f = &p->match;
  bool norm = f->mean >= 0;
  double s = norm ? conv_folded_number(l, f->gamma, o, 1) /
                        sqrt(conv_folded_number(l, f->variance, o, 1) + f->epsilon)
                  : 1;
  double shift = norm ? conv_folded_number(l, f->beta, o, 0) - conv_folded_number(l, f->mean, o, 0) * s : 0;
  float *w = (float *)l->workspace + o * p->row, *bias = (float *)((char *)l->folded + p->bias_offset);
  for (int64_t i = 0; i < p->row; i++)
    w[i] = (float)(s * (double)conv_folded_element(&l->in[f->w], o * p->row + i));
  if (f->conv.direction == TN_CONV_FORWARD)
    bias[o] = (float)(conv_folded_number(l, f->bias, o, 0) * s + shift);
}

static tn_status conv_folded_fold(tn_launch *l) {
  const conv_folded_kernel *p = l->prepared;
  tn_parallel(l, p->outputs, conv_folded_channel, l);
  return tn_primitive_list_execute(p->pack, l);
}

static tn_status conv_folded_launch(tn_launch *l) {
  return tn_primitive_list_execute(((const conv_folded_kernel *)l->prepared)->run, l);
}

#define NORMED "c = conv2d(x, w, bias?); n = batch_norm_apply(c, mean, variance, gamma?, beta?)"

#define FOLDED(id, pattern, help)                                                                            \
  TN_DEFINE_KERNEL(onednn, id, "onednn_" #id, pattern, help, TN_KERNEL_CALLBACKS(conv_folded),               \
                   .fold = conv_folded_fold)

FOLDED(conv2d_folded, "y = conv2d(x, w, bias?)", "convolutions with packed weights");
FOLDED(conv2d_grad_input_folded, "dx = conv2d_grad_input(dy, w)",
       "transposed convolutions, and gradients of inputs, with packed weights");
FOLDED(conv2d_norm_folded, NORMED, "convolutions with a batch_norm folded into their weights");
FOLDED(conv2d_norm_add_folded, NORMED "; y = add(n, r)",
       "convolutions with a batch_norm folded into their weights, and a residual");
FOLDED(conv2d_norm_add_relu_folded, NORMED "; s = add(n, r); y = relu(s)",
       "convolutions with a batch_norm folded into their weights, a residual and relu");

#define FOLDED_ACTIVATION(name, activation)                                                                  \
  FOLDED(conv2d_##name##_folded, "c = conv2d(x, w, bias?); y = " #name "(c)",                                \
         "convolutions with packed weights, and " #name);                                                    \
  FOLDED(conv2d_norm_##name##_folded, NORMED "; y = " #name "(n)",                                           \
         "convolutions with a batch_norm folded into their weights, and " #name);
ACTIVATIONS(FOLDED_ACTIVATION)
