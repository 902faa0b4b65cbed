/* core/ops/quantize.c: rounding to few numbers, as a program of whole numbers has them, in the floats of a
 * training. The numbers are those of ONNX: QuantizeLinear rounds x / scale to the nearest, ties to even. */
#include "core/ops/quantize.h"

#include "core/ops/common.h"

#define BITS                                                                                                 \
  TN_OPT(tn_quantize_attributes, bits, TN_OPT_INT, "8", "[2, 16]", "there are 2^bits numbers, or one less")

static const tn_option fake_quantize_rows[] = {BITS, TN_OPT_END};

#define STATEMENT(name, value) #name " = " #value "; "
#define GRID                   "n = 2^bits - 1; " TN_QUANTIZE_GRID(STATEMENT) "q = round(x / s) + z; "

const tn_op tn_op_fake_quantize = {
    .item = TN_ITEM(tn_op, TN_OP, "fake_quantize",
                    "the nearest of 2^bits evenly spaced numbers, of which one is 0, between low and high; x "
                    "where low is above high",
                    tn_quantize_attributes, fake_quantize_rows),
    .schema = "(x:T, low:T, high:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .formula = GRID "y = x if low > high else (minimum(maximum(q, 0), n) - z) * s",
    .gradient = GRID "dx = dy if low > high or q >= 0 and q <= n else 0",
    .notes = "The gradient is straight-through: that of x inside of the range, 0 outside; low and high have "
             "none. Y. Bengio et al., \"Estimating or propagating gradients through stochastic neurons\", "
             "2013; B. Jacob et al., \"Quantization and training of neural networks for efficient "
             "integer-arithmetic-only inference\", CVPR 2018.",
    .aliases = "fake_quantize_per_tensor_affine",
};

/* ---- by the range of each slice ---- */

static const tn_option channels_rows[] = {
    BITS,
    TN_OPT(tn_quantize_attributes, axis, TN_OPT_INT, "0", NULL,
           "dimension of whose slices each has a range, -rank .. rank-1"),
    TN_OPT_END};

static tn_status fake_quantize_channels_decompose(tn_build *b, const void *attributes) {
  const tn_quantize_attributes *a = attributes;
  int32_t axis, dtype = tn_val_type(b, tn_build_in(b, 0))->dtype;
  bool reduced[TN_MAX_RANK];
  TN_TRY(tn_ops_axis_of_x(b, a->axis, &axis));
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  for (int32_t i = 0; i < TN_MAX_RANK; i++) reduced[i] = i != axis;
  tn_val most = tn_ops_reduce(b, "reduce_max", tn_abs(b, x), reduced);
  tn_val scale = tn_div(b, most, tn_ops_number(b, x, (double)tn_quantize_greatest(a->bits)));
  scale = tn_maximum(b, scale, tn_ops_number(b, x, TN_QUANTIZE_LEAST_SCALE));
  tn_build_yield(b, 0, tn_to_dtype(b, tn_mul(b, tn_round(b, tn_div(b, x, scale)), scale), dtype));
  return TN_OK;
}

TN_OPS_COMPOSITE(fake_quantize_channels,
                 "the nearest of 2^bits - 1 evenly spaced numbers, symmetric around 0, that reach as far as "
                 "the largest element of each slice",
                 tn_quantize_attributes, channels_rows, TN_CLASS_NORM, "(x:T) -> (y:T)" TN_OPS_FLOATS,
                 .gradient = "dx = dy",
                 .notes = "For weights: slice i along the axis is output channel i. The gradient is "
                          "straight-through: no element is outside of its range.",
                 .aliases = "fake_quantize_per_channel_affine");
