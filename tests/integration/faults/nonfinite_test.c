/* A run with a loss or gradient that is not finite names the first op and its layer, keeps the last good
 * checkpoint, and ends with 76: on every device, in every precision, and for every division of the batch. */
#include "program.h"

#include <math.h>

static const char plain[] = "[run]\nname = run\nepochs = 2\nsave_every = 1\n"
                            "[plugins]\nload = " HOLES "\n"
                            "[data]\nsource = holes\nbatch = 8\nshuffle = no\n"
                            "[model]\ninputs = image: f32[2, 4, 4]\nlayers =\n"
                            "    conv: conv2d(4, kernel=3, padding=1)\n"
                            "          relu\n"
                            "          flatten\n"
                            "    fc:   linear(3)\n"
                            "loss = cross_entropy\n"
                            "[optimizer]\ntype = sgd\nlr = 0.05\n";
/* The layer in the middle has an infinite value or gradient where the relu is 0. */
static const char spoilt[] = "[run]\nname = run\nepochs = 2\n"
                             "[plugins]\nload = " HOLES "\n"
                             "[data]\nsource = holes\nbatch = 8\nshuffle = no\n"
                             "[model]\ninputs = image: f32[2, 4, 4]\nlayers =\n"
                             "    conv: conv2d(4, kernel=3, padding=1)\n"
                             "    odd:  %s\n"
                             "          flatten\n"
                             "    fc:   linear(3)\n"
                             "loss = cross_entropy\n"
                             "[optimizer]\ntype = sgd\nlr = 0.05\n";

/* Configurations of the same run. The first six use f32. */
static const char *const ways[] = {
    "run.threads=2",
    "backend.use=sim",
    "backend.use=sim --set backend.capture=no --set backend.sim.order=lazy",
    "optimizer.accumulate=2",
    "backend.use=sim --set optimizer.accumulate=2",
    "backend.use=sim,cpu --set backend.sim.lacks=matmul,log,sqrt --set backend.fallback=allow",
    "precision.policy=bf16",
    "backend.use=sim --set precision.policy=bf16",
    "precision.policy=fp16 --set precision.scaling=none",
    "precision.policy=tf32",
};
enum { WAYS = sizeof ways / sizeof *ways };
static const char two_devices[] = "backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2 "
                                  "--set distributed.communicator=sim";

static void says(const char *what, const char *way) {
  if (strstr(program_err, what) == NULL)
    fail_msg("with %s: expected '%s', it said: %s", way, what, program_err);
}

static void fails(const char *way, const char *more, const char *const what[3]) {
  int code = program_run("train a.ini --output out --set %s%s", way, more);
  if (code != 76) fail_msg("with %s: %d, expected 76: %s", way, code, program_err);
  for (int i = 0; i < 3 && what[i]; i++) says(what[i], way);
}

static void a_nan_in_the_data_is_reported_as_the_input(void **state) {
  (void)state;
  file_write("a.ini", plain);
  for (int i = 0; i < WAYS; i++) {
    static const char *const what[3] = {"the loss is", ": input 'image' is not finite: element [",
                                        "check the values of the source and the transforms of [data]"};
    fails(ways[i], " --set data.at=[27]", what);
    says("checkpoints/last is the last good one", ways[i]);
  }
}

static void a_nan_of_another_ranks_data_is_found(void **state) {
  (void)state;
  file_write("a.ini", plain);
  static const char *const what[3] = {"at step 4: on another rank, input 'image' is not finite",
                                      "element [2, 0, 1, 3] of f32[4, 2, 4, 4] is nan"};
  fails(two_devices, " --set data.at=[30]", what);
}

/* f32 alone: in a narrower type an earlier value overflows. */
static void a_learning_rate_that_is_too_high_is_an_overflow(void **state) {
  (void)state;
  file_write("a.ini", plain);
  for (int i = 0; i < 6; i++) {
    static const char *const what[3] = {"is the first whose result is not finite: element [",
                                        " of layer 'fc' (", "a.ini:17) "};
    fails(ways[i], " --set optimizer.lr=1e30", what);
  }
  static const char *const what[3] = {"is the first whose result is not finite", "a lower lr"};
  for (int i = 6; i < WAYS; i++)
    if (strstr(ways[i], "fp16") == NULL) fails(ways[i], " --set optimizer.lr=1e30", what);
}

/* Moments overflow before the weights do. No checkpoint has been written, so the search begins with the state
 * of a new run, whose moments are zero. */
static void an_overflow_of_moments_is_not_blamed_on_the_first_weights(void **state) {
  (void)state;
  file_write("a.ini", plain);
  for (int i = 0; i < 2; i++) {
    static const char *const what[3] = {"the loss is ", "op '", "a lower lr or [optimizer] clip may help"};
    fails(ways[i], " --set optimizer.type=adamw --set optimizer.lr=1e12 --set run.save_every=0", what);
    assert_null(strstr(program_err, "before the step"));
    assert_null(strstr(program_err, "initializers"));
    says("; lr 1e+12 at step ", ways[i]);
    says(", [optimizer] clip 0 (none), precision fp32; ", ways[i]);
  }
}

static void a_loss_that_is_not_finite_is_no_zero_on_the_screen(void **state) {
  (void)state;
  file_write("a.ini", plain);
  assert_int_equal(program_run("train a.ini --output out --set optimizer.lr=1e30"), 76);
  assert_non_null(strstr(program_out, "loss nan"));
  assert_null(strstr(program_out, "loss 0 "));
}

static void a_logarithm_of_zero_is_reported(void **state) {
  (void)state;
  char text[1024];
  snprintf(text, sizeof text, spoilt, "logarithm");
  file_write("a.ini", text);
  for (int i = 0; i < WAYS; i++) {
    static const char *const what[3] = {"at step 1: op 'log' of layer 'odd' (", "a.ini:14)", "is -inf"};
    fails(ways[i], "", what);
    says("from operands within [", ways[i]);
    says("no checkpoint had been written", ways[i]);
  }
}

/* The loss is finite at the step that makes the weights infinite. */
static void an_infinite_gradient_is_reported_for_the_step_before_the_loss(void **state) {
  (void)state;
  char text[1024];
  snprintf(text, sizeof text, spoilt, "root");
  file_write("a.ini", text);
  for (int i = 0; i < WAYS; i++) {
    static const char *const what[3] = {"the loss is", "at step 2: in step 1, op '", " of layer 'odd'"};
    fails(ways[i], "", what);
  }
  static const char *const what[3] = {"at step 2: in step 1, op '", " of layer 'odd'"};
  fails(two_devices, "", what);
}

/* The last step of a run makes the weights infinite, and no loss is read after it. */
static void weights_that_are_not_finite_never_become_a_checkpoint(void **state) {
  (void)state;
  char text[1024];
  snprintf(text, sizeof text, spoilt, "root");
  file_write("a.ini", text);
  static const char *const what[3] = {"was not written", "element 0 of 'conv.", " of layer 'odd' ("};
  fails("run.max_steps=1", "", what);
  fails(two_devices, " --set run.max_steps=1",
        (const char *const[3]){"was not written", " of layer 'odd' ("});
  assert_false(file_exists("out/run/checkpoints/last"));
}

static void a_skipped_update_is_accepted_and_a_hundred_fail(void **state) {
  (void)state;
  char text[1024];
  snprintf(text, sizeof text, spoilt, "logarithm");
  file_write("a.ini", text);
  static const char *const what[3] = {
      "as in the 99 steps before, which were skipped: op 'log' of layer 'odd'"};
  fails("precision.policy=fp16", " --set run.epochs=20", what);
}

/* The offset of a tensor's data in a safetensors file. */
static long data_of(const char *bytes, const char *name) {
  uint64_t header;
  char key[64];
  memcpy(&header, bytes, sizeof header);
  snprintf(key, sizeof key, "\"%s\"", name);
  const char *at = strstr(bytes + 8, key), *offsets = at ? strstr(at, "\"data_offsets\":[") : NULL;
  assert_non_null(offsets);
  return (long)(8 + header) + strtol(offsets + strlen("\"data_offsets\":["), NULL, 10);
}

/* CRC-32C, as state.json records it for each file. */
static uint32_t crc32c(const char *bytes, size_t n) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < n; i++) {
    crc ^= (unsigned char)bytes[i];
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

static void set_sum(json_t *json, const char *bytes, size_t n) {
  assert_int_equal(json_object_set_new(json, "crc32c", json_integer(crc32c(bytes, n))), 0);
}

/* Writes a NaN into a parameter of a checkpoint, with correct checksums, as another program might. */
static void spoil(const char *checkpoint) {
  char path[256], state[256];
  size_t n;
  float nothing = NAN;
  snprintf(path, sizeof path, "%s/model.safetensors", checkpoint);
  snprintf(state, sizeof state, "%s/state.json", checkpoint);
  char *bytes = file_read(path, &n);
  memcpy(bytes + data_of(bytes, "fc.weight") + 20, &nothing, sizeof nothing);
  file_write_bytes(path, bytes, n);
  json_t *json = json_load_file(state, 0, NULL), *files = json_object_get(json, "files");
  set_sum(json_object_get(files, "model.safetensors"), bytes, n);
  json_object_del(json, "crc32c");
  char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
  set_sum(json, text, strlen(text));
  free(text);
  assert_int_equal(json_dump_file(json, state, JSON_INDENT(2)), 0);
  json_decref(json);
}

/* Such a checkpoint is invalid: the previous one is taken, or the run fails if there is no other. */
static void weights_of_a_checkpoint_that_are_nan_are_refused(void **state) {
  (void)state;
  static const char *const what[3] = {"last/model.safetensors: element 5 of 'fc.weight' is nan",
                                      "holds no other checkpoint, and nothing was changed"};
  file_write("a.ini", plain);
  assert_int_equal(program_run("train a.ini --output out --set run.max_steps=7"), 0);
  spoil("out/run/checkpoints/last");
  assert_int_equal(program_run("train a.ini --output out --resume auto"), 0);
  says("checkpoint 'last' cannot be used", "resume");
  says("element 5 of 'fc.weight' is nan", "resume");
  assert_true(file_exists("out/run/checkpoints/last.bad/model.safetensors"));
  assert_int_equal(program_run("train a.ini --output lone --set run.max_steps=7"), 0);
  assert_int_equal(rename("lone/run/checkpoints/best", "lone/elsewhere"), 0);
  spoil("lone/run/checkpoints/last");
  fails("run.threads=2", " --output lone --resume auto", what);
  assert_true(file_exists("lone/run/checkpoints/last/model.safetensors"));
}

static void weights_that_are_nan_are_refused(void **state) {
  (void)state;
  file_write("a.ini", plain);
  assert_int_equal(program_run("train a.ini --output out --set run.max_steps=1"), 0);
  spoil("out/run/checkpoints/last");
  static const char *const what[3] = {
      "--set weights.file: ", "out/run/checkpoints/last/model.safetensors: element 5 of 'fc.weight' is nan"};
  fails("weights.file=out/run/checkpoints/last/model.safetensors", " --output two", what);
  assert_int_equal(program_run("eval a.ini --weights out/run/checkpoints/last/model.safetensors"), 76);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_nan_in_the_data_is_reported_as_the_input),
      CASE(a_nan_of_another_ranks_data_is_found),
      CASE(a_learning_rate_that_is_too_high_is_an_overflow),
      CASE(an_overflow_of_moments_is_not_blamed_on_the_first_weights),
      CASE(a_loss_that_is_not_finite_is_no_zero_on_the_screen),
      CASE(a_logarithm_of_zero_is_reported),
      CASE(an_infinite_gradient_is_reported_for_the_step_before_the_loss),
      CASE(weights_that_are_not_finite_never_become_a_checkpoint),
      CASE(a_skipped_update_is_accepted_and_a_hundred_fail),
      CASE(weights_of_a_checkpoint_that_are_nan_are_refused),
      CASE(weights_that_are_nan_are_refused),
  };
  return cmocka_run_group_tests_name("faults: not finite", tests, NULL, NULL);
}
