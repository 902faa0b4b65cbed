/* tests/unit/plugins/transforms/geometry_test.c: transforms that move a picture with its mask, boxes and
 * points, against torchvision (geometry_goldens.py). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/plugins/transforms/augment_goldens.h"
#include "tests/unit/plugins/transforms/geometry_goldens.h"
#include "tests/unit/plugins/transforms/rig.h"
#include "plugins/transforms/geometry/geometry.h"

extern const tn_transform center_crop_transform, color_jitter_transform, convert_boxes_transform,
    elastic_transform, five_crop_transform, gaussian_blur_transform, gaussian_noise_transform, jpeg_transform,
    letterbox_transform, mixup_transform, mosaic_transform, pad_transform, random_adjust_sharpness_transform,
    random_affine_transform, random_apply_transform, random_autocontrast_transform,
    random_channel_permutation_transform, random_choice_transform, random_crop_transform,
    random_equalize_transform, random_erasing_transform, random_flip_transform, random_grayscale_transform,
    random_invert_transform, random_iou_crop_transform, random_order_transform, random_perspective_transform,
    random_photometric_distort_transform, random_posterize_transform, random_resized_crop_transform,
    random_rotation_transform, random_solarize_transform, random_zoom_out_transform, resize_transform,
    sanitize_boxes_transform, scale_jitter_transform, ten_crop_transform;

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

static void move_with(const tn_transform *t, const void *options, uint64_t key) {
  const void *const in[FIELDS] = {bytes, mask, boxes, points};
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

static void move(const tn_transform *t, const char *const *pairs, uint64_t key) {
  move_with(t, options_of(t, pairs), key);
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

/* Moves the fields by a map whose random choices a transform would make. The results have the operands' size.
 */
static void move_by(geometry g, int32_t interpolation, double fill) {
  const sampling how = {interpolation, {1, &fill}};
  const void *const in[FIELDS] = {bytes, mask, boxes, points};
  void *const to[FIELDS] = {got.image, got.mask, got.boxes, got.points};
  memcpy(got.type, types, sizeof types);
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = FIELDS,
                            .in_type = types,
                            .out_type = got.type,
                            .in = in,
                            .out = to,
                            .scratch = &scratch};
  g.how = &how;
  if (geometry_apply(&call, &g) != TN_OK) fail_msg("%s", tn_error_text(&env));
}

static void affine_maps_have_the_values_of_torchvision(void **state) {
  (void)state;
  const geometry g = {.kind = GEOMETRY_AFFINE, .by = affine_of(25, 2, -1, 1.25, 12, -7)};
  move_by(g, SAMPLING_NEAREST, 9);
  EXPECT(affine);
  has_image(affine_image, sizeof affine_image, 0);
  move_by(g, SAMPLING_BILINEAR, 0);
  has_image(affine_smooth_image, sizeof affine_smooth_image, 1);
}

static void perspective_has_the_values_of_torchvision(void **state) {
  (void)state;
  const double from[8] = {0, 0, 9, 0, 9, 6, 0, 6}, to[8] = {1, 3, 7, 0, 9, 5, 3, 6};
  const double line[8] = {0, 0, 1, 1, 2, 2, 3, 3};
  geometry g = {.kind = GEOMETRY_PROJECTIVE};
  assert_true(projective_between(to, from, &g.places));
  move_by(g, SAMPLING_NEAREST, 0);
  EXPECT(perspective);
  has_image(perspective_image, sizeof perspective_image, 0);
  move_by(g, SAMPLING_BILINEAR, 0);
  has_image(perspective_smooth_image, sizeof perspective_smooth_image, 1);
  assert_false(projective_between(line, from, &g.places));
}

static void displacements_have_the_values_of_torchvision(void **state) {
  (void)state;
  const geometry g = {.kind = GEOMETRY_PROJECTIVE,
                      .places = {{1, 0, 0, 0, 1, 0, 0, 0, 1}},
                      .across = elastic_way,
                      .down = elastic_way + PLANE};
  move_by(g, SAMPLING_NEAREST, 0);
  has_mask(elastic_mask, sizeof elastic_mask);
  /* torchvision rounds a corner to its pixel first. */
  for (int i = 0; i < 12; i++) assert_true(fabsf(got.boxes[i / 4][i % 4] - elastic_boxes[i]) <= 1);
  has_image(elastic_image, sizeof elastic_image, 0);
  move_by(g, SAMPLING_BILINEAR, 0);
  has_image(elastic_smooth_image, sizeof elastic_smooth_image, 1);
}

static void letterbox_is_resize_and_pad_of_torchvision(void **state) {
  (void)state;
  move(&letterbox_transform, PAIRS("size", "[16, 14]", "fill", "114"), 0);
  EXPECT(letterbox);
  has_image(letterbox_image, sizeof letterbox_image, 1);
}

/* Where a mask has a 7, the picture is bright, and so it stays. */
static void random_maps_keep_mask_and_picture_together(void **state) {
  (void)state;
  static uint8_t image[PLANE], moved_image[PLANE];
  static int32_t classes[PLANE], moved_mask[PLANE];
  const tn_type two[2] = {{TN_U8, 3, {1, HIGH, WIDE}}, {TN_I32, 2, {HIGH, WIDE}}};
  const void *const in[2] = {image, classes};
  void *const to[2] = {moved_image, moved_mask};
  const struct {
    const tn_transform *transform;
    const char *const *pairs;
  } maps[] = {
      {&random_perspective_transform, PAIRS("p", "1", "interpolation", "nearest")},
      {&elastic_transform, PAIRS("alpha", "40", "sigma", "2", "interpolation", "nearest")},
      {&random_affine_transform, PAIRS("degrees", "40", "shear", "[-5, 5, -9, 9]", "scale", "[0.5, 2]")},
  };
  for (int i = 0; i < PLANE; i++) classes[i] = i * 5 % 13 < 6 ? 7 : 0;
  for (int i = 0; i < PLANE; i++) image[i] = classes[i] == 7 ? 200 : 0;
  for (int m = 0; m < 3; m++) {
    const void *options = options_of(maps[m].transform, maps[m].pairs);
    int changed = 0;
    for (uint64_t key = 0; key < 20; key++) {
      tn_type result[2];
      tn_transform_call call = {.env = env,
                                .struct_size = sizeof call,
                                .n = 2,
                                .in_type = two,
                                .out_type = result,
                                .in = in,
                                .out = to,
                                .key = key,
                                .scratch = &scratch};
      assert_int_equal(maps[m].transform->infer(&env, options, 2, two, result), TN_OK);
      assert_int_equal(maps[m].transform->apply(&call, options), TN_OK);
      for (int i = 0; i < PLANE; i++) assert_int_equal(moved_image[i], moved_mask[i] == 7 ? 200 : 0);
      changed += memcmp(moved_mask, classes, sizeof classes) != 0;
    }
    assert_true(changed > 10);
  }
}

/* The steepest maps that options allow stay within the range of the places' whole numbers. */
static void extreme_options_are_no_crash(void **state) {
  (void)state;
  for (uint64_t key = 0; key < 20; key++) {
    move(&random_affine_transform,
         PAIRS("degrees", "36000", "translate", "[1, 1]", "scale", "[0.01, 0.01]", "shear",
               "[80, 80, -80, -80]"),
         key);
    for (int i = 0; i < BOXES; i++) assert_true(got.boxes[i][2] <= WIDE && got.boxes[i][3] <= HIGH);
    move(&random_perspective_transform, PAIRS("distortion_scale", "1", "p", "1"), key);
    move(&scale_jitter_transform, PAIRS("size", "3", "scale_range", "[1000, 1000]"), key);
    assert_int_equal(got.type[1].dims[0], 3);
    move(&elastic_transform, PAIRS("alpha", "1000000", "sigma", "0.1"), key);
    for (int i = 0; i < BOXES; i++) assert_true(got.boxes[i][0] >= 0 && got.boxes[i][1] >= 0);
  }
}

/* Boxes of `placed` transforms stay inside of the result, and have the size of their part. */
static void placed_pictures_keep_their_boxes(void **state) {
  (void)state;
  int smaller = 0;
  for (uint64_t key = 0; key < 60; key++) {
    move(&random_zoom_out_transform, PAIRS("size", "[21, 30]", "fill", "3", "mask_fill", "9"), key);
    const float *whole = got.boxes[1];
    float wide = whole[2] - whole[0], high = whole[3] - whole[1];
    assert_true(wide >= 30.0f / 4 - 0.5f && wide <= 30 && high >= 21.0f / 4 - 0.5f && high <= 21);
    smaller += wide < 30;
    for (int y = 0; y < 21; y++)
      for (int x = 0; x < 30; x++) {
        int inside =
            (float)x >= whole[0] && (float)x < whole[2] && (float)y >= whole[1] && (float)y < whole[3];
        assert_true(inside == (got.mask[y * 30 + x] != 9));
        if (!inside) assert_int_equal(got.image[y * 30 + x], 3);
      }
    move(&scale_jitter_transform, PAIRS("size", "[21, 30]", "mask_fill", "9"), key);
    assert_true(got.boxes[1][2] > 0 && got.boxes[1][2] <= 30 && got.boxes[1][3] <= 21);
    int last = (int)got.boxes[1][3] * 30 - 30 + (int)got.boxes[1][2] - 1;
    assert_true(got.mask[last] != 9 &&
                (last + 1 == 21 * 30 || got.boxes[1][2] == 30 || got.mask[last + 1] == 9));
  }
  assert_true(smaller > 15 && smaller < 45);
}

static void an_iou_crop_keeps_boxes_whose_centre_it_has(void **state) {
  (void)state;
  int dropped = 0, whole = 0;
  for (uint64_t key = 0; key < 100; key++) {
    int kept = 0;
    move(&random_iou_crop_transform, PAIRS("size", "[14, 20]"), key);
    for (int i = 0; i < 3; i++) kept += got.boxes[i][2] > 0;
    assert_true(kept >= 1);
    dropped += kept < 3;
    whole += got.boxes[1][2] == 20 && got.boxes[1][3] == 14;
  }
  assert_true(dropped > 20 && whole > 10);
  refuses(&random_iou_crop_transform, PAIRS("size", "5"), &u8_picture, "there is no field of boxes");
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
  const struct {
    const tn_transform *transform;
    const char *option, *value;
  } others[] = {{&random_erasing_transform, "p", "1"},
                {&gaussian_blur_transform, "kernel_size", "3"},
                {&random_grayscale_transform, "p", "1"}};
  for (int i = 0; i < 3; i++) {
    move(others[i].transform, PAIRS(others[i].option, others[i].value), 0);
    assert_true(memcmp(got.image, bytes, sizeof bytes) != 0);
    assert_memory_equal(got.mask, mask, sizeof mask);
    assert_memory_equal(got.boxes, boxes, sizeof boxes);
    assert_memory_equal(got.points, points, sizeof points);
  }
}

static void forms_of_boxes_are_converted(void **state) {
  (void)state;
  static const float corner[8] = {1, 2, 3, 4, 6.5f, 0.25f, 3.25f, 3.25f},
                     centre[8] = {2.5f, 4, 3, 4, 8.125f, 1.875f, 3.25f, 3.25f};
  static const float corners[8] = {1, 2, 4, 6, 6.5f, 0.25f, 9.75f, 3.5f};
  const tn_type type = {TN_F32, 2, {2, 4}};
  run(&convert_boxes_transform, PAIRS("from", "xywh"), &type, corner, 0);
  assert_memory_equal(out.f32, corners, sizeof corners);
  run(&convert_boxes_transform, PAIRS("from", "cxcywh"), &type, centre, 0);
  assert_memory_equal(out.f32, corners, sizeof corners);
  run(&convert_boxes_transform, PAIRS("from", "xyxy", "to", "cxcywh"), &type, corners, 0);
  assert_memory_equal(out.f32, centre, sizeof centre);
  run(&convert_boxes_transform, PAIRS("from", "cxcywh", "to", "xywh"), &type, centre, 0);
  assert_memory_equal(out.f32, corner, sizeof corner);
  refuses(&convert_boxes_transform, PAIRS("from", "xywh"), &u8_picture, "expected boxes: f32[n, 4]");
}

static void small_boxes_lose_their_labels(void **state) {
  (void)state;
  const tn_type two[2] = {{TN_F32, 2, {BOXES, 4}}, {TN_I32, 1, {BOXES}}};
  static const int32_t labels[BOXES] = {3, 1, 2, 5};
  int32_t kept[BOXES];
  float left[BOXES][4];
  const void *options = options_of(&sanitize_boxes_transform, PAIRS("min_size", "3.5"));
  tn_type result[2];
  assert_int_equal(sanitize_boxes_transform.infer(&env, options, 2, two, result), TN_OK);
  tn_transform_call call = {
      .env = env, .struct_size = sizeof call, .n = 2, .in_type = two, .out_type = result};
  call.in = (const void *const[]){boxes, labels};
  call.out = (void *const[]){left, kept};
  assert_int_equal(sanitize_boxes_transform.apply(&call, options), TN_OK);
  static const int32_t expected[BOXES] = {-100, 1, -100, -100};
  assert_memory_equal(kept, expected, sizeof expected);
  assert_memory_equal(left[1], boxes[1], sizeof left[1]);
  assert_true(left[0][2] == 0 && left[2][0] == 0);
}

static void several_crops_are_the_corners_and_the_middle(void **state) {
  (void)state;
  static uint8_t five[5 * 3 * 12], mirrored[5 * 3 * 12];
  tn_type result = run(&five_crop_transform, PAIRS("size", "[3, 4]"), &u8_picture, bytes, 0);
  assert_true(result.rank == 4 && result.dims[0] == 5 && result.dims[2] == 3 && result.dims[3] == 4);
  memcpy(five, out.u8, sizeof five);
  static const int tops[5] = {0, 0, 4, 4, 2}, lefts[5] = {0, 6, 0, 6, 3};
  for (int i = 0; i < 5 * 36; i++) {
    int part = i / 36, plane = i / 12 % 3, y = tops[part] + i % 12 / 4, x = lefts[part] + i % 4;
    assert_int_equal(five[i], bytes[plane * PLANE + y * WIDE + x]);
  }
  static uint8_t flipped[3 * PLANE];
  flip_apply(bytes, &u8_picture, 0, flipped);
  run(&five_crop_transform, PAIRS("size", "[3, 4]"), &u8_picture, flipped, 0);
  memcpy(mirrored, out.u8, sizeof mirrored);
  result = run(&ten_crop_transform, PAIRS("size", "[3, 4]"), &u8_picture, bytes, 0);
  assert_int_equal(result.dims[0], 10);
  assert_memory_equal(out.u8, five, sizeof five);
  assert_memory_equal(out.u8 + sizeof five, mirrored, sizeof mirrored);
  refuses(&five_crop_transform, PAIRS("size", "8"), &u8_picture, "too small for crops of 8 x 8");
}

/* torchvision brings a libjpeg of its own, whose rounding may differ. */
static void jpeg_has_the_losses_of_torchvision(void **state) {
  (void)state;
  move(&jpeg_transform, PAIRS("quality", "60"), 0);
  has_image(jpeg_image, sizeof jpeg_image, 2);
  assert_memory_equal(got.mask, mask, sizeof mask);
  refuses(&jpeg_transform, PAIRS("quality", "[9, 3]"), &u8_picture, "quality must be");
}

static void colors_have_the_values_of_torchvision(void **state) {
  (void)state;
#define COLOR(name, expected, ...)                                                                           \
  move(&random_##name##_transform, PAIRS("p", "1", __VA_ARGS__), 0);                                         \
  has_image(expected, sizeof expected, 1);                                                                   \
  assert_memory_equal(got.boxes, boxes, sizeof boxes)
  COLOR(posterize, color_posterize, "bits", "3");
  COLOR(solarize, color_solarize, "threshold", "102");
  COLOR(adjust_sharpness, color_sharp, "sharpness_factor", "1.8");
#undef COLOR
  move(&random_invert_transform, PAIRS("p", "1"), 0);
  for (int i = 0; i < 3 * PLANE; i++) assert_int_equal(got.image[i], 255 - bytes[i]);
  move(&random_invert_transform, PAIRS("p", "0"), 0);
  assert_memory_equal(got.image, bytes, sizeof bytes);
  int orders = 0;
  for (uint64_t key = 0; key < 60; key++) {
    move(&random_channel_permutation_transform, PAIRS("p", "1"), key);
    for (int k = 0; k < 3; k++) orders |= (got.image[0] == bytes[k * PLANE]) << k;
    assert_int_equal(got.image[0] + got.image[PLANE] + got.image[2 * PLANE],
                     bytes[0] + bytes[PLANE] + bytes[2 * PLANE]);
    move(&random_photometric_distort_transform, NO_PAIRS, key);
    assert_memory_equal(got.mask, mask, sizeof mask);
  }
  assert_int_equal(orders, 7);
  static uint8_t dull[3 * PLANE];
  for (int i = 0; i < 3 * PLANE; i++) dull[i] = (uint8_t)(bytes[i] / 2 + 20);
  run(&random_autocontrast_transform, PAIRS("p", "1"), &u8_picture, dull, 0);
  for (int i = 0; i < 3 * PLANE; i++) assert_int_equal(out.u8[i], color_autocontrast[i]);
  move(&random_equalize_transform, PAIRS("p", "1"), 0);
  assert_memory_equal(got.mask, mask, sizeof mask);
}

static void noise_is_normal(void **state) {
  (void)state;
  static float flat[4000];
  const tn_type type = {TN_F32, 3, {1, 40, 100}};
  for (int i = 0; i < 4000; i++) flat[i] = 0.5f;
  run(&gaussian_noise_transform, PAIRS("sigma", "0.25", "mean", "0.125", "clip", "no"), &type, flat, 3);
  double sum = 0, squares = 0;
  for (int i = 0; i < 4000; i++) sum += (double)out.f32[i] - 0.625;
  for (int i = 0; i < 4000; i++) squares += ((double)out.f32[i] - 0.625) * ((double)out.f32[i] - 0.625);
  assert_true(fabs(sum / 4000) < 0.02 && fabs(sqrt(squares / 4000) - 0.25) < 0.02);
  run(&gaussian_noise_transform, PAIRS("sigma", "2"), &type, flat, 3);
  for (int i = 0; i < 4000; i++) assert_true(out.f32[i] >= 0 && out.f32[i] <= 1);
  run(&gaussian_noise_transform, PAIRS("sigma", "0"), &u8_picture, bytes, 3);
  assert_memory_equal(out.u8, bytes, sizeof bytes);
}

/* ---- lists of transforms ---- */

/* The options of a transform of a list of two, and those of its first option behind the list. */
static const void *list_of(const tn_transform *t, tn_transform_part a, tn_transform_part b, const char *p) {
  static tn_transform_part parts[2];
  tn_options options;
  parts[0] = a;
  parts[1] = b;
  assert_int_equal(tn_options_start(&env, &arena, &t->item, &options), TN_OK);
  assert_int_equal(tn_options_set_transforms(&env, &options, "transforms", &(tn_transforms){2, parts}),
                   TN_OK);
  if (p != NULL) assert_int_equal(tn_options_set_text(&env, &options, "p", p), TN_OK);
  return options.data;
}

static tn_transform_part part_of(const tn_transform *t, const char *const *pairs) {
  return (tn_transform_part){t, options_of(t, pairs)};
}

/* How often, of `n` keys, the mask is turned as pixel `to` of the result tells. */
static int count_moves(const tn_transform *t, const void *options, int n, int from, int to) {
  int seen = 0;
  for (int key = 0; key < n; key++) {
    move_with(t, options, (uint64_t)key);
    seen += got.mask[to] == mask[from] && got.mask[PLANE - 1 - to] == mask[PLANE - 1 - from];
  }
  return seen;
}

static void a_list_is_applied_as_often_as_told(void **state) {
  (void)state;
  tn_transform_part across = part_of(&random_flip_transform, PAIRS("p", "1"));
  tn_transform_part down = part_of(&random_flip_transform, PAIRS("p", "1", "direction", "vertical"));
  move_with(&random_apply_transform, list_of(&random_apply_transform, across, down, "1"), 3);
  for (int i = 0; i < PLANE; i++) assert_int_equal(got.mask[i], mask[PLANE - 1 - i]);
  for (int i = 0; i < 4; i++) {
    float turned = (i % 2 ? HIGH : WIDE) - boxes[0][(i + 2) % 4];
    assert_true(got.boxes[0][i] == turned);
  }
  move_with(&random_apply_transform, list_of(&random_apply_transform, across, down, "0"), 3);
  assert_memory_equal(got.mask, mask, sizeof mask);
  const void *half = list_of(&random_apply_transform, across, down, NULL);
  int seen = count_moves(&random_apply_transform, half, 400, 1, PLANE - 2);
  assert_in_range(seen, 150, 250);
}

static void one_of_a_list_is_chosen_by_its_weight(void **state) {
  (void)state;
  tn_transform_part across = part_of(&random_flip_transform, PAIRS("p", "1"));
  tn_transform_part down = part_of(&random_flip_transform, PAIRS("p", "1", "direction", "vertical"));
  const void *options = list_of(&random_choice_transform, across, down, "[1, 3]");
  int first = count_moves(&random_choice_transform, options, 400, 1, WIDE - 2);
  int second = count_moves(&random_choice_transform, options, 400, 1, (HIGH - 1) * WIDE + 1);
  assert_int_equal(first + second, 400);
  assert_in_range(first, 60, 140);
  options = list_of(&random_choice_transform, across, down, "[0, 1]");
  assert_int_equal(count_moves(&random_choice_transform, options, 50, 1, (HIGH - 1) * WIDE + 1), 50);
}

static void a_list_has_any_order(void **state) {
  (void)state;
  tn_transform_part solarize = part_of(&random_solarize_transform, PAIRS("threshold", "128", "p", "1"));
  tn_transform_part invert = part_of(&random_invert_transform, PAIRS("p", "1"));
  const void *options = list_of(&random_order_transform, solarize, invert, NULL);
  int inverted_first = 0;
  for (int key = 0; key < 400; key++) {
    move_with(&random_order_transform, options, (uint64_t)key);
    int low = bytes[0] < 128, first = got.image[0] == (low ? bytes[0] : 255 - bytes[0]);
    assert_true(first || got.image[0] == (low ? 255 - bytes[0] : bytes[0]));
    for (int i = 0; i < 3 * PLANE; i++) {
      uint8_t x = bytes[i];
      assert_int_equal(got.image[i], first == (x < 128) ? x : 255 - x);
    }
    inverted_first += first;
  }
  assert_in_range(inverted_first, 150, 250);
}

static void refuses_list(const tn_transform *t, const void *options, const char *text) {
  tn_type result[FIELDS];
  assert_int_equal(t->infer(&env, options, 1, types, result), TN_EINVAL);
  if (strstr(tn_error_text(&env), text) == NULL) fail_msg("'%s' lacks '%s'", tn_error_text(&env), text);
}

static void lists_that_do_not_fit_are_refused(void **state) {
  (void)state;
  tn_transform_part flip = part_of(&random_flip_transform, NO_PAIRS);
  tn_transform_part crop = part_of(&center_crop_transform, PAIRS("size", "4"));
  tn_transform_part mix = part_of(&mixup_transform, NO_PAIRS);
  refuses_list(&random_apply_transform, list_of(&random_apply_transform, flip, crop, NULL),
               "the transforms of random_apply give field 0 another type or size");
  refuses_list(&random_choice_transform, list_of(&random_choice_transform, flip, crop, NULL),
               "the transforms of random_choice give field 0 another type or size");
  refuses_list(&random_order_transform, list_of(&random_order_transform, crop, flip, NULL),
               "the transforms of random_order give field 0 another type or size");
  refuses_list(&random_apply_transform, list_of(&random_apply_transform, flip, mix, NULL),
               "mixup works on batches, expected transforms of samples");
  refuses_list(&random_choice_transform, list_of(&random_choice_transform, flip, flip, "[1, 2, 3]"),
               "p has 3 numbers with the sum 6, expected one for each of the 2 transforms");
  refuses_list(&random_choice_transform, list_of(&random_choice_transform, flip, flip, "[0, 0]"),
               "with the sum 0");
  refuses_list(&random_order_transform, options_of(&random_order_transform, PAIRS("transforms", "[]")),
               "transforms is empty, expected some");
}

/* ---- mosaic ---- */

enum {
  SAMPLES = 3,
  MOSAIC_HIGH = 8,
  MOSAIC_WIDE = 12,
  MOSAIC_PLANE = MOSAIC_HIGH * MOSAIC_WIDE,
  MOSAIC_BOXES = 2
};

static struct {
  float image[SAMPLES][MOSAIC_PLANE], boxes[SAMPLES][MOSAIC_BOXES][4];
  int32_t mask[SAMPLES][MOSAIC_PLANE], labels[SAMPLES][MOSAIC_BOXES];
} batch;
static struct {
  float image[SAMPLES][MOSAIC_PLANE], boxes[SAMPLES][4 * MOSAIC_BOXES][4];
  int32_t mask[SAMPLES][MOSAIC_PLANE], labels[SAMPLES][4 * MOSAIC_BOXES];
} pieces;

/* A pixel tells its sample and its place. */
static void run_mosaic(const char *const *pairs, uint64_t key) {
  static const tn_type in_type[4] = {{TN_F32, 4, {SAMPLES, 1, MOSAIC_HIGH, MOSAIC_WIDE}},
                                     {TN_I32, 3, {SAMPLES, MOSAIC_HIGH, MOSAIC_WIDE}},
                                     {TN_F32, 3, {SAMPLES, MOSAIC_BOXES, 4}},
                                     {TN_I32, 2, {SAMPLES, MOSAIC_BOXES}}};
  static const float place[MOSAIC_BOXES][4] = {{1, 1, 5, 4}, {4, 3, 11, 7}};
  const void *options = options_of(&mosaic_transform, pairs);
  const void *const in[4] = {batch.image, batch.mask, batch.boxes, batch.labels};
  void *const to[4] = {pieces.image, pieces.mask, pieces.boxes, pieces.labels};
  tn_type out_type[4];
  for (int s = 0; s < SAMPLES; s++) {
    for (int i = 0; i < MOSAIC_PLANE; i++) {
      batch.mask[s][i] = 100 * s + i;
      batch.image[s][i] = (float)(100 * s + i);
    }
    memcpy(batch.boxes[s], place, sizeof place);
    for (int i = 0; i < MOSAIC_BOXES; i++) batch.labels[s][i] = 10 * s + i;
  }
  memcpy(out_type, in_type, sizeof in_type);
  if (mosaic_transform.infer(&env, options, 4, in_type, out_type) != TN_OK)
    fail_msg("%s", tn_error_text(&env));
  assert_int_equal(tn_type_bytes(&out_type[2]), sizeof pieces.boxes);
  assert_int_equal(tn_type_bytes(&out_type[3]), sizeof pieces.labels);
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = 4,
                            .in_type = in_type,
                            .out_type = out_type,
                            .in = in,
                            .out = to,
                            .key = key,
                            .scratch = &scratch};
  assert_int_equal(mosaic_transform.apply(&call, options), TN_OK);
}

/* The pixels in a box show what the box of its sample has. */
static void check_piece(int sample, int i, int *kept) {
  int from = (sample - i / MOSAIC_BOXES + SAMPLES) % SAMPLES, own = i % MOSAIC_BOXES;
  const float *box = pieces.boxes[sample][i], *whole = batch.boxes[from][own];
  if (pieces.labels[sample][i] == -100) {
    for (int k = 0; k < 4; k++) assert_true(box[k] == 0);
    return;
  }
  ++*kept;
  assert_int_equal(pieces.labels[sample][i], 10 * from + own);
  assert_true(box[2] > box[0] && box[3] > box[1] && box[2] <= MOSAIC_WIDE && box[3] <= MOSAIC_HIGH);
  for (int y = (int)box[1]; y < (int)box[3]; y++)
    for (int x = (int)box[0]; x < (int)box[2]; x++) {
      int shown = pieces.mask[sample][y * MOSAIC_WIDE + x], at = shown % 100;
      assert_int_equal(shown / 100, from);
      assert_true((float)(at % MOSAIC_WIDE) >= whole[0] && (float)(at % MOSAIC_WIDE) < whole[2]);
      assert_true((float)(at / MOSAIC_WIDE) >= whole[1] && (float)(at / MOSAIC_WIDE) < whole[3]);
    }
}

static void a_mosaic_moves_masks_boxes_and_labels_with_its_pictures(void **state) {
  (void)state;
  int kept = 0, whole = 0;
  for (int key = 0; key < 50; key++) {
    run_mosaic(PAIRS("center", "[0, 1]"), (uint64_t)key);
    for (int s = 0; s < SAMPLES; s++) {
      for (int i = 0; i < MOSAIC_PLANE; i++) assert_true(pieces.image[s][i] == (float)pieces.mask[s][i]);
      for (int i = 0; i < 4 * MOSAIC_BOXES; i++) check_piece(s, i, &kept);
    }
    run_mosaic(PAIRS("p", "0"), (uint64_t)key);
    assert_memory_equal(pieces.mask, batch.mask, sizeof batch.mask);
    for (int s = 0; s < SAMPLES; s++) {
      assert_memory_equal(pieces.boxes[s], batch.boxes[s], sizeof batch.boxes[s]);
      for (int i = 0; i < 4 * MOSAIC_BOXES; i++)
        assert_int_equal(pieces.labels[s][i], i < MOSAIC_BOXES ? 10 * s + i : -100);
    }
    run_mosaic(PAIRS("center", "[0.5, 0.5]"), (uint64_t)key);
    for (int i = 0; i < MOSAIC_BOXES; i++) whole += pieces.labels[0][i] == -100;
  }
  assert_in_range(kept, 200, 50 * SAMPLES * 4 * MOSAIC_BOXES - 200);
  assert_int_equal(whole, 50); /* on the upper left only the part right of and below the middle is seen */
}

static void a_mosaic_of_other_fields_is_refused(void **state) {
  (void)state;
  tn_type in[2] = {{TN_F32, 4, {2, 3, 8, 8}}, {TN_I32, 1, {2}}}, result[2];
  const void *options = options_of(&mosaic_transform, NO_PAIRS);
  assert_int_equal(mosaic_transform.infer(&env, options, 2, in, result), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "field 1 is i32 of rank 0, expected a picture or a mask"));
  in[0].rank = 2;
  assert_int_equal(mosaic_transform.infer(&env, options, 1, in, result), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "field 0 has rank 1, expected a picture"));
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
      CASE(perspective_has_the_values_of_torchvision),
      CASE(displacements_have_the_values_of_torchvision),
      CASE(letterbox_is_resize_and_pad_of_torchvision),
      CASE(random_maps_keep_mask_and_picture_together),
      CASE(extreme_options_are_no_crash),
      CASE(placed_pictures_keep_their_boxes),
      CASE(an_iou_crop_keeps_boxes_whose_centre_it_has),
      CASE(random_choices_are_those_of_the_picture),
      CASE(colors_leave_the_other_fields),
      CASE(forms_of_boxes_are_converted),
      CASE(small_boxes_lose_their_labels),
      CASE(several_crops_are_the_corners_and_the_middle),
      CASE(jpeg_has_the_losses_of_torchvision),
      CASE(colors_have_the_values_of_torchvision),
      CASE(noise_is_normal),
      CASE(a_list_is_applied_as_often_as_told),
      CASE(one_of_a_list_is_chosen_by_its_weight),
      CASE(a_list_has_any_order),
      CASE(lists_that_do_not_fit_are_refused),
      CASE(a_mosaic_moves_masks_boxes_and_labels_with_its_pictures),
      CASE(a_mosaic_of_other_fields_is_refused),
      CASE(other_sizes_and_orders_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
