/* [phase NAME]: a generator and a discriminator that take turns in every step. */
#include "npy_files.h"
#include "tensors.h"

#include <math.h>
#include <stdbool.h>

enum { SAMPLES = 40, NOISE = 6, PIXELS = 64, STEPS = 10 };

static const char *net;

/* tests/golden/make_gan.py has the same samples. */
static int open_with_samples(void **state) {
  static float noise[SAMPLES * NOISE], images[SAMPLES * PIXELS];
  int failed = program_open(state);
  size_t n;
  for (int i = 0; i < SAMPLES; i++) {
    for (int j = 0; j < NOISE; j++)
      noise[i * NOISE + j] = (float)((i * 37 + j * 11 + i * j * 5) % 251) / 128 - 1;
    for (int j = 0; j < PIXELS; j++)
      images[i * PIXELS + j] = (float)((i * 13 + j * 7 + i * j * 3) % 127) / 64 - 1;
  }
  file_write_bytes("noise.bin", noise, sizeof noise);
  file_write_bytes("images.bin", images, sizeof images);
  net = file_read(GAN "/net.ini", &n);
  file_write("net.ini", net);
  return failed;
}

static void train(const char *to, const char *more) {
  if (program_run("train net.ini --quiet --output %s --set run.name=run %s", to, more) != 0)
    fail_msg("%s: %s", more, program_err);
}

/* ---- PyTorch ---- */

static double number_of(const json_t *object, const char *name) {
  return json_number_value(json_object_get(object, name));
}

/* The losses of the steps in metrics.jsonl; a phase that rests has no loss in the golden. */
static void expect_losses(const char *to, const json_t *steps) {
  char path[96];
  size_t n, step = 0;
  snprintf(path, sizeof path, "%s/run/metrics.jsonl", to);
  const char *at = file_read(path, &n);
  for (; *at != '\0'; at = strchr(at, '\n') + 1) {
    json_error_t error;
    json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, &error);
    if (strcmp(json_string_value(json_object_get(line, "event")), "step") == 0) {
      const char *name;
      json_t *want;
      json_object_foreach(json_array_get(steps, step), name, want) {
        double has = number_of(json_object_get(line, "train"), name), wants = json_number_value(want);
        if (!(fabs(has - wants) <= 1e-6 * (0.1 + fabs(wants))))
          fail_msg("step %zu: %s is %.9g, PyTorch has %.9g", step + 1, name, has, wants);
      }
      step++;
    }
    json_decref(line);
  }
  assert_int_equal(step, STEPS);
}

static void expect_weights(const char *to, const json_t *weights) {
  char path[96];
  const char *name;
  json_t *want;
  snprintf(path, sizeof path, "%s/run/checkpoints/last/model.safetensors", to);
  json_object_foreach((json_t *)(uintptr_t)weights, name, want) {
    size_t n = 0;
    const float *has = tensor_find(path, name, &n);
    assert_non_null(has);
    assert_int_equal(n, json_array_size(want));
    for (size_t i = 0; has && i < n; i++) {
      double wants = json_number_value(json_array_get(want, i));
      if (!(fabs((double)has[i] - wants) <= 1e-6 * (1 + fabs(wants))))
        fail_msg("%s[%zu] is %.9g, PyTorch has %.9g", name, i, (double)has[i], wants);
    }
  }
}

/* net.ini with another kind of losses, which stand before their arrows. */
static void write_net(const char *kind) {
  char text[4096];
  size_t n = 0;
  for (const char *at = net; *at != '\0'; at++) {
    const char *loss = strncmp(at, " <- ", 4) == 0 ? strstr(net, "[phase ") : NULL;
    if (loss != NULL && at > loss) n += (size_t)snprintf(text + n, sizeof text - n, "(kind=%s)", kind);
    text[n++] = *at;
    assert_true(n < sizeof text - 64);
  }
  text[n] = '\0';
  file_write("net.ini", text);
}

/* The generator with other keys than its own; NULL: with those. */
static void write_generator(const char *kind, const char *keys) {
  size_t n;
  write_net(kind);
  if (keys == NULL) return;
  const char *text = file_read("net.ini", &n), *own = strstr(strstr(text, "[phase generator]"), "optimizer");
  char other[4096];
  snprintf(other, sizeof other, "%.*s%s", (int)(own - text), text, keys);
  file_write("net.ini", other);
}

static void ten_steps_are_those_of_pytorch(void **state) {
  (void)state;
  static const struct {
    const char *name, *kind, *more, *generator;
  } cases[] = {{"bce", "bce", "--set backend.use=cpu", NULL},
               {"bce", "bce", "--set backend.use=onednn", NULL},
               {"bce", "bce", "--set backend.use=sim", NULL},
               {"least_squares", "least_squares", "", NULL},
               {"hinge", "hinge", "", NULL},
               {"wasserstein", "wasserstein", "", NULL},
               {"critic", "wasserstein", "", "optimizer = sgd\nlr = 0.01\nmomentum = 0.9\nevery = 5\n"}};
  const json_t *golden = file_json(GAN "/golden.json");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char to[16];
    snprintf(to, sizeof to, "out%zu", i);
    write_generator(cases[i].kind, cases[i].generator);
    train(to, cases[i].more);
    const json_t *one = json_object_get(golden, cases[i].name);
    expect_weights(to, json_object_get(one, "weights"));
    expect_losses(to, json_object_get(one, "steps"));
  }
}

/* The gradient of the critic by its input is part of its loss. */
static void a_penalty_of_gradients_is_that_of_pytorch(void **state) {
  (void)state;
  static const char *const more[] = {"--set backend.use=cpu", "--set backend.use=onednn"};
  const json_t *one = json_object_get(file_json(GAN "/golden.json"), "penalty");
  size_t n;
  file_write("net.ini", file_read(GAN "/penalty.ini", &n));
  for (int i = 0; i < 2; i++) {
    char to[16];
    snprintf(to, sizeof to, "out%d", i);
    train(to, more[i]);
    expect_losses(to, json_object_get(one, "steps"));
    expect_weights(to, json_object_get(one, "weights"));
  }
}

/* ---- the parts of training ---- */

static void resumed_runs_have_the_same_bits(void **state) {
  (void)state;
  static const char *const more[] = {
      "--set optimizer.ema=0.9",
      "--set backend.use=onednn --set precision.policy=fp16 --set precision.growth_interval=3",
      "--set optimizer.accumulate=2 --set data.batch=4",
      "--set backend.use=sim --set precision.policy=bf16 --set data.shuffle=yes"};
  write_generator("hinge", "lr = 0.01\nevery = 3\nclip = 0.5\n");
  char whole[16], part[16], all[256];
  for (int i = 0; i < 4; i++) {
    snprintf(whole, sizeof whole, "whole%d", i);
    snprintf(part, sizeof part, "part%d", i);
    train(whole, more[i]);
    snprintf(all, sizeof all, "%s --set run.max_steps=4", more[i]);
    train(part, all);
    snprintf(all, sizeof all, "%s --resume auto", more[i]);
    train(part, all);
    checkpoints_equal(whole, part);
  }
}

/* Normalization takes the samples of one rank or micro-batch: both runs divide the batch alike. */
static void two_devices_are_two_micro_batches(void **state) {
  (void)state;
  static const char *const names[] = {"generator.main.0.weight", "generator.main.3.weight",
                                      "discriminator.main.0.weight", "discriminator.main.3.weight"};
  train("micro", "--set optimizer.accumulate=2 --set data.batch=4");
  train("ranks", "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2");
  for (int i = 0; i < 4; i++)
    assert_true(tensor_distance("micro/run/checkpoints/last/model.safetensors",
                                "ranks/run/checkpoints/last/model.safetensors", names[i]) < 1e-6);
}

/* The gradient of the generator's step passes through the discriminator, whose parameters have none. */
static void a_phase_has_the_gradients_of_its_parameters_alone(void **state) {
  (void)state;
  assert_int_equal(program_run("plan net.ini --dump-after gradients"), 0);
  const char *generator = strstr(program_out, "# program step.generator after gradients"),
             *discriminator = strstr(program_out, "# program step.discriminator after gradients");
  assert_non_null(generator);
  assert_non_null(discriminator);
  char *text = strdup(generator < discriminator ? generator : discriminator);
  char *second = strstr(text + 1, "# program step.");
  assert_non_null(second);
  *second = '\0'; /* the program of the last phase is built first */
  assert_non_null(strstr(text, "step.generator"));
  assert_non_null(strstr(text, "in generator.main.3"));
  for (char *at = text; (at = strstr(at, "conv2d_grad_weight")) != NULL;) {
    char *end = at + strcspn(at, "\n");
    assert_memory_not_equal(end - strlen("discriminator.main.0"), "discriminator.main.0", 20);
    at = end;
  }
  free(text);
}

static void the_plan_and_the_benchmark_have_all_phases(void **state) {
  (void)state;
  write_generator("bce", "every = 5\n");
  assert_int_equal(program_run("plan net.ini"), 0);
  assert_non_null(strstr(program_out, "phase discriminator, in every step: "));
  assert_non_null(strstr(program_out, "phase generator, in every 5th step: "));
  assert_non_null(strstr(program_out, "272 parameters by adam"));
  assert_int_equal(program_run("bench net.ini --steps 1 --rounds 1"), 0);
}

static void a_generator_writes_pictures(void **state) {
  (void)state;
  const float noise[2 * NOISE] = {0.5f, -0.5f, 1, 0, -1, 0.25f, 0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f};
  size_t n;
  train("out", "");
  write_npy("noise.npy", 2, "6, 1, 1", noise, 2 * NOISE);
  const json_t *r = program_json(0, "predict out/run --input noise.npy --output made/");
  const json_t *one = json_array_get(program_member(r, "predictions"), 1);
  assert_string_equal(json_string_value(json_object_get(one, "picture")), "made/noise.npy[1].png");
  assert_memory_equal(file_read("made/noise.npy[0].png", &n), "\x89PNG", 4);
  assert_int_equal(program_run("predict out/run --input noise.npy --output made/ --csv"), 0);
  assert_non_null(strstr(program_out, "input,picture\n\"noise.npy[0]\",\"made/noise.npy[0].png\"\n"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_with_samples, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(ten_steps_are_those_of_pytorch),
      CASE(a_penalty_of_gradients_is_that_of_pytorch),
      CASE(resumed_runs_have_the_same_bits),
      CASE(two_devices_are_two_micro_batches),
      CASE(a_phase_has_the_gradients_of_its_parameters_alone),
      CASE(the_plan_and_the_benchmark_have_all_phases),
      CASE(a_generator_writes_pictures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
