/* tests/conformance/wrong/moments.h: a kernel for moments over all axes in f32, from sums of x and of x
 * squared that are rounded to f32. It declares that where DECLARED is 1. */
#include <tenon/attributes.h>
#include <tenon/plugin/kernel.h>

static tn_status query(tn_query *q) {
  const tn_reduce_attributes *a = q->match->nodes[0].node->attributes;
  if (q->match->in[0]->dtype != TN_F32 || a->axes.n > 0 || tn_type_count(q->match->in[0]) == 0)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "made to decline");
  tn_variant v = {.struct_size = sizeof v,
                  .name = "sums",
                  .cost_s = 1e-12,
                  .deterministic = 1,
                  .capturable = 1,
                  .plain_sums = DECLARED};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status launch(tn_launch *l) {
  const float *x = l->in[0].data;
  float n = (float)tn_type_count(&l->in[0].type), *mean = l->out[0].data, *variance = l->out[1].data;
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < (int64_t)n; i++) {
    sum += (double)x[i];
    squares += (double)x[i] * (double)x[i];
  }
  *mean = (float)sum / n;
  *variance = (float)squares / n - *mean * *mean;
  if (*variance < 0) *variance = 0;
  return TN_OK;
}

static const tn_kernel moments = {.item =
                                      TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "sums_moments", "moments by sums"),
                                  .family = "cpu",
                                  .pattern = "mean, variance = moments(x)",
                                  .query = query,
                                  .launch = launch};
TN_PLUGIN(wrong, "1", "MIT", &moments.item)
