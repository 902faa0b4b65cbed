/* tests/unit/backends/cpu/kernels/embedding_test.c: embedding and its gradient against naive loops. */
#include "tests/unit/backends/cpu/rig.h"

#include <math.h>
#include <stdio.h>

extern const tn_kernel tn_kernel_cpu_embedding, tn_kernel_cpu_embedding_grad;

static tn_type with_width(const tn_type *ids, int32_t dtype, int64_t width) {
  tn_type y = *ids;
  y.dtype = dtype;
  y.dims[y.rank++] = width;
  return y;
}

static void *drawn_ids(const tn_type *type, int64_t rows, tn_rng *rng) {
  void *ids = rig_tensor(type);
  for (int64_t i = 0; i < tn_type_count(type); i++)
    rig_put(type, ids, i,
            (double)(tn_rng_below(rng, 3) ? tn_rng_below(rng, rows) : tn_rng_below(rng, rows) / 4));
  return ids;
}

static void make_lookup(rig_match *m, const tn_type *ids, const tn_type *table, const tn_type *y) {
  rig_start(m);
  int32_t numbers[2] = {rig_in(m, ids), rig_in(m, table)};
  rig_out(m, rig_node(m, "embedding", NULL, numbers, 2, y, 1));
}

static void make_scatter(rig_match *m, const tn_type *ids, const tn_type *dy, const tn_type *dtable,
                         const tn_embedding_grad_attributes *a) {
  rig_start(m);
  int32_t numbers[2] = {rig_in(m, ids), rig_in(m, dy)};
  rig_out(m, rig_node(m, "embedding_grad", a, numbers, 2, dtable, 1));
}

static void check_both(const tn_type *ids_type, int64_t rows, int64_t width, int32_t dtype, tn_rng *rng) {
  rig_match m;
  tn_type table = RIG_TYPE(dtype, rows, width), y = with_width(ids_type, dtype, width);
  tn_embedding_grad_attributes a = {rows};
  int64_t n = tn_type_count(ids_type);
  void *in[] = {drawn_ids(ids_type, rows, rng), rig_drawn(&table, rng)}, *out = rig_tensor(&y);
  make_lookup(&m, ids_type, &table, &y);
  rig_run_on_all(&tn_kernel_cpu_embedding, &m, in, &out);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < width; k++)
      assert_true(rig_get(&y, out, i * width + k) ==
                  rig_get(&table, in[1], (int64_t)rig_get(ids_type, in[0], i) * width + k));
  double *want = calloc((size_t)(rows * width) + 1, sizeof *want);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < width; k++)
      want[(int64_t)rig_get(ids_type, in[0], i) * width + k] += rig_get(&y, out, i * width + k);
  void *grad_in[] = {in[0], out}, *dtable = rig_tensor(&table);
  make_scatter(&m, ids_type, &y, &table, &a);
  rig_run_on_all(&tn_kernel_cpu_embedding_grad, &m, grad_in, &dtable);
  for (int64_t i = 0; i < rows * width; i++)
    assert_true(rig_get(&table, dtable, i) == rig_rounded(dtype, want[i]));
  free(in[0]);
  free(in[1]);
  free(out);
  free(dtable);
  free(want);
}

static void lookup_and_its_gradient_agree_with_naive_loops(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(61, 0);
  for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++)
    for (int32_t id = TN_I32; id <= TN_I64; id++) {
      const tn_type shapes[] = {RIG_TYPE(id, 3, 50), RIG_TYPE(id, 700), rig_type(id, 0, NULL),
                                RIG_TYPE(id, 0), RIG_TYPE(id, 2, 3, 4)};
      for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        check_both(&shapes[k], 10, 7, dtype, &rng);
        check_both(&shapes[k], 900, 130, dtype, &rng);
        check_both(&shapes[k], 5, 1100, dtype, &rng);
        check_both(&shapes[k], 1, 1, dtype, &rng);
        check_both(&shapes[k], 4, 0, dtype, &rng);
      }
    }
}

static void an_id_outside_the_table_is_an_error_that_names_it(void **state) {
  (void)state;
  rig_match m;
  tn_type ids = RIG_TYPE(TN_I64, 5), table = RIG_TYPE(TN_F32, 4, 3), y = RIG_TYPE(TN_F32, 5, 3);
  tn_embedding_grad_attributes a = {4};
  int64_t id[] = {0, 3, 4, -1, 2};
  float values[5][3] = {{0}}, result[5][3];
  void *in[] = {id, values}, *out[] = {result};
  rig_memory memory = {.in = in, .out = out, .threads = 2};
  char text[512];
  make_lookup(&m, &ids, &table, &y);
  assert_int_equal(rig_run(&tn_kernel_cpu_embedding, &m, &memory, text), TN_EINVAL);
  assert_non_null(strstr(text, "embedding: id 4 at position 2, expected 0 .. 3: the table has 4 rows"));
  make_scatter(&m, &ids, &y, &table, &a);
  assert_int_equal(rig_run(&tn_kernel_cpu_embedding_grad, &m, &memory, text), TN_EINVAL);
  assert_non_null(strstr(text, "embedding_grad: id 4"));
  id[2] = 1;
  assert_int_equal(rig_run(&tn_kernel_cpu_embedding_grad, &m, &memory, text), TN_EINVAL);
  assert_non_null(strstr(text, "id -1 at position 3"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lookup_and_its_gradient_agree_with_naive_loops),
      cmocka_unit_test(an_id_outside_the_table_is_an_error_that_names_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
