/* tests/conformance/wrong/relu.h: a kernel for relu in f32 with a fault, WRONG(l). */
#include <tenon/plugin/kernel.h>

static tn_status query(tn_query *q) {
  if (q->match->in[0]->dtype != TN_F32 || DECLINES)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "made to decline");
  tn_variant v = {
      .struct_size = sizeof v, .name = "loop", .cost_s = 1e-12, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status launch(tn_launch *l) {
  const float *x = l->in[0].data;
  float *y = l->out[0].data;
  int64_t n = tn_type_count(&l->in[0].type);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
  WRONG(y, n);
  return TN_OK;
}

static const tn_kernel relu = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "wrong_relu", "relu, not quite"),
                               .family = "cpu",
                               .pattern = "y = relu(x)",
                               .query = query,
                               .launch = launch};
TN_PLUGIN(wrong, "1", "MIT", &relu.item)
