/* plugins/layers/conv.c: convolution (cross-correlation) over one to three spatial dimensions and its
 * transpose, with PyTorch's names, layouts and initial values of parameters: weights are (channels, C /
 * groups, kernel...), and (C, channels / groups, kernel...) of the transposed ones. */
#include "plugins/layers/layers.h"

typedef struct conv_options {
  int64_t channels;
  tn_ints kernel, stride, dilation, output_padding;
  const char *padding;
  int64_t groups;
  int32_t bias, padding_mode;
  const char *init, *bias_init;
} conv_options;

#define KERNEL    TN_OPT(conv_options, kernel, TN_OPT_INTS, "3", ">= 1", "size of the kernel")
#define STRIDE    TN_OPT(conv_options, stride, TN_OPT_INTS, "1", ">= 1", "step of the kernel")
#define GROUPS    TN_OPT(conv_options, groups, TN_OPT_INT, "1", ">= 1", "independent groups of channels")
#define BIAS      TN_OPT(conv_options, bias, TN_OPT_FLAG, "yes", NULL, "add a bias per channel")
#define INIT      TN_OPT(conv_options, init, TN_OPT_INIT, "default", NULL, "initializer of the weight")
#define BIAS_INIT TN_OPT(conv_options, bias_init, TN_OPT_INIT, "default", NULL, "initializer of the bias")
#define DILATION                                                                                             \
  TN_OPT(conv_options, dilation, TN_OPT_INTS, "1", ">= 1", "distance between taps of the kernel")

static const tn_option conv_rows[] = {
    TN_OPT(conv_options, channels, TN_OPT_INT, NULL, ">= 1", "channels of the result"),
    KERNEL,
    STRIDE,
    TN_OPT(
        conv_options, padding, TN_OPT_TEXT, "0", NULL,
        "border around the input: one number, a number for each dimension, those in front of all dimensions "
        "and then those behind, or same: that which keeps the size"),
    DILATION,
    GROUPS,
    BIAS,
    INIT,
    BIAS_INIT,
    TN_OPT(conv_options, padding_mode, TN_OPT_ENUM, "zeros", "zeros|reflect|replicate|circular",
           "what the border has"),
    TN_OPT_END};

static const tn_option transpose_rows[] = {
    TN_OPT(conv_options, channels, TN_OPT_INT, NULL, ">= 1", "channels of the result"),
    KERNEL,
    STRIDE,
    TN_OPT(conv_options, padding, TN_OPT_TEXT, "0", NULL,
           "border that is cut off the result: one number, a number for each dimension, or those in front of "
           "all "
           "dimensions and then those behind"),
    TN_OPT(conv_options, output_padding, TN_OPT_INTS, "0", ">= 0", "added to the size of the result"),
    GROUPS,
    BIAS,
    DILATION,
    INIT,
    BIAS_INIT,
    TN_OPT_END};

/* ---- the window ---- */

typedef struct conv_window {
  int64_t kernel[3], stride[3], dilation[3], output_padding[3],
      padding[6]; /* padding: in front, then behind */
} conv_window;

/* The padding that keeps the size; an odd one has its larger part behind. */
static tn_status conv_pad_same(tn_build *b, int32_t rank, conv_window *w) {
  for (int32_t i = 0; i < rank; i++) {
    int64_t whole = (w->kernel[i] - 1) * w->dilation[i];
    if (w->stride[i] != 1)
      return tn_fail(b, TN_EINVAL, "padding", "same needs stride 1, given %lld", (long long)w->stride[i]);
    w->padding[i] = whole / 2;
    w->padding[rank + i] = whole - whole / 2;
  }
  return TN_OK;
}

/* Reads "2", "[1, 2]", "same" or "valid", no padding, into w->padding. */
static tn_status conv_read_padding(tn_build *b, const char *text, int32_t rank, conv_window *w) {
  int64_t given[6];
  int32_t n = 0;
  if (strcmp(text, "same") == 0) return conv_pad_same(b, rank, w);
  const char *at = strcmp(text, "valid") == 0 ? "0" : text + (*text == '[');
  for (char *end; n < 6; at = end + (*end == ',')) {
    given[n] = strtoll(at, &end, 10);
    if (end == at || given[n] < 0) break;
    n++;
  }
  if ((n != 1 && n != rank && n != 2 * rank) || (*at != '\0' && strcmp(at, "]") != 0))
    return tn_fail(b, TN_EINVAL, "padding",
                   "'%s', expected same, valid, or 1, %d or %d numbers of at least 0", text, (int)rank,
                   2 * (int)rank);
  for (int32_t i = 0; i < 2 * rank; i++) w->padding[i] = given[n == 1 ? 0 : i % n];
  return TN_OK;
}

static tn_status conv_read_window(tn_build *b, const conv_options *o, int32_t rank, conv_window *w) {
  const tn_ints none = {1, (const int64_t[]){0}};
  tn_status status = layer_spatial(b, "kernel", &o->kernel, rank, w->kernel);
  if (status == TN_OK) status = layer_spatial(b, "stride", &o->stride, rank, w->stride);
  if (status == TN_OK) status = layer_spatial(b, "dilation", &o->dilation, rank, w->dilation);
  if (status == TN_OK)
    status = layer_spatial(b, "output_padding", o->output_padding.n > 0 ? &o->output_padding : &none, rank,
                           w->output_padding);
  return status == TN_OK ? conv_read_padding(b, o->padding, rank, w) : status;
}

/* ---- parameters ---- */

/* Weights (rows, columns, kernel...); the fan that PyTorch's initial values are drawn by is that of a row. */
static tn_val conv_make_weight(tn_build *b, const conv_options *o, int32_t rank, const conv_window *w,
                               int64_t rows, int64_t columns, tn_val *bias) {
  tn_type weight = {TN_F32, 2 + rank, {rows, columns}};
  const tn_type channels = {TN_F32, 1, {o->channels}};
  int64_t fan_in = columns;
  char text[64];
  for (int32_t i = 0; i < rank; i++) {
    weight.dims[2 + i] = w->kernel[i];
    fan_in *= w->kernel[i];
  }
  tn_val v = tn_build_param(b, "weight", &weight, layer_default_init(text, sizeof text, o->init, fan_in));
  *bias = o->bias ? tn_build_param(b, "bias", &channels,
                                   layer_default_init(text, sizeof text, o->bias_init, fan_in))
                  : 0;
  return v;
}

static tn_status conv_check_input(tn_build *b, const conv_options *o, int32_t rank) {
  static const char *const shapes[] = {"(N, C, W)", "(N, C, H, W)", "(N, C, D, H, W)"};
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  if (x->rank != 2 + rank)
    return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected %s", x->rank, shapes[rank - 1]);
  if (x->dims[1] % o->groups == 0 && o->channels % o->groups == 0) return TN_OK;
  return tn_fail(b, TN_EINVAL, "groups", "%lld does not divide %lld input and %lld output channels",
                 (long long)o->groups, (long long)x->dims[1], (long long)o->channels);
}

/* ---- building ---- */

/* Makes the border, where it has other than zeros, and leaves the op none to make. */
static tn_val conv_make_border(tn_build *b, const conv_options *o, int32_t rank, conv_window *w) {
  int64_t low[5] = {0}, high[5] = {0};
  if (o->padding_mode == 0) return tn_build_in(b, 0);
  memcpy(low + 2, w->padding, (size_t)rank * sizeof *low);
  memcpy(high + 2, w->padding + rank, (size_t)rank * sizeof *high);
  memset(w->padding, 0, sizeof w->padding);
  return tn_extend(b, tn_build_in(b, 0), 2 + rank, low, 2 + rank, high, o->padding_mode, 0);
}

/* Equal padding on both sides is given once, as a line of a plan shows it. */
static void conv_set_padding(tn_build *b, int32_t rank, const conv_window *w) {
  bool even = memcmp(w->padding, w->padding + rank, (size_t)rank * sizeof *w->padding) == 0;
  tn_op_set_ints(b, "padding", even ? rank : 2 * rank, w->padding);
}

static tn_status conv_build(tn_build *b, const conv_options *o, int32_t rank, bool transposed) {
  conv_window w;
  tn_val bias, x = tn_build_in(b, 0);
  int64_t in = tn_val_dim(b, x, 1);
  char op[24];
  tn_status status = conv_check_input(b, o, rank);
  if (status == TN_OK) status = conv_read_window(b, o, rank, &w);
  if (status != TN_OK) return status;
  int64_t rows = transposed ? in : o->channels, columns = (transposed ? o->channels : in) / o->groups;
  tn_val weight = conv_make_weight(b, o, rank, &w, rows, columns, &bias);
  x = conv_make_border(b, o, rank, &w);
  snprintf(op, sizeof op, "conv%s%dd", transposed ? "_transpose" : "", (int)rank);
  tn_op_begin(b, op);
  tn_op_arg(b, x);
  tn_op_arg(b, weight);
  tn_op_arg(b, bias);
  tn_op_set_ints(b, "stride", rank, w.stride);
  conv_set_padding(b, rank, &w);
  tn_op_set_ints(b, "dilation", rank, w.dilation);
  tn_op_set_int(b, "groups", o->groups);
  if (transposed) tn_op_set_ints(b, "output_padding", rank, w.output_padding);
  tn_build_yield(b, 0, tn_op_end(b));
  return TN_OK;
}

#define CONV_LAYER(name, rows, rank, transposed, help, in, out, size, shape)                                 \
  static tn_status name##_build(tn_build *b, const void *given) {                                            \
    return conv_build(b, given, rank, transposed);                                                           \
  }                                                                                                          \
  const tn_layer_kind layer_##name = {                                                                       \
      .item = TN_ITEM(tn_layer_kind, TN_LAYER, #name, help, conv_options, rows),                             \
      .min_in = 1,                                                                                           \
      .max_in = 1,                                                                                           \
      .types = in " to " out ", where H' = " size,                                                           \
      .example = "inputs = image: f32[" shape "]\nlayers = conv1: " #name "(16, kernel=3, padding=1)",       \
      .build = name##_build};

#define SIZE            "(H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down"
#define TRANSPOSED_SIZE "(H - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1"

CONV_LAYER(conv1d, conv_rows, 1, false, "1-D convolution", "(N, C, H)", "(N, channels, H')", SIZE, "3, 32")
CONV_LAYER(conv2d, conv_rows, 2, false, "2-D convolution", "(N, C, H, W)", "(N, channels, H', W')", SIZE,
           "3, 32, 32")
CONV_LAYER(conv3d, conv_rows, 3, false, "3-D convolution", "(N, C, D, H, W)", "(N, channels, D', H', W')",
           SIZE, "3, 8, 32, 32")
CONV_LAYER(conv_transpose1d, transpose_rows, 1, true, "1-D transposed convolution", "(N, C, H)",
           "(N, channels, H')", TRANSPOSED_SIZE, "3, 32")
CONV_LAYER(conv_transpose2d, transpose_rows, 2, true, "2-D transposed convolution", "(N, C, H, W)",
           "(N, channels, H', W')", TRANSPOSED_SIZE, "3, 32, 32")
CONV_LAYER(conv_transpose3d, transpose_rows, 3, true, "3-D transposed convolution", "(N, C, D, H, W)",
           "(N, channels, D', H', W')", TRANSPOSED_SIZE, "3, 8, 32, 32")
