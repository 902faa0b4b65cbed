/* `tenon checkpoint` on the checkpoints of a run, as a user types it. */
#include <math.h>
#include <unistd.h>

#include "configs.h"
#include "tensors.h"

static void train(void) {
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --quiet"), 0);
}

static void prints(const char *text) {
  if (strstr(program_out, text) == NULL) fail_msg("expected '%s', it printed: %s", text, program_out);
}

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

static void near(double a, double b, double tolerance) {
  if (!(fabs(a - b) <= tolerance)) fail_msg("%.9g is not %.9g", a, b);
}

static const json_t *at(const json_t *json, const char *list, size_t i) {
  const json_t *array = program_member(json, list), *one = json_array_get(array, i);
  if (one == NULL) fail_msg("'%s' has %zu members", list, json_array_size(array));
  return one;
}

/* ---- ls ---- */

static void ls_lists_the_newest_first_with_metrics_and_sizes(void **state) {
  (void)state;
  train();
  const json_t *r = program_json(0, "checkpoint ls runs/noise"), *last = at(r, "checkpoints", 0);
  assert_int_equal(json_array_size(program_member(r, "checkpoints")), 2);
  assert_string_equal(program_text(last, "name"), "last");
  assert_int_equal(program_number(last, "step"), 20);
  assert_int_equal(program_number(last, "epoch"), 2);
  assert_true(program_number(last, "bytes") > 1000);
  assert_true(program_number(last, "saved") > 1.5e9);
  assert_true(program_number(last, "metrics.train.loss") > 0);
  assert_string_equal(program_text(at(r, "checkpoints", 1), "name"), "best");
  assert_int_equal(program_run("checkpoint ls runs/noise"), 0);
  prints("last                 20       2");
  prints("accuracy ");
}

static void ls_names_a_damaged_checkpoint(void **state) {
  (void)state;
  train();
  file_write("runs/noise/checkpoints/best/state.json", "{}");
  const json_t *r = program_json(0, "checkpoint ls runs/noise");
  assert_non_null(strstr(program_text(at(r, "checkpoints", 1), "reason"), "format"));
  assert_int_equal(program_run("checkpoint ls nowhere"), 74);
  assert_int_equal(program_run("checkpoint ls runs"), 65);
  says("is no run folder");
}

/* A file, or a link to nowhere, in the place of a checkpoint: the other one is not all there is. */
static void a_checkpoint_that_is_no_folder_is_named(void **state) {
  (void)state;
  train();
  assert_int_equal(rename("runs/noise/checkpoints/best", "best"), 0);
  assert_int_equal(symlink("nowhere", "runs/noise/checkpoints/best"), 0);
  const json_t *r = program_json(0, "checkpoint ls runs/noise");
  assert_string_equal(program_text(at(r, "checkpoints", 1), "reason"), "is not a folder");
  assert_int_equal(program_run("checkpoint verify runs/noise"), 65);
  assert_int_equal(program_run("runs"), 0);
  says("runs/noise: checkpoint 'best' cannot be used: is not a folder");
}

/* ---- show ---- */

static const json_t *tensor_called(const json_t *r, const char *path) {
  const json_t *list = program_member(r, "tensors");
  for (size_t i = 0; i < json_array_size(list); i++)
    if (strcmp(program_text(json_array_get(list, i), "path"), path) == 0) return json_array_get(list, i);
  fail_msg("there is no '%s'", path);
  return NULL;
}

static void show_has_the_tensors_the_notes_and_the_position(void **state) {
  (void)state;
  train();
  const json_t *r = program_json(0, "checkpoint show runs/noise/checkpoints/last");
  const json_t *weight = tensor_called(r, "fc1.weight");
  assert_string_equal(program_text(weight, "dtype"), "f32");
  assert_int_equal(program_number(weight, "bytes"), 16 * 36 * 4);
  assert_int_equal(json_integer_value(json_array_get(program_member(weight, "shape"), 1)), 36);
  assert_null(json_object_get(weight, "mean"));
  assert_int_equal(program_number(r, "elements"), 16 * 36 + 16 + 4 * 16 + 4);
  assert_int_equal(program_number(r, "state.step"), 20);
  assert_string_equal(program_text(r, "metadata.format"), "tenon");
  assert_string_equal(program_text(r, "kind"), "checkpoint");
  assert_string_equal(
      program_text(at(r, "tensors", json_array_size(program_member(r, "tensors")) - 1), "part"), "optimizer");
}

static void show_says_that_a_file_is_damaged(void **state) {
  (void)state;
  static const char path[] = "runs/noise/checkpoints/last/model.safetensors";
  size_t n;
  train();
  char *bytes = file_read(path, &n);
  bytes[n - 1] ^= 1;
  file_write_bytes(path, bytes, n);
  assert_int_equal(program_run("checkpoint show runs/noise/checkpoints/last"), 0);
  says("model.safetensors: is not as it was written");
}

static void show_counts_what_is_not_finite(void **state) {
  (void)state;
  float values[4] = {1, 3, NAN, -2};
  static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
  char bytes[8 + sizeof header - 1 + sizeof values];
  uint64_t n = sizeof header - 1;
  memcpy(bytes, &n, 8);
  memcpy(bytes + 8, header, n);
  memcpy(bytes + 8 + n, values, sizeof values);
  file_write_bytes("a.safetensors", bytes, sizeof bytes);
  const json_t *r = program_json(0, "checkpoint show a.safetensors --stats"), *a = tensor_called(r, "a");
  assert_int_equal(program_number(a, "nonfinite"), 1);
  near(program_number(a, "min"), -2, 0);
  near(program_number(a, "max"), 3, 0);
  near(program_number(a, "mean"), 2.0 / 3, 1e-6);
  assert_int_equal(program_run("checkpoint show a.safetensors --stats"), 0);
  prints("not finite");
  assert_false(json_is_true(program_member(program_json(65, "checkpoint verify a.safetensors"), "valid")));
  assert_int_equal(program_run("checkpoint verify a.safetensors"), 65);
  prints("element 2 of 'a' is nan");
}

/* ---- verify ---- */

static void verify_passes_what_resuming_takes_and_finds_one_changed_byte(void **state) {
  (void)state;
  train();
  const char *path = "runs/noise/checkpoints/best/model.safetensors";
  assert_int_equal(program_run("checkpoint verify runs/noise"), 0);
  prints("valid      runs/noise/checkpoints/last");
  size_t n;
  char *bytes = file_read(path, &n);
  bytes[n - 1] ^= 1;
  file_write_bytes(path, bytes, n);
  const json_t *r = program_json(65, "checkpoint verify runs/noise");
  assert_string_equal(program_text(at(r, "checked", 0), "state"), "valid");
  assert_string_equal(program_text(at(r, "checked", 1), "state"), "damaged");
  assert_non_null(strstr(program_text(at(r, "checked", 1), "reason"), "is not as it was written"));
  assert_int_equal(program_run("checkpoint verify runs/noise/checkpoints/last"), 0);
  file_write_bytes(path, bytes, n - 4);
  assert_int_equal(program_run("checkpoint verify runs/noise/checkpoints/best"), 65);
  prints("were written");
  assert_int_equal(program_run("checkpoint verify nowhere"), 74);
}

/* A save that was interrupted is passed over, as resuming does. */
static void verify_passes_over_an_interrupted_save(void **state) {
  (void)state;
  train();
  assert_int_equal(rename("runs/noise/checkpoints/best", "runs/noise/checkpoints/last.new"), 0);
  assert_int_equal(unlink("runs/noise/checkpoints/last.new/state.json"), 0);
  const json_t *r = program_json(0, "checkpoint verify runs/noise");
  assert_string_equal(program_text(at(r, "checked", 1), "state"), "incomplete");
}

/* Its folders are exchanged at every step. */
static void verify_beside_a_training_finds_no_damage(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_start("train noise.ini " ENDLESS " --set run.save_every=1");
  program_await_lines("runs/noise/metrics.jsonl", 3);
  for (int i = 0; i < 60; i++) {
    int code = program_beside("checkpoint verify runs/noise");
    if (code != 0) fail_msg("look %d: %d: %s", i, code, file_read("beside", NULL));
  }
  program_kill();
}

/* ---- diff ---- */

static void diff_sorts_by_the_largest_difference(void **state) {
  (void)state;
  train();
  assert_int_equal(program_run("checkpoint diff runs/noise runs/noise"), 0);
  prints("4 of 4 tensors that both have are equal");
  assert_int_equal(program_run("train noise.ini --quiet --set run.seed=9"), 0);
  const json_t *r =
      program_json(3, "checkpoint diff runs/noise/checkpoints/last runs/noise-2/checkpoints/last");
  const char *a = "runs/noise/checkpoints/last/model.safetensors",
             *b = "runs/noise-2/checkpoints/last/model.safetensors";
  double before = INFINITY;
  assert_int_equal(json_array_size(program_member(r, "tensors")), 4);
  for (size_t i = 0; i < 4; i++) {
    const json_t *one = at(r, "tensors", i);
    double largest = program_number(one, "largest");
    near(largest, tensor_distance(a, b, program_text(one, "path")), 1e-6 * largest);
    assert_true(largest <= before && program_number(one, "relative") > 0);
    before = largest;
  }
  r = program_json(3,
                   "checkpoint diff runs/noise/checkpoints/last runs/noise-2/checkpoints/last --optimizer");
  assert_true(json_array_size(program_member(r, "tensors")) > 4);
}

static void diff_names_what_only_one_has_and_other_shapes(void **state) {
  (void)state;
  char other[sizeof noise_ini + 64], *at_fc2;
  train();
  strcpy(other, noise_ini);
  at_fc2 = strstr(other, "fc2: linear(4)");
  memcpy(at_fc2, "fc3: linear(4)", 14);
  memcpy(strstr(other, "linear(16)"), "linear(17)", 10);
  file_write("other.ini", other);
  assert_int_equal(program_run("train other.ini --quiet --output others"), 0);
  const json_t *r = program_json(3, "checkpoint diff runs/noise others/noise");
  assert_string_equal(json_string_value(at(r, "only_a", 0)), "fc2.bias");
  assert_string_equal(json_string_value(at(r, "only_b", 1)), "fc3.weight");
  assert_string_equal(program_text(at(r, "shapes", 0), "path"), "fc1.bias");
  assert_int_equal(program_run("checkpoint diff runs/noise others/noise"), 3);
  prints("only in A   fc2.weight");
  prints("shapes      fc1.weight: [16, 36] and [17, 36]");
}

/* ---- convert ---- */

/* The optimizer's state stays behind; f16 and bf16 are rounded to nearest, so that they are near; the file
 * loads into the model. */
static void convert_rounds_and_leaves_the_optimizer_behind(void **state) {
  (void)state;
  static const struct {
    const char *dtype;
    double share;
  } dtypes[] = {{"f16", 1.0 / 2048}, {"bf16", 1.0 / 256}, {"f64", 0}};
  train();
  for (int i = 0; i < 3; i++) {
    assert_int_equal(program_run("checkpoint convert runs/noise %s.safetensors --dtype %s", dtypes[i].dtype,
                                 dtypes[i].dtype),
                     0);
    char line[128];
    snprintf(line, sizeof line, "checkpoint diff runs/noise %s.safetensors", dtypes[i].dtype);
    const json_t *r = program_json(dtypes[i].share > 0 ? 3 : 0, "%s", line);
    assert_int_equal(json_array_size(program_member(r, "tensors")), 4);
    for (size_t t = 0; t < 4; t++) {
      assert_string_equal(program_text(at(r, "tensors", t), "b_dtype"), dtypes[i].dtype);
      assert_true(program_number(at(r, "tensors", t), "relative") <= dtypes[i].share * 1.0001);
    }
  }
  assert_int_equal(program_run("checkpoint convert f64.safetensors back.safetensors --dtype f32"), 0);
  assert_int_equal(program_run("checkpoint diff runs/noise back.safetensors"), 0);
  assert_int_equal(
      program_run("eval noise.ini --weights back.safetensors --set data.valid.source=random "
                  "--set data.valid.samples=8 --set data.valid.classes=4 --set data.valid.shape=1,6,6"),
      0);
}

static void convert_to_npy_and_back(void **state) {
  (void)state;
  train();
  const char *last = "runs/noise/checkpoints/last/model.safetensors";
  assert_int_equal(program_run("checkpoint convert runs/noise/checkpoints/last arrays"), 0);
  assert_true(file_exists("arrays/fc1.weight.npy"));
  assert_int_equal(program_run("checkpoint diff %s arrays", last), 0);
  assert_int_equal(program_run("checkpoint convert arrays back.safetensors"), 0);
  assert_int_equal(program_run("checkpoint convert arrays/ slash.safetensors"), 0);
  files_equal(last, "back.safetensors");
  assert_int_equal(program_run("checkpoint convert %s halves --dtype bf16", last), 69);
  says("bf16");
  assert_false(file_exists("halves"));
  assert_int_equal(program_run("checkpoint convert runs/noise/checkpoints/last all.safetensors --optimizer"),
                   0);
  const json_t *r = program_json(0, "checkpoint show all.safetensors");
  assert_true(json_array_size(program_member(r, "tensors")) > 4);
}

static void convert_overwrites_nothing_and_refuses_what_does_not_fit(void **state) {
  (void)state;
  double big = 1e6;
  static const char header[] = "{\"a\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}";
  char bytes[8 + sizeof header - 1 + sizeof big];
  uint64_t n = sizeof header - 1;
  memcpy(bytes, &n, 8);
  memcpy(bytes + 8, header, n);
  memcpy(bytes + 8 + n, &big, sizeof big);
  file_write_bytes("a.safetensors", bytes, sizeof bytes);
  file_write("b.safetensors", "mine");
  assert_int_equal(program_run("checkpoint convert a.safetensors b.safetensors"), 65);
  says("exists, and is not overwritten");
  assert_string_equal(file_read("b.safetensors", NULL), "mine");
  assert_int_equal(program_run("checkpoint convert a.safetensors c.safetensors --dtype f16"), 65);
  says("element 0 of 'a' is 1e+06, which is too large for f16");
  assert_false(file_exists("c.safetensors"));
  assert_int_equal(program_run("checkpoint convert a.safetensors folder --dtype f16"), 65);
  assert_false(file_exists("folder"));
}

/* ---- wrong commands ---- */

static void wrong_words_are_told(void **state) {
  (void)state;
  assert_int_equal(program_run("checkpoint lst x"), 2);
  says("did you mean 'ls'?");
  assert_int_equal(program_run("checkpoint diff x"), 2);
  says("expected two paths");
  assert_int_equal(program_run("checkpoint convert x y --dtype i8"), 2);
  says("expected f16, bf16, f32 or f64, not 'i8'");
  assert_int_equal(program_run("checkpoint show ."), 65);
  says("holds no weights");
  assert_string_equal(program_text(program_json(74, "checkpoint show nowhere.safetensors"), "status"),
                      "failed");
}

/* Of a downloaded file: escape sequences, U+009B, U+202E. */
static void names_send_nothing_to_the_terminal(void **state) {
  (void)state;
  static const char header[] =
      "{\"w\\u001b[31m\\u001b]0;title\\u0007\\u009b31m\\u202egpj\":{\"dtype\":\"F32\","
      "\"shape\":[1],\"data_offsets\":[0,4]}}";
  char bytes[8 + sizeof header - 1 + 4] = "";
  uint64_t n = sizeof header - 1;
  memcpy(bytes, &n, 8);
  memcpy(bytes + 8, header, sizeof header - 1);
  file_write_bytes("w.safetensors", bytes, sizeof bytes);
  static const char *const commands[] = {"checkpoint show w.safetensors", "checkpoint verify w.safetensors",
                                         "checkpoint diff w.safetensors absent.safetensors",
                                         "checkpoint diff w.safetensors w.safetensors"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    program_run("%s", commands[i]);
    for (const char *text = program_out; text != NULL; text = text == program_out ? program_err : NULL)
      for (const char *c = text; *c != '\0'; c++)
        if (((unsigned char)*c < 0x20 && *c != '\n') || strncmp(c, "\xC2\x9B", 2) == 0 ||
            strncmp(c, "\xE2\x80\xAE", 3) == 0)
          fail_msg("%s prints byte %02x in: %s", commands[i], (unsigned char)*c, text);
  }
  assert_int_equal(program_run("checkpoint show w.safetensors"), 0);
  prints("w [31m ]0;title ??31m???gpj");
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(ls_lists_the_newest_first_with_metrics_and_sizes),
      IN_FOLDER(ls_names_a_damaged_checkpoint),
      IN_FOLDER(a_checkpoint_that_is_no_folder_is_named),
      IN_FOLDER(names_send_nothing_to_the_terminal),
      IN_FOLDER(show_has_the_tensors_the_notes_and_the_position),
      IN_FOLDER(show_counts_what_is_not_finite),
      IN_FOLDER(show_says_that_a_file_is_damaged),
      IN_FOLDER(verify_passes_what_resuming_takes_and_finds_one_changed_byte),
      IN_FOLDER(verify_passes_over_an_interrupted_save),
      IN_FOLDER(verify_beside_a_training_finds_no_damage),
      IN_FOLDER(diff_sorts_by_the_largest_difference),
      IN_FOLDER(diff_names_what_only_one_has_and_other_shapes),
      IN_FOLDER(convert_rounds_and_leaves_the_optimizer_behind),
      IN_FOLDER(convert_to_npy_and_back),
      IN_FOLDER(convert_overwrites_nothing_and_refuses_what_does_not_fit),
      IN_FOLDER(wrong_words_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
