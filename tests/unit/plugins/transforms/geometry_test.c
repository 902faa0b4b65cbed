/* tests/unit/plugins/transforms/geometry_test.c: transforms that move a picture with its mask, boxes and
 * points, against torchvision (geometry_goldens.py). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/plugins/transforms/geometry_goldens.h"
#include "tests/unit/plugins/transforms/rig.h"
#include "plugins/transforms/geometry/geometry.h"

extern const tn_transform center_crop_transform, color_jitter_transform, pad_transform,
    random_affine_transform, random_crop_transform, random_erasing_transform, random_flip_transform,
    random_resized_crop_transform, random_rotation_transform, resize_transform;

enum { FIELDS = 4, BOXES = 4, POINTS = 2 };

static int32_t mask[PLANE];
static const float boxes[BOXES][4] = {{1, 2, 4, 6}, {0, 0, 10, 7}, {6.5f, 0.25f, 9.75f, 3.5f}, {0, 0, 0, 0}};
static const float points[POINTS][2] = {{1, 2}, {6.5f, 0.25f}};
static const tn_type types[FIELDS] = {{TN_U8, 3, {3, HIGH, WIDE}},
                                      {TN_I32, 2, {HIGH, WIDE}},
                                      {TN_F32, 2, {BOXES, 4}},
                                      {TN_F32, 2, {POINTS, 2}}};
static struct {
  tn_type type[FIELDS];
  uint8_t image[MOST];
  int32_t mask[MOST];
  float boxes[BOXES][4], points[POINTS][2];
} got;

static void move(const tn_transform *t, const char *const *pairs, uint64_t key) {
  const void *options = options_of(t, pairs), *const in[FIELDS] = {bytes, mask, boxes, points};
  void *const to[FIELDS] = {got.image, got.mask, got.boxes, got.points};
  for (int i = 0; i < PLANE; i++) mask[i] = i * i / 3 % 7;
  memcpy(got.type, types, sizeof types);
  if (t->infer(&env, options, FIELDS, types, got.type) != TN_OK) fail_msg("%s", tn_error_text(&env));
  assert_true(tn_type_bytes(&got.type[0]) <= sizeof got.image && tn_type_count(&got.type[1]) <= MOST);
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = FIELDS,
                            .in_type = types,
                            .out_type = got.type,
                            .in = in,
                            .out = to,
                            .key = key,
                            .scratch = &scratch};
  if (t->apply(&call, options) != TN_OK) fail_msg("%s", tn_error_text(&env));
}

static void has_mask(const int32_t *expected, size_t bytes_of_it) {
  assert_int_equal(tn_type_bytes(&got.type[1]), bytes_of_it);
  for (size_t i = 0; i < bytes_of_it / sizeof *expected; i++)
    if (got.mask[i] != expected[i])
      fail_msg("pixel %zu of the mask is %d, expected %d", i, (int)got.mask[i], (int)expected[i]);
}

/* The last box has no area and stays so. Numbers of f32 up to 13. */
static void has_boxes(const float expected[12]) {
  for (int i = 0; i < 12; i++)
    if (!(fabsf(got.boxes[i / 4][i % 4] - expected[i]) <= 4e-6f))
      fail_msg("number %d of box %d is %.9g, expected %.9g", i % 4, i / 4, (double)got.boxes[i / 4][i % 4],
               (double)expected[i]);
  for (int i = 0; i < 4; i++) assert_true(got.boxes[BOXES - 1][i] == 0);
}

/* Bytes that may differ by `most`. */
static void has_image(const uint8_t *expected, size_t count, int most) {
  for (size_t i = 0; i < count; i++)
    if (abs(got.image[i] - expected[i]) > most)
      fail_msg("byte %zu is %d, expected %d", i, got.image[i], expected[i]);
}

#define EXPECT(name)                                                                                         \
  has_mask(name##_mask, sizeof name##_mask);                                                                 \
  has_boxes(name##_boxes)

static void parts_move_masks_and_boxes_as_torchvision(void **state) {
  (void)state;
  move(&resize_transform, PAIRS("size", "[5, 13]"), 0);
  EXPECT(resize);
  move(&resize_transform, PAIRS("size", "5"), 0);
  EXPECT(resize_short);
  move(&center_crop_transform, PAIRS("size", "[4, 6]"), 0);
  EXPECT(center);
  move(&pad_transform, PAIRS("padding", "[3, 1, 2, 4]", "fill", "50", "mask_fill", "2"), 0);
  EXPECT(pad);
  has_image(pad_image, sizeof pad_image, 0);
  assert_true(got.points[0][0] == 4 && got.points[0][1] == 3);
}

static void pad_continues_a_picture_as_torchvision(void **state) {
  (void)state;
#define MODE(name)                                                                                           \
  move(&pad_transform, PAIRS("padding", "[3, 1, 2, 4]", "padding_mode", #name), 0);                          \
  has_image(pad_##name##_image, sizeof pad_##name##_image, 0);                                               \
  has_mask(pad_##name##_mask, sizeof pad_##name##_mask)
  MODE(edge);
  MODE(reflect);
  MODE(symmetric);
#undef MODE
}

static void flips_move_masks_and_boxes_as_torchvision(void **state) {
  (void)state;
  move(&random_flip_transform, PAIRS("p", "1"), 0);
  EXPECT(flip);
  has_image(flip_image, sizeof flip_image, 0);
  assert_true(got.points[1][0] == 3.5f && got.points[1][1] == 0.25f);
  move(&random_flip_transform, PAIRS("p", "1", "direction", "vertical"), 0);
  EXPECT(flip_down);
  move(&random_flip_transform, PAIRS("p", "0"), 0);
  assert_memory_equal(got.mask, mask, sizeof mask);
  assert_memory_equal(got.boxes, boxes, sizeof boxes);
}

static void turns_move_masks_and_boxes_as_torchvision(void **state) {
  (void)state;
  move(&random_rotation_transform, PAIRS("degrees", "[30, 30]"), 0);
  EXPECT(rotate);
}

/* The way of random_affine is whole pixels at random, so its map is used by itself. */
static void affine_maps_have_the_values_of_torchvision(void **state) {
  (void)state;
  const tn_floats fill = {1, (double[]){9}};
  sampling how = {SAMPLING_NEAREST, fill};
  const void *const in[FIELDS] = {bytes, mask, boxes, points};
  void *const to[FIELDS] = {got.image, got.mask, got.boxes, got.points};
  memcpy(got.type, types, sizeof types);
  tn_transform_call call = {.env = env, .struct_size = sizeof call, .n = FIELDS, .in_type = types};
  call.out_type = got.type;
  call.in = in;
  call.out = to;
  call.scratch = &scratch;
  geometry g = {.kind = GEOMETRY_AFFINE, .by = affine_of(25, 2, -1, 1.25, 12, -7), .how = &how};
  assert_int_equal(geometry_apply(&call, &g), TN_OK);
  EXPECT(affine);
  has_image(affine_image, sizeof affine_image, 0);
  how.interpolation = SAMPLING_BILINEAR;
  how.fill.v = (double[]){0};
  assert_int_equal(geometry_apply(&call, &g), TN_OK);
  has_image(affine_smooth_image, sizeof affine_smooth_image, 1);
}

/* The pixel at a box's corner is the same before and after: of mask and picture by the same random choice. */
static void random_choices_are_those_of_the_picture(void **state) {
  (void)state;
  const tn_transform *const crops[2] = {&random_crop_transform, &random_resized_crop_transform};
  for (int t = 0; t < 2; t++)
    for (uint64_t key = 0; key < 40; key++) {
      const char *const *pairs = t == 0 ? PAIRS("size", "[4, 6]")
                                        : PAIRS("size", "[7, 10]", "scale", "[1, 1]", "ratio", "[1.4, 1.5]");
      move(crops[t], pairs, key);
      float left = got.points[0][0] - 1, top = got.points[0][1] - 2;
      int x = (int)-left, y = (int)-top;
      assert_true(left == (float)-x && top == (float)-y);
      assert_int_equal(got.image[0], bytes[y * WIDE + x]);
      assert_int_equal(got.mask[0], mask[y * WIDE + x]);
      float edge = fminf(fmaxf(left + 6.5f, 0), 6);
      if (t == 0 && got.boxes[2][2] > 0) assert_true(got.boxes[2][0] == edge);
    }
  move(&random_affine_transform, PAIRS("degrees", "0", "translate", "[0.3, 0.3]"), 3);
  assert_true(got.points[0][0] == rintf(got.points[0][0]) && got.points[0][1] == rintf(got.points[0][1]));
  int across = (int)got.points[0][0] - 1, down = (int)got.points[0][1] - 2;
  assert_true(across != 0 && down != 0);
  for (int y = 0; y < HIGH; y++)
    for (int x = 0; x < WIDE; x++) {
      int inside = y >= down && y - down < HIGH && x >= across && x - across < WIDE;
      assert_int_equal(got.mask[y * WIDE + x], inside ? mask[(y - down) * WIDE + x - across] : 0);
    }
}

static void colors_leave_the_other_fields(void **state) {
  (void)state;
  move(&color_jitter_transform, PAIRS("brightness", "[2, 2]"), 0);
  assert_int_equal(got.image[3], 255);
  assert_memory_equal(got.mask, mask, sizeof mask);
  assert_memory_equal(got.boxes, boxes, sizeof boxes);
  move(&random_erasing_transform, PAIRS("p", "1"), 0);
  assert_true(memcmp(got.image, bytes, sizeof bytes) != 0);
  assert_memory_equal(got.mask, mask, sizeof mask);
  assert_memory_equal(got.boxes, boxes, sizeof boxes);
}

static void other_sizes_and_orders_are_refused(void **state) {
  (void)state;
  tn_type small[2] = {{TN_U8, 3, {3, HIGH, WIDE}}, {TN_I32, 2, {HIGH, WIDE - 1}}}, result[2];
  const void *options = options_of(&pad_transform, PAIRS("padding", "1"));
  assert_int_equal(pad_transform.infer(&env, options, 2, small, result), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "field 1 is 7 x 9, but field 0 is 7 x 10; expected one size"));
  refuses(&pad_transform, PAIRS("padding", "[1, 2, 3]"), &u8_picture, "padding has 3 numbers");
  refuses(&random_affine_transform, PAIRS("degrees", "[3, 1]"), &u8_picture, "degrees must be");
  refuses(&random_affine_transform, PAIRS("degrees", "3", "translate", "0.5"), &u8_picture,
          "translate has 1 numbers");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(parts_move_masks_and_boxes_as_torchvision),
      CASE(pad_continues_a_picture_as_torchvision),
      CASE(flips_move_masks_and_boxes_as_torchvision),
      CASE(turns_move_masks_and_boxes_as_torchvision),
      CASE(affine_maps_have_the_values_of_torchvision),
      CASE(random_choices_are_those_of_the_picture),
      CASE(colors_leave_the_other_fields),
      CASE(other_sizes_and_orders_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
