#include "tests/unit/backends/onednn/isa_rig.h"

#include "tenon/plugin/storage.h"
#include "backends/onednn/onednn.h"

extern const tn_kernel tn_kernel_cpu_reorder, tn_kernel_onednn_reorder;

static tn_layout blocked(int32_t rank, int32_t dim, int32_t size) {
  tn_layout layout = tn_layout_row_major(rank);
  layout.n_blocks = 1;
  layout.block[0] = (tn_block){(uint16_t)dim, (uint16_t)size};
  return layout;
}

static tn_layout weights(void) { /* OIhw16i16o */
  tn_layout layout = tn_layout_row_major(4);
  layout.n_blocks = 2;
  layout.block[0] = (tn_block){1, 16};
  layout.block[1] = (tn_block){0, 16};
  return layout;
}

static tn_layout channels_last(void) {
  tn_layout layout = tn_layout_row_major(4);
  static const uint8_t order[] = {0, 2, 3, 1};
  memcpy(layout.order, order, sizeof order);
  return layout;
}

static void check(const tn_type *type, tn_layout from, tn_layout to, tn_rng *rng) {
  rig_match m;
  rig_start(&m);
  int32_t number = rig_in(&m, type);
  rig_out(&m, rig_node(&m, "reorder", NULL, &number, 1, type, 1));
  tn_type storage = {type->dtype, 1, {tn_storage_of(type, &from).count}};
  size_t bytes = (size_t)tn_storage_of(type, &to).count * tn_dtype_size(type->dtype);
  void *in = rig_drawn(&storage, rng), *want = malloc(bytes + 1);
  rig_memory memory = {&in, &want, &from, &to, 1, 0};
  assert_int_equal(rig_run(&tn_kernel_cpu_reorder, &m, &memory, NULL), TN_OK);
  for (int32_t isa = TN_ISA_PLAIN; isa <= TN_ISA_AVX512; isa++)
    for (int32_t threads = 1; threads <= 3; threads += 2) {
      void *got = malloc(bytes + (bytes == 0));
      ways_use_isa(isa);
      memset(got, 0x5a, bytes);
      memory = (rig_memory){&in, &got, &from, &to, threads, 0};
      assert_int_equal(rig_run(&tn_kernel_onednn_reorder, &m, &memory, NULL), TN_OK);
      assert_memory_equal(got, want, bytes);
      free(got);
    }
  rig_sweep_allocations(&tn_kernel_onednn_reorder, &m);
  free(in);
  free(want);
}

static void every_layout_becomes_every_other(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{2, 16, 5, 7}, {1, 32, 3, 3}, {3, 48, 1, 1},   {2, 32, 20, 53},
                                      {2, 20, 4, 4}, {0, 16, 2, 2}, {1, 16, 40, 50}, {16, 16, 1, 1}};
  static const int32_t dtypes[] = {TN_F32, TN_BF16, TN_F64, TN_U8};
  tn_rng rng = tn_rng_at(91, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (size_t d = 0; d < 4; d++) {
      tn_type type = rig_type(dtypes[d], 4, shapes[s]);
      tn_layout layouts[] = {tn_layout_row_major(4), blocked(4, 1, 16), blocked(4, 1, 8), channels_last(),
                             weights()};
      for (size_t a = 0; a < 5; a++)
        for (size_t b = 0; b < 5; b++)
          if (s < 2 || s == 4 || a < 3) check(&type, layouts[a], layouts[b], &rng);
    }
}

static void ranks_from_0_to_5_are_reordered(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(92, 0);
  tn_type scalar = rig_type(TN_F32, 0, NULL), row = RIG_TYPE(TN_F32, 7), matrix = RIG_TYPE(TN_F32, 6, 32),
          volume = RIG_TYPE(TN_BF16, 2, 16, 3, 4, 5);
  check(&scalar, tn_layout_row_major(0), tn_layout_row_major(0), &rng);
  check(&row, tn_layout_row_major(1), blocked(1, 0, 4), &rng);
  check(&matrix, blocked(2, 1, 16), tn_layout_row_major(2), &rng);
  check(&volume, tn_layout_row_major(5), blocked(5, 1, 16), &rng);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_layout_becomes_every_other),
                                     cmocka_unit_test(ranks_from_0_to_5_are_reordered)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
