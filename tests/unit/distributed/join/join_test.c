/* Processes find each other among strangers, and report mistakes. */
#include "tests/unit/distributed/crew.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/distributed/wire/socket.h"

/* ---- all come ---- */

static void join_and_leave(member *m) {
  member_open(m);
  member_close(m, 1);
}

static void join_measured(member *m) {
  double began = tn_clock_s();
  member_open(m);
  if (m->place.process == 0) crew_note(m->crew, 0, (int64_t)((tn_clock_s() - began) * 1e6));
  member_close(m, 1);
}

static void eight_processes_join(void **state) {
  (void)state;
  crew c = crew_new(8);
  crew_start_all(&c, join_measured);
  for (int32_t i = 0; i < c.n; i++) crew_expect_end(&c, i);
  print_message("8 processes have joined after %.1f ms\n", (double)c.notes[0] / 1e3);
  crew_end(&c);
}

/* The others have looked for process 0 several times. */
static void process_0_may_start_later(void **state) {
  (void)state;
  crew c = crew_new(3);
  test_clock_hold();
  for (int32_t i = 1; i < 3; i++) crew_start(&c, i, join_and_leave);
  for (int i = 0; i < 20; i++) test_clock_step(0.1);
  crew_start(&c, 0, join_and_leave);
  crew_end(&c);
  test_clock_run();
}

/* Processes that were told the name of the host instead of the loopback device. */
static void join_by_name(member *m) {
  snprintf(m->place.master, sizeof m->place.master, "localhost");
  m->place.locals = 1; /* as on several hosts: process 0 listens on all addresses */
  join_and_leave(m);
}

static void a_host_may_have_a_name(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, join_by_name);
}

/* ---- strangers ---- */

/* Numbers out of their range, from a process that knows the token. */
static void send_wrong_numbers(member *m) {
  for (size_t at = 0; at < 3; at++) {
    unsigned char key[TN_KEY_BYTES], bytes[CREW_HELLO];
    int s = crew_connect(m->crew);
    EXPECT(crew_greet(s, m->crew->token, key));
    crew_hello(m, key, 1, bytes);
    memset(bytes + 4 * at, 0xFF, 4);
    tn_proof_make(key, TN_JOIN_CALLER, bytes, TN_HELLO_BYTES, bytes + TN_HELLO_BYTES);
    crew_send(s, bytes, sizeof bytes);
    crew_expect_closed(s);
  }
}

static void send_garbage(member *m) {
  unsigned char bytes[TN_GREETING_BYTES], key[TN_KEY_BYTES], hello[CREW_HELLO];
  memset(bytes, 'G', sizeof bytes);
  int s = crew_connect(m->crew);
  crew_send(s, bytes, sizeof bytes);
  crew_expect_closed(s);
  /* another token */
  s = crew_connect(m->crew);
  EXPECT(!crew_greet(s, "another token", key));
  crew_hello(m, key, 1, hello);
  crew_send(s, hello, sizeof hello);
  crew_expect_closed(s);
  /* the hello of another connection */
  s = crew_connect(m->crew);
  EXPECT(crew_greet(s, m->crew->token, key));
  crew_hello(m, key, 1, hello);
  close(s);
  s = crew_connect(m->crew);
  EXPECT(crew_greet(s, m->crew->token, key));
  crew_send(s, hello, sizeof hello);
  crew_expect_closed(s);
  send_wrong_numbers(m);
}

static void slow_and_silent(member *m) {
  const unsigned char half[TN_GREETING_BYTES / 2] = "THLO";
  unsigned char key[TN_KEY_BYTES];
  crew_connect(m->crew);
  crew_send(crew_connect(m->crew), half, sizeof half);
  EXPECT(crew_greet(crew_connect(m->crew), m->crew->token, key));
  crew_note(m->crew, 0, 1);
}

/* Process 2 of three comes only after the strangers. */
static void join_among_strangers(member *m) {
  if (m->place.process == 2) {
    send_garbage(m);
    slow_and_silent(m);
    int hung_up = crew_connect(m->crew);
    close(hung_up);
    EXPECT(m->crew->n == 3);
    m->place.process = 1;
    join_and_leave(m);
    _exit(0); /* the strangers' sockets stay open until here */
  }
  if (m->place.process == 1) m->place.process = 2;
  join_and_leave(m);
}

/* The processes join although the time of a guest that is silent never ends. */
static void strangers_do_not_hinder(void **state) {
  (void)state;
  crew c = crew_new(3);
  test_clock_hold();
  crew_run(&c, join_among_strangers);
  test_clock_run();
}

/* One byte at a time, and never a whole greeting. */
static void send_slowly(member *m) {
  if (m->place.process != 1) {
    join_and_leave(m);
    return;
  }
  int s = crew_connect(m->crew);
  for (size_t i = 0; i < 3; i++) crew_send(s, "THL" + i, 1);
  join_and_leave(m); /* meanwhile the slow one waits */
  crew_expect_closed(s);
}

static void a_slow_hello_does_not_hinder(void **state) {
  (void)state;
  crew c = crew_new(2);
  test_clock_hold(); /* the time for a greeting does not end */
  crew_run(&c, send_slowly);
  test_clock_run();
}

enum { FLOOD = 1000 };

static void flood(member *m) {
  static int sockets[FLOOD];
  const struct rlimit many = {FLOOD + 100, FLOOD + 100};
  setrlimit(RLIMIT_NOFILE, &many);
  int first = crew_connect(m->crew);
  struct sockaddr_in address;
  socklen_t bytes = sizeof address;
  EXPECT(getpeername(first, (struct sockaddr *)&address, &bytes) == 0);
  for (int i = 0; i < FLOOD; i++) {
    sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    EXPECT(sockets[i] >= 0);
    connect(sockets[i], (const struct sockaddr *)&address, bytes);
  }
  crew_note(m->crew, 0, 1);
  crew_await_note(m->crew, 1, 2); /* both others have joined */
  for (int i = 0; i < FLOOD; i++) close(sockets[i]);
  close(first);
}

/* Processes 0 and 1 are a crew of two; process 2 is a stranger. */
static void join_in_a_flood(member *m) {
  if (m->place.process == 2) {
    flood(m);
    return;
  }
  m->place.processes = m->place.locals = 2;
  if (m->place.process == 1) crew_await_note(m->crew, 0, 1);
  member_open(m);
  atomic_fetch_add(&m->crew->notes[1], 1);
  member_close(m, 1);
}

static void many_strangers_do_not_hinder(void **state) {
  (void)state;
  crew c = crew_new(3);
  double began = tn_clock_s();
  crew_run(&c, join_in_a_flood);
  print_message("joined among %d strangers in %.0f ms\n", FLOOD, (tn_clock_s() - began) * 1e3);
}

/* Other programs have the first ports: one accepts nothing, one closes, one answers. */
static void answer_others(int closes, int answers, const crew *c) {
  static const char text[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
  while (atomic_load(&c->notes[0]) < 2) {
    struct pollfd polls[] = {{.fd = closes, .events = POLLIN}, {.fd = answers, .events = POLLIN}};
    poll(polls, 2, 20);
    if (polls[0].revents) close(accept(closes, NULL, NULL));
    if (!polls[1].revents) continue;
    int s = accept(answers, NULL, NULL);
    (void)!write(s, text, sizeof text - 1);
    close(s);
  }
}

static void join_beside_programs(member *m) {
  if (m->place.process == 2) {
    int closes = crew_listen_on(m->crew->port), answers = crew_listen_on(m->crew->port + 1);
    crew_note(m->crew, 1, 1);
    answer_others(closes, answers, m->crew);
    close(closes);
    close(answers);
    return;
  }
  m->place.processes = m->place.locals = 2;
  crew_await_note(m->crew, 1, 1);
  member_open(m);
  atomic_fetch_add(&m->crew->notes[0], 1);
  member_close(m, 1);
}

static void other_programs_may_have_the_first_ports(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, join_beside_programs);
}

/* ---- mistakes ---- */

/* Process 2 calls itself 1, as process 1 does; then it is 2. */
static void come_twice(member *m) {
  if (m->place.process == 1) {
    member_open(m);
    member_close(m, 1);
    return;
  }
  if (m->place.process == 2) {
    crew_await_taken(m->crew, 1);
    m->place.process = 1;
    member_open_fails(m, TN_ECOMM, "process 0 refuses process 1 on host ");
    EXPECT_TEXT(tn_error_text(&m->env), ": there is a process 1 already, on host ");
    EXPECT_TEXT(tn_error_text(&m->env), " (process id ");
    m->place.process = 0;
    m->place.master[0] = '\0';
    m->place.process = 2;
    snprintf(m->place.master, sizeof m->place.master, "127.0.0.1");
  }
  join_and_leave(m);
}

static void a_number_that_is_taken_is_refused(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, come_twice);
}

typedef struct first_connection {
  crew *crew;
  int socket;
  tn_seals seals;
} first_connection;

/* On a thread: process 0 closes the connection behind signs of life, since another one has come. */
static void *await_replaced(void *context) {
  first_connection *f = context;
  unsigned char body[TN_JOIN_BODY + TN_TAG_BYTES];
  tn_frame_head head;
  while (crew_frame(f->socket, &f->seals.in, &head, body)) EXPECT(head.kind == TN_FRAME_BEAT);
  EXPECT(tn_socket_has_ended(f->socket));
  close(f->socket);
  crew_note(f->crew, 0, 1);
  return NULL;
}

/* A process that has given up its connection, since the answer came late, comes again. The last one comes
 * behind that: process 0 listens as long as one is missing. */
static void come_again(member *m) {
  if (m->place.process == 1) {
    unsigned char bytes[CREW_HELLO], key[TN_KEY_BYTES], body[TN_JOIN_BODY + TN_TAG_BYTES];
    tn_frame_head head;
    pthread_t watch;
    first_connection first = {.crew = m->crew, .socket = crew_connect(m->crew)};
    EXPECT(crew_greet(first.socket, m->crew->token, key));
    first.seals = tn_seals_new(key, false);
    crew_hello(m, key, 1, bytes);
    crew_send(first.socket, bytes, sizeof bytes);
    EXPECT(crew_frame(first.socket, &first.seals.in, &head, body));
    EXPECT(pthread_create(&watch, NULL, await_replaced, &first) == 0);
    join_and_leave(m);
    pthread_join(watch, NULL);
    return;
  }
  if (m->place.process == 2) crew_await_note(m->crew, 0, 1);
  join_and_leave(m);
}

/* It is the last one, and has closed the connection before process 0 reads the hello. */
static void come_again_as_the_last(member *m) {
  if (m->place.process == 1) {
    unsigned char bytes[CREW_HELLO], key[TN_KEY_BYTES];
    crew_await_note(m->crew, 0, 1);
    pid_t process_0 = (pid_t)m->crew->notes[0];
    int first = crew_connect(m->crew);
    EXPECT(crew_greet(first, m->crew->token, key));
    crew_hello(m, key, 1, bytes);
    kill(process_0, SIGSTOP);
    test_await_stopped(process_0);
    crew_send(first, bytes, sizeof bytes);
    close(first);
    kill(process_0, SIGCONT);
  } else {
    crew_note(m->crew, 0, getpid());
  }
  join_and_leave(m);
}

static void a_process_may_come_again(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, come_again);
  c = crew_new(2);
  crew_run(&c, come_again_as_the_last);
}

static void come_with_other_numbers(member *m) {
  if (m->place.process == 1) {
    m->place.processes = m->place.locals = 5;
    member_open_fails(m, TN_ECOMM, ": it is one of 5 processes, for process 0 on host ");
    EXPECT_TEXT(tn_error_text(&m->env), " there are 2");
    m->place.processes = m->place.locals = 2;
  }
  join_and_leave(m);
}

static void another_number_of_processes_is_refused(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_run(&c, come_with_other_numbers);
}

static void come_with_another_version(member *m) {
  if (m->place.process == 1) {
    unsigned char bytes[CREW_HELLO], key[TN_KEY_BYTES], text[TN_JOIN_BODY + TN_TAG_BYTES + 1] = "";
    tn_hello hello;
    tn_frame_head head;
    int s = crew_connect(m->crew);
    EXPECT(crew_greet(s, m->crew->token, key));
    tn_seals seals = tn_seals_new(key, false);
    tn_join_hello(&m->request, &hello);
    snprintf(hello.version, sizeof hello.version, "99.8\x1b[2J");
    tn_hello_write(&hello, bytes);
    tn_proof_make(key, TN_JOIN_CALLER, bytes, TN_HELLO_BYTES, bytes + TN_HELLO_BYTES);
    crew_send(s, bytes, sizeof bytes);
    EXPECT(crew_frame(s, &seals.in, &head, text));
    EXPECT(head.kind == TN_FRAME_REFUSED && head.bytes <= TN_REFUSAL_BYTES);
    EXPECT_TEXT((const char *)text, "it has Tenon 99.8?[2J, process 0 on host ");
    EXPECT_TEXT((const char *)text, "; install the same");
    crew_expect_closed(s);
  }
  join_and_leave(m);
}

static void another_version_is_refused(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_run(&c, come_with_another_version);
}

/* ---- few descriptors ---- */

static void join_with_few_descriptors(member *m) {
  if (m->place.process > 0) {
    m->request.timeout_s = 1;
    tn_status status = tn_link_open(&m->env, &m->request, &m->link);
    EXPECT(status == TN_ECOMM);
    return;
  }
  const struct rlimit few = {(rlim_t)crew_descriptors(), (rlim_t)crew_descriptors()};
  EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
  member_open_fails(m, TN_ECOMM, "cannot take another of 8 processes: Too many open files; see `ulimit -n`");
  const struct rlimit more = {few.rlim_max, few.rlim_max};
  setrlimit(RLIMIT_NOFILE, &more);
}

/* Process 0 fails before the time of the others ends. */
static void too_few_descriptors_are_reported(void **state) {
  (void)state;
  crew c = crew_new(8);
  test_clock_hold();
  crew_start_all(&c, join_with_few_descriptors);
  crew_expect_end(&c, 0);
  for (int32_t i = 1; i < 8; i++) crew_pass_until_end(&c, i, 0.5);
  crew_end(&c);
  test_clock_run();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(eight_processes_join),
      cmocka_unit_test(process_0_may_start_later),
      cmocka_unit_test(a_host_may_have_a_name),
      cmocka_unit_test(strangers_do_not_hinder),
      cmocka_unit_test(a_slow_hello_does_not_hinder),
      cmocka_unit_test(many_strangers_do_not_hinder),
      cmocka_unit_test(other_programs_may_have_the_first_ports),
      cmocka_unit_test(a_number_that_is_taken_is_refused),
      cmocka_unit_test(a_process_may_come_again),
      cmocka_unit_test(another_number_of_processes_is_refused),
      cmocka_unit_test(another_version_is_refused),
      cmocka_unit_test(too_few_descriptors_are_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
