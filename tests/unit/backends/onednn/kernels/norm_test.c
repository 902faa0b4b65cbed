#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

extern const tn_kernel tn_kernel_cpu_layer_norm, tn_kernel_onednn_layer_norm,
    tn_kernel_onednn_layer_norm_grad, tn_kernel_onednn_layer_norm_grad_add;

/* ---- the gradient by definition, in f64 ---- */

static tn_status naive_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "naive", .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static double added(const tn_launch *l, int64_t i) {
  return l->n_in > 5 ? rig_get(&l->in[5].type, l->in[5].data, i) : 0;
}

static void naive_row(tn_launch *l, int64_t row, int64_t n, double *dweight, double *dbias) {
  tn_view *in = l->in, *out = l->out;
  double mean = rig_get(&in[2].type, in[2].data, row), rstd = rig_get(&in[3].type, in[3].data, row), sum = 0,
         dot = 0;
  for (int32_t pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < n; i++) {
      double dy = rig_get(&in[0].type, in[0].data, row * n + i);
      double normal = (rig_get(&in[1].type, in[1].data, row * n + i) - mean) * rstd;
      double g = in[4].data != NULL ? dy * rig_get(&in[4].type, in[4].data, i) : dy;
      if (pass == 0) {
        sum += g;
        dot += g * normal;
        dweight[i] += dy * normal;
        dbias[i] += dy;
      } else {
        rig_put(&out[0].type, out[0].data, row * n + i,
                rstd * (g - sum / (double)n - normal * dot / (double)n) + added(l, row * n + i));
      }
    }
}

static tn_status naive_launch(tn_launch *l) {
  int64_t n = tn_type_count(&l->out[1].type), rows = tn_type_count(&l->in[2].type);
  double *dweight = calloc((size_t)n + 1, sizeof *dweight), *dbias = calloc((size_t)n + 1, sizeof *dbias);
  for (int64_t row = 0; row < rows; row++) naive_row(l, row, n, dweight, dbias);
  for (int64_t i = 0; i < n; i++) {
    rig_put(&l->out[1].type, l->out[1].data, i, dweight[i]);
    rig_put(&l->out[2].type, l->out[2].data, i, dbias[i]);
  }
  free(dweight);
  free(dbias);
  return TN_OK;
}

static const tn_kernel naive = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "naive", "layer_norm_grad as it is defined"),
    .family = "cpu",
    .pattern = "dx, dweight, dbias = layer_norm_grad(dy, x, mean, rstd, weight?)",
    .query = naive_query,
    .launch = naive_launch,
};

/* ---- cases ---- */

static void check_forward(const tn_type *x, const tn_type *rows, const tn_type *row, bool weighted,
                          tn_rng *rng) {
  rig_match m;
  tn_norm_attributes a = {.epsilon = 1e-5, .trailing = row->rank};
  rig_start(&m);
  int32_t in[] = {rig_in(&m, x), rig_in(&m, weighted ? row : NULL), rig_in(&m, weighted ? row : NULL)};
  tn_type out[] = {*x, *rows, *rows};
  int32_t first = rig_node(&m, "layer_norm", &a, in, 3, out, 3);
  for (int32_t i = 0; i < 3; i++) rig_out(&m, first + i);
  void *data[] = {rig_drawn(x, rng), rig_drawn(row, rng), rig_drawn(row, rng)};
  ways_check(&tn_kernel_onednn_layer_norm, &tn_kernel_cpu_layer_norm, &m, data, 2e-6, 1);
  rig_sweep_allocations(&tn_kernel_onednn_layer_norm, &m);
  for (int32_t i = 0; i < 3; i++) free(data[i]);
}

static void check_gradient(const tn_type *x, const tn_type *rows, const tn_type *row, bool weighted,
                           tn_rng *rng) {
  rig_match m;
  tn_norm_attributes a = {.trailing = row->rank};
  rig_start(&m);
  int32_t in[] = {rig_in(&m, x), rig_in(&m, x), rig_in(&m, rows), rig_in(&m, rows),
                  rig_in(&m, weighted ? row : NULL)};
  tn_type out[] = {*x, *row, *row};
  int32_t first = rig_node(&m, "layer_norm_grad", &a, in, 5, out, 3);
  for (int32_t i = 0; i < 3; i++) rig_out(&m, first + i);
  void *data[] = {rig_drawn(x, rng), rig_drawn(x, rng), rig_drawn(rows, rng), rig_drawn(rows, rng),
                  weighted ? rig_drawn(row, rng) : NULL};
  ways_check(&tn_kernel_onednn_layer_norm_grad, &naive, &m, data, 3e-5, 1);
  rig_sweep_allocations(&tn_kernel_onednn_layer_norm_grad, &m);
  for (int32_t i = 0; i < 5; i++) free(data[i]);
}

/* With the gradient of a residual added. */
static void check_sum(const tn_type *x, const tn_type *rows, const tn_type *row, bool weighted, tn_rng *rng) {
  rig_match m;
  tn_norm_attributes a = {.trailing = row->rank};
  rig_start(&m);
  int32_t in[] = {
      rig_in(&m, x), rig_in(&m, x), rig_in(&m, rows), rig_in(&m, rows), rig_in(&m, weighted ? row : NULL),
      rig_in(&m, x)};
  tn_type out[] = {*x, *row, *row};
  int32_t first = rig_node(&m, "layer_norm_grad", &a, in, 5, out, 3);
  rig_out(&m, rig_node(&m, "add", NULL, (int32_t[]){first, in[5]}, 2, x, 1));
  for (int32_t i = 1; i < 3; i++) rig_out(&m, first + i);
  if (x->dtype != TN_F32) {
    rig_answer answer = rig_query(&tn_kernel_onednn_layer_norm_grad_add, &m);
    assert_int_equal(answer.status, TN_EUNSUPPORTED);
    assert_non_null(strstr(answer.text, "not f32"));
    return;
  }
  void *data[] = {rig_drawn(x, rng),
                  rig_drawn(x, rng),
                  rig_drawn(rows, rng),
                  rig_drawn(rows, rng),
                  weighted ? rig_drawn(row, rng) : NULL,
                  rig_drawn(x, rng)};
  ways_check(&tn_kernel_onednn_layer_norm_grad_add, &naive, &m, data, 3e-5, 1);
  rig_sweep_allocations(&tn_kernel_onednn_layer_norm_grad_add, &m);
  for (int32_t i = 0; i < 6; i++) free(data[i]);
}

static void rows_of_all_sizes_are_normalized_and_differentiated(void **state) {
  (void)state;
  static const struct {
    int32_t rank;
    int64_t dims[4];
    int64_t trailing;
  } shapes[] = {{2, {5, 128}, 1},  {2, {700, 33}, 1},  {3, {4, 3, 17}, 2}, {1, {9}, 1},
                {2, {3, 5000}, 1}, {2, {2500, 64}, 1}, {3, {2, 0, 8}, 1},  {4, {2, 3, 4, 16}, 1},
                {2, {6, 1}, 1},    {2, {90, 768}, 1}};
  static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F16};
  tn_rng rng = tn_rng_at(61, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t d = 0; d < 3; d++) {
      tn_type x = rig_type(dtypes[d], shapes[s].rank, shapes[s].dims), rows = x, row = {TN_F32, 0, {0}};
      row.rank = (int32_t)shapes[s].trailing;
      rows.dtype = TN_F32;
      rows.rank -= row.rank;
      memset(rows.dims + rows.rank, 0, (size_t)row.rank * sizeof rows.dims[0]);
      memcpy(row.dims, x.dims + rows.rank, (size_t)row.rank * sizeof row.dims[0]);
      check_forward(&x, &rows, &row, (s + d) % 3 != 0, &rng);
      check_gradient(&x, &rows, &row, (s + d) % 3 != 1, &rng);
      check_sum(&x, &rows, &row, (s + d) % 3 != 1, &rng);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_all_sizes_are_normalized_and_differentiated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
