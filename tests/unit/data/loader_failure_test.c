/* Loaders that fail, are stopped, or leave transforms to the device. */
#include <math.h>

#include "tests/support/await.h"
#include "tests/support/test_clock.h"
#include "tests/unit/data/loader_rig.h"

static void an_unreadable_sample_is_named(void **state) {
  (void)state;
  for (int32_t workers = 0; workers <= 4; workers += 4) {
    numbers source = {.count = 40, .fail_at = 5};
    tn_loader_options options = options_for(&source);
    options.workers = workers;
    options.batch = 16;
    tn_loader *loader = make(&options);
    room r;
    int64_t samples;
    assert_int_equal(next(loader, &r, &samples), TN_EIO);
    assert_string_equal(tn_error_text(&env), "a.ini:3: source 'numbers', sample 5: number 5 is broken");
    tn_loader_destroy(loader);
  }
}

static int count_in(const char *text, const char *word) {
  int n = 0;
  while ((text = strstr(text, word)) != NULL) text++, n++;
  return n;
}

/* Of 40 samples the last two cannot be read, so that the first one takes their places. */
static void corrupt_samples_are_named_once_and_replaced(void **state) {
  (void)state;
  static struct {
    float x[160];
    int32_t y[40];
    int64_t ids[40];
  } r;
  void *fields[] = {r.x, r.y};
  for (int32_t workers = 0; workers <= 4; workers += 4) {
    test_env log;
    int64_t samples;
    tn_loader *loader;
    numbers source = {.count = 40, .corrupt_from = 38, .corrupt_to = 40};
    tn_loader_options options = options_for(&source);
    options.workers = workers;
    options.batch = 40;
    options.skip_corrupt = true;
    test_env_start(&log);
    log.env.api = &tn_host_api;
    assert_int_equal(tn_loader_create(&log.env, &options, &loader), TN_OK);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
      const tn_batch batch = {fields, NULL, r.ids};
      assert_int_equal(tn_loader_start(loader, epoch, 0), TN_OK);
      assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
      assert_int_equal(tn_loader_wait(loader, &samples), TN_OK);
      for (int k = 0; k < 40; k++) assert_true(r.y[k] == k % 38 * (k < 38) && r.ids[k] == r.y[k]);
    }
    assert_int_equal(count_in(log.log, "\n"), 2);
    assert_int_equal(count_in(log.log, "a.ini:3: source 'numbers', sample 39: number 39 is corrupt; the next "
                                       "sample takes its place (corrupt = skip)\n"),
                     1);
    tn_loader_destroy(loader);
  }
}

static void a_thousand_corrupt_samples_in_a_row_are_an_error(void **state) {
  (void)state;
  numbers source = {.count = 3000, .corrupt_to = 2000};
  tn_loader_options options = options_for(&source);
  options.skip_corrupt = true;
  test_env log;
  room r;
  int64_t samples;
  tn_loader *loader;
  test_env_start(&log);
  log.env.api = &tn_host_api;
  assert_int_equal(tn_loader_create(&log.env, &options, &loader), TN_OK);
  assert_int_equal(next(loader, &r, &samples), TN_EINVAL);
  if (strstr(tn_error_text(&log.env),
             "1000 samples in a row cannot be read, the last of them: a.ini:3: source "
             "'numbers', sample 1000: number 1000 is corrupt") == NULL)
    fail_msg("%s", tn_error_text(&log.env));
  tn_loader_destroy(loader);
}

/* The sample that hangs is read by a worker while the stop is requested; or a restart does not need it. */
static void a_sample_that_takes_long_ends_with_the_run(void **state) {
  (void)state;
  enum { COUNT = 40, HANGS = 5 };
  atomic_int stop = 0, reads[COUNT] = {0};
  numbers source = {.count = COUNT, .hang_at = HANGS, .reads = reads};
  tn_loader_options options = options_for(&source);
  options.workers = 2;
  options.stop = &stop;
  tn_loader *loader = make(&options);
  room r, other;
  int64_t samples;
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  tn_batch batch = batch_in(&other);
  assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
  AWAIT(atomic_load(&reads[HANGS]) == 1);
  assert_int_equal(tn_loader_start(loader, 0, 0), TN_OK);
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
  AWAIT(atomic_load(&reads[HANGS]) == 2);
  atomic_store(&stop, 1);
  assert_int_equal(tn_loader_wait(loader, &samples), TN_ESTOPPED);
  assert_int_equal(next(loader, &r, &samples), TN_ESTOPPED); /* no sample is read any more */
  tn_loader_destroy(loader);
}

/* As of a rank that has to come to the step at which all stop: samples that come in time are taken. */
static void with_patience_a_stop_ends_what_takes_long(void **state) {
  (void)state;
  atomic_int stop = 1;
  test_clock_hold();
  for (int32_t workers = 0; workers <= 2; workers += 2) {
    atomic_int taken = 0; /* the samples that come in time */
    numbers source = {.count = 40, .hang_at = 5, .hang_s = 0.25, .hang_from = &taken};
    tn_loader_options options = options_for(&source);
    options.workers = workers;
    options.stop = &stop;
    options.patience_s = 0.2;
    tn_loader *loader = make(&options);
    room r;
    int64_t samples;
    assert_int_equal(next(loader, &r, &samples), TN_OK);
    atomic_store(&taken, 1);
    assert_int_equal(next(loader, &r, &samples), TN_ESTOPPED);
    tn_loader_destroy(loader);
  }
  test_clock_run();
}

static void a_failing_transform_is_named(void **state) {
  (void)state;
  const tn_transform_use uses[] = {{.transform = &picky_transform, .where = "a.ini:9"}};
  numbers source = {.count = 40};
  tn_loader_options options = options_for(&source);
  options.transforms = uses;
  options.n_transforms = 1;
  tn_loader *loader = make(&options);
  room r;
  int64_t samples;
  assert_int_equal(next(loader, &r, &samples), TN_OK);
  assert_int_equal(next(loader, &r, &samples), TN_EINVAL);
  assert_string_equal(tn_error_text(&env), "a.ini:9: transform 'picky', sample 5: five is not to its taste");
  assert_int_equal(next(loader, &r, &samples), TN_OK); /* the batch after it is fine */
  tn_loader_destroy(loader);
}

/* ---- transforms on the device ---- */

static const tn_transform_use tossed[] = {
    {.transform = &shift_transform}, {.transform = &toss_transform}, {.transform = &pass_transform}};

/* Room for a batch with draws. */
typedef struct drawn_room {
  room plain;
  int32_t draws[MOST];
  void *fields[3];
} drawn_room;

static tn_status next_drawn(tn_loader *loader, drawn_room *r, int64_t *samples) {
  tn_batch batch = batch_in(&r->plain);
  memcpy(r->fields, r->plain.fields, sizeof r->plain.fields);
  r->fields[2] = r->draws;
  memset(r->draws, 0, sizeof r->draws);
  batch.fields = r->fields;
  assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
  return tn_loader_wait(loader, samples);
}

/* The batch ends in front of the transforms on the device; their draws are the numbers that they add on the
 * host. */
static void a_batch_for_the_device_has_its_draws(void **state) {
  (void)state;
  numbers source = {.count = 10};
  tn_loader_options options = options_for(&source);
  options.transforms = tossed;
  options.n_transforms = 3;
  options.pad_last = true;
  options.shuffle = true;
  for (int32_t workers = 0; workers < 3; workers++) {
    options.workers = workers;
    options.device_transforms = 0;
    tn_loader *host = make(&options);
    options.device_transforms = 2;
    tn_loader *device = make(&options);
    assert_int_equal(tn_loader_field_count(host), 2);
    assert_int_equal(tn_loader_field_count(device), 3);
    assert_string_equal(tn_loader_field(device, 2)->name, "draws.1");
    assert_true(tn_type_equal(&tn_loader_field(device, 2)->type, &(tn_type){TN_I32, 1, {1}}));
    assert_int_equal(tn_loader_chain(device)->n_device_stages, 2);
    room expected;
    drawn_room got;
    int64_t samples;
    for (int b = 0; b < 3; b++) {
      assert_int_equal(next(host, &expected, &samples), TN_OK);
      assert_int_equal(next_drawn(device, &got, &samples), TN_OK);
      for (int i = 0; i < 4; i++) {
        assert_true(got.plain.x[4 * i] == 1000 + (float)got.plain.ids[i]);
        /* the draw is the integer part of 1000 times what the host adds, which is rounded */
        assert_true(fabsf(1000 * (expected.x[4 * i] - got.plain.x[4 * i]) - (float)got.draws[i] - 0.5f) <
                    0.6f);
      }
    }
    assert_int_equal(got.draws[3], got.draws[2]); /* padding repeats a sample */
    tn_loader_destroy(host);
    tn_loader_destroy(device);
  }
}

static void validation_has_no_draws(void **state) {
  (void)state;
  numbers source = {.count = 10};
  tn_loader_options options = options_for(&source);
  options.transforms = tossed;
  options.n_transforms = 3;
  options.training = false;
  options.device_transforms = 2;
  tn_loader *loader = make(&options);
  assert_int_equal(tn_loader_field_count(loader), 2);
  assert_int_equal(tn_loader_chain(loader)->n_device_stages, 1);
  assert_false(tn_transform_chain_on_device(tn_loader_chain(loader), 1));
  assert_true(tn_transform_chain_on_device(tn_loader_chain(loader), 2));
  tn_loader_destroy(loader);
}

/* More than there are stands for all. */
static void a_suffix_ends_at_a_transform_that_has_no_build(void **state) {
  (void)state;
  const tn_transform_use varying[] = {{.transform = &pass_transform, .where = "a.ini:9"},
                                      {.transform = &fix_transform, .where = "a.ini:9"},
                                      {.transform = &pass_transform}};
  numbers source = {.count = 10}, vary = {.count = 10, .vary = 1};
  tn_loader_options options = options_for(&source);
  options.transforms = tossed;
  options.n_transforms = 3;
  options.device_transforms = 3;
  refuses(&options, TN_EINVAL,
          "transform 'shift' has no form for the device (build), so it runs on the host, with all before it; "
          "device_transforms = 3, expected at most 2");
  options.device_transforms = TN_DEVICE_TRANSFORMS_AUTO;
  tn_loader *loader = make(&options);
  assert_int_equal(tn_loader_chain(loader)->n_device_stages, 2);
  assert_string_equal(tn_loader_chain(loader)->not_on_device, "has no form for the device (build)");
  tn_loader_destroy(loader);
  options.transforms = varying;
  options.device_transforms = 5;
  refuses(&options, TN_EINVAL, "a.ini:9: transform 'fix' has no form for the device");
  options.transforms = tossed + 1;
  options.n_transforms = 2;
  loader = make(&options);
  assert_int_equal(tn_loader_chain(loader)->n_device_stages, 2);
  tn_loader_destroy(loader);
  tn_transform fix_with_build = fix_transform;
  fix_with_build.build = pass_transform.build;
  const tn_transform_use fixing[] = {{.transform = &fix_with_build, .where = "a.ini:9"}};
  options.source_options = &vary;
  options.transforms = fixing;
  options.n_transforms = 1;
  refuses(&options, TN_EINVAL, "a.ini:9: transform 'fix' takes samples whose size varies");
}

static void a_draw_that_fails_is_named(void **state) {
  (void)state;
  const tn_transform_use uses[] = {{.transform = &toss_transform, .options = "", .where = "a.ini:9"}};
  numbers source = {.count = 40};
  tn_loader_options options = options_for(&source);
  options.transforms = uses;
  options.n_transforms = 1;
  options.device_transforms = 1;
  tn_loader *loader = make(&options);
  drawn_room r;
  int64_t samples;
  assert_int_equal(next_drawn(loader, &r, &samples), TN_OK);
  assert_int_equal(next_drawn(loader, &r, &samples), TN_EINVAL);
  assert_string_equal(tn_error_text(&env), "a.ini:9: transform 'toss', sample 5: five is not to its taste");
  tn_loader_destroy(loader);
}

static void a_field_that_the_source_forgets_is_an_error(void **state) {
  (void)state;
  numbers source = {.count = 40, .forget = 1};
  tn_loader_options options = options_for(&source);
  tn_loader *loader = make(&options);
  room r;
  int64_t samples;
  assert_int_equal(next(loader, &r, &samples), TN_EABI);
  assert_non_null(strstr(tn_error_text(&env), "field 'y'"));
  tn_loader_destroy(loader);
}

static void wrong_settings_are_refused_with_a_reason(void **state) {
  (void)state;
  static const char *const z[] = {"z"}, *const twice[] = {"x", "x"};
  const tn_transform_use unknown = {
      .transform = &shift_transform, .fields = z, .n_fields = 1, .where = "a.ini:8"};
  const tn_transform_use doubled = {.transform = &shift_transform, .fields = twice, .n_fields = 2};
  const tn_transform_use late[] = {{.transform = &reverse_transform}, {.transform = &shift_transform}};
  numbers source = {.count = 10}, endless = {.count = -1}, empty = {.count = 0},
          vary = {.count = 10, .vary = 1};
  tn_loader_options good = options_for(&source), bad = good;
  bad.batch = 0;
  refuses(&bad, TN_EINVAL, "batch is 0, expected >= 1");
  bad = good, bad.batch = 11;
  refuses(&bad, TN_EINVAL, "do not fill one batch of 11");
  bad = good, bad.workers = -1;
  refuses(&bad, TN_EINVAL, "workers is -1");
  bad = good, bad.source_options = &endless;
  refuses(&bad, TN_EINVAL, "endless");
  bad = good, bad.source_options = &empty;
  refuses(&bad, TN_EINVAL, "a.ini:3: source 'numbers': it has no samples");
  bad = good, bad.source_options = &vary;
  refuses(&bad, TN_EINVAL, "field 'x' is f32[?]");
  bad = good, bad.source = &numbers_stream, bad.shuffle = true;
  refuses(&bad, TN_EINVAL, "shuffle = no");
  bad = good, bad.transforms = &unknown, bad.n_transforms = 1;
  refuses(&bad, TN_EINVAL, "a.ini:8: transform 'shift': the source has no field 'z'; it has: x, y");
  bad = good, bad.transforms = &doubled, bad.n_transforms = 1;
  refuses(&bad, TN_EINVAL, "named twice");
  bad = good, bad.transforms = late, bad.n_transforms = 2;
  refuses(&bad, TN_EINVAL, "before the transforms that work on batches");
}

static void batches_out_of_turn_are_refused(void **state) {
  (void)state;
  numbers source = {.count = 40};
  tn_loader_options options = options_for(&source);
  tn_loader *loader = make(&options);
  room rooms[3];
  int64_t samples;
  assert_int_equal(tn_loader_wait(loader, &samples), TN_EINTERNAL);
  for (int i = 0; i < 3; i++) {
    tn_batch batch = batch_in(&rooms[i]);
    assert_int_equal(tn_loader_submit(loader, &batch), i < 2 ? TN_OK : TN_EINTERNAL);
  }
  assert_int_equal(tn_loader_start(loader, 0, 11), TN_EINVAL);
  assert_int_equal(tn_loader_start(loader, -1, 0), TN_EINVAL);
  tn_loader_destroy(loader);
}

static void survive_refused_allocations(const tn_transform_use *uses, int32_t on_device, bool balance) {
  tn_status status = TN_ENOMEM;
  for (int allowed = 0; status != TN_OK; allowed++) {
    test_env t;
    test_env_start(&t);
    t.env.api = env.api;
    test_env_allow(&t, allowed);
    numbers source = {.count = 10};
    tn_loader_options options = options_for(&source);
    options.transforms = uses;
    options.n_transforms = 3;
    options.device_transforms = on_device;
    options.shuffle = options.balance = balance;
    tn_loader *loader;
    status = tn_loader_create(&t.env, &options, &loader);
    if (status == TN_OK) {
      drawn_room r;
      int64_t samples;
      status = next_drawn(loader, &r, &samples);
      tn_loader_destroy(loader);
    }
    assert_true(status == TN_OK || status == TN_ENOMEM);
    assert_int_equal(t.live, 0);
    assert_true(allowed < 200);
  }
}

static void every_refused_allocation_is_survived(void **state) {
  (void)state;
  const tn_transform_use uses[] = {
      {.transform = &shift_transform}, {.transform = &shift_transform}, {.transform = &reverse_transform}};
  survive_refused_allocations(uses, 0, false);
  survive_refused_allocations(uses, 0, true);
  survive_refused_allocations(tossed, 2, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(an_unreadable_sample_is_named, start),
      cmocka_unit_test_setup(corrupt_samples_are_named_once_and_replaced, start),
      cmocka_unit_test_setup(a_thousand_corrupt_samples_in_a_row_are_an_error, start),
      cmocka_unit_test_setup(a_sample_that_takes_long_ends_with_the_run, start),
      cmocka_unit_test_setup(with_patience_a_stop_ends_what_takes_long, start),
      cmocka_unit_test_setup(a_failing_transform_is_named, start),
      cmocka_unit_test_setup(a_batch_for_the_device_has_its_draws, start),
      cmocka_unit_test_setup(validation_has_no_draws, start),
      cmocka_unit_test_setup(a_suffix_ends_at_a_transform_that_has_no_build, start),
      cmocka_unit_test_setup(a_draw_that_fails_is_named, start),
      cmocka_unit_test_setup(a_field_that_the_source_forgets_is_an_error, start),
      cmocka_unit_test_setup(wrong_settings_are_refused_with_a_reason, start),
      cmocka_unit_test_setup(batches_out_of_turn_are_refused, start),
      cmocka_unit_test_setup(every_refused_allocation_is_survived, start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
