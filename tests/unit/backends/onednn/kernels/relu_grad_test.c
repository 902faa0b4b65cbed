#include "tests/unit/backends/onednn/isa_rig.h"

extern const tn_kernel tn_kernel_onednn_add_relu_norm_grad_sums, tn_kernel_onednn_cast_norm_relu_grad_sums,
    tn_kernel_onednn_norm_relu_grad_sums, tn_kernel_onednn_relu_norm_grad_sums;

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
  const tn_kernel *own =
      two ? &tn_kernel_onednn_add_relu_norm_grad_sums : &tn_kernel_onednn_relu_norm_grad_sums;
  ways_check(own, &naive, &m, data, 2e-6, 1);
  rig_sweep_allocations(own, &m);
  for (int32_t i = 0; i < n; i++) free(data[i]);
}

/* ---- the gate computed again from the normalization ---- */

static tn_status naive_norm_launch(tn_launch *l) {
  const tn_view *in = l->in, *mean = &in[0], *scale = &in[1], *shift = &in[2], *x = &in[3], *dy = &in[5];
  int64_t channels = x->type.dims[1], pixels = x->type.dims[2] * x->type.dims[3];
  double *sums = calloc((size_t)channels * 2, sizeof *sums);
  for (int64_t i = 0; i < tn_type_count(&x->type); i++) {
    int64_t k = i / pixels % channels;
    float centred = (float)value(x, i) - (float)value(mean, k), product = centred * (float)value(scale, k);
    double g = product + (float)value(shift, k) > 0 ? value(dy, i) : 0;
    rig_put(&l->out[0].type, l->out[0].data, i, g);
    sums[k] += g;
    sums[channels + k] += g * (value(x, i) - value(mean, k));
  }
  for (int64_t k = 0; k < channels; k++) {
    rig_put(&l->out[1].type, l->out[1].data, k, sums[k]);
    rig_put(&l->out[2].type, l->out[2].data, k, sums[channels + k] * value(&in[6], k));
  }
  free(sums);
  return TN_OK;
}

static const tn_kernel naive_norm = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "naive", "step by step"),
                                     .family = "cpu",
                                     .pattern = "h = relu(x)",
                                     .query = naive_query,
                                     .launch = naive_norm_launch};

static int32_t one_result(rig_match *m, const char *op, int32_t a, int32_t b, const tn_type *type) {
  return rig_node(m, op, NULL, (int32_t[]){a, b}, b < 0 ? 1 : 2, type, 1);
}

/* The nodes between x and the ReLU's result. */
static int32_t normalize(rig_match *m, const int32_t *in, const tn_type *x) {
  tn_type wide = *x, view = RIG_TYPE(TN_F32, 1, x->dims[1], 1, 1);
  int32_t row[3], k = in[3];
  wide.dtype = TN_F32;
  for (int32_t i = 0; i < 3; i++) row[i] = one_result(m, "reshape", in[i], -1, &view);
  if (x->dtype != TN_F32) k = one_result(m, "cast", k, -1, &wide);
  k = one_result(m, "sub", k, row[0], &wide);
  k = one_result(m, "mul", k, row[1], &wide);
  k = one_result(m, "add", k, row[2], &wide);
  if (x->dtype != TN_F32) k = one_result(m, "cast", k, -1, x);
  return one_result(m, "maximum", k, in[4], x);
}

static void check_norm(const int64_t *dims, int32_t dtype, tn_rng *rng) {
  static rig_match m;
  static const int64_t axes[] = {0, 2, 3};
  tn_reduce_attributes a = {{3, axes}, 0};
  tn_type x = rig_type(dtype, 4, dims), zero = {dtype, 0, {0}}, row = RIG_TYPE(TN_F32, dims[1]), mask = x;
  const tn_type *types[] = {&row, &row, &row, &x, &zero, &x, &row};
  int32_t in[7];
  void *data[7];
  mask.dtype = TN_BOOL;
  rig_start(&m);
  for (int32_t n = 0; n < 7; n++) {
    in[n] = rig_in(&m, types[n]);
    data[n] = rig_drawn(types[n], rng);
  }
  rig_is_zero(&m, in[4]);
  int32_t k = one_result(&m, "gt", normalize(&m, in, &x), in[4], &mask);
  k = rig_node(&m, "where", NULL, (int32_t[]){k, in[5], in[4]}, 3, &x, 1);
  rig_out(&m, k);
  k = rig_node(&m, "norm_grad_sums", &a, (int32_t[]){k, in[3], in[0], in[6]}, 4, (tn_type[]){row, row}, 2);
  rig_out(&m, k);
  rig_out(&m, k + 1);
  const tn_kernel *own =
      dtype == TN_F32 ? &tn_kernel_onednn_norm_relu_grad_sums : &tn_kernel_onednn_cast_norm_relu_grad_sums;
  ways_check(own, &naive_norm, &m, data, 2e-6, 1);
  rig_sweep_allocations(own, &m);
  for (int32_t i = 0; i < 7; i++) free(data[i]);
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
      check_norm(shapes[s], dtypes[d], &rng);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_pass_where_the_relu_did_and_are_summed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
