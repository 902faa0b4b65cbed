/* A momentum optimizer with an op and a kernel of its own. WRONG: the kernel works in blocks of four and
 * multiplies the elements behind the end of the momentum by zero instead of leaving them out. */
#include <tenon/ops.h>
#include <tenon/plugin/kernel.h>
#include <tenon/plugin/optimizer.h>

static tn_status decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_add(b, tn_affine(b, tn_build_in(b, 0), 0.9, 0), tn_build_in(b, 1)));
  return TN_OK;
}

static const tn_op momentum = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "test_momentum", "0.9 m + g"),
                               .schema = "(m:T, g:T) -> (y:T); T in f32",
                               .flags = TN_OP_NONDIFF,
                               .op_class = TN_CLASS_POINTWISE,
                               .decompose = decompose};

static tn_status query(tn_query *q) {
  const tn_type *m = q->match->in[0], *g = q->match->in[1];
  if (m->dtype != TN_F32 || tn_type_count(m) != tn_type_count(g) || m->rank != g->rank)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "f32 of equal shapes only");
  tn_variant v = {
      .struct_size = sizeof v, .name = "blocks", .cost_s = 1e-12, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

/* The sum of the elements of the last block behind its end. */
static float beyond(const float *m, int64_t n) {
  float sum = 0;
  for (int64_t k = n; k % 4 != 0; k++) sum += m[k];
  return sum;
}

static tn_status launch(tn_launch *l) {
  const float *m = l->in[0].data, *g = l->in[1].data;
  float *y = l->out[0].data;
  int64_t n = tn_type_count(&l->in[0].type);
  for (int64_t i = 0; i < n; i++) y[i] = 0.9f * m[i] + g[i];
  if (WRONG && n > 0) y[n - 1] += 0.0f * beyond(m, n);
  return TN_OK;
}

static const tn_kernel kernel = {.item =
                                     TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "test_momentum_cpu", "0.9 m + g"),
                                 .family = "cpu",
                                 .pattern = "y = test_momentum(m, g)",
                                 .query = query,
                                 .launch = launch};

struct rate {
  double lr;
};
static const tn_option options[] = {
    TN_OPT_WITH(struct rate, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.1", ">= 0", "learning rate"), TN_OPT_END};

static tn_status update(tn_build *b, const void *given) {
  (void)given;
  tn_val p = tn_build_in(b, 0), m = tn_build_state(b, "momentum", tn_val_type(b, p), "zeros");
  tn_val now = tn_op2(b, "test_momentum", m, tn_build_in(b, 1));
  tn_build_commit(b, m, now);
  tn_build_yield(b, 0, tn_sub(b, p, tn_mul(b, tn_build_option_value(b, "lr"), now)));
  return TN_OK;
}

static const tn_optimizer optimizer = {
    .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, "test_blocks", "momentum in blocks", struct rate, options),
    .granularity = TN_UPDATE_ELEMENTWISE,
    .update = update};
TN_PLUGIN(wrong, "1", "MIT", &momentum.item, &kernel.item, &optimizer.item)
