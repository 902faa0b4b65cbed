/* Several devices, each with a part of the batch, train to the weights of one device with the whole batch. */
#include "nets.h"

#include "steady.h"

#include <math.h>
#include <stdlib.h>

/* Simulated orders of execution across streams and devices. */
static const char eager[] = "--set backend.sim.order=eager", lazy[] = "--set backend.sim.order=lazy",
                  any[] = "--set backend.sim.order=random --set backend.sim.seed=7";

/* The order of summation differs, so results are equal up to rounding. */
static void same_number(const json_t *a, const json_t *b, const char *path) {
  double x = program_number(a, path), y = program_number(b, path);
  if (!(fabs(x - y) <= 1e-5 * fmax(1.0, fabs(y)))) fail_msg("%s is %.9g and %.9g", path, x, y);
}

static void same_results(const json_t *a, const json_t *b) {
  const json_t *lists[] = {program_member(a, "train"), program_member(a, "valid")};
  static const char *const names[] = {"train", "valid"};
  for (int i = 0; i < 2; i++) {
    const char *metric;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)lists[i], metric, value) {
      char path[64];
      snprintf(path, sizeof path, "%s.%s", names[i], metric);
      same_number(a, b, path);
    }
  }
  assert_true(program_number(a, "steps") == program_number(b, "steps"));
}

/* Two devices in one order, four in another. */
static void train_on_several(const char *what, const char *ini) {
  file_write("model.ini", ini);
  const json_t *one = nets_train("one", 1, eager);
  const json_t *two = nets_train("two", 2, lazy);
  const json_t *four = nets_train("four", 4, any);
  assert_true(program_number(two, "devices") == 2 && program_number(four, "devices") == 4);
  nets_compare(what, "two", "one", NETS_BAND);
  nets_compare(what, "four", "one", NETS_BAND);
  same_results(two, one);
  same_results(four, one);
}

static void lenet(void **state) {
  (void)state;
  train_on_several("LeNet", nets_lenet);
}
static void a_transformer(void **state) {
  (void)state;
  train_on_several("transformer", nets_transformer);
}
static void a_residual_network_whose_batch_norm_spans_the_ranks(void **state) {
  (void)state;
  train_on_several("ResNet", nets_resnet);
}
static void two_losses_of_other_weights_with_targets_that_do_not_count(void **state) {
  (void)state;
  train_on_several("two losses", nets_two_losses);
}
static void dropout_draws_the_numbers_of_one_device(void **state) {
  (void)state;
  train_on_several("dropout", nets_dropout);
}

/* ---- micro-batches ---- */

/* One device with the whole batch, one with two micro-batches, and two with two micro-batches each. */
static void accumulate(const char *what, const char *ini) {
  static const char halves[] = "--set data.train.batch=4 --set optimizer.accumulate=2";
  char more[160];
  file_write("model.ini", ini);
  const json_t *whole = nets_train("whole", 1, eager);
  snprintf(more, sizeof more, "%s %s", halves, lazy);
  const json_t *parts = nets_train("halves", 1, more);
  nets_compare(what, "halves", "whole", NETS_BAND);
  same_results(parts, whole);
  snprintf(more, sizeof more, "%s %s", halves, any);
  parts = nets_train("halves2", 2, more);
  nets_compare(what, "halves2", "whole", NETS_BAND);
  same_results(parts, whole);
  parts = nets_train("halves4", 4, more);
  nets_compare(what, "halves4", "whole", NETS_BAND);
  same_results(parts, whole);
}

/* The mean is over the counted tokens of the whole batch, not a mean of the means of micro-batches, which
 * have different numbers of them. */
static void micro_batches_count_tokens_as_one_batch_does(void **state) {
  (void)state;
  static const struct {
    int devices, batch, accumulate;
  } ways[] = {{1, 4, 3}, {1, 1, 12}, {2, 6, 2}, {2, 12, 1}, {3, 3, 4}, {3, 6, 2}, {4, 4, 3}, {4, 12, 1}};
  file_write("model.ini", nets_tokens);
  const json_t *whole = nets_train("whole", 1, eager);
  assert_true(program_number(whole, "steps") == 3);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char folder[16], more[160];
    snprintf(folder, sizeof folder, "way%zu", i);
    snprintf(more, sizeof more, "--set data.batch=%d --set optimizer.accumulate=%d %s", ways[i].batch,
             ways[i].accumulate, any);
    const json_t *parts = nets_train(folder, ways[i].devices, more);
    nets_compare(folder, folder, "whole", 1e-6);
    same_number(parts, whole, "train.loss");
  }
}

static void micro_batches_of_lenet(void **state) {
  (void)state;
  accumulate("LeNet, accumulating", nets_lenet);
}
static void micro_batches_of_a_transformer(void **state) {
  (void)state;
  accumulate("transformer, accumulating", nets_transformer);
}
static void micro_batches_of_two_losses(void **state) {
  (void)state;
  accumulate("two losses, accumulating", nets_two_losses);
}
static void micro_batches_with_dropout(void **state) {
  (void)state;
  accumulate("dropout, accumulating", nets_dropout);
}

/* Batch norm never spans micro-batches, so every run accumulates. */
static void micro_batches_of_a_residual_network(void **state) {
  (void)state;
  file_write("model.ini", nets_resnet);
  const json_t *one = nets_train("one", 1, "--set optimizer.accumulate=2");
  const json_t *two = nets_train("two", 2, "--set optimizer.accumulate=2 --set backend.sim.order=lazy");
  const json_t *four = nets_train("four", 4, "--set optimizer.accumulate=2 --set backend.sim.seed=5");
  nets_compare("ResNet, accumulating", "two", "one", NETS_BAND);
  nets_compare("ResNet, accumulating", "four", "one", NETS_BAND);
  same_results(two, one);
  same_results(four, one);
}

/* ---- frozen parameters ---- */

/* The plan of a step on four devices. */
static double plan_number(const char *freeze, const char *path) {
  return program_number(program_json(0,
                                     "plan model.ini --set backend.use=sim --set backend.sim.devices=4 "
                                     "--set distributed.devices=4 --set distributed.bucket=25MiB %s",
                                     freeze),
                        path);
}

/* They keep the bits that they began with, and the others learn as on one device. */
static void train_frozen(const char *what, const char *ini, const char *freeze, const char *const *frozen,
                         const char *const *trained) {
  static const char *const folders[] = {"one", "two", "four"}, *const orders[] = {eager, lazy, any};
  const json_t *results[3];
  char more[256];
  file_write("model.ini", ini);
  nets_train("start", 1, "--set run.max_steps=0 --set run.epochs=0");
  for (int i = 0; i < 3; i++) {
    snprintf(more, sizeof more, "%s %s", freeze, orders[i]);
    results[i] = nets_train(folders[i], 1 << i, more);
    for (int k = 0; frozen[k] != NULL; k++) assert_true(nets_difference(folders[i], "start", frozen[k]) == 0);
    for (int k = 0; trained[k] != NULL; k++)
      assert_true(nets_difference(folders[i], "start", trained[k]) > 1e-4);
    if (i == 0) continue;
    nets_compare(what, folders[i], "one", NETS_BAND);
    same_results(results[i], results[0]);
  }
}

/* Their gradients are not computed, so the ranks have none to exchange. */
static void frozen_parameters_stay_and_are_not_exchanged(void **state) {
  static const char *const frozen[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", NULL},
                           *const trained[] = {"fc1.weight", "fc2.bias", "fc3.weight", NULL};
  static const char freeze[] = "--set group.body.freeze=yes --set group.body.match=conv1.*,conv2.*";
  (void)state;
  train_frozen("frozen LeNet", nets_lenet, freeze, frozen, trained);
  double count = plan_number(freeze, "frozen"), rest = plan_number(freeze, "parameters"),
         bytes = plan_number(freeze, "collective_bytes");
  assert_true(count > 2000 && count + rest == plan_number("", "parameters"));
  assert_true(bytes >= 4 * rest && bytes < 4 * rest + 1024); /* loss weights and reported numbers, padding */
  assert_int_equal(program_run("plan model.ini --set backend.use=sim --set backend.sim.devices=4 "
                               "--set distributed.devices=4 --set distributed.bucket=25MiB %s",
                               freeze),
                   0);
  assert_non_null(strstr(program_out, "4 devices; each hands over 0.23 MiB an update in 3 collectives\n"));
}

/* A frozen batch norm reads its running statistics and computes none of the batch, so the ranks have nothing
 * to gather: three of eight batch norms lose their two collectives. */
static void frozen_statistics_stay_and_are_not_gathered(void **state) {
  static const char *const frozen[] = {"bn1.weight", "bn1.running_mean", "bn1.running_var", NULL},
                           *const trained[] = {"fc.weight", NULL};
  static const char freeze[] = "--set group.body.freeze=yes --set group.body.match=conv1.*,bn1.*,layer1.*";
  (void)state;
  train_frozen("frozen ResNet", nets_resnet, freeze, frozen, trained);
  assert_true(plan_number("", "collectives") == 3 + 8 * 2);
  assert_true(plan_number(freeze, "collectives") == 3 + 5 * 2);
}

/* ---- collectives of layers ---- */

/* LeNet with the layer mix(how) behind fc1. */
static void write_mixed(const char *how) {
  char text[4096];
  const char *fc2 = strstr(nets_lenet, "fc2:");
  assert_non_null(fc2);
  while (fc2[-1] != '\n') fc2--;
  int n = snprintf(text, sizeof text, "%.*s           mix(%s)\n%s[plugins]\nload = " MIX "\n",
                   (int)(fc2 - nets_lenet), nets_lenet, how, fc2);
  assert_true((size_t)n < sizeof text);
  file_write("model.ini", text);
}

/* A mean over 1, 2 or 4 ranks has the bits of the sum times 1, 0.5 or 0.25. */
static void means_are_sums(int devices, const char *order) {
  static const char *const ways[] = {"mean", "mean_scatter"};
  for (int i = 0; i < 2; i++) {
    write_mixed(ways[i]);
    nets_train(ways[i], devices, order);
    nets_compare("mixed", ways[i], "reduced", 0);
    assert_int_equal(system("rm -rf mean mean_scatter"), 0);
  }
}

/* all_gather(reduce_scatter(x)) = all_reduce(x), and so for their gradients, bit by bit. */
static void the_gathered_parts_of_a_sum_are_the_sum(void **state) {
  (void)state;
  static const char *const orders[] = {eager, lazy, any};
  for (int devices = 1; devices <= 4; devices *= 2) {
    write_mixed("reduce");
    nets_train("reduced", devices, "");
    write_mixed("scatter");
    for (int i = 0; i < 3; i++) {
      nets_train("scattered", devices, orders[i]);
      nets_compare("mixed", "scattered", "reduced", 0);
      assert_int_equal(system("rm -rf scattered"), 0);
    }
    means_are_sums(devices, orders[devices / 2]);
    file_write("model.ini", nets_lenet);
    nets_train("plain", devices, "");
    assert_true(nets_difference("reduced", "plain", "conv1.weight") > 1e-3); /* the layer is used */
    assert_int_equal(system("rm -rf reduced plain"), 0);
  }
}

static void an_op_for_another_number_of_ranks_is_refused(void **state) {
  (void)state;
  write_mixed("wrong");
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                               "--set distributed.devices=2"),
                   65);
  if (strstr(program_err, "its attribute ranks is 1, but the run has 2 ranks") == NULL)
    fail_msg("%s", program_err);
}

static void a_mean_of_integers_is_refused(void **state) {
  (void)state;
  write_mixed("whole");
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim"), 65);
  if (strstr(program_err, "all_reduce: the mean of i32, expected f16, bf16, f32 or f64") == NULL)
    fail_msg("%s", program_err);
}

/* ---- reductions in half precision ---- */

/* The rounding of the gradients' sums: 2^-9 and 2^-11 of each, accumulated over 20 steps. */
static void reduce_in(const char *dtype, double limit, const char *more) {
  char all[256];
  snprintf(all, sizeof all, "--set distributed.reduce_dtype=%s --set distributed.bucket=32KiB %s", dtype,
           more);
  const json_t *half = nets_train("half", 4, all);
  assert_true(program_number(half, "steps") == 20);
  assert_true(nets_difference("half", "full", "conv1.weight") > 0); /* the sums are rounded */
  nets_compare(dtype, "half", "full", limit);
  snprintf(all, sizeof all, "--set distributed.reduce_dtype=%s --set distributed.bucket=32KiB %s %s", dtype,
           more, any);
  nets_train("again", 4, all);
  checkpoints_equal("again", "half");
}

static void gradients_are_reduced_in_half_precision(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  nets_train("full", 4, "");
  reduce_in("bf16", 2e-2, "");
  reduce_in("f16", 2e-2, ""); /* small gradients lose bits below 2^-14 */
  static const char plan[] = "plan model.ini --set backend.use=sim --set backend.sim.devices=4 "
                             "--set distributed.devices=4 --set distributed.reduce_dtype=%s";
  double full = program_number(program_json(0, plan, "f32"), "collective_bytes");
  double half = program_number(program_json(0, plan, "bf16"), "collective_bytes");
  assert_true(half > 0.5 * full && half < 0.5 * full + 4096);
}

/* Micro-batches are accumulated in f32; only their sum is rounded. */
static void micro_batches_are_reduced_in_half_precision(void **state) {
  (void)state;
  static const char halves[] = "--set data.train.batch=4 --set optimizer.accumulate=2";
  file_write("model.ini", nets_lenet);
  nets_train("full", 4, halves);
  reduce_in("bf16", 2e-2, halves);
}

/* The loss is scaled before the reduction. The forward pass in f16 amplifies the differences of single
 * weights, so the losses of all steps are compared. */
static void scaled_losses_are_reduced_in_half_precision(void **state) {
  (void)state;
  static const char mixed[] = "--set precision.policy=fp16 --set precision.init_scale=1024";
  char more[160];
  file_write("model.ini", nets_lenet);
  double full = program_number(nets_train("full", 4, mixed), "train.loss");
  snprintf(more, sizeof more, "%s --set distributed.reduce_dtype=f16", mixed);
  double half = program_number(nets_train("half", 4, more), "train.loss");
  print_message("mean loss %.6f in f32, %.6f in f16\n", full, half);
  assert_true(full != half && fabs(half - full) < 1e-3 * full);
}

/* Without a loss scale: the sum overflows, and the update is skipped. */
static void a_sum_that_overflows_changes_no_parameter(void **state) {
  (void)state;
  char text[4096];
  size_t at = (size_t)(strstr(nets_lenet, "loss = cross_entropy") - nets_lenet);
  snprintf(text, sizeof text, "%.*sloss = cross_entropy(weight=1e9)%s", (int)at, nets_lenet,
           nets_lenet + at + strlen("loss = cross_entropy"));
  file_write("model.ini", text);
  static const char some[] =
      "--set optimizer.lr=1e-9 --set run.max_steps=%d --set distributed.reduce_dtype=%s";
  char more[160];
  snprintf(more, sizeof more, some, 1, "f16");
  nets_train("one", 2, more);
  snprintf(more, sizeof more, some, 4, "f16");
  nets_train("four", 2, more);
  assert_true(nets_difference("four", "one", "fc3.weight") == 0);
  snprintf(more, sizeof more, some, 4, "bf16");
  nets_train("wide", 2, more);
  assert_true(nets_difference("wide", "one", "fc3.weight") > 0);
}

/* ---- uneven ends ---- */

/* 50 samples are 6 batches of 8 and one of 2, for which two of four devices have no samples. */
static void a_short_last_batch(void **state) {
  (void)state;
  static const char *const ways[] = {"--set data.epoch=50 --set data.train.last=pad",
                                     "--set data.epoch=50 --set data.train.last=pad --set data.train.batch=4 "
                                     "--set optimizer.accumulate=2"};
  for (int i = 0; i < 2; i++) {
    char one[16], two[16], four[16];
    snprintf(one, sizeof one, "one%d", i);
    snprintf(two, sizeof two, "two%d", i);
    snprintf(four, sizeof four, "four%d", i);
    file_write("model.ini", nets_lenet);
    const json_t *a = nets_train(one, 1, "--set data.epoch=50 --set data.train.last=pad");
    const json_t *b = nets_train(two, 2, ways[i]), *c = nets_train(four, 4, ways[i]);
    nets_compare("short last batch", two, one, NETS_BAND);
    nets_compare("short last batch", four, one, NETS_BAND);
    same_results(b, a);
    same_results(c, a);
  }
}

/* ---- several steps in a launch ---- */

/* The losses of all steps and validations, one a line. */
static void read_losses(const char *folder, char *text, size_t size) {
  char path[64];
  size_t n = 0;
  snprintf(path, sizeof path, "%s/run/metrics.jsonl", folder);
  text[0] = '\0';
  for (char *line = strtok(file_read(path, NULL), "\n"); line; line = strtok(NULL, "\n")) {
    const char *loss = strstr(line, "\"loss\"");
    if (loss != NULL) n += (size_t)snprintf(text + n, size - n, "%.*s\n", (int)strcspn(loss, ",}"), loss);
    assert_true(n < size);
  }
  assert_true(n > 0);
}

/* 20 steps, 8 in an epoch, a checkpoint after every 5th: single steps are left over at all of these ends. */
static void the_steps_of_one_launch_are_those_of_many(void **state) {
  (void)state;
  static char alone[1 << 14], together[1 << 14];
  char more[160];
  file_write("model.ini", nets_lenet);
  nets_train("alone", 2, "--set run.steps_per_launch=1 --set run.save_every=5");
  read_losses("alone", alone, sizeof alone);
  for (int i = 0; i < 3; i++) {
    static const char *const orders[] = {eager, lazy, any};
    snprintf(more, sizeof more, "--set run.steps_per_launch=%d --set run.save_every=5 %s", 2 + i, orders[i]);
    nets_train("together", 2, more);
    read_losses("together", together, sizeof together);
    assert_string_equal(together, alone);
    checkpoints_equal("together", "alone");
    assert_int_equal(system("rm -rf together"), 0);
  }
  nets_train("together", 4, "--set run.steps_per_launch=4"); /* another number of ranks */
  nets_compare("several steps on four devices", "together", "alone", NETS_BAND);
}

/* The kernel late_matmul is the cheapest and cannot be prepared, on any rank: all compile their programs
 * again, and record their captures of several steps from these. */
static void declined_kernels_leave_several_steps_a_launch(void **state) {
  (void)state;
  char text[4096];
  snprintf(text, sizeof text, "%s[plugins]\nload = " LATE "\n", nets_lenet);
  file_write("model.ini", nets_lenet);
  nets_train("plain", 2, "--set run.steps_per_launch=1");
  file_write("model.ini", text);
  for (int steps = 1; steps <= 4; steps *= 4) {
    char more[64];
    snprintf(more, sizeof more, "--set run.steps_per_launch=%d --verbose", steps);
    nets_train("declined", 2, more);
    assert_non_null(strstr(program_err, "kernel late_matmul second declined when it was prepared"));
    assert_null(strstr(program_err, "enqueued one by one"));
    checkpoints_equal("declined", "plain");
    assert_int_equal(system("rm -rf declined"), 0);
  }
}

/* ---- statistics over the ranks ---- */

/* Mean and unbiased variance of a channel over the first batch of 8. */
static void steady_moments(int64_t channel, double center, double *mean, double *variance) {
  double n = 8.0 * STEADY_PLANE, sum = 0, squares = 0;
  for (int64_t i = 0; i < 8 * STEADY_PLANE; i++) {
    int64_t at = channel * STEADY_PLANE + i % STEADY_PLANE;
    double x = (double)steady_value(i / STEADY_PLANE, at, center) - center;
    sum += x;
    squares += x * x;
  }
  *mean = center + sum / n;
  *variance = (squares - sum * sum / n) / (n - 1);
}

/* The samples lie 1000 standard deviations from zero; with momentum = 1 the running statistics are the
 * batch's. */
static void statistics_far_from_zero_keep_their_digits(void **state) {
  (void)state;
  nets_write_steady(STEADY, "mean = 1000");
  for (int devices = 1; devices <= 4; devices *= 2) {
    size_t n, m;
    nets_train("far", devices, "--set run.max_steps=1");
    float *means = nets_values("far", "bn.running_mean", &n),
          *variances = nets_values("far", "bn.running_var", &m);
    assert_true(n == STEADY_CHANNELS && m == STEADY_CHANNELS);
    for (size_t c = 0; c < n; c++) {
      double mean, variance;
      steady_moments((int64_t)c, 1000, &mean, &variance);
      double off = fabs((double)variances[c] - variance) / variance;
      print_message("%d devices, channel %zu: mean %.9g, variance %.9g, off by %.2g\n", devices, c,
                    (double)means[c], (double)variances[c], off);
      assert_true(variance > 0.8 && variance < 1.2);
      assert_true(off <= 1e-5);
      assert_true(fabs((double)means[c] - mean) <= 1e-4); /* an f32 of this size has steps of 6e-5 */
    }
    free(means);
    free(variances);
    assert_int_equal(system("rm -rf far"), 0);
  }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(lenet),
      CASE(a_transformer),
      CASE(a_residual_network_whose_batch_norm_spans_the_ranks),
      CASE(two_losses_of_other_weights_with_targets_that_do_not_count),
      CASE(dropout_draws_the_numbers_of_one_device),
      CASE(micro_batches_count_tokens_as_one_batch_does),
      CASE(micro_batches_of_lenet),
      CASE(micro_batches_of_a_transformer),
      CASE(micro_batches_of_two_losses),
      CASE(micro_batches_with_dropout),
      CASE(micro_batches_of_a_residual_network),
      CASE(frozen_parameters_stay_and_are_not_exchanged),
      CASE(frozen_statistics_stay_and_are_not_gathered),
      CASE(the_gathered_parts_of_a_sum_are_the_sum),
      CASE(an_op_for_another_number_of_ranks_is_refused),
      CASE(a_mean_of_integers_is_refused),
      CASE(gradients_are_reduced_in_half_precision),
      CASE(micro_batches_are_reduced_in_half_precision),
      CASE(scaled_losses_are_reduced_in_half_precision),
      CASE(a_sum_that_overflows_changes_no_parameter),
      CASE(a_short_last_batch),
      CASE(the_steps_of_one_launch_are_those_of_many),
      CASE(declined_kernels_leave_several_steps_a_launch),
      CASE(statistics_far_from_zero_keep_their_digits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
