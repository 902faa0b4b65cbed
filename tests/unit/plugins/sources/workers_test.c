#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/config/options/options.h"
#include "core/data/loader.h"
#include "core/plugin/handles.h"
#include "plugins/sources/sources.h"
#include "plugins/transforms/transforms.h"

extern const tn_source digits_source;
extern const tn_transform color_jitter_transform, gaussian_blur_transform, grayscale_transform,
    normalize_transform, rand_augment_transform, random_crop_transform, random_erasing_transform,
    random_flip_transform, random_grayscale_transform, random_resized_crop_transform,
    random_rotation_transform, trivial_augment_transform;

/* The complete path: several threads draw and augment digits. */

enum { BATCH = 24, PIXELS = 28 * 28, EPOCH = 240 };

static tn_error_record record;
static tn_env env;
static tn_arena arena;

static const void *options_of(const tn_item *item, const char *const *pairs) {
  tn_options options;
  tn_status status = tn_options_start(&env, &arena, item, &options);
  for (; status == TN_OK && *pairs != NULL; pairs += 2)
    status = tn_options_set_text(&env, &options, pairs[0], pairs[1]);
  if (status == TN_OK) status = tn_options_finish(&env, &options);
  if (status != TN_OK) fail_msg("%s", tn_error_text(&env));
  return options.data;
}
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static tn_loader *make(const tn_transform_use *uses, int32_t n, int32_t workers) {
  tn_loader_options options = {.source = &digits_source,
                               .source_options = options_of(&digits_source.item, PAIRS(NULL)),
                               .transforms = uses,
                               .n_transforms = n,
                               .batch = BATCH,
                               .workers = workers,
                               .prefetch = 2,
                               .training = true,
                               .epoch_samples = EPOCH,
                               .seed = 3};
  tn_loader *loader;
  if (tn_loader_create(&env, &options, &loader) != TN_OK) fail_msg("%s", tn_error_text(&env));
  return loader;
}

static uint64_t hash_epoch(tn_loader *loader, int64_t epoch, int64_t first) {
  static float images[2][BATCH * PIXELS];
  static int32_t labels[2][BATCH];
  uint64_t hash = TN_HASH_START;
  assert_int_equal(tn_loader_start(loader, epoch, first), TN_OK);
  for (int64_t b = first; b < EPOCH / BATCH + 2; b++) {
    void *const fields[] = {images[b % 2], labels[b % 2]};
    if (b >= first + 2) {
      int64_t samples;
      assert_int_equal(tn_loader_wait(loader, &samples), TN_OK);
      hash = tn_hash_bytes(hash, images[b % 2], sizeof(images[0]));
      hash = tn_hash_bytes(hash, labels[b % 2], sizeof(labels[0]));
    }
    tn_batch batch = {fields, NULL, NULL};
    assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
  }
  return hash;
}

static void pictures_do_not_depend_on_the_number_of_workers(void **state) {
  (void)state;
  static const int32_t workers[] = {0, 1, 4};
  tn_error_record_init_root(&env, &record, &tn_host_api);
  arena = tn_arena_new(&env);
  const tn_transform_use uses[] = {
      {.transform = &random_crop_transform,
       .options = options_of(&random_crop_transform.item, PAIRS("size", "28", "padding", "2"))},
      {.transform = &random_flip_transform, .options = options_of(&random_flip_transform.item, PAIRS(NULL))},
      {.transform = &color_jitter_transform,
       .options = options_of(&color_jitter_transform.item, PAIRS("brightness", "0.4", "contrast", "0.4"))},
      {.transform = &rand_augment_transform,
       .options = options_of(&rand_augment_transform.item, PAIRS(NULL))},
      {.transform = &trivial_augment_transform,
       .options = options_of(&trivial_augment_transform.item, PAIRS(NULL))},
      {.transform = &grayscale_transform,
       .options = options_of(&grayscale_transform.item, PAIRS("num_output_channels", "3"))},
      {.transform = &random_grayscale_transform,
       .options = options_of(&random_grayscale_transform.item, PAIRS("p", "0.5"))},
      {.transform = &grayscale_transform, .options = options_of(&grayscale_transform.item, PAIRS(NULL))},
      {.transform = &random_rotation_transform,
       .options = options_of(&random_rotation_transform.item, PAIRS("degrees", "20"))},
      {.transform = &gaussian_blur_transform,
       .options = options_of(&gaussian_blur_transform.item, PAIRS(NULL))},
      {.transform = &random_resized_crop_transform,
       .options = options_of(&random_resized_crop_transform.item, PAIRS("size", "28"))},
      {.transform = &normalize_transform,
       .options = options_of(&normalize_transform.item, PAIRS("mean", "0.1", "std", "0.3"))},
      {.transform = &random_erasing_transform,
       .options = options_of(&random_erasing_transform.item, PAIRS("noise", "yes"))}};
  uint64_t whole = 0, second = 0, part = 0;
  for (int i = 0; i < 3; i++) {
    tn_loader *loader = make(uses, sizeof uses / sizeof *uses, workers[i]);
    uint64_t w = hash_epoch(loader, 0, 0), s = hash_epoch(loader, 1, 0), p = hash_epoch(loader, 1, 7);
    if (i == 0) whole = w, second = s, part = p;
    assert_true(w == whole && s == second && p == part);
    assert_true(w != s && s != p);
    tn_loader_destroy(loader);
  }
  tn_arena_free(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pictures_do_not_depend_on_the_number_of_workers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
