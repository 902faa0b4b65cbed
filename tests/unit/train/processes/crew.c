/* tests/unit/train/processes/crew.c: see crew.h. */
#include "tests/unit/train/processes/crew.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/plugin/handles.h"

/* A process that takes longer hangs. */
enum { MOST_S = 100 };

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

void crew_sleep(double seconds) {
  struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

void crew_note(crew *c, int i, int64_t value) { atomic_store(&c->notes[i], value); }

void crew_await_note(crew *c, int i, int64_t value) {
  while (atomic_load(&c->notes[i]) < value) crew_sleep(0.001);
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

crew crew_new(int32_t n) {
  static int32_t number;
  crew c = {.n = n, .timeout_s = 30};
  uint32_t spread = (uint32_t)getpid() * 97 + (uint32_t)number * 17;
  for (int32_t i = 0; i < CREW_MOST; i++) c.ranks[i] = 1;
  c.port = 20000 + (int32_t)(spread % 12000);
  snprintf(c.token, sizeof c.token, "test %ld %d", (long)getpid(), (int)number++);
  c.notes =
      mmap(NULL, CREW_NOTES * sizeof *c.notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(c.notes != MAP_FAILED);
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
  m->request = (tn_join_request){.place = &m->place, .ranks = c->ranks[process], .timeout_s = c->timeout_s};
  pthread_mutex_init(&m->lock, NULL);
  pthread_cond_init(&m->changed, NULL);
}

static void crew_run_member(crew *c, int32_t process, void (*body)(member *m)) {
  static member m;
  alarm(MOST_S);
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

void crew_end(crew *c) {
  for (int32_t i = 0; i < c->n; i++)
    if (c->pids[i] > 0) crew_expect_end(c, i);
  munmap(c->notes, CREW_NOTES * sizeof *c->notes);
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
