/* channel_shuffle, alone, behind a concat, and behind a concat of a slice, against its definition. */
#include "tests/unit/backends/onednn/isa_rig.h"

#include "backends/onednn/kernels/image_layouts.h"
#include "tenon/plugin/storage.h"
#include "tenon/attributes.h"

extern const tn_kernel tn_kernel_onednn_channel_shuffle, tn_kernel_onednn_concat_shuffle,
    tn_kernel_onednn_slice_concat_shuffle;

enum { IMAGES = 2, H = 3, W = 5 };

/* Channel j of group i of image n at a pixel. */
static float element(int64_t n, int64_t i, int64_t j, int64_t pixel) {
  return (float)(((n * 5 + i) * 200 + j) * 20 + pixel);
}

static int64_t at(const tn_type *type, const tn_layout *layout, int64_t n, int64_t c, int64_t pixel) {
  tn_storage s = tn_storage_of(type, layout);
  return tn_storage_offset(&s, 0, n) + tn_storage_offset(&s, 1, c) + tn_storage_offset(&s, 2, pixel / W) +
         tn_storage_offset(&s, 3, pixel % W);
}

/* Fills channels `first` .. of x with those of groups group .. group + n - 1. */
static float *filled(const tn_type *type, const tn_layout *layout, int64_t first, int64_t group, int64_t n,
                     int64_t channels) {
  float *x = rig_tensor(type);
  for (int64_t image = 0; image < IMAGES; image++)
    for (int64_t c = 0; c < n * channels; c++)
      for (int64_t pixel = 0; pixel < H * W; pixel++)
        x[at(type, layout, image, first + c, pixel)] =
            element(image, group + c / channels, c % channels, pixel);
  return x;
}

static void run(const tn_kernel *kernel, const rig_match *m, int64_t groups, int64_t n, const tn_type *in,
                const int64_t *first, int32_t n_in) {
  for (int32_t variant = 1; variant <= 2; variant++)
    for (int32_t isa = TN_ISA_PLAIN; isa <= TN_ISA_AVX512; isa++) {
      rig_answer a = rig_query_variant(kernel, m, variant);
      assert_int_equal(a.n_variants, 2);
      tn_layout layout = variant == 1 ? tn_layout_row_major(4) : tn_channels_last(4), layouts[4];
      void *x[4], *y = rig_tensor(m->out[0]);
      for (int32_t i = 0; i < n_in; i++)
        x[i] = filled(&in[i], &layout, first[i], n_in == 1 ? 0 : i, n_in == 1 ? groups : 1, n);
      for (int32_t i = 0; i < 4; i++) layouts[i] = layout;
      ways_use_isa(isa);
      rig_memory memory = {x, &y, layouts, layouts, 2, variant, NULL};
      assert_int_equal(rig_run(kernel, m, &memory, NULL), TN_OK);
      for (int64_t image = 0; image < IMAGES; image++)
        for (int64_t c = 0; c < groups * n; c++)
          for (int64_t pixel = 0; pixel < H * W; pixel++)
            assert_true(((float *)y)[at(m->out[0], &layout, image, c, pixel)] ==
                        element(image, c % groups, c / groups, pixel));
      for (int32_t i = 0; i < n_in; i++) free(x[i]);
      free(y);
    }
  ways_use_isa(TN_ISAS);
  rig_sweep_allocations(kernel, m);
}

static void the_channels_of_groups_are_interleaved(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{2, 29}, {2, 16}, {3, 7}, {4, 1}};
  for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
    int64_t groups = shapes[k][0], n = shapes[k][1], none[4] = {0};
    tn_shuffle_attributes a = {0, groups};
    tn_axis_attributes axis = {1};
    tn_type y = RIG_TYPE(TN_F32, IMAGES, groups * n, H, W), part = RIG_TYPE(TN_F32, IMAGES, n, H, W);
    tn_type parts[4] = {part, part, part, part};
    rig_match m;
    rig_start(&m);
    int32_t x = rig_in(&m, &y), in[4];
    rig_out(&m, rig_node(&m, "channel_shuffle", &a, &x, 1, &y, 1));
    run(&tn_kernel_onednn_channel_shuffle, &m, groups, n, &y, none, 1);
    rig_start(&m);
    for (int32_t i = 0; i < groups; i++) in[i] = rig_in(&m, &part);
    x = rig_node(&m, "concat", &axis, in, (int32_t)groups, &y, 1);
    rig_out(&m, rig_node(&m, "channel_shuffle", &a, &x, 1, &y, 1));
    run(&tn_kernel_onednn_concat_shuffle, &m, groups, n, parts, none, (int32_t)groups);
  }
}

static void a_slice_is_read_where_it_lies(void **state) {
  (void)state;
  enum { N = 13, FIRST = 4 };
  static const int64_t starts[] = {0, FIRST, 0, 0}, stops[] = {IMAGES, FIRST + N, H, W}, first[] = {FIRST, 0};
  tn_slice_attributes slice = {{4, starts}, {4, stops}, {0, NULL}};
  tn_shuffle_attributes a = {0, 2};
  tn_axis_attributes axis = {1};
  tn_type in[2] = {RIG_TYPE(TN_F32, IMAGES, 20, H, W), RIG_TYPE(TN_F32, IMAGES, N, H, W)};
  tn_type y = RIG_TYPE(TN_F32, IMAGES, 2 * N, H, W);
  rig_match m;
  rig_start(&m);
  int32_t x = rig_in(&m, &in[0]), b = rig_in(&m, &in[1]);
  int32_t cut = rig_node(&m, "slice", &slice, &x, 1, &in[1], 1), both[] = {cut, b};
  int32_t joined = rig_node(&m, "concat", &axis, both, 2, &y, 1);
  rig_out(&m, rig_node(&m, "channel_shuffle", &a, &joined, 1, &y, 1));
  run(&tn_kernel_onednn_slice_concat_shuffle, &m, 2, N, in, first, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_channels_of_groups_are_interleaved),
                                     cmocka_unit_test(a_slice_is_read_where_it_lies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
