/* The plan for several devices: the bytes of collectives, and the launches that overlap with them. */
#include "nets.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MOST_STEPS = 1024 };

/* Launches of the training step, from the text of its plan. */
typedef struct launches {
  int n, collectives, awaits[MOST_STEPS]; /* the launch that each awaits, or -1 */
  bool collective[MOST_STEPS];
} launches;

static launches read_launches(void) {
  launches l = {.n = 0};
  for (char *line = strtok(program_out, "\n"); line; line = strtok(NULL, "\n")) {
    char *end;
    long number = strtol(line, &end, 10);
    const char *after = strstr(line, ") after ");
    if (end == line || *end != ':') continue;
    assert_int_equal(number, l.n);
    assert_true(l.n < MOST_STEPS);
    l.collective[l.n] = strstr(line, "= all_reduce ") != NULL;
    l.collectives += l.collective[l.n];
    l.awaits[l.n++] = after ? atoi(after + 8) : -1;
  }
  return l;
}

static const char plan_command[] = "plan model.ini --set backend.use=sim --set backend.sim.devices=4 "
                                   "--set distributed.devices=4 %s";

/* The launches between a collective and the first that awaits it or a later one. */
static int overlapping(const launches *l, int collective) {
  int n = 0;
  for (int i = collective + 1; i < l->n && l->awaits[i] < collective; i++) n += !l->collective[i];
  return n;
}

/* Buckets are the last collectives. All but the last bucket overlap with the backward pass. */
static void buckets_are_reduced_beside_backward(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  assert_int_equal(program_run(plan_command, "--set distributed.bucket=4KiB --dump-after memory"), 0);
  launches l = read_launches();
  int buckets = 0, before = l.n;
  for (int i = 0; i < l.n; i++) buckets += l.collective[i] && i > l.n / 3;
  print_message("%d launches, %d collectives, %d of them buckets of gradients\n", l.n, l.collectives,
                buckets);
  assert_true(buckets >= 4);
  for (int i = 0, k = 0; i < l.n; i++) {
    if (!l.collective[i] || i <= l.n / 3 || ++k == buckets) continue;
    int now = overlapping(&l, i);
    assert_true(now >= 1 && now < before); /* earlier buckets overlap with more launches */
    before = now;
  }
}

static void text_and_json_have_the_bytes_of_collectives(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *one = program_json(0, "plan model.ini --set backend.use=sim");
  const json_t *four = program_json(0, plan_command, "--set distributed.bucket=25MiB");
  double parameters = program_number(four, "parameters"), bytes = program_number(four, "collective_bytes");
  assert_true(program_number(one, "devices") == 1 && program_number(one, "collectives") == 0);
  assert_true(program_number(four, "devices") == 4 && program_number(four, "collectives") == 3);
  /* gradients, loss weights, and reported numbers */
  assert_true(bytes >= 4 * parameters && bytes < 4 * parameters + 4096);
  const json_t *parts =
      program_json(0, plan_command, "--set optimizer.accumulate=3 --set distributed.bucket=25MiB");
  assert_true(program_number(parts, "collectives") ==
              3 + 3 + 1); /* loss weights, reported numbers, one bucket */
  assert_int_equal(program_run(plan_command, "--set distributed.bucket=25MiB"), 0);
  assert_non_null(strstr(program_out, "4 devices; each hands over 0.2"));
  assert_non_null(strstr(program_out, " MiB an update in 3 collectives\n"));
  assert_int_equal(program_run("plan model.ini --set backend.use=sim"), 0);
  assert_null(strstr(program_out, "devices; each"));
}

/* ---- the schedule of collectives ---- */

static double overlap_number(const json_t *plan, const char *key) {
  return program_number(program_member(plan, "overlap"), key);
}

static void the_plan_has_the_schedule_of_collectives(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  assert_null(json_object_get(program_json(0, "plan model.ini --set backend.use=sim"), "overlap"));
  const json_t *plan = program_json(0, plan_command, "--set distributed.bucket=64KiB");
  double step = overlap_number(plan, "step_ms"), exposed = overlap_number(plan, "exposed_ms"), sum = 0,
         end = 0;
  assert_true(program_number(plan, "cost_ms") == step);
  assert_true(fabs(overlap_number(plan, "compute_ms") + exposed - step) < 1e-9);
  const json_t *list = program_member(program_member(plan, "overlap"), "collectives"), *one;
  int gradients = 0;
  size_t i;
  assert_int_equal(json_array_size(list), program_number(plan, "collectives"));
  json_array_foreach(list, i, one) {
    assert_true(program_number(one, "ready_ms") <= program_number(one, "begin_ms"));
    assert_true(program_number(one, "begin_ms") >= end); /* one after the other */
    end = program_number(one, "end_ms");
    sum += program_number(one, "exposed_ms");
    gradients += (int)program_number(one, "gradients");
  }
  assert_true(fabs(sum - exposed) < 1e-9 && end <= step);
  assert_int_equal(gradients, 10); /* weights and biases of five layers */
  assert_int_equal(program_run(plan_command, "--set distributed.bucket=64KiB"), 0);
  assert_non_null(strstr(program_out, "all_reduce of bucket 1"));
  assert_non_null(strstr(program_out, "links of 25 GB/s and 6 us\npredicted: "));
}

/* A slow link hides less. Ranks need not be there. */
static void links_decide_what_is_exposed(void **state) {
  (void)state;
  static const char ask[] =
      "plan model.ini --set backend.use=sim --ranks 8 --set data.train.batch=32 --set data.valid.batch=32 %s";
  file_write("model.ini", nets_lenet);
  const json_t *plan = program_json(0, ask, "--set distributed.link=nvlink");
  double fast = overlap_number(plan, "exposed_ms"), sent = overlap_number(plan, "communication_ms");
  assert_true(program_number(plan, "devices") == 8);
  plan = program_json(0, ask, "--set distributed.link=0.01:1000");
  assert_true(overlap_number(plan, "exposed_ms") > fast && overlap_number(plan, "communication_ms") > sent);
  plan = program_json(0, ask, "--set distributed.host_ranks=4 --set distributed.link=nvlink");
  assert_true(overlap_number(plan, "host_ranks") == 4 && overlap_number(plan, "communication_ms") > sent);
  assert_int_equal(program_run(ask, "--set distributed.host_ranks=4 --set distributed.link=nvlink"), 0);
  assert_non_null(strstr(program_out,
                         "links of 450 GB/s and 3 us between the 4 devices of a host, and of 12.5 "
                         "GB/s and 15 us between hosts\n"));
  assert_int_equal(program_run("plan model.ini --set backend.use=sim --ranks 7 --set data.train.batch=32"),
                   65);
  assert_int_equal(program_run("plan model.ini --ranks 0"), 2);
}

static void links_that_are_none_are_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"fast", "25", "25:", ":6", "25:6us", "0:6", "25:-1", "nan:1", "1e9:1"};
  file_write("model.ini", nets_lenet);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(program_run("plan model.ini --set distributed.host_link=%s", wrong[i]), 65);
    assert_non_null(strstr(program_err, "[distributed] host_link = "));
    assert_non_null(strstr(program_err, "such as 25:6"));
  }
}

/* ---- buckets whose sizes are chosen ---- */

/* No fixed size is better, over links that hide everything, some, and nothing. */
static void chosen_buckets_end_first(void **state) {
  (void)state;
  static const char *const links[] = {"450:3", "0.5:2", "0.05:20", "0.05:1000"}, *const sizes[] = {
                                                                                     "4", "16KiB", "1MiB"};
  char more[160];
  file_write("model.ini", nets_lenet);
  for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
    snprintf(more, sizeof more, "--set distributed.link=%s", links[i]);
    const json_t *plan = program_json(0, plan_command, more);
    double chosen = overlap_number(plan, "exposed_ms"), step = overlap_number(plan, "step_ms");
    assert_true(json_array_size(program_member(plan, "buckets")) >= 1);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      snprintf(more, sizeof more, "--set distributed.link=%s --set distributed.bucket=%s", links[i],
               sizes[k]);
      plan = program_json(0, plan_command, more);
      print_message("link %s: %.4f ms exposed, with %s %.4f\n", links[i], chosen, sizes[k],
                    overlap_number(plan, "exposed_ms"));
      assert_true(chosen <= overlap_number(plan, "exposed_ms") + 0.01 * step);
      assert_int_equal(json_array_size(program_member(plan, "buckets")), 0);
    }
  }
}

static void sizes_that_are_none_are_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"3", "0", "-1", "large", "Auto"};
  file_write("model.ini", nets_lenet);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(program_run("plan model.ini --set distributed.bucket=%s", wrong[i]), 65);
    assert_non_null(strstr(program_err, "[distributed] bucket = "));
    assert_non_null(strstr(program_err, "expected auto, or a size from 4 bytes on such as 25MiB"));
  }
}

/* The cuts of plan.json, be they good or bad. */
static void a_resumed_run_repeats_its_buckets(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  nets_train("o", 2, "--set run.max_steps=4 --set run.save_every=2 --set run.name=run");
  json_t *plan = json_load_file("o/run/plan.json", 0, NULL);
  json_t *buckets = json_object_get(plan, "buckets");
  size_t n = json_array_size(buckets);
  assert_true(n >= 1);
  assert_int_equal(json_array_remove(buckets, n - 1), 0);
  assert_int_equal(json_dump_file(plan, "o/run/plan.json", 0), 0);
  json_decref(plan);
  nets_train("o", 2, "--set run.max_steps=8 --set run.name=run --resume o/run");
  assert_non_null(strstr(program_err, "program step has another plan than before"));
  plan = json_load_file("o/run/plan.json", 0, NULL);
  assert_int_equal(json_array_size(json_object_get(plan, "buckets")), n - 1);
  json_decref(plan);
  nets_train("o", 2, "--set run.max_steps=12 --set run.name=run --resume o/run");
  assert_null(strstr(program_err, "another plan than before"));
}

/* The statistics of all ranks are gathered at once; behind inputs there is no gradient to exchange. */
static void batch_norm_over_the_ranks_has_one_collective_each_way(void **state) {
  (void)state;
  nets_write_steady(STEADY, "mean = 0");
  assert_true(program_number(program_json(0, plan_command, "--set distributed.bucket=25MiB"),
                             "collectives") == 3 + 1);
  assert_int_equal(program_run(plan_command, "--dump-after memory"), 0);
  assert_non_null(strstr(program_out, "= all_gather "));
  file_write("model.ini", nets_resnet); /* 8 of them */
  assert_true(program_number(program_json(0, plan_command, "--set distributed.bucket=25MiB"),
                             "collectives") == 3 + 8 * 2);
}

/* ---- captured ---- */

/* Each seed is another order of the streams of all devices. Sums have one order, so results have the same
 * bits. The limit on launches is above those of the first run and below those of two. */
static void a_captured_step_replays_in_every_order(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  nets_train("one", 1, "--set run.max_steps=4");
  nets_train("plain", 2, "--set run.max_steps=4 --set backend.capture=no --set distributed.bucket=64KiB");
  nets_compare("captured", "plain", "one", NETS_BAND);
  for (int seed = 0; seed < 50; seed++) {
    char more[256];
    snprintf(more, sizeof more,
             "--set run.max_steps=4 --set distributed.bucket=64KiB --set backend.sim.order=random "
             "--set backend.sim.seed=%d --set run.save_every=4 --set run.name=run",
             seed);
    nets_train("captured", 2, more);
    checkpoints_equal("captured", "plain");
    assert_int_equal(system("rm -rf captured"), 0);
  }
}

static void a_distributed_step_is_captured_as_a_whole(void **state) {
  (void)state;
  file_write("model.ini", nets_lenet);
  const json_t *plan = program_json(0, plan_command, "--set distributed.bucket=25MiB");
  assert_true(program_number(plan, "captured_parts") == 1);
  assert_int_equal(json_array_size(program_member(plan, "uncaptured")), 0);
  assert_int_equal(program_run(plan_command, ""), 0);
  assert_non_null(strstr(program_out, "1 captured part, 0 launches not captured\n"));
  plan = program_json(0, plan_command, "--set backend.capture=no");
  assert_true(program_number(plan, "captured_parts") == 0);
  /* a launch limit that a replayed run does not reach */
  static const char limited[] = "--set run.epochs=9 --set run.max_steps=40 --set backend.sim.fail=launch:800 "
                                "--set backend.capture=%s";
  char more[160];
  snprintf(more, sizeof more, limited, "yes");
  nets_train("replayed", 2, more);
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                               "--set distributed.devices=2 --set run.epochs=9 --set run.max_steps=40 "
                               "--set backend.sim.fail=launch:800 --set backend.capture=no"),
                   77);
  assert_non_null(strstr(program_err, "launch 800"));
}

/* ---- a communicator of another plugin, which cannot be captured ---- */

static void write_with_plugin(const char *net) {
  char text[4096];
  snprintf(text, sizeof text, "%s[plugins]\nload = " OUTSIDE "\n", net);
  file_write("model.ini", text);
}

/* The launches between its collectives are captured, in every order of the streams, and buckets overlap with
 * the backward pass as before. */
static void captured_launches_surround_what_cannot_be_captured(void **state) {
  (void)state;
  static const char buckets[] = "--set distributed.bucket=64KiB --set run.max_steps=6";
  char more[256];
  write_with_plugin(nets_lenet);
  nets_train("sim", 4, buckets);
  for (int seed = 0; seed < 8; seed++) {
    snprintf(more, sizeof more, "%s --set distributed.communicator=outside --set backend.sim.seed=%d%s%s",
             buckets, seed, seed == 7 ? " --set backend.sim.order=lazy" : "",
             seed == 6 ? " --set backend.capture=no" : "");
    nets_train("outside", 4, more);
    checkpoints_equal("outside", "sim");
    assert_int_equal(system("rm -rf outside"), 0);
  }
}

/* The communicator sim broadcasts the state of a resumed run; outside cannot, and the hosts exchange it. */
static void a_resumed_run_has_its_state_with_and_without_broadcasts(void **state) {
  (void)state;
  static const char *const names[] = {"sim", "outside"};
  write_with_plugin(nets_lenet);
  nets_train("whole", 2, "--set run.max_steps=6");
  for (int i = 0; i < 2; i++) {
    char more[128];
    snprintf(more, sizeof more, "--set run.max_steps=3 --set distributed.communicator=%s", names[i]);
    nets_train(names[i], 2, more);
    snprintf(more, sizeof more, "--set run.max_steps=6 --resume auto --set distributed.communicator=%s",
             names[i]);
    nets_train(names[i], 2, more);
    checkpoints_equal(names[i], "whole");
  }
}

static void each_launch_that_is_not_captured_is_named(void **state) {
  (void)state;
  static const char ask[] = "--set distributed.communicator=outside --set distributed.bucket=100KiB";
  write_with_plugin(nets_lenet);
  const json_t *plan = program_json(0, plan_command, ask);
  size_t collectives = (size_t)program_number(plan, "collectives");
  const json_t *list = program_member(plan, "uncaptured");
  assert_int_equal(json_array_size(list), collectives);
  assert_true(program_number(plan, "captured_parts") >= (double)collectives);
  assert_int_equal(program_run(plan_command, ask), 0);
  assert_non_null(strstr(program_out, " launches not captured: all_reduce"));
  assert_non_null(strstr(program_out, "all_reduce of bucket 1 (communicator outside cannot be captured)"));
  assert_int_equal(program_run("train model.ini --output o --set backend.use=sim --set backend.sim.devices=2 "
                               "--set distributed.devices=2 --set run.max_steps=3 %s",
                               ask),
                   0);
  const char *line = strstr(program_err, "program 'step': ");
  assert_non_null(line);
  assert_non_null(strstr(line, "all_reduce of bucket 0 (communicator outside cannot be captured)"));
  assert_null(strstr(line + 1, "program 'step': ")); /* once */
}

/* Every element is summed in the order of the ranks, for all sizes of buckets. */
static void the_size_of_buckets_changes_no_bit(void **state) {
  (void)state;
  static const char *const sizes[] = {"4", "1KiB", "100KiB"};
  file_write("model.ini", nets_lenet);
  nets_train("whole", 4, "");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char folder[16], more[128];
    snprintf(folder, sizeof folder, "o%zu", i);
    snprintf(more, sizeof more, "--set distributed.bucket=%s --set backend.sim.seed=%zu%s", sizes[i], i,
             i == 1 ? " --set backend.sim.order=lazy" : "");
    nets_train(folder, 4, more);
    checkpoints_equal(folder, "whole");
  }
}

/* A step with chosen buckets has the bits of one with fixed ones, also with micro-batches and divided state.
 */
static void chosen_buckets_change_no_bit(void **state) {
  (void)state;
  static const char *const ways[] = {"--set distributed.shard=optimizer",
                                     "--set data.train.batch=4 --set optimizer.accumulate=2",
                                     "--set precision.policy=bf16 --set distributed.reduce_dtype=bf16"};
  char more[256];
  file_write("model.ini", nets_lenet);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    snprintf(more, sizeof more, "--set run.max_steps=4 --set distributed.bucket=32KiB %s", ways[i]);
    nets_train("fixed", 2, more);
    snprintf(more, sizeof more, "--set run.max_steps=4 --set distributed.link=0.5:2 %s", ways[i]);
    nets_train("chosen", 2, more);
    checkpoints_equal("chosen", "fixed");
    assert_int_equal(system("rm -rf fixed chosen"), 0);
  }
}

static void many_buckets_and_micro_batches(void **state) {
  (void)state;
  file_write("model.ini", nets_transformer);
  nets_train("one", 1, "");
  nets_train("four", 4, "--set distributed.bucket=512 --set backend.sim.seed=9");
  nets_compare("transformer, many buckets", "four", "one", NETS_BAND);
  nets_train("parts", 2,
             "--set distributed.bucket=512 --set data.train.batch=4 --set optimizer.accumulate=2 "
             "--set backend.sim.order=lazy");
  nets_compare("transformer, many buckets and micro-batches", "parts", "one", NETS_BAND);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(buckets_are_reduced_beside_backward),
      CASE(text_and_json_have_the_bytes_of_collectives),
      CASE(the_plan_has_the_schedule_of_collectives),
      CASE(links_decide_what_is_exposed),
      CASE(links_that_are_none_are_refused),
      CASE(chosen_buckets_end_first),
      CASE(sizes_that_are_none_are_refused),
      CASE(a_resumed_run_repeats_its_buckets),
      CASE(batch_norm_over_the_ranks_has_one_collective_each_way),
      CASE(a_captured_step_replays_in_every_order),
      CASE(a_distributed_step_is_captured_as_a_whole),
      CASE(captured_launches_surround_what_cannot_be_captured),
      CASE(a_resumed_run_has_its_state_with_and_without_broadcasts),
      CASE(each_launch_that_is_not_captured_is_named),
      CASE(the_size_of_buckets_changes_no_bit),
      CASE(chosen_buckets_change_no_bit),
      CASE(many_buckets_and_micro_batches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
