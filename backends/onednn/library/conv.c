/* backends/onednn/library/conv.c: convolutions as recipes, direct and by Winograd's algorithm (Lavin and
 * Gray, "Fast algorithms for convolutional neural networks", 2016), on activations with their channels in
 * blocks. Weights come and go as they lie; the recipe reorders them where its primitive wants them otherwise,
 * which is little beside what a batch of images takes, and much beside what a single one does. bf16 tensors
 * may be computed in f32: many processors multiply f32 faster, and Winograd wants its accuracy. */
#include "backends/onednn/library/conv.h"

#include "backends/onednn/kernels/image_layouts.h"
#include "backends/onednn/integer_math.h"

/* ---- shapes -------------------------------------------------------------------------------------- */

static bool is_even(int64_t channels, int64_t block) { return channels % block == 0; }

/* Channels in blocks; a few input channels, those of images, stay as they are. */
static tn_status choose_layouts(tn_env *env, const tn_dnn_conv *c, tn_dnn_conv_layouts *layouts) {
  int32_t block = tn_onednn_isa() >= TN_ISA_AVX512 ? 16 : 8;
  bool few = c->x->dims[1] <= 4 && c->attributes->groups == 1;
  if (!is_even(c->y->dims[1], block) || (!few && !is_even(c->x->dims[1], block)))
    return tn_fail(env, TN_EUNSUPPORTED, "shape", "%lld and %lld channels do not come in blocks of %d",
                   (long long)c->x->dims[1], (long long)c->y->dims[1], (int)block);
  layouts->y = tn_channels_blocked(4, block);
  layouts->x = few ? tn_layout_row_major(4) : tn_channels_blocked(4, block);
  return TN_OK;
}

tn_type tn_dnn_group_weights(const tn_dnn_conv *c) {
  int64_t g = c->attributes->groups;
  if (g == 1) return *c->w;
  return (tn_type){c->w->dtype, 5, {g, c->w->dims[0] / g, c->w->dims[1], c->w->dims[2], c->w->dims[3]}};
}

/* ---- primitives ---------------------------------------------------------------------------------- */

/* What a stride does not reach need not be padded. */
static tn_dnn_window window_of(const tn_dnn_conv *c) {
  const tn_conv2d_attributes *a = c->attributes;
  tn_dnn_window w = {{0}, {0}, {0}, {0}};
  for (int32_t i = 0; i < 2; i++) {
    int64_t reach = (c->w->dims[2 + i] - 1) * a->dilation.v[i] + 1;
    w.stride[i] = a->stride.v[i];
    w.dilation[i] = a->dilation.v[i] - 1;
    w.low[i] = a->padding.v[i];
    w.high[i] = (c->y->dims[2 + i] - 1) * a->stride.v[i] + reach - c->x->dims[2 + i] - a->padding.v[i];
  }
  return w;
}

/* What the primitive computes on. */
typedef struct descs {
  tn_dnn_desc x, w, y, bias;
} descs;

static tn_type computed(const tn_type *type, int32_t how) {
  tn_type t = *type;
  if (how & TN_DNN_IN_F32) t.dtype = TN_F32;
  return t;
}

static tn_status describe(tn_dnn_recipe *r, const tn_dnn_conv *c, int32_t how, const tn_dnn_conv_layouts *l,
                          descs *d) {
  tn_type x = computed(c->x, how), y = computed(c->y, how), group = tn_dnn_group_weights(c);
  tn_type w = computed(&group, how), bias = {TN_F32, 1, {c->w->dims[0]}};
  tn_layout row_major = tn_layout_row_major(1);
  tn_status status = tn_dnn_memory(r, &x, &l->x, &d->x);
  if (status == TN_OK) status = tn_dnn_memory(r, &y, &l->y, &d->y);
  if (status == TN_OK) status = tn_dnn_memory_any(r, &w, &d->w);
  return status == TN_OK ? tn_dnn_memory(r, &bias, &row_major, &d->bias) : status;
}

static dnnl_alg_kind_t algorithm(int32_t how) {
  return how & TN_DNN_WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct;
}

static bool has_bias(const tn_dnn_conv *c, int32_t how) {
  return c->bias != NULL || (how & TN_DNN_FOLDED) != 0;
}

static dnnl_status_t new_forward(const tn_dnn_recipe *r, const tn_dnn_conv *c, const descs *d, int32_t how,
                                 dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *primitive) {
  dnnl_prop_kind_t kind = how & TN_DNN_FOLDED ? dnnl_forward_inference : dnnl_forward_training;
  tn_dnn_convolution forward = {kind, algorithm(how), d->x, d->w, has_bias(c, how) ? d->bias : NULL,
                                d->y, window_of(c)};
  return tn_dnn_new_convolution(r->dnn->engine, &forward, attributes, NULL, primitive);
}

/* A gradient's primitive wants to have seen one of the forward direction. */
static dnnl_status_t new_backward(const tn_dnn_recipe *r, const tn_dnn_conv *c, const descs *d, int32_t how,
                                  dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *primitive) {
  bool dx = c->what == TN_DNN_CONV_GRAD_INPUT;
  tn_dnn_convolution backward = {
      dx ? dnnl_backward_data : dnnl_backward_weights, algorithm(how), d->x, d->w, NULL, d->y, window_of(c)};
  dnnl_primitive_desc_t hint = NULL;
  dnnl_status_t status = new_forward(r, c, d, how, attributes, &hint);
  if (status != dnnl_success) return status;
  status = tn_dnn_new_convolution(r->dnn->engine, &backward, attributes, hint, primitive);
  dnnl_primitive_desc_destroy(hint);
  return status;
}

static tn_status append_post_ops(tn_env *env, const tn_dnn_conv *c, dnnl_primitive_attr_t attributes) {
  dnnl_post_ops_t ops;
  dnnl_status_t made = dnnl_post_ops_create(&ops);
  if (made != dnnl_success) return tn_dnn_check(env, made, "dnnl_post_ops_create");
  if (c->added != NULL) made = tn_dnn_append_sum(ops);
  if (made == dnnl_success && c->relu) made = tn_dnn_append_relu(ops);
  if (made == dnnl_success) made = dnnl_primitive_attr_set_post_ops(attributes, ops);
  dnnl_post_ops_destroy(ops);
  return tn_dnn_check(env, made, "dnnl_primitive_attr_set_post_ops");
}

static tn_status new_primitive(const tn_dnn_recipe *r, const tn_dnn_conv *c, const descs *d, int32_t how,
                               dnnl_primitive_desc_t *primitive) {
  dnnl_primitive_attr_t attributes = NULL;
  tn_status status = tn_dnn_attributes(r->env, &attributes);
  if (status == TN_OK && (c->added != NULL || c->relu)) status = append_post_ops(r->env, c, attributes);
  if (status == TN_OK)
    status = tn_dnn_check(r->env,
                          c->what == TN_DNN_CONV_FORWARD ? new_forward(r, c, d, how, attributes, primitive)
                                                         : new_backward(r, c, d, how, attributes, primitive),
                          "dnnl_primitive_desc_create");
  dnnl_primitive_attr_destroy(attributes);
  return status;
}

/* ---- recipes ------------------------------------------------------------------------------------- */

/* An argument as it lies outside, and as the primitive wants it: the same, or a copy in the workspace. */
typedef struct tensor {
  tn_dnn_arg given, used;
} tensor;

static tn_status lay_out(tn_dnn_recipe *r, const tn_type *type, const tn_layout *layout, int32_t where,
                         int32_t at, tn_dnn_desc wanted, tensor *t) {
  t->given = (tn_dnn_arg){0, where, at, NULL};
  tn_status status = tn_dnn_memory(r, type, layout, &t->given.desc);
  if (status != TN_OK) return status;
  t->used = t->given;
  if (dnnl_memory_desc_equal(t->given.desc, wanted)) return TN_OK;
  t->used = (tn_dnn_arg){0, TN_DNN_WORKSPACE, tn_dnn_room(r, wanted), wanted};
  return TN_OK;
}

static bool is_copy(const tensor *t) { return t->used.where != t->given.where; }

static tn_status bring(tn_dnn_recipe *r, const tensor *t) {
  return is_copy(t) ? tn_dnn_add_reorder(r, &t->given, &t->used) : TN_OK;
}

static tn_status take_back(tn_dnn_recipe *r, const tensor *t) {
  return is_copy(t) ? tn_dnn_add_reorder(r, &t->used, &t->given) : TN_OK;
}

static void put(tn_dnn_step *step, int32_t arg, const tensor *t) {
  tn_dnn_put(step, arg, t->used.where, t->used.at, t->used.desc);
}

typedef struct tensors {
  tensor x, w, y, bias, added;
} tensors;

static tn_status lay_out_all(tn_dnn_recipe *r, const tn_dnn_conv *c, int32_t how, const descs *d,
                             tn_dnn_desc w, const tn_dnn_conv_layouts *l, tensors *t) {
  tn_type group = tn_dnn_group_weights(c);
  bool lies = c->w_lies.set && group.rank == c->w->rank;
  tn_layout weights = lies ? c->w_lies : tn_layout_row_major(group.rank), line = tn_layout_row_major(1);
  bool dx = c->what == TN_DNN_CONV_GRAD_INPUT, dw = c->what == TN_DNN_CONV_GRAD_WEIGHT;
  bool forward = !dx && !dw;
  tn_status status = lay_out(r, c->x, &l->x, dx ? TN_DNN_OUT : TN_DNN_IN, 0, d->x, &t->x);
  if (status == TN_OK)
    status = lay_out(r, c->y, &l->y, forward ? TN_DNN_OUT : TN_DNN_IN, dw ? 1 : 0, d->y, &t->y);
  if (status == TN_OK && !(how & TN_DNN_FOLDED))
    status = lay_out(r, &group, &weights, dw ? TN_DNN_OUT : TN_DNN_IN, dw ? 0 : 1, w, &t->w);
  if (status == TN_OK && c->bias != NULL && !(how & TN_DNN_FOLDED))
    status = lay_out(r, c->bias, &line, TN_DNN_IN, 2, d->bias, &t->bias);
  if (status == TN_OK && c->added != NULL)
    status = lay_out(r, c->added, &l->y, TN_DNN_IN, c->added_at, d->y, &t->added);
  return status;
}

/* Weights first, then the bias, in the folded memory. */
static void use_folded(const descs *d, tn_dnn_desc w, tensors *t, tn_dnn_folded *folded) {
  folded->w = w;
  folded->bias_offset = round_up((int64_t)dnnl_memory_desc_get_size(w), 64);
  folded->bytes = folded->bias_offset + (int64_t)dnnl_memory_desc_get_size(d->bias);
  t->w.given = t->w.used = (tn_dnn_arg){0, TN_DNN_KEPT, 0, w};
  t->bias.given = t->bias.used = (tn_dnn_arg){0, TN_DNN_KEPT, folded->bias_offset, d->bias};
}

/* The primitive adds to what its result holds: that is the operand itself where the host has let them share
 * memory, otherwise a copy of it. */
static tn_status bring_added(tn_dnn_recipe *r, const tn_dnn_conv *c, const tensors *t) {
  return c->added != NULL ? tn_dnn_add_reorder(r, &t->added.given, &t->y.used) : TN_OK;
}

static tn_status add_forward(tn_dnn_recipe *r, const tn_dnn_conv *c, int32_t how, const tensors *t,
                             dnnl_primitive_desc_t primitive) {
  tn_dnn_step *step = NULL;
  bool dx = c->what == TN_DNN_CONV_GRAD_INPUT;
  const tensor *from = dx ? &t->y : &t->x, *to = dx ? &t->x : &t->y;
  tn_status status = bring(r, from);
  if (status == TN_OK) status = bring(r, &t->w);
  if (status == TN_OK && has_bias(c, how)) status = bring(r, &t->bias);
  if (status == TN_OK) status = bring_added(r, c, t);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  status = tn_dnn_add(r, primitive, &step);
  if (status != TN_OK) return status;
  put(step, dx ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, from);
  put(step, DNNL_ARG_WEIGHTS, &t->w);
  if (has_bias(c, how)) put(step, DNNL_ARG_BIAS, &t->bias);
  put(step, dx ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, to);
  return take_back(r, to);
}

static tn_status add_grad_weight(tn_dnn_recipe *r, const tensors *t, dnnl_primitive_desc_t primitive) {
  tn_dnn_step *step = NULL;
  tn_status status = bring(r, &t->x);
  if (status == TN_OK) status = bring(r, &t->y);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  status = tn_dnn_add(r, primitive, &step);
  if (status != TN_OK) return status;
  put(step, DNNL_ARG_SRC, &t->x);
  put(step, DNNL_ARG_DIFF_DST, &t->y);
  put(step, DNNL_ARG_DIFF_WEIGHTS, &t->w);
  return take_back(r, &t->w);
}

/* Weights in groups have a dimension more than the host knows of, some layouts only the library knows, and
 * what is converted is copied. */
static void say_wanted(tn_dnn_recipe *r, const tn_dnn_conv *c, int32_t how, tn_dnn_desc w,
                       tn_dnn_conv_layouts *layouts) {
  bool as_it_lies = c->attributes->groups == 1 && computed(c->w, how).dtype == c->w->dtype;
  if (!as_it_lies || tn_dnn_layout_of(r, c->w, w, &layouts->w) != TN_OK) layouts->w = (tn_layout){0};
}

tn_status tn_dnn_conv_recipe(tn_dnn_recipe *r, const tn_dnn_conv *c, int32_t how,
                             tn_dnn_conv_layouts *layouts, tn_dnn_folded *folded) {
  descs d;
  tensors t;
  dnnl_primitive_desc_t primitive = NULL;
  bool dw = c->what == TN_DNN_CONV_GRAD_WEIGHT;
  tn_status status = choose_layouts(r->env, c, layouts);
  if (status == TN_OK) status = describe(r, c, how, layouts, &d);
  if (status == TN_OK) status = new_primitive(r, c, &d, how, &primitive);
  if (status != TN_OK) return status;
  tn_dnn_desc w =
      dnnl_primitive_desc_query_md(primitive, dw ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  say_wanted(r, c, how, w, layouts);
  if (how & TN_DNN_FOLDED) use_folded(&d, w, &t, folded);
  status = lay_out_all(r, c, how, &d, w, layouts, &t);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  return dw ? add_grad_weight(r, &t, primitive) : add_forward(r, c, how, &t, primitive);
}

/* ---- ways ---------------------------------------------------------------------------------------- */

/* Multiplications a second of one thread. */
double tn_dnn_conv_estimate_s(const tn_dnn_conv *c, int32_t how, int32_t threads) {
  double outputs = (double)tn_type_count(c->y), inputs = (double)tn_type_count(c->x);
  double products = outputs * (double)c->w->dims[1] * (double)c->w->dims[2] * (double)c->w->dims[3];
  double rate = tn_onednn_isa() >= TN_ISA_AVX512 ? 5e10 : 2.5e10;
  bool converts = c->x->dtype != TN_F32 && (how & TN_DNN_IN_F32);
  if (how & TN_DNN_WINOGRAD) rate *= 1.7;
  if (c->x->dtype != TN_F32 && !converts) rate *= 0.6; /* half where bf16 is slow, twice where it is not */
  if (c->x->dims[1] <= 4) rate *= 0.5;
  double packs = how & TN_DNN_FOLDED ? 0 : 1e-9 * (double)tn_type_count(c->w);
  return 1e-6 + packs + products / (rate * (threads > 0 ? threads : 1)) +
         (converts ? (outputs + inputs) * 6e-10 : 0);
}

tn_status tn_dnn_conv_ways(tn_query *q, const tn_dnn_conv *c, int32_t base,
                           tn_status (*add)(tn_query *q, const tn_dnn_conv *conv, int32_t how)) {
  bool narrow = c->x->dtype == TN_BF16;
  bool winograd = tn_onednn_options_of(q->backend).winograd != TN_WINOGRAD_OFF;
  const int32_t ways[] = {0, narrow ? TN_DNN_IN_F32 : -1, winograd && !narrow ? TN_DNN_WINOGRAD : -1,
                          winograd && narrow ? TN_DNN_WINOGRAD | TN_DNN_IN_F32 : -1};
  tn_status first = TN_OK;
  int32_t added = 0;
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    tn_status status = ways[i] >= 0 ? add(q, c, base | ways[i]) : TN_EUNSUPPORTED;
    if (status != TN_OK && status != TN_EUNSUPPORTED) return status;
    added += status == TN_OK;
    if (i == 0) first = status;
  }
  return added > 0 ? TN_OK : first;
}
