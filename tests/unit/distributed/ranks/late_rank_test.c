/* The rank that others waited for, found from summaries of all ranks. */
#include "tests/unit/run/rig.h"

#include <stdio.h>
#include <string.h>

#include "core/exec/flight_recorder.h"
#include "core/distributed/ranks/late_rank.h"
#include "tenon/plugin/communicator.h"

enum { RANKS = 4, MANY = 40 };

static tn_rank_summary ranks[MANY];
static bool known[MANY];

static void name_rank(void *context, int32_t rank, tn_text *text) {
  (void)context;
  tn_text_addf(text, "rank %d (host %c)", (int)rank, 'a' + (int)rank % 26);
}

/* All ranks have begun and ended n collectives and m exchanges, and compute. */
static void set_all(int32_t n_ranks, uint64_t n, uint64_t m) {
  for (int32_t r = 0; r < n_ranks; r++) {
    ranks[r] = (tn_rank_summary){.rank = r, .begun = n, .ended = n, .exchanges = m, .step = 41};
    known[r] = true;
  }
}

static void add_call(int32_t rank, uint64_t number, const char *name, int32_t kind, int64_t count) {
  tn_rank_summary *s = &ranks[rank];
  tn_summary_call *call = &s->calls[s->n_calls++];
  *call = (tn_summary_call){.number = number, .step = 41, .count = count, .kind = kind, .dtype = TN_F32};
  snprintf(call->name, sizeof call->name, "%s", name);
}

static void set_wait(int32_t rank, int32_t kind, const char *what, double seconds) {
  ranks[rank].wait = kind;
  ranks[rank].waited_ms = (int64_t)(seconds * 1e3);
  snprintf(ranks[rank].what, sizeof ranks[rank].what, "%s", what);
}

/* The rank has begun collective 1207, and waits in it. */
static void set_waiting(int32_t rank, double seconds) {
  ranks[rank].begun = 1207;
  ranks[rank].ended = 1206;
  add_call(rank, 1207, "all_reduce of bucket 3", TN_ALL_REDUCE, 1048576);
  set_wait(rank, TN_FLIGHT_COLLECTIVE, "a collective", seconds);
}

static void expect_of(int32_t n, bool asked, const char *want) {
  const tn_rank_reports all = {ranks, known, asked, n, name_rank, NULL};
  tn_text text = tn_text_new(&R.env);
  tn_text_add(&text, "");
  tn_late_rank_find(&all, &text);
  assert_string_equal(text.v, want);
  tn_text_free(&text);
}

static void expect(const char *want) { expect_of(RANKS, true, want); }

/* Rank 2 has ended 1206 collectives; the others wait in the next one. */
static void set_late_rank(void) {
  set_all(RANKS, 1206, 90);
  for (int32_t r = 0; r < RANKS; r++)
    if (r != 2) set_waiting(r, r == 3 ? 30 : 29);
}

#define LATE                                                                                                 \
  "rank 2 (host c) has not begun collective 1207 (all_reduce of bucket 3, f32, 1048576 elements, step 41), " \
  "in which ranks 0, 1 and 3 waited for 30 s; "

static void a_rank_that_has_not_begun_a_collective_is_named(void **state) {
  (void)state;
  set_late_rank();
  expect(LATE "its host computes, or launches work");
  set_wait(2, TN_FLIGHT_HOST, "its next batch", 29.5);
  expect(LATE "it has waited for 29.5 s for its next batch");
  set_wait(2, TN_FLIGHT_DEVICE, "its device", 28);
  expect(LATE "it has waited for 28 s for its device");
  set_wait(2, TN_FLIGHT_EXCHANGE, "the state", 28);
  expect(LATE "it has waited for 28 s in exchange 90 (the state)");
  ranks[2].begun = 1206;
  ranks[2].ended = 1205;
  set_wait(2, TN_FLIGHT_COLLECTIVE, "a collective", 28);
  expect(LATE "it has waited for 28 s in collective 1206");
}

/* Hosts of asynchronous devices are steps ahead, and learn of ends late. */
static void hosts_that_are_ahead_wait_in_the_same_collective(void **state) {
  (void)state;
  set_late_rank();
  for (int32_t r = 0; r < RANKS; r++) {
    if (r == 2) continue;
    ranks[r].begun = 1260 + (uint64_t)r;
    ranks[r].ended = 1150;
    ranks[r].n_calls = 0;
    add_call(r, 1151, "all_reduce of bucket 0", TN_ALL_REDUCE, 7);
    add_call(r, 1260, "all_reduce of bucket 9", TN_ALL_REDUCE, 8);
    set_wait(r, TN_FLIGHT_DEVICE, "its device", 31);
  }
  expect("rank 2 (host c) has not begun collective 1207, in which ranks 0, 1 and 3 waited for 31 s; its host "
         "computes, or launches work");
}

/* Rank 1 waits for rank 3 in an exchange, and all others in a collective that both have not begun. */
static void the_one_that_waits_for_no_other_is_the_cause(void **state) {
  (void)state;
  set_all(RANKS, 1206, 90);
  set_waiting(0, 10);
  set_waiting(2, 10);
  set_wait(1, TN_FLIGHT_EXCHANGE, "the next step", 10);
  set_wait(3, TN_FLIGHT_HOST, "a checkpoint that it writes", 11);
  expect("rank 3 (host d) has not begun collective 1207 (all_reduce of bucket 3, f32, 1048576 elements, step "
         "41), in which ranks 0 and 2 waited for 10 s; it has waited for 11 s for a checkpoint that it "
         "writes");
}

static void a_rank_that_has_not_come_to_an_exchange_is_named(void **state) {
  (void)state;
  set_all(RANKS, 0, 7);
  for (int32_t r = 1; r < RANKS; r++) {
    ranks[r].exchanges = 8;
    set_wait(r, TN_FLIGHT_EXCHANGE, "hashes of the plans", r);
  }
  expect(
      "rank 0 (host a) has not come to exchange 8 (hashes of the plans), for which ranks 1 to 3 waited for "
      "3 s; its host computes, or launches work");
  ranks[3].exchanges = 70; /* decisions of rank 0 arrive ahead */
  for (int32_t r = 1; r < 3; r++) ranks[r].exchanges = 70;
  expect(
      "rank 0 (host a) has not come to exchange 8, for which ranks 1 to 3 waited for 3 s; its host computes, "
      "or launches work");
}

static void ranks_whose_collectives_differ_are_both_named(void **state) {
  (void)state;
  set_all(RANKS, 1206, 90);
  for (int32_t r = 0; r < RANKS; r++) set_waiting(r, 30);
  ranks[3].n_calls = 0;
  add_call(3, 1207, "the statistics", TN_ALL_GATHER, 64);
  expect(
      "collective 1207 of rank 0 (host a) is all_reduce of bucket 3, f32, 1048576 elements, step 41, that "
      "of rank 3 (host d) is all_gather the statistics, f32, 64 elements, step 41: all ranks must begin the "
      "same collectives in the same order");
  ranks[3].n_calls = 0;
  add_call(3, 1207, "all_reduce of bucket 3", TN_ALL_REDUCE, 1048577);
  expect("collective 1207 of rank 0 (host a) is all_reduce of bucket 3, f32, 1048576 elements, step 41, that "
         "of rank 3 (host d) is all_reduce of bucket 3, f32, 1048577 elements, step 41: all ranks must begin "
         "the same collectives in the same order");
}

static void ranks_that_do_not_answer_are_named(void **state) {
  (void)state;
  set_late_rank();
  known[2] = false;
  expect("rank 2 did not answer, ranks 0, 1 and 3 waited for the others in collective 1207 (all_reduce of "
         "bucket 3, f32, 1048576 elements, step 41)");
  expect_of(RANKS, false,
            "ranks 0, 1 and 3 waited for the others in collective 1207 (all_reduce of bucket 3, f32, 1048576 "
            "elements, step 41)");
  set_all(RANKS, 5, 7);
  known[0] = known[1] = false;
  expect("ranks 0 and 1 did not answer");
  set_wait(3, TN_FLIGHT_EXCHANGE, "the next step", 1);
  expect("ranks 0 and 1 did not answer, rank 3 waited in exchange 7 (the next step)");
  known[2] = known[3] = false;
  expect("ranks 0 to 3 did not answer");
}

static void ranks_that_wait_alike_are_told(void **state) {
  (void)state;
  set_all(RANKS, 1207, 90);
  expect("");
  for (int32_t r = 0; r < RANKS; r++) {
    ranks[r].ended = 1206;
    add_call(r, 1207, "all_reduce of bucket 3", TN_ALL_REDUCE, 1);
    set_wait(r, TN_FLIGHT_DEVICE, "its device", 30);
  }
  expect(
      "ranks 0 to 3 waited for work of their devices from collective 1207 on (all_reduce of bucket 3, f32, "
      "1 element, step 41)");
}

/* Hosts of asynchronous devices may all be at the same place. */
static void a_device_that_has_not_come_is_named(void **state) {
  (void)state;
  set_all(RANKS, 1208, 90);
  for (int32_t r = 0; r < RANKS; r++) {
    ranks[r].ended = 1204;
    for (uint64_t i = 1205; i <= 1208; i++)
      add_call(r, i, i % 2 == 0 ? "all_reduce of bucket 1" : "all_reduce of bucket 0", TN_ALL_REDUCE, 7);
    set_wait(r, TN_FLIGHT_DEVICE, "its device", 30);
    ranks[r].device = r == 1 ? TN_DEVICE_OUTSIDE : TN_DEVICE_INSIDE;
    ranks[r].inside = r == 1 ? 0 : 1206;
  }
  expect("the device of rank 1 (host b) has not come to collective 1206 (all_reduce of bucket 1, f32, 7 "
         "elements, step 41), in which ranks 0, 2 and 3 waited; it has waited for 30 s for its "
         "device");
  for (int32_t r = 0; r < RANKS; r++) { /* the name alone is known, and occurs twice */
    ranks[r].inside = 0;
    strcpy(ranks[r].inside_name, r == 1 ? "" : "all_reduce of bucket 1");
  }
  expect("the device of rank 1 (host b) has not come to the collective 'all_reduce of bucket 1', in which "
         "ranks 0, 2 and 3 waited; it has waited for 30 s for its device");
  ranks[3].ended = 1206; /* another host knows more */
  expect("the device of rank 1 (host b) has not come to collective 1208 (all_reduce of bucket 1, f32, 7 "
         "elements, step 41), in which ranks 0, 2 and 3 waited; it has waited for 30 s for its "
         "device");
  ranks[2].device = TN_DEVICE_OUTSIDE; /* one of the two has nothing to do */
  ranks[2].begun = 1206;
  set_wait(2, TN_FLIGHT_HOST, "its next batch", 31);
  expect("the device of rank 2 (host c) has not come to collective 1208 (all_reduce of bucket 1, f32, 7 "
         "elements, step 41), in which ranks 0 and 3 waited; it has waited for 31 s for its next "
         "batch");
  ranks[0].device = TN_DEVICE_UNKNOWN;
  expect(
      "rank 2 (host c) has not begun collective 1207 (all_reduce of bucket 0, f32, 7 elements, step 41), in "
      "which ranks 0, 1 and 3 waited for 30 s; it has waited for 31 s for its next batch");
}

static void many_ranks_are_ranges(void **state) {
  (void)state;
  set_all(MANY, 1206, 90);
  for (int32_t r = 0; r < MANY; r++)
    if (r % 3 != 1) set_waiting(r, 30);
  for (int32_t r = 0; r < 12; r++)
    if (r % 3 == 1) set_waiting(r, 30);
  expect_of(MANY, true,
            "rank 13 (host n) has not begun collective 1207 (all_reduce of bucket 3, f32, 1048576 elements, "
            "step 41), in which ranks 0 to 12, 14, 15, 17, 18, 20, 21, 23 and 11 more waited for 30 s; its "
            "host computes, or launches work");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_open, rig_close)
  const struct CMUnitTest tests[] = {TEST(a_rank_that_has_not_begun_a_collective_is_named),
                                     TEST(hosts_that_are_ahead_wait_in_the_same_collective),
                                     TEST(the_one_that_waits_for_no_other_is_the_cause),
                                     TEST(a_rank_that_has_not_come_to_an_exchange_is_named),
                                     TEST(ranks_whose_collectives_differ_are_both_named),
                                     TEST(ranks_that_do_not_answer_are_named),
                                     TEST(ranks_that_wait_alike_are_told),
                                     TEST(a_device_that_has_not_come_is_named),
                                     TEST(many_ranks_are_ranges)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
