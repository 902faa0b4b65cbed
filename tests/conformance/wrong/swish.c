/* Swish with a kernel for f32. WRONG: it writes 12345 for negative x. */
#include <math.h>

#include <tenon/ops.h>
#include <tenon/plugin/kernel.h>

static tn_status decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_mul(b, tn_build_in(b, 0), tn_sigmoid(b, tn_build_in(b, 0))));
  return TN_OK;
}

static const tn_op swish = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "test_swish", "x sigmoid(x)"),
                            .schema = "(x:T) -> (y:T); T in f32 f64",
                            .op_class = TN_CLASS_POINTWISE,
                            .decompose = decompose};

static tn_status query(tn_query *q) {
  if (q->match->in[0]->dtype != TN_F32) return tn_fail(q, TN_EUNSUPPORTED, NULL, "f32 only");
  tn_variant v = {
      .struct_size = sizeof v, .name = "loop", .cost_s = 1e-12, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status launch(tn_launch *l) {
  const float *x = l->in[0].data;
  float *y = l->out[0].data;
  for (int64_t i = 0; i < tn_type_count(&l->in[0].type); i++)
    y[i] = WRONG && x[i] < 0 ? 12345 : x[i] / (1.0f + expf(-x[i]));
  return TN_OK;
}

static const tn_kernel kernel = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "test_swish_cpu", "swish"),
                                 .family = "cpu",
                                 .pattern = "y = test_swish(x)",
                                 .query = query,
                                 .launch = launch};
TN_PLUGIN(wrong, "1", "MIT", &swish.item, &kernel.item)
