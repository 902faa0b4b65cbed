/* [weights]: names that are skipped, renamed or transposed, and keys without effect. */
#include "configs.h"
#include <stdlib.h>

#include "tensors.h"

static const char first[] = "a/noise/checkpoints/last/model.safetensors",
                  second[] = "b/noise/checkpoints/last/model.safetensors";

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

/* The file with a counter as PyTorch's batch_norm has it, written into the header's padding or a copy. */
static void add_counter(const char *from, const char *to) {
  size_t n;
  uint64_t header;
  const char *bytes = file_read(from, &n);
  memcpy(&header, bytes, sizeof header);
  json_t *json = json_loadb(bytes + 8, (size_t)header, 0, NULL);
  size_t data = n - 8 - (size_t)header;
  json_object_set_new(json, "bn.num_batches_tracked",
                      json_pack("{s:s, s:[], s:[I,I]}", "dtype", "I64", "shape", "data_offsets",
                                (json_int_t)data, (json_int_t)(data + 8)));
  char *text = json_dumps(json, JSON_COMPACT);
  uint64_t length = (strlen(text) + 7) / 8 * 8;
  static char out[1 << 16];
  assert_true(8 + length + data + 8 < sizeof out);
  memcpy(out, &length, 8);
  memset(out + 8, ' ', (size_t)length);
  memcpy(out + 8, text, strlen(text));
  memcpy(out + 8 + length, bytes + 8 + header, data);
  memset(out + 8 + length + data, 0, 8);
  file_write_bytes(to, out, (size_t)(8 + length + data + 8));
  json_decref(json);
  free(text);
}

static void a_pattern_keeps_the_counters_skipped(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output a --set run.max_steps=1"), 0);
  add_counter(first, "w.safetensors");
  const char *run = "train noise.ini --set run.max_steps=1 --weights w.safetensors";
  assert_int_equal(program_run("%s", run), 0);
  assert_int_equal(program_run("%s --set weights.skip=fc9.*", run), 0);
}

/* A head of other classes: the body is read, the head begins anew. */
static void a_skipped_name_may_have_another_shape(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output a --set run.max_steps=5"), 0);
  char *text = file_read("noise.ini", &(size_t){0}), *four = strstr(text, "fc2: linear(4)");
  memcpy(four, "fc2: linear(7)", 14);
  file_write("seven.ini", text);
  const char *run = "train seven.ini --output b --set run.max_steps=0 --set run.epochs=0 --weights";
  assert_int_equal(program_run("%s %s", run, first), 65);
  says("'fc2.weight' is F32[4, 16], the model's f32[7, 16], 'fc2.bias' is F32[4], the model's f32[7]; "
       "[weights] prefix, "
       "rename or skip may help");
  assert_int_equal(program_run("%s %s --set weights.skip=fc2.*", run, first), 0);
  says("2 skipped keep the model's values");
  assert_true(tensor_distance(first, second, "fc1.weight") == 0);
}

static void keys_without_a_file_are_refused(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set weights.prefix=net."), 65);
  says("--set weights.prefix: [weights] prefix has no effect without file; set it, or give --weights FILE");
  assert_int_equal(program_run("train noise.ini --set weights.skip=fc2.*"), 65);
  says("[weights] skip has no effect without file");
}

/* A file, the folders above it, and the newest run of the name are the same weights. */
static void folders_stand_for_their_best_weights(void **state) {
  (void)state;
  static const char *const paths[] = {"--weights runs/noise/checkpoints/best/model.safetensors",
                                      "--weights runs/noise/checkpoints/best",
                                      "--weights runs/noise/checkpoints", "--weights runs/noise/", ""};
  file_write("noise.ini", noise_ini);
  double best = program_number(program_json(0, "train noise.ini"), "valid.loss");
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    assert_true(program_number(program_json(0, "eval noise.ini %s", paths[i]), "loss") <= best);
  assert_int_equal(program_run("eval noise.ini --weights ."), 65);
  says(".: is a folder without weights; expected a run folder, the folder of a checkpoint, or a");
  assert_int_equal(program_run("eval noise.ini --set run.name=other"), 65);
  says("there are no weights to evaluate with; expected a file (--weights, [weights] file, "
       "tn_session_options.weights), or a run called 'other' with a checkpoint");
}

/* noise.ini with other names of the layers, and a linear layer without bias whose file has (in, out). */
static void write_renamed(const char *path) {
  char *text = file_read("noise.ini", &(size_t){0});
  for (char *at; (at = strstr(text, "fc1:")) != NULL;) memcpy(at, "up1:", 4);
  for (char *at; (at = strstr(text, "fc2:")) != NULL;) memcpy(at, "up2:", 4);
  file_write(path, text);
}

static void names_are_renamed_by_rules(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  write_renamed("other.ini");
  assert_int_equal(program_run("train noise.ini --output a --set run.max_steps=5"), 0);
  const char *run = "train other.ini --output b --set run.epochs=0 --weights";
  assert_int_equal(program_run("%s %s --set weights.rename=fc*->up*", run, first), 0);
  assert_int_equal(
      program_run("%s %s --set weights.rename=fc1.*->up1.*,fc2.weight->up2.weight,fc2.b*->up2.b*", run,
                  first),
      0);
  static const char *const wrong[][2] = {
      {"fc*", "[weights] rename: 'fc*' has no '->', expected OLD -> NEW"},
      {"fc*->up", "[weights] rename: 'fc*->up': expected two names with as many * in each"},
      {"fc*->up*,conv*->c*", "[weights] rename: 'conv*' matches no name of "},
      {"fc*.*->up1.*", "expected two names with as many * in each"},
      {"fc1.*->up1.*,fc2.*->up1.*", "both get the name 'up1.bias'"},
      {"fc1.*->up1.*",
       "has 'fc2.bias', 'fc2.weight', which the model does not have; has no 'up2.weight', 'up2.bias', "
       "which the model has; [weights] prefix, rename or skip may help"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(program_run("%s %s --set weights.rename=%s", run, first, wrong[i][0]), 65);
    says(wrong[i][1]);
  }
}

/* A file whose matrix has (in, out), as GPT-2's files do. */
static void write_transposed(const char *from, const char *to, const char *name) {
  size_t n;
  uint64_t header;
  char *bytes = file_read(from, &n);
  memcpy(&header, bytes, sizeof header);
  json_t *json = json_loadb(bytes + 8, (size_t)header, 0, NULL), *one = json_object_get(json, name);
  json_t *dims = json_object_get(one, "shape");
  size_t rows = (size_t)json_integer_value(json_array_get(dims, 0)),
         columns = (size_t)json_integer_value(json_array_get(dims, 1)),
         start = 8 + (size_t)header +
                 (size_t)json_integer_value(json_array_get(json_object_get(one, "data_offsets"), 0));
  float *data = (float *)(void *)(bytes + start), copy[1024];
  assert_true(rows * columns <= 1024);
  memcpy(copy, data, rows * columns * sizeof *copy);
  for (size_t r = 0; r < rows; r++)
    for (size_t c = 0; c < columns; c++) data[c * rows + r] = copy[r * columns + c];
  json_object_set_new(one, "shape", json_pack("[I,I]", (json_int_t)columns, (json_int_t)rows));
  char *text = json_dumps(json, JSON_COMPACT);
  assert_true(strlen(text) <= header);
  memset(bytes + 8, ' ', (size_t)header);
  memcpy(bytes + 8, text, strlen(text));
  file_write_bytes(to, bytes, n);
  json_decref(json);
  free(text);
}

static void matrices_are_transposed_on_request(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output a --set run.max_steps=5"), 0);
  write_transposed(first, "t.safetensors", "fc2.weight");
  const char *run = "train noise.ini --output b --set run.epochs=0 --weights t.safetensors";
  assert_int_equal(program_run("%s", run), 65);
  says("'fc2.weight' is F32[16, 4], the model's f32[4, 16]");
  assert_int_equal(program_run("%s --set weights.transpose=fc2.weight", run), 0);
  assert_true(tensor_distance(first, second, "fc2.weight") == 0);
  assert_int_equal(program_run("%s --set weights.transpose=fc*.weight", run), 65);
  says("'fc1.weight' is F32[16, 36], the model's f32[16, 36]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(names_are_renamed_by_rules, program_open, program_close),
      cmocka_unit_test_setup_teardown(matrices_are_transposed_on_request, program_open, program_close),
      cmocka_unit_test_setup_teardown(folders_stand_for_their_best_weights, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_pattern_keeps_the_counters_skipped, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_skipped_name_may_have_another_shape, program_open, program_close),
      cmocka_unit_test_setup_teardown(keys_without_a_file_are_refused, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
