/* plugins/layers/norm.c: batch_norm (Ioffe and Szegedy, ICML 2015), layer_norm (Ba, Kiros, Hinton, 2016),
 * rms_norm (Zhang and Sennrich, NeurIPS 2019), group_norm (Wu and He, ECCV 2018) and instance_norm (Ulyanov,
 * Vedaldi, Lempitsky, 2016), with PyTorch's names, defaults and running statistics. */
#include "plugins/layers/layers.h"

typedef struct batch_norm_options {
  double momentum, epsilon;
  int32_t affine, sync;
} batch_norm_options;

static const tn_option batch_norm_rows[] = {
    TN_OPT(batch_norm_options, momentum, TN_OPT_FLOAT, "0.1", "[0, 1]",
           "weight of the new batch in the running statistics"),
    TN_OPT(batch_norm_options, epsilon, TN_OPT_FLOAT, "1e-5", "[1e-37, 1e37]", "added to the variance"),
    TN_OPT(batch_norm_options, affine, TN_OPT_FLAG, "yes", NULL, "learn a scale and a shift per channel"),
    TN_OPT(batch_norm_options, sync, TN_OPT_FLAG, "no", NULL,
           "compute the statistics over the batches of all ranks (never over micro-batches)"),
    TN_OPT_END};

/* running <- (1 - momentum) * running + momentum * factor * now */
static void update_running(tn_build *b, tn_val running, tn_val now, double momentum, double factor) {
  tn_val kept = tn_affine(b, running, 1.0 - momentum, 0.0);
  tn_build_commit(b, running,
                  tn_add(b, kept, tn_affine(b, tn_to_dtype(b, now, TN_F32), momentum * factor, 0.0)));
}

/* [group.NAME] freeze: with fixed statistics, or without a parameter to train, the layer works as in
 * evaluation, as fine-tuning expects: statistics of the new data would change what the frozen layers compute.
 */
static int batch_norm_is_fixed(tn_build *b, const batch_norm_options *o) {
  if (!tn_build_training(b)) return 1;
  if (tn_build_frozen(b, "running_mean") && tn_build_frozen(b, "running_var")) return 1;
  return o->affine && tn_build_frozen(b, "weight") && tn_build_frozen(b, "bias");
}

static tn_status build_batch_norm(tn_build *b, const void *given) {
  const batch_norm_options *o = given;
  tn_val x = tn_build_in(b, 0);
  const tn_type *x_type = tn_val_type(b, x);
  if (x_type->rank < 2)
    return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected at least 2", x_type->rank);
  const tn_type channel = {TN_F32, 1, {x_type->dims[1]}};
  int64_t ranks = o->sync && tn_build_training(b) ? tn_build_ranks(b) : 1;
  double n = (double)tn_type_count(x_type) / (double)(channel.dims[0] > 0 ? channel.dims[0] : 1);
  n *= (double)ranks;
  tn_val weight = o->affine ? tn_build_param(b, "weight", &channel, "ones") : 0;
  tn_val bias = o->affine ? tn_build_param(b, "bias", &channel, "zeros") : 0;
  tn_val mean = tn_build_state(b, "running_mean", &channel, "zeros");
  tn_val variance = tn_build_state(b, "running_var", &channel, "ones");
  if (batch_norm_is_fixed(b, o)) {
    tn_build_yield(b, 0, tn_batch_norm_apply(b, x, mean, variance, weight, bias, o->epsilon));
    return TN_OK;
  }
  if (n < 2)
    return tn_fail(
        b, TN_EINVAL, NULL,
        "the batch has one value per channel, expected at least two, which the variance needs; use a "
        "larger batch or image");
  tn_val y = tn_batch_norm(b, x, weight, bias, o->epsilon, ranks);
  update_running(b, mean, tn_op_result(b, y, 1), o->momentum, 1.0);
  update_running(b, variance, tn_op_result(b, y, 2), o->momentum, n / (n - 1.0)); /* the unbiased variance */
  tn_build_yield(b, 0, y);
  return TN_OK;
}

const tn_layer_kind layer_batch_norm = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "batch_norm", "normalizes each channel over the batch",
                    batch_norm_options, batch_norm_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, C, ...); the result has the same shape",
    .example =
        "inputs = image: f32[3, 32, 32]\nlayers =\n    conv1: conv2d(16, bias=no)\n    bn1: batch_norm",
    .build = build_batch_norm};

typedef struct layer_norm_options {
  double epsilon;
  int64_t trailing;
  int32_t bias, affine;
} layer_norm_options;

static const tn_option layer_norm_rows[] = {
    TN_OPT(layer_norm_options, epsilon, TN_OPT_FLOAT, "1e-5", "[1e-37, 1e37]", "added to the variance"),
    TN_OPT(layer_norm_options, trailing, TN_OPT_INT, "1", ">= 1",
           "number of trailing dimensions to normalize"),
    TN_OPT(layer_norm_options, bias, TN_OPT_FLAG, "yes", NULL, "learn a shift per element"),
    TN_OPT(layer_norm_options, affine, TN_OPT_FLAG, "yes", NULL, "learn a scale (and shift) per element"),
    TN_OPT_END};

/* The shape of a parameter with an element for each position of the trailing dimensions. */
static tn_status norm_row_shape(tn_build *b, int64_t trailing, tn_type *shape) {
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  if (trailing >= x->rank)
    return tn_fail(b, TN_EINVAL, "trailing", "%lld of a rank-%d input, expected fewer than its rank",
                   (long long)trailing, x->rank);
  *shape = (tn_type){TN_F32, (int32_t)trailing, {0}};
  for (int32_t i = 0; i < shape->rank; i++) shape->dims[i] = x->dims[x->rank - shape->rank + i];
  return TN_OK;
}

static tn_status build_layer_norm(tn_build *b, const void *given) {
  const layer_norm_options *o = given;
  tn_type shape;
  tn_status status = norm_row_shape(b, o->trailing, &shape);
  if (status != TN_OK) return status;
  tn_val weight = o->affine ? tn_build_param(b, "weight", &shape, "ones") : 0;
  tn_val bias = o->affine && o->bias ? tn_build_param(b, "bias", &shape, "zeros") : 0;
  tn_build_yield(b, 0, tn_layer_norm(b, tn_build_in(b, 0), weight, bias, o->epsilon, o->trailing));
  return TN_OK;
}

const tn_layer_kind layer_layer_norm = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "layer_norm",
                                                        "normalizes the trailing dimensions of each element",
                                                        layer_norm_options, layer_norm_rows),
                                        .min_in = 1,
                                        .max_in = 1,
                                        .types = "(N, ..., width); the result has the same shape",
                                        .example = "inputs = x: f32[64]\nlayers = norm1: layer_norm",
                                        .build = build_layer_norm};

typedef struct rms_norm_options {
  double epsilon;
  int64_t trailing;
  int32_t affine;
} rms_norm_options;

static const tn_option rms_norm_rows[] = {
    TN_OPT(rms_norm_options, epsilon, TN_OPT_FLOAT, "1.1920929e-07", "[1e-37, 1e37]",
           "added to the mean of the squares"),
    TN_OPT(rms_norm_options, trailing, TN_OPT_INT, "1", ">= 1", "number of trailing dimensions to normalize"),
    TN_OPT(rms_norm_options, affine, TN_OPT_FLAG, "yes", NULL, "learn a scale per element"), TN_OPT_END};

static tn_status build_rms_norm(tn_build *b, const void *given) {
  const rms_norm_options *o = given;
  tn_type shape;
  tn_status status = norm_row_shape(b, o->trailing, &shape);
  if (status != TN_OK) return status;
  tn_val weight = o->affine ? tn_build_param(b, "weight", &shape, "ones") : 0;
  tn_build_yield(b, 0, tn_rms_norm(b, tn_build_in(b, 0), weight, o->epsilon, o->trailing));
  return TN_OK;
}

const tn_layer_kind layer_rms_norm = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "rms_norm",
                    "divides the trailing dimensions of each element by the root of their mean square",
                    rms_norm_options, rms_norm_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, ..., width); the result has the same shape",
    .example = "inputs = x: f32[64]\nlayers = norm: rms_norm",
    .build = build_rms_norm};

typedef struct group_norm_options {
  int64_t groups; /* instance_norm has no such option: a group for each channel */
  double epsilon;
  int32_t affine;
} group_norm_options;

static const tn_option group_norm_rows[] = {
    TN_OPT(group_norm_options, groups, TN_OPT_INT, NULL, ">= 1",
           "number of groups, which divides the channels"),
    TN_OPT(group_norm_options, epsilon, TN_OPT_FLOAT, "1e-5", "[1e-37, 1e37]", "added to the variance"),
    TN_OPT(group_norm_options, affine, TN_OPT_FLAG, "yes", NULL, "learn a scale and a shift per channel"),
    TN_OPT_END};

static const tn_option instance_norm_rows[] = {
    TN_OPT(group_norm_options, epsilon, TN_OPT_FLOAT, "1e-5", "[1e-37, 1e37]", "added to the variance"),
    TN_OPT(group_norm_options, affine, TN_OPT_FLAG, "no", NULL, "learn a scale and a shift per channel"),
    TN_OPT_END};

static tn_status build_norm_of_groups(tn_build *b, const group_norm_options *o, int64_t groups) {
  const tn_type channel = {TN_F32, 1, {tn_val_dim(b, tn_build_in(b, 0), 1)}};
  tn_val weight = o->affine ? tn_build_param(b, "weight", &channel, "ones") : 0;
  tn_val bias = o->affine ? tn_build_param(b, "bias", &channel, "zeros") : 0;
  tn_build_yield(b, 0, tn_group_norm(b, tn_build_in(b, 0), weight, bias, o->epsilon, groups));
  return TN_OK;
}

static tn_status build_group_norm(tn_build *b, const void *given) {
  const group_norm_options *o = given;
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  if (x->rank < 2) return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected at least 2", x->rank);
  if (x->dims[1] % o->groups != 0)
    return tn_fail(b, TN_EINVAL, "groups", "%lld does not divide the %lld channels of the input",
                   (long long)o->groups, (long long)x->dims[1]);
  return build_norm_of_groups(b, o, o->groups);
}

const tn_layer_kind layer_group_norm = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "group_norm",
                    "normalizes each group of channels of each element", group_norm_options, group_norm_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, C, ...); the result has the same shape",
    .example = "inputs = image: f32[3, 32, 32]\nlayers =\n    conv1: conv2d(16)\n    norm1: group_norm(4)",
    .build = build_group_norm};

/* A channel of one value is its own mean: PyTorch refuses it, too. */
static tn_status build_instance_norm(tn_build *b, const void *given) {
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  int64_t space = 1;
  for (int32_t i = 2; i < x->rank; i++) space *= x->dims[i];
  if (x->rank < 3 || x->dims[1] < 1 || space < 2)
    return tn_fail(
        b, TN_EINVAL, NULL,
        "the input has rank %d and %lld values per channel, expected (N, C, ...) with at least two "
        "values per channel",
        x->rank, (long long)space);
  return build_norm_of_groups(b, given, x->dims[1]);
}

const tn_layer_kind layer_instance_norm = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "instance_norm", "normalizes each channel of each element",
                    group_norm_options, instance_norm_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, C, ...); the result has the same shape",
    .example = "inputs = image: f32[3, 32, 32]\nlayers =\n    conv1: conv2d(16)\n    instance_norm",
    .build = build_instance_norm};
