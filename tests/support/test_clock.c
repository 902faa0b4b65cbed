/* tests/support/test_clock.c: see test_clock.h. */
#include "tests/support/test_clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/await.h"

/* A look of the thread of a link, or one of a process that joins, reads the clock at most 5 times. */
enum { USERS = 64, READS = 12 };

typedef struct clock_user {
  _Atomic(int) pid; /* 0: free */
  _Atomic(int64_t) reads;
} clock_user;

/* In memory that the processes share. */
typedef struct shared_clock {
  _Atomic(double) held_s; /* where the clock stands; 0: it runs */
  clock_user users[USERS];
} shared_clock;

static shared_clock *shared;
static clock_user *self; /* of this process; NULL: it was not added */
static _Atomic(int64_t) own_reads;

static double system_s(void) {
  const struct timespec now = await_begin();
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double test_clock_s(void) {
  double held_s = shared != NULL ? atomic_load(&shared->held_s) : 0;
  if (self != NULL) atomic_fetch_add(&self->reads, 1);
  atomic_fetch_add(&own_reads, 1);
  if (held_s > 0) return held_s;
  return system_s();
}

void test_clock_open(void) {
  if (shared != NULL) return;
  void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  shared = memory;
}

void test_clock_hold(void) {
  test_clock_open();
  atomic_store(&shared->held_s, test_clock_s());
}

void test_clock_run(void) { atomic_store(&shared->held_s, 0); }

void test_clock_pass(double seconds) {
  double from = atomic_load(&shared->held_s);
  while (from > 0 && !atomic_compare_exchange_weak(&shared->held_s, &from, from + seconds)) continue;
}

void test_clock_await_reads(int n) {
  int64_t before = atomic_load(&own_reads);
  AWAIT(atomic_load(&own_reads) >= before + n);
}

/* ---- processes ---- */

static bool clock_runs(int pid) {
  char state = await_state_of(pid);
  return state != 'T' && state != 'Z' && state != 'X' && state != '\0';
}

void test_await_stopped(int pid) { AWAIT(await_state_of(pid) == 'T'); }

static bool clock_is_free(const clock_user *user) {
  int pid = atomic_load(&user->pid);
  return pid == 0 || await_state_of(pid) == '\0';
}

void test_clock_add(int pid) {
  int i = 0;
  while (i < USERS && !clock_is_free(&shared->users[i])) i++;
  if (i == USERS) abort();
  atomic_store(&shared->users[i].pid, pid);
}

static clock_user *clock_find(int pid) {
  for (int i = 0; i < USERS; i++)
    if (atomic_load(&shared->users[i].pid) == pid) return &shared->users[i];
  return NULL;
}

void test_clock_use(void) { AWAIT((self = clock_find((int)getpid())) != NULL); }

void test_clock_step(double seconds) {
  int64_t before[USERS];
  test_clock_pass(seconds);
  for (int i = 0; i < USERS; i++) before[i] = atomic_load(&shared->users[i].reads);
  for (int i = 0; i < USERS; i++) {
    const clock_user *user = &shared->users[i];
    int pid = atomic_load(&user->pid);
    if (pid == 0 || user == self) continue;
    AWAIT(atomic_load(&user->reads) >= before[i] + READS || !clock_runs(pid));
  }
}
