/* [distributed] shard = optimizer: each device keeps and updates a part of the parameters and of the
 * optimizer's state, and the weights have the bits of a run in which every device has all of them. */
#include "nets.h"

#include <math.h>
#include <stdlib.h>

static const char shard[] = "--set distributed.shard=optimizer";

static void planned_is_measured(const json_t *run) {
  double planned = program_number(run, "planned_peak_bytes"),
         measured = program_number(run, "measured_peak_bytes");
  if (planned <= 0 || planned != measured) fail_msg("%.0f bytes planned, %.0f measured", planned, measured);
}

static void remove_runs(void) { assert_int_equal(system("rm -rf whole shared"), 0); }

/* Trains both ways; the runs lie in the folders `whole` and `shared`. */
static void train_both(const char *net, int devices, const char *more) {
  char all[512];
  remove_runs();
  file_write("model.ini", net);
  const json_t *whole = nets_train("whole", devices, more);
  snprintf(all, sizeof all, "%s %s", more, shard);
  const json_t *shared = nets_train("shared", devices, all);
  planned_is_measured(shared);
  assert_true(program_number(shared, "steps") == program_number(whole, "steps"));
}

static void share(const char *net, int devices, const char *more) {
  print_message("%d devices, %s\n", devices, more);
  train_both(net, devices, more);
  checkpoints_equal("shared", "whole");
}

/* ---- the same bits ---- */

static const char eager[] = "--set backend.sim.order=eager", lazy[] = "--set backend.sim.order=lazy",
                  any[] = "--set backend.sim.order=random --set backend.sim.seed=7";

static void lenet_with_momentum_on_two_three_and_four_devices(void **state) {
  (void)state;
  share(nets_lenet, 2, eager);
  share(nets_lenet, 2, "--set distributed.bucket=32KiB --set backend.capture=no");
  share(nets_lenet, 3, "--set data.train.batch=9 --set data.valid.batch=18 --set distributed.bucket=16KiB");
  share(nets_lenet, 4, "--set distributed.bucket=4 --set backend.sim.order=lazy");
}

/* Its optimizer is AdamW, with weight decay. */
static void a_transformer_in_every_precision(void **state) {
  static const char *const policies[] = {"fp32", "bf16", "fp16"};
  char more[256];
  (void)state;
  for (int i = 0; i < 3; i++) {
    snprintf(more, sizeof more,
             "--set precision.policy=%s --set distributed.bucket=4KiB --set optimizer.clip=0 %s", policies[i],
             i == 1 ? lazy : any);
    share(nets_transformer, 4, more);
  }
}

static void a_residual_network_in_every_precision(void **state) {
  static const char *const policies[] = {"fp32", "bf16", "fp16"};
  char more[256];
  (void)state;
  for (int i = 0; i < 3; i++) {
    snprintf(more, sizeof more, "--set precision.policy=%s --set distributed.bucket=4KiB %s", policies[i],
             any);
    share(nets_resnet, i == 0 ? 4 : 2, more);
  }
}

/* The first updates are skipped on all devices, also where a device's own part is finite. */
static void skipped_updates_are_skipped_by_all(void **state) {
  (void)state;
  share(nets_transformer, 4,
        "--set precision.policy=fp16 --set precision.init_scale=1e9 --set optimizer.clip=0");
  const char *line = file_read("shared/run/metrics.jsonl", NULL);
  assert_non_null(strstr(line, "\"skipped\": 1"));
  assert_non_null(strstr(line, "\"skipped\": 0"));
  share(nets_lenet, 2, "--set optimizer.check_finite=yes");
}

static void averages_of_weights(void **state) {
  (void)state;
  share(nets_lenet, 4, "--set optimizer.ema=0.9 --set distributed.bucket=32KiB");
  share(nets_resnet, 2, "--set optimizer.ema=0.9 --set precision.policy=bf16");
  share(nets_lenet, 2, "--set optimizer.swa_from=1 --set distributed.bucket=32KiB");
}

/* The numbers of all validations, one a line. */
static void read_validations(const char *folder, char *text, size_t size) {
  char path[64];
  size_t n = 0;
  snprintf(path, sizeof path, "%s/run/metrics.jsonl", folder);
  text[0] = '\0';
  for (char *line = strtok(file_read(path, NULL), "\n"); line; line = strtok(NULL, "\n")) {
    const char *valid = strstr(line, "\"valid\"");
    if (valid != NULL) n += (size_t)snprintf(text + n, size - n, "%s\n", valid);
    assert_true(n < size);
  }
  assert_true(n > 0);
}

/* Validation reads averages that were gathered for it. */
static void validation_reads_the_averages_of_now(void **state) {
  static char whole[1 << 14], shared[1 << 14];
  (void)state;
  train_both(nets_lenet, 2, "--set optimizer.ema=0.5");
  read_validations("whole", whole, sizeof whole);
  read_validations("shared", shared, sizeof shared);
  assert_string_equal(shared, whole);
}

static void micro_batches(void **state) {
  static const char halves[] = "--set data.train.batch=4 --set optimizer.accumulate=2";
  char more[256];
  (void)state;
  share(nets_lenet, 2, halves);
  snprintf(more, sizeof more,
           "%s --set distributed.bucket=2KiB --set precision.policy=bf16 --set optimizer.clip=0 %s", halves,
           any);
  share(nets_transformer, 4, more);
}

/* Buckets hold parameters of one group, one epoch of thawing and one type of gradients. */
static void groups_of_parameters(void **state) {
  static const char rates[] = "--set group.b.match=*.bias --set group.b.lr=0.01 --set group.b.weight_decay=0",
                    thaw[] = "--set group.body.match=conv* --set group.body.freeze=1",
                    frozen[] = "--set group.body.match=conv* --set group.body.freeze=yes";
  char more[512];
  (void)state;
  share(nets_lenet, 2, rates);
  share(nets_lenet, 4, frozen);
  snprintf(more, sizeof more, "%s %s --set distributed.bucket=16KiB", thaw, rates);
  share(nets_lenet, 4, more);
  snprintf(more, sizeof more, "%s --set precision.policy=fp16 --set optimizer.ema=0.9 %s", thaw, lazy);
  share(nets_lenet, 2, more);
  snprintf(more, sizeof more, "%s --set data.train.batch=4 --set optimizer.accumulate=2", thaw);
  share(nets_lenet, 2, more);
}

static void sums_in_half_precision(void **state) {
  (void)state;
  share(nets_lenet, 4, "--set distributed.reduce_dtype=bf16");
  share(nets_lenet, 2, "--set distributed.reduce_dtype=f16 --set distributed.bucket=32KiB");
}

/* ---- clipping ---- */

/* The norm is a sum of other partial sums, so a norm that clips differs in its last bits; one that does not
 * clip changes nothing. */
static void a_clipped_norm_is_summed_in_another_order(void **state) {
  (void)state;
  share(nets_lenet, 4, "--set optimizer.clip=1000");
  share(nets_lenet, 4, "--set optimizer.clip_value=0.01");
  train_both(nets_lenet, 4, "--set optimizer.clip=0.1 --set distributed.bucket=16KiB");
  nets_compare("clipped", "shared", "whole", 1e-6);
  train_both(nets_transformer, 2, "--set optimizer.clip=0.1");
  nets_compare("clipped", "shared", "whole", NETS_BAND);
}

/* Each device limits all gradients, of which it has a piece, so the limits have the same bits. */
static void limits_of_parameters_and_units(void **state) {
  (void)state;
  share(nets_lenet, 2, "--set optimizer.clip_layer=0.01 --set distributed.bucket=16KiB");
  share(nets_resnet, 2,
        "--set optimizer.clip_adaptive=0.01 --set group.head.match=fc* --set group.head.clip_adaptive=0 "
        "--set precision.policy=bf16");
  share(nets_lenet, 4,
        "--set optimizer.clip_adaptive=0.01 --set optimizer.accumulate=2 --set data.train.batch=4 --set "
        "optimizer.layer_decay=0.5 --set optimizer.no_decay=yes --set optimizer.weight_decay=0.01");
}

/* ---- memory ---- */

static const char plan[] = "plan model.ini --set backend.use=sim --set backend.sim.devices=4 "
                           "--set distributed.devices=4 --set optimizer.type=adamw %s";

/* AdamW keeps two numbers for each parameter. With 4 devices, three quarters of them are elsewhere; of f32
 * parameters that forward reads nothing is. */
static void a_device_keeps_its_part_of_the_state(void **state) {
  char net[4096];
  size_t n = (size_t)(strstr(nets_lenet, "[optimizer]") - nets_lenet);
  (void)state;
  snprintf(net, sizeof net, "%.*s[optimizer]\ntype = adamw\nlr = 0.001\n", (int)n, nets_lenet);
  file_write("model.ini", net);
  const json_t *whole = program_json(0, plan, ""), *shared = program_json(0, plan, shard);
  double all = program_number(shared, "divided_bytes"), held = program_number(shared, "held_bytes"),
         saved = program_number(whole, "state_bytes") - program_number(shared, "state_bytes");
  assert_true(program_number(whole, "divided_bytes") == 0 && program_number(whole, "held_bytes") == 0);
  assert_true(4 * held == all);
  assert_true(all >= 12 * program_number(shared, "parameters"));
  assert_true(all < 12 * program_number(shared, "parameters") + 12 * 512);
  assert_true(fabs(saved - 0.75 * all * 2 / 3) <= 4096);
  assert_int_equal(program_run(plan, shard), 0);
  assert_non_null(strstr(
      program_out, "each device keeps and updates 0.18 of 0.71 MiB of parameters and optimizer state\n"));
  assert_int_equal(program_run(plan, ""), 0);
  assert_null(strstr(program_out, "each device keeps and updates"));
}

/* Weights that forward reads in bf16 are gathered in bf16: half the bytes, and f32 only on the device that
 * updates them. */
static void low_precision_is_gathered(void **state) {
  (void)state;
  file_write("model.ini", nets_transformer);
  static const char bf16[] = "--set precision.policy=bf16 --set optimizer.clip=0";
  char more[128];
  snprintf(more, sizeof more, "%s %s", bf16, shard);
  const json_t *whole = program_json(0, plan, bf16), *shared = program_json(0, plan, more);
  double parameters = program_number(whole, "parameters");
  double low = program_number(shared, "collective_bytes"),
         full = program_number(program_json(0, plan, shard), "collective_bytes");
  /* each device hands over its quarter of the parameters: of those in bf16 half the bytes */
  assert_true(full - low > 0.25 * 2 * 0.5 * parameters);
  assert_true(program_number(shared, "state_bytes") < 0.55 * program_number(whole, "state_bytes"));
}

static void planned_memory_is_measured(void **state) {
  static const char *const ways[] = {"", "--set optimizer.accumulate=2", "--set precision.policy=bf16",
                                     "--set precision.policy=fp16 --set optimizer.ema=0.99"};
  char more[256];
  (void)state;
  for (int devices = 2; devices <= 4; devices += 2)
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
      file_write("model.ini", i % 2 ? nets_resnet : nets_transformer);
      remove_runs();
      snprintf(more, sizeof more, "--set run.max_steps=3 --set distributed.bucket=8KiB %s %s", ways[i],
               shard);
      planned_is_measured(nets_train("shared", devices, more));
    }
}

/* The position of an op of a layer among the launches of a step, or -1. */
static int launch_of(const json_t *planned, const char *name, const char *op) {
  size_t i;
  const json_t *one;
  json_array_foreach(program_member(planned, "ops"), i, one) {
    const char *of = json_string_value(json_object_get(one, "name")),
               *is = json_string_value(json_object_get(one, "op"));
    if (strcmp(of, name) == 0 && strcmp(is, op) == 0) return (int)i;
  }
  return -1;
}

/* The first bucket has the last layers: its parameters are updated and gathered while the first layers
 * compute their gradients. Where the norm of all gradients decides, they are gathered at the end. */
static void parameters_are_gathered_beside_backward(void **state) {
  char more[128];
  (void)state;
  file_write("model.ini", nets_lenet);
  snprintf(more, sizeof more, "--set distributed.bucket=32KiB %s", shard);
  const json_t *free = program_json(0, plan, more);
  int gathered = launch_of(free, "bucket 0", "all_gather"),
      last = launch_of(free, "bucket 2", "reduce_scatter");
  assert_true(gathered > launch_of(free, "bucket 0", "reduce_scatter"));
  assert_true(gathered < launch_of(free, "conv2", "conv2d_grad_weight"));
  assert_true(launch_of(free, "bucket 1", "all_gather") < last);
  snprintf(more, sizeof more, "--set distributed.bucket=32KiB --set optimizer.clip=1 %s", shard);
  const json_t *clipped = program_json(0, plan, more);
  assert_true(launch_of(clipped, "bucket 0", "all_gather") >
              launch_of(clipped, "bucket 2", "reduce_scatter"));
}

/* ---- checkpoints ---- */

/* From 4 devices to 3, to 1, and to 4 again, each way with the same bits. */
static void a_checkpoint_resumes_on_any_number_of_devices(void **state) {
  static const int devices[] = {4, 3, 1, 4, 2};
  char more[512];
  (void)state;
  file_write("model.ini", nets_lenet);
  for (int i = 0; i < 5; i++) {
    for (int shared = 0; shared < 2; shared++) {
      const char *folder = shared ? "shared" : "whole";
      char resume[64] = "";
      if (i > 0) snprintf(resume, sizeof resume, "--resume %s/run", folder);
      snprintf(more, sizeof more,
               "%s --set data.train.batch=12 --set data.valid.batch=24 --set distributed.bucket=%s "
               "--set optimizer.ema=0.9 --set run.max_steps=%d %s",
               resume, i % 2 ? "32KiB" : "8KiB", 5 * (i + 1), shared ? shard : "");
      const json_t *run = nets_train(folder, devices[i], more);
      assert_true(program_number(run, "steps") == 5 * (i + 1));
    }
    checkpoints_equal("shared", "whole");
  }
}

/* A run changes to a sharded optimizer and back. */
static void a_run_changes_its_mind(void **state) {
  static const char *const ways[] = {"", "--set distributed.shard=optimizer", "",
                                     "--set distributed.shard=optimizer"};
  char more[256];
  (void)state;
  file_write("model.ini", nets_transformer);
  nets_train("whole", 2, "--set optimizer.clip=0");
  for (int i = 0; i < 4; i++) {
    snprintf(more, sizeof more, "%s --set optimizer.clip=0 --set run.max_steps=%d %s",
             i > 0 ? "--resume shared/run" : "", 5 * (i + 1), ways[i]);
    nets_train("shared", 2, more);
    if (i > 0 && strstr(program_err, "[distributed] shard = ") == NULL) fail_msg("%s", program_err);
  }
  checkpoints_equal("shared", "whole");
}

static void weights_of_a_file_are_divided(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  nets_train("before", 1, "--set run.max_steps=3");
  assert_int_equal(system("mv before/run before/other"), 0);
  share(nets_lenet, 4, "--set weights.file=before/other --set distributed.bucket=32KiB");
}

/* Files of the state have the size and the names of a run on one device. */
static void files_are_those_of_one_device(void **state) {
  size_t one, four;
  (void)state;
  file_write("model.ini", nets_lenet);
  nets_train("one", 1, "");
  nets_train("four", 4, shard);
  file_read("one/run/checkpoints/last/optimizer.safetensors", &one);
  file_read("four/run/checkpoints/last/optimizer.safetensors", &four);
  assert_int_equal(one, four);
  nets_compare("sharded", "four", "one", NETS_BAND);
  assert_int_equal(program_run("eval model.ini --weights four/run --set backend.use=cpu"), 0);
}

/* ---- failures ---- */

/* The parameters overflow in the first update, and rank 0 finds it while it writes the checkpoint. */
static void state_that_is_not_finite_is_named(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  assert_int_equal(
      program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=4 "
                  "--set distributed.devices=4 --set distributed.timeout=1h --set run.save_every=1 "
                  "--set optimizer.lr=1e38 --set optimizer.weight_decay=100 %s",
                  shard),
      76);
  if (strstr(program_err, "not finite") == NULL) fail_msg("%s", program_err);
}

static void a_checkpoint_that_cannot_be_written_ends_all_ranks(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  program_limit_files(100000);
  int code = program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=4 "
                         "--set distributed.devices=4 --set distributed.timeout=1h --set run.max_steps=4 %s",
                         shard);
  program_limit_files(0);
  assert_int_not_equal(code, 0);
  if (strstr(program_err, "checkpoint 'best' was not written") == NULL) fail_msg("%s", program_err);
}

static void refuse(const char *net, const char *plugin, const char *more, int code, const char *text) {
  char all[8192];
  snprintf(all, sizeof all, "%s[plugins]\nload = %s\n", net, plugin);
  file_write("model.ini", all);
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                               "--set distributed.devices=2 --set run.max_steps=2 %s %s",
                               more, shard),
                   code);
  if (strstr(program_err, text) == NULL) fail_msg("%s", program_err);
}

static void what_cannot_be_divided_is_named(void **state) {
  char net[4096];
  size_t n = (size_t)(strstr(nets_lenet, "[optimizer]") - nets_lenet);
  (void)state;
  snprintf(net, sizeof net, "%.*s[optimizer]\ntype = whole\n", (int)n, nets_lenet);
  refuse(
      net, WHOLE, "", 65,
      "[distributed] shard = optimizer: optimizer 'whole' updates a whole parameter at a time, which cannot "
      "be divided among devices; expected one that updates each element by itself, such as sgd or adamw, or "
      "shard = no");
  snprintf(net, sizeof net, "%.*s[optimizer]\ntype = noisy\n", (int)n, nets_lenet);
  refuse(net, WHOLE, "", 65,
         "optimizer 'noisy' draws random numbers, which would be the same on all devices");
  refuse(nets_lenet, OUTSIDE, "--set distributed.communicator=outside", 69,
         "[distributed] shard = optimizer with communicator 'outside': op 'reduce_scatter");
}

static void one_device_has_nothing_to_divide(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  nets_train("plain", 1, "--set run.max_steps=3");
  nets_train("shared", 1, "--set run.max_steps=3 --set distributed.shard=optimizer");
  assert_non_null(strstr(program_err, "[distributed] shard = optimizer has no effect on one device"));
  checkpoints_equal("shared", "plain");
  assert_int_equal(program_run("plan model.ini --set distributed.shard=all"), 65);
  assert_non_null(strstr(program_err, "shard"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(lenet_with_momentum_on_two_three_and_four_devices),
      CASE(a_transformer_in_every_precision),
      CASE(a_residual_network_in_every_precision),
      CASE(skipped_updates_are_skipped_by_all),
      CASE(averages_of_weights),
      CASE(validation_reads_the_averages_of_now),
      CASE(micro_batches),
      CASE(groups_of_parameters),
      CASE(sums_in_half_precision),
      CASE(a_clipped_norm_is_summed_in_another_order),
      CASE(limits_of_parameters_and_units),
      CASE(a_device_keeps_its_part_of_the_state),
      CASE(low_precision_is_gathered),
      CASE(parameters_are_gathered_beside_backward),
      CASE(planned_memory_is_measured),
      CASE(a_checkpoint_resumes_on_any_number_of_devices),
      CASE(a_run_changes_its_mind),
      CASE(weights_of_a_file_are_divided),
      CASE(files_are_those_of_one_device),
      CASE(state_that_is_not_finite_is_named),
      CASE(a_checkpoint_that_cannot_be_written_ends_all_ranks),
      CASE(what_cannot_be_divided_is_named),
      CASE(one_device_has_nothing_to_divide),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
