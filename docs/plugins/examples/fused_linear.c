/* A fused kernel: a matrix product, its bias and ReLU in one launch. `--plugin fused_linear.so` speeds
 * up models without changes to them; `tenon plan` shows its launches. Weights are (out, in). */
#include <tenon/attributes.h>
#include <tenon/plugin/kernel.h>

static tn_status query(tn_query *q) {
  const tn_match *m = q->match;
  const tn_matmul_attributes *product = m->nodes[0].node->attributes;
  if (m->in[0]->dtype != TN_F32) return tn_fail(q, TN_EUNSUPPORTED, NULL, "f32 only");
  if (m->in[0]->rank != 2 || m->in[1]->rank != 2) return tn_fail(q, TN_EUNSUPPORTED, NULL, "matrices only");
  if (product->transpose_a || !product->transpose_b)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "expected x W^T");
  double flops = 2.0 * (double)tn_type_count(m->in[1]) * (double)m->in[0]->dims[0];
  tn_variant v = {
      .struct_size = sizeof v, .name = "rows", .cost_s = flops / 1e10, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static void run_row(void *arg, int64_t row) {
  const tn_launch *l = arg;
  int64_t depth = l->in[0].type.dims[1], width = l->in[1].type.dims[0];
  const float *x = (const float *)l->in[0].data + row * depth, *w = l->in[1].data, *bias = l->in[2].data;
  float *y = (float *)l->out[0].data + row * width;
  for (int64_t j = 0; j < width; j++) {
    float sum = bias ? bias[j] : 0.0f;
    for (int64_t k = 0; k < depth; k++) sum += x[k] * w[j * depth + k];
    y[j] = sum < 0.0f ? 0.0f : sum; /* NaN is passed on */
  }
}

static tn_status launch(tn_launch *l) {
  tn_parallel(l, l->in[0].type.dims[0], run_row, l);
  return TN_OK;
}

static const tn_kernel fused = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "fused_linear_relu", "matmul, bias and relu in one launch"),
    .family = "cpu",
    .pattern = "h = matmul(x, w, bias?); y = relu(h)",
    .query = query,
    .launch = launch};

TN_PLUGIN(fused_linear, "1.0", "MIT", &fused.item)
