/* core/model/lines/quantize.c: layers whose inputs and weights are rounded as a program of whole numbers
 * rounds them ([quantize]; Jacob et al., "Quantization and training of neural networks for efficient
 * integer-arithmetic-only inference", CVPR 2018). The input has a range that is observed over the batches,
 * and the weight that of each output channel. */
#include "core/base/quantize.h"
#include "core/graph/input_state.h"
#include "core/model/assemble.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

bool tn_quantizes(const tn_quantize *q, const char *layer) {
  return q != NULL && q->given && tn_words_match(&q->match, layer);
}

/* ---- the range of the input ---- */

/* A bound of the range with that of one more batch, `now`. Before the first batch there is no range. */
static tn_val quantize_move(tn_build *b, const tn_quantize *q, tn_val seen, tn_val old, tn_val now,
                            bool is_low) {
  tn_val moved;
  if (q->observer == TN_OBSERVER_MINMAX)
    moved = is_low ? tn_minimum(b, old, now) : tn_maximum(b, old, now);
  else
    moved = tn_add(b, old, tn_affine(b, tn_sub(b, now, old), q->averaging, 0));
  return tn_where(b, seen, moved, now);
}

/* Moves the range of the states by the batch x, and commits it. */
static void quantize_observe(tn_build *b, const tn_quantize *q, tn_val x, tn_val *low, tn_val *high) {
  tn_val old_low = *low, old_high = *high, seen = tn_le(b, old_low, old_high);
  *low = quantize_move(b, q, seen, old_low, tn_reduce_min(b, x, 0, NULL, 0), true);
  *high = quantize_move(b, q, seen, old_high, tn_reduce_max(b, x, 0, NULL, 0), false);
  if (q->observe > 0) {
    tn_val steps = tn_scalar(b, TN_I64, (double)q->observe);
    tn_val over = tn_ge(b, tn_build_counter(b, TN_ITERATION), steps);
    *low = tn_where(b, over, old_low, *low);
    *high = tn_where(b, over, old_high, *high);
  }
  tn_build_commit(b, old_low, *low);
  tn_build_commit(b, old_high, *high);
}

static tn_val quantize_input(tn_build *b, const tn_quantize *q, tn_val x) {
  const tn_type scalar = {TN_F32, 0, {0}};
  tn_val low = tn_build_state(b, TN_QUANTIZE_LOW, &scalar, "constant(1)"),
         high = tn_build_state(b, TN_QUANTIZE_HIGH, &scalar, "constant(-1)");
  if (tn_build_training(b) && !tn_build_frozen(b, TN_QUANTIZE_LOW)) quantize_observe(b, q, x, &low, &high);
  return tn_fake_quantize(b, x, low, high, q->input_bits);
}

/* ---- the op ---- */

static bool quantize_is_parameter(tn_build *b, tn_val v) {
  const tn_gnode *maker = tn_graph_maker(tn_builder_graph(b), v);
  const tn_state_attributes *a = maker->attributes;
  return maker->op == &tn_op_state && a->what + 1 == TN_STATE_PARAM;
}

/* The dimension of the weight whose slices have a range each: its output channels, or the rows of a table.
 * -1: the op is not rounded. */
static int32_t quantize_axis(const tn_op *op, const void *attributes) {
  static const struct {
    const char *op;
    int32_t axis;
  } rows[] = {{"conv1d", 0},           {"conv2d", 0},           {"conv3d", 0},   {"conv_transpose1d", 1},
              {"conv_transpose2d", 1}, {"conv_transpose3d", 1}, {"embedding", 0}};
  const tn_matmul_attributes *product = attributes;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (tn_text_equal(op->item.name, rows[i].op)) return rows[i].axis;
  return tn_text_equal(op->item.name, "matmul") && product->transpose_b && !product->transpose_a ? 0 : -1;
}

/* Ids, the input of a table, are whole numbers already. */
void tn_layer_quantize(tn_build *b, const tn_quantize *q, const tn_op *op, const void *attributes, tn_val *in,
                       int32_t n) {
  int32_t axis = n < 2 ? -1 : quantize_axis(op, attributes);
  if (axis < 0 || !quantize_is_parameter(b, in[1]) || tn_val_type(b, in[1])->dtype != TN_F32) return;
  int32_t dtype = tn_val_type(b, in[0])->dtype;
  if (dtype != TN_F32 && tn_dtype_is_float(dtype)) return;
  if (dtype == TN_F32) in[0] = quantize_input(b, q, in[0]);
  in[1] = tn_fake_quantize_channels(b, in[1], q->weight_bits, axis);
}
