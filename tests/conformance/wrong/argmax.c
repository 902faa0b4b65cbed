/* argmax along the last axis of f32. With WRONG, NaN is smaller than every number, since comparisons with it
 * are false. */
#include <tenon/attributes.h>
#include <tenon/plugin/kernel.h>

static tn_status query(tn_query *q) {
  const tn_axis_attributes *a = q->match->nodes[0].node->attributes;
  const tn_type *x = q->match->in[0];
  if (x->dtype != TN_F32 || (a->axis != -1 && a->axis != x->rank - 1))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "made for f32 along the last axis");
  tn_variant v = {
      .struct_size = sizeof v, .name = "loop", .cost_s = 1e-12, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static int is_larger(float x, float best) {
  if (WRONG) return x > best;
  return x > best || (x != x && best == best);
}

static tn_status launch(tn_launch *l) {
  const tn_type *type = &l->in[0].type;
  const float *x = l->in[0].data;
  int32_t *y = l->out[0].data;
  int64_t n = type->dims[type->rank - 1], rows = tn_type_count(&l->out[0].type);
  for (int64_t row = 0; row < rows; row++, x += n) {
    y[row] = 0;
    for (int64_t i = 1; i < n; i++)
      if (is_larger(x[i], x[y[row]])) y[row] = (int32_t)i;
  }
  return TN_OK;
}

static const tn_kernel argmax = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "test_argmax", "argmax of rows"),
                                 .family = "cpu",
                                 .pattern = "y = argmax(x)",
                                 .query = query,
                                 .launch = launch};
TN_PLUGIN(wrong, "1", "MIT", &argmax.item)
