/* Processes do not find each other: some never come, end, are stopped, or are asked to stop. */
#include "tests/unit/distributed/crew.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/distributed/wire/socket.h"

/* ---- the resolver ---- */

static atomic_int look_ups;
static int resolver_error;
static double resolver_s;          /* what a look-up takes, of the clock that the test holds */
static atomic_int *resolver_stops; /* is set in a look-up, which then never ends; NULL: none is */

int getaddrinfo(const char *name, const char *service, const struct addrinfo *want, struct addrinfo **list) {
  union {
    void *symbol;
    int (*call)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
  } real = {.symbol = dlsym(RTLD_NEXT, "getaddrinfo")};
  atomic_fetch_add(&look_ups, 1);
  if (resolver_stops != NULL) {
    atomic_store(resolver_stops, 1);
    for (;;) pause();
  }
  if (resolver_s > 0) test_clock_pass(resolver_s);
  return resolver_error != 0 ? resolver_error : real.call(name, service, want, list);
}

/* Processes 2 and 4 of 5 never come. */
static void miss_some(member *m) {
  if (m->place.process == 2 || m->place.process == 4) return;
  if (m->place.process == 0) {
    member_open_fails(m, TN_ECOMM, "of 5 processes, 2, 4 did not come to process 0 on host ");
    EXPECT_TEXT(tn_error_text(&m->env), " within 1 s ([distributed] timeout)");
    return;
  }
  m->request.timeout_s = CREW_LIMIT_S;
  member_open_fails(m, TN_ECOMM, "process 0: of 5 processes, 2, 4 did not come to process 0");
}

static void missing_processes_are_listed(void **state) {
  (void)state;
  crew c = crew_new(5);
  c.timeout_s = 1;
  test_clock_hold();
  crew_start_all(&c, miss_some);
  for (int32_t i = 1; i < 5; i += 2) crew_await_taken(&c, i);
  crew_pass_until_end(&c, 0, 1.5);
  crew_end(&c);
  test_clock_run();
}

static void miss_many(member *m) {
  m->place.processes = m->place.locals = 1000;
  m->request.timeout_s = 0.2;
  member_open_fails(
      m, TN_ECOMM,
      "of 1000 processes, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 and 983 more did not "
      "come to process 0");
}

static void many_missing_processes_are_counted(void **state) {
  (void)state;
  crew c = crew_new(1);
  crew_run(&c, miss_many);
}

/* ---- process 0 is stopped while it waits ---- */

/* The time passes while process 0 is stopped, and has gone on. */
static void stop_process_0_for(crew *c, double seconds) {
  crew_await_looks(c);
  crew_stop(c, 0);
  test_clock_pass(seconds);
  kill(c->pids[0], SIGCONT);
}

/* Process 1 never comes. */
static void wait_stopped(member *m) {
  member_open_fails(m, TN_ECOMM, "process 0 (id ");
  EXPECT_TEXT(tn_error_text(&m->env), " was stopped for 2 s while the processes came together, ");
}

static void a_stopped_process_names_itself(void **state) {
  (void)state;
  crew c = crew_new(2);
  c.timeout_s = 1.5;
  test_clock_hold();
  crew_start(&c, 0, wait_stopped);
  stop_process_0_for(&c, 2.25);
  crew_end(&c);
  test_clock_run();
}

static void join_and_leave(member *m) {
  member_open(m);
  member_close(m, 1);
}

/* Process 1 comes 4 s after process 0, which waits for 3.5 s and was stopped for 2.5 s of these. */
static void the_time_of_a_stop_does_not_count(void **state) {
  (void)state;
  crew c = crew_new(2);
  c.timeout_s = 3.5;
  test_clock_hold();
  crew_start(&c, 0, join_and_leave);
  stop_process_0_for(&c, 2.5);
  crew_await_looks(&c);
  test_clock_pass(1.5);
  crew_await_looks(&c);
  crew_start(&c, 1, join_and_leave);
  crew_end(&c);
  test_clock_run();
}

static void miss_process_0(member *m) {
  if (m->place.process == 0) return;
  member_open_fails(m, TN_ECOMM, "process 0 was not found on host 127.0.0.1, ports ");
  EXPECT_TEXT(tn_error_text(&m->env),
              ", within 0.5 s ([distributed] timeout): Connection refused; if it runs on another host, set "
              "MASTER_ADDR");
}

static void a_missing_process_0_is_reported(void **state) {
  (void)state;
  crew c = crew_new(2);
  c.timeout_s = 0.5;
  crew_run(&c, miss_process_0);
}

static void miss_the_answer(member *m) {
  if (m->place.process == 0) return;
  member_open_fails(m, TN_ECOMM, "process 0 was not found on host 127.0.0.1, ports ");
  EXPECT_TEXT(tn_error_text(&m->env), "one of them listens and does not answer: it is stopped, or another");
}

/* As when it is stopped before it takes the others: the system accepts their connections. */
static void a_process_0_that_does_not_answer_is_reported(void **state) {
  (void)state;
  crew c = crew_new(2);
  int listens = crew_listen_on(c.port);
  assert_true(listens >= 0);
  c.timeout_s = 0.5;
  crew_run(&c, miss_the_answer);
  close(listens);
}

static void miss_the_host(member *m) {
  if (m->place.process == 0) return;
  snprintf(m->place.master, sizeof m->place.master, "no%099d",
           0); /* too long for a name: no lookup is made */
  member_open_fails(m, TN_ECOMM, "process 0 was not found on host no0000");
}

static void an_unknown_host_is_reported(void **state) {
  (void)state;
  crew c = crew_new(2);
  c.timeout_s = 0.5;
  crew_run(&c, miss_the_host);
}

static void look_up_often(member *m) {
  if (m->place.process == 0) return;
  atomic_store(&look_ups, 0);
  member_open_fails(m, TN_ECOMM, ": Connection refused; if it runs on another host");
  EXPECT(atomic_load(&look_ups) >= 2 && atomic_load(&look_ups) <= 4); /* once a second, for 2.5 s */
}

static void look_up_slowly(member *m) {
  if (m->place.process == 0) return;
  resolver_s = 17; /* longer than a try, which a pause of the process is told from */
  member_open_fails(m, TN_ECOMM, "process 0 was not found on host 127.0.0.1, ports ");
}

static void look_up_in_vain(member *m) {
  if (m->place.process == 0) return;
  resolver_s = 17;
  resolver_error = EAI_AGAIN;
  member_open_fails(m, TN_ECOMM, "process 0 was not found on host 127.0.0.1, ports ");
  EXPECT_TEXT(tn_error_text(&m->env), gai_strerror(EAI_AGAIN));
}

static void a_slow_resolver_is_no_stop(void **state) {
  (void)state;
  void (*const bodies[])(member *) = {look_up_often, look_up_slowly, look_up_in_vain};
  test_clock_hold();
  for (int i = 0; i < 3; i++) {
    crew c = crew_new(2);
    c.timeout_s = i == 0 ? 2.5 : 0.5;
    crew_start_all(&c, bodies[i]);
    if (i == 0) crew_pass_until_end(&c, 1, 0.1);
    crew_end(&c);
  }
  test_clock_run();
}

static void stop_in_a_look_up(member *m) {
  static atomic_int stop;
  if (m->place.process == 0) return;
  resolver_stops = &stop;
  m->request.stop = &stop;
  member_open_fails(m, TN_ESTOPPED, "stopped");
}

/* The resolver goes on, on a thread that is left. */
static void a_stop_does_not_wait_for_the_resolver(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_start(&c, 1, stop_in_a_look_up);
  crew_expect_end(&c, 1);
}

/* The sender of a connection to a port of this host may get that port. */
static void connect_until_it_is_its_own_peer(void **state) {
  (void)state;
  crew c = crew_new(2);
  const char *reason;
  tn_socket_host *host = tn_socket_host_find("127.0.0.1", &reason);
  assert_non_null(host);
  for (int i = 0; i < 60000; i++) {
    struct sockaddr_in own = {.sin_port = 0}, peer = {.sin_port = 1};
    socklen_t bytes = sizeof own, peer_bytes = sizeof peer;
    int s = tn_socket_connect(host, 40001 + c.port % 2000, tn_clock_s() + CREW_LIMIT_S, NULL, &reason);
    if (s < 0) continue;
    getsockname(s, (struct sockaddr *)&own, &bytes);
    getpeername(s, (struct sockaddr *)&peer, &peer_bytes);
    close(s);
    assert_true(own.sin_port != peer.sin_port); /* another program listens there */
  }
  tn_socket_host_free(host);
  crew_end(&c);
}

/* Process 0 ends within its last words. */
static void lose_last_words(member *m) {
  if (m->place.process == 1) {
    crew_await_note(m->crew, 0, 1);
    member_open_fails(m, TN_ECOMM,
                      "process 0 on host 127.0.0.1 has ended while the others came; see its own messages");
    return;
  }
  unsigned char key[TN_KEY_BYTES], bytes[TN_SEALED_HEAD];
  const tn_frame_head beat = {.kind = TN_FRAME_BEAT}, failure = {.kind = TN_FRAME_FAILURE, .bytes = 100};
  int listens = crew_listen_on(m->crew->port);
  EXPECT(listens >= 0);
  crew_note(m->crew, 0, 1);
  int s = accept(listens, NULL, NULL);
  EXPECT(s >= 0 && crew_answer(s, m->crew->token, key));
  tn_seals seals = tn_seals_new(key, true);
  EXPECT(tn_sealed_send(s, &seals.out, &beat, NULL, tn_clock_s() + CREW_LIMIT_S));
  tn_frame_head_write(&failure, bytes);
  tn_seal_make(&seals.out, bytes, TN_FRAME_HEAD, bytes + TN_FRAME_HEAD);
  crew_send(s, bytes, sizeof bytes);
  close(s);
  close(listens);
}

static atomic_int stop_flag;

static void set_stop_flag(int signal) {
  (void)signal;
  atomic_store(&stop_flag, 1);
}

/* Process 0 sends half of a frame, and then the signal. */
static void stop_in_half_of_a_frame(member *m) {
  unsigned char key[TN_KEY_BYTES], byte;
  const tn_frame_head beat = {.kind = TN_FRAME_BEAT};
  if (m->place.process == 1) {
    signal(SIGUSR1, set_stop_flag);
    m->request.stop = &stop_flag;
    crew_note(m->crew, 1, getpid());
    crew_await_note(m->crew, 0, 1);
    member_open_fails(m, TN_ESTOPPED, "stopped");
    return;
  }
  int listens = crew_listen_on(m->crew->port);
  EXPECT(listens >= 0);
  crew_note(m->crew, 0, 1);
  int s = accept(listens, NULL, NULL);
  EXPECT(s >= 0 && crew_answer(s, m->crew->token, key));
  tn_seals seals = tn_seals_new(key, true);
  EXPECT(tn_sealed_send(s, &seals.out, &beat, NULL, tn_clock_s() + CREW_LIMIT_S));
  crew_send(s, &beat, TN_FRAME_HEAD / 2);
  EXPECT(kill((pid_t)atomic_load(&m->crew->notes[1]), SIGUSR1) == 0);
  while (recv(s, &byte, 1, MSG_WAITALL) == 1) continue; /* until it has ended */
  close(s);
  close(listens);
}

static void a_stop_does_not_wait_for_the_rest_of_a_frame(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_run(&c, stop_in_half_of_a_frame);
}

static void half_of_a_failure_is_none(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_run(&c, lose_last_words);
}

/* Process 0 is killed while it waits. */
static void lose_process_0(member *m) {
  if (m->place.process == 0) {
    m->place.processes = m->place.locals = 3;
    tn_link_open(&m->env, &m->request, &m->link);
  }
  if (m->place.process == 1)
    member_open_fails(m, TN_ECOMM,
                      "process 0 on host 127.0.0.1 has ended while the others came; see its own messages");
}

static void an_end_of_process_0_is_reported(void **state) {
  (void)state;
  crew c = crew_new(3);
  c.pids[2] = 0;
  crew_start(&c, 0, lose_process_0);
  crew_start(&c, 1, lose_process_0);
  crew_await_taken(&c, 1);
  kill(c.pids[0], SIGKILL);
  crew_expect_killed(&c, 0, SIGKILL);
  crew_end(&c);
}

static void halt_process_0(member *m) {
  if (m->place.process == 1) m->request.timeout_s = 1;
  if (m->place.process == 0) {
    m->place.processes = m->place.locals = 3;
    tn_link_open(&m->env, &m->request, &m->link);
  }
  if (m->place.process == 1)
    member_open_fails(m, TN_ECOMM,
                      "process 0 on host 127.0.0.1 has not been heard of for 1 s while the processes came "
                      "together: it is stopped, or its host or network is down");
}

static void a_stop_of_process_0_is_reported(void **state) {
  (void)state;
  crew c = crew_new(3);
  c.pids[2] = 0;
  test_clock_hold();
  crew_start(&c, 0, halt_process_0);
  crew_start(&c, 1, halt_process_0);
  crew_await_taken(&c, 1);
  crew_stop(&c, 0);
  crew_pass_until_end(&c, 1, 1);
  kill(c.pids[0], SIGKILL);
  crew_expect_killed(&c, 0, SIGKILL);
  crew_end(&c);
  test_clock_run();
}

/* ---- signs of life ---- */

static void come_after_the_silence(member *m) {
  m->request.silence_s = 1.5;
  join_and_leave(m);
}

/* The third comes after twice the silence of one that is stopped. */
static void processes_that_wait_give_signs_of_life(void **state) {
  (void)state;
  crew c = crew_new(3);
  test_clock_hold();
  for (int32_t i = 0; i < 2; i++) crew_start(&c, i, come_after_the_silence);
  crew_await_taken(&c, 1);
  for (int i = 0; i < 12; i++) test_clock_step(0.25);
  crew_start(&c, 2, come_after_the_silence);
  crew_end(&c);
  test_clock_run();
}

/* Process 1 is stopped when it has come; process 2 never comes. */
static void wait_for_two(member *m) {
  m->request.silence_s = 1.5;
  if (m->place.process == 1) {
    tn_link_open(&m->env, &m->request, &m->link);
    return;
  }
  m->place.processes = m->place.locals = 3;
  member_open_fails(m, TN_ECOMM, "process 1 on host ");
  EXPECT_TEXT(tn_error_text(&m->env),
              ") has not been heard of for 1.5 s while the others came: it is stopped");
}

static void a_stop_of_a_process_that_has_come_is_reported(void **state) {
  (void)state;
  crew c = crew_new(3);
  test_clock_hold();
  crew_start(&c, 0, wait_for_two);
  crew_start(&c, 1, wait_for_two);
  crew_await_taken(&c, 1);
  crew_stop(&c, 1);
  crew_pass_until_end(&c, 0, 0.75);
  kill(c.pids[1], SIGKILL);
  crew_expect_killed(&c, 1, SIGKILL);
  crew_end(&c);
  test_clock_run();
}

/* ---- stops ---- */

/* Process 2 never comes: 0 and 1 wait for it, 3 looks for a process 0 elsewhere. */
static void stop_while_joining(member *m) {
  if (m->place.process == 2) return;
  signal(SIGUSR1, set_stop_flag);
  m->request.stop = &stop_flag;
  if (m->place.process == 3) m->place.port = 1;
  crew_note(m->crew, m->place.process, 1);
  member_open_fails(m, TN_ESTOPPED, "stopped");
}

static void a_request_to_stop_ends_the_wait(void **state) {
  (void)state;
  static const int32_t order[] = {1, 3, 0};
  crew c = crew_new(4);
  crew_start_all(&c, stop_while_joining);
  for (int i = 0; i < 3; i++) crew_await_note(&c, order[i], 1); /* each takes signals */
  crew_await_taken(&c, 1);
  for (int i = 0; i < 3; i++) {
    kill(c.pids[order[i]], SIGUSR1);
    crew_expect_end(&c, order[i]);
  }
  crew_end(&c);
}

/* Process 0 tells those that have come. */
static void stop_process_0(member *m) {
  if (m->place.process == 2) return;
  if (m->place.process == 1) {
    member_open_fails(m, TN_ESTOPPED, "process 0: stopped");
    return;
  }
  signal(SIGUSR1, set_stop_flag);
  m->request.stop = &stop_flag;
  crew_note(m->crew, 0, 1);
  member_open_fails(m, TN_ESTOPPED, "stopped");
}

static void a_stop_of_process_0_stops_the_others(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_start_all(&c, stop_process_0);
  crew_await_note(&c, 0, 1);
  crew_await_taken(&c, 1);
  kill(c.pids[0], SIGUSR1);
  crew_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(missing_processes_are_listed),
      cmocka_unit_test(many_missing_processes_are_counted),
      cmocka_unit_test(a_stopped_process_names_itself),
      cmocka_unit_test(the_time_of_a_stop_does_not_count),
      cmocka_unit_test(a_missing_process_0_is_reported),
      cmocka_unit_test(a_process_0_that_does_not_answer_is_reported),
      cmocka_unit_test(an_unknown_host_is_reported),
      cmocka_unit_test(an_end_of_process_0_is_reported),
      cmocka_unit_test(a_stop_of_process_0_is_reported),
      cmocka_unit_test(a_slow_resolver_is_no_stop),
      cmocka_unit_test(a_stop_does_not_wait_for_the_resolver),
      cmocka_unit_test(a_stop_does_not_wait_for_the_rest_of_a_frame),
      cmocka_unit_test(connect_until_it_is_its_own_peer),
      cmocka_unit_test(half_of_a_failure_is_none),
      cmocka_unit_test(processes_that_wait_give_signs_of_life),
      cmocka_unit_test(a_stop_of_a_process_that_has_come_is_reported),
      cmocka_unit_test(a_request_to_stop_ends_the_wait),
      cmocka_unit_test(a_stop_of_process_0_stops_the_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
