/* Samples of different lengths: padded by the loader, in batches of the smallest length that holds them. */
#include "tests/unit/data/loader_rig.h"

enum { COUNT = 6, LONGEST = 6, BATCH = 2 };

/* Sample i has sizes[i] columns: x[r][c] is 100 i + 10 r + c, y[c] is c. `given` of them count, where the
 * source gives `length`. */
typedef struct ragged {
  int32_t sizes[COUNT], given[COUNT];
  int32_t gives, odd; /* odd: y has one element less */
  tn_field fields[3];
} ragged;

static tn_status ragged_open(tn_env *e, const void *options, int32_t split, uint64_t seed, void **source) {
  (void)e, (void)split, (void)seed;
  ragged *r = (ragged *)(uintptr_t)options;
  r->fields[0] = (tn_field){sizeof(tn_field), "x", {TN_F32, 2, {2, -1}}, TN_FIELD_INPUT, 0, NULL};
  r->fields[1] = (tn_field){sizeof(tn_field), "y", {TN_I32, 1, {-1}}, TN_FIELD_TARGET, 0, NULL};
  r->fields[2] = (tn_field){sizeof(tn_field), "length", {TN_I32, 0, {0}}, TN_FIELD_INPUT, 0, NULL};
  *source = r;
  return TN_OK;
}

static void ragged_close(tn_env *e, void *source) { (void)e, (void)source; }

static tn_status ragged_describe(tn_env *e, void *source, tn_description *description) {
  ragged *r = source;
  (void)e;
  description->count = COUNT;
  description->n_fields = r->gives ? 3 : 2;
  description->fields = r->fields;
  return TN_OK;
}

static tn_status ragged_read(tn_sample *s, void *source) {
  const ragged *r = source;
  int32_t n = r->sizes[s->index];
  const tn_type wide = {TN_F32, 2, {2, n}}, line = {TN_I32, 1, {n - r->odd}};
  float *x = tn_sample_field(s, 0, &wide);
  int32_t *y = tn_sample_field(s, 1, &line), *length = r->gives ? tn_sample_field(s, 2, NULL) : NULL;
  if (x == NULL || y == NULL || (r->gives && length == NULL)) return TN_ENOMEM;
  for (int32_t c = 0; c < n; c++) {
    x[c] = (float)(100 * s->index + c);
    x[n + c] = (float)(100 * s->index + 10 + c);
  }
  for (int32_t c = 0; c < n - r->odd; c++) y[c] = c;
  if (length != NULL) *length = r->given[s->index];
  return TN_OK;
}

static const tn_source ragged_source = {
    .item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "ragged", "rows of any length"),
    .open = ragged_open,
    .close = ragged_close,
    .describe = ragged_describe,
    .read = ragged_read};

static const int64_t lengths[] = {2, 4, LONGEST};
static const tn_padded_field padded[] = {{"x", 1}, {"y", 0}};

static tn_loader_options ragged_options(const ragged *source) {
  return (tn_loader_options){.source = &ragged_source,
                             .source_options = source,
                             .lengths = lengths,
                             .n_lengths = 3,
                             .padded = padded,
                             .n_padded = 2,
                             .batch = BATCH,
                             .prefetch = 1,
                             .where = "a.ini:3"};
}

typedef struct ragged_room {
  float x[BATCH * 2 * LONGEST];
  int32_t y[BATCH * LONGEST], length[BATCH];
  void *fields[3];
} ragged_room;

static tn_status ragged_next(tn_loader *loader, ragged_room *to) {
  int64_t samples;
  memset(to, 0x55, sizeof *to);
  to->fields[0] = to->x;
  to->fields[1] = to->y;
  to->fields[2] = to->length;
  tn_batch fill = {to->fields, NULL, NULL};
  assert_int_equal(tn_loader_submit(loader, &fill), TN_OK);
  return tn_loader_wait(loader, &samples);
}

/* Rows of `length` elements, zeros and -100 behind those of the sample. */
static void expect_batch(const ragged_room *batch, const int32_t *sizes, int64_t first, int64_t length) {
  for (int64_t i = 0; i < BATCH; i++) {
    assert_int_equal(batch->length[i], sizes[first + i]);
    for (int64_t c = 0; c < length; c++) {
      bool inside = c < sizes[first + i];
      for (int64_t r = 0; r < 2; r++)
        assert_true(batch->x[(2 * i + r) * length + c] ==
                    (inside ? (float)(100 * (first + i) + 10 * r + c) : 0));
      assert_int_equal(batch->y[i * length + c], inside ? c : -100);
    }
  }
}

static void a_batch_has_the_smallest_length_that_holds_it(void **state) {
  (void)state;
  ragged source = {.sizes = {1, 2, 3, 1, 6, 5}};
  tn_loader_options options = ragged_options(&source);
  tn_loader *loader = make(&options);
  static const int64_t expected[] = {2, 4, 6};
  ragged_room batch;
  assert_int_equal(tn_loader_field_count(loader), 3);
  assert_string_equal(tn_loader_field(loader, 2)->name, "length");
  assert_int_equal(tn_loader_field(loader, 0)->type.dims[1], LONGEST);
  for (int b = 0; b < 3; b++) {
    assert_int_equal(ragged_next(loader, &batch), TN_OK);
    assert_int_equal(tn_loader_length(loader), b);
    expect_batch(&batch, source.sizes, BATCH * b, expected[b]);
  }
  tn_loader_destroy(loader);
}

/* Elements behind a `length` that the source gives are padding, too. */
static void the_source_may_give_the_length(void **state) {
  (void)state;
  ragged source = {.sizes = {6, 6, 6, 6, 6, 6}, .given = {1, 2, 6, 6, 0, 0}, .gives = 1};
  tn_loader_options options = ragged_options(&source);
  tn_loader *loader = make(&options);
  static const int64_t expected[] = {2, 6, 2};
  ragged_room batch;
  assert_int_equal(tn_loader_field_count(loader), 3);
  for (int b = 0; b < 3; b++) {
    assert_int_equal(ragged_next(loader, &batch), TN_OK);
    assert_int_equal(lengths[tn_loader_length(loader)], expected[b]);
    expect_batch(&batch, source.given, BATCH * b, expected[b]);
  }
  tn_loader_destroy(loader);
}

static void one_length_pads_all_batches(void **state) {
  (void)state;
  ragged source = {.sizes = {1, 2, 3, 1, 6, 5}};
  tn_loader_options options = ragged_options(&source);
  options.lengths = lengths + 2;
  options.n_lengths = 1;
  tn_loader *loader = make(&options);
  ragged_room batch;
  for (int b = 0; b < 3; b++) {
    assert_int_equal(ragged_next(loader, &batch), TN_OK);
    assert_int_equal(tn_loader_length(loader), 0);
    expect_batch(&batch, source.sizes, BATCH * b, LONGEST);
  }
  tn_loader_destroy(loader);
}

static void fails_at_once(ragged *source, const char *text) {
  tn_loader_options options = ragged_options(source);
  tn_loader *loader = make(&options);
  ragged_room batch;
  assert_int_equal(ragged_next(loader, &batch), TN_EINVAL);
  if (strstr(tn_error_text(&env), text) == NULL) fail_msg("'%s' lacks '%s'", tn_error_text(&env), text);
  tn_loader_destroy(loader);
}

static void samples_that_do_not_fit_are_named(void **state) {
  (void)state;
  fails_at_once(&(ragged){.sizes = {1, 7, 1, 1, 1, 1}},
                "sample 1 has length 7, expected at most 6, the longest of [model] lengths");
  fails_at_once(&(ragged){.sizes = {3, 2, 1, 1, 1, 1}, .odd = 1},
                "sample 0 has 2 elements in field 'y', expected its length, 3");
  fails_at_once(&(ragged){.sizes = {3, 2, 1, 1, 1, 1}, .given = {4, 2}, .gives = 1},
                "sample 0 has 3 elements in field 'x', expected its length, 4");
  fails_at_once(&(ragged){.sizes = {3, 2, 1, 1, 1, 1}, .given = {-1, 2}, .gives = 1},
                "sample 0 has length -1, expected at most 6");
}

static void a_dimension_that_is_not_padded_must_be_fixed(void **state) {
  (void)state;
  ragged source = {.sizes = {1, 2, 3, 1, 6, 5}};
  tn_loader_options options = ragged_options(&source);
  options.n_padded = 1;
  refuses(&options, TN_EINVAL, "field 'y' is i32[?]: its size varies from sample to sample");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_batch_has_the_smallest_length_that_holds_it, start),
      cmocka_unit_test_setup(the_source_may_give_the_length, start),
      cmocka_unit_test_setup(one_length_pads_all_batches, start),
      cmocka_unit_test_setup(samples_that_do_not_fit_are_named, start),
      cmocka_unit_test_setup(a_dimension_that_is_not_padded_must_be_fixed, start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
