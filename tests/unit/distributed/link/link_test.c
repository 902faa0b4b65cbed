/* A link between processes: numbers, exchanges, decisions, failures, processes that end or stand still. */
#include "tests/unit/distributed/crew.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/distributed/link/link_state.h"
#include "core/distributed/wire/socket.h"

/* ---- numbers ---- */

static void check_numbers(member *m) {
  int32_t first = 0;
  member_open(m);
  EXPECT(tn_link_process(m->link) == m->place.process && tn_link_processes(m->link) == m->crew->n);
  for (int32_t i = 0; i < m->crew->n; i++) {
    const tn_member *other = tn_link_member(m->link, i);
    EXPECT(other->first_rank == first && other->ranks == m->crew->ranks[i]);
    EXPECT(i != m->place.process || other->pid == getpid());
    EXPECT(other->pid > 1 && other->host[0] != '\0');
    EXPECT_TEXT(other->address, "127.0.0.1");
    EXPECT(i != m->place.process || tn_link_first_rank(m->link) == first);
    for (int32_t r = 0; r < other->ranks; r++) EXPECT(tn_link_process_of(m->link, first + r) == i);
    first += other->ranks;
  }
  EXPECT(tn_link_ranks(m->link) == first);
  member_close(m, 1);
}

static const int32_t sizes_of_crews[] = {2, 3, 5};

static crew crew_of_several_ranks(int32_t n) {
  crew c = crew_new(n);
  for (int32_t i = 0; i < n; i++) c.ranks[i] = 1 + (i + n) % 3;
  return c;
}

static void ranks_are_numbered_in_the_order_of_processes(void **state) {
  (void)state;
  for (int32_t i = 0; i < 3; i++) {
    crew c = crew_of_several_ranks(sizes_of_crews[i]);
    crew_run(&c, check_numbers);
  }
}

/* ---- exchanges ---- */

static unsigned char byte_of(int32_t rank, size_t i, size_t bytes) {
  return (unsigned char)((size_t)rank * 31 + i * 7 + (i >> 11) + bytes);
}

static void check_gathering(member *m, size_t bytes) {
  int32_t first = tn_link_first_rank(m->link), own = m->crew->ranks[m->place.process],
          n = tn_link_ranks(m->link);
  unsigned char *mine = malloc((size_t)own * bytes + 1), *all = malloc((size_t)n * bytes + 1);
  EXPECT(mine != NULL && all != NULL);
  for (size_t i = 0; i < (size_t)own * bytes; i++)
    mine[i] = byte_of(first + (int32_t)(i / bytes), i % bytes, bytes);
  all[(size_t)n * bytes] = 0xEE;
  EXPECT(tn_link_all_gather(m->link, "a test", mine, bytes, all) == TN_OK);
  size_t wrong = 0;
  for (size_t i = 0; i < (size_t)n * bytes; i++)
    wrong += all[i] != byte_of((int32_t)(i / bytes), i % bytes, bytes);
  EXPECT(wrong == 0);
  EXPECT(all[(size_t)n * bytes] == 0xEE);
  free(mine);
  free(all);
}

static void check_broadcast(member *m, size_t bytes) {
  unsigned char *data = malloc(bytes + 1);
  EXPECT(data != NULL);
  for (size_t i = 0; i < bytes; i++) data[i] = m->place.process == 0 ? byte_of(3, i, bytes) : 0xAA;
  data[bytes] = 0xEE;
  EXPECT(tn_link_broadcast(m->link, "a test", data, bytes) == TN_OK);
  size_t wrong = 0;
  for (size_t i = 0; i < bytes; i++) wrong += data[i] != byte_of(3, i, bytes);
  EXPECT(wrong == 0);
  EXPECT(data[bytes] == 0xEE);
  free(data);
}

static void exchange_sizes(member *m) {
  static const size_t gathered[] = {0, 1, 13, 100000, 3000000},
                      sent[] = {0, 1, 13, 1 << 20, (1 << 20) + 1, 3000000, 20000000};
  size_t n_sent = sizeof sent / sizeof *sent - (m->crew->n > 2); /* the last takes long */
  member_open(m);
  for (size_t i = 0; i < sizeof gathered / sizeof *gathered; i++) check_gathering(m, gathered[i]);
  for (size_t i = 0; i < n_sent; i++) check_broadcast(m, sent[i]);
  check_gathering(m, 8);
  EXPECT(m->failures == 0);
  member_close(m, 1);
}

static void data_of_all_sizes_arrive(void **state) {
  (void)state;
  for (int32_t i = 0; i < 3; i++) {
    crew c = crew_of_several_ranks(sizes_of_crews[i]);
    crew_run(&c, exchange_sizes);
  }
}

enum { IN_A_ROW = 2000 };

static void exchange_in_a_row(member *m) {
  member_open(m);
  double began = tn_clock_s();
  for (int i = 0; i < IN_A_ROW; i++) check_gathering(m, (size_t)i % 9);
  crew_note(m->crew, 0, (int64_t)((tn_clock_s() - began) * 1e9 / IN_A_ROW));
  for (int i = 0; i < IN_A_ROW; i++) check_broadcast(m, (size_t)i % 9);
  member_close(m, 1);
}

static void many_exchanges_follow_each_other(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_start_all(&c, exchange_in_a_row);
  for (int32_t i = 0; i < 2; i++) crew_expect_end(&c, i);
  print_message("an exchange of 2 processes takes %.1f us\n", (double)c.notes[0] / 1e3);
  crew_end(&c);
}

/* The connection is not read while the limit of bytes that wait is reached. */
static void send_to_a_late_process(member *m) {
  member_open(m);
  if (m->place.process == 1) crew_await_note(m->crew, 0, 1);
  for (int i = 0; i < 50; i++) {
    check_broadcast(m, 200000);
    if (i == 20 && m->place.process == 0) crew_note(m->crew, 0, 1);
  }
  member_close(m, 1);
}

static void a_process_may_come_late_to_many_broadcasts(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_run(&c, send_to_a_late_process);
}

/* ---- decisions ---- */

enum { AHEAD = 100000 };

static void decide_far_ahead(member *m) {
  member_open(m);
  for (int32_t i = 0; i < AHEAD && m->place.process == 0; i++)
    EXPECT(tn_link_send_decision(m->link, i * 7 - 1000) == TN_OK);
  if (m->place.process == 0) crew_note(m->crew, 0, 1);
  crew_await_note(m->crew, 0, 1);
  for (int32_t i = 0; i < AHEAD && m->place.process != 0; i++) {
    int32_t decision = 0;
    EXPECT(tn_link_next_decision(m->link, &decision) == TN_OK);
    EXPECT(decision == i * 7 - 1000);
  }
  member_close(m, 1);
}

static void decisions_arrive_far_ahead(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, decide_far_ahead);
}

static void decide_and_exchange(member *m) {
  member_open(m);
  double began = tn_clock_s();
  for (int32_t i = 0; i < 300; i++) {
    int32_t decision = m->place.process == 0 ? i : -1;
    EXPECT((m->place.process == 0 ? tn_link_send_decision(m->link, decision)
                                  : tn_link_next_decision(m->link, &decision)) == TN_OK);
    EXPECT(decision == i);
    if (i % 3 == 0) check_gathering(m, 4);
    if (i % 7 == 0) check_broadcast(m, 4);
  }
  crew_note(m->crew, 0, (int64_t)((tn_clock_s() - began) * 1e9 / 300));
  member_close(m, 1);
}

static void decisions_mix_with_exchanges(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, decide_and_exchange);
}

/* ---- different calls ---- */

static void expect_failure(member *m, int32_t rank, int32_t status, const char *text) {
  pthread_mutex_lock(&m->lock);
  EXPECT_TEXT(m->failure.text, text);
  EXPECT(m->failure.rank == rank && m->failure.status == status);
  pthread_mutex_unlock(&m->lock);
}

static void gather_other_sizes(member *m) {
  char mine[16] = "", all[48];
  member_open(m);
  EXPECT(tn_link_all_gather(m->link, "names", mine, m->place.process == 1 ? 8 : 4, all) == TN_ECOMM);
  member_await_failures(m, 1);
  expect_failure(m, 1, TN_ECOMM, "process 1 on host ");
  expect_failure(
      m, 1, TN_ECOMM,
      " is at exchange 1 with 8 bytes, process 0 at exchange 1 ('names') with 4; all processes must "
      "have the same configuration");
  EXPECT(tn_link_all_gather(m->link, "names", mine, 4, all) == TN_ECOMM);
  EXPECT(tn_link_broadcast(m->link, "names", mine, 4) == TN_ECOMM);
  member_close(m, 0);
}

static void different_sizes_are_reported(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, gather_other_sizes);
}

static void leave_too_early(member *m) {
  char mine[4] = "", all[8];
  member_open(m);
  if (m->place.process == 0) {
    EXPECT(tn_link_all_gather(m->link, "names", mine, 4, all) == TN_ECOMM);
    member_await_failures(m, 1);
    expect_failure(m, 1, TN_ECOMM, "its process has left the run, but process 0 waits for it ('names')");
  }
  member_close(m, m->place.process == 1);
}

static void a_process_that_leaves_too_early_is_named(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_run(&c, leave_too_early);
}

static void *gather_once(void *context) {
  member *m = context;
  char mine[4] = "", all[64];
  EXPECT(tn_link_all_gather(m->link, "parts", mine, 4, all) == TN_OK);
  return NULL;
}

/* The last process waits for process 0, to which the parts of the others come one after the other: each when
 * the wait has begun, or has begun anew with the part before. */
static void gather_in_turns(member *m) {
  pthread_t thread;
  double since = 0, last = 0;
  int32_t own = m->place.process, last_process = m->crew->n - 1;
  const char *what = "";
  member_open(m);
  if (own > 0 && own < last_process) crew_await_note(m->crew, 0, own);
  EXPECT(pthread_create(&thread, NULL, gather_once, m) == 0);
  for (int32_t next = 1; own == last_process && next < last_process; next++) {
    AWAIT(tn_link_awaited(m->link, &since, &what) == 0 && since > last);
    last = since;
    crew_note(m->crew, 0, next);
  }
  EXPECT(pthread_join(thread, NULL) == 0);
  member_close(m, 1);
}

static void a_wait_begins_anew_with_each_part(void **state) {
  (void)state;
  crew c = crew_new(5);
  crew_run(&c, gather_in_turns);
}

/* ---- stops and failures ---- */

static void stop_by_the_last(member *m) {
  char mine[4] = "", all[12];
  member_open(m);
  if (m->place.process == m->crew->n - 1) {
    tn_link_stop(m->link);
    tn_link_stop(m->link);
  }
  if (m->place.process == 0) member_await_stop(m);
  EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_OK);
  EXPECT(m->stops == (m->place.process == 0));
  member_close(m, 1);
}

static void a_stop_arrives_at_process_0(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, stop_by_the_last);
}

static int32_t process_that_fails;

static void fail_one(member *m) {
  char mine[8] = "", all[64];
  member_open(m);
  if (m->place.process == process_that_fails) {
    tn_wire_failure failure = {.rank = tn_link_first_rank(m->link), .status = TN_EIO};
    snprintf(failure.text, sizeof failure.text, "disk %d is full", (int)m->place.process);
    tn_link_fail(m->link, &failure);
    EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_ECOMM);
    member_close(m, 0);
    EXPECT(m->failures == 0); /* it knows */
    return;
  }
  EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_ECOMM);
  member_await_failures(m, 1);
  char text[64];
  snprintf(text, sizeof text, "disk %d is full", (int)process_that_fails);
  expect_failure(m, 2 * process_that_fails, TN_EIO, text);
  member_close(m, 0);
  EXPECT(m->failures == 1);
}

static void a_failure_arrives_at_all(void **state) {
  (void)state;
  for (process_that_fails = 0; process_that_fails < 3; process_that_fails++) {
    crew c = crew_new(3);
    for (int32_t i = 0; i < 3; i++) c.ranks[i] = 2;
    crew_run(&c, fail_one);
  }
}

static int32_t failure_status(member *m) {
  pthread_mutex_lock(&m->lock);
  int32_t status = m->failure.status;
  pthread_mutex_unlock(&m->lock);
  return status;
}

/* Process 1 sees a consequence of what process 2 tells later. */
static void fail_by_consequence(member *m) {
  member_open(m);
  if (m->place.process == 1) {
    tn_wire_failure failure = {.rank = 1, .status = TN_ECOMM, .text = "a collective was aborted"};
    tn_link_fail(m->link, &failure);
    crew_note(m->crew, 0, 1);
  } else if (m->place.process == 2) {
    tn_wire_failure failure = {.rank = 2, .status = TN_ENONFINITE, .text = "the loss is not finite"};
    crew_await_note(m->crew, 0, 1);
    member_await_failures(m, 1);
    expect_failure(m, 1, TN_ECOMM, "a collective was aborted");
    tn_link_fail(m->link, &failure);
  }
  if (m->place.process != 2) {
    /* the listener may be told of both, or of the cause alone */
    AWAIT(failure_status(m) == TN_ENONFINITE);
    expect_failure(m, 2, TN_ENONFINITE, "the loss is not finite");
  }
  crew_note(m->crew, 1 + m->place.process, 1);
  for (int i = 0; i < 3; i++) crew_await_note(m->crew, 1 + i, 1);
  member_close(m, 0);
}

static void a_cause_replaces_its_consequence(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, fail_by_consequence);
}

/* A second listener, of another rank set, is told as well. */
static void listen_again(member *m) {
  member_open(m);
  if (m->place.process == 1) {
    tn_wire_failure failure = {.rank = 1, .status = TN_EIO, .text = "the disk is full"};
    tn_link_fail(m->link, &failure);
  } else {
    member_await_failures(m, 1);
    member other = {.crew = m->crew};
    const tn_link_listener none = {.context = &other};
    tn_link_listen(m->link, &none);
    tn_link_listen(m->link, NULL);
    member_listen(m);
    member_await_failures(m, 2);
    expect_failure(m, 1, TN_EIO, "the disk is full");
  }
  member_close(m, 0);
}

static void a_later_listener_is_told_too(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_run(&c, listen_again);
}

/* ---- processes that end without a word ---- */

static int32_t killed;
static int during;

static void wait_for_the_killed(member *m) {
  char mine[4] = "", all[64], text[96];
  member_open(m);
  EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_OK);
  crew_note(m->crew, m->place.process, 1);
  if (m->place.process == killed)
    for (;;) pause();
  if (during) EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_ECOMM);
  member_await_failures(m, 1);
  snprintf(text, sizeof text, "its process has ended without a word; see its own messages");
  expect_failure(m, killed, TN_ECOMM, text);
  EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_ECOMM);
  EXPECT(tn_link_awaited(m->link, &(double){0}, &(const char *){NULL}) == -1);
  member_close(m, 0);
}

static void a_killed_process_is_named(void **state) {
  (void)state;
  for (killed = 0; killed < 3; killed++)
    for (during = 0; during < 2; during++) {
      crew c = crew_new(3);
      crew_start_all(&c, wait_for_the_killed);
      for (int i = 0; i < 3; i++) crew_await_note(&c, i, 1);
      kill(c.pids[killed], SIGKILL);
      crew_expect_killed(&c, killed, SIGKILL);
      crew_end(&c);
    }
}

/* Process 0 has sent so much that this process, which is at no exchange, reads no more. */
static bool is_full(member *m) {
  pthread_mutex_lock(&m->link->lock);
  bool full = tn_peer_is_full(&m->link->peers[0]);
  pthread_mutex_unlock(&m->link->lock);
  return full;
}

/* The thread of the link does not spin. The pause gives it the time for that; the processor time is that of
 * this process alone, and a slow machine makes it no longer. */
static void expect_idle(void) {
  clock_t busy = clock();
  poll(NULL, 0, 300);
  EXPECT((double)(clock() - busy) / CLOCKS_PER_SEC < 0.15);
}

/* A process dies when the other one reads no more from it; the exchange that had begun is whole. */
static void die_after_sending(member *m) {
  static char data[20000000];
  member_open(m);
  if (m->place.process == 1) {
    AWAIT(is_full(m));
    crew_note(m->crew, 0, 1);
    AWAIT(tn_socket_has_ended(m->link->peers[0].socket));
    expect_idle();
    EXPECT(tn_link_broadcast(m->link, "a test", data, 8000000) == TN_OK);
    member_await_failures(m, 1);
    expect_failure(m, 0, TN_ECOMM, "its process has ended without a word");
    member_close(m, 0);
    return;
  }
  EXPECT(tn_link_broadcast(m->link, "a test", data, 8000000) == TN_OK);
  EXPECT(tn_link_broadcast(m->link, "a test", data, 1000000) == TN_OK);
  crew_await_note(m->crew, 0, 1);
  raise(SIGKILL);
}

static void what_a_killed_process_has_sent_is_taken(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_start_all(&c, die_after_sending);
  crew_expect_killed(&c, 0, SIGKILL);
  crew_end(&c);
}

/* ---- a process that stands still ---- */

static int32_t stopped;

static void wait_for_the_stopped(member *m) {
  char mine[4] = "", all[64];
  m->request.silence_s = 2;
  member_open(m);
  EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_OK);
  crew_note(m->crew, m->place.process, 1);
  if (m->place.process == stopped) {
    raise(SIGSTOP);
    member_await_failures(m, 1); /* by another process, not by the silence meanwhile */
    expect_failure(m, stopped, TN_ECOMM, "its process ");
    member_close(m, 0);
    return;
  }
  EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_ECOMM);
  member_await_failures(m, 1);
  expect_failure(m, stopped, TN_ECOMM,
                 "its process has not been heard of for 2 s: it is stopped, or its host or network is down");
  member_close(m, 0);
}

/* As wait_for_the_stopped, when the others have ended their work. */
static void leave_the_stopped(member *m) {
  m->request.silence_s = 2;
  member_open(m);
  crew_note(m->crew, m->place.process, 1);
  if (m->place.process == stopped) {
    raise(SIGSTOP);
    member_close(m, 0);
    return;
  }
  EXPECT(tn_link_leave(m->link) == TN_ECOMM);
  member_await_failures(m, 1);
  expect_failure(m, stopped, TN_ECOMM, "its process has not been heard of for 2 s");
  member_close(m, 1);
}

/* Signs of life alone keep a link, while the others stand still. */
static void stay_quiet(member *m) {
  char mine[4] = "", all[64];
  m->request.silence_s = 2;
  member_open(m);
  crew_note(m->crew, m->place.process, 1);
  crew_await_note(m->crew, 2, 1);
  EXPECT(tn_link_all_gather(m->link, "a test", mine, 4, all) == TN_OK);
  EXPECT(m->failures == 0);
  member_close(m, 1);
}

static void start_and_await_all(crew *c, void (*body)(member *m)) {
  crew_start_all(c, body);
  for (int32_t i = 0; i < c->n; i++) crew_await_note(c, i, 1);
}

/* All at a time, since they wait most of it. */
static void a_process_that_stands_still_is_named(void **state) {
  (void)state;
  crew c[4], quiet = crew_new(2);
  test_clock_hold();
  start_and_await_all(&quiet, stay_quiet);
  for (int32_t s = 0; s < 4; s++) {
    stopped = s % 2;
    c[s] = crew_new(3);
    start_and_await_all(&c[s], s < 2 ? wait_for_the_stopped : leave_the_stopped);
    test_await_stopped(c[s].pids[stopped]);
  }
  for (int32_t s = 0; s < 4; s++) {
    for (int32_t i = 0; i < 3; i++)
      if (i != s % 2) crew_pass_until_end(&c[s], i, 0.25);
    kill(c[s].pids[s % 2], SIGCONT);
    crew_end(&c[s]);
  }
  crew_note(&quiet, 2, 1);
  crew_end(&quiet);
  test_clock_run();
}

/* ---- long messages ---- */

static void a_message_that_is_cut_says_so(void **state) {
  (void)state;
  tn_wire_failure failure;
  char text[TN_FAILURE_TEXT + 100] = "";
  for (size_t i = 0; i + 2 < sizeof text; i += 2) memcpy(text + i, "ä", 2);
  tn_failure_set_text(&failure, text);
  size_t n = strlen(failure.text);
  assert_true(n >= TN_FAILURE_TEXT - 3 && n < TN_FAILURE_TEXT);
  assert_string_equal(failure.text + n - 5, "ä...");
  tn_failure_set_text(&failure, "short");
  assert_string_equal(failure.text, "short");
}

/* ---- lack of memory ---- */

static tn_allocator fed;
static int blocks_left;

static void *starve(void *context, void *block, size_t bytes) {
  (void)context;
  if (bytes > 0 && block == NULL && blocks_left-- <= 0) return NULL;
  return fed.realloc(fed.context, block, bytes);
}

/* Each block is refused once. A socket that is not open is no descriptor 0. */
static void open_without_memory(member *m) {
  tn_status status = TN_ENOMEM;
  int open_0 = fcntl(0, F_GETFD) >= 0 ? 0 : open("/dev/null", O_RDONLY);
  EXPECT(open_0 == 0);
  fed = m->record.allocator;
  m->record.allocator = (tn_allocator){m, starve};
  for (int blocks = 0; status != TN_OK; blocks++) {
    blocks_left = blocks;
    status = tn_link_open(&m->env, &m->request, &m->link);
    EXPECT(status == TN_OK || status == TN_ENOMEM);
    EXPECT(fcntl(0, F_GETFD) >= 0);
  }
  m->record.allocator = fed;
  tn_link_close(m->link, true);
}

static void a_lack_of_memory_closes_no_other_descriptor(void **state) {
  (void)state;
  crew c = crew_new(1);
  crew_run(&c, open_without_memory);
}

/* ---- leaving ---- */

static void leave_one_after_another(member *m) {
  member_open(m);
  crew_await_note(m->crew, 0, m->place.process);
  crew_note(m->crew, 0, m->place.process + 1);
  member_close(m, 1);
  EXPECT(m->failures == 0);
}

static void processes_leave_in_order(void **state) {
  (void)state;
  crew c = crew_new(4);
  crew_run(&c, leave_one_after_another);
}

/* Process 0 knows that another process leaves. */
static bool has_left(member *m, int32_t process) {
  pthread_mutex_lock(&m->link->lock);
  bool left = m->link->peers[process].left;
  pthread_mutex_unlock(&m->link->lock);
  return left;
}

/* Process 1 lives, and does not leave. */
static void stay_behind(member *m) {
  m->request.silence_s = 20;
  member_open(m);
  if (m->place.process == 1) {
    member_await_failures(m, 1);
    member_close(m, 0);
    return;
  }
  if (m->place.process == 0) {
    AWAIT(has_left(m, 2));
    crew_note(m->crew, 0, 1);
  }
  EXPECT(tn_link_leave(m->link) == TN_ECOMM);
  member_await_failures(m, 1);
  expect_failure(m, 1, TN_ECOMM,
                 "its process does not leave the run within 1 s ([distributed] timeout): it hangs behind its "
                 "last step");
  member_close(m, 1);
}

static void a_process_that_does_not_leave_is_named(void **state) {
  (void)state;
  crew c = crew_new(3);
  c.timeout_s = 1;
  test_clock_hold();
  crew_start_all(&c, stay_behind);
  crew_await_note(&c, 0, 1);
  crew_pass_until_end(&c, 0, 0.25);
  crew_end(&c);
  test_clock_run();
}

enum { MORE_THAN_SOCKETS_TAKE = 600000 };

/* Process 1 leaves and stands still: no frame arrives there any more, as with a host that is down. */
static void leave_before_the_stopped(member *m) {
  m->request.silence_s = 2;
  member_open(m);
  if (m->place.process == 1) tn_link_leave(m->link);
  AWAIT(has_left(m, 1));
  crew_stop(m->crew, 1);
  for (int i = 0; i < MORE_THAN_SOCKETS_TAKE; i++) EXPECT(tn_link_send_decision(m->link, i) == TN_OK);
  crew_note(m->crew, 0, 1);
  EXPECT(tn_link_leave(m->link) == TN_OK);
  EXPECT(m->failures == 0);
  member_close(m, 0);
}

static void a_process_that_has_left_does_not_hold_process_0(void **state) {
  (void)state;
  crew c = crew_new(2);
  test_clock_hold();
  crew_start(&c, 1, leave_before_the_stopped);
  crew_start(&c, 0, leave_before_the_stopped);
  crew_await_note(&c, 0, 1);
  crew_pass_until_end(&c, 0, 0.5);
  kill(c.pids[1], SIGKILL);
  crew_expect_killed(&c, 1, SIGKILL);
  crew_end(&c);
  test_clock_run();
}

static void train_several_times(member *m) {
  for (int i = 0; i < 5; i++) {
    member_open(m);
    check_gathering(m, 8);
    member_close(m, 1);
    EXPECT(m->failures == 0);
  }
}

static void a_process_joins_again_after_leaving(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, train_several_times);
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
  tn_peer peer;
  tn_peer_init(&peer, ends[0], NULL);
  tn_peer_close(NULL, &peer);
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
      cmocka_unit_test(ranks_are_numbered_in_the_order_of_processes),
      cmocka_unit_test(data_of_all_sizes_arrive),
      cmocka_unit_test(many_exchanges_follow_each_other),
      cmocka_unit_test(a_process_may_come_late_to_many_broadcasts),
      cmocka_unit_test(decisions_arrive_far_ahead),
      cmocka_unit_test(decisions_mix_with_exchanges),
      cmocka_unit_test(different_sizes_are_reported),
      cmocka_unit_test(a_process_that_leaves_too_early_is_named),
      cmocka_unit_test(a_wait_begins_anew_with_each_part),
      cmocka_unit_test(a_stop_arrives_at_process_0),
      cmocka_unit_test(a_failure_arrives_at_all),
      cmocka_unit_test(a_cause_replaces_its_consequence),
      cmocka_unit_test(a_later_listener_is_told_too),
      cmocka_unit_test(a_killed_process_is_named),
      cmocka_unit_test(what_a_killed_process_has_sent_is_taken),
      cmocka_unit_test(a_process_that_stands_still_is_named),
      cmocka_unit_test(a_message_that_is_cut_says_so),
      cmocka_unit_test(a_lack_of_memory_closes_no_other_descriptor),
      cmocka_unit_test(processes_leave_in_order),
      cmocka_unit_test(a_process_that_does_not_leave_is_named),
      cmocka_unit_test(a_process_that_has_left_does_not_hold_process_0),
      cmocka_unit_test(a_process_joins_again_after_leaving),
      cmocka_unit_test(a_forked_child_does_not_keep_a_connection),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
