/* [group.NAME] freeze: parameters that keep their values, without gradient and optimizer state. */
#include "tensors.h"

#define HEAD                                                                                                 \
  "[run]\nname = net\nseed = 3\nmax_steps = 12\n"                                                            \
  "[data]\nsource = digits\nbatch = 16\nepoch = 320\ntransforms = to_float\n"                                \
  "[data.valid]\nbatch = 50\nepoch = 50\n"                                                                   \
  "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
#define TAIL                                                                                                 \
  "           relu\n           max_pool(4)\n           flatten\n"                                            \
  "    fc1:   linear(12)\n           relu\n    fc2:   linear(10)\n"                                          \
  "loss = cross_entropy\nmetrics = accuracy\n"                                                               \
  "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\nweight_decay = 1e-3\n"

static const char plain[] = HEAD "    conv:  conv2d(4, kernel=5, padding=2)\n" TAIL;
static const char normed[] =
    HEAD "    conv:  conv2d(4, kernel=5, padding=2, bias=no)\n    bn:    batch_norm\n" TAIL;
static const char start[] = "start/net/checkpoints/last/model.safetensors",
                  model[] = "out/net/checkpoints/last/model.safetensors",
                  moments[] = "out/net/checkpoints/last/optimizer.safetensors";

/* The initial state, in start/, and that after 12 steps, in out/. */
static void train(const char *text, const char *more) {
  file_write("net.ini", text);
  assert_int_equal(program_run("train net.ini --output start --set run.max_steps=0 --set run.epochs=0"), 0);
  if (program_run("train net.ini --output out %s", more) != 0) fail_msg("%s: %s", more, program_err);
}

static void frozen_parameters_keep_their_bits_and_have_no_state(void **state) {
  (void)state;
  train(plain, "--set group.body.freeze=yes --set group.body.match=conv.*,fc1.bias");
  static const char *const frozen[] = {"conv.weight", "conv.bias", "fc1.bias"}, *const trained[] = {
                                                                                    "fc1.weight",
                                                                                    "fc2.weight", "fc2.bias"};
  char path[64];
  for (int i = 0; i < 3; i++) {
    assert_true(tensor_distance(start, model, frozen[i]) == 0);
    assert_true(tensor_distance(start, model, trained[i]) > 0);
    snprintf(path, sizeof path, "%s.momentum", frozen[i]);
    assert_false(tensor_exists(moments, path));
    snprintf(path, sizeof path, "%s.momentum", trained[i]);
    assert_true(tensor_exists(moments, path));
  }
  const json_t *plan = file_json("out/net/plan.json");
  assert_int_equal(program_number(plan, "frozen"), 4 * 25 + 4 + 12);
  assert_int_equal(program_number(plan, "parameters"), 4 * 49 * 12 + 12 * 10 + 10);
}

/* The gradients of the others are those that they have without freezing: the same run with lr = 0 and no
 * decay for the frozen parameters. Other kernels may sum in another order. */
static void the_others_train_as_before(void **state) {
  (void)state;
  static const char *const trained[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
  static const char still[] = "[group.still]\nmatch = conv.*\nlr = 0\nweight_decay = 0\n";
  static const char *const ways[] = {"", " --set optimizer.accumulate=2 --set data.batch=8",
                                     " --set backend.use=sim --set optimizer.clip=1",
                                     " --set backend.use=cpu --set optimizer.type=adamw"
                                     " --set optimizer.lr=0.003"};
  char text[2048], more[256];
  for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
    snprintf(text, sizeof text, "%s%s", plain, still);
    file_write("still.ini", text);
    snprintf(more, sizeof more,
             "--set group.body.freeze=yes --set group.body.match=conv.*%s --set run.name=w%zu", ways[w], w);
    train(plain, more);
    assert_int_equal(program_run("train still.ini --output lr0%s --set run.name=w%zu", ways[w], w), 0);
    char a[96], b[96];
    snprintf(a, sizeof a, "out/w%zu/checkpoints/last/model.safetensors", w);
    snprintf(b, sizeof b, "lr0/w%zu/checkpoints/last/model.safetensors", w);
    assert_true(tensor_distance(a, b, "conv.weight") == 0);
    for (int i = 0; i < 4; i++) {
      double distance = tensor_distance(a, b, trained[i]);
      if (!(distance < 2e-5)) fail_msg("%s, %s: %g", ways[w], trained[i], distance);
      assert_true(tensor_distance(a, start, trained[i]) > 1e-3);
    }
  }
}

/* The loss of a step is then that of evaluation: the statistics are not those of the batch. */
static void a_frozen_batch_norm_keeps_its_statistics(void **state) {
  (void)state;
  static const char *const kept[] = {"bn.running_mean", "bn.running_var", "bn.weight", "bn.bias"};
  train(normed, "--set group.body.freeze=yes --set group.body.match=conv.*,bn.weight,bn.bias");
  for (int i = 0; i < 4; i++) assert_true(tensor_distance(start, model, kept[i]) == 0);
  assert_true(tensor_distance(start, model, "fc1.weight") > 0);
  /* statistics alone: scale and shift train, and the gradient passes to the layer below */
  train(normed, "--set group.body.freeze=yes --set group.body.match=bn.running_* --set run.name=fixed");
  const char *fixed = "out/fixed/checkpoints/last/model.safetensors";
  for (int i = 0; i < 2; i++) assert_true(tensor_distance(start, fixed, kept[i]) == 0);
  for (int i = 2; i < 4; i++) assert_true(tensor_distance(start, fixed, kept[i]) > 0);
  assert_true(tensor_distance(start, fixed, "conv.weight") > 0);
  /* without freezing they follow the batches, also where lr is 0 */
  train(normed, "--set run.name=free --set optimizer.lr=0");
  assert_true(tensor_distance(start, "out/free/checkpoints/last/model.safetensors", "bn.running_mean") > 0);
}

/* bf16 copies of frozen parameters are made once; a checkpoint of such a run resumes and evaluates. */
static void frozen_runs_resume_and_work_in_half_precision(void **state) {
  (void)state;
  const char *more =
      "--set group.body.freeze=yes --set group.body.match=conv.*,bn.* --set precision.policy=bf16";
  train(normed, more);
  assert_true(tensor_distance(start, model, "conv.weight") == 0);
  assert_true(tensor_distance(start, model, "fc2.weight") > 0);
  assert_int_equal(program_run("train net.ini --output half --set run.max_steps=5 %s", more), 0);
  assert_int_equal(program_run("train net.ini --output half --resume auto %s", more), 0);
  files_equal("half/net/checkpoints/last/model.safetensors", model);
  const json_t *loss = program_json(0, "eval net.ini --weights %s --set precision.policy=bf16", model);
  assert_true(program_number(loss, "loss") < 2.4);
}

/* Nothing below the first trained layer has a backward launch. */
static void nothing_is_computed_below_the_first_trained_layer(void **state) {
  (void)state;
  file_write("net.ini", plain);
  assert_int_equal(program_run("plan net.ini --dump-after update"), 0);
  assert_non_null(strstr(program_out, "conv2d_grad_weight"));
  assert_int_equal(
      program_run(
          "plan net.ini --dump-after update --set group.body.freeze=yes --set group.body.match=conv.*"),
      0);
  assert_null(strstr(program_out, "conv2d_grad"));
  assert_null(strstr(program_out, "max_pool2d_grad"));
}

static void patterns_without_a_match_are_refused(void **state) {
  (void)state;
  file_write("net.ini", plain);
  assert_int_equal(program_run("train net.ini --set group.body.freeze=yes --set group.body.match=cov.*"), 65);
  assert_non_null(strstr(program_err,
                         "[group.body] match: 'cov.*' matches no parameter; parameters have names "
                         "like '"));
  assert_int_equal(program_run("train net.ini --set group.body.freeze=yes --set group.body.match=*"), 65);
  assert_non_null(strstr(program_err, "[group.body] freeze = yes leaves no parameter"));
  assert_int_equal(program_run("train net.ini --set group.body.freeze=yes --set group.body.match=conv.* "
                               "--set group.body.lr=1"),
                   65);
  assert_non_null(
      strstr(program_err, "[group.body] lr has no effect: the parameters of the group are frozen"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(frozen_parameters_keep_their_bits_and_have_no_state),
      CASE(the_others_train_as_before),
      CASE(a_frozen_batch_norm_keeps_its_statistics),
      CASE(frozen_runs_resume_and_work_in_half_precision),
      CASE(nothing_is_computed_below_the_first_trained_layer),
      CASE(patterns_without_a_match_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
