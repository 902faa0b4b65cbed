/* plugins/layers/conv2d.c: 2-D cross-correlation of (N, C, H, W) with (channels, C / groups, h, w), as in
 * PyTorch's Conv2d. */
#include "plugins/layers/layers.h"

typedef struct conv2d_options {
  int64_t channels;
  tn_ints kernel, stride, padding, dilation;
  int64_t groups;
  int32_t bias;
  const char *init, *bias_init;
} conv2d_options;

static const tn_option options[] = {
    TN_OPT(conv2d_options, channels, TN_OPT_INT, NULL, ">= 1", "channels of the result"),
    TN_OPT(conv2d_options, kernel, TN_OPT_INTS, "3", ">= 1", "height and width of the kernel"),
    TN_OPT(conv2d_options, stride, TN_OPT_INTS, "1", ">= 1", "step of the kernel"),
    TN_OPT(conv2d_options, padding, TN_OPT_INTS, "0", ">= 0", "zeros around the image"),
    TN_OPT(conv2d_options, dilation, TN_OPT_INTS, "1", ">= 1", "distance between taps of the kernel"),
    TN_OPT(conv2d_options, groups, TN_OPT_INT, "1", ">= 1", "independent groups of channels"),
    TN_OPT(conv2d_options, bias, TN_OPT_FLAG, "yes", NULL, "add a bias per channel"),
    TN_OPT(conv2d_options, init, TN_OPT_INIT, "default", NULL, "initializer of the weight"),
    TN_OPT(conv2d_options, bias_init, TN_OPT_INIT, "default", NULL, "initializer of the bias"),
    TN_OPT_END};

static tn_status conv2d_build(tn_build *b, const void *given) {
  const conv2d_options *o = given;
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  if (x->rank != 4)
    return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected (N, C, H, W)", x->rank);
  if (!layer_pair(&o->kernel, kernel)) return tn_fail(b, TN_EINVAL, "kernel", "expected one or two numbers");
  if (!layer_pair(&o->stride, stride)) return tn_fail(b, TN_EINVAL, "stride", "expected one or two numbers");
  if (!layer_pair(&o->padding, padding))
    return tn_fail(b, TN_EINVAL, "padding", "expected one or two numbers");
  if (!layer_pair(&o->dilation, dilation))
    return tn_fail(b, TN_EINVAL, "dilation", "expected one or two numbers");
  int64_t in = x->dims[1];
  if (in % o->groups != 0 || o->channels % o->groups != 0)
    return tn_fail(b, TN_EINVAL, "groups", "%lld does not divide %lld input and %lld output channels",
                   (long long)o->groups, (long long)in, (long long)o->channels);
  const tn_type w_type = {TN_F32, 4, {o->channels, in / o->groups, kernel[0], kernel[1]}};
  const tn_type bias_type = {TN_F32, 1, {o->channels}};
  int64_t fan_in = in / o->groups * kernel[0] * kernel[1];
  char text[64];
  tn_val weight =
      tn_build_param(b, "weight", &w_type, layer_default_init(text, sizeof text, o->init, fan_in));
  tn_val bias = o->bias ? tn_build_param(b, "bias", &bias_type,
                                         layer_default_init(text, sizeof text, o->bias_init, fan_in))
                        : 0;
  tn_build_yield(b, 0,
                 tn_conv2d(b, tn_build_in(b, 0), weight, bias, 2, stride, 2, padding, 2, dilation, o->groups,
                           TN_MATH_FULL));
  return TN_OK;
}

const tn_layer_kind layer_conv2d = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "conv2d", "2-D convolution", conv2d_options, options),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, C, H, W) to (N, channels, H', W'), where H' = (H + 2 padding - dilation (kernel - 1) - 1) "
             "/ stride + 1, rounded down",
    .example = "inputs = image: f32[3, 32, 32]\nlayers = conv1: conv2d(16, kernel=3, padding=1)",
    .build = conv2d_build};
