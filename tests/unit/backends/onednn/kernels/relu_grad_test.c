#include "tests/unit/backends/onednn/isa_rig.h"

#include "backends/cpu/kernels/kernels.h" /* the reference */
#include "backends/onednn/kernels/kernels.h"

/* ---- the same op by op, in f64 ---- */

static tn_status naive_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "naive", .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static double value(const tn_view *v, int64_t at) { return rig_get(&v->type, v->data, at); }

static tn_status naive_launch(tn_launch *l) {
  bool two = l->n_in == 8;
  tn_view *in = l->in, *dy = two ? &in[0] : &in[2], *r = two ? &in[2] : &in[0], *h = &l->out[0];
  const tn_view *x = &in[l->n_in - 3], *mean = &in[l->n_in - 2], *rstd = &in[l->n_in - 1];
  int64_t channels = x->type.dims[1], pixels = x->type.dims[2] * x->type.dims[3];
  double *sums = calloc((size_t)channels * 2, sizeof *sums);
  for (int64_t i = 0; i < tn_type_count(&x->type); i++) {
    int64_t k = i / pixels % channels;
    double g = two ? rig_rounded(x->type.dtype, value(dy, i) + value(&in[1], i)) : value(dy, i);
    g = value(r, i) > 0 ? g : 0;
    rig_put(&h->type, h->data, i, g);
    sums[k] += g;
    sums[channels + k] += g * (value(x, i) - value(mean, k));
  }
  for (int64_t k = 0; k < channels; k++) {
    rig_put(&l->out[1].type, l->out[1].data, k, sums[k]);
    rig_put(&l->out[2].type, l->out[2].data, k, sums[channels + k] * value(rstd, k));
  }
  free(sums);
  return TN_OK;
}

static const tn_kernel naive = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "naive", "step by step"),
                                .family = "cpu",
                                .pattern = "h = relu(x)",
                                .query = naive_query,
                                .launch = naive_launch};

static void check(const int64_t *dims, int32_t dtype, bool two, tn_rng *rng) {
  static rig_match m;
  static const int64_t axes[] = {0, 2, 3};
  tn_reduce_attributes a = {{3, axes}, 0};
  tn_type x = rig_type(dtype, 4, dims), one = {dtype, 0, {0}}, row = RIG_TYPE(TN_F32, dims[1]), mask = x;
  int32_t n = 0, k = 0, in[8];
  void *data[8];
  mask.dtype = TN_BOOL;
  rig_start(&m);
  const tn_type *types[] = {&x, two ? &x : &one, &x, &one, two ? &one : &x, two ? &x : &row, &row, &row};
  for (; n < (two ? 8 : 7); n++) {
    in[n] = rig_in(&m, types[n]);
    data[n] = rig_drawn(types[n], rng);
    if (types[n] == &one) rig_is_zero(&m, in[n]);
  }
  int32_t r = two ? 2 : 0, sum = 2;
  if (two) sum = rig_node(&m, "add", NULL, (int32_t[]){in[0], in[1]}, 2, &x, 1);
  k = rig_node(&m, "gt", NULL, (int32_t[]){in[r], in[r + 1]}, 2, &mask, 1);
  k = rig_node(&m, "where", NULL, (int32_t[]){k, sum, in[two ? 4 : 3]}, 3, &x, 1);
  rig_out(&m, k);
  k = rig_node(&m, "norm_grad_sums", &a, (int32_t[]){k, in[n - 3], in[n - 2], in[n - 1]}, 4,
               (tn_type[]){row, row}, 2);
  rig_out(&m, k);
  rig_out(&m, k + 1);
  const tn_kernel *own = two ? &tn_onednn_add_relu_norm_grad_sums : &tn_onednn_relu_norm_grad_sums;
  ways_check(own, &naive, &m, data, 2e-6, 1);
  rig_sweep_allocations(own, &m);
  for (int32_t i = 0; i < n; i++) free(data[i]);
}

static void gradients_pass_where_the_relu_did_and_are_summed(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{3, 16, 5, 7},   {1, 32, 1, 1}, {5, 48, 9, 30},
                                      {7, 16, 33, 31}, {0, 16, 2, 2}, {32, 128, 3, 3}};
  static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F16};
  tn_rng rng = tn_rng_at(51, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t d = 0; d < 3; d++) {
      check(shapes[s], dtypes[d], false, &rng);
      check(shapes[s], dtypes[d], true, &rng);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_pass_where_the_relu_did_and_are_summed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
