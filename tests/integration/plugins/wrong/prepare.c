/* A kernel that is the cheapest for every product, in two variants, and cannot be prepared. */
#include <tenon/plugin/kernel.h>

static tn_status query(tn_query *q) {
  for (int32_t id = 1; id <= 2; id++) {
    tn_variant v = {
        .struct_size = sizeof v, .id = id, .name = id == 1 ? "first" : "second", .cost_s = id * 1e-12};
    tn_add_variant(q, &v);
  }
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **prepared) {
  (void)prepared;
  return tn_fail(p, TN_EUNSUPPORTED, NULL, "no engine for variant %d", (int)p->variant);
}

static tn_status launch(tn_launch *l) { return tn_fail(l, TN_EINTERNAL, NULL, "launched without an engine"); }

static const tn_kernel matmul = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "late_matmul", "declines late"),
                                 .family = "cpu",
                                 .pattern = "y = matmul(a, b, bias?)",
                                 .query = query,
                                 .prepare = prepare,
                                 .launch = launch};
TN_PLUGIN(late, "1", "MIT", &matmul.item)
