/* tests/fakenccl/faults.c: the environment variables FAKENCCL_..., and the count of calls. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakenccl/entry.h"
#include "tests/fakenccl/fakenccl.h"
#include "backends/shared/clock.h"

/* ---- of a communicator ---- */

static uint64_t faults_number(const char *name) {
  const char *text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* "1:3=19": for rank 1, 3 and 19. */
static uint64_t faults_of_rank(const char *name, int rank, int *value) {
  const char *text = getenv(name);
  char *rest;
  if (text == NULL || strtol(text, &rest, 10) != rank || rest == text || *rest != ':') return 0;
  uint64_t n = strtoull(rest + 1, &rest, 10);
  if (*rest == '=' && value != NULL) *value = (int)strtol(rest + 1, NULL, 10);
  return n;
}

void fakenccl_faults_read(fakenccl_faults *f, int rank) {
  *f = (fakenccl_faults){.signal = SIGKILL};
  f->stall = faults_of_rank("FAKENCCL_STALL", rank, NULL);
  f->kill = faults_of_rank("FAKENCCL_KILL", rank, &f->signal);
  f->delay_us = faults_number("FAKENCCL_DELAY");
  f->late_us = faults_number("FAKENCCL_LATE");
  f->reorders = getenv("FAKENCCL_REORDER") != NULL;
  f->silent = getenv("FAKENCCL_TELL") == NULL;
  f->progress = (int)faults_number("FAKENCCL_PROGRESS");
  const char *delay = getenv("FAKENCCL_DELAY"), *seed = delay != NULL ? strchr(delay, ':') : NULL;
  f->seed = faults_number("FAKENCCL_REORDER") * 977 + (seed != NULL ? strtoull(seed + 1, NULL, 10) : 0);
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
uint64_t fakenccl_draw(uint64_t *chance) {
  uint64_t x = *chance += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

/* ---- the version ---- */

static const struct {
  const char *name;
  int version;
} since[] = {{"ncclRedOpCreatePreMulSum", 21100},
             {"ncclRedOpDestroy", 21100},
             {"ncclGetLastError", 21300},
             {"ncclCommInitRankConfig", 21400},
             {"ncclCommFinalize", 21400},
             {"ncclCommSplit", 21800},
             {"ncclMemAlloc", 21900},
             {"ncclMemFree", 21900},
             {"ncclCommRegister", 21900},
             {"ncclCommDeregister", 21900},
             {"ncclCommWindowRegister", 22700},
             {"ncclCommWindowDeregister", 22700}};

int fakenccl_version(void) {
  int version = (int)faults_number("FAKENCCL_VERSION");
  return version > 0 ? version : NCCL_VERSION_CODE;
}

static ncclResult_t faults_check_version(const char *name) {
  int version = fakenccl_version();
  for (size_t i = 0; i < sizeof since / sizeof *since; i++)
    if (strcmp(since[i].name, name) == 0 && version < since[i].version)
      return fakenccl_refuse(ncclInvalidUsage, "NCCL %d has no such function, which came with %d", version,
                             since[i].version);
  return ncclSuccess;
}

/* ---- counting ---- */

enum { MOST_COUNTERS = 1024 };
typedef struct counter {
  char name[32];
  int rank; /* -1: all calls of the process */
  uint64_t calls;
} counter;

static counter counters[MOST_COUNTERS];
static size_t n_counters;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t faults_count(const char *name, int rank) {
  pthread_mutex_lock(&lock);
  size_t i = 0;
  while (i < n_counters && (counters[i].rank != rank || strcmp(counters[i].name, name) != 0)) i++;
  if (i == n_counters && n_counters < MOST_COUNTERS) {
    snprintf(counters[i].name, sizeof counters[i].name, "%s", name);
    counters[i].rank = rank;
    n_counters++;
  }
  uint64_t n = i < n_counters ? ++counters[i].calls : 0;
  pthread_mutex_unlock(&lock);
  return n;
}

/* "3@1=6" of "ncclAllReduce:3@1=6": whether it is the call, and its code. */
static bool faults_asked(const char *at, uint64_t of_all, uint64_t of_rank, int rank, ncclResult_t *code) {
  char *rest;
  uint64_t n = strtoull(at, &rest, 10);
  bool asked = *rest == '@' ? strtol(rest + 1, &rest, 10) == rank && n == of_rank : n == of_all;
  *code = *rest == '=' ? (ncclResult_t)strtol(rest + 1, NULL, 10) : ncclSystemError;
  return asked;
}

static ncclResult_t faults_find(const char *name, uint64_t of_all, uint64_t of_rank, int rank) {
  size_t length = strlen(name);
  ncclResult_t code;
  for (const char *at = getenv("FAKENCCL_FAIL"); at != NULL && *at != '\0'; at += strcspn(at, ",")) {
    at += strspn(at, ", ");
    if (strncmp(at, name, length) == 0 && at[length] == ':' &&
        faults_asked(at + length + 1, of_all, of_rank, rank, &code))
      return code;
  }
  return ncclSuccess;
}

/* "ncclCommDestroy:500000": the call takes so many microseconds. */
static void faults_hang(const char *name) {
  const char *text = getenv("FAKENCCL_HANG");
  size_t length = strlen(name);
  if (text == NULL || strncmp(text, name, length) != 0 || text[length] != ':') return;
  double until = tn_monotonic_s() + 1e-6 * strtod(text + length + 1, NULL);
  while (tn_monotonic_s() < until) fakenccl_pause();
}

ncclResult_t fakenccl_enter(const char *name, const fakenccl_comm *comm) {
  fakenccl_entry_set(name);
  const fakenccl_driver *d = fakenccl_driver_get();
  if (d == NULL) return fakenccl_refuse(ncclUnhandledCudaError, "the double of libcuda.so.1 is not loaded");
  d->f_fakecuda_call(name); /* FAKECUDA_COUNTS */
  int rank = fakenccl_comm_find(comm) ? comm->rank : -1;
  uint64_t of_all = faults_count(name, -1), of_rank = rank >= 0 ? faults_count(name, rank) : 0;
  faults_hang(name);
  FAKENCCL_TRY(faults_check_version(name));
  return faults_find(name, of_all, of_rank, rank);
}
