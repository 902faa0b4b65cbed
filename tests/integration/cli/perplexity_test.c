/* The metric perplexity: e to the power of the mean cross entropy over all targets of a pass. */
#include <math.h>

#include "nets.h"
#include "program.h"

static void is_exp(const json_t *r, const char *loss, const char *perplexity) {
  double want = exp(program_number(r, loss)), found = program_number(r, perplexity);
  if (!(fabs(found - want) <= 1e-6 * want)) fail_msg("%s is %.9g, expected %.9g", perplexity, found, want);
}

/* Batches of 4 and, at the end, of 2 sequences; the mean of the exponentials would be larger. */
static void it_is_of_the_mean_of_the_pass(void **state) {
  (void)state;
  file_write("net.ini", transformer_ini);
  const json_t *r = program_json(0, "train net.ini --set model.metrics=perplexity --set data.samples=46 "
                                    "--set run.epochs=3 --set run.observers=jsonl,tensorboard");
  is_exp(r, "train.cross_entropy", "train.perplexity");
  is_exp(r, "valid.cross_entropy", "valid.perplexity");
  r = program_json(0, "eval runs/run --set data.samples=46");
  is_exp(r, "cross_entropy", "perplexity");
  size_t n;
  assert_non_null(strstr(file_read("runs/run/metrics.jsonl", &n), "\"perplexity\": "));
  assert_int_equal(program_run("report runs/run --output page.html"), 0);
  assert_non_null(strstr(file_read("page.html", &n), "perplexity"));
}

/* Ignored targets do not count, as in the loss. */
static void it_takes_the_options_of_the_loss(void **state) {
  (void)state;
  file_write("net.ini", transformer_ini);
  const json_t *r = program_json(0, "train net.ini --set model.loss=cross_entropy(ignore=3) "
                                    "--set model.metrics=perplexity(ignore=3)");
  is_exp(r, "valid.cross_entropy", "valid.perplexity");
  /* without the smoothing of the loss */
  r = program_json(0, "train net.ini --set model.loss=cross_entropy(label_smoothing=0.3) "
                      "--set model.metrics=perplexity");
  assert_true(fabs(program_number(r, "valid.perplexity") - exp(program_number(r, "valid.loss"))) > 1e-3);
  file_write("soft.ini", "[run]\nname = soft\n[data]\nsource = random\nshape = 3, 4, 4\nclasses = 5\n"
                         "samples = 30\nbatch = 8\ntransforms = one_hot(5) <- label\n"
                         "[model]\ninputs = image: f32[3, 4, 4]\ntargets = label: f32[5]\n"
                         "layers =\n    flatten\n    fc: linear(5)\nloss = cross_entropy\n"
                         "metrics = perplexity\n[optimizer]\nlr = 0.1\n");
  is_exp(program_json(0, "train soft.ini"), "valid.loss", "valid.perplexity");
}

static void several_devices_have_that_of_one(void **state) {
  (void)state;
  file_write("net.ini", transformer_ini);
  static const char run[] = "train net.ini --set model.metrics=perplexity --set backend.use=sim";
  double one = program_number(program_json(0, "%s", run), "valid.perplexity");
  const json_t *two = program_json(0, "%s --set backend.sim.devices=2 --set distributed.devices=2", run);
  is_exp(two, "valid.cross_entropy", "valid.perplexity");
  assert_true(fabs(program_number(two, "valid.perplexity") - one) < 1e-3 * one);
}

/* Among metrics, perplexity and losses are best when small, without best_mode. */
static void the_best_is_the_least(void **state) {
  (void)state;
  static const char *const metrics[] = {"perplexity", "other:cross_entropy"}, *const best[] = {"perplexity",
                                                                                               "other"};
  file_write("digits.ini", digits_ini);
  for (int i = 0; i < 2; i++) {
    const json_t *r = program_json(0,
                                   "train digits.ini --set run.name=net%d --set run.epochs=3 "
                                   "--set model.metrics=%s --set run.best=%s",
                                   i, metrics[i], best[i]);
    char path[64], name[64];
    snprintf(path, sizeof path, "runs/net%d/checkpoints/best/state.json", i);
    snprintf(name, sizeof name, "valid.%s", best[i]);
    assert_int_equal(program_number(file_json(path), "epoch"), 3);
    double last = program_number(r, name);
    assert_true(fabs(program_number(file_json(path), "best") - last) < 1e-6 * last);
  }
  program_json(0, "train digits.ini --set run.name=worst --set run.epochs=3 --set model.metrics=perplexity "
                  "--set run.best_mode=max");
  assert_int_equal(program_number(file_json("runs/worst/checkpoints/best/state.json"), "epoch"), 1);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(it_is_of_the_mean_of_the_pass),
      CASE(it_takes_the_options_of_the_loss),
      CASE(several_devices_have_that_of_one),
      CASE(the_best_is_the_least),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
