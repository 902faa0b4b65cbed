/* Processes find each other among strangers, and report mistakes. */
#include "tests/unit/distributed/crew.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/system.h"
#include "core/distributed/wire/socket.h"

/* ---- the resolver ---- */

static atomic_int look_ups;
static int resolver_error;
static double resolver_s;          /* what a look-up takes */
static atomic_int *resolver_stops; /* is set in a look-up; NULL: none is */

int getaddrinfo(const char *name, const char *service, const struct addrinfo *want, struct addrinfo **list) {
  union {
    void *symbol;
    int (*call)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
  } real = {.symbol = dlsym(RTLD_NEXT, "getaddrinfo")};
  atomic_fetch_add(&look_ups, 1);
  if (resolver_stops != NULL) atomic_store(resolver_stops, 1);
  if (resolver_s > 0) crew_sleep(resolver_s);
  return resolver_error != 0 ? resolver_error : real.call(name, service, want, list);
}

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

static void join_late(member *m) {
  if (m->place.process == 0) crew_sleep(1);
  join_and_leave(m);
}

static void process_0_may_start_later(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, join_late);
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
    double began = tn_clock_s();
    m->place.process = 1;
    member_open(m);
    crew_note(m->crew, 1, (int64_t)((tn_clock_s() - began) * 1e6));
    member_close(m, 1);
    _exit(0); /* the strangers' sockets stay open until here */
  }
  if (m->place.process == 1) m->place.process = 2;
  join_and_leave(m);
}

static void strangers_do_not_hinder(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_start_all(&c, join_among_strangers);
  for (int32_t i = 0; i < 3; i++) crew_expect_end(&c, i);
  assert_true(c.notes[1] < 2000000); /* us; a silent guest alone would take 5 s */
  crew_end(&c);
}

/* One byte at a time: the time for a greeting is over before it is whole. */
static void send_slowly(member *m) {
  if (m->place.process != 1) {
    join_and_leave(m);
    return;
  }
  int s = crew_connect(m->crew);
  for (size_t i = 0; i < 3; i++) {
    crew_send(s, "THL" + i, 1);
    crew_sleep(0.05);
  }
  join_and_leave(m); /* meanwhile the slow one waits */
  crew_expect_closed(s);
}

static void a_slow_hello_does_not_hinder(void **state) {
  (void)state;
  crew c = crew_new(2);
  crew_run(&c, send_slowly);
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
    /* process 1 is there when it answers to none of its number */
    crew_sleep(0.3);
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
    crew_sleep(0.05);
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

/* Processes 2 and 4 of 5 never come. */
static void miss_some(member *m) {
  if (m->place.process == 2 || m->place.process == 4) return;
  if (m->place.process == 0) {
    member_open_fails(m, TN_ECOMM, "of 5 processes, 2, 4 did not come to process 0 on host ");
    EXPECT_TEXT(tn_error_text(&m->env), " within 1 s ([distributed] timeout)");
    return;
  }
  m->request.timeout_s = 20;
  member_open_fails(m, TN_ECOMM, "process 0: of 5 processes, 2, 4 did not come to process 0");
}

static void missing_processes_are_listed(void **state) {
  (void)state;
  crew c = crew_new(5);
  c.timeout_s = 1;
  crew_run(&c, miss_some);
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

/* Process 1 never comes, or comes after the time in which process 0 was stopped. */
static void wait_stopped(member *m) {
  crew_note(m->crew, m->place.process, 1);
  if (m->place.process == 0) member_open_fails(m, TN_ECOMM, "process 0 (id ");
  if (m->place.process == 0) EXPECT_TEXT(tn_error_text(&m->env), " s while the processes came together, ");
}

static void wait_partly_stopped(member *m) {
  crew_note(m->crew, m->place.process, 1);
  if (m->place.process == 1) crew_sleep(4.5);
  join_and_leave(m);
}

static void a_stopped_process_names_itself(void **state) {
  (void)state;
  crew fails = crew_new(2), waits = crew_new(2);
  fails.timeout_s = 1.5;
  waits.timeout_s = 3.5;
  crew_start_all(&fails, wait_stopped);
  crew_start_all(&waits, wait_partly_stopped);
  crew_await_note(&fails, 0, 1);
  crew_await_note(&waits, 0, 1);
  crew_sleep(0.5);
  kill(fails.pids[0], SIGSTOP);
  kill(waits.pids[0], SIGSTOP);
  crew_sleep(2.5);
  kill(fails.pids[0], SIGCONT);
  kill(waits.pids[0], SIGCONT);
  crew_end(&fails);
  crew_end(&waits);
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
  member_open_fails(m, TN_ECOMM, ": Connection refused; if it runs on another host");
  EXPECT(atomic_load(&look_ups) >= 2 && atomic_load(&look_ups) <= 4); /* at 0, 1 and 2 s */
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
  crew c[3];
  for (int i = 0; i < 3; i++) {
    c[i] = crew_new(2);
    c[i].timeout_s = i == 0 ? 2.5 : 0.5;
    crew_start_all(&c[i], bodies[i]);
  }
  for (int i = 0; i < 3; i++) crew_end(&c[i]);
}

static void stop_in_a_look_up(member *m) {
  static atomic_int stop;
  if (m->place.process == 0) return;
  resolver_s = 40;
  resolver_stops = &stop;
  m->request.stop = &stop;
  double from = tn_clock_s();
  member_open_fails(m, TN_ESTOPPED, "stopped");
  EXPECT(tn_clock_s() - from < 20);
}

/* The resolver goes on for a while, on a thread that is left. */
static void a_stop_does_not_wait_for_the_resolver(void **state) {
  (void)state;
  crew c = crew_new(2);
  c.timeout_s = 60;
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
    int s = tn_socket_connect(host, 40001 + c.port % 2000, tn_clock_s() + 10, NULL, &reason);
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
  EXPECT(tn_sealed_send(s, &seals.out, &beat, NULL, tn_clock_s() + 10));
  tn_frame_head_write(&failure, bytes);
  tn_seal_make(&seals.out, bytes, TN_FRAME_HEAD, bytes + TN_FRAME_HEAD);
  crew_send(s, bytes, sizeof bytes);
  close(s);
  close(listens);
}

static atomic_int asked;

static void take_signal(int number) { atomic_store(&asked, number); }

/* Process 0 sends half of a frame, and then the signal. */
static void stop_in_half_of_a_frame(member *m) {
  unsigned char key[TN_KEY_BYTES], byte;
  const tn_frame_head beat = {.kind = TN_FRAME_BEAT};
  if (m->place.process == 1) {
    double from = tn_clock_s();
    signal(SIGUSR1, take_signal);
    m->request.stop = &asked;
    crew_note(m->crew, 1, getpid());
    crew_await_note(m->crew, 0, 1);
    member_open_fails(m, TN_ESTOPPED, "stopped");
    EXPECT(tn_clock_s() - from < 20);
    return;
  }
  int listens = crew_listen_on(m->crew->port);
  EXPECT(listens >= 0);
  crew_note(m->crew, 0, 1);
  int s = accept(listens, NULL, NULL);
  EXPECT(s >= 0 && crew_answer(s, m->crew->token, key));
  tn_seals seals = tn_seals_new(key, true);
  EXPECT(tn_sealed_send(s, &seals.out, &beat, NULL, tn_clock_s() + 10));
  crew_send(s, &beat, TN_FRAME_HEAD / 2);
  EXPECT(kill((pid_t)atomic_load(&m->crew->notes[1]), SIGUSR1) == 0);
  while (recv(s, &byte, 1, MSG_WAITALL) == 1) continue; /* until it has ended */
  close(s);
  close(listens);
}

static void a_stop_does_not_wait_for_the_rest_of_a_frame(void **state) {
  (void)state;
  crew c = crew_new(2);
  c.timeout_s = 60;
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
    crew_note(m->crew, 0, 1);
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
  crew_await_note(&c, 0, 1);
  crew_sleep(0.3);
  kill(c.pids[0], SIGKILL);
  crew_expect_killed(&c, 0, SIGKILL);
  crew_end(&c);
}

static void halt_process_0(member *m) {
  m->request.timeout_s = m->place.process == 0 ? 30 : 1;
  if (m->place.process == 0) {
    m->place.processes = m->place.locals = 3;
    crew_note(m->crew, 0, 1);
    tn_link_open(&m->env, &m->request, &m->link);
  }
  if (m->place.process == 1)
    member_open_fails(m, TN_ECOMM,
                      "process 0 on host 127.0.0.1 has not been heard of for 1 s while the processes came "
                      "together: it is stopped, or its host or network is down");
  if (m->place.process == 1) crew_note(m->crew, 1, 1);
}

static void a_stop_of_process_0_is_reported(void **state) {
  (void)state;
  crew c = crew_new(3);
  c.pids[2] = 0;
  crew_start(&c, 0, halt_process_0);
  crew_start(&c, 1, halt_process_0);
  crew_await_note(&c, 0, 1);
  crew_sleep(0.3);
  kill(c.pids[0], SIGSTOP);
  crew_await_note(&c, 1, 1);
  kill(c.pids[0], SIGKILL);
  crew_expect_killed(&c, 0, SIGKILL);
  crew_end(&c);
}

/* ---- signs of life ---- */

static void come_after_the_silence(member *m) {
  m->request.silence_s = 1.5;
  if (m->place.process == 2) crew_sleep(4);
  join_and_leave(m);
}

static void processes_that_wait_give_signs_of_life(void **state) {
  (void)state;
  crew c = crew_new(3);
  crew_run(&c, come_after_the_silence);
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
  crew_start(&c, 0, wait_for_two);
  crew_start(&c, 1, wait_for_two);
  crew_sleep(2);
  kill(c.pids[1], SIGSTOP);
  crew_expect_end(&c, 0);
  kill(c.pids[1], SIGKILL);
  crew_expect_killed(&c, 1, SIGKILL);
  crew_end(&c);
}

/* ---- stops and few descriptors ---- */

static atomic_int stop_flag;

static void set_stop_flag(int signal) {
  (void)signal;
  atomic_store(&stop_flag, 1);
}

/* Process 2 never comes: 0 and 1 wait for it, 3 looks for a process 0 elsewhere. */
static void stop_while_joining(member *m) {
  if (m->place.process == 2) return;
  signal(SIGUSR1, set_stop_flag);
  m->request.stop = &stop_flag;
  if (m->place.process == 3) m->place.port += TN_JOIN_PORTS;
  crew_note(m->crew, m->place.process, 1);
  member_open_fails(m, TN_ESTOPPED, "stopped");
}

static void a_request_to_stop_ends_the_wait(void **state) {
  (void)state;
  static const int32_t order[] = {1, 3, 0};
  crew c = crew_new(4);
  crew_start_all(&c, stop_while_joining);
  for (int i = 0; i < 3; i++) crew_await_note(&c, order[i], 1);
  crew_sleep(0.3);
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
  crew_sleep(0.5);
  kill(c.pids[0], SIGUSR1);
  crew_end(&c);
}

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

static void too_few_descriptors_are_reported(void **state) {
  (void)state;
  crew c = crew_new(8);
  crew_run(&c, join_with_few_descriptors);
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
      cmocka_unit_test(missing_processes_are_listed),
      cmocka_unit_test(many_missing_processes_are_counted),
      cmocka_unit_test(a_stopped_process_names_itself),
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
      cmocka_unit_test(too_few_descriptors_are_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
