/* LeNet, a small ResNet and an LSTM under every policy, against their fp32 curves.
 *
 * The band: over the first ten steps the curves agree up to the rounding of a single pass: a hundredth for a
 * loss of 2.3, where the largest difference seen is 0.003. Later, rounding makes runs diverge as another seed
 * would: the means over ten steps may differ by 12 %, twice the largest difference seen (6 %; 4 % for tf32,
 * which only rounds the operands of products). A policy that loses gradients or statistics is far outside:
 * without scaling, fp16 does not reduce a loss times 1e-6. */
#include <math.h>

#include "checkpoint.h"

#define DIGITS                                                                                               \
  "[run]\n"                                                                                                  \
  "name = run\n"                                                                                             \
  "seed = 1\n"                                                                                               \
  "max_steps = 80\n"                                                                                         \
  "[data]\n"                                                                                                 \
  "source = digits\n"                                                                                        \
  "batch = 32\n"                                                                                             \
  "workers = 0\n"                                                                                            \
  "transforms = to_float, normalize(mean=0.13, std=0.31)\n"                                                  \
  "[data.valid]\n"                                                                                           \
  "epoch = 100\n"

static const char lenet_ini[] = "include = " EXAMPLES "/mnist_lenet.ini\n" DIGITS;

static const char resnet_ini[] =
    DIGITS "[model]\n"
           "inputs = image: f32[1, 28, 28]\n"
           "layers =\n"
           "    conv1:  conv2d(8, kernel=3, stride=2, padding=1, bias=no)\n"
           "    bn1:    batch_norm\n"
           "            relu\n"
           "    layer1: basic(8)\n"
           "    layer2: basic(16, stride=2)\n"
           "            global_avg_pool\n"
           "    fc:     linear(10)\n"
           "loss = cross_entropy\n"
           "metrics = accuracy\n"
           "[block basic]\n"
           "args = planes, stride=1\n"
           "layers =\n"
           "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no)\n"
           "    bn1:   batch_norm\n"
           "           relu\n"
           "    conv2: conv2d(planes, kernel=3, padding=1, bias=no)\n"
           "    bn2:   batch_norm\n"
           "    down:  conv2d(planes, kernel=1, stride=stride, bias=no),\n"
           "           batch_norm <- in if stride != 1 or dim(in, 1) != planes\n"
           "           add <- bn2, down\n"
           "           relu\n"
           "[optimizer]\n"
           "type = sgd\n"
           "lr = 0.1\n"
           "momentum = 0.9\n"
           "weight_decay = 5e-4\n";

/* Rows of the picture as steps. */
static const char lstm_ini[] = DIGITS "[model]\n"
                                      "inputs = image: f32[1, 28, 28]\n"
                                      "layers =\n"
                                      "         reshape([28, 28])\n"
                                      "    all, last: lstm(32)\n"
                                      "    fc:  linear(10) <- last\n"
                                      "loss = cross_entropy\n"
                                      "[optimizer]\n"
                                      "type = adamw\n"
                                      "lr = 0.004\n"
                                      "weight_decay = 0\n";

enum { STEPS = 80, START = 10, WINDOW = 10 };
static const double start_band = 0.01, band = 0.12;

typedef struct curve {
  double loss[STEPS];
} curve;

static curve train(const char *ini, const char *policy, const char *more) {
  curve c = {{0}};
  char path[64];
  size_t n;
  int step = 0;
  program_json(0, "train %s --output %s --set precision.policy=%s %s", ini, policy, policy, more);
  snprintf(path, sizeof path, "%s/run/metrics.jsonl", policy);
  for (char *line = strtok(file_read(path, &n), "\n"); line; line = strtok(NULL, "\n")) {
    json_t *json = json_loads(line, 0, NULL);
    if (strcmp(program_text(json, "event"), "step") == 0 && step < STEPS)
      c.loss[step++] = program_number(json, "train.loss");
    json_decref(json);
  }
  assert_int_equal(step, STEPS);
  return c;
}

static double mean(const double *v, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += v[i];
  return sum / n;
}

static void compare(const char *policy, const curve *c, const curve *full) {
  for (int i = 0; i < START; i++)
    if (!(fabs(c->loss[i] - full->loss[i]) <= start_band))
      fail_msg("%s: step %d has loss %g, fp32 %g", policy, i, c->loss[i], full->loss[i]);
  for (int i = 0; i + WINDOW <= STEPS; i += WINDOW) {
    double one = mean(c->loss + i, WINDOW), other = mean(full->loss + i, WINDOW);
    if (!(fabs(one - other) <= band * other))
      fail_msg("%s: steps from %d have loss %g, fp32 %g", policy, i, one, other);
  }
}

static void train_all(const char *text) {
  static const char *const policies[] = {"tf32", "bf16", "fp16"};
  file_write("net.ini", text);
  curve full = train("net.ini", "fp32", "");
  assert_true(mean(full.loss + STEPS - WINDOW, WINDOW) < 0.6 * full.loss[0]); /* there is a curve */
  for (int i = 0; i < 3; i++) {
    curve c = train("net.ini", policies[i], "");
    compare(policies[i], &c, &full);
  }
}

static void lenet_learns_alike(void **state) {
  (void)state;
  train_all(lenet_ini);
}

static void a_resnet_learns_alike(void **state) {
  (void)state;
  train_all(resnet_ini);
}

/* Of the default backend and of the reference; with fp16 the loss is scaled. */
static void an_lstm_learns_alike(void **state) {
  (void)state;
  file_write("net.ini", lstm_ini);
  curve full = train("net.ini", "fp32", "");
  assert_true(mean(full.loss + STEPS - WINDOW, WINDOW) < 0.8 * full.loss[0]);
  for (int i = 0; i < 4; i++) {
    const char *policy = i % 2 == 0 ? "bf16" : "fp16";
    curve c = train("net.ini", policy, i < 2 ? "" : "--set backend.use=cpu");
    compare(policy, &c, &full);
  }
}

/* A loss so small that its gradients vanish in f16: with scaling the net learns as usual, without it hardly
 * at all. The learning rate is scaled up by the same factor, so that SGD's updates are the usual ones. */
static void scaling_preserves_small_gradients(void **state) {
  (void)state;
  static const char small[] = "--set model.loss=cross_entropy(weight=1e-6) --set optimizer.lr=50000 --set "
                              "optimizer.weight_decay=0 --set schedule.type=constant --set run.max_steps=60 "
                              "--set precision.policy=fp16";
  file_write("net.ini", lenet_ini);
  const json_t *scaled = program_json(0, "train net.ini --output a %s", small);
  double with = program_number(scaled, "train.cross_entropy");
  const json_t *plain = program_json(0, "train net.ini --output b %s --set precision.scaling=none", small);
  double without = program_number(plain, "train.cross_entropy");
  if (!(with < 2.0 && without > 2.2)) fail_msg("with scaling %g, without %g", with, without);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {CASE(lenet_learns_alike), CASE(a_resnet_learns_alike),
                                     CASE(an_lstm_learns_alike), CASE(scaling_preserves_small_gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
