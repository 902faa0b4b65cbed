/* Training on the double of CUDA: losses near those of the cpu, the same bits in any order of the streams,
 * with and without capture. */
#include "double.h"

#include <math.h>

#include "nets.h"
#include "tests/support/whole.h"

static const char mlp_ini[] = "[run]\nname = run\n[data]\nsource = digits\nepoch = 96\nbatch = 8\n"
                              "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                              "[data.valid]\nbatch = 20\nepoch = 50\n"
                              "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
                              "         flatten\n    fc1: linear(32)\n         relu\n    fc2: linear(10)\n"
                              "loss = cross_entropy\nmetrics = accuracy\n"
                              "[optimizer]\ntype = adamw\nlr = 0.002\nclip = 1\n";

/* Two of the three cells, one of them in both directions; four rows of a picture are a step. */
static const char recurrent_ini[] = "[run]\nname = run\n[data]\nsource = digits\nepoch = 96\nbatch = 8\n"
                                    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                                    "[data.valid]\nbatch = 20\nepoch = 20\n"
                                    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
                                    "         reshape([7, 112])\n    one: lstm(12, bidirectional=yes)\n"
                                    "    all, last: gru(10)\n    fc: linear(10) <- last\n"
                                    "loss = cross_entropy\n"
                                    "[optimizer]\ntype = adamw\nlr = 0.002\n";

/* Two epochs of model.ini into the folder `output`. */
static const json_t *train(const char *output, const char *more) {
  return program_json(0, "train model.ini --output %s --set run.epochs=2 --set run.seed=3 %s", output, more);
}

static const json_t *train_on_double(const char *output, const char *more) {
  char all[1024];
  snprintf(all, sizeof all, ON_DOUBLE "--set backend.fallback=error --set run.deterministic=yes %s", more);
  const json_t *result = train(output, all);
  double_is_content();
  assert_string_equal(program_text(result, "backend"), "cuda");
  assert_true(program_number(result, "planned_peak_bytes") == program_number(result, "measured_peak_bytes"));
  return result;
}

/* A tolerance above TRAIN_ONLY is for the loss of training alone: the validation loss of a small batch_norm
 * network after steps in half precision differs between any two backends (cpu 2.8, onednn 3.5 for f16). */
#define TRAIN_ONLY 0.02

static void losses_are_near(const json_t *a, const json_t *b, double tolerance) {
  static const char *const names[] = {"train.loss", "valid.loss"};
  for (int i = 0; i < (tolerance > TRAIN_ONLY ? 1 : 2); i++) {
    double x = program_number(a, names[i]), y = program_number(b, names[i]);
    if (!(fabs(x - y) <= tolerance * fabs(y))) fail_msg("%s: %.7g, the cpu has %.7g", names[i], x, y);
  }
}

/* In fp32 and fp16, captured, and fp16 without capture too; the whole tests run each precision both ways. The
 * tolerances are relative, of a mean over twelve steps. */
static void trains_like_the_cpu(const char *ini, double f32, double half) {
  static const char *const policies[] = {"fp32", "fp16", "bf16"};
  file_write("model.ini", ini);
  for (int i = 0; i < whole_or(3, 2); i++) {
    char cpu[128], captured[128], plain[160];
    snprintf(cpu, sizeof cpu, "--set backend.use=cpu --set precision.policy=%s", policies[i]);
    snprintf(captured, sizeof captured, "--set precision.policy=%s", policies[i]);
    snprintf(plain, sizeof plain, "%s --set backend.capture=no", captured);
    const json_t *expected = train("cpu", cpu), *replayed = train_on_double("captured", captured);
    losses_are_near(replayed, expected, i == 0 ? f32 : half);
    if (i != 1 && !whole()) continue;
    const json_t *launched = train_on_double("plain", plain);
    assert_true(program_number(launched, "train.loss") == program_number(replayed, "train.loss"));
    assert_true(program_number(launched, "valid.loss") == program_number(replayed, "valid.loss"));
  }
}

static void an_mlp_trains_like_on_the_cpu(void **state) {
  (void)state;
  trains_like_the_cpu(mlp_ini, 1e-5, 1e-2);
}

static void lenet_trains_like_on_the_cpu(void **state) {
  (void)state;
  trains_like_the_cpu(lenet_ini, 1e-4, 2e-2);
}

static void a_small_transformer_trains_like_on_the_cpu(void **state) {
  (void)state;
  trains_like_the_cpu(transformer_ini, 1e-5, 1e-2);
}

static void recurrent_layers_train_like_on_the_cpu(void **state) {
  (void)state;
  trains_like_the_cpu(recurrent_ini, 1e-5, 1e-2);
}

static void a_small_resnet_trains_like_on_the_cpu(void **state) {
  (void)state;
  trains_like_the_cpu(resnet_ini, 1e-4, 3e-2);
}

/* Many orders of the streams' work, captured and not, give one result. */
static void the_order_of_streams_changes_no_bit(void **state) {
  double loss = 0;
  (void)state;
  file_write("model.ini", mlp_ini);
  for (int seed = 0; seed < whole_or(50, 5); seed++) {
    char number[16];
    snprintf(number, sizeof number, "%d", seed);
    setenv("FAKECUDA_ORDER", seed == 0 ? "eager" : seed == 1 ? "lazy" : "random", 1);
    setenv("FAKECUDA_SEED", number, 1);
    const json_t *result = train_on_double("runs", seed % 2 ? "--set backend.capture=no" : "");
    if (seed == 0) loss = program_number(result, "train.loss");
    assert_true(program_number(result, "train.loss") == loss);
  }
}

/* A scale that overflows at first: updates are left out, as many as on the cpu. */
static void an_overflow_leaves_out_updates(void **state) {
  (void)state;
  file_write("model.ini", mlp_ini);
  static const char scaling[] = "--set precision.policy=fp16";
  char cpu[256];
  snprintf(cpu, sizeof cpu, "--set backend.use=cpu %s", scaling);
  const json_t *expected = train("cpu", cpu), *got = train_on_double("cuda", scaling);
  losses_are_near(got, expected, 1e-2);
}

/* A checkpoint of one backend goes on on the other, there and back. */
static void a_checkpoint_goes_on_on_another_backend(void **state) {
  static const char run[] = "--set data.workers=0";
  char cpu[128];
  (void)state;
  file_write("model.ini", mlp_ini);
  snprintf(cpu, sizeof cpu, "--set backend.use=cpu %s", run);
  const json_t *whole = program_json(0, "train model.ini --output whole --set run.epochs=3 %s", cpu);
  assert_non_null(program_json(0, "train model.ini --output parts --set run.epochs=1 %s", cpu));
  assert_non_null(program_json(
      0, "train model.ini --output parts --resume auto --set run.epochs=2 " ON_DOUBLE "%s", run));
  double_is_content();
  const json_t *parts =
      program_json(0, "train model.ini --output parts --resume auto --set run.epochs=3 %s", cpu);
  losses_are_near(parts, whole, 1e-5);
  assert_true(program_number(parts, "steps") == program_number(whole, "steps"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_mlp_trains_like_on_the_cpu),
      TEST(lenet_trains_like_on_the_cpu),
      TEST(a_small_transformer_trains_like_on_the_cpu),
      TEST(a_small_resnet_trains_like_on_the_cpu),
      TEST(recurrent_layers_train_like_on_the_cpu),
      TEST(the_order_of_streams_changes_no_bit),
      TEST(an_overflow_leaves_out_updates),
      TEST(a_checkpoint_goes_on_on_another_backend),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
