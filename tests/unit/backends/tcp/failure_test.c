/* Ranks that come late or never, that end or stop, that call something else or give up: each is named on all
 * others. */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/tcp/socket.h"
#include "tests/unit/backends/tcp/rig.h"

enum { LARGE = 3000000 };

static const float eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};

/* The name of a rank with its address, as messages have it. */
static const char *name_of(const rig_rank *r, int32_t rank, char text[TN_TCP_RANK_TEXT]) {
  return tn_tcp_rank_text(r->communicator, rank, text);
}

static tn_status sum_eight(rig_rank *r) {
  float sum[8];
  tn_collective c = rig_sum(eight, sum, 8);
  return rig_call(r, &c);
}

static void end_when_all_have_seen_it(rig_rank *r) {
  atomic_store(&r->stage, 9);
  for (int32_t i = 0; i < r->place.ranks; i++) rig_await_stage(i, 9);
}

/* ---- late ---- */

static void rank_2_does_not_come(rig_rank *r) {
  char who[TN_TCP_RANK_TEXT];
  WANT_OK(r, sum_eight(r));
  if (r->place.rank == 2) return rig_await_stage(0, 9), rig_await_stage(1, 9);
  tn_status status = sum_eight(r);
  atomic_store(&r->stage, 9);
  WANT_FAILURE(r, status, name_of(r, 2, who));
  WANT_SAID(
      r, ", whose process has called 1 collectives, did not come to collective 2, all_reduce, sum of 8 f32 "
         "('bucket 7'), within 3 s");
  WANT_FAILURE(r, tn_tcp_communicator.status(&r->env, r->communicator), who);
  WANT_FAILURE(r, sum_eight(r), who);
}

static void a_rank_that_does_not_come_is_named(void **state) {
  (void)state;
  rig_start(3, RIG_LATE_S);
  rig_threads(rank_2_does_not_come);
}

static void two_do_not_come(rig_rank *r) {
  if (r->place.rank >= 2) return rig_await_stage(0, 9), rig_await_stage(1, 9);
  tn_status status = sum_eight(r);
  atomic_store(&r->stage, 9);
  WANT_FAILURE(r, status, "rank 2 (");
  WANT_SAID(r, " collectives, and rank 3 (");
}

static void all_ranks_that_do_not_come_are_named(void **state) {
  (void)state;
  rig_start(4, RIG_LATE_S);
  rig_threads(two_do_not_come);
}

/* ---- killed and stopped processes ---- */

static void wait_to_be_killed(rig_rank *r) {
  char who[TN_TCP_RANK_TEXT];
  WANT_OK(r, sum_eight(r));
  atomic_store(&r->stage, 1);
  while (r->place.rank == 1) pause();
  WANT_FAILURE(r, sum_eight(r), name_of(r, 1, who));
  WANT_SAID(r, "is gone");
}

static void a_killed_process_is_named_at_once(void **state) {
  (void)state;
  rig_start(3, RIG_FOR_EVER_S);
  rig_fork(0, 2, wait_to_be_killed);
  close(rig[0].identity.listener);
  for (int32_t i = 0; i < 3; i++) rig_await_stage(i, 1);
  kill(rig[1].process, SIGKILL);
  for (int32_t i = 0; i < 3; i++) rig_join(i);
  rig_judge();
}

/* Nothing pends: the status tells. */
static void wait_idle(rig_rank *r) {
  WANT_OK(r, sum_eight(r));
  atomic_store(&r->stage, 1);
  while (r->place.rank == 1) pause();
  AWAIT(tn_tcp_communicator.status(&r->env, r->communicator) != TN_OK);
  WANT_FAILURE(r, tn_tcp_communicator.status(&r->env, r->communicator), "rank 1 (");
  WANT_SAID(r, "is gone");
}

static void a_process_that_is_killed_between_collectives_is_named(void **state) {
  (void)state;
  rig_start(3, RIG_FOR_EVER_S);
  rig_fork(0, 2, wait_idle);
  close(rig[0].identity.listener);
  for (int32_t i = 0; i < 3; i++) rig_await_stage(i, 1);
  kill(rig[1].process, SIGKILL);
  for (int32_t i = 0; i < 3; i++) rig_join(i);
  rig_judge();
}

/* Sums in a loop, so that the stop comes in the middle of one. */
static void sum_until_it_fails(rig_rank *r) {
  float *memory = calloc(LARGE, sizeof *memory);
  tn_collective c = rig_sum(memory, memory, LARGE);
  tn_status status = TN_OK;
  for (int i = 0; i < 100000 && status == TN_OK; i++) {
    status = rig_call(r, &c);
    atomic_store(&r->stage, i);
  }
  free(memory);
  if (r->place.rank == 2) return;
  WANT_FAILURE(r, status, "rank 2 (");
  WANT_SAID(r, " 3 s");
  WANT_SAID(r, ", whose process does not answer, ");
  WANT(r, strstr(r->text, "rank 0") == NULL && strstr(r->text, "rank 1") == NULL, "'%s' names others",
       r->text);
}

/* Stops it once one of the others has ended a collective that the third may still be in. */
static void stop_rank_2(int32_t ahead, int32_t behind) {
  for (int i = 0; i < 10000000 && atomic_load(&rig[ahead].stage) <= atomic_load(&rig[behind].stage); i++) {
  }
  kill(rig[2].process, SIGSTOP);
}

static void a_stopped_process_is_named(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    rig_start(3, RIG_LATE_S);
    rig_fork(0, 2, sum_until_it_fails);
    close(rig[0].identity.listener);
    rig_await_stage(2, 3);
    stop_rank_2(i % 2, 1 - i % 2);
    for (int32_t k = 0; k < 2; k++) rig_join(k);
    kill(rig[2].process, SIGKILL);
    rig_join(2);
    rig_judge();
  }
}

/* ---- calls that differ ---- */

static tn_collective differing[2]; /* that of rank 0, and that of the others */

static void call_differing(rig_rank *r) {
  tn_collective c = differing[r->place.rank > 0];
  static float from[3][64], to[3][64];
  c.from = from[r->place.rank];
  c.to = to[r->place.rank];
  tn_status status = rig_call(r, &c);
  end_when_all_have_seen_it(r);
  WANT_FAILURE(r, status, "collective 1 is ");
}

static void try_difference(tn_collective other, const char *one, const char *two) {
  differing[0] = (tn_collective){
      .kind = TN_ALL_REDUCE, .dtype = TN_F32, .count = 9, .name = "the first", .struct_size = sizeof other};
  differing[1] = other;
  rig_start(3, RIG_FOR_EVER_S);
  rig_threads(call_differing);
  for (int32_t i = 0; i < 3; i++)
    if (!strstr(rig[i].text, one) || !strstr(rig[i].text, two))
      fail_msg("rank %d: '%s' does not say '%s' and '%s'", (int)i, rig[i].text, one, two);
}

static void calls_that_differ_are_named_both(void **state) {
  (void)state;
  static const char own[] = "all_reduce, sum of 9 f32 ('the first')";
  tn_collective c = {.kind = TN_ALL_REDUCE, .dtype = TN_F32, .count = 12, .name = "the second"};
  try_difference(c, own, "all_reduce, sum of 12 f32 ('the second')");
  c.count = 9;
  c.dtype = TN_F64;
  try_difference(c, own, "all_reduce, sum of 9 f64 ('the second')");
  c.dtype = TN_F32;
  c.reduction = TN_REDUCTION_MAX;
  try_difference(c, own, "all_reduce, max of 9 f32 ('the second')");
  c.reduction = TN_REDUCTION_SUM;
  c.kind = TN_REDUCE_SCATTER;
  try_difference(c, own, "reduce_scatter, sum of 9 f32 ('the second')");
  c.kind = TN_BROADCAST;
  c.root = 1;
  try_difference(c, own, "broadcast from rank 1 of 9 f32 ('the second')");
  c.kind = TN_ALL_GATHER;
  c.name = NULL;
  try_difference(c, own, "all_gather of 9 f32 ('all_gather')");
}

/* ---- giving up and leaving ---- */

static void rank_2_gives_up(rig_rank *r) {
  if (r->place.rank == 2) {
    for (int32_t i = 0; i < 2; i++) rig_await_stage(i, 1);
    tn_tcp_communicator.abort(&r->env, r->communicator);
    WANT_FAILURE(r, sum_eight(r), "rank 2 has given up");
  } else {
    atomic_store(&r->stage, 1);
    WANT_FAILURE(r, sum_eight(r), "rank 2 has given up");
  }
  end_when_all_have_seen_it(r);
}

static void giving_up_ends_collectives_of_all_ranks(void **state) {
  (void)state;
  rig_start(3, RIG_FOR_EVER_S);
  rig_threads(rank_2_gives_up);
}

/* In the middle of large sums, from another rank's point of view. */
static void sum_until_rank_0_gives_up(rig_rank *r) {
  float *memory = calloc(LARGE, sizeof *memory);
  tn_collective c = rig_sum(memory, memory, LARGE);
  tn_status status = TN_OK;
  for (int i = 0; i < 100000 && status == TN_OK; i++) {
    if (r->place.rank == 0 && i == 5) {
      status = tn_tcp_communicator.run(&r->env, r->communicator, &c, NULL);
      rig_pause_ms(1); /* in which it may begin; the failure is the same before */
      tn_tcp_communicator.abort(&r->env, r->communicator);
      status = tn_tcp_communicator.await(&r->env, r->communicator, ++r->calls);
    } else {
      status = rig_call(r, &c);
    }
  }
  WANT_FAILURE(r, status, "rank 0 has given up");
  free(memory);
}

static void giving_up_in_the_middle_of_a_collective(void **state) {
  (void)state;
  rig_start(3, RIG_FOR_EVER_S);
  rig_processes(sum_until_rank_0_gives_up);
}

static void rank_1_leaves(rig_rank *r) {
  WANT_OK(r, sum_eight(r));
  if (r->place.rank == 1) {
    rig_close(r);
    atomic_store(&r->stage, 1);
    return;
  }
  rig_await_stage(1, 1);
  rig_pause_ms(20); /* in which it may be noticed; the status is the same before */
  WANT_OK(r, tn_tcp_communicator.status(&r->env, r->communicator)); /* leaving is no failure */
  atomic_store(&r->stage, 2);
  rig_await_stage(2 - r->place.rank, 2);
  WANT_FAILURE(r, sum_eight(r), "rank 1 (");
  WANT_SAID(r, "has closed its communicator");
}

static void a_rank_that_has_left_is_named_when_it_is_missed(void **state) {
  (void)state;
  rig_start(3, RIG_FOR_EVER_S);
  rig_threads(rank_1_leaves);
}

static void nothing_to_say(rig_rank *r) { WANT_OK(r, sum_eight(r)); }

static void communicators_are_opened_again(void **state) {
  (void)state;
  for (int i = 0; i < 10; i++) {
    rig_start(3, RIG_FOR_EVER_S);
    rig_threads(nothing_to_say);
  }
}

/* As of multiprocessing: a child of the application has the descriptors, and lives on. */
static void a_forked_child_does_not_keep_a_connection(void **state) {
  (void)state;
  int ends[2];
  char byte;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  tn_tcp_close(ends[0]);
  struct pollfd ended = {.fd = ends[1], .events = POLLIN};
  int ready = poll(&ended, 1, 1000 * AWAIT_S);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  assert_int_equal(ready, 1);
  assert_int_equal(read(ends[1], &byte, 1), 0);
  close(ends[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_rank_that_does_not_come_is_named),
      cmocka_unit_test(all_ranks_that_do_not_come_are_named),
      cmocka_unit_test(a_killed_process_is_named_at_once),
      cmocka_unit_test(a_process_that_is_killed_between_collectives_is_named),
      cmocka_unit_test(a_stopped_process_is_named),
      cmocka_unit_test(calls_that_differ_are_named_both),
      cmocka_unit_test(giving_up_ends_collectives_of_all_ranks),
      cmocka_unit_test(giving_up_in_the_middle_of_a_collective),
      cmocka_unit_test(a_rank_that_has_left_is_named_when_it_is_missed),
      cmocka_unit_test(communicators_are_opened_again),
      cmocka_unit_test(a_forked_child_does_not_keep_a_connection),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
