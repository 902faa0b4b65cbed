#include "tests/unit/backends/onednn/isa_rig.h"

extern const tn_kernel tn_kernel_cpu_concat, tn_kernel_cpu_slice, tn_kernel_cpu_transpose,
    tn_kernel_onednn_beside_2, tn_kernel_onednn_beside_3, tn_kernel_onednn_concat, tn_kernel_onednn_slice,
    tn_kernel_onednn_transpose;

static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_U8, TN_F64};

/* `variants`: the number of them; 0: any. */
static void run_all(const tn_kernel *own, const tn_kernel *reference, const char *op, const void *attributes,
                    const tn_type *in, int32_t n_in, const tn_type *out, int32_t variants, tn_rng *rng) {
  rig_match m;
  int32_t number[4];
  void *data[4];
  rig_start(&m);
  for (int32_t i = 0; i < n_in; i++) {
    number[i] = rig_in(&m, &in[i]);
    data[i] = rig_drawn(&in[i], rng);
  }
  rig_out(&m, rig_node(&m, op, attributes, number, n_in, out, 1));
  if (rig_query(own, &m).status == TN_OK) {
    ways_check(own, reference, &m, data, 0, variants);
    rig_sweep_allocations(own, &m);
  }
  for (int32_t i = 0; i < n_in; i++) free(data[i]);
}

static void run(const tn_kernel *own, const tn_kernel *reference, const char *op, const void *attributes,
                const tn_type *in, int32_t n_in, const tn_type *out, tn_rng *rng) {
  run_all(own, reference, op, attributes, in, n_in, out, 1, rng);
}

static void transposes_agree_with_the_reference(void **state) {
  (void)state;
  static const struct {
    int64_t dims[4], order[4];
  } cases[] = {{{2, 5, 3, 8}, {0, 2, 1, 3}},    {{12, 64, 4, 32}, {0, 2, 1, 3}},
               {{3, 4, 33, 50}, {0, 1, 3, 2}},  {{1, 1, 70, 40}, {0, 1, 3, 2}},
               {{2, 3, 4, 5}, {3, 2, 1, 0}},    {{2, 3, 16, 16}, {1, 0, 3, 2}},
               {{1, 1, 1, 1}, {3, 0, 1, 2}},    {{2, 0, 3, 4}, {0, 2, 1, 3}},
               {{2, 17, 3, 200}, {0, 3, 1, 2}}, {{1, 1, 900, 100}, {0, 1, 3, 2}}};
  tn_rng rng = tn_rng_at(41, 0);
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
    for (size_t d = 0; d < 4; d++) {
      tn_transpose_attributes a = {{4, cases[k].order}};
      tn_type x = rig_type(dtypes[d], 4, cases[k].dims), y = x;
      for (int32_t i = 0; i < 4; i++) y.dims[i] = x.dims[cases[k].order[i]];
      run(&tn_kernel_onednn_transpose, &tn_kernel_cpu_transpose, "transpose", &a, &x, 1, &y, &rng);
    }
}

static void slices_and_joins_agree_with_the_reference(void **state) {
  (void)state;
  static const int64_t starts[] = {1, 0, 2}, stops[] = {4, 7, 11}, steps[] = {2, 3, 1}, all[] = {0, 0, 0};
  static const int64_t third[] = {5, 7, 40};
  tn_rng rng = tn_rng_at(42, 0);
  for (size_t d = 0; d < 4; d++) {
    tn_type x = RIG_TYPE(dtypes[d], 5, 7, 120), some = RIG_TYPE(dtypes[d], 3, 7, 9),
            few = RIG_TYPE(dtypes[d], 2, 3, 9), part = rig_type(dtypes[d], 3, third);
    tn_slice_attributes plain = {{3, starts}, {3, stops}, {0, NULL}},
                        strided = {{3, starts}, {3, stops}, {3, steps}};
    tn_slice_attributes cut = {{3, all}, {3, third}, {0, NULL}};
    run(&tn_kernel_onednn_slice, &tn_kernel_cpu_slice, "slice", &plain, &x, 1, &some, &rng);
    run(&tn_kernel_onednn_slice, &tn_kernel_cpu_slice, "slice", &strided, &x, 1, &few, &rng);
    run(&tn_kernel_onednn_slice, &tn_kernel_cpu_slice, "slice", &cut, &x, 1, &part, &rng);
    for (int64_t axis = 0; axis < 3; axis++) {
      tn_axis_attributes a = {axis - 3 * (axis == 1)};
      tn_type in[3] = {x, x, x}, y = x;
      in[1].dims[axis] = 1;
      in[2].dims[axis] = 0;
      y.dims[axis] += 1;
      run(&tn_kernel_onednn_concat, &tn_kernel_cpu_concat, "concat", &a, in, 3, &y, &rng);
    }
  }
}

/* Images whose channels come in blocks, where they fill them, or innermost. */
static void images_are_cut_and_joined_in_every_layout(void **state) {
  (void)state;
  static const int64_t starts[][4] = {{0, 16, 0, 0}, {1, 0, 1, 0}, {0, 5, 0, 2}};
  static const int64_t stops[][4] = {{2, 48, 3, 5}, {2, 32, 3, 5}, {2, 9, 3, 5}};
  static const int64_t joined[][3] = {{16, 32, 48}, {58, 6, 3}};
  static const int32_t variants[] = {3, 3, 2};
  tn_rng rng = tn_rng_at(43, 0);
  for (size_t d = 0; d < 2; d++)
    for (size_t k = 0; k < 3; k++) {
      tn_slice_attributes a = {{4, starts[k]}, {4, stops[k]}, {0, NULL}};
      tn_type x = RIG_TYPE(dtypes[d], 2, 48, 3, 5), y = x;
      for (int32_t i = 0; i < 4; i++) y.dims[i] = stops[k][i] - starts[k][i];
      run_all(&tn_kernel_onednn_slice, &tn_kernel_cpu_slice, "slice", &a, &x, 1, &y, variants[k], &rng);
      if (k == 2) continue;
      tn_axis_attributes axis = {1};
      tn_type in[3] = {x, x, x};
      y = x;
      y.dims[1] = 0;
      for (int32_t i = 0; i < 3; i++) y.dims[1] += in[i].dims[1] = joined[k][i];
      run_all(&tn_kernel_onednn_concat, &tn_kernel_cpu_concat, "concat", &axis, in, 3, &y, 3 - (int32_t)k,
              &rng);
    }
}

typedef struct pads {
  int64_t low[3][3], high[3][3];
  tn_pad_attributes a[3];
} pads;

/* Pieces along axis 1 that begin at 0, 4 and 5 of 11, given in the order of `at`. */
static void beside(rig_match *m, pads *p, const int32_t *at, int32_t n, int64_t shift) {
  static const int64_t begin[] = {0, 4, 5, 11};
  int32_t in[3], out[3];
  tn_type y = RIG_TYPE(TN_F32, 3, begin[n], 10), x[3];
  memset(p, 0, sizeof *p);
  rig_start(m);
  for (int32_t i = 0; i < n; i++) {
    x[i] = RIG_TYPE(TN_F32, 3, begin[at[i] + 1] - begin[at[i]], 10);
    p->low[i][1] = begin[at[i]];
    p->high[i][1] = begin[n] - begin[at[i] + 1];
    if (at[i] == 1) {
      p->low[i][1] -= shift;
      p->high[i][1] += shift;
    }
    p->a[i] = (tn_pad_attributes){{3, p->low[i]}, {3, p->high[i]}, {0, NULL}};
    in[i] = rig_in(m, &x[i]);
  }
  for (int32_t i = 0; i < n; i++) out[i] = rig_node(m, "pad", &p->a[i], &in[i], 1, &y, 1);
  int32_t sum = rig_node(m, "add", NULL, out, 2, &y, 1);
  if (n == 3) sum = rig_node(m, "add", NULL, (int32_t[]){sum, out[2]}, 2, &y, 1);
  rig_out(m, sum);
}

static void padded_tensors_side_by_side_are_joined(void **state) {
  (void)state;
  static const int32_t orders[][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}};
  for (size_t k = 0; k < 3; k++)
    for (int32_t n = 2; n <= 3; n++) {
      if (n == 2 && k > 0) continue;
      rig_match m;
      pads p;
      float x[3][3 * 6 * 10], y[3 * 11 * 10];
      beside(&m, &p, orders[k], n, 0);
      for (int32_t i = 0; i < n; i++)
        for (int64_t j = 0; j < tn_type_count(m.in[i]); j++) x[i][j] = (float)(1000 * i + j);
      rig_run_on_all(n == 2 ? &tn_kernel_onednn_beside_2 : &tn_kernel_onednn_beside_3, &m,
                     (void *[]){x[0], x[1], x[2]}, (void *[]){y});
      for (int32_t i = 0; i < n; i++)
        for (int64_t j = 0; j < tn_type_count(m.in[i]); j++) {
          int64_t length = m.in[i]->dims[1], row = j / 10 % length + p.low[i][1];
          assert_true(y[(j / 10 / length * m.out[0]->dims[1] + row) * 10 + j % 10] == x[i][j]);
        }
    }
}

static void padded_tensors_that_overlap_are_left_to_others(void **state) {
  (void)state;
  static const int32_t order[] = {0, 1, 2};
  rig_match m;
  pads p;
  beside(&m, &p, order, 3, 1);
  assert_int_equal(rig_query(&tn_kernel_onednn_beside_3, &m).status, TN_EUNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(transposes_agree_with_the_reference),
                                     cmocka_unit_test(slices_and_joins_agree_with_the_reference),
                                     cmocka_unit_test(images_are_cut_and_joined_in_every_layout),
                                     cmocka_unit_test(padded_tensors_side_by_side_are_joined),
                                     cmocka_unit_test(padded_tensors_that_overlap_are_left_to_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
