/* scan: the loop computes what its block does when it is written once for each step, and its plan does not
 * grow with the steps. */
#include <math.h>
#include <stdbool.h>

#include "program.h"

static const char data_ini[] = "[run]\n"
                               "name = net\n"
                               "max_steps = 6\n"
                               "[data]\n"
                               "source = random\n"
                               "samples = 32\n"
                               "batch = 8\n"
                               "fields = x: f32[3, 4], length: i32[] 1..3\n"
                               "targets = label: i32[] 0..2\n"
                               "[optimizer]\n"
                               "type = sgd\n"
                               "lr = 0.1\n";

/* Two states, of which one is the output; layer norm; a parameter that two lines share. */
static const char cell_ini[] = "[block cell]\n"
                               "args = units\n"
                               "inputs = x, h, c\n"
                               "layers =\n"
                               "    ih: linear(2 * units) <- x\n"
                               "    hh: linear(2 * units, bias=no) <- h\n"
                               "    n:  layer_norm <- ih + hh\n"
                               "    i, g = split(n, 2, axis=1)\n"
                               "    next = sigmoid(i) * c + tanh(g)\n"
                               "    o:  linear(units) <- next\n"
                               "    p:  @o <- h\n"
                               "    y = tanh(o + p)\n"
                               "outputs = y, y, next\n";

static const char scan_ini[] = "[model]\n"
                               "inputs = x: f32[3, 4], length: i32[]\n"
                               "layers =\n"
                               "    zero = full([dim(x, 0), 5], 0)\n"
                               "    y, h, c: scan(cell(5)%s) <- x, zero, zero\n"
                               "    fc: linear(3) <- concat(y[:, 0] + 2 * y[:, 1] + 3 * y[:, 2], c, axis=1)\n"
                               "loss = cross_entropy\n";

static const char steps_ini[] = "[model]\n"
                                "inputs = x: f32[3, 4], length: i32[]\n"
                                "layers =\n"
                                "    zero = full([dim(x, 0), 5], 0)\n"
                                "    a = x[:, %d]\n"
                                "    b = x[:, 1]\n"
                                "    d = x[:, %d]\n"
                                "    y, h0, c0:  cell(5) <- a, zero, zero\n"
                                "    y1, h1, c1: @y <- b, h0, c0\n"
                                "    y2, h2, c2: @y <- d, h1, c1\n"
                                "    fc: linear(3) <- concat(%d * y + 2 * y1 + %d * y2, c2, axis=1)\n"
                                "loss = cross_entropy\n";

static void write_models(bool reverse) {
  char text[4096];
  int n = snprintf(text, sizeof text, "%s", data_ini);
  n += snprintf(text + n, sizeof text - (size_t)n, scan_ini, reverse ? ", reverse=yes" : "");
  snprintf(text + n, sizeof text - (size_t)n, "%s", cell_ini);
  file_write("scan.ini", text);
  int first = reverse ? 2 : 0;
  n = snprintf(text, sizeof text, "%s", data_ini);
  n += snprintf(text + n, sizeof text - (size_t)n, steps_ini, first, 2 - first, 1 + first, 3 - first);
  snprintf(text + n, sizeof text - (size_t)n, "%s", cell_ini);
  file_write("steps.ini", text);
}

/* The loss of the last steps, behind updates with the gradients of all. */
static double loss_of(const char *model, const char *options) {
  return program_number(program_json(0, "train %s.ini --output %s %s", model, model, options), "train.loss");
}

static void assert_like_steps(const char *options, double tolerance) {
  double scan = loss_of("scan", options), steps = loss_of("steps", options);
  if (!(fabs(scan - steps) <= tolerance * steps))
    fail_msg("%s: the loss is %.9g by scan, %.9g step by step", options, scan, steps);
}

static void a_scan_trains_like_its_steps(void **state) {
  (void)state;
  write_models(false);
  assert_like_steps("--set backend.use=cpu", 1e-6);
  assert_like_steps("--set precision.policy=bf16", 5e-3);
  write_models(true);
  assert_like_steps("--set run.seed=3", 1e-6);
}

/* A device that computes later than it is asked to has launches of its own for each step. */
static void a_late_device_gives_the_same_bits(void **state) {
  (void)state;
  write_models(true);
  assert_true(loss_of("scan", "--set backend.use=cpu") == loss_of("scan", "--set backend.use=sim"));
}

static void a_resumed_run_gives_the_same_bits(void **state) {
  (void)state;
  write_models(false);
  loss_of("scan", "--set run.max_steps=3");
  loss_of("scan", "--resume auto");
  assert_int_equal(program_run("train scan.ini --output whole"), 0);
  files_equal("scan/net/checkpoints/last/model.safetensors", "whole/net/checkpoints/last/model.safetensors");
}

static void write_long_model(int steps) {
  char text[4096];
  snprintf(text, sizeof text,
           "[model]\n"
           "inputs = x: f32[%d, 4], length: i32[]\n"
           "layers =\n"
           "    zero = full([dim(x, 0), 5], 0)\n"
           "    y, h, c: scan(cell(5)) <- x, zero, zero, length\n"
           "    fc: linear(3) <- h\n"
           "loss = cross_entropy\n%s",
           steps, cell_ini);
  file_write("long.ini", text);
}

/* Launches of a step; *bytes: of the plan as text. */
static double plan_of(int steps, size_t *bytes) {
  write_long_model(steps);
  const json_t *plan = program_json(0, "plan long.ini");
  *bytes = strlen(program_out);
  return (double)json_array_size(program_member(plan, "launches"));
}

static void a_plan_does_not_grow_with_the_steps(void **state) {
  (void)state;
  size_t few, many;
  assert_true(plan_of(10, &few) == plan_of(5000, &many));
  assert_true(many < few + few / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_scan_trains_like_its_steps, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_late_device_gives_the_same_bits, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_resumed_run_gives_the_same_bits, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_plan_does_not_grow_with_the_steps, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
