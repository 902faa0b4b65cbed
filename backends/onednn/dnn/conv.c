/* backends/onednn/dnn/conv.c: convolutions and their gradients, direct and by Winograd's algorithm, on
 * activations with their channels in blocks. Weights come and go row-major; the recipe reorders them, which
 * is little beside what a batch of images takes. */
#include "dnn/conv.h"

#include <stdbool.h>

#include "kernels.h"

enum { DIRECT = 0, WINOGRAD = 1 };

/* ---- shapes -------------------------------------------------------------------------------------- */

static bool is_even(int64_t channels, int64_t block) { return channels % block == 0; }

/* Channels in blocks; a few input channels, those of images, stay as they are. */
static tn_status choose_layouts(tn_env *env, const tn_dnn_conv *c, tn_dnn_conv_layouts *layouts) {
  int32_t block = tn_onednn_isa() >= TN_ISA_AVX512 ? 16 : 8;
  bool few = c->x->dims[1] <= 4 && c->attributes->groups == 1;
  if (!is_even(c->y->dims[1], block) || (!few && !is_even(c->x->dims[1], block)))
    return tn_fail(env, TN_EUNSUPPORTED, "shape", "%lld and %lld channels do not come in blocks of %d",
                   (long long)c->x->dims[1], (long long)c->y->dims[1], (int)block);
  layouts->y = tn_dnn_blocked(4, block);
  layouts->x = few ? tn_layout_row_major(4) : tn_dnn_blocked(4, block);
  return TN_OK;
}

/* Weights of groups have the group as a dimension of their own: the same bytes. */
static tn_type group_weights(const tn_dnn_conv *c) {
  int64_t g = c->attributes->groups;
  if (g == 1) return *c->w;
  return (tn_type){c->w->dtype, 5, {g, c->w->dims[0] / g, c->w->dims[1], c->w->dims[2], c->w->dims[3]}};
}

/* ---- primitives ---------------------------------------------------------------------------------- */

typedef struct window {
  dnnl_dims_t stride, dilation, low, high;
} window;

/* Dilation counts the gaps. What a stride does not reach need not be padded. */
static window window_of(const tn_dnn_conv *c) {
  const tn_conv2d_attributes *a = c->attributes;
  window w = {{0}, {0}, {0}, {0}};
  for (int32_t i = 0; i < 2; i++) {
    int64_t reach = (c->w->dims[2 + i] - 1) * a->dilation.v[i] + 1;
    w.stride[i] = a->stride.v[i];
    w.dilation[i] = a->dilation.v[i] - 1;
    w.low[i] = a->padding.v[i];
    w.high[i] = (c->y->dims[2 + i] - 1) * a->stride.v[i] + reach - c->x->dims[2 + i] - a->padding.v[i];
  }
  return w;
}

typedef struct descs {
  dnnl_memory_desc_t x, w, y, b;
} descs;

static tn_status describe(tn_env *env, const tn_dnn_conv *c, const tn_dnn_conv_layouts *l, descs *d) {
  tn_type w = group_weights(c);
  tn_layout row_major = tn_layout_row_major(1);
  tn_status status = tn_dnn_memory(env, c->x, &l->x, &d->x);
  if (status == TN_OK) status = tn_dnn_memory(env, c->y, &l->y, &d->y);
  if (status == TN_OK) status = tn_dnn_memory_any(env, &w, &d->w);
  if (status == TN_OK && c->bias != NULL) status = tn_dnn_memory(env, c->bias, &row_major, &d->b);
  return status;
}

static dnnl_status_t new_forward(const tn_dnn_recipe *r, const tn_dnn_conv *c, const descs *d, int32_t how,
                                 dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *primitive) {
  window w = window_of(c);
  dnnl_convolution_desc_t desc;
  dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
      &desc, dnnl_forward_training, how == WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct,
      &d->x, &d->w, c->bias != NULL ? &d->b : NULL, &d->y, w.stride, w.dilation, w.low, w.high);
  if (status != dnnl_success) return status;
  return dnnl_primitive_desc_create(primitive, &desc, attributes, r->dnn->engine, NULL);
}

/* A gradient's primitive wants to have seen one of the forward direction. */
static dnnl_status_t new_backward(const tn_dnn_recipe *r, const tn_dnn_conv *c, const descs *d, int32_t how,
                                  dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *primitive) {
  dnnl_alg_kind_t algorithm = how == WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct;
  window w = window_of(c);
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t hint = NULL;
  dnnl_status_t status = new_forward(r, c, d, how, attributes, &hint);
  if (status != dnnl_success) return status;
  status = c->what == TN_DNN_CONV_GRAD_INPUT
               ? dnnl_dilated_convolution_backward_data_desc_init(&desc, algorithm, &d->x, &d->w, &d->y,
                                                                  w.stride, w.dilation, w.low, w.high)
               : dnnl_dilated_convolution_backward_weights_desc_init(
                     &desc, algorithm, &d->x, &d->w, NULL, &d->y, w.stride, w.dilation, w.low, w.high);
  if (status == dnnl_success)
    status = dnnl_primitive_desc_create(primitive, &desc, attributes, r->dnn->engine, hint);
  dnnl_primitive_desc_destroy(hint);
  return status;
}

/* ---- recipes ------------------------------------------------------------------------------------- */

/* Where the primitive's weights lie: in the operand or result itself if that is how it wants them, else in
 * the workspace. */
static bool place_weights(tn_dnn_recipe *r, const dnnl_memory_desc_t *wanted, const tn_dnn_arg *given,
                          tn_dnn_arg *used) {
  *used = *given;
  used->desc = *wanted;
  if (dnnl_memory_desc_equal(&given->desc, wanted)) return true;
  used->where = TN_DNN_WORKSPACE;
  used->at = tn_dnn_room(r, wanted);
  return false;
}

static tn_status plain_weights(tn_env *env, const tn_dnn_conv *c, tn_dnn_arg *arg) {
  tn_type w = group_weights(c);
  tn_layout row_major = tn_layout_row_major(w.rank);
  bool is_result = c->what == TN_DNN_CONV_GRAD_WEIGHT;
  *arg = (tn_dnn_arg){0, is_result ? TN_DNN_OUT : TN_DNN_IN, is_result ? 0 : 1, {0}};
  return tn_dnn_memory(env, &w, &row_major, &arg->desc);
}

static void put_weights(tn_dnn_step *step, int32_t arg, const tn_dnn_arg *used) {
  tn_dnn_put(step, arg, used->where, used->at, &used->desc);
}

static tn_status add_forward(tn_dnn_recipe *r, const tn_dnn_conv *c, const descs *d,
                             dnnl_primitive_desc_t primitive) {
  tn_dnn_arg given, used;
  tn_dnn_step *step = NULL;
  bool same = true, gradient = c->what == TN_DNN_CONV_GRAD_INPUT;
  const dnnl_memory_desc_t *wanted = dnnl_primitive_desc_query_md(primitive, dnnl_query_weights_md, 0);
  tn_status status = plain_weights(r->env, c, &given);
  if (status == TN_OK) same = place_weights(r, wanted, &given, &used);
  if (status == TN_OK && !same) status = tn_dnn_add_reorder(r, &given, &used);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  status = tn_dnn_add(r, primitive, &step);
  if (status != TN_OK) return status;
  put_weights(step, DNNL_ARG_WEIGHTS, &used);
  tn_dnn_put(step, gradient ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, TN_DNN_IN, 0, gradient ? &d->y : &d->x);
  tn_dnn_put(step, gradient ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, TN_DNN_OUT, 0, gradient ? &d->x : &d->y);
  if (c->bias != NULL) tn_dnn_put(step, DNNL_ARG_BIAS, TN_DNN_IN, 2, &d->b);
  return TN_OK;
}

static tn_status add_grad_weight(tn_dnn_recipe *r, const tn_dnn_conv *c, const descs *d,
                                 dnnl_primitive_desc_t primitive) {
  tn_dnn_arg given, used;
  tn_dnn_step *step = NULL;
  bool same = true;
  const dnnl_memory_desc_t *made = dnnl_primitive_desc_query_md(primitive, dnnl_query_diff_weights_md, 0);
  tn_status status = plain_weights(r->env, c, &given);
  if (status == TN_OK) same = place_weights(r, made, &given, &used);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  status = tn_dnn_add(r, primitive, &step);
  if (status != TN_OK) return status;
  tn_dnn_put(step, DNNL_ARG_SRC, TN_DNN_IN, 0, &d->x);
  tn_dnn_put(step, DNNL_ARG_DIFF_DST, TN_DNN_IN, 1, &d->y);
  put_weights(step, DNNL_ARG_DIFF_WEIGHTS, &used);
  return same ? TN_OK : tn_dnn_add_reorder(r, &used, &given);
}

tn_status tn_dnn_conv_recipe(tn_dnn_recipe *r, const tn_dnn_conv *c, int32_t how,
                             tn_dnn_conv_layouts *layouts) {
  descs d;
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_primitive_desc_t primitive = NULL;
  tn_status status = choose_layouts(r->env, c, layouts);
  if (status == TN_OK) status = describe(r->env, c, layouts, &d);
  if (status == TN_OK) status = tn_dnn_attributes(r->env, &attributes);
  if (status != TN_OK) return status;
  dnnl_status_t made = c->what == TN_DNN_CONV_FORWARD ? new_forward(r, c, &d, how, attributes, &primitive)
                                                      : new_backward(r, c, &d, how, attributes, &primitive);
  dnnl_primitive_attr_destroy(attributes);
  status = tn_dnn_check(r->env, made, "dnnl_primitive_desc_create");
  if (status != TN_OK) return status;
  return c->what == TN_DNN_CONV_GRAD_WEIGHT ? add_grad_weight(r, c, &d, primitive)
                                            : add_forward(r, c, &d, primitive);
}

/* ---- query and prepare --------------------------------------------------------------------------- */

static tn_dnn_conv conv_of(const tn_match *m) {
  const tn_node *n = &m->nodes[0].node;
  tn_dnn_conv c = {.attributes = n->attributes};
  switch (n->op[6]) { /* conv2d, conv2d_grad_input, conv2d_grad_weight */
  case '\0':
    c = (tn_dnn_conv){TN_DNN_CONV_FORWARD, c.attributes, m->in[0], m->in[1], m->out[0], m->in[2]};
    break;
  default:
    if (n->op[12] == 'i')
      c = (tn_dnn_conv){TN_DNN_CONV_GRAD_INPUT, c.attributes, m->out[0], m->in[1], m->in[0], NULL};
    else
      c = (tn_dnn_conv){TN_DNN_CONV_GRAD_WEIGHT, c.attributes, m->in[0], m->out[0], m->in[1], NULL};
  }
  return c;
}

/* Orders of magnitude, to rank variants until they are measured: multiplications a second of one thread. */
static double estimate_s(const tn_dnn_conv *c, int32_t how, int32_t threads) {
  double products =
      (double)tn_type_count(c->y) * (double)c->w->dims[1] * (double)c->w->dims[2] * (double)c->w->dims[3];
  double rate = tn_onednn_isa() >= TN_ISA_AVX512 ? 5e10 : 2.5e10;
  if (how == WINOGRAD) rate *= 1.7;
  if (c->x->dims[1] <= 4) rate *= 0.5;
  return 1e-6 + products / (rate * (threads > 0 ? threads : 1));
}

static void offer(tn_query *q, const tn_dnn_conv *c, int32_t how, const tn_dnn_conv_layouts *l,
                  int64_t workspace) {
  tn_operand_layout x = {TN_LAYOUT_FIXED, 0, l->x}, y = {TN_LAYOUT_FIXED, 0, l->y}, plain = {0};
  tn_operand_layout forward[3] = {x, plain, plain}, input[2] = {y, plain}, weight[2] = {x, y};
  tn_variant v = {.struct_size = sizeof v,
                  .id = how,
                  .name = how == WINOGRAD ? "winograd" : "direct",
                  .in = c->what == TN_DNN_CONV_FORWARD      ? forward
                        : c->what == TN_DNN_CONV_GRAD_INPUT ? input
                                                            : weight,
                  .out = c->what == TN_DNN_CONV_FORWARD      ? &y
                         : c->what == TN_DNN_CONV_GRAD_INPUT ? &x
                                                             : &plain,
                  .workspace_bytes = workspace,
                  .keep_bytes = 16384,
                  .cost_s = estimate_s(c, how, q->device->threads),
                  .deterministic = c->what != TN_DNN_CONV_GRAD_WEIGHT,
                  .capturable = 1};
  tn_add_variant(q, &v);
}

static tn_status query_one(tn_query *q, const tn_dnn_conv *c, int32_t how) {
  tn_dnn_recipe recipe;
  tn_dnn_conv_layouts layouts;
  tn_status status = tn_dnn_start(&recipe, &q->env, q->backend, q->device->threads);
  if (status == TN_OK) status = tn_dnn_conv_recipe(&recipe, c, how, &layouts);
  if (status == TN_OK) offer(q, c, how, &layouts, tn_dnn_workspace(&recipe));
  tn_dnn_finish(&recipe);
  return status;
}

/* The library sums the gradient of the weights by threads, so its bits depend on how many there are. */
static tn_status query(tn_query *q) {
  tn_dnn_conv c = conv_of(q->match);
  tn_status status = query_one(q, &c, DIRECT);
  if (status != TN_OK || tn_onednn_options_of(q->backend).winograd == TN_WINOGRAD_OFF) return status;
  status = query_one(q, &c, WINOGRAD);
  return status == TN_EUNSUPPORTED ? TN_OK : status;
}

static tn_status prepare(tn_prepare *p, void **plan) {
  tn_dnn_conv c = conv_of(p->match);
  tn_dnn_conv_layouts layouts;
  tn_dnn_recipe recipe;
  tn_status status = tn_dnn_start(&recipe, &p->env, p->backend, p->device->threads);
  if (status == TN_OK) status = tn_dnn_conv_recipe(&recipe, &c, p->variant, &layouts);
  if (status == TN_OK) status = tn_dnn_cook(&recipe, plan);
  tn_dnn_finish(&recipe);
  return status;
}

#define CONV(name, text, what)                                                                               \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name, what),    \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query,                                                        \
                                      .prepare = prepare,                                                    \
                                      .release = tn_dnn_release,                                             \
                                      .launch = tn_dnn_launch}

CONV(conv2d, "y = conv2d(x, w, bias?)", "convolutions by oneDNN");
CONV(conv2d_grad_input, "dx = conv2d_grad_input(dy, w)", "the gradient of a convolution's input by oneDNN");
CONV(conv2d_grad_weight, "dw = conv2d_grad_weight(x, dy)",
     "the gradient of a convolution's weights by oneDNN");
