/* tests/unit/distributed/crew.c: see crew.h. */
#include "tests/unit/distributed/crew.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/plugin/handles.h"
#include "core/distributed/wire/socket.h"
#include "tests/support/ports.h"

/* A process that takes longer hangs. */
enum { MOST_S = 150 };

/* ---- anywhere ---- */

void crew_expect_(int holds, const char *what, const char *file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: expected %s\n", file, line, what);
  _exit(1);
}

void crew_expect_text_(const char *text, const char *part, const char *file, int line) {
  if (strstr(text, part) != NULL) return;
  fprintf(stderr, "%s:%d: expected '%s' in '%s'\n", file, line, part, text);
  _exit(1);
}

int crew_listen_on(int32_t port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int one = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(s, (const struct sockaddr *)&address, sizeof address) == 0 && listen(s, 100) == 0) return s;
  close(s);
  return -1;
}

static int crew_connect_to(int32_t port) {
  const char *reason;
  tn_socket_host *host = tn_socket_host_find("127.0.0.1", &reason);
  EXPECT(host != NULL);
  int s = tn_socket_connect(host, port, tn_clock_s() + CREW_LIMIT_S, NULL, &reason);
  tn_socket_host_free(host);
  return s;
}

static int crew_connect_once(const crew *c) {
  int s = -1;
  for (int32_t i = 0; i < TN_JOIN_PORTS && s < 0; i++) s = crew_connect_to(c->port + i);
  return s;
}

int crew_connect(const crew *c) {
  int s = -1;
  AWAIT((s = crew_connect_once(c)) >= 0);
  return s;
}

void crew_send(int socket, const void *bytes, size_t n) {
  EXPECT(tn_socket_send(socket, bytes, n, tn_clock_s() + CREW_LIMIT_S));
}

void crew_receive(int socket, void *bytes, size_t n) {
  EXPECT(tn_socket_receive(socket, bytes, n, tn_clock_s() + CREW_LIMIT_S));
}

void crew_expect_closed(int socket) {
  char byte;
  EXPECT(!tn_socket_receive(socket, &byte, 1, tn_clock_s() + CREW_LIMIT_S));
  EXPECT(tn_socket_has_ended(socket));
  close(socket);
}

bool crew_greet(int socket, const char *token, unsigned char key[TN_KEY_BYTES]) {
  unsigned char bytes[TN_ANSWER_BYTES];
  tn_greeting own = {.protocol = TN_PROTOCOL}, theirs;
  memset(own.nonce, 'n', sizeof own.nonce);
  tn_greeting_write(&own, bytes);
  crew_send(socket, bytes, TN_GREETING_BYTES);
  crew_receive(socket, bytes, sizeof bytes);
  EXPECT(tn_greeting_read(bytes, &theirs) && theirs.protocol == TN_PROTOCOL);
  tn_proof_key(token, own.nonce, theirs.nonce, key);
  return tn_proof_check(key, TN_JOIN_LISTENER, NULL, 0, bytes + TN_GREETING_BYTES);
}

bool crew_answer(int socket, const char *token, unsigned char key[TN_KEY_BYTES]) {
  unsigned char bytes[TN_ANSWER_BYTES], hello[CREW_HELLO];
  tn_greeting own = {.protocol = TN_PROTOCOL}, theirs;
  memset(own.nonce, 'm', sizeof own.nonce);
  crew_receive(socket, bytes, TN_GREETING_BYTES);
  EXPECT(tn_greeting_read(bytes, &theirs));
  tn_proof_key(token, theirs.nonce, own.nonce, key);
  tn_greeting_write(&own, bytes);
  tn_proof_make(key, TN_JOIN_LISTENER, NULL, 0, bytes + TN_GREETING_BYTES);
  crew_send(socket, bytes, sizeof bytes);
  return tn_socket_receive(socket, hello, sizeof hello, tn_clock_s() + CREW_LIMIT_S) &&
         tn_proof_check(key, TN_JOIN_CALLER, hello, TN_HELLO_BYTES, hello + TN_HELLO_BYTES);
}

bool crew_frame(int socket, tn_seal *in, tn_frame_head *head,
                unsigned char body[TN_JOIN_BODY + TN_TAG_BYTES]) {
  unsigned char bytes[TN_SEALED_HEAD];
  double until_s = tn_clock_s() + CREW_LIMIT_S;
  return tn_socket_receive(socket, bytes, sizeof bytes, until_s) && tn_sealed_head_read(in, bytes, head) &&
         head->bytes <= TN_JOIN_BODY &&
         tn_socket_receive(socket, body, tn_sealed_body(head->bytes), until_s) &&
         tn_sealed_body_check(in, body, head->bytes);
}

void crew_hello(const member *m, const unsigned char key[TN_KEY_BYTES], int32_t process,
                unsigned char bytes[CREW_HELLO]) {
  tn_hello hello;
  tn_join_hello(&m->request, &hello);
  hello.process = process;
  tn_hello_write(&hello, bytes);
  tn_proof_make(key, TN_JOIN_CALLER, bytes, TN_HELLO_BYTES, bytes + TN_HELLO_BYTES);
}

void crew_note(crew *c, int i, int64_t value) { atomic_store(&c->notes[i], value); }

void crew_await_note(crew *c, int i, int64_t value) { AWAIT(atomic_load(&c->notes[i]) >= value); }

void crew_await_taken(crew *c, int32_t process) { AWAIT(atomic_load(&c->taken[process]) != 0); }

void crew_await_looks(const crew *c) {
  unsigned char key[TN_KEY_BYTES];
  for (int i = 0; i < 2; i++) {
    int s = crew_connect(c);
    EXPECT(crew_greet(s, c->token, key));
    close(s);
  }
}

int crew_descriptors(void) {
  int n = 0;
  DIR *folder = opendir("/proc/self/fd");
  EXPECT(folder != NULL);
  while (readdir(folder) != NULL) n++;
  closedir(folder);
  return n;
}

/* ---- processes ---- */

#define CREW_SHARED (CREW_NOTES * sizeof(_Atomic(int64_t)) + CREW_MOST * sizeof(atomic_int))

crew crew_new(int32_t n) {
  static int32_t number;
  crew c = {.n = n, .timeout_s = CREW_LIMIT_S};
  for (int32_t i = 0; i < CREW_MOST; i++) c.ranks[i] = 1;
  /* below the ports that Linux gives to outgoing connections; some tests use those in front of c.port as well
   */
  int first = ports_take(20000, 390, &c.lock);
  assert_true(first != 0);
  c.port = first + TN_JOIN_PORTS - 1;
  snprintf(c.token, sizeof c.token, "test %ld %d", (long)getpid(), (int)number++);
  c.notes = mmap(NULL, CREW_SHARED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(c.notes != MAP_FAILED);
  c.taken = (atomic_int *)(c.notes + CREW_NOTES);
  test_clock_open();
  return c;
}

static void *crew_allocate(void *context, void *block, size_t bytes) {
  member *m = context;
  if (bytes == 0) {
    m->blocks -= block != NULL;
    free(block);
    return NULL;
  }
  void *grown = realloc(block, bytes);
  m->blocks += block == NULL && grown != NULL;
  return grown;
}

static void member_init(member *m, crew *c, int32_t process) {
  memset(m, 0, sizeof *m);
  m->crew = c;
  tn_error_record_init_root(&m->env, &m->record, &tn_host_api);
  m->record.allocator = (tn_allocator){m, crew_allocate};
  m->place = (tn_process_place){.launcher = "a test",
                                .process = process,
                                .processes = c->n,
                                .local = process,
                                .locals = c->n,
                                .port = c->port};
  snprintf(m->place.master, sizeof m->place.master, "127.0.0.1");
  snprintf(m->place.token, sizeof m->place.token, "%s", c->token);
  m->request = (tn_join_request){
      .place = &m->place, .ranks = c->ranks[process], .timeout_s = c->timeout_s, .taken = &c->taken[process]};
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->changed, NULL);
}

static void crew_run_member(crew *c, int32_t process, void (*body)(member *m)) {
  static member m;
  alarm(MOST_S);
  test_clock_use();
  int descriptors = crew_descriptors();
  member_init(&m, c, process);
  body(&m);
  EXPECT(m.blocks == 0);
  EXPECT(crew_descriptors() == descriptors);
  _exit(0);
}

void crew_start(crew *c, int32_t process, void (*body)(member *m)) {
  fflush(NULL);
  c->pids[process] = fork();
  assert_true(c->pids[process] >= 0);
  if (c->pids[process] == 0) crew_run_member(c, process, body);
  test_clock_add((int)c->pids[process]);
}

void crew_start_all(crew *c, void (*body)(member *m)) {
  for (int32_t i = 0; i < c->n; i++) crew_start(c, i, body);
}

static int crew_wait(crew *c, int32_t process) {
  int status = 0;
  while (waitpid(c->pids[process], &status, 0) < 0) assert_int_equal(errno, EINTR);
  c->pids[process] = 0;
  return status;
}

void crew_expect_end(crew *c, int32_t process) {
  int status = crew_wait(c, process);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("process %d of %d: %s %d", (int)process, (int)c->n, WIFEXITED(status) ? "exit" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

void crew_expect_killed(crew *c, int32_t process, int signal) {
  int status = crew_wait(c, process);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), signal);
}

static bool crew_has_ended(const crew *c, int32_t process) {
  siginfo_t ended = {.si_pid = 0};
  assert_int_equal(waitid(P_PID, (id_t)c->pids[process], &ended, WEXITED | WNOHANG | WNOWAIT), 0);
  return ended.si_pid != 0;
}

void crew_pass_until_end(crew *c, int32_t process, double step_s) {
  AWAIT((test_clock_step(step_s), crew_has_ended(c, process)));
  crew_expect_end(c, process);
}

void crew_stop(crew *c, int32_t process) {
  kill(c->pids[process], SIGSTOP);
  test_await_stopped(c->pids[process]);
}

void crew_end(crew *c) {
  for (int32_t i = 0; i < c->n; i++)
    if (c->pids[i] > 0) crew_expect_end(c, i);
  munmap(c->notes, CREW_SHARED);
  close(c->lock);
}

void crew_run(crew *c, void (*body)(member *m)) {
  crew_start_all(c, body);
  crew_end(c);
}

/* ---- members ---- */

static void member_take_failure(void *context, const tn_wire_failure *failure) {
  member *m = context;
  pthread_mutex_lock(&m->lock);
  m->failure = *failure;
  m->failures++;
  pthread_cond_broadcast(&m->changed);
  pthread_mutex_unlock(&m->lock);
}

static void member_take_stop(void *context) {
  member *m = context;
  pthread_mutex_lock(&m->lock);
  m->stops++;
  pthread_cond_broadcast(&m->changed);
  pthread_mutex_unlock(&m->lock);
}

void member_listen(member *m) {
  const tn_link_listener listener = {member_take_failure, member_take_stop, m};
  tn_link_listen(m->link, &listener);
}

void member_open(member *m) {
  tn_status status = tn_link_open(&m->env, &m->request, &m->link);
  EXPECT_TEXT(status == TN_OK ? "opened" : tn_error_text(&m->env), "opened");
  member_listen(m);
}

void member_open_fails(member *m, tn_status want, const char *part) {
  tn_status status = tn_link_open(&m->env, &m->request, &m->link);
  EXPECT(m->link == NULL);
  EXPECT_TEXT(tn_error_text(&m->env), part);
  EXPECT(status == want);
}

void member_close(member *m, int in_order) {
  tn_link_close(m->link, in_order);
  m->link = NULL;
}

void member_await_failures(member *m, int32_t n) {
  pthread_mutex_lock(&m->lock);
  while (m->failures < n) pthread_cond_wait(&m->changed, &m->lock);
  pthread_mutex_unlock(&m->lock);
}

void member_await_stop(member *m) {
  pthread_mutex_lock(&m->lock);
  while (m->stops == 0) pthread_cond_wait(&m->changed, &m->lock);
  pthread_mutex_unlock(&m->lock);
}
