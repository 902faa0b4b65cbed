/* backends/onednn/library/conv.c: convolutions as lists of primitives, direct and by Winograd's algorithm
 * (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016), on activations with channels
 * in blocks. Where the primitive has another layout of weights than memory, the list reorders them; that
 * takes little time beside a batch of images, and much beside a single image. bf16 tensors may be computed in
 * f32: many processors multiply f32 faster, and Winograd's algorithm needs its accuracy. */
#include "backends/onednn/library/conv.h"

#include <string.h>

#include "backends/onednn/kernels/image_layouts.h"
#include "backends/shared/integer_math.h"
#include "backends/shared/cost.h"

/* ---- the match ----------------------------------------------------------------------------------- */

tn_dnnl_conv tn_dnnl_conv_of(const tn_match *m) {
  const tn_node *n = m->nodes[0].node;
  if (strstr(n->op, "_grad_input") != NULL)
    return (tn_dnnl_conv){TN_CONV_GRAD_INPUT, n->attributes, .x = m->out[0], .w = m->in[1], .y = m->in[0]};
  if (strstr(n->op, "_grad_weight") != NULL)
    return (tn_dnnl_conv){TN_CONV_GRAD_WEIGHT, n->attributes, .x = m->in[0], .w = m->out[0], .y = m->in[1]};
  return (tn_dnnl_conv){TN_CONV_FORWARD, n->attributes,  .x = m->in[0],
                        .w = m->in[1],   .y = m->out[0], .bias = m->in[2]};
}

/* ---- shapes -------------------------------------------------------------------------------------- */

/* Images of so few channels stay row-major beside blocks. */
static bool conv_has_few_inputs(const tn_dnnl_conv *c) {
  return c->x->dims[1] <= 4 && c->attributes->groups == 1;
}

static bool conv_is_multiple(int64_t channels, int64_t block) { return channels % block == 0; }

static tn_status conv_choose_blocks(tn_env *env, const tn_dnnl_conv *c, tn_dnnl_conv_layouts *layouts) {
  int32_t block = tn_onednn_isa() >= TN_ISA_AVX512 ? 16 : 8;
  bool few = conv_has_few_inputs(c);
  if (!conv_is_multiple(c->y->dims[1], block) || (!few && !conv_is_multiple(c->x->dims[1], block)))
    return tn_fail(env, TN_EUNSUPPORTED, "shape", "%lld and %lld channels do not fill blocks of %d",
                   (long long)c->x->dims[1], (long long)c->y->dims[1], (int)block);
  layouts->y = tn_channels_blocked(c->y->rank, block);
  layouts->x = few ? tn_layout_row_major(c->x->rank) : tn_channels_blocked(c->x->rank, block);
  return TN_OK;
}

static tn_status conv_choose_layouts(tn_env *env, const tn_dnnl_conv *c, int32_t how,
                                     tn_dnnl_conv_layouts *layouts) {
  if (!(how & TN_CONV_LAST)) return conv_choose_blocks(env, c, layouts);
  layouts->x = layouts->y = tn_channels_last(c->y->rank);
  return TN_OK;
}

tn_type tn_dnnl_group_weights(const tn_dnnl_conv *c) {
  int64_t g = c->attributes->groups;
  if (g == 1) return *c->w;
  tn_type t = {c->w->dtype, c->w->rank + 1, {g, c->w->dims[0] / g}};
  for (int32_t i = 1; i < c->w->rank; i++) t.dims[1 + i] = c->w->dims[i];
  return t;
}

/* ---- primitives ---------------------------------------------------------------------------------- */

/* The padding behind is as long as the last window reaches. */
static tn_dnnl_window conv_window(const tn_dnnl_conv *c) {
  const tn_conv2d_attributes *a = c->attributes;
  tn_dnnl_window w = {{0}, {0}, {0}, {0}};
  for (int32_t i = 0; i < c->x->rank - 2; i++) {
    int64_t reach = (c->w->dims[2 + i] - 1) * a->dilation.v[i] + 1;
    w.stride[i] = a->stride.v[i];
    w.dilation[i] = a->dilation.v[i] - 1;
    w.low[i] = a->padding.v[i];
    w.high[i] = (c->y->dims[2 + i] - 1) * a->stride.v[i] + reach - c->x->dims[2 + i] - a->padding.v[i];
  }
  return w;
}

/* The memory that the primitive computes on. */
typedef struct conv_descs {
  tn_dnnl_desc x, w, y, bias;
} conv_descs;

static tn_type conv_computed_type(const tn_type *type, int32_t how) {
  tn_type t = *type;
  if (how & TN_CONV_IN_F32) t.dtype = TN_F32;
  return t;
}

static tn_status conv_describe(tn_primitive_list *r, const tn_dnnl_conv *c, int32_t how,
                               const tn_dnnl_conv_layouts *l, conv_descs *d) {
  tn_type x = conv_computed_type(c->x, how), y = conv_computed_type(c->y, how),
          group = tn_dnnl_group_weights(c);
  tn_type w = conv_computed_type(&group, how), bias = {TN_F32, 1, {c->w->dims[0]}};
  tn_layout row_major = tn_layout_row_major(1);
  tn_status status = tn_dnnl_memory(r, &x, &l->x, &d->x);
  if (status == TN_OK) status = tn_dnnl_memory(r, &y, &l->y, &d->y);
  if (status == TN_OK) status = tn_dnnl_memory_any(r, &w, &d->w);
  return status == TN_OK ? tn_dnnl_memory(r, &bias, &row_major, &d->bias) : status;
}

static dnnl_alg_kind_t conv_algorithm(int32_t how) {
  return how & TN_CONV_WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct;
}

static bool conv_is_folded_forward(const tn_dnnl_conv *c, int32_t how) {
  return c->direction == TN_CONV_FORWARD && (how & TN_CONV_FOLDED) != 0;
}

static bool conv_has_bias(const tn_dnnl_conv *c, int32_t how) {
  return c->bias != NULL || conv_is_folded_forward(c, how);
}

static dnnl_status_t conv_new_forward(const tn_primitive_list *r, const tn_dnnl_conv *c, const conv_descs *d,
                                      int32_t how, dnnl_primitive_attr_t attributes,
                                      dnnl_primitive_desc_t *primitive) {
  dnnl_prop_kind_t kind = conv_is_folded_forward(c, how) ? dnnl_forward_inference : dnnl_forward_training;
  tn_dnnl_convolution forward = {
      kind, conv_algorithm(how), d->x, d->w, conv_has_bias(c, how) ? d->bias : NULL, d->y, conv_window(c)};
  return tn_dnnl_new_convolution(r->library->engine, &forward, attributes, NULL, primitive);
}

/* The primitive of a gradient takes a forward primitive as a hint. */
static dnnl_status_t conv_new_backward(const tn_primitive_list *r, const tn_dnnl_conv *c, const conv_descs *d,
                                       int32_t how, dnnl_primitive_attr_t attributes,
                                       dnnl_primitive_desc_t *primitive) {
  bool dx = c->direction == TN_CONV_GRAD_INPUT;
  tn_dnnl_convolution backward = {dx ? dnnl_backward_data : dnnl_backward_weights,
                                  conv_algorithm(how),
                                  d->x,
                                  d->w,
                                  NULL,
                                  d->y,
                                  conv_window(c)};
  dnnl_primitive_desc_t hint = NULL;
  dnnl_status_t status = conv_new_forward(r, c, d, how, attributes, &hint);
  if (status != dnnl_success) return status;
  status = tn_dnnl_new_convolution(r->library->engine, &backward, attributes, hint, primitive);
  dnnl_primitive_desc_destroy(hint);
  return status;
}

static tn_status conv_append_post_ops(tn_env *env, const tn_dnnl_conv *c, dnnl_primitive_attr_t attributes) {
  dnnl_post_ops_t ops;
  dnnl_status_t made = dnnl_post_ops_create(&ops);
  if (made != dnnl_success) return tn_dnnl_check(env, made, "dnnl_post_ops_create");
  if (c->added != NULL) made = tn_dnnl_append_sum(ops);
  if (made == dnnl_success && c->activation != TN_DNNL_NONE)
    made = tn_dnnl_append_activation(ops, c->activation);
  if (made == dnnl_success) made = dnnl_primitive_attr_set_post_ops(attributes, ops);
  dnnl_post_ops_destroy(ops);
  return tn_dnnl_check(env, made, "dnnl_primitive_attr_set_post_ops");
}

static tn_status conv_new_primitive(const tn_primitive_list *r, const tn_dnnl_conv *c, const conv_descs *d,
                                    int32_t how, dnnl_primitive_desc_t *primitive) {
  dnnl_primitive_attr_t attributes = NULL;
  tn_status status = tn_dnnl_attributes(r->env, &attributes);
  if (status == TN_OK && (c->added != NULL || c->activation != TN_DNNL_NONE))
    status = conv_append_post_ops(r->env, c, attributes);
  if (status == TN_OK)
    status = tn_dnnl_check(r->env,
                           c->direction == TN_CONV_FORWARD
                               ? conv_new_forward(r, c, d, how, attributes, primitive)
                               : conv_new_backward(r, c, d, how, attributes, primitive),
                           "dnnl_primitive_desc_create");
  dnnl_primitive_attr_destroy(attributes);
  return status;
}

/* ---- lists --------------------------------------------------------------------------------------- */

/* An argument in the memory of the caller, and in the layout of the primitive: the same, or a copy in the
 * workspace. */
typedef struct conv_tensor {
  tn_primitive_arg given, used;
} conv_tensor;

static tn_status conv_set_tensor(tn_primitive_list *r, const tn_type *type, const tn_layout *layout,
                                 int32_t location, int32_t at, tn_dnnl_desc wanted, conv_tensor *t) {
  t->given = (tn_primitive_arg){0, location, at, NULL};
  TN_TRY(tn_dnnl_memory(r, type, layout, &t->given.desc));
  t->used = t->given;
  if (dnnl_memory_desc_equal(t->given.desc, wanted)) return TN_OK;
  t->used = (tn_primitive_arg){0, TN_ARG_WORKSPACE, tn_primitive_list_allocate(r, wanted), wanted};
  return TN_OK;
}

static bool conv_is_copy(const conv_tensor *t) { return t->used.location != t->given.location; }

static tn_status conv_reorder_operand(tn_primitive_list *r, const conv_tensor *t) {
  return conv_is_copy(t) ? tn_primitive_list_add_reorder(r, &t->given, &t->used) : TN_OK;
}

static tn_status conv_reorder_result(tn_primitive_list *r, const conv_tensor *t) {
  return conv_is_copy(t) ? tn_primitive_list_add_reorder(r, &t->used, &t->given) : TN_OK;
}

static void conv_put(tn_primitive_step *step, int32_t arg, const conv_tensor *t) {
  tn_primitive_step_put(step, arg, t->used.location, t->used.at, t->used.desc);
}

typedef struct conv_tensors {
  conv_tensor x, w, y, bias, added;
} conv_tensors;

static tn_status conv_set_tensors(tn_primitive_list *r, const tn_dnnl_conv *c, int32_t how,
                                  const conv_descs *d, tn_dnnl_desc w, const tn_dnnl_conv_layouts *l,
                                  conv_tensors *t) {
  tn_type group = tn_dnnl_group_weights(c);
  bool has_layout = c->w_layout.set && group.rank == c->w->rank;
  tn_layout weights = has_layout ? c->w_layout : tn_layout_row_major(group.rank),
            line = tn_layout_row_major(1);
  bool dx = c->direction == TN_CONV_GRAD_INPUT, dw = c->direction == TN_CONV_GRAD_WEIGHT;
  bool forward = !dx && !dw;
  TN_TRY(conv_set_tensor(r, c->x, &l->x, dx ? TN_ARG_OUT : TN_ARG_IN, 0, d->x, &t->x));
  TN_TRY(conv_set_tensor(r, c->y, &l->y, forward ? TN_ARG_OUT : TN_ARG_IN, dw ? 1 : 0, d->y, &t->y));
  if (!(how & TN_CONV_FOLDED))
    TN_TRY(conv_set_tensor(r, &group, &weights, dw ? TN_ARG_OUT : TN_ARG_IN, dw ? 0 : 1, w, &t->w));
  if (c->bias != NULL && !(how & TN_CONV_FOLDED))
    TN_TRY(conv_set_tensor(r, c->bias, &line, TN_ARG_IN, 2, d->bias, &t->bias));
  if (c->added != NULL) TN_TRY(conv_set_tensor(r, c->added, &l->y, TN_ARG_IN, c->added_at, d->y, &t->added));
  return TN_OK;
}

/* The folded memory has the weights first, then the bias. */
static void conv_use_folded(const tn_dnnl_conv *c, const conv_descs *d, tn_dnnl_desc w, conv_tensors *t,
                            tn_dnnl_folded *folded) {
  int64_t bias_bytes = c->direction == TN_CONV_FORWARD ? (int64_t)dnnl_memory_desc_get_size(d->bias) : 0;
  folded->w = w;
  folded->bias_offset = round_up((int64_t)dnnl_memory_desc_get_size(w), 64);
  folded->bytes = folded->bias_offset + bias_bytes;
  t->w.given = t->w.used = (tn_primitive_arg){0, TN_ARG_FOLDED, 0, w};
  t->bias.given = t->bias.used = (tn_primitive_arg){0, TN_ARG_FOLDED, folded->bias_offset, d->bias};
}

/* The primitive adds to the contents of its result: the operand itself where both share memory in place,
 * otherwise a copy of it. */
static tn_status conv_reorder_added(tn_primitive_list *r, const tn_dnnl_conv *c, const conv_tensors *t) {
  return c->added != NULL ? tn_primitive_list_add_reorder(r, &t->added.given, &t->y.used) : TN_OK;
}

static tn_status conv_add_forward(tn_primitive_list *r, const tn_dnnl_conv *c, int32_t how,
                                  const conv_tensors *t, dnnl_primitive_desc_t primitive) {
  tn_primitive_step *step = NULL;
  bool dx = c->direction == TN_CONV_GRAD_INPUT;
  const conv_tensor *from = dx ? &t->y : &t->x, *to = dx ? &t->x : &t->y;
  tn_status status = conv_reorder_operand(r, from);
  if (status == TN_OK) status = conv_reorder_operand(r, &t->w);
  if (status == TN_OK && conv_has_bias(c, how)) status = conv_reorder_operand(r, &t->bias);
  if (status == TN_OK) status = conv_reorder_added(r, c, t);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  status = tn_primitive_list_add(r, primitive, &step);
  if (status != TN_OK) return status;
  conv_put(step, dx ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, from);
  conv_put(step, DNNL_ARG_WEIGHTS, &t->w);
  if (conv_has_bias(c, how)) conv_put(step, DNNL_ARG_BIAS, &t->bias);
  conv_put(step, dx ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, to);
  return conv_reorder_result(r, to);
}

static tn_status conv_add_grad_weight(tn_primitive_list *r, const conv_tensors *t,
                                      dnnl_primitive_desc_t primitive) {
  tn_primitive_step *step = NULL;
  tn_status status = conv_reorder_operand(r, &t->x);
  if (status == TN_OK) status = conv_reorder_operand(r, &t->y);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  status = tn_primitive_list_add(r, primitive, &step);
  if (status != TN_OK) return status;
  conv_put(step, DNNL_ARG_SRC, &t->x);
  conv_put(step, DNNL_ARG_DIFF_DST, &t->y);
  conv_put(step, DNNL_ARG_DIFF_WEIGHTS, &t->w);
  return conv_reorder_result(r, &t->w);
}

/* Reports the layout of weights that needs no reorder. There is no such layout for groups, whose weights have
 * one more dimension, for opaque layouts, and for weights that are converted. */
static void conv_report_weight_layout(tn_primitive_list *r, const tn_dnnl_conv *c, int32_t how,
                                      tn_dnnl_desc w, tn_dnnl_conv_layouts *layouts) {
  bool in_place = c->attributes->groups == 1 && conv_computed_type(c->w, how).dtype == c->w->dtype;
  if (!in_place || tn_dnnl_layout(r, c->w, w, &layouts->w) != TN_OK) layouts->w = (tn_layout){0};
}

tn_status tn_dnnl_conv_list(tn_primitive_list *r, const tn_dnnl_conv *c, int32_t how,
                            tn_dnnl_conv_layouts *layouts, tn_dnnl_folded *folded) {
  conv_descs d;
  conv_tensors t;
  dnnl_primitive_desc_t primitive = NULL;
  bool dw = c->direction == TN_CONV_GRAD_WEIGHT;
  tn_status status = conv_choose_layouts(r->env, c, how, layouts);
  if (status == TN_OK) status = conv_describe(r, c, how, layouts, &d);
  if (status == TN_OK) status = conv_new_primitive(r, c, &d, how, &primitive);
  if (status != TN_OK) return status;
  tn_dnnl_desc w =
      dnnl_primitive_desc_query_md(primitive, dw ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  conv_report_weight_layout(r, c, how, w, layouts);
  if (how & TN_CONV_FOLDED) conv_use_folded(c, &d, w, &t, folded);
  status = conv_set_tensors(r, c, how, &d, w, layouts, &t);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  return dw ? conv_add_grad_weight(r, &t, primitive) : conv_add_forward(r, c, how, &t, primitive);
}

const char *tn_dnnl_conv_name(int32_t how) {
  static const char *const names[] = {"direct", "winograd", "direct in f32", "winograd in f32"};
  return how & TN_CONV_LAST ? "channels last" : names[how & (TN_CONV_WINOGRAD | TN_CONV_IN_F32)];
}

/* ---- variants ------------------------------------------------------------------------------------ */

/* With channels innermost lines of different pixels share sets of the cache, the last vector of results may
 * be used in part, and a few channels make short sums. */
static double conv_share_of_rate_last(const tn_dnnl_conv *c) {
  int64_t lanes = tn_onednn_isa() >= TN_ISA_AVX512 ? 16 : 8;
  int64_t results = c->direction == TN_CONV_GRAD_INPUT ? c->x->dims[1] : c->y->dims[1];
  bool few = c->attributes->groups == 1 && least(c->x->dims[1], c->y->dims[1]) < 16;
  return 0.95 * (double)results / (double)round_up(results, lanes) * (few ? 0.5 : 1);
}

/* The rate is multiplications a second of one thread. */
double tn_dnnl_conv_cost_s(const tn_dnnl_conv *c, int32_t how, const tn_device_properties *device) {
  double outputs = (double)tn_type_count(c->y), inputs = (double)tn_type_count(c->x);
  double products = outputs;
  for (int32_t i = 1; i < c->w->rank; i++) products *= (double)c->w->dims[i];
  double rate = tn_thread_speed(device) * (tn_onednn_isa() >= TN_ISA_AVX512 ? 5e10 : 2.5e10);
  bool converts = c->x->dtype != TN_F32 && (how & TN_CONV_IN_F32);
  if (how & TN_CONV_WINOGRAD) rate *= 1.7;
  if (!converts) rate *= device->matrix_flops_per_s[c->x->dtype] / device->matrix_flops_per_s[TN_F32];
  if (c->x->dims[1] <= 4) rate *= 0.5;
  if (how & TN_CONV_LAST) rate *= conv_share_of_rate_last(c);
  double packed = how & TN_CONV_FOLDED ? 0 : 10 * (double)tn_type_count(c->w);
  double converted = converts ? 6 * (outputs + inputs) : 0;
  return tn_cost_of_bytes(device, packed + converted) +
         products / (rate * (device->threads > 0 ? device->threads : 1));
}

/* A training step has kernels around each convolution that are faster on blocks, and on small row-major
 * pictures of few channels. The library lacks the gradient of row-major pictures beside blocks. */
static bool conv_trains_channels_last(tn_env *env, const tn_dnnl_conv *c) {
  const int64_t small_bytes = 1 << 18, few = 16;
  tn_dnnl_conv_layouts blocks;
  if (conv_choose_blocks(env, c, &blocks) == TN_OK)
    return c->direction == TN_CONV_GRAD_INPUT && conv_has_few_inputs(c);
  bool is_few = c->attributes->groups == 1 && least(c->x->dims[1], c->y->dims[1]) < few;
  return !is_few || (int64_t)tn_type_bytes(c->x) > c->x->dims[0] * small_bytes;
}

tn_status tn_dnnl_conv_variants(tn_query *q, const tn_dnnl_conv *c, int32_t base,
                                tn_status (*add)(tn_query *q, const tn_dnnl_conv *conv, int32_t how)) {
  bool narrow = c->x->dtype == TN_BF16;
  bool winograd = tn_onednn_options_of(q->backend).winograd != TN_WINOGRAD_OFF;
  bool last = !narrow && (base != 0 || conv_trains_channels_last(&q->env, c));
  const int32_t variants[] = {0, narrow ? TN_CONV_IN_F32 : -1, winograd && !narrow ? TN_CONV_WINOGRAD : -1,
                              winograd && narrow ? TN_CONV_WINOGRAD | TN_CONV_IN_F32 : -1,
                              last ? TN_CONV_LAST : -1};
  tn_status first = TN_OK;
  int32_t added = 0;
  for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
    tn_status status = variants[i] >= 0 ? add(q, c, base | variants[i]) : TN_EUNSUPPORTED;
    if (status != TN_OK && status != TN_EUNSUPPORTED) return status;
    added += status == TN_OK;
    if (i == 0) first = status;
  }
  return added > 0 ? TN_OK : first;
}
