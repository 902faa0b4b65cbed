/* tests/unit/plugins/sources/corrupt_test.c: of every source whose samples can be damaged one by one, a
 * damaged one in the middle of an epoch ends it, or is skipped, and is named in both cases. The others check
 * their files when they are opened (hostile_test.c). */
#include "core/data/transform_chain.h"
#include "tests/support/test_env.h"
#include "tests/unit/plugins/sources/kinds.h"

enum { BATCH = 4, MOST_FIELDS = 6, MOST_BYTES = 1 << 15, MOST_SAMPLES = 32 };

/* ---- damage ---- */

static void damage_file(const char *name, const char *text) {
  write_file(in_folder(folder, name), text, strlen(text));
}

static void damage_picture(void) { damage_file("no/4.png", "no picture"); }
/* The first one is looked at for its size when the table is opened. */
static void damage_cell(void) { damage_file("c/0.png", "no picture"); }
static void damage_png(void) { damage_file("c/9.png", "\x89PNG\r\n\x1a\n"); }
static void damage_sound(void) { damage_file("no/10.wav", "RIFF\xff\xff\xff\xffWAVE"); }
static void damage_array(void) { damage_file("c/9.npy", "\x93NUMPY\x01\x00\xff\xff{'descr'"); }

/* Writes the data again with a wrong value of sample 9. */
static void damage_value(void (*prepare)(void)) {
  damaged = 9;
  prepare();
  damaged = -1;
}

static void damage_raw(void) { damage_value(prepare_raw); }
static void damage_tokens(void) { damage_value(prepare_tokens); }
static void damage_sentence(void) { damage_value(prepare_sentences); }
static void damage_shard(void) { damage_value(prepare_shards); }
static void damage_packed(void) { damage_value(prepare_packed); }
static void damage_member(void) { damage_value(prepare_members); }
static void damage_packed_member(void) { damage_value(prepare_packed_members); }

static const struct {
  const char *kind;
  void (*damage)(void);
  const char *place, *what; /* of the message */
} cases[] = {
    {"pictures", damage_picture, "no/4.png", "is neither"},
    {"sounds", damage_sound, "no/10.wav", "wav"},
    {"sentences", damage_sentence, "t.csv:11", "the text has 'z' at byte 3"},
    {"cells", damage_png, "t.csv:11", "c/9.png: damaged PNG"},
    {"cells", damage_cell, "t.csv:2", "c/0.png: is neither"},
    {"cells", damage_sound, "t.csv:12", "no/10.wav"},
    {"cells", damage_array, "t.csv:11", "c/9.npy"},
    {"lines", damage_png, "t.jsonl:10", "c/9.png: damaged PNG"},
    {"raw", damage_raw, "x.raw: row 9", "which i32 cannot hold"},
    {"tokens", damage_tokens, "t.bin, token 72", "has token 65535"},
    {"shards", damage_shard, "s-1.tar: 009", "damaged JSON"},
    {"packed shards", damage_packed, "s-1.tar.gz: 009", "damaged JSON"},
    {"members", damage_member, "m.tar: 009", ".npy"},
    {"packed members", damage_packed_member, "m.tar.gz: 009", "it is cut off or damaged"},
    {"concat", damage_picture, "no/4.png", "is neither"},
    {"beside", damage_picture, "no/4.png", "is neither"},
};

/* ---- epochs ---- */

static tn_loader_options corrupt_options(const kind *k, bool skip) {
  return (tn_loader_options){.source = k->source,
                             .source_options = kind_options(k),
                             .batch = BATCH,
                             .workers = 2,
                             .prefetch = 1,
                             .training = true,
                             .pad_last = true,
                             .skip_corrupt = skip,
                             .epoch_samples = k->epoch,
                             .seed = 3,
                             .where = "a.ini:3"};
}

/* Reads an epoch up to the first failure. *n gets the number of its samples. */
static tn_status read_epoch(tn_loader *loader, int64_t epoch, int64_t ids[MOST_SAMPLES], int64_t *n) {
  static char bytes[MOST_FIELDS][MOST_BYTES];
  void *fields[MOST_FIELDS];
  tn_status status = tn_loader_start(loader, epoch, 0);
  for (int i = 0; i < MOST_FIELDS; i++) fields[i] = bytes[i];
  *n = tn_loader_samples(loader);
  assert_in_range(*n, 18, MOST_SAMPLES);
  for (int64_t b = 0, samples; status == TN_OK && b < tn_loader_batches(loader); b++) {
    int64_t own[BATCH];
    status = tn_loader_submit(loader, &(tn_batch){fields, NULL, own});
    if (status == TN_OK) status = tn_loader_wait(loader, &samples);
    for (int64_t i = 0; status == TN_OK && i < samples; i++) ids[b * BATCH + i] = own[i];
  }
  return status;
}

static void expect_text(const char *name, const char *text, const char *word) {
  if (strstr(text, word) == NULL) fail_msg("%s: '%s' lacks '%s'", name, text, word);
}

static void a_damaged_sample_is_an_error_that_names_it(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const kind *k = kind_named(cases[c].kind);
    int64_t ids[MOST_SAMPLES], n;
    kind_begin(k);
    cases[c].damage();
    tn_loader_options options = corrupt_options(k, false);
    tn_loader *loader = make_loader(&options);
    assert_int_equal(read_epoch(loader, 0, ids, &n), TN_EINVAL);
    expect_text(k->name, tn_error_text(&env), "a.ini:3: source '");
    expect_text(k->name, tn_error_text(&env), cases[c].place);
    expect_text(k->name, tn_error_text(&env), cases[c].what);
    tn_loader_destroy(loader);
    kind_end();
  }
}

/* The sample behind a damaged one takes its place, and no other changes. Returns how many were damaged. */
static int expect_replaced(const char *name, const int64_t *ids, int64_t n) {
  int replaced = 0;
  for (int64_t i = 0; i < n; i++) {
    if (ids[i] == i) continue;
    if (ids[i] != i + 1)
      fail_msg("%s: sample %lld stands at place %lld", name, (long long)ids[i], (long long)i);
    replaced++;
  }
  return replaced;
}

static int count_lines(const char *text) {
  int n = 0;
  for (; *text != '\0'; text++) n += *text == '\n';
  return n;
}

static void a_damaged_sample_is_skipped_with_a_warning(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const kind *k = kind_named(cases[c].kind);
    int64_t ids[MOST_SAMPLES], n;
    test_env log;
    test_env_start(&log);
    kind_begin(k);
    cases[c].damage();
    record.sink = log.record.sink;
    tn_loader_options options = corrupt_options(k, true);
    tn_loader *loader = make_loader(&options);
    for (int64_t epoch = 0; epoch < (k->epoch > 0 ? 1 : 2); epoch++) {
      if (read_epoch(loader, epoch, ids, &n) != TN_OK) fail_msg("%s: %s", k->name, tn_error_text(&env));
      int replaced = expect_replaced(k->name, ids, n);
      assert_in_range(replaced, 1, 2);
      assert_int_equal(count_lines(log.log), replaced); /* each is named once */
    }
    expect_text(k->name, log.log, cases[c].place);
    expect_text(k->name, log.log, cases[c].what);
    expect_text(k->name, log.log, "; the next sample takes its place (corrupt = skip)\n");
    tn_loader_destroy(loader);
    kind_end();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_damaged_sample_is_an_error_that_names_it),
                                     cmocka_unit_test(a_damaged_sample_is_skipped_with_a_warning)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
