/* Moments of channels: right for row-major operands, and wrong for blocks of eight channels, which are read
 * as if they were row-major. */
#include <tenon/attributes.h>
#include <tenon/plugin/kernel.h>

static const tn_operand_layout in_blocks = {
    .rule = TN_LAYOUT_FIXED,
    .layout = {.set = 1, .n_blocks = 1, .order = {0, 1, 2, 3}, .block = {{.dim = 1, .size = 8}}}};

static tn_status query(tn_query *q) {
  const tn_type *x = q->match->in[0];
  const tn_reduce_attributes *a = q->match->nodes[0].node->attributes;
  if (x->dtype != TN_F32 || x->rank != 4 || a->axes.n != 3)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "images in f32 only");
  tn_variant plain = {.struct_size = sizeof plain, .name = "row-major", .cost_s = 1, .deterministic = 1};
  tn_variant blocked = {.struct_size = sizeof blocked,
                        .id = 1,
                        .name = "blocks of 8",
                        .in = &in_blocks,
                        .cost_s = 1e-12,
                        .deterministic = 1};
  tn_add_variant(q, &plain);
  tn_add_variant(q, &blocked);
  return TN_OK;
}

static double mean_of(const tn_view *x, int64_t c, double about, int square) {
  const int64_t *d = x->type.dims;
  double sum = 0;
  for (int64_t n = 0; n < d[0]; n++)
    for (int64_t i = 0; i < d[2] * d[3]; i++) {
      double v = (double)((const float *)x->data)[(n * d[1] + c) * d[2] * d[3] + i] - about;
      sum += square ? v * v : v;
    }
  return sum / (double)(d[0] * d[2] * d[3]);
}

static tn_status launch(tn_launch *l) {
  float *mean = l->out[0].data, *variance = l->out[1].data;
  for (int64_t c = 0; c < l->in[0].type.dims[1]; c++) {
    mean[c] = (float)mean_of(&l->in[0], c, 0, 0);
    variance[c] = (float)mean_of(&l->in[0], c, (double)mean[c], 1);
  }
  return TN_OK;
}

static const tn_kernel kernel = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "layout_moments", "moments with a fault in one layout"),
    .family = "onednn",
    .pattern = "mean, variance = moments(x)",
    .query = query,
    .launch = launch};
TN_PLUGIN(broken, "1", "MIT", &kernel.item)
