/* tests/unit/plugins/sources/joined_test.c: concat and zip. */
#include "core/base/text/text.h"
#include "tests/support/test_env.h"
#include "tests/unit/plugins/sources/files.h"
#include "tests/unit/plugins/sources/loading.h"

extern const tn_source concat_source, digits_source, idx_source, image_folder_source, random_source,
    table_source, zip_source;

static char *folder;

static int start(void **state) {
  (void)state;
  folder = make_folder();
  begin_loading();
  return 0;
}

static int stop(void **state) {
  (void)state;
  end_loading();
  remove_folder(folder);
  return 0;
}

enum { MOST_SAMPLES = 64, WIDTH = 36 };

/* The samples of an epoch, of up to three fields. */
typedef struct epoch {
  uint8_t x[MOST_SAMPLES * WIDTH * 4];
  union {
    int32_t label[MOST_SAMPLES];
    uint8_t bytes[MOST_SAMPLES * WIDTH * 4];
  } y;
  int32_t z[MOST_SAMPLES];
  int64_t ids[MOST_SAMPLES], n;
} epoch;

static epoch got;

static tn_loader_options joined_options(const tn_source *source, const char *const *pairs) {
  return (tn_loader_options){.source = source,
                             .source_options = options_of(&source->item, pairs),
                             .batch = 1,
                             .training = true,
                             .shuffle = true,
                             .seed = 5,
                             .where = "a.ini:3"};
}

/* Reads an epoch in one batch. */
static void read_epoch(tn_loader_options options, int64_t number) {
  memset(&got, 0, sizeof got);
  tn_loader *loader = make_loader(&options);
  got.n = tn_loader_samples(loader);
  tn_loader_destroy(loader);
  options.batch = got.n;
  loader = make_loader(&options);
  void *fields[] = {got.x, &got.y, got.z};
  assert_int_equal(tn_loader_start(loader, number, 0), TN_OK);
  assert_int_equal(tn_loader_submit(loader, &(tn_batch){fields, NULL, got.ids}), TN_OK);
  int64_t samples;
  if (tn_loader_wait(loader, &samples) != TN_OK) fail_msg("%s", tn_error_text(&env));
  assert_int_equal(samples, got.n);
  tn_loader_destroy(loader);
}

/* Two folders of pictures that share the class `dog`; the shades of the second begin with 100. */
static void add_folders(void) {
  char *b = strdup(in_folder(folder, "b"));
  mkdir(b, 0777);
  mkdir(in_folder(folder, "a"), 0777);
  write_class(in_folder(folder, "a"), "cat", 2, 0);
  write_class(in_folder(folder, "a"), "dog", 3, 10);
  write_class(b, "bird", 4, 100);
  write_class(b, "dog", 5, 110);
  add_part("a", &image_folder_source, PAIRS("folder", in_folder(folder, "a"), "subfolder", "."));
  add_part("b", &image_folder_source, PAIRS("folder", b, "subfolder", "."));
  free(b);
}

/* ---- concat ---- */

static void concat_numbers_classes_by_their_names(void **state) {
  (void)state;
  add_folders();
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b"));
  tn_loader *loader = make_loader(&options);
  const tn_field *label = tn_loader_field(loader, 1);
  char name[256];
  int64_t number;
  assert_int_equal(tn_loader_samples(loader), 14);
  assert_int_equal(label->classes, 3);
  assert_string_equal(label->class_names[0], "cat");
  assert_string_equal(label->class_names[1], "dog");
  assert_string_equal(label->class_names[2], "bird");
  assert_int_equal(tn_loader_sample_name(loader, 5, name, sizeof name), TN_OK);
  assert_non_null(strstr(name, "b/bird/"));
  assert_int_equal(tn_loader_class_of(loader, 5, &number), TN_OK);
  assert_int_equal(number, 2);
  assert_int_equal(tn_loader_class_of(loader, 13, &number), TN_OK);
  assert_int_equal(number, 1);
  tn_loader_destroy(loader);
  read_epoch(options, 0);
  for (int64_t i = 0; i < got.n; i++) {
    int shade = got.x[i * WIDTH], class = shade >= 110 || (shade >= 10 && shade < 100) ? 1
                                          : shade >= 100                               ? 2
                                                                                       : 0;
    assert_int_equal(got.y.label[i], class);
  }
}

/* How many of the samples are of the first source, which has 5. */
static int count_first(void) {
  int n = 0;
  for (int64_t i = 0; i < got.n; i++) n += got.ids[i] < 5;
  return n;
}

static void weights_say_how_often_a_source_is_drawn(void **state) {
  (void)state;
  add_folders();
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b", "weights", "[3, 1]"));
  int first = 0;
  for (int64_t number = 0; number < 30; number++) {
    read_epoch(options, number);
    first += count_first();
  }
  assert_in_range(first, 280, 350);           /* 315 of 420, deviation 9 */
  options.training = options.shuffle = false; /* as validation: each once */
  read_epoch(options, 0);
  for (int64_t i = 0; i < 14; i++) assert_int_equal(got.ids[i], i);
}

/* A table of nine rows whose weights are 0, 1, 4, 9 ... 64. */
static void weights_of_parts_are_kept(void **state) {
  (void)state;
  int64_t sum = 0;
  write_table(in_folder(folder, "a.csv"), 9);
  for (int i = 0; i < 2; i++)
    add_part(i == 0 ? "a" : "b", &table_source,
             i == 0 ? PAIRS("file", in_folder(folder, "a.csv"), "inputs", "x: number(a)", "weight", "b")
                    : PAIRS("file", in_folder(folder, "a.csv"), "inputs", "x: number(a)"));
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b"));
  int first = 0;
  for (int64_t number = 0; number < 20; number++) {
    read_epoch(options, number);
    for (int64_t i = 0; i < got.n; i++) {
      assert_int_not_equal(got.ids[i], 0);
      sum += got.ids[i] < 9 ? got.ids[i] : 0;
      first += got.ids[i] < 9;
    }
  }
  assert_in_range(first, 140, 220);                /* half of 360, deviation 9 */
  assert_true(sum > 6 * first && sum < 7 * first); /* the mean is 1296 / 204 */
  options.source = &zip_source;
  options.source_options = options_of(&zip_source.item, PAIRS("sources", "b, a", "inputs", "x: b.x"));
  read_epoch(options, 0);
  for (int64_t i = 0; i < got.n; i++) assert_int_not_equal(got.ids[i], 0);
}

static void concat_is_balanced_over_all_sources(void **state) {
  (void)state;
  add_folders();
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b"));
  options.balance = true;
  options.epoch_samples = 12;
  read_epoch(options, 0);
  int of_class[3] = {0};
  for (int64_t i = 0; i < got.n; i++) of_class[got.y.label[i]]++;
  for (int c = 0; c < 3; c++) assert_int_equal(of_class[c], 4);
}

static void a_source_without_validation_keeps_its_classes(void **state) {
  (void)state;
  add_folders();
  parts[1].options = options_of(&image_folder_source.item,
                                PAIRS("folder", in_folder(folder, "b"), "subfolder", ".", "split", "0.5"));
  char *a = strdup(in_folder(folder, "c"));
  mkdir(a, 0777);
  assert_int_equal(rename(in_folder(folder, "a"), in_folder(folder, "c/train")), 0);
  parts[0].options = options_of(&image_folder_source.item, PAIRS("folder", a));
  free(a);
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b"));
  options.split = TN_SPLIT_VALID;
  options.training = options.shuffle = false;
  read_epoch(options, 0);
  for (int64_t i = 0; i < got.n; i++) {
    assert_true(got.x[i * WIDTH] >= 100);
    assert_int_equal(got.y.label[i], got.x[i * WIDTH] >= 110 ? 1 : 2);
  }
  options.source_options = options_of(&concat_source.item, PAIRS("sources", "a"));
  loader_refused(&options, TN_EUNAVAILABLE, "none of them has data for validation");
}

static void endless_sources_give_an_epoch(void **state) {
  (void)state;
  add_part("a", &digits_source, PAIRS(NULL));
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a"));
  tn_loader *loader = make_loader(&options);
  assert_int_equal(tn_loader_samples(loader), 20000);
  tn_loader_destroy(loader);
}

static void files_are_read_by_the_first_source_that_can(void **state) {
  (void)state;
  add_folders();
  add_part("c", &random_source, PAIRS("shape", "[3, 3, 4]"));
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "c, a", "inputs", "image"));
  char *picture = strdup(in_folder(folder, "b/bird/1.png"));
  options.files = (const char *const[]){picture};
  options.n_files = 1;
  options.training = options.shuffle = false;
  read_epoch(options, 0);
  assert_int_equal(got.n, 1);
  assert_int_equal(got.x[0], 101);
  options.source = &zip_source;
  options.source_options = options_of(&zip_source.item, PAIRS("sources", "c, a", "inputs", "image: a.image"));
  read_epoch(options, 0);
  assert_int_equal(got.x[0], 101);
  options.source_options = options_of(&zip_source.item, PAIRS("sources", "c, a"));
  loader_refused(&options, TN_EUNSUPPORTED, "files are read by the source that all inputs come from");
  free(picture);
}

static void a_damaged_sample_of_a_part_is_skipped(void **state) {
  (void)state;
  add_folders();
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b"));
  options.training = options.shuffle = false;
  read_epoch(options, 0);
  int shade = got.x[6 * WIDTH];
  write_file(in_folder(folder, "b/bird/0.png"), "no picture", 10);
  parts[1].options = options_of(&image_folder_source.item,
                                PAIRS("folder", in_folder(folder, "b"), "subfolder", ".", "size", "[3, 4]"));
  options.skip_corrupt = true;
  read_epoch(options, 0);
  assert_int_equal(got.x[5 * WIDTH], shade);
}

/* ---- zip ---- */

static void zip_puts_samples_side_by_side(void **state) {
  (void)state;
  write_idx(folder, 7);
  add_part("a", &idx_source, PAIRS("folder", folder));
  add_part("b", &random_source, PAIRS("shape", "[2]", "samples", "7", "classes", "9"));
  tn_loader_options options =
      joined_options(&zip_source, PAIRS("sources", "a, b", "inputs", "left: a.image, right: b.image",
                                        "targets", "label: a.label"));
  read_epoch(options, 0);
  assert_int_equal(got.n, 7);
  for (int64_t i = 0; i < 7; i++) {
    assert_int_equal(got.x[i * 6], got.ids[i] * 6);
    assert_int_equal(got.z[i], got.ids[i] % 4);
  }
  options.balance = true; /* the classes are those of the first source */
  read_epoch(options, 0);
  int of_class[4] = {0};
  for (int64_t i = 0; i < 7; i++) of_class[got.z[i]]++;
  for (int c = 0; c < 4; c++) assert_in_range(of_class[c], 1, 2);
}

static void zip_gives_each_source_random_numbers_of_its_own(void **state) {
  (void)state;
  add_part("a", &random_source, PAIRS("shape", "[2]", "samples", "7"));
  add_part("b", &random_source, PAIRS("shape", "[2]", "samples", "7"));
  tn_loader_options options = joined_options(
      &zip_source, PAIRS("sources", "a, b", "inputs", "x: a.image", "targets", "y: b.image, l: a.label"));
  read_epoch(options, 0);
  assert_memory_not_equal(got.x, got.y.bytes, 7 * 2 * sizeof(float));
}

/* ---- learnt state ---- */

static void each_part_gets_what_it_has_learnt(void **state) {
  (void)state;
  const char *text;
  write_table(in_folder(folder, "a.csv"), 6);
  write_table(in_folder(folder, "b.csv"), 9);
  for (int i = 0; i < 2; i++)
    add_part(i == 0 ? "a" : "b", &table_source,
             PAIRS("file", in_folder(folder, i == 0 ? "a.csv" : "b.csv"), "inputs",
                   "x: numbers(a, standardize=yes)"));
  tn_loader_options options = joined_options(&zip_source, PAIRS("sources", "a", "inputs", "x: a.x"));
  read_epoch(options, 0);
  float before[12];
  memcpy(before, got.x, sizeof before);
  tn_loader *loader = make_loader(&options);
  assert_int_equal(tn_loader_learnt(loader, &text), TN_OK);
  assert_non_null(strstr(text, "{\"a\":{"));
  char *kept = strdup(text);
  tn_loader_destroy(loader);
  /* Another table with the means of the first one. */
  parts[0].options = options_of(&table_source.item, PAIRS("file", in_folder(folder, "b.csv"), "inputs",
                                                          "x: numbers(a, standardize=yes)"));
  options.learnt = kept;
  options.training = options.shuffle = false;
  loader = make_loader(&options);
  assert_int_equal(tn_loader_learnt(loader, &text), TN_OK);
  assert_string_equal(text, kept);
  tn_loader_destroy(loader);
  options.learnt = "{\"a\": 3";
  loader_refused(&options, TN_EINVAL, "what the sources have learnt is damaged");
  free(kept);
}

/* ---- mistakes ---- */

static void refused(const tn_source *source, const char *text, const char *const *pairs) {
  tn_loader_options options = joined_options(source, pairs);
  loader_refused(&options, TN_EINVAL, text);
}

static void names_of_sources_are_checked(void **state) {
  (void)state;
  add_folders();
  refused(&concat_source, "a.ini:3: source 'concat': there is no section [source cats]",
          PAIRS("sources", "a, cats"));
  refused(&concat_source, "there is [source a], [source b]", PAIRS("sources", "cats"));
  refused(&concat_source, "sources: 'a' stands there twice", PAIRS("sources", "a, b, a"));
  refused(&concat_source, "sources: there is no name", PAIRS("sources", " , "));
  add_part("c", &concat_source, PAIRS("sources", "a, c"));
  refused(&concat_source, "does one join itself?", PAIRS("sources", "c"));
  parts[1].options = options_of(&image_folder_source.item, PAIRS("folder", in_folder(folder, "none")));
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b"));
  loader_refused(&options, TN_EIO, "a.ini:9: [source b]: ");
}

static void fields_are_checked(void **state) {
  (void)state;
  add_folders();
  add_part("c", &random_source, PAIRS("shape", "[2]", "samples", "14"));
  add_part("d", &random_source, PAIRS("fields", "image: u8[3, 3, 4], age: f32[]", "samples", "14"));
  refused(&concat_source, "field 'image' is u8 with 3 dimensions in 'a', and f32 with 1 in 'c'",
          PAIRS("sources", "a, c", "targets", "label"));
  refused(&concat_source, "'d' has a field 'age', which 'a' lacks",
          PAIRS("sources", "a, d", "targets", "t: image"));
  refused(&concat_source, "targets: source 'd' has no field 'label'; it has image, age",
          PAIRS("sources", "a, d", "inputs", "image", "targets", "label"));
  refused(&zip_source, "sources: two fields are called 'image'", PAIRS("sources", "a, b"));
  refused(&zip_source, "'a' has 5 samples and 'b' 9",
          PAIRS("sources", "a, b", "inputs", "x: a.image", "targets", "l: a.label"));
  refused(&zip_source, "inputs: source 'a' has no field 'pixels'; it has image, label",
          PAIRS("sources", "a", "inputs", "x: a.pixels"));
  refused(&zip_source, "inputs: 'q.image' names none of the sources",
          PAIRS("sources", "a", "inputs", "x: q.image"));
  refused(&zip_source, "inputs: line 1: 'x y: a.image' is no field, expected NAME",
          PAIRS("sources", "a", "inputs", "x y: a.image"));
  refused(&zip_source, "inputs: field 'image' of source 'a' is both 'x' and 'y'",
          PAIRS("sources", "a", "inputs", "x: a.image, y: a.image"));
}

static void weights_are_checked(void **state) {
  (void)state;
  add_folders();
  refused(&concat_source, "weights: 1 numbers for 2 sources", PAIRS("sources", "a, b", "weights", "[1]"));
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b", "weights", "[1, 2]"));
  options.balance = true;
  loader_refused(&options, TN_EINVAL, "which balance = yes excludes");
  options.balance = options.shuffle = false;
  loader_refused(&options, TN_EINVAL, "which shuffle = no excludes");
}

static void classes_are_checked(void **state) {
  (void)state;
  add_folders();
  add_part("c", &random_source,
           PAIRS("fields", "image: u8[3, 3, 4]", "targets", "label: i32[]", "classes", "4"));
  refused(&concat_source, "has 4 classes without names in 'c', and 2 names in the others",
          PAIRS("sources", "a, c"));
}

static tn_status no_next(tn_sample *s, void *source) {
  (void)source;
  return tn_fail(s, TN_EOF, NULL, "the end");
}

static void streams_are_refused(void **state) {
  (void)state;
  static tn_source stream;
  stream = random_source;
  stream.next = no_next;
  add_part("a", &stream, PAIRS("shape", "[2]"));
  refused(&concat_source, "'a' is read in order, as it is a stream", PAIRS("sources", "a"));
}

static void memory_that_runs_out_is_reported(void **state) {
  (void)state;
  tn_status status = TN_ENOMEM;
  add_folders();
  tn_loader_options options = joined_options(&concat_source, PAIRS("sources", "a, b", "weights", "[1, 2]"));
  for (int allowed = 0; status != TN_OK; allowed++) {
    test_env memory;
    tn_loader *loader = NULL;
    test_env_start(&memory);
    test_env_allow(&memory, allowed);
    tn_allocator kept = record.allocator;
    record.allocator = (tn_allocator){&memory, test_env_realloc};
    status = tn_loader_create(&env, &options, &loader);
    tn_loader_destroy(loader);
    record.allocator = kept;
    assert_int_equal(memory.live, 0);
    assert_true(status == TN_OK || status == TN_ENOMEM);
    assert_true(allowed < 1000);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(concat_numbers_classes_by_their_names),
      TEST(weights_say_how_often_a_source_is_drawn),
      TEST(weights_of_parts_are_kept),
      TEST(concat_is_balanced_over_all_sources),
      TEST(a_source_without_validation_keeps_its_classes),
      TEST(endless_sources_give_an_epoch),
      TEST(files_are_read_by_the_first_source_that_can),
      TEST(a_damaged_sample_of_a_part_is_skipped),
      TEST(zip_puts_samples_side_by_side),
      TEST(zip_gives_each_source_random_numbers_of_its_own),
      TEST(each_part_gets_what_it_has_learnt),
      TEST(names_of_sources_are_checked),
      TEST(fields_are_checked),
      TEST(weights_are_checked),
      TEST(classes_are_checked),
      TEST(streams_are_refused),
      TEST(memory_that_runs_out_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
