/* [group.NAME] freeze = N: parameters that are frozen in the epochs 1 to N, and trained after them. */
#include "golden_net.h"

#include <stdbool.h>

/* 10 steps an epoch, and equal epochs. */
#define HEAD                                                                                                 \
  "[run]\nname = run\nseed = 3\nepochs = 4\ndeterministic = yes\n"                                           \
  "[data]\nsource = idx\nimages = images\nlabels = labels\nclasses = 10\nbatch = 16\nepoch = 160\nshuffle "  \
  "= no\ntransforms = to_float\n"                                                                            \
  "[data.valid]\nbatch = 50\nepoch = 50\n"                                                                   \
  "[model]\ninputs = image: f32[1, 12, 12]\nlayers =\n"                                                      \
  "    conv:  conv2d(4, kernel=5, padding=2, bias=no)\n    bn:    batch_norm\n"                              \
  "           relu\n           max_pool(4)\n           flatten\n"                                            \
  "    fc1:   linear(12)\n           relu\n    fc2:   linear(10)\n"                                          \
  "loss = cross_entropy\nmetrics = accuracy\n[backend]\nuse = cpu\n"
#define PLAIN    "[optimizer]\ntype = sgd\nlr = 0.05\nweight_decay = 1e-3\n"
#define BODY     "[group.body]\nmatch = conv.*, bn.*\n"
#define LAST(to) to "/run/checkpoints/last/model.safetensors"

static const char *const body[] = {"conv.weight", "bn.weight", "bn.bias", "bn.running_mean",
                                   "bn.running_var"};
static const char *const head[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
enum { BODY_NAMES = 5, BODY_PARAMETERS = 3, HEAD_NAMES = 4 };

static const char plain[] = HEAD PLAIN;
static const char thawing[] = HEAD PLAIN BODY "freeze = 2\nlr = 0.02\n";
static const char adam[] = HEAD "[optimizer]\ntype = adamw\nlr = 0.003\n" BODY "freeze = 2\nlr = 0.001\n";

/* Each class has pixels of its own that are brighter. */
static void write_images(void) {
  enum { IMAGES = 480, SIDE = 12, PIXELS = SIDE * SIDE };
  static unsigned char images[16 + IMAGES * PIXELS] = {0, 0, 8, 3,    0, 0, 1, 224,
                                                       0, 0, 0, SIDE, 0, 0, 0, SIDE},
                                            labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 1, 224};
  for (int i = 0; i < IMAGES; i++) {
    int label = (i * i + i / 7) % 10;
    for (int j = 0; j < PIXELS; j++)
      images[16 + i * PIXELS + j] =
          (unsigned char)((i * 37 + j * 11 + i * j * 5) % 97 + (j * 10 / PIXELS == label ? 120 : 0));
    labels[8 + i] = (unsigned char)label;
  }
  file_write_bytes("images", images, sizeof images);
  file_write_bytes("labels", labels, sizeof labels);
}

static int open_with_images(void **state) {
  int failed = program_open(state);
  write_images();
  return failed;
}

static void train(const char *ini, const char *to, const char *more) {
  if (program_run("train %s --quiet --output %s %s", ini, to, more) != 0)
    fail_msg("%s %s: %s", ini, more, program_err);
}

static void says(const char *text) {
  if (!strstr(program_out, text) && !strstr(program_err, text))
    fail_msg("'%s' is neither in:\n%s\nnor in:\n%s", text, program_out, program_err);
}

static const char *const ways[] = {
    "",
    "--set backend.use=onednn",
    "--set backend.use=sim --set run.steps_per_launch=3",
    "--set optimizer.accumulate=2 --set data.batch=8",
    "--set backend.use=sim --set optimizer.accumulate=2 --set data.batch=8",
    "--set precision.policy=bf16",
    "--set backend.use=onednn --set precision.policy=fp16",
    "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2",
    "--set backend.use=sim --set backend.sim.devices=3 --set distributed.devices=3 --set data.batch=48 --set "
    "data.valid.batch=48 --set data.valid.epoch=48 "
    "--set data.epoch=480 --set distributed.bucket=1KiB"};
enum { WAYS = sizeof ways / sizeof *ways };

/* Without optimizer state, a run with a thaw is a run that is frozen for ever, and one that begins with its
 * weights, to the bit: gradients, statistics, learning rates of groups. */
static void two_runs_by_hand_give_the_same_bits(void **state) {
  (void)state;
  char more[512];
  file_write("frozen.ini", HEAD PLAIN BODY "freeze = yes\n");
  file_write("trained.ini", HEAD PLAIN BODY "lr = 0.02\n");
  file_write("thawing.ini", thawing);
  for (int i = 0; i < WAYS; i++) {
    char first[32], second[32], thawed[32], a[96], b[96];
    snprintf(first, sizeof first, "first%d", i);
    snprintf(second, sizeof second, "second%d", i);
    snprintf(thawed, sizeof thawed, "thawed%d", i);
    snprintf(more, sizeof more, "--set run.epochs=2 %s", ways[i]);
    train("frozen.ini", first, more);
    snprintf(more, sizeof more, "--set run.epochs=2 --weights %s/run/checkpoints/last %s", first, ways[i]);
    train("trained.ini", second, more);
    train("thawing.ini", thawed, ways[i]);
    snprintf(a, sizeof a, "%s/run/checkpoints/last/model.safetensors", thawed);
    snprintf(b, sizeof b, "%s/run/checkpoints/last/model.safetensors", second);
    for (int k = 0; k < BODY_NAMES + HEAD_NAMES; k++) {
      const char *name = k < BODY_NAMES ? body[k] : head[k - BODY_NAMES];
      if (tensor_distance(a, b, name) != 0) fail_msg("%s: %s has other bits", ways[i], name);
    }
    snprintf(b, sizeof b, "%s/run/checkpoints/last/model.safetensors", first);
    for (int k = 0; k < BODY_NAMES; k++) assert_true(tensor_distance(a, b, body[k]) > 0);
  }
}

/* Values, statistics and optimizer state are untouched at the end of epoch 2, and move in epoch 3. */
static void a_frozen_group_is_untouched_until_it_thaws(void **state) {
  (void)state;
  static const char *const kinds[] = {"exp_avg", "exp_avg_sq"};
  char name[64];
  file_write("net.ini", adam);
  train("net.ini", "start", "--set run.epochs=0");
  train("net.ini", "border", "--set run.max_steps=20");
  train("net.ini", "step", "--set run.max_steps=21");
  for (int k = 0; k < BODY_NAMES; k++) {
    assert_true(tensor_distance(LAST("start"), LAST("border"), body[k]) == 0);
    assert_true(tensor_distance(LAST("start"), LAST("step"), body[k]) > 0);
  }
  for (int k = 0; k < HEAD_NAMES; k++)
    assert_true(tensor_distance(LAST("start"), LAST("border"), head[k]) > 0);
  const char *border = "border/run/checkpoints/last/optimizer.safetensors",
             *start = "start/run/checkpoints/last/optimizer.safetensors",
             *step = "step/run/checkpoints/last/optimizer.safetensors";
  for (int k = 0; k < BODY_PARAMETERS * 2; k++) {
    snprintf(name, sizeof name, "%s.%s", body[k / 2], kinds[k % 2]);
    assert_true(tensor_distance(start, border, name) == 0);
    assert_true(tensor_distance(border, step, name) > 0);
  }
  /* AdamW's first update is that of the group's lr: its bias correction counts from the thaw */
  size_t n = 0;
  const float *before = tensor_find(LAST("border"), "conv.weight", &n),
              *after = tensor_find(LAST("step"), "conv.weight", &n);
  double most = 0;
  for (size_t i = 0; i < n; i++) {
    double d = fabs((double)after[i] - (double)before[i]);
    if (d > most || isnan(d)) most = d;
  }
  assert_true(most > 0.0009 && most < 0.0011);
}

/* tests/golden/make_thaw.py has the same trainings. */
static void weights_are_those_of_pytorch(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"adamw", "[optimizer]\ntype = adamw\nlr = 0.01\nweight_decay = 0.01\n"
                "[group.body]\nmatch = fc1.*, bn.*\nfreeze = 2\nlr = 0.003\n"},
      {"sgd", "[optimizer]\ntype = sgd\nlr = 0.2\nmomentum = 0.9\nweight_decay = 1e-3\nema = 0.8\n"
              "[group.body]\nmatch = fc1.*, bn.*\nfreeze = 3\nlr = 0.1\n"},
      {"gradual", "[optimizer]\ntype = adamw\nlr = 0.01\nweight_decay = 0.01\nclip = 0.1\n"
                  "[group.first]\nmatch = fc1.*\nfreeze = 3\nlr = 0.005\n"
                  "[group.norm]\nmatch = bn.*\nfreeze = 1\nlr = 0.02\n"},
  };
  static const char *const backends[] = {"cpu", "onednn", "sim"};
  golden_write_data(THAW "/net.ini");
  const json_t *golden = file_json(THAW "/golden.json");
  size_t length;
  const char *net = file_read("net.ini", &length);
  for (int i = 0; i < 9; i++) {
    char text[2048], more[64], key[64], file[96], name[64];
    const char *what = cases[i / 3][0];
    bool averaged = strstr(cases[i / 3][1], "ema") != NULL;
    snprintf(text, sizeof text, "%s%s", net, cases[i / 3][1]);
    file_write("case.ini", text);
    snprintf(more, sizeof more, "--set backend.use=%s --set run.name=net%d", backends[i % 3], i);
    train("case.ini", "out", more);
    for (int k = 0; k < GOLDEN_NAMES; k++) {
      snprintf(key, sizeof key, "%s.trained", what);
      snprintf(file, sizeof file, "out/net%d/checkpoints/last/%s.safetensors", i,
               averaged ? "optimizer" : "model");
      snprintf(name, sizeof name, "%s%s", golden_names[k], averaged ? ".trained" : "");
      golden_expect_tensor(file, name, json_object_get(json_object_get(golden, key), golden_names[k]));
      if (!averaged) continue;
      snprintf(key, sizeof key, "%s.average", what);
      snprintf(file, sizeof file, "out/net%d/checkpoints/last/model.safetensors", i);
      golden_expect_tensor(file, golden_names[k],
                           json_object_get(json_object_get(golden, key), golden_names[k]));
    }
  }
}

/* In both phases, at the border, and one step on either side. */
static void resumed_runs_have_the_same_bits(void **state) {
  (void)state;
  static const char *const more[] = {
      "--set schedule.type=one_cycle --set schedule.steps=40 --set data.shuffle=yes",
      "--set optimizer.ema=0.9 --set optimizer.clip=1",
      "--set optimizer.swa_from=2",
      "--set backend.use=onednn --set precision.policy=fp16 --set precision.growth_interval=7",
      "--set optimizer.accumulate=2 --set data.batch=8 --set optimizer.type=sgd --set optimizer.momentum=0.9",
      "--set backend.use=sim --set run.steps_per_launch=3 --set precision.policy=bf16"};
  static const int stops[] = {5, 19, 20, 21, 33};
  char whole[32], part[32], all[256];
  file_write("net.ini", adam);
  for (int i = 0; i < 6; i++) {
    snprintf(whole, sizeof whole, "whole%d", i);
    train("net.ini", whole, more[i]);
    for (int k = 0; k < 5; k++) {
      snprintf(part, sizeof part, "part%d-%d", i, k);
      snprintf(all, sizeof all, "%s --set run.max_steps=%d", more[i], stops[k]);
      train("net.ini", part, all);
      snprintf(all, sizeof all, "%s --resume auto", more[i]);
      train("net.ini", part, all);
      checkpoints_equal(whole, part);
    }
  }
}

/* Several devices: a stop inside an epoch averages statistics once more, so the runs stop at ends of epochs.
 */
static void resumed_runs_of_several_devices_have_the_same_bits(void **state) {
  (void)state;
  static const char *const more =
      "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2";
  static const int epochs[] = {1, 2, 3};
  char part[32], all[256];
  file_write("net.ini", adam);
  train("net.ini", "whole", more);
  for (int k = 0; k < 3; k++) {
    snprintf(part, sizeof part, "part%d", k);
    snprintf(all, sizeof all, "%s --set run.epochs=%d", more, epochs[k]);
    train("net.ini", part, all);
    snprintf(all, sizeof all, "%s --resume auto", more);
    train("net.ini", part, all);
    checkpoints_equal("whole", part);
  }
}

static void another_epoch_is_possible_while_the_group_is_frozen(void **state) {
  (void)state;
  file_write("net.ini", adam);
  train("net.ini", "later", "--set group.body.freeze=3");
  static const int stops[] = {5, 20};
  char part[32], all[128];
  for (int k = 0; k < 2; k++) {
    snprintf(part, sizeof part, "part%d", k);
    snprintf(all, sizeof all, "--set run.max_steps=%d", stops[k]);
    train("net.ini", part, all);
    train("net.ini", part, "--resume auto --set group.body.freeze=3");
    checkpoints_equal("later", part);
  }
  train("net.ini", "part", "--set run.max_steps=21");
  assert_int_equal(program_run("train net.ini --output part --resume auto --set group.body.freeze=3"), 65);
  says("--set group.body.freeze: [group.body] freeze = 3, but in part/run it was 2, which can be changed "
       "until "
       "epoch 2, and the run has trained in epoch 3");
  assert_int_equal(program_run("train net.ini --output part --resume auto --set group.body.freeze=1"), 65);
  says("which can be changed until epoch 1");
  assert_int_equal(program_run("train net.ini --output part --resume auto --set group.body.freeze=no"), 65);
  says("[group.body] freeze = no with match = conv.*, bn.*, but in part/run it was freeze = 2");
  assert_int_equal(program_run("train net.ini --output part --resume auto --set group.body.match=conv.*"),
                   65);
  says("[group.body] freeze = 2 with match = conv.*, but in part/run it was freeze = 2 with match = conv.*, "
       "bn.*");
  file_write("yes.ini", HEAD "[optimizer]\ntype = adamw\nlr = 0.003\n" BODY "freeze = yes\n");
  assert_int_equal(program_run("train yes.ini --output part --resume auto"), 65);
  says("groups with freeze = yes match conv.*, bn.*, but in part/run they matched nothing");
  train("net.ini", "part", "--resume auto");
}

/* The loss of a step after the thaw is not finite: the search repeats both phases. */
static void the_search_for_a_bad_op_crosses_the_thaw(void **state) {
  (void)state;
  file_write("net.ini", thawing);
  assert_int_not_equal(program_run("train net.ini --output= --set group.body.lr=1e30"), 0);
  says("at step 23: in step 22, op ");
}

static void the_plan_has_the_steps_of_both_phases(void **state) {
  (void)state;
  file_write("net.ini", thawing);
  const json_t *plan = program_json(0, "plan net.ini"), *phases = program_member(plan, "phases");
  assert_int_equal(json_array_size(phases), 2);
  const json_t *first = json_array_get(phases, 0), *second = json_array_get(phases, 1);
  assert_string_equal(program_text(first, "program"), "step");
  assert_string_equal(program_text(second, "program"), "step.3");
  assert_int_equal(program_number(first, "first_epoch"), 1);
  assert_int_equal(program_number(first, "last_epoch"), 2);
  assert_int_equal(program_number(second, "last_epoch"), 4);
  assert_int_equal(program_number(first, "frozen"), 4 * 25 + 2 * 4);
  assert_int_equal(program_number(second, "frozen"), 0);
  assert_true(program_number(first, "launches") < program_number(second, "launches"));
  assert_true(program_number(first, "launches") == program_number(plan, "launches"));
  assert_true(program_number(first, "arena_bytes") <= program_number(second, "arena_bytes"));
  assert_true(program_number(first, "bytes") < program_number(second, "bytes"));
  assert_true(program_number(plan, "arena_bytes") >= program_number(second, "arena_bytes"));
  assert_int_equal(program_run("plan net.ini"), 0);
  says("epochs 1-2: ");
  says(" and 108 frozen, arena ");
  says(" (the step above)\nepochs 3-4: ");
  /* nothing is computed below the first trained layer, and none of the pools either */
  assert_int_equal(program_run("plan net.ini --dump-after update"), 0);
  assert_null(strstr(program_out, "conv2d_grad_weight"));
  assert_null(strstr(program_out, "max_pool2d_grad"));
  assert_int_equal(program_run("train net.ini --output out"), 0);
  says("body is frozen in epochs 1-2, and trained from epoch 3 on");
}

/* The first group that matches a name takes it; a group may hold back running statistics alone. */
static void groups_thaw_at_different_epochs(void **state) {
  (void)state;
  file_write("net.ini", HEAD PLAIN "[group.a]\nmatch = conv.*\nfreeze = 3\n[group.b]\nmatch = fc1.weight\n"
                                   "[group.rest]\nmatch = fc1.*, bn.weight\nfreeze = 1\n"
                                   "[group.statistics]\nmatch = bn.running_*\nfreeze = 2\n");
  static const char *const names[] = {"conv.weight", "fc1.bias",       "bn.weight", "bn.running_mean",
                                      "fc1.weight",  "bn.running_var", "bn.bias"};
  static const int until[] = {3, 1, 1, 2, 0, 2, 0};
  char to[32], more[64], a[96], b[96];
  train("net.ini", "epoch0", "--set run.epochs=0");
  for (int epoch = 1; epoch <= 4; epoch++) {
    snprintf(to, sizeof to, "epoch%d", epoch);
    snprintf(more, sizeof more, "--set run.epochs=%d", epoch);
    train("net.ini", to, more);
    snprintf(a, sizeof a, "epoch%d/run/checkpoints/last/model.safetensors", epoch - 1);
    snprintf(b, sizeof b, "epoch%d/run/checkpoints/last/model.safetensors", epoch);
    for (int i = 0; i < 7; i++)
      if ((tensor_distance(a, b, names[i]) == 0) != (epoch <= until[i]))
        fail_msg("%s in epoch %d", names[i], epoch);
  }
}

static void a_group_may_stay_frozen_for_all_epochs(void **state) {
  (void)state;
  file_write("net.ini", thawing);
  const json_t *r = program_json(0, "train net.ini --output out --set group.body.freeze=4");
  assert_string_equal(json_string_value(json_array_get(program_member(r, "remarks"), 0)),
                      "body is frozen in the whole run: [group.body] freeze = 4, [run] epochs = 4");
  train("net.ini", "start", "--set run.epochs=0");
  assert_true(tensor_distance(LAST("start"), LAST("out"), "conv.weight") == 0);
  /* with more epochs it thaws */
  train("net.ini", "out", "--resume auto --set group.body.freeze=4 --set run.epochs=5");
  assert_true(tensor_distance(LAST("start"), LAST("out"), "conv.weight") > 0);
  /* 0 is no */
  file_write("plain.ini", HEAD PLAIN BODY "lr = 0.02\n");
  train("plain.ini", "plain", "");
  train("net.ini", "zero", "--set group.body.freeze=0");
  checkpoints_equal("plain", "zero");
}

static void wrong_values_are_refused(void **state) {
  (void)state;
  static const char *const values[] = {"-1", "2.5", "never", "3epochs", "99999999999999999999"};
  char expected[256];
  file_write("net.ini", thawing);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(program_run("train net.ini --set group.body.freeze=%s", values[i]), 65);
    snprintf(
        expected, sizeof expected,
        "--set group.body.freeze: [group.body] freeze = %s, expected yes, no, or the last epoch in which "
        "the parameters are frozen, a number such as 3",
        values[i]);
    says(expected);
  }
  assert_int_equal(program_run("train net.ini --set group.body.match=*"), 65);
  says(
      "[group.body] freeze = 2 leaves no parameter that the loss depends on, so there is nothing to train in "
      "epoch 1");
  assert_int_equal(program_run("train net.ini --set group.body.match=cov.*,conv.*"), 65);
  says("[group.body] match: 'cov.*' matches no parameter; parameters have names like '");
  file_write("twice.ini", HEAD PLAIN "[group.all]\nmatch = conv.*\n[group.late]\nmatch = conv.weight\n"
                                     "freeze = 2\n");
  assert_int_equal(program_run("train twice.ini"), 65);
  says("twice.ini:40: [group.late] match: 'conv.weight' matches no parameter that is trained, or only "
       "parameters of earlier groups");
  char text[4096];
  size_t n = (size_t)snprintf(text, sizeof text, "%s", plain);
  for (int i = 1; i <= 8; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "[group.g%d]\nmatch = %s\nfreeze = %d\n", i,
                          i == 8  ? "fc2.bias"
                          : i < 4 ? body[i - 1]
                                  : "*",
                          i);
  file_write("many.ini", text);
  assert_int_equal(program_run("train many.ini"), 65);
  says("[group.g8] freeze = 8: the groups thaw in more than 7 different epochs, and a run has programs for "
       "each; "
       "let some thaw together");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_with_images, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(two_runs_by_hand_give_the_same_bits),
      CASE(a_frozen_group_is_untouched_until_it_thaws),
      CASE(weights_are_those_of_pytorch),
      CASE(resumed_runs_have_the_same_bits),
      CASE(resumed_runs_of_several_devices_have_the_same_bits),
      CASE(another_epoch_is_possible_while_the_group_is_frozen),
      CASE(the_search_for_a_bad_op_crosses_the_thaw),
      CASE(the_plan_has_the_steps_of_both_phases),
      CASE(groups_thaw_at_different_epochs),
      CASE(a_group_may_stay_frozen_for_all_epochs),
      CASE(wrong_values_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
