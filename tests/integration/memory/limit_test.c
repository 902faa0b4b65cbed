/* [run] memory_limit: rematerialized values have the same bits, and the plan lists their blocks. */
#include "program.h"

#include <stdlib.h>

/* ---- configurations ---- */

/* Batch norm, dropout, residuals, a part of the network that two losses share. */
static const char residual_ini[] = "[backend]\n"
                                   "use = cpu\n"
                                   "[run]\n"
                                   "name = net\n"
                                   "max_steps = 3\n"
                                   "[data]\n"
                                   "source = random\n"
                                   "shape = 3, 16, 16\n"
                                   "classes = 6\n"
                                   "samples = 64\n"
                                   "batch = 16\n"
                                   "[model]\n"
                                   "inputs = image: f32[3, 16, 16]\n"
                                   "layers =\n"
                                   "    stem:  conv2d(16, kernel=3, padding=1, bias=no)\n"
                                   "    bn:    batch_norm\n"
                                   "           relu\n"
                                   "    a:     residual(16) * 3\n"
                                   "           dropout(0.3)\n"
                                   "    pool:  global_avg_pool\n"
                                   "    fc:    linear(6)\n"
                                   "    fc2:   linear(6) <- pool\n"
                                   "loss =\n"
                                   "    main: cross_entropy <- fc, label\n"
                                   "    aux:  cross_entropy(weight=0.5) <- fc2, label\n"
                                   "[block residual]\n"
                                   "args = planes\n"
                                   "layers =\n"
                                   "    conv1: conv2d(planes, kernel=3, padding=1, bias=no)\n"
                                   "    bn1:   batch_norm\n"
                                   "           relu\n"
                                   "    conv2: conv2d(planes, kernel=3, padding=1, bias=no)\n"
                                   "    bn2:   batch_norm\n"
                                   "           dropout(0.1)\n"
                                   "           add <- bn2, in\n"
                                   "           relu\n"
                                   "[optimizer]\n"
                                   "type = adamw\n"
                                   "lr = 0.01\n";

/* Attention, layer norm, dropout, and a head that shares the embedding's parameters. */
static const char transformer_ini[] = "[backend]\n"
                                      "use = cpu\n"
                                      "[run]\n"
                                      "name = net\n"
                                      "max_steps = 3\n"
                                      "[data]\n"
                                      "source = random\n"
                                      "tokens = 32\n"
                                      "classes = 40\n"
                                      "samples = 48\n"
                                      "batch = 8\n"
                                      "[model]\n"
                                      "inputs = tokens: i32[32]\n"
                                      "targets = next: i32[32]\n"
                                      "layers =\n"
                                      "    wte:  embedding(40, 32)\n"
                                      "    h:    block(32) * 3\n"
                                      "    ln_f: layer_norm\n"
                                      "    head: linear(40, bias=no, weight=@wte.weight)\n"
                                      "loss = cross_entropy\n"
                                      "[block block]\n"
                                      "args = width\n"
                                      "layers =\n"
                                      "    ln_1: layer_norm\n"
                                      "    qkv:  linear(3*width)\n"
                                      "    q, k, v: split(3, axis=-1)\n"
                                      "    y:    attention(4, causal=yes) <- q, k, v\n"
                                      "    proj: linear(width)\n"
                                      "          dropout(0.2)\n"
                                      "    a:    add <- in, proj\n"
                                      "    ln_2: layer_norm\n"
                                      "    up:   linear(4*width)\n"
                                      "          gelu(tanh)\n"
                                      "    down: linear(width)\n"
                                      "          add <- a, down\n"
                                      "[optimizer]\n"
                                      "type = adamw\n"
                                      "lr = 0.001\n"
                                      "clip = 1\n";

/* ResNet-18 of the examples, on noise. */
static const char noise_instead[] =
    "include = " EXAMPLES "/imagenet_resnet18.ini\n"
    "[run]\nname = net\nmax_steps = 2\n"
    "[data]\nsource = random\nshape = 3, 224, 224\nclasses = 1000\nsamples = 16\nbatch = 8\n";

/* ---- helpers ---- */

static double recomputed_bytes(const json_t *plan) {
  const json_t *list = program_member(plan, "recomputed"), *one;
  size_t i;
  double bytes = 0;
  json_array_foreach(list, i, one) {
    assert_true(strlen(program_text(one, "block")) > 0);
    assert_true(program_number(one, "flops") >= 0);
    bytes += program_number(one, "bytes");
  }
  return bytes;
}

/* Bytes in all where the arena has so much of what it would have without a limit. */
static long long limit_of(const char *more, double share) {
  const json_t *plan = program_json(0, "plan net.ini %s", more);
  assert_int_equal(json_array_size(program_member(plan, "recomputed")), 0);
  double arena = program_number(plan, "arena_bytes");
  return (long long)(program_number(plan, "peak_bytes") - arena + share * arena);
}

/* Trains without a limit and with one; both runs end alike, and memory is as planned. */
static void trains_alike(const char *more, double share) {
  long long limit = limit_of(more, share);
  const json_t *plan = program_json(0, "plan net.ini %s --set run.memory_limit=%lld", more, limit);
  assert_true(recomputed_bytes(plan) > 0);
  assert_true(program_number(plan, "recomputed_flops") > 0);
  assert_true(program_number(plan, "peak_bytes") <= (double)limit);
  program_json(0, "train net.ini %s --output free", more);
  const json_t *run =
      program_json(0, "train net.ini %s --output tight --set run.memory_limit=%lld", more, limit);
  assert_true(program_number(run, "planned_peak_bytes") == program_number(run, "measured_peak_bytes"));
  assert_true(program_number(run, "planned_peak_bytes") <= (double)limit);
  checkpoint_folders_equal("free/net/checkpoints/last", "tight/net/checkpoints/last");
}

/* ---- tests ---- */

static void residual_networks_train_to_the_same_bits(void **state) {
  (void)state;
  file_write("net.ini", residual_ini);
  trains_alike("", 0.85);
}

static void transformers_train_to_the_same_bits(void **state) {
  (void)state;
  file_write("net.ini", transformer_ini);
  trains_alike("", 0.7);
}

static void resnet18_trains_in_three_fifths_of_its_arena(void **state) {
  (void)state;
  file_write("net.ini", noise_instead);
  trains_alike("--set backend.autotune=no --set data.train.transforms= --set data.valid.transforms= "
               "--set data.valid.source=random",
               0.6);
}

static void the_text_of_the_plan_names_the_blocks(void **state) {
  (void)state;
  file_write("net.ini", residual_ini);
  long long limit = limit_of("", 0.85);
  assert_int_equal(program_run("plan net.ini --set run.memory_limit=%lld", limit), 0);
  assert_non_null(strstr(program_out, "rematerialized for memory_limit"));
  assert_non_null(strstr(program_out, "a.0 ("));
  assert_int_equal(program_run("plan net.ini"), 0);
  assert_null(strstr(program_out, "rematerialized for memory_limit"));
}

/* The error names the bytes that are needed, which are enough as a limit, and the two ways out. */
static void too_little_memory_is_an_error_that_says_what_is_needed(void **state) {
  (void)state;
  file_write("net.ini", residual_ini);
  long long limit = limit_of("", 0.5);
  assert_int_equal(program_run("plan net.ini --set run.memory_limit=%lld", limit), 65);
  assert_non_null(strstr(program_err, "memory_limit: [run] memory_limit"));
  assert_non_null(strstr(program_err, "for a batch of 16"));
  const char *at = strstr(program_err, "at least ");
  assert_non_null(at);
  double least = strtod(at + 9, NULL);
  assert_true(least * 1048576 > (double)limit);
  assert_non_null(strstr(program_err, "raise memory_limit, or lower [data] batch"));
  assert_int_equal(program_run("plan net.ini --set run.memory_limit=%lldKiB", (long long)(least * 1024) + 1),
                   0);
  assert_int_equal(program_run("plan net.ini --set run.memory_limit=%lld --set data.batch=4", limit), 0);
}

/* Lowering the batch is advised only where it may help. */
static void too_little_memory_for_any_batch_is_an_error_that_says_so(void **state) {
  (void)state;
  file_write("net.ini", residual_ini);
  assert_int_equal(program_run("plan net.ini --set run.memory_limit=1KiB"), 65);
  assert_non_null(strstr(program_err, "no batch fits, because the state alone exceeds it"));
  const json_t *plan = program_json(0, "plan net.ini --set data.batch=1");
  long long state_bytes = (long long)program_number(plan, "state_bytes");
  assert_int_equal(
      program_run("plan net.ini --set data.batch=1 --set run.memory_limit=%lld", state_bytes + 64), 65);
  assert_non_null(strstr(program_err, "the batch cannot be smaller"));
}

/* A limit above the peak changes nothing. */
static void enough_memory_changes_nothing(void **state) {
  (void)state;
  file_write("net.ini", transformer_ini);
  const json_t *plain = program_json(0, "plan net.ini"), *wide = NULL;
  wide = program_json(0, "plan net.ini --set run.memory_limit=1GiB");
  assert_string_equal(program_text(plain, "hash"), program_text(wide, "hash"));
}

/* Offsets waste little: the arena against the bytes that are alive at once. */
static void arenas_are_close_to_their_bound(void **state) {
  static const char *const plans[] = {"mnist_lenet.ini",
                                      "imagenet_resnet18.ini --set data.batch=8",
                                      "imagenet_resnet18.ini --set data.batch=128",
                                      "shakespeare_char.ini",
                                      "imagenet_resnet50.ini --set data.batch=32",
                                      "gpt2_124m.ini"};
  (void)state;
  for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
    const json_t *plan = program_json(0, "plan " EXAMPLES "/%s", plans[i]);
    double arena = program_number(plan, "arena_bytes"), bound = program_number(plan, "arena_bound_bytes");
    print_message("%s: %.2f MiB, %.4f of the bound\n", plans[i], arena / 1048576.0, arena / bound);
    assert_true(arena <= 1.05 * bound);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(residual_networks_train_to_the_same_bits, program_open, program_close),
      cmocka_unit_test_setup_teardown(transformers_train_to_the_same_bits, program_open, program_close),
      cmocka_unit_test_setup_teardown(resnet18_trains_in_three_fifths_of_its_arena, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(the_text_of_the_plan_names_the_blocks, program_open, program_close),
      cmocka_unit_test_setup_teardown(too_little_memory_is_an_error_that_says_what_is_needed, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(too_little_memory_for_any_batch_is_an_error_that_says_so, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(enough_memory_changes_nothing, program_open, program_close),
      cmocka_unit_test_setup_teardown(arenas_are_close_to_their_bound, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
