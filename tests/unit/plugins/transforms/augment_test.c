/* Augmentation: deterministic parts beside torchvision, random parts by their statistics. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugins/transforms/policy/auto_augment.h"
#include "tests/unit/plugins/transforms/augment_goldens.h"
#include "tests/unit/plugins/transforms/rig.h"

extern const tn_transform aug_mix_transform, color_jitter_transform, rand_augment_transform,
    trivial_augment_transform, cutmix_transform, gaussian_blur_transform, grayscale_transform,
    mixup_transform, one_hot_transform, random_erasing_transform, random_grayscale_transform,
    random_rotation_transform;

static const tn_type gray_picture = {TN_U8, 3, {1, HIGH, WIDE}};

/* ---- one op ---- */

static canvas opened;

/* The picture of one or three channels, ready for an op. */
static canvas *open_canvas(int64_t channels) {
  const void *in = bytes;
  void *to = &out;
  const tn_type *type = channels == 3 ? &u8_picture : &gray_picture;
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = type,
                            .out_type = type,
                            .in = &in,
                            .out = &to,
                            .scratch = &scratch};
  assert_int_equal(canvas_open(&call, 0, &opened), TN_OK);
  return &opened;
}

/* Sums of products in f32 are rounded once or twice in torch, depending on the place of a pixel in a vector,
 * and then cut or rounded to bytes: one level. */
static void expect_levels(const char *what, const uint8_t *expected, size_t n, int levels) {
  for (size_t i = 0; i < n; i++)
    if (abs((int)out.u8[i] - (int)expected[i]) > levels)
      fail_msg("%s: byte %zu is %d, torchvision has %d", what, i, out.u8[i], expected[i]);
}

#define LIKE(golden, levels) expect_levels(#golden, golden, sizeof golden, levels)
/* With three channels and with one. */
#define BOTH(golden, levels, ...)                                                                            \
  do {                                                                                                       \
    canvas *c = open_canvas(3);                                                                              \
    __VA_ARGS__;                                                                                             \
    LIKE(color_##golden, levels);                                                                            \
    c = open_canvas(1);                                                                                      \
    __VA_ARGS__;                                                                                             \
    LIKE(gray_##golden, levels);                                                                             \
  } while (0)

static void colors_change_as_in_torchvision(void **state) {
  (void)state;
  BOTH(brightness, 0, canvas_brightness(c, 1.4f));
  BOTH(darker, 0, canvas_brightness(c, 0.3f));
  BOTH(contrast, 1, canvas_contrast(c, 1.7f));
  BOTH(flat, 1, canvas_contrast(c, 0.2f));
  BOTH(saturation, 1, canvas_saturation(c, 1.9f));
  BOTH(pale, 1, canvas_saturation(c, 0.25f));
  BOTH(hue, 1, canvas_hue(c, 0.3f));
  BOTH(hue_back, 1, canvas_hue(c, -0.45f));
  BOTH(sharp, 1, canvas_sharpness(c, 1.8f));
  BOTH(soft, 1, canvas_sharpness(c, 0.1f));
}

static void levels_change_as_in_torchvision(void **state) {
  (void)state;
  BOTH(posterize, 0, canvas_posterize(c, 3));
  BOTH(solarize, 0, canvas_solarize(c, 255 * 0.4f));
  for (int i = 0; i < 3 * PLANE; i++) bytes[i] = (uint8_t)(bytes[i] / 2 + 20);
  BOTH(autocontrast, 0, canvas_autocontrast(c));
}

static void a_picture_of_one_level_stays(void **state) {
  (void)state;
  memset(bytes, 93, sizeof bytes);
  canvas *c = open_canvas(3);
  canvas_autocontrast(c);
  canvas_equalize(c);
  canvas_posterize(c, 8);
  canvas_sharpness(c, 5);
  canvas_hue(c, 0.2f);
  assert_memory_equal(out.u8, bytes, sizeof bytes);
  canvas_posterize(c, 0);
  for (int i = 0; i < 3 * PLANE; i++) assert_int_equal(out.u8[i], 0);
}

static void equalize_is_torchvisions(void **state) {
  (void)state;
  static uint8_t many[20 * 24];
  for (int i = 0; i < 20 * 24; i++) many[i] = (uint8_t)(i * i * 7 % 97 + 40);
  canvas c = {.pixels = many, .frames = 1, .channels = 1, .height = 20, .width = 24};
  canvas_equalize(&c);
  assert_memory_equal(many, many_equalized, sizeof many);
}

/* A place that lies between two pixels up to rounding may take either: nearest has at most one such pixel
 * here. */
static void expect_places(const char *what, const uint8_t *expected, size_t n) {
  size_t other = 0;
  for (size_t i = 0; i < n; i++) other += out.u8[i] != expected[i];
  if (other * (size_t)PLANE > n) fail_msg("%s: %zu of %zu bytes differ from torchvision's", what, other, n);
}

static void each_op_of_the_automatic_augmentations_is_torchvisions(void **state) {
  (void)state;
  static const double zero = 0;
  const sampling how = {SAMPLING_NEAREST, {1, &zero}};
#define PLACES(name, op, magnitude)                                                                          \
  augment_apply(open_canvas(3), op, magnitude, &how);                                                        \
  expect_places(#name, color_op_##name, sizeof color_op_##name);                                             \
  augment_apply(open_canvas(1), op, magnitude, &how);                                                        \
  expect_places(#name, gray_op_##name, sizeof gray_op_##name)
  PLACES(ShearX, AUGMENT_SHEAR_X, 0.23);
  PLACES(ShearY, AUGMENT_SHEAR_Y, -0.31);
  PLACES(TranslateX, AUGMENT_TRANSLATE_X, -3.9);
  PLACES(TranslateY, AUGMENT_TRANSLATE_Y, 2.2);
  PLACES(Rotate, AUGMENT_ROTATE, 77);
  BOTH(op_Brightness, 0, augment_apply(c, AUGMENT_BRIGHTNESS, -0.37, &how));
  BOTH(op_Color, 1, augment_apply(c, AUGMENT_COLOR, 0.62, &how));
  BOTH(op_Contrast, 1, augment_apply(c, AUGMENT_CONTRAST, -0.55, &how));
  BOTH(op_Sharpness, 1, augment_apply(c, AUGMENT_SHARPNESS, 0.44, &how));
  BOTH(op_Posterize, 0, augment_apply(c, AUGMENT_POSTERIZE, 5, &how));
  BOTH(op_Solarize, 0, augment_apply(c, AUGMENT_SOLARIZE, 0.71, &how));
  BOTH(op_AutoContrast, 0, augment_apply(c, AUGMENT_AUTOCONTRAST, 0, &how));
  augment_apply(open_canvas(3), AUGMENT_IDENTITY, 1, &how);
  assert_memory_equal(out.u8, bytes, sizeof bytes);
}

/* ---- transforms ---- */

static void expect_floats(const float *expected, int64_t n, float tolerance) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabsf(out.f32[i] - expected[i]) <= tolerance))
      fail_msg("element %lld is %g, expected %g", (long long)i, (double)out.f32[i], (double)expected[i]);
}

static void grayscale_is_torchvisions(void **state) {
  (void)state;
  tn_type result = run(&grayscale_transform, NO_PAIRS, &u8_picture, bytes, 0);
  assert_int_equal(result.dims[0], 1);
  LIKE(color_gray1, 1);
  run(&grayscale_transform, PAIRS("num_output_channels", "3"), &u8_picture, bytes, 0);
  LIKE(color_gray3, 1);
  result = run(&grayscale_transform, PAIRS("num_output_channels", "3"), &gray_picture, bytes, 0);
  assert_int_equal(result.dims[0], 3);
  LIKE(gray_gray3, 0);
  run(&grayscale_transform, NO_PAIRS, &f32_picture, floats, 0);
  expect_floats(float_gray1, PLANE, 1e-6f);
}

static void random_grayscale_is_gray_as_often_as_told(void **state) {
  (void)state;
  int gray = 0;
  for (uint64_t key = 0; key < 1000; key++) {
    run(&random_grayscale_transform, PAIRS("p", "0.25"), &u8_picture, bytes, tn_hash_mix(3, key));
    if (memcmp(out.u8, bytes, sizeof(bytes)) == 0) continue;
    LIKE(color_gray3, 1);
    gray++;
  }
  assert_in_range(gray, 200, 300);
}

static void rotation_is_torchvisions(void **state) {
  (void)state;
  run(&random_rotation_transform, PAIRS("degrees", "[30, 30]"), &u8_picture, bytes, 0);
  expect_places("rotated", color_rotated, sizeof color_rotated);
  run(&random_rotation_transform, PAIRS("degrees", "[-17, -17]", "interpolation", "bilinear"), &u8_picture,
      bytes, 0);
  LIKE(color_rotated_smooth, 1);
  run(&random_rotation_transform, PAIRS("degrees", "[-17, -17]", "interpolation", "bilinear"), &gray_picture,
      bytes, 0);
  LIKE(gray_rotated_smooth, 1);
  run(&random_rotation_transform, PAIRS("degrees", "[-17, -17]", "interpolation", "bilinear"), &f32_picture,
      floats, 0);
  expect_floats(float_rotated_smooth, 3 * PLANE, 1e-5f);
  run(&random_rotation_transform, PAIRS("degrees", "[30, 30]"), &f32_picture, floats, 0);
  for (int i = 0; i < 3 * PLANE; i++) assert_true(out.f32[i] == (float)color_rotated[i] / 255.0f);
}

static void quarter_turns_are_exact(void **state) {
  (void)state;
  static uint8_t square[3 * 49];
  const tn_type type = {TN_U8, 3, {3, 7, 7}};
  for (int i = 0; i < 3 * 49; i++) square[i] = bytes[i / 7 * WIDE + i % 7];
  run(&random_rotation_transform, PAIRS("degrees", "[90, 90]"), &type, square, 0);
  assert_memory_equal(out.u8, rotated_by_90, sizeof rotated_by_90);
  run(&random_rotation_transform, PAIRS("degrees", "[180, 180]", "interpolation", "bilinear"), &u8_picture,
      bytes, 0);
  for (int i = 0; i < 3 * PLANE; i++)
    assert_int_equal(out.u8[i], bytes[i / PLANE * PLANE + PLANE - 1 - i % PLANE]);
  run(&random_rotation_transform, PAIRS("degrees", "0"), &u8_picture, bytes, 0);
  assert_memory_equal(out.u8, bytes, sizeof bytes);
}

static void pixels_from_outside_have_the_number_of_their_channel(void **state) {
  (void)state;
  run(&random_rotation_transform, PAIRS("degrees", "[45, 45]", "fill", "[7, 8, 9]"), &u8_picture, bytes, 0);
  for (int k = 0; k < 3; k++) assert_int_equal(out.u8[k * PLANE], 7 + k);
  run(&random_rotation_transform, PAIRS("degrees", "[45, 45]", "fill", "-2.5", "interpolation", "bilinear"),
      &f32_picture, floats, 0);
  assert_true(out.f32[0] == -2.5f);
}

/* The angle of a point of light beside the centre is uniform. */
static void angles_are_uniform(void **state) {
  (void)state;
  enum { WHOLE = 41, RADIUS = 18 };
  static uint8_t light[WHOLE * WHOLE];
  const tn_type type = {TN_U8, 2, {WHOLE, WHOLE}};
  for (int y = -1; y <= 1; y++)
    for (int x = -1; x <= 1; x++) light[(WHOLE / 2 + y) * WHOLE + WHOLE / 2 + RADIUS + x] = 255;
  int below[4] = {0};
  for (uint64_t key = 0; key < 2000; key++) {
    run(&random_rotation_transform, PAIRS("degrees", "40"), &type, light, tn_hash_mix(7, key));
    double x = 0, y = 0;
    for (int i = 0; i < WHOLE * WHOLE; i++) {
      x += out.u8[i] * (i % WHOLE - WHOLE / 2);
      y -= out.u8[i] * (i / WHOLE - WHOLE / 2);
    }
    double degrees = atan2(y, x) * 180 / 3.14159265358979323846;
    assert_true(fabs(degrees) < 43);
    below[degrees < -20 ? 0 : degrees < 0 ? 1 : degrees < 20 ? 2 : 3]++;
  }
  for (int i = 0; i < 4; i++) assert_in_range(below[i], 400, 600);
}

static void gaussian_blur_is_torchvisions(void **state) {
  (void)state;
  run(&gaussian_blur_transform, PAIRS("kernel_size", "[5, 3]", "sigma", "1.3"), &u8_picture, bytes, 0);
  LIKE(color_blur, 1);
  run(&gaussian_blur_transform, PAIRS("kernel_size", "[5, 3]", "sigma", "1.3"), &gray_picture, bytes, 0);
  LIKE(gray_blur, 1);
  run(&gaussian_blur_transform, PAIRS("kernel_size", "[3, 7]", "sigma", "0.9"), &f32_picture, floats, 0);
  expect_floats(float_blur, 3 * PLANE, 1e-6f);
  run(&gaussian_blur_transform, PAIRS("kernel_size", "1"), &u8_picture, bytes, 0);
  assert_memory_equal(out.u8, bytes, sizeof bytes);
}

static void blurs_differ_in_strength_and_keep_the_mean(void **state) {
  (void)state;
  memset(bytes, 0, sizeof bytes);
  bytes[3 * WIDE + 5] = 255;
  int weak = 0;
  for (uint64_t key = 0; key < 400; key++) {
    run(&gaussian_blur_transform, PAIRS("kernel_size", "5"), &gray_picture, bytes, tn_hash_mix(9, key));
    int sum = 0;
    for (int i = 0; i < PLANE; i++) sum += out.u8[i];
    assert_in_range(sum, 255 - 13, 255 + 13);
    weak += out.u8[3 * WIDE + 5] > 40; /* sigma below about 1.05 */
  }
  assert_in_range(weak, 160, 240);
}

static void color_jitter_with_one_factor_is_that_change(void **state) {
  (void)state;
#define ALONE(name, factor, golden, levels)                                                                  \
  run(&color_jitter_transform, PAIRS(#name, "[" #factor ", " #factor "]"), &u8_picture, bytes, 5);           \
  LIKE(color_##golden, levels)
  ALONE(brightness, 1.4, brightness, 0);
  ALONE(contrast, 1.7, contrast, 1);
  ALONE(saturation, 0.25, pale, 1);
  ALONE(hue, -0.45, hue_back, 1);
  run(&color_jitter_transform, NO_PAIRS, &u8_picture, bytes, 5);
  assert_memory_equal(out.u8, bytes, sizeof bytes);
}

/* The factor of a middle gray is uniform from 0.6 to 1.4, and 3 stands for 0 to 4. */
static void color_jitter_has_uniform_factors(void **state) {
  (void)state;
  memset(bytes, 100, sizeof bytes);
  int part[4] = {0}, dark = 0;
  for (uint64_t key = 0; key < 2000; key++) {
    run(&color_jitter_transform, PAIRS("brightness", "0.4"), &gray_picture, bytes, tn_hash_mix(1, key));
    assert_in_range(out.u8[0], 60, 140);
    part[(out.u8[0] - 60) / 20 % 4]++;
    run(&color_jitter_transform, PAIRS("brightness", "3"), &gray_picture, bytes, tn_hash_mix(1, key));
    dark += out.u8[0] < 100;
  }
  for (int i = 0; i < 4; i++) assert_in_range(part[i], 400, 600);
  assert_in_range(dark, 400, 600);
}

/* Brightness first clips, contrast first does not. */
static void color_jitter_has_any_order(void **state) {
  (void)state;
  uint8_t ways[2][PLANE];
  int first[2] = {0};
  canvas *c = open_canvas(1);
  canvas_brightness(c, 3);
  canvas_contrast(c, 0.5f);
  memcpy(ways[0], out.u8, PLANE);
  c = open_canvas(1);
  canvas_contrast(c, 0.5f);
  canvas_brightness(c, 3);
  memcpy(ways[1], out.u8, PLANE);
  for (uint64_t key = 0; key < 1000; key++) {
    run(&color_jitter_transform, PAIRS("brightness", "[3, 3]", "contrast", "[0.5, 0.5]"), &gray_picture,
        bytes, tn_hash_mix(2, key));
    int way = memcmp(out.u8, ways[0], PLANE) != 0;
    assert_memory_equal(out.u8, ways[way], PLANE);
    first[way]++;
  }
  assert_in_range(first[0], 430, 570);
}

/* ---- erasing ---- */

/* The rectangle that is not as before; its area, 0: none. */
static int64_t erased_area(const uint8_t *before, int64_t side, uint8_t value, int64_t *height,
                           int64_t *width) {
  int64_t top = side, bottom = -1, left = side, right = -1;
  for (int64_t i = 0; i < side * side; i++) {
    if (out.u8[i] == before[i]) continue;
    assert_int_equal(out.u8[i], value);
    top = i / side < top ? i / side : top;
    bottom = i / side;
    left = i % side < left ? i % side : left;
    right = i % side > right ? i % side : right;
  }
  if (bottom < 0) return 0;
  *height = bottom - top + 1;
  *width = right - left + 1;
  for (int64_t y = top; y <= bottom; y++)
    for (int64_t x = left; x <= right; x++) assert_int_equal(out.u8[y * side + x], value);
  return *height * *width;
}

static void random_erasing_has_the_areas_and_ratios_that_are_asked_for(void **state) {
  (void)state;
  enum { WHOLE = 50 };
  static uint8_t white[WHOLE * WHOLE];
  const tn_type type = {TN_U8, 3, {1, WHOLE, WHOLE}};
  memset(white, 255, sizeof white);
  int erased = 0, upright = 0;
  double areas = 0;
  for (uint64_t key = 0; key < 2000; key++) {
    int64_t height, width;
    run(&random_erasing_transform,
        PAIRS("p", "0.25", "scale", "[0.1, 0.3]", "ratio", "[0.5, 2]", "value", "17"), &type, white,
        tn_hash_mix(4, key));
    int64_t area = erased_area(white, WHOLE, 17, &height, &width);
    if (area == 0) continue;
    erased++;
    upright += height > width;
    areas += (double)area / (WHOLE * WHOLE);
    assert_in_range(area, 2500 * 9 / 100, 2500 * 31 / 100);
    assert_true(2.2 * (double)height > (double)width && 2.2 * (double)width > (double)height);
  }
  assert_in_range(erased, 430, 570);
  assert_in_range(upright, erased * 2 / 5, erased * 3 / 5);
  assert_true(fabs(areas / erased - 0.2) < 0.01);
}

static void erased_parts_have_the_numbers_of_channels_or_noise(void **state) {
  (void)state;
  run(&random_erasing_transform, PAIRS("p", "1", "value", "[0.25, -3, 9]"), &f32_picture, floats, 3);
  int changed = 0;
  for (int i = 0; i < 3 * PLANE; i++) {
    static const float values[] = {0.25f, -3, 9};
    if (out.f32[i] == floats[i]) continue;
    assert_true(out.f32[i] == values[i / PLANE]);
    changed++;
  }
  assert_true(changed > 0 && changed % 3 == 0);
  double sum = 0, squares = 0;
  int n = 0;
  for (uint64_t key = 0; key < 500; key++) {
    run(&random_erasing_transform, PAIRS("p", "1", "noise", "yes"), &f32_picture, floats,
        tn_hash_mix(6, key));
    for (int i = 0; i < 3 * PLANE; i++) {
      if (out.f32[i] == floats[i]) continue;
      sum += (double)out.f32[i];
      squares += (double)out.f32[i] * (double)out.f32[i];
      n++;
    }
  }
  assert_true(n > 5000 && fabs(sum / n) < 0.05 && fabs(squares / n - 1) < 0.05);
}

/* ---- automatic augmentation ---- */

static int same(const uint8_t *expected) { return memcmp(out.u8, expected, 3 * PLANE) == 0; }

/* torch.linspace(0, most, 31)[15] */
static double middle(double most) { return (float)(most - 15.0 * (double)((float)most / 30)); }

/* Each op alone has a fourteenth of the samples. Brightness of both signs is told from the others. */
static void rand_augment_chooses_each_op_equally_often(void **state) {
  (void)state;
  enum { KEYS = 7000 };
  static uint8_t results[2 * AUGMENT_OPS][3 * PLANE];
  static const double zero = 0;
  const sampling how = {SAMPLING_NEAREST, {1, &zero}};
  const double magnitudes[AUGMENT_OPS] = {0,
                                          middle(0.3),
                                          middle(0.3),
                                          middle(150.0 / 331 * WIDE),
                                          middle(150.0 / 331 * HIGH),
                                          middle(30),
                                          middle(0.9),
                                          middle(0.9),
                                          middle(0.9),
                                          middle(0.9),
                                          6,
                                          0.5,
                                          0,
                                          0};
  int count[2 * AUGMENT_OPS] = {0};
  for (int i = 0; i < 2 * AUGMENT_OPS; i++) {
    int turned = i % 2 == 1 && i / 2 >= AUGMENT_SHEAR_X && i / 2 <= AUGMENT_SHARPNESS;
    augment_apply(open_canvas(3), (augment_op)(i / 2), turned ? -magnitudes[i / 2] : magnitudes[i / 2], &how);
    memcpy(results[i], out.u8, 3 * PLANE);
  }
  for (uint64_t key = 0; key < KEYS; key++) {
    run(&rand_augment_transform, PAIRS("num_ops", "1", "magnitude", "15"), &u8_picture, bytes,
        tn_hash_mix(8, key));
    int found = -1;
    for (int i = 0; i < 2 * AUGMENT_OPS && found < 0; i++) {
      int alone = i / 2 >= AUGMENT_SHEAR_X && i / 2 <= AUGMENT_SHARPNESS;
      if ((alone || i % 2 == 0) && same(results[i])) found = i;
    }
    assert_true(found >= 0);
    count[found]++;
  }
  /* this picture stays as it is under autocontrast or equalize, as under identity */
  int nothing = count[0] + count[2 * AUGMENT_AUTOCONTRAST] + count[2 * AUGMENT_EQUALIZE];
  assert_in_range(nothing, 1300, 1700);
  for (int op = AUGMENT_SHEAR_X; op <= AUGMENT_SHARPNESS; op++) {
    assert_in_range(count[2 * op], 190, 310);
    assert_in_range(count[2 * op + 1], 190, 310);
  }
  assert_in_range(count[2 * AUGMENT_POSTERIZE], 420, 580);
  assert_in_range(count[2 * AUGMENT_SOLARIZE], 420, 580);
}

static void rand_augment_of_no_ops_or_no_strength(void **state) {
  (void)state;
  run(&rand_augment_transform, PAIRS("num_ops", "0"), &u8_picture, bytes, 3);
  assert_memory_equal(out.u8, bytes, sizeof bytes);
  int changed = 0;
  for (uint64_t key = 0; key < 200; key++) {
    run(&rand_augment_transform, NO_PAIRS, &u8_picture, bytes, tn_hash_mix(8, key));
    changed += !same(bytes);
  }
  assert_in_range(changed, 150, 199);
}

/* Shifts to the right move a light in the corner by int(v) pixels for each v of torch.linspace(0, 32, 31),
 * where the middle is a little less than 16: never by 16 or 31. A
 * quarter turn moves it to the other corner. */
static void trivial_augment_has_every_strength(void **state) {
  (void)state;
  enum { WHOLE = 65 };
  static uint8_t light[WHOLE * WHOLE] = {255};
  const tn_type type = {TN_U8, 3, {1, WHOLE, WHOLE}};
  int seen[WHOLE] = {0};
  for (uint64_t key = 0; key < 12000; key++) {
    run(&trivial_augment_transform, NO_PAIRS, &type, light, tn_hash_mix(11, key));
    int lights = 0, last = 0;
    for (int x = 0; x < WHOLE; x++)
      if (out.u8[x] == 255) last = x, lights++;
    seen[last] += lights == 1; /* the strongest solarize lights all but this one */
  }
  for (int x = 0; x < WHOLE; x++)
    if ((seen[x] > 0) != ((x <= 32 && x != 16 && x != 31) || x == WHOLE - 1))
      fail_msg("%d of 12000 shifts are by %d", seen[x], x);
}

/* ---- mixtures ---- */

enum { ROWS = 4, SIDE = 6, CLASSES = 3 };
static float pictures[ROWS][SIDE * SIDE], labels[ROWS][CLASSES], mixed[ROWS][SIDE * SIDE],
    parts[ROWS][CLASSES];

/* Sample r is filled with r + 1, and its class is r % 3, so that each sample and the one before it differ in
 * both but for the first and the last. */
static void mix(const tn_transform *t, const char *const *pairs, uint64_t key) {
  static const tn_type types[2] = {{TN_F32, 4, {ROWS, 1, SIDE, SIDE}}, {TN_F32, 2, {ROWS, CLASSES}}};
  const void *options = options_of(t, pairs), *in[2] = {pictures, labels};
  void *to[2] = {mixed, parts};
  tn_type result[2] = {types[0], types[1]};
  memset(labels, 0, sizeof labels);
  for (int r = 0; r < ROWS; r++) {
    for (int i = 0; i < SIDE * SIDE; i++) pictures[r][i] = (float)(r + 1);
    labels[r][r % CLASSES] = 1;
  }
  if (t->infer(&env, options, 2, types, result) != TN_OK) fail_msg("%s", tn_error_text(&env));
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = 2,
                            .in_type = types,
                            .out_type = result,
                            .in = in,
                            .out = to,
                            .key = key,
                            .scratch = &scratch};
  assert_int_equal(t->apply(&call, options), TN_OK);
}

/* The part of the own sample, from the targets; they are mixed alike in each row. */
static double own_part(void) {
  double part = (double)parts[1][1];
  for (int r = 1; r < ROWS; r++) {
    assert_true(fabs((double)parts[r][r % CLASSES] - part) < 1e-6);
    assert_true(fabs((double)parts[r][(r - 1) % CLASSES] - (1 - part)) < 1e-6);
  }
  assert_true(fabs((double)parts[0][0] - 1) < 1e-6); /* the last sample has its class, too */
  return part;
}

/* Mean and variance of the beta distribution (a, a). */
static void expect_beta(double sum, double squares, int n, double a) {
  double mean = sum / n, variance = squares / n - mean * mean, expected = 1 / (4 * (2 * a + 1));
  if (!(fabs(mean - 0.5) < 4 * sqrt(expected / n) && fabs(variance - expected) < 0.06 * expected))
    fail_msg("alpha %g: mean %g, variance %g, expected %g", a, mean, variance, expected);
}

/* Ops of strength 0 leave a picture of one level, so that the mean is the picture; sums are cut to bytes. */
static void aug_mix_is_a_mean(void **state) {
  (void)state;
  memset(bytes, 240, sizeof bytes);
  for (uint64_t key = 0; key < 50; key++) {
    run(&aug_mix_transform, PAIRS("severity", "1", "alpha", "0.3"), &u8_picture, bytes, key);
    for (int i = 0; i < 3 * PLANE; i++) assert_in_range(out.u8[i], 239, 240);
  }
}

/* Of one op at strength 0 only posterize, to 4 bits, and those of histograms change a picture. */
static void aug_mix_draws_its_ops_alike(void **state) {
  (void)state;
  enum { KEYS = 1300 };
  int changed = 0, posterized = 0;
  for (uint64_t key = 0; key < KEYS; key++) {
    int low = 0, moved = 0;
    run(&aug_mix_transform, PAIRS("severity", "1", "chain_depth", "1", "mixture_width", "1", "alpha", "1000"),
        &u8_picture, bytes, key);
    for (int i = 0; i < 3 * PLANE; i++) {
      moved |= abs((int)out.u8[i] - (int)bytes[i]) > 1;
      low |= abs((int)out.u8[i] - ((int)bytes[i] + (bytes[i] & 0xF0)) / 2) > 2;
    }
    changed += moved;
    posterized += moved && !low;
  }
  assert_in_range(posterized, KEYS / 13 - 40, KEYS / 13 + 40);
  assert_in_range(changed, posterized, 3 * KEYS / 13 + 60);
}

static void mixup_mixes_each_sample_with_the_one_before(void **state) {
  (void)state;
  static const struct {
    const char *alpha;
    double value;
  } cases[] = {
      {"1e-320", 0}, {"0.05", 0.05}, {"0.4", 0.4}, {"1", 1}, {"5", 5}}; /* 1e-320: logarithms overflow */
  enum { N = 20000 };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    double sum = 0, squares = 0;
    for (uint64_t key = 0; key < N; key++) {
      mix(&mixup_transform, PAIRS("alpha", cases[k].alpha), tn_hash_mix(k, key));
      double part = own_part();
      for (int r = 0; r < ROWS; r++) {
        double expected = part * (r + 1) + (1 - part) * (r > 0 ? r : ROWS);
        for (int i = 0; i < SIDE * SIDE; i++) assert_true(fabs((double)mixed[r][i] - expected) < 1e-5);
      }
      sum += part;
      squares += part * part;
    }
    expect_beta(sum, squares, N, cases[k].value);
  }
}

/* Pixels are of one sample or the other; those of the other are a rectangle, and its area is their part. */
static void cutmix_pastes_a_rectangle_and_weighs_the_targets_by_its_area(void **state) {
  (void)state;
  int pasted[SIDE * SIDE] = {0}, areas[SIDE * SIDE + 1] = {0};
  for (uint64_t key = 0; key < 4000; key++) {
    int top = SIDE, bottom = -1, left = SIDE, right = -1, area = 0;
    mix(&cutmix_transform, NO_PAIRS, tn_hash_mix(31, key));
    for (int i = 0; i < SIDE * SIDE; i++) {
      int other = mixed[1][i] != 2;
      for (int r = 0; r < ROWS; r++) assert_true(mixed[r][i] == (float)(other ? (r > 0 ? r : ROWS) : r + 1));
      if (!other) continue;
      top = i / SIDE < top ? i / SIDE : top;
      bottom = i / SIDE;
      left = i % SIDE < left ? i % SIDE : left;
      right = i % SIDE > right ? i % SIDE : right;
      pasted[i]++;
      area++;
    }
    if (area > 0) assert_int_equal((bottom - top + 1) * (right - left + 1), area);
    assert_true(fabs(own_part() - (1 - (double)area / (SIDE * SIDE))) < 1e-6);
    areas[area]++;
  }
  for (int i = 0; i < SIDE * SIDE; i++) assert_true(pasted[i] > 150); /* every pixel */
  assert_true(areas[0] > 100 && areas[16] > 100 && areas[6] > 50);    /* many sizes, some cut at the border */
}

static void p_is_the_probability_of_a_mixture(void **state) {
  (void)state;
  int changed[2] = {0};
  for (uint64_t key = 0; key < 1000; key++) {
    mix(&mixup_transform, PAIRS("p", "0.3"), tn_hash_mix(1, key));
    changed[0] += memcmp(mixed, pictures, sizeof mixed) != 0;
    mix(&cutmix_transform, PAIRS("p", "0"), tn_hash_mix(1, key));
    changed[1] += memcmp(mixed, pictures, sizeof mixed) != 0 || memcmp(parts, labels, sizeof parts) != 0;
  }
  assert_in_range(changed[0], 240, 360);
  assert_int_equal(changed[1], 0);
}

static void one_hot_has_a_one_at_the_class(void **state) {
  (void)state;
  static const int32_t numbers[4] = {2, 0, -100, 1};
  static const float expected[12] = {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0};
  const tn_type type = {TN_I32, 1, {4}}, picture_type = {TN_F32, 1, {4}};
  tn_type result = run(&one_hot_transform, PAIRS("classes", "3"), &type, numbers, 0);
  assert_true(result.dtype == TN_F32 && result.rank == 2 && result.dims[1] == 3);
  assert_memory_equal(out.f32, expected, sizeof expected);
  refuses(&one_hot_transform, PAIRS("classes", "3"), &picture_type,
          "a field is f32 of rank 1, expected class numbers");
  const void *options = options_of(&one_hot_transform, PAIRS("classes", "2")), *in = numbers;
  void *to = &out;
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = &type,
                            .out_type = &result,
                            .in = &in,
                            .out = &to,
                            .scratch = &scratch};
  assert_int_equal(one_hot_transform.apply(&call, options), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "a field has class 2, expected less than classes = 2"));
}

/* ---- errors ---- */

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  static const tn_transform *const colorful[] = {&color_jitter_transform, &rand_augment_transform,
                                                 &trivial_augment_transform};
  const tn_type two = {TN_U8, 3, {2, 8, 8}}, vector = {TN_U8, 1, {5}}, whole = {TN_I32, 3, {1, 5, 5}};
  const tn_type wide = {TN_F64, 3, {1, 5, 5}};
  for (int i = 0; i < 3; i++) {
    refuses(colorful[i], NO_PAIRS, &two, "a picture has 2 channels, expected 1 or 3");
    refuses(colorful[i], NO_PAIRS, &f32_picture,
            "a field is f32, expected u8; put this transform in front of");
    refuses(colorful[i], NO_PAIRS, &vector, "rank 1");
  }
  refuses(&grayscale_transform, NO_PAIRS, &two, "a picture has 2 channels, expected 1 or 3");
  refuses(&random_grayscale_transform, NO_PAIRS, &two, "a picture has 2 channels, expected 1 or 3");
  refuses(&grayscale_transform, NO_PAIRS, &whole, "a field is i32, expected u8 or f32");
  refuses(&random_rotation_transform, PAIRS("degrees", "5"), &wide, "a field is f64, expected u8 or f32");
  refuses(&random_erasing_transform, NO_PAIRS, &whole, "a field is i32, expected u8 or f32");
  refuses(&gaussian_blur_transform, NO_PAIRS, &whole, "a field is i32, expected u8 or f32");
}

static void wrong_options_are_refused(void **state) {
  (void)state;
  refuses(&color_jitter_transform, PAIRS("contrast", "[1, 0.5]"), &u8_picture, "contrast must be one number");
  refuses(&color_jitter_transform, PAIRS("hue", "-0.1"), &u8_picture, "hue must be one number of at least 0");
  refuses(&grayscale_transform, PAIRS("num_output_channels", "2"), &u8_picture, "expected 1 or 3");
  refuses(&random_rotation_transform, PAIRS("degrees", "-5"), &u8_picture, "degrees must be");
  refuses(&random_rotation_transform, PAIRS("degrees", "5", "fill", "[1, 2]"), &u8_picture,
          "fill has 2 numbers for 3 channels");
  refuses(&random_rotation_transform, PAIRS("degrees", "5", "fill", "256"), &u8_picture,
          "fill is 256 for a field of u8, expected 0 to 255");
  refuses(&random_erasing_transform, PAIRS("noise", "yes"), &u8_picture, "noise is for fields of f32");
  refuses(&random_erasing_transform, PAIRS("value", "-1"), &u8_picture, "value is -1 for a field of u8");
  refuses(&random_erasing_transform, PAIRS("scale", "[0.5, 0.1]"), &u8_picture, "scale must be");
  refuses(&gaussian_blur_transform, PAIRS("kernel_size", "4"), &u8_picture,
          "kernel_size must be one odd number");
  refuses(&gaussian_blur_transform, PAIRS("kernel_size", "15"), &u8_picture,
          "a picture of 7 x 10 is too small for this kernel, which needs 8 x 8");
  refuses(&gaussian_blur_transform, PAIRS("sigma", "[2, 1]"), &u8_picture, "sigma must be two numbers");
  refuses(&rand_augment_transform, PAIRS("magnitude", "31"), &u8_picture,
          "magnitude is 31, expected less than num_magnitude_bins, which is 31");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(colors_change_as_in_torchvision),
      CASE(levels_change_as_in_torchvision),
      CASE(a_picture_of_one_level_stays),
      CASE(equalize_is_torchvisions),
      CASE(each_op_of_the_automatic_augmentations_is_torchvisions),
      CASE(grayscale_is_torchvisions),
      CASE(random_grayscale_is_gray_as_often_as_told),
      CASE(rotation_is_torchvisions),
      CASE(quarter_turns_are_exact),
      CASE(pixels_from_outside_have_the_number_of_their_channel),
      CASE(angles_are_uniform),
      CASE(gaussian_blur_is_torchvisions),
      CASE(blurs_differ_in_strength_and_keep_the_mean),
      CASE(color_jitter_with_one_factor_is_that_change),
      CASE(color_jitter_has_uniform_factors),
      CASE(color_jitter_has_any_order),
      CASE(random_erasing_has_the_areas_and_ratios_that_are_asked_for),
      CASE(erased_parts_have_the_numbers_of_channels_or_noise),
      CASE(rand_augment_chooses_each_op_equally_often),
      CASE(rand_augment_of_no_ops_or_no_strength),
      CASE(trivial_augment_has_every_strength),
      CASE(aug_mix_is_a_mean),
      CASE(aug_mix_draws_its_ops_alike),
      CASE(mixup_mixes_each_sample_with_the_one_before),
      CASE(cutmix_pastes_a_rectangle_and_weighs_the_targets_by_its_area),
      CASE(p_is_the_probability_of_a_mixture),
      CASE(one_hot_has_a_one_at_the_class),
      CASE(what_does_not_fit_is_refused),
      CASE(wrong_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
