/* Epochs that a limit shortens, and epochs in which every class comes equally often. */
#include <math.h>

#include "tests/unit/data/loader_rig.h"

/* ---- shorter epochs ---- */

static void expect_epoch(const tn_loader_options *options, int64_t samples, int64_t batches) {
  tn_loader *loader = make(options);
  assert_int_equal(tn_loader_samples(loader), samples);
  assert_int_equal(tn_loader_batches(loader), batches);
  tn_loader_destroy(loader);
}

static void a_limit_counts_batches_or_is_a_part(void **state) {
  (void)state;
  numbers source = {.count = 103};
  tn_loader_options options = options_for(&source); /* batches of 4 */
  expect_epoch(&options, 103, 25);
  options.limit = (tn_epoch_limit){.batches = 10};
  expect_epoch(&options, 40, 10);
  options.limit = (tn_epoch_limit){.batches = 26};
  expect_epoch(&options, 103, 25);
  options.limit = (tn_epoch_limit){.part = 1.0};
  expect_epoch(&options, 103, 25);
  options.limit = (tn_epoch_limit){.part = 0.2};
  expect_epoch(&options, 20, 5);
  options.limit = (tn_epoch_limit){.part = 1e-6}; /* at least one */
  expect_epoch(&options, 4, 1);
  options.pad_last = true;
  options.limit = (tn_epoch_limit){.batches = 26};
  expect_epoch(&options, 103, 26);
  options.accumulate = 3;
  options.limit = (tn_epoch_limit){.batches = 10}; /* three whole updates of 12 samples */
  expect_epoch(&options, 36, 9);
  options.shards = 2; /* batches of all shards together have 8 samples */
  expect_epoch(&options, 72, 9);
}

/* 0.29 * 100 is 28.999999999999996 in binary fractions. */
static void a_part_is_not_a_batch_short_by_rounding(void **state) {
  (void)state;
  numbers source = {.count = 400};
  tn_loader_options options = options_for(&source);
  options.limit = (tn_epoch_limit){.part = 0.29};
  expect_epoch(&options, 116, 29);
}

static void a_limit_shortens_the_epoch_of_a_stream_too(void **state) {
  (void)state;
  numbers source = {.count = -1, .epoch = 40};
  tn_loader_options options = options_for(&source);
  options.limit = (tn_epoch_limit){.part = 0.5};
  expect_epoch(&options, 20, 5);
}

/* ---- folds ---- */

/* Marks the samples of an epoch, each of which comes once. */
static void mark_samples(const tn_loader_options *options, int64_t samples, int *seen) {
  tn_loader *loader = make(options);
  room r;
  assert_int_equal(tn_loader_samples(loader), samples);
  for (int64_t done = 0; done < samples;) {
    tn_batch batch = batch_in(&r);
    int64_t n;
    assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
    assert_int_equal(tn_loader_wait(loader, &n), TN_OK);
    for (int64_t i = 0; i < n; i++) seen[r.y[i]]++;
    done += n;
  }
  tn_loader_destroy(loader);
}

/* Every fold holds out other samples, and trains on the rest; another seed changes neither. */
static void folds_divide_the_samples(void **state) {
  (void)state;
  numbers source = {.count = 10};
  int held_out[10] = {0};
  for (int32_t part = 1; part <= 3; part++) {
    int both[10] = {0};
    int64_t size = part == 1 ? 4 : 3;
    tn_loader_options options = options_for(&source);
    options.pad_last = true;
    options.fold = (tn_data_fold){.part = part, .parts = 3, .held_out = true};
    mark_samples(&options, size, held_out);
    mark_samples(&options, size, both);
    options.seed++;
    options.shuffle = true;
    options.fold.held_out = false;
    mark_samples(&options, 10 - size, both);
    for (int i = 0; i < 10; i++) assert_int_equal(both[i], 1);
  }
  for (int i = 0; i < 10; i++) assert_int_equal(held_out[i], 1);
}

static void folds_need_samples_to_divide(void **state) {
  (void)state;
  tn_loader *loader;
  numbers few = {.count = 2}, endless = {.count = -1, .epoch = 40};
  tn_loader_options options = options_for(&few);
  options.fold = (tn_data_fold){.part = 1, .parts = 3};
  assert_int_equal(tn_loader_create(&env, &options, &loader), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "fold = 1/3: it has 2 samples, fewer than parts"));
  options = options_for(&endless);
  options.fold = (tn_data_fold){.part = 1, .parts = 3};
  assert_int_equal(tn_loader_create(&env, &options, &loader), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "fold = 1/3: it is"));
}

/* ---- balance ---- */

/* The class of a sample, as the source numbers tells it: 0 for 9, 1 for 3, 2 for 5. */
static int class_at(int64_t index) { return index < 2 ? 0 : index < 8 ? 1 : 2; }

static tn_loader_options balanced_options(const numbers *source) {
  tn_loader_options options = options_for(source);
  options.shuffle = options.balance = true;
  return options;
}

/* The indices of an epoch from batch `first` on, in order; returns how many. */
static int64_t read_indices(tn_loader *loader, int64_t epoch, int64_t first, int64_t *ids, float *keys) {
  static room r;
  int64_t n = 0, samples;
  assert_int_equal(tn_loader_start(loader, epoch, first), TN_OK);
  while (next(loader, &r, &samples) == TN_OK)
    for (int64_t i = 0; i < samples; i++, n++) {
      ids[n] = r.ids[i];
      if (keys != NULL) keys[n] = r.x[4 * i + 1];
    }
  return n;
}

static void every_class_comes_equally_often(void **state) {
  (void)state;
  numbers source = {.count = 60};
  tn_loader_options options = balanced_options(&source);
  tn_loader *loader = make(&options);
  int64_t ids[60], seen[60] = {0}, all[3] = {0};
  for (int64_t epoch = 0; epoch < 4; epoch++) {
    int64_t count[3] = {0};
    assert_int_equal(read_indices(loader, epoch, 0, ids, NULL), 60);
    for (int i = 0; i < 60; i++) {
      count[class_at(ids[i])]++;
      all[class_at(ids[i])]++;
      seen[ids[i]]++;
    }
    for (int c = 0; c < 3; c++) assert_int_equal(count[c], 20);
  }
  for (int c = 0; c < 3; c++) assert_int_equal(all[c], 80);
  /* in their class, samples differ by one appearance at most: 80 of 2, of 6 and of 52 */
  for (int64_t i = 0; i < 60; i++) {
    int64_t size = i < 2 ? 2 : i < 8 ? 6 : 52;
    assert_in_range(seen[i], 80 / size, (80 + size - 1) / size);
  }
  tn_loader_destroy(loader);
}

/* Epochs whose length is no multiple of the classes make up for one another. */
static void classes_are_even_over_epochs_of_any_length(void **state) {
  (void)state;
  numbers source = {.count = 60};
  tn_loader_options options = balanced_options(&source);
  options.epoch_samples = 20;
  tn_loader *loader = make(&options);
  int64_t ids[60], all[3] = {0};
  for (int64_t epoch = 0; epoch < 3; epoch++) {
    int64_t count[3] = {0};
    assert_int_equal(read_indices(loader, epoch, 0, ids, NULL), 20);
    for (int i = 0; i < 20; i++) count[class_at(ids[i])]++;
    for (int c = 0; c < 3; c++) {
      assert_in_range(count[c], 6, 7);
      all[c] += count[c];
    }
  }
  for (int c = 0; c < 3; c++) assert_int_equal(all[c], 20);
  tn_loader_destroy(loader);
}

/* A sample that comes again is augmented otherwise. */
static void a_repeated_sample_has_another_key(void **state) {
  (void)state;
  numbers source = {.count = 60};
  tn_loader_options options = balanced_options(&source);
  tn_loader *loader = make(&options);
  int64_t ids[60];
  float keys[60];
  int pairs = 0;
  read_indices(loader, 0, 0, ids, keys);
  for (int i = 0; i < 60; i++)
    for (int k = 0; k < i; k++)
      if (ids[i] == ids[k]) {
        pairs++;
        assert_true(keys[i] != keys[k]);
      }
  assert_true(pairs > 50);
  tn_loader_destroy(loader);
}

static void a_balanced_order_depends_on_seed_and_epoch_alone(void **state) {
  (void)state;
  numbers source = {.count = 60};
  tn_loader_options options = balanced_options(&source);
  tn_loader *loader = make(&options);
  uint64_t whole = hash_epoch(loader, 3, 0), rest = hash_epoch(loader, 3, 7),
           other = hash_epoch(loader, 4, 0);
  tn_loader_destroy(loader);
  assert_true(whole != other);
  options.workers = 3;
  loader = make(&options);
  assert_true(hash_epoch(loader, 3, 0) == whole);
  assert_true(hash_epoch(loader, 3, 7) == rest);
  tn_loader_destroy(loader);
  options.seed = 8;
  loader = make(&options);
  assert_true(hash_epoch(loader, 3, 0) != whole);
  tn_loader_destroy(loader);
}

/* Two shards of half the size have the samples of one. */
static void shards_of_a_balanced_epoch_divide_its_order(void **state) {
  (void)state;
  numbers source = {.count = 60};
  tn_loader_options options = balanced_options(&source);
  tn_loader *loader = make(&options);
  int64_t whole[60], parts[2][60];
  int64_t n = read_indices(loader, 2, 0, whole, NULL);
  tn_loader_destroy(loader);
  options.batch = 2;
  options.shards = 2;
  for (options.shard = 0; options.shard < 2; options.shard++) {
    loader = make(&options);
    assert_int_equal(read_indices(loader, 2, 0, parts[options.shard], NULL), n / 2);
    tn_loader_destroy(loader);
  }
  for (int64_t i = 0; i < n; i++) assert_int_equal(whole[i], parts[i / 2 % 2][i / 4 * 2 + i % 2]);
}

static void a_source_that_cannot_be_balanced_is_refused(void **state) {
  (void)state;
  numbers source = {.count = -1, .epoch = 40};
  tn_loader_options options = balanced_options(&source);
  refuses(&options, TN_EINVAL, "a.ini:3: source 'numbers': balance = yes: it is endless");
  source = (numbers){.count = 40};
  options.shuffle = false;
  refuses(&options, TN_EINVAL, "balance = yes draws samples at random");
  options.shuffle = true;
  source.odd_class = 1;
  refuses(&options, TN_EABI, "class_of gives sample 0 class 10, expected 0 to 9");
  tn_source silent = numbers_source;
  silent.class_of = NULL;
  source.odd_class = 0;
  options.source = &silent;
  refuses(&options, TN_EINVAL, "it does not tell the classes of its samples");
}

/* ---- weights ---- */

/* Samples 0 to 19 have the weights 0, 1, 2, 3 in turn. */
static const double twenty_weights[20] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};

static tn_loader_options weighted_options(const numbers *source) {
  tn_loader_options options = options_for(source);
  options.shuffle = true;
  return options;
}

/* 12,000 draws: by weight 1 one thirtieth of them, 400. The orders are fixed by the seed, so the counts are
 * the same in every run; 6 deviations of a binomial distribution are 120. */
static void samples_come_in_proportion_to_their_weights(void **state) {
  (void)state;
  numbers source = {.count = 20, .weights = twenty_weights};
  tn_loader_options options = weighted_options(&source);
  tn_loader *loader = make(&options);
  assert_true(tn_loader_is_weighted(loader));
  int64_t ids[20], seen[20] = {0};
  float keys[20];
  for (int64_t epoch = 0; epoch < 600; epoch++) {
    assert_int_equal(read_indices(loader, epoch, 0, ids, keys), 20);
    for (int i = 0; i < 20; i++) seen[ids[i]]++;
    for (int i = 0; i < 20 && epoch == 0; i++) /* a sample that comes again has another key */
      for (int k = 0; k < i; k++) assert_true(ids[i] != ids[k] || keys[i] != keys[k]);
  }
  for (int i = 0; i < 20; i++) {
    int64_t expected = (int64_t)(400 * twenty_weights[i]);
    assert_in_range(seen[i], expected - expected / 3, expected + expected / 3);
  }
  tn_loader_destroy(loader);
}

static void a_weighted_order_depends_on_seed_and_epoch_alone(void **state) {
  (void)state;
  numbers source = {.count = 20, .weights = twenty_weights};
  tn_loader_options options = weighted_options(&source);
  tn_loader *loader = make(&options);
  uint64_t whole = hash_epoch(loader, 3, 0), rest = hash_epoch(loader, 3, 2);
  assert_true(whole != hash_epoch(loader, 4, 0));
  tn_loader_destroy(loader);
  options.workers = 3;
  loader = make(&options);
  assert_true(hash_epoch(loader, 3, 0) == whole);
  assert_true(hash_epoch(loader, 3, 2) == rest);
  tn_loader_destroy(loader);
}

static void validation_reads_every_sample_of_a_weighted_source(void **state) {
  (void)state;
  numbers source = {.count = 20, .weights = twenty_weights};
  tn_loader_options options = options_for(&source);
  options.training = false;
  tn_loader *loader = make(&options);
  int64_t ids[20];
  assert_false(tn_loader_is_weighted(loader));
  assert_int_equal(read_indices(loader, 0, 0, ids, NULL), 20);
  for (int i = 0; i < 20; i++) assert_int_equal(ids[i], i);
  tn_loader_destroy(loader);
}

static void weights_that_are_none_are_refused(void **state) {
  (void)state;
  static const double negative[4] = {1, -2, 1, 1}, infinite[4] = {1, 1, HUGE_VAL, 1}, none[4] = {0};
  numbers source = {.count = 4, .weights = negative};
  tn_loader_options options = weighted_options(&source);
  refuses(&options, TN_EINVAL, "a.ini:3: source 'numbers': sample 1 has weight -2, expected a finite number");
  source.weights = infinite;
  refuses(&options, TN_EINVAL, "sample 2 has weight inf");
  source.weights = none;
  refuses(&options, TN_EINVAL, "all 4 samples have weight 0");
  source.weights = twenty_weights;
  options.shuffle = false;
  refuses(&options, TN_EINVAL, "are drawn at random by them, which shuffle = no excludes");
  options.shuffle = options.balance = true;
  refuses(&options, TN_EINVAL, "which balance = yes excludes");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_limit_counts_batches_or_is_a_part, start),
      cmocka_unit_test_setup(a_part_is_not_a_batch_short_by_rounding, start),
      cmocka_unit_test_setup(a_limit_shortens_the_epoch_of_a_stream_too, start),
      cmocka_unit_test_setup(folds_divide_the_samples, start),
      cmocka_unit_test_setup(folds_need_samples_to_divide, start),
      cmocka_unit_test_setup(every_class_comes_equally_often, start),
      cmocka_unit_test_setup(classes_are_even_over_epochs_of_any_length, start),
      cmocka_unit_test_setup(a_repeated_sample_has_another_key, start),
      cmocka_unit_test_setup(a_balanced_order_depends_on_seed_and_epoch_alone, start),
      cmocka_unit_test_setup(shards_of_a_balanced_epoch_divide_its_order, start),
      cmocka_unit_test_setup(a_source_that_cannot_be_balanced_is_refused, start),
      cmocka_unit_test_setup(samples_come_in_proportion_to_their_weights, start),
      cmocka_unit_test_setup(a_weighted_order_depends_on_seed_and_epoch_alone, start),
      cmocka_unit_test_setup(validation_reads_every_sample_of_a_weighted_source, start),
      cmocka_unit_test_setup(weights_that_are_none_are_refused, start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
