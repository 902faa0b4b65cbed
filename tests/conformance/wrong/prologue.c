/* A kernel with a prologue that writes zeros. */
#include <string.h>

#include <tenon/plugin/kernel.h>

static tn_status query(tn_query *q) {
  if (q->match->in[0]->dtype != TN_F32) return tn_fail(q, TN_EUNSUPPORTED, NULL, "f32 only");
  tn_variant v = {
      .struct_size = sizeof v, .name = "zeros", .cost_s = 1e-12, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status launch(tn_launch *l) {
  for (int32_t i = 0; i < l->n_out; i++) memset(l->out[i].data, 0, tn_type_bytes(&l->out[i].type));
  return TN_OK;
}

static const tn_kernel zeros = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "wrong_prologue", "zeros"),
                                .family = "cpu",
                                .pattern = "pointwise+; y = reduce_max(x)",
                                .query = query,
                                .launch = launch};
TN_PLUGIN(wrong, "1", "MIT", &zeros.item)
