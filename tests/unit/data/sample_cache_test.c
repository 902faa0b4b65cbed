#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/text/text.h"
#include "core/data/loader.h"
#include "core/plugin/handles.h"

/* The sample cache and byte tables: batches are the same with and without them. */

enum { COUNT = 100, BATCH = 8, PIXELS = 3 * 4 * 6 };

static tn_error_record record;
static tn_env env;

static int start(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  return 0;
}

/* ---- pictures, 3 x 4 x (3 + index % 4), that count how often they are read ---- */

typedef struct pictures {
  atomic_int *reads;
  int32_t vary, keep;
} pictures;

typedef struct opened {
  pictures options;
  tn_field fields[2];
} opened;

static tn_status pictures_open(tn_env *e, const void *options, int32_t split, uint64_t seed, void **source) {
  (void)split, (void)seed;
  opened *o = tn_new(e, sizeof(*o));
  if (o == NULL) return TN_ENOMEM;
  o->options = *(const pictures *)options;
  tn_type image = {TN_U8, 3, {3, 4, o->options.vary ? -1 : 6}};
  o->fields[0] = (tn_field){sizeof(tn_field), "image", image, TN_FIELD_INPUT, 0, NULL};
  o->fields[1] = (tn_field){sizeof(tn_field), "label", {TN_I32, 0, {0}}, TN_FIELD_TARGET, 10, NULL};
  *source = o;
  return TN_OK;
}

static void pictures_close(tn_env *e, void *source) { tn_delete(e, source); }

static tn_status pictures_describe(tn_env *e, void *source, tn_description *description) {
  (void)e;
  opened *o = source;
  description->count = COUNT;
  description->n_fields = 2;
  description->fields = o->fields;
  description->keep = o->options.keep;
  return TN_OK;
}

static tn_status pictures_read(tn_sample *s, void *source) {
  const opened *o = source;
  tn_type type = {TN_U8, 3, {3, 4, o->options.vary ? 3 + s->index % 4 : 6}};
  uint8_t *image = tn_sample_field(s, 0, &type);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  tn_rng rng = tn_rng_at((uint64_t)s->index, 0);
  for (int64_t i = 0; i < tn_type_count(&type); i++) image[i] = (uint8_t)tn_rng_below(&rng, 256);
  *label = (int32_t)s->index;
  atomic_fetch_add(o->options.reads, 1);
  return TN_OK;
}

static const tn_source pictures_source = {
    .item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "pictures", "that count how often they are read"),
    .open = pictures_open,
    .close = pictures_close,
    .describe = pictures_describe,
    .read = pictures_read,
};

/* ---- transforms ---- */

/* To 3 x 4 x 6 with zeros, shifted at random. */
static tn_status place_infer(tn_env *e, const void *options, int32_t n, const tn_type *in, tn_type *out) {
  (void)e, (void)options, (void)n, (void)in;
  out[0].dims[2] = 6;
  return TN_OK;
}

static tn_status place_apply(tn_transform_call *c, const void *options) {
  (void)options;
  tn_rng rng = tn_rng_at(c->key, 0);
  int64_t wide = c->in_type[0].dims[2], shift = tn_rng_below(&rng, 3);
  const uint8_t *in = c->in[0];
  uint8_t *out = c->out[0];
  /* a table made once and stored in the scratch memory */
  uint8_t *inverse = tn_transform_scratch(c, 257);
  if (inverse == NULL) return TN_ENOMEM;
  for (int i = 0; inverse[256] == 0 && i < 256; i++) inverse[i] = (uint8_t)(255 - i);
  inverse[256] = 1;
  for (int64_t row = 0; row < 12; row++)
    for (int64_t x = 0; x < 6; x++)
      out[row * 6 + x] = x < shift || x - shift >= wide ? 0 : inverse[in[row * wide + x - shift]];
  return TN_OK;
}

static const tn_transform place = {
    .item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, "place", "for tests"),
    .infer = place_infer,
    .apply = place_apply,
};

/* x / 3 in f32; counts its calls through its options, and may refuse. */
typedef struct third_options {
  atomic_int calls;
  int32_t lists; /* another divisor for each channel */
} third_options;

static tn_status third_infer(tn_env *e, const void *options, int32_t n, const tn_type *in, tn_type *out) {
  (void)e, (void)options, (void)n, (void)in;
  out[0].dtype = TN_F32;
  return TN_OK;
}

static tn_status third_apply(tn_transform_call *c, const void *options) {
  third_options *o = (third_options *)options;
  int64_t channels = c->in_type[0].dims[0], n = tn_type_count(&c->in_type[0]);
  atomic_fetch_add(&o->calls, 1);
  for (int64_t i = 0; i < n; i++)
    ((float *)c->out[0])[i] =
        (float)((const uint8_t *)c->in[0])[i] / (float)(3 + (o->lists ? i / (n / channels) : 0));
  return TN_OK;
}

static tn_status square_infer(tn_env *e, const void *options, int32_t n, const tn_type *in, tn_type *out) {
  (void)e, (void)options, (void)n, (void)in, (void)out;
  return TN_OK;
}

static tn_status square_apply(tn_transform_call *c, const void *options) {
  (void)options;
  for (int64_t i = 0; i < tn_type_count(&c->in_type[0]); i++) {
    float x = ((const float *)c->in[0])[i];
    ((float *)c->out[0])[i] = x * x;
  }
  return TN_OK;
}

/* Accepts pictures of 6 columns only, although it is declared pointwise. */
static tn_status picky_infer(tn_env *e, const void *options, int32_t n, const tn_type *in, tn_type *out) {
  if (in[0].dims[2] != 6) return tn_fail(e, TN_EINVAL, NULL, "six columns are wanted");
  return third_infer(e, options, n, in, out);
}

#define POINTWISE(NAME, INFER, APPLY)                                                                        \
  {                                                                                                          \
    .item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, NAME, "for tests"), .infer = INFER, .apply = APPLY,    \
    .pointwise = 1                                                                                           \
  }
static const tn_transform third = POINTWISE("third", third_infer, third_apply);
static const tn_transform square = POINTWISE("square", square_infer, square_apply);
static const tn_transform picky = POINTWISE("picky", picky_infer, third_apply);
static const tn_transform third_one_by_one = {
    .item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, "third", "for tests"),
    .infer = third_infer,
    .apply = third_apply,
};

/* ---- loading ---- */

static tn_loader_options options_for(const pictures *source, const tn_transform_use *uses, int32_t n) {
  return (tn_loader_options){.source = &pictures_source,
                             .source_options = source,
                             .transforms = uses,
                             .n_transforms = n,
                             .batch = BATCH,
                             .workers = 2,
                             .prefetch = 2,
                             .shuffle = true,
                             .training = true,
                             .pad_last = true,
                             .cache_bytes = 1 << 24,
                             .seed = 5};
}

static tn_loader *make(const tn_loader_options *options) {
  tn_loader *loader;
  if (tn_loader_create(&env, options, &loader) != TN_OK) fail_msg("%s", tn_error_text(&env));
  return loader;
}

/* A hash of all batches of an epoch from batch `first` on, with two batches in flight. */
static uint64_t hash_epoch(tn_loader *loader, int64_t epoch, int64_t first) {
  static float images[2][BATCH * PIXELS];
  static int32_t labels[2][BATCH];
  static int64_t ids[2][BATCH];
  uint64_t hash = TN_HASH_START;
  assert_int_equal(tn_loader_start(loader, epoch, first), TN_OK);
  for (int64_t b = 0;; b++) {
    int64_t samples;
    if (b >= 2) {
      tn_status status = tn_loader_wait(loader, &samples);
      if (status == TN_EOF) return hash;
      assert_int_equal(status, TN_OK);
      hash = tn_hash_bytes(hash, images[b % 2], sizeof(images[0]));
      hash = tn_hash_bytes(hash, labels[b % 2], sizeof(labels[0]));
      hash = tn_hash_bytes(hash, ids[b % 2], sizeof(ids[0]));
    }
    memset(images[b % 2], 0, sizeof(images[0]));
    void *const fields[] = {images[b % 2], labels[b % 2]};
    tn_batch batch = {fields, NULL, ids[b % 2]};
    assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
  }
}

/* Three epochs, the last one from its middle. */
static uint64_t hash_epochs(tn_loader *loader) {
  uint64_t hash = TN_HASH_START;
  for (int64_t epoch = 0; epoch < 3; epoch++) {
    uint64_t part = hash_epoch(loader, epoch, epoch == 2 ? 5 : 0);
    hash = tn_hash_bytes(hash, &part, sizeof(part));
  }
  return hash;
}

static void kept_samples_change_nothing_with_any_memory_and_number_of_workers(void **state) {
  (void)state;
  atomic_int reads = 0;
  pictures source = {&reads, 1, 1};
  static third_options divide;
  const tn_transform_use uses[] = {{.transform = &place}, {.transform = &third, .options = &divide}};
  tn_loader_options options = options_for(&source, uses, 2);
  options.cache_bytes = 0;
  options.workers = 0;
  tn_loader *loader = make(&options);
  uint64_t expected = hash_epochs(loader);
  assert_false(tn_loader_cache(loader).keeps);
  tn_loader_destroy(loader);
  const int64_t sizes[] = {0, 100, 900, 1 << 20, (1 << 20) + 900, 1 << 24};
  const int32_t workers[] = {0, 1, 2, 5};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
    for (size_t k = 0; k < sizeof(workers) / sizeof(*workers); k++) {
      options.cache_bytes = sizes[i];
      options.workers = workers[k];
      loader = make(&options);
      assert_true(hash_epochs(loader) == expected);
      assert_true(tn_loader_cache(loader).bytes <= sizes[i]);
      tn_loader_destroy(loader);
    }
}

static void a_kept_sample_is_read_once(void **state) {
  (void)state;
  for (int32_t vary = 0; vary < 2; vary++) {
    atomic_int reads = 0;
    pictures source = {&reads, vary, 1};
    const tn_transform_use uses[] = {{.transform = &place}};
    tn_loader_options options = options_for(&source, uses, 1);
    options.workers = 1;
    tn_loader *loader = make(&options);
    for (int64_t epoch = 0; epoch < 4; epoch++) hash_epoch(loader, epoch, 0);
    assert_int_equal(reads, COUNT);
    tn_loader_cache_info memory = tn_loader_cache(loader);
    assert_true(memory.keeps && memory.count == COUNT && memory.kept == COUNT && !memory.full);
    tn_loader_destroy(loader);
  }
}

static void where_not_all_have_room_the_others_are_read_again(void **state) {
  (void)state;
  atomic_int reads = 0;
  pictures source = {&reads, 0, 1};
  tn_loader_options options = options_for(&source, NULL, 0);
  options.workers = 1;
  /* one block and the table of addresses, but not a second block */
  options.cache_bytes = (1 << 20) + COUNT * 8 + 1000;
  tn_loader *loader = make(&options);
  for (int64_t epoch = 0; epoch < 2; epoch++) hash_epoch(loader, epoch, 0);
  assert_int_equal(reads, COUNT); /* fits into a block */
  tn_loader_destroy(loader);
  reads = 0;
  options.cache_bytes = 1 << 20; /* too little for the block */
  loader = make(&options);
  for (int64_t epoch = 0; epoch < 2; epoch++) hash_epoch(loader, epoch, 0);
  tn_loader_cache_info memory = tn_loader_cache(loader);
  assert_true(memory.full && memory.kept == 0);
  assert_true(reads >= 2 * COUNT);
  tn_loader_destroy(loader);
}

static void a_source_that_does_not_offer_it_is_read_every_time(void **state) {
  (void)state;
  atomic_int reads = 0;
  pictures source = {&reads, 0, 0};
  tn_loader_options options = options_for(&source, NULL, 0);
  tn_loader *loader = make(&options);
  for (int64_t epoch = 0; epoch < 2; epoch++) hash_epoch(loader, epoch, 0);
  assert_true(reads >= 2 * COUNT);
  assert_false(tn_loader_cache(loader).keeps);
  tn_loader_destroy(loader);
}

/* Refuses large pieces: the blocks. */
static void *small_only(void *context, void *block, size_t size) {
  (void)context;
  if (size >= 1 << 20) return NULL;
  if (size > 0) return realloc(block, size);
  free(block);
  return NULL;
}

static void memory_that_is_refused_only_means_reading_again(void **state) {
  (void)state;
  atomic_int reads = 0;
  pictures source = {&reads, 0, 1};
  tn_loader_options options = options_for(&source, NULL, 0);
  record.allocator = (tn_allocator){NULL, small_only};
  tn_loader *loader = make(&options);
  uint64_t hash = hash_epochs(loader);
  assert_true(tn_loader_cache(loader).full);
  tn_loader_destroy(loader);
  record.allocator = (tn_allocator){NULL, NULL};
  loader = make(&options);
  assert_true(hash_epochs(loader) == hash);
  tn_loader_destroy(loader);
}

/* ---- tables ---- */

static uint64_t hash_with(const tn_transform_use *uses, int32_t n, int32_t vary) {
  static atomic_int reads;
  pictures source = {&reads, vary, 0};
  tn_loader_options options = options_for(&source, uses, n);
  tn_loader *loader = make(&options);
  uint64_t hash = hash_epochs(loader);
  tn_loader_destroy(loader);
  return hash;
}

static void pointwise_transforms_of_bytes_become_a_table_of_the_same_bits(void **state) {
  (void)state;
  for (int32_t lists = 0; lists < 2; lists++)
    for (int32_t vary = 0; vary < 2; vary++) {
      third_options tabled = {0, lists}, plain = {0, lists};
      const tn_transform_use fast[] = {{.transform = &place},
                                       {.transform = &third, .options = &tabled},
                                       {.transform = &square},
                                       {.transform = &square}};
      const tn_transform_use slow[] = {{.transform = &place},
                                       {.transform = &third_one_by_one, .options = &plain},
                                       {.transform = &square},
                                       {.transform = &square}};
      assert_true(hash_with(fast, 4, vary) == hash_with(slow, 4, vary));
      assert_int_equal(tabled.calls, 1); /* for the table, not for samples */
      assert_true(plain.calls > COUNT);
    }
}

static void a_transform_that_refuses_the_ramp_sees_the_samples(void **state) {
  (void)state;
  third_options strict = {0, 1}, plain = {0, 1};
  const tn_transform_use fast[] = {{.transform = &picky, .options = &strict}, {.transform = &square}};
  const tn_transform_use slow[] = {{.transform = &third_one_by_one, .options = &plain},
                                   {.transform = &square}};
  assert_true(hash_with(fast, 2, 0) == hash_with(slow, 2, 0));
  assert_int_equal(strict.calls, plain.calls);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(kept_samples_change_nothing_with_any_memory_and_number_of_workers, start),
      cmocka_unit_test_setup(a_kept_sample_is_read_once, start),
      cmocka_unit_test_setup(where_not_all_have_room_the_others_are_read_again, start),
      cmocka_unit_test_setup(a_source_that_does_not_offer_it_is_read_every_time, start),
      cmocka_unit_test_setup(memory_that_is_refused_only_means_reading_again, start),
      cmocka_unit_test_setup(pointwise_transforms_of_bytes_become_a_table_of_the_same_bits, start),
      cmocka_unit_test_setup(a_transform_that_refuses_the_ramp_sees_the_samples, start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
