#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_env.h"
#include "tests/unit/plugins/transforms/goldens.h"
#include "tests/unit/plugins/transforms/rig.h"

extern const tn_transform center_crop_transform, normalize_transform, random_crop_transform,
    random_flip_transform, random_resized_crop_transform, resize_transform, to_float_transform;

static void close_to(const float *expected, int64_t count, float tolerance) {
  for (int64_t i = 0; i < count; i++)
    if (!(fabsf(out.f32[i] - expected[i]) <= tolerance))
      fail_msg("element %lld is %g, expected %g", (long long)i, (double)out.f32[i], (double)expected[i]);
}

static void resize_of_bytes_has_the_bits_of_pillow(void **state) {
  (void)state;
#define SIZED(H, W)                                                                                          \
  run(&resize_transform, PAIRS("size", "[" #H ", " #W "]"), &u8_picture, bytes, 0);                          \
  assert_memory_equal(out.u8, resized_u8_##H##x##W, sizeof(resized_u8_##H##x##W))
  SIZED(3, 4);
  SIZED(9, 13);
  SIZED(7, 5);
  SIZED(14, 10);
  SIZED(1, 1);
#undef SIZED
}

/* The weights of one result as in Pillow: in double, rounded to 22 bits. */
static int plain_weights(int in, int wanted, int i, int32_t *weight, int *count) {
  double scale = (double)in / wanted, reach = scale > 1 ? scale : 1, centre = (i + 0.5) * scale, sum = 0;
  int from = (int)(centre - reach + 0.5), to = (int)(centre + reach + 0.5);
  if (from < 0) from = 0;
  if (to > in) to = in;
  for (int x = from; x < to; x++) sum += fmax(0, 1 - fabs((x - centre + 0.5) / reach));
  for (int x = from; x < to; x++)
    weight[x - from] = (int32_t)(0.5 + fmax(0, 1 - fabs((x - centre + 0.5) / reach)) / sum * (1 << 22));
  *count = to - from;
  return from;
}

static uint8_t plain_mean(const uint8_t *in, int step, const int32_t *weight, int count) {
  int64_t sum = 1 << 21;
  for (int k = 0; k < count; k++) sum += in[k * step] * weight[k];
  sum >>= 22;
  return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void plain_resize(const uint8_t *in, int h, int w, int high, int wide, uint8_t *to) {
  static uint8_t rows[128 * 128];
  int32_t weight[256];
  int count;
  for (int x = 0; x < wide; x++) {
    int from = plain_weights(w, wide, x, weight, &count);
    for (int y = 0; y < h; y++) rows[y * wide + x] = plain_mean(in + y * w + from, 1, weight, count);
  }
  for (int y = 0; y < high; y++) {
    int from = plain_weights(h, high, y, weight, &count);
    for (int x = 0; x < wide; x++) to[y * wide + x] = plain_mean(rows + from * wide + x, wide, weight, count);
  }
}

static void resize_of_any_size_has_the_bits_of_the_plain_sums(void **state) {
  (void)state;
  static uint8_t in[3 * 128 * 128], expected[128 * 128];
  tn_rng rng = tn_rng_at(11, 0);
  for (size_t i = 0; i < sizeof(in); i++)
    in[i] = (uint8_t)(tn_rng_below(&rng, 3) * 127 + tn_rng_below(&rng, 2));
  for (int round = 0; round < 60; round++) {
    int h = 1 + (int)tn_rng_below(&rng, round < 50 ? 40 : 128), w = 1 + (int)tn_rng_below(&rng, 128);
    int high = 1 + (int)tn_rng_below(&rng, 100), wide = 1 + (int)tn_rng_below(&rng, 100);
    char size[32];
    snprintf(size, sizeof(size), "[%d, %d]", high, wide);
    tn_type type = {TN_U8, 3, {3, h, w}};
    run(&resize_transform, PAIRS("size", size), &type, in, 0);
    for (int plane = 0; plane < 3; plane++) {
      plain_resize(in + plane * h * w, h, w, high, wide, expected);
      assert_memory_equal(out.u8 + plane * high * wide, expected, (size_t)(high * wide));
    }
  }
}

static void resize_of_floats_agrees_with_torch(void **state) {
  (void)state;
#define SIZED(H, W)                                                                                          \
  run(&resize_transform, PAIRS("size", "[" #H ", " #W "]"), &f32_picture, floats, 0);                        \
  close_to(resized_f32_##H##x##W, sizeof(resized_f32_##H##x##W) / sizeof(float), 1e-6f)
  SIZED(3, 4);
  SIZED(9, 13);
  SIZED(7, 5);
  SIZED(14, 10);
  SIZED(1, 1);
#undef SIZED
}

static void resize_to_the_same_size_changes_nothing(void **state) {
  (void)state;
  run(&resize_transform, PAIRS("size", "[7, 10]"), &u8_picture, bytes, 0);
  assert_memory_equal(out.u8, bytes, sizeof(bytes));
}

static void one_number_is_the_shorter_side(void **state) {
  (void)state;
  tn_type result = run(&resize_transform, PAIRS("size", "5"), &u8_picture, bytes, 0);
  assert_int_equal(result.dims[1], 5);
  assert_int_equal(result.dims[2], 7); /* 5 * 10 / 7 = 7.14 */
  tn_type upright = {TN_U8, 3, {3, WIDE, HIGH}};
  result = run(&resize_transform, PAIRS("size", "5"), &upright, bytes, 0);
  assert_int_equal(result.dims[1], 7);
  assert_int_equal(result.dims[2], 5);
}

static void sizes_that_vary_stay_open_only_where_they_must(void **state) {
  (void)state;
  tn_type varying = {TN_U8, 3, {3, -1, -1}}, result;
  assert_int_equal(
      resize_transform.infer(&env, options_of(&resize_transform, PAIRS("size", "5")), 1, &varying, &result),
      TN_OK);
  assert_true(result.dims[1] == -1 && result.dims[2] == -1);
  assert_int_equal(resize_transform.infer(&env, options_of(&resize_transform, PAIRS("size", "[5, 6]")), 1,
                                          &varying, &result),
                   TN_OK);
  assert_true(result.dims[1] == 5 && result.dims[2] == 6);
  assert_int_equal(center_crop_transform.infer(&env, options_of(&center_crop_transform, PAIRS("size", "5")),
                                               1, &varying, &result),
                   TN_OK);
  assert_true(result.dims[1] == 5 && result.dims[2] == 5);
}

static void center_crop_takes_the_middle(void **state) {
  (void)state;
  tn_type result = run(&center_crop_transform, PAIRS("size", "[3, 5]"), &u8_picture, bytes, 0);
  assert_int_equal(tn_type_count(&result), 3 * 3 * 5);
  /* (10 - 5) / 2 = 2.5 is rounded to even */
  for (int k = 0; k < 3; k++)
    for (int y = 0; y < 3; y++)
      for (int x = 0; x < 5; x++)
        assert_int_equal(out.u8[(k * 3 + y) * 5 + x], bytes[k * PLANE + (y + 2) * WIDE + x + 2]);
}

static void a_crop_larger_than_the_picture_is_refused(void **state) {
  (void)state;
  refuses(&center_crop_transform, PAIRS("size", "8"), &u8_picture,
          "a picture of 7 x 10 is too small for a crop of 8 x 8");
  refuses(&random_crop_transform, PAIRS("size", "[10, 10]", "padding", "1"), &u8_picture, "too small");
}

static void random_crop_shows_every_position_with_zeros_around(void **state) {
  (void)state;
  int seen[5][5] = {{0}};
  for (uint64_t key = 0; key < 400; key++) {
    run(&random_crop_transform, PAIRS("size", "[7, 10]", "padding", "2"), &u8_picture, bytes,
        tn_hash_mix(5, key));
    int found = 0;
    for (int top = -2; top <= 2; top++) {
      for (int left = -2; left <= 2; left++) {
        int same = 1;
        for (int i = 0; i < PLANE && same; i++) {
          int y = i / WIDE + top, x = i % WIDE + left;
          int inside = y >= 0 && y < HIGH && x >= 0 && x < WIDE;
          same = out.u8[i] == (inside ? bytes[y * WIDE + x] : 0);
        }
        found += same;
        seen[top + 2][left + 2] += same;
      }
    }
    assert_int_equal(found, 1);
  }
  for (int i = 0; i < 25; i++) assert_in_range(seen[i / 5][i % 5], 4, 40);
}

static void random_flip_mirrors_as_often_as_told(void **state) {
  (void)state;
  int mirrored = 0;
  for (uint64_t key = 0; key < 1000; key++) {
    run(&random_flip_transform, PAIRS("p", "0.25"), &u8_picture, bytes, tn_hash_mix(3, key));
    if (memcmp(out.u8, bytes, sizeof(bytes)) == 0) continue;
    mirrored++;
    for (int i = 0; i < 3 * PLANE; i++)
      assert_int_equal(out.u8[i], bytes[i / WIDE * WIDE + WIDE - 1 - i % WIDE]);
  }
  assert_in_range(mirrored, 200, 300);
}

static void random_flip_mirrors_any_type_either_way(void **state) {
  (void)state;
  run(&random_flip_transform, PAIRS("p", "1"), &f32_picture, floats, 0);
  for (int i = 0; i < 3 * PLANE; i++)
    assert_true(out.f32[i] == floats[i / WIDE * WIDE + WIDE - 1 - i % WIDE]);
  run(&random_flip_transform, PAIRS("p", "1", "direction", "vertical"), &f32_picture, floats, 0);
  for (int i = 0; i < PLANE; i++) assert_true(out.f32[i] == floats[(HIGH - 1 - i / WIDE) * WIDE + i % WIDE]);
  run(&random_flip_transform, PAIRS("p", "0"), &f32_picture, floats, 0);
  assert_memory_equal(out.f32, floats, sizeof(floats));
}

static void fields_that_go_together_get_the_same_crop(void **state) {
  (void)state;
  const tn_type types[2] = {{TN_U8, 3, {3, HIGH, WIDE}}, {TN_F32, 2, {HIGH, WIDE}}};
  const void *options = options_of(&random_crop_transform, PAIRS("size", "3"));
  const void *in[2] = {bytes, floats};
  uint8_t image[27];
  float mask[9];
  void *to[2] = {image, mask};
  for (uint64_t key = 0; key < 20; key++) {
    tn_type result[2] = {types[0], types[1]};
    assert_int_equal(random_crop_transform.infer(&env, options, 2, types, result), TN_OK);
    tn_transform_call call = {.env = env,
                              .struct_size = sizeof call,
                              .n = 2,
                              .in_type = types,
                              .out_type = result,
                              .in = in,
                              .out = to,
                              .key = key,
                              .scratch = &scratch};
    assert_int_equal(random_crop_transform.apply(&call, options), TN_OK);
    for (int i = 0; i < 9; i++) assert_true(mask[i] == (float)image[i] / 255.0f);
  }
}

static void random_resized_crop_stays_inside_and_varies(void **state) {
  (void)state;
  uint8_t flat[3 * PLANE];
  memset(flat, 77, sizeof(flat));
  uint64_t first = 0;
  int different = 0;
  for (uint64_t key = 0; key < 200; key++) {
    tn_type result = run(&random_resized_crop_transform, PAIRS("size", "[4, 6]"), &u8_picture, flat, key);
    assert_int_equal(tn_type_count(&result), 3 * 24);
    for (int i = 0; i < 3 * 24; i++)
      assert_int_equal(out.u8[i], 77); /* no pixel from outside of the picture */
    run(&random_resized_crop_transform, PAIRS("size", "[4, 6]"), &u8_picture, bytes, key);
    uint64_t hash = tn_hash_bytes(TN_HASH_START, out.u8, 3 * 24);
    if (key == 0) first = hash;
    different += hash != first;
  }
  assert_true(different > 150);
}

static void random_resized_crop_of_the_whole_is_a_resize(void **state) {
  (void)state;
  run(&random_resized_crop_transform,
      PAIRS("size", "[3, 4]", "scale", "[1, 1]", "ratio", "[1.4285714, 1.4285715]"), &u8_picture, bytes, 1);
  assert_memory_equal(out.u8, resized_u8_3x4, sizeof(resized_u8_3x4));
}

static void random_resized_crop_falls_back_to_the_middle(void **state) {
  (void)state;
  /* no crop of the whole area is square, so the largest square is taken: rows 0 to 6, columns 1 to 7 */
  run(&random_resized_crop_transform, PAIRS("size", "7", "scale", "[1, 1]", "ratio", "[1, 1]"), &u8_picture,
      bytes, 1);
  for (int i = 0; i < 49; i++) assert_int_equal(out.u8[i], bytes[i / 7 * WIDE + i % 7 + 1]);
}

static void to_float_divides_by_255(void **state) {
  (void)state;
  tn_type result = run(&to_float_transform, NO_PAIRS, &u8_picture, bytes, 0);
  assert_int_equal(result.dtype, TN_F32);
  assert_memory_equal(out.f32, floats, sizeof(floats));
  refuses(&to_float_transform, NO_PAIRS, &f32_picture, "a field is f32, expected u8");
}

static void normalize_is_to_tensor_and_normalize_of_torchvision(void **state) {
  (void)state;
  const char *const *lists = PAIRS("mean", "[0.485, 0.456, 0.406]", "std", "[0.229, 0.224, 0.225]");
  for (int is_u8 = 0; is_u8 < 2; is_u8++) {
    tn_type result = is_u8 ? run(&normalize_transform, lists, &u8_picture, bytes, 0)
                           : run(&normalize_transform, lists, &f32_picture, floats, 0);
    assert_int_equal(result.dtype, TN_F32);
    for (int k = 0; k < 3; k++)
      for (int x = 0; x < WIDE; x++) assert_true(out.f32[k * PLANE + x] == normalized[k * WIDE + x]);
  }
}

static void normalize_takes_one_number_for_all_channels(void **state) {
  (void)state;
  run(&normalize_transform, PAIRS("mean", "0.5", "std", "0.25"), &f32_picture, floats, 0);
  for (int i = 0; i < 3 * PLANE; i++) assert_true(out.f32[i] == (floats[i] - 0.5f) / 0.25f);
  refuses(&normalize_transform, PAIRS("mean", "[1, 2]", "std", "1"), &f32_picture,
          "mean has 2 numbers for 3 channels");
}

static void fields_that_are_no_pictures_are_refused(void **state) {
  (void)state;
  tn_type vector = {TN_U8, 1, {5}}, whole = {TN_F64, 3, {1, 5, 5}};
  refuses(&resize_transform, PAIRS("size", "3"), &vector, "rank 1");
  refuses(&random_flip_transform, NO_PAIRS, &vector, "rank 1");
  refuses(&resize_transform, PAIRS("size", "3"), &whole, "only u8 and f32");
  refuses(&resize_transform, PAIRS("size", "[1, 2, 3]"), &u8_picture, "size has 3 numbers");
  refuses(&random_resized_crop_transform, PAIRS("size", "3", "scale", "[1, 0.5]"), &u8_picture,
          "scale must be");
}

static void a_picture_without_pixels_is_an_error(void **state) {
  (void)state;
  tn_type empty = {TN_U8, 3, {3, 0, 4}}, result = empty;
  const void *options = options_of(&resize_transform, PAIRS("size", "[2, 2]")), *in = bytes;
  assert_int_equal(resize_transform.infer(&env, options, 1, &empty, &result), TN_OK);
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = &empty,
                            .out_type = &result,
                            .in = &in,
                            .scratch = &scratch};
  call.out = (void *const[]){&out};
  assert_int_equal(resize_transform.apply(&call, options), TN_EINVAL);
}

static void refused_memory_is_survived(void **state) {
  (void)state;
  tn_type result = {TN_U8, 3, {3, 3, 4}};
  const void *options = options_of(&resize_transform, PAIRS("size", "[3, 4]")), *in = bytes;
  tn_scratch own = {NULL, 0};
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = &u8_picture,
                            .out_type = &result,
                            .in = &in,
                            .scratch = &own};
  call.out = (void *const[]){&out};
  tn_status status = TN_ENOMEM;
  for (int allowed = 0; status != TN_OK; allowed++) {
    test_env memory;
    test_env_start(&memory);
    test_env_allow(&memory, allowed);
    record.allocator = (tn_allocator){&memory, test_env_realloc};
    status = resize_transform.apply(&call, options);
    record.allocator = (tn_allocator){NULL, NULL};
    assert_true(status == (allowed < 1 ? TN_ENOMEM : TN_OK));
  }
  tn_release(&env, own.memory);
  assert_memory_equal(out.u8, resized_u8_3x4, sizeof(resized_u8_3x4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(resize_of_bytes_has_the_bits_of_pillow),
      CASE(resize_of_any_size_has_the_bits_of_the_plain_sums),
      CASE(resize_of_floats_agrees_with_torch),
      CASE(resize_to_the_same_size_changes_nothing),
      CASE(one_number_is_the_shorter_side),
      CASE(sizes_that_vary_stay_open_only_where_they_must),
      CASE(center_crop_takes_the_middle),
      CASE(a_crop_larger_than_the_picture_is_refused),
      CASE(random_crop_shows_every_position_with_zeros_around),
      CASE(random_flip_mirrors_as_often_as_told),
      CASE(random_flip_mirrors_any_type_either_way),
      CASE(fields_that_go_together_get_the_same_crop),
      CASE(random_resized_crop_stays_inside_and_varies),
      CASE(random_resized_crop_of_the_whole_is_a_resize),
      CASE(random_resized_crop_falls_back_to_the_middle),
      CASE(to_float_divides_by_255),
      CASE(normalize_is_to_tensor_and_normalize_of_torchvision),
      CASE(normalize_takes_one_number_for_all_channels),
      CASE(fields_that_are_no_pictures_are_refused),
      CASE(a_picture_without_pixels_is_an_error),
      CASE(refused_memory_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
