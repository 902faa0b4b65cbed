/* plugins/precision/precision.c: the precision policies fp32, tf32, bf16 and fp16.
 *
 * bf16 and fp16 follow Micikevicius et al., "Mixed precision training", ICLR 2018, and PyTorch's autocast.
 * Matrix products run in the low type. Sums, norms, losses and functions that grow fast or lose digits (exp,
 * log, powers) run in f32. Every other op runs in the type of its operands. */
#include "plugins/precision/precision.h"

#include <string.h>

static int is_one_of(const char *op, const char *const *list) {
  for (; *list; list++)
    if (strcmp(op, *list) == 0) return 1;
  return 0;
}

/* Ops that sum in f32 for every type of operands, or that do not sum: their operands keep the low type. */
static const char *const keeps_low[] = {"batch_norm",      "batch_norm_apply",
                                        "moments",         "norm_grad_sums",
                                        "max_pool2d",      "max_pool2d_grad",
                                        "avg_pool2d",      "avg_pool2d_grad",
                                        "global_avg_pool", "reduce_max",
                                        "reduce_min",      "argmax",
                                        "all_finite",      NULL};

static const char *const needs_single[] = {"exp", "log", "pow", "reciprocal", "rsqrt", NULL};

static int precision_wants_single(const precision_options *o, const tn_precision_site *site) {
  if (is_one_of(site->op, keeps_low)) return 0;
  switch (site->op_class) {
  case TN_CLASS_REDUCE: return o->reduce == PRECISION_SINGLE;
  case TN_CLASS_NORM: return o->norm == PRECISION_SINGLE;
  case TN_CLASS_LOSS: return o->loss == PRECISION_SINGLE;
  case TN_CLASS_POINTWISE: return o->pointwise == PRECISION_SINGLE || is_one_of(site->op, needs_single);
  default: return 0;
  }
}

/* A value with another type than f32 in the graph keeps that type. */
static int32_t precision_decide(const precision_options *o, const tn_precision_site *site, int32_t low) {
  if (site->dtype != TN_F32) return site->dtype;
  if (site->op_class == TN_CLASS_MATMUL) return low;
  return precision_wants_single(o, site) ? TN_F32 : TN_ANY;
}

static int32_t decide_fp16(const void *options, const tn_precision_site *site) {
  return precision_decide(options, site, TN_F16);
}
static int32_t decide_bf16(const void *options, const tn_precision_site *site) {
  return precision_decide(options, site, TN_BF16);
}
static int32_t decide_fp32(const void *options, const tn_precision_site *site) {
  (void)options;
  return site->dtype;
}
static int32_t decide_tf32(const void *options, const tn_precision_site *site) {
  (void)options;
  return site->dtype == TN_F32 && site->op_class == TN_CLASS_MATMUL ? TN_PRECISION_TF32 : site->dtype;
}

#define CLASS_OPTIONS                                                                                        \
  TN_OPT(precision_options, reduce, TN_OPT_ENUM, "f32", "follow|f32", "sums and means"),                     \
      TN_OPT(precision_options, norm, TN_OPT_ENUM, "f32", "follow|f32", "softmax and layer_norm"),           \
      TN_OPT(precision_options, loss, TN_OPT_ENUM, "f32", "follow|f32", "losses"),                           \
      TN_OPT(precision_options, pointwise, TN_OPT_ENUM, "follow", "follow|f32",                              \
             "activations, sums of branches; exp, log, pow, reciprocal and rsqrt are always f32")

static const tn_option bf16_options[] = {CLASS_OPTIONS, TN_OPT_END};
static const tn_option fp16_options[] = {
    CLASS_OPTIONS,
    TN_OPT(precision_options, scaling, TN_OPT_ENUM, "dynamic", "none|static|dynamic",
           "loss scaling: none, constant init_scale, or dynamic"),
    TN_OPT(precision_options, init_scale, TN_OPT_FLOAT, "65536", "[1e-37, 1e37]", "the initial scale"),
    TN_OPT(precision_options, growth_factor, TN_OPT_FLOAT, "2", "(1, 1e6]",
           "factor after growth_interval finite steps"),
    TN_OPT(precision_options, backoff_factor, TN_OPT_FLOAT, "0.5", "(0, 1)",
           "factor after a step with gradients that are not finite"),
    TN_OPT(precision_options, growth_interval, TN_OPT_INT, "2000", ">= 1",
           "consecutive finite steps before the scale grows"),
    TN_OPT_END};

static const tn_precision fp32 = {
    .item = TN_ITEM_PLAIN(tn_precision, TN_PRECISION, "fp32", "single precision throughout"),
    .decide = decide_fp32};
static const tn_precision tf32 = {
    .item = TN_ITEM_PLAIN(tn_precision, TN_PRECISION, "tf32",
                          "f32 in memory; matrix products round operands to 10 bits of mantissa"),
    .decide = decide_tf32};
static const tn_precision bf16 = {
    .item = TN_ITEM(tn_precision, TN_PRECISION, "bf16",
                    "matrix products and the pointwise ops after them in bf16, the rest in f32",
                    precision_options, bf16_options),
    .decide = decide_bf16};
static const tn_precision fp16 = {
    .item = TN_ITEM(
        tn_precision, TN_PRECISION, "fp16",
        "matrix products and the pointwise ops after them in f16, the rest in f32; the loss is scaled",
        precision_options, fp16_options),
    .decide = decide_fp16,
    .scale = precision_scale,
    .update = precision_update};

TN_PLUGIN(precision, "0.2.0", "MIT", &fp32.item, &tf32.item, &bf16.item, &fp16.item)
