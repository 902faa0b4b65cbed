/* tests/fakenccl/tests/rig.c */
#include "tests/fakenccl/tests/rig.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

rig_libraries L;
static char log_path[64];
static long log_read;
static const char *set[16];
static int n_set;

/* ---- checks ---- */

bool rig_check(rig *r, bool ok, const char *what, const char *file, int line) {
  if (ok) return true;
  fprintf(stderr, "%s:%d: rank %d: %s\n", file, line, r->rank, what);
  r->failures++;
  return false;
}

bool rig_check_code(rig *r, int got, int expected, const char *what, const char *file, int line) {
  if (got == expected) return true;
  fprintf(stderr, "%s:%d: rank %d: %s is %d, expected %d\n", file, line, r->rank, what, got, expected);
  r->failures++;
  return false;
}

const char *rig_log(void) {
  static char text[1 << 14];
  FILE *file = fopen(log_path, "rb");
  text[0] = '\0';
  if (file == NULL) return text;
  fseek(file, log_read, SEEK_SET);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  log_read = ftell(file);
  fclose(file);
  return text;
}

bool rig_logged(const char *part) {
  const char *text = rig_log();
  if (strstr(text, part) != NULL) return true;
  fprintf(stderr, "expected '%s' in the log, found '%s'\n", part, text);
  return false;
}

void rig_set(const char *name, const char *value) {
  setenv(name, value, 1);
  set[n_set++] = name;
}

int rig_teardown(void **state) {
  (void)state;
  while (n_set > 0) unsetenv(set[--n_set]);
  rig_log();
  return 0;
}

/* ---- ranks ---- */

typedef struct team {
  rig ranks[RIG_RANKS];
  rig_body body;
  bool bare;
} team;

ncclResult_t rig_init(rig *r) { return L.f_ncclCommInitRank(&r->comm, r->ranks, r->id, r->rank); }

void rig_abort(rig *r, ncclComm_t comm) {
  OK(L.f_ncclCommAbort(comm));
  OK(L.f_cuCtxSetCurrent(r->context));
}

void rig_destroy(rig *r, ncclComm_t comm) {
  OK(L.f_ncclCommDestroy(comm));
  OK(L.f_cuCtxSetCurrent(r->context));
}

/* The device is retained before the threads start, so that its context lives until all have ended. */
static void *rank_run(void *arg) {
  rig *r = arg;
  OK(L.f_cuCtxSetCurrent(r->context));
  OK(L.f_cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
  team *t = (team *)(void *)(r - r->rank);
  if (t->bare || OK(rig_init(r))) t->body(r);
  if (r->comm != NULL) rig_destroy(r, r->comm);
  r->comm = NULL;
  OK(L.f_cuStreamDestroy(r->stream));
  return NULL;
}

static int team_run_threads(team *t, int first, int n) {
  pthread_t threads[RIG_RANKS];
  int failures = 0;
  rig *r = t->ranks;
  OK(L.f_cuInit(0));
  for (int i = first; i < first + n; i++)
    OK(L.f_cuDevicePrimaryCtxRetain(&t->ranks[i].context, t->ranks[i].device));
  for (int i = 0; i < n; i++) pthread_create(&threads[i], NULL, rank_run, &t->ranks[first + i]);
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
  for (int i = first; i < first + n; i++) OK(L.f_cuDevicePrimaryCtxRelease(t->ranks[i].device));
  for (int i = 0; i < RIG_RANKS; i++) failures += t->ranks[i].failures;
  return failures;
}

static pid_t team_fork(team *t, int first, int n) {
  fflush(NULL);
  pid_t child = fork();
  if (child != 0) return child;
  exit(team_run_threads(t, first, n) > 0);
}

static int team_run(int processes, int threads, const team *t) {
  static team here;
  pid_t children[RIG_RANKS];
  int failures = 0, status;
  here = *t;
  if (processes == 1) return team_run_threads(&here, 0, threads);
  for (int i = 0; i < processes; i++) children[i] = team_fork(&here, i * threads, threads);
  for (int i = 0; i < processes; i++) {
    waitpid(children[i], &status, 0);
    failures += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    failures += WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL;
  }
  return failures;
}

static int rig_run_team(int processes, int threads, rig_body body, void *arg, bool bare) {
  team t = {.body = body, .bare = bare};
  ncclUniqueId id;
  assert_int_equal(L.f_ncclGetUniqueId(&id), ncclSuccess);
  for (int i = 0; i < processes * threads; i++)
    t.ranks[i] = (rig){.rank = i, .ranks = processes * threads, .device = i, .id = id, .arg = arg};
  return team_run(processes, threads, &t);
}

int rig_run(int processes, int threads, rig_body body, void *arg) {
  return rig_run_team(processes, threads, body, arg, false);
}

int rig_run_bare(int processes, int threads, rig_body body, void *arg) {
  return rig_run_team(processes, threads, body, arg, true);
}

/* ---- waiting ---- */

void rig_pause_ms(int ms) {
  struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
  nanosleep(&pause, NULL);
}

enum { LOOKS = 60000 }; /* of a millisecond at least: so many end a hang */

ncclResult_t rig_status(const rig *r) {
  ncclResult_t status = ncclInternalError;
  for (int i = 0; i < LOOKS; i++) {
    if (L.f_ncclCommGetAsyncError(r->comm, &status) != ncclSuccess) return ncclInternalError;
    if (status != ncclInProgress) break;
    rig_pause_ms(1);
  }
  return status;
}

bool rig_reaches(rig *r, ncclResult_t expected) {
  ncclResult_t status = ncclInternalError;
  for (int i = 0; i < LOOKS; i++) {
    L.f_ncclCommGetAsyncError(r->comm, &status);
    if (status == expected) return true;
    rig_pause_ms(1);
  }
  return CODE(status, expected);
}

bool rig_stream_is_busy(const rig *r) { return L.f_cuStreamQuery(r->stream) == CUDA_ERROR_NOT_READY; }

/* ---- memory ---- */

void *rig_new(rig *r, size_t bytes) {
  CUdeviceptr at = 0;
  OK(L.f_cuMemAlloc(&at, bytes));
  return (void *)(uintptr_t)at;
}

void rig_free(rig *r, void *at) { OK(L.f_cuMemFree((CUdeviceptr)(uintptr_t)at)); }

void rig_put(rig *r, void *to, const void *from, size_t bytes) {
  OK(L.f_cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)to, from, bytes, r->stream));
  OK(L.f_cuStreamSynchronize(r->stream));
}

void rig_get(rig *r, void *to, const void *from, size_t bytes) {
  OK(L.f_cuMemcpyDtoHAsync(to, (CUdeviceptr)(uintptr_t)from, bytes, r->stream));
  OK(L.f_cuStreamSynchronize(r->stream));
}

float *rig_floats(rig *r, size_t n) {
  float *host = malloc(n * sizeof *host), *x = rig_new(r, n * sizeof *host);
  for (size_t i = 0; i < n; i++) host[i] = (float)(1 + r->rank) * (float)(i % 1000 + 1);
  rig_put(r, x, host, n * sizeof *host);
  free(host);
  return x;
}

bool rig_is(rig *r, const float *x, size_t n, float factor) {
  float *host = malloc(n * sizeof *host);
  bool same = true;
  rig_get(r, host, x, n * sizeof *host);
  for (size_t i = 0; i < n && same; i++) {
    same = host[i] == factor * (float)(i % 1000 + 1);
    if (!same)
      fprintf(stderr, "rank %d: element %zu is %g, expected %g\n", r->rank, i, (double)host[i],
              (double)(factor * (float)(i % 1000 + 1)));
  }
  free(host);
  return same;
}

/* ---- main ---- */

#define RIG_TEXT2(name) #name
#define RIG_TEXT(name)  RIG_TEXT2(name)

static void *main_open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror()), exit(2);
  return library;
}

static void *main_find(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (symbol == NULL) fprintf(stderr, "no symbol %s\n", name), exit(2);
  return symbol;
}

/* Arguments: the paths of the doubles of the driver and of NCCL. */
int rig_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n) {
  if (argc < 3) return 2;
  snprintf(log_path, sizeof log_path, "/tmp/fakenccl-log-%d", (int)getpid());
  unlink(log_path);
  setenv("FAKENCCL_LOG", log_path, 1);
  setenv("FAKECUDA_LOG", log_path, 1);
  setenv("FAKECUDA_DEVICES", "4", 1);
  unsetenv("CUDA_VISIBLE_DEVICES");
  void *cuda = main_open(argv[1]), *nccl = main_open(argv[2]);
#define FIND_CUDA(name) *(void **)(void *)&L.f_##name = main_find(cuda, RIG_TEXT(name));
#define FIND_NCCL(name) *(void **)(void *)&L.f_##name = main_find(nccl, #name);
  RIG_CUDA(FIND_CUDA)
  RIG_NCCL(FIND_NCCL)
  int failed = _cmocka_run_group_tests("fakenccl", tests, n, NULL, NULL);
  unlink(log_path);
  return failed;
}
