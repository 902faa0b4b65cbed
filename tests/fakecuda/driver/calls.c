/* tests/fakecuda/driver/calls.c: entering and leaving an entry point; FAKECUDA_FAIL and FAKECUDA_COUNTS. */
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/driver/driver.h"
#include "tests/fakecuda/driver/task.h"

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- counting ---- */

typedef struct counter {
  char name[64];
  uint64_t calls;
} counter;

enum { MOST_NAMES = 512 };
static counter counters[MOST_NAMES];
static size_t n_counters;
static pthread_mutex_t counters_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t calls_add(const char *name, uint64_t more) {
  pthread_mutex_lock(&counters_lock);
  size_t i = 0;
  while (i < n_counters && strcmp(counters[i].name, name) != 0) i++;
  if (i == n_counters && n_counters < MOST_NAMES)
    snprintf(counters[n_counters++].name, sizeof counters[i].name, "%s", name);
  uint64_t n = i < n_counters ? counters[i].calls += more : 0;
  pthread_mutex_unlock(&counters_lock);
  return n;
}

/* "file PATH" for each file that the process has open. */
static void calls_write_files(FILE *to) {
  char path[PATH_MAX];
  DIR *folder = opendir("/proc/self/fd");
  for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
    ssize_t n = readlinkat(dirfd(folder), e->d_name, path, sizeof path - 1);
    if (n > 0 && atoi(e->d_name) != dirfd(folder)) fprintf(to, "file %.*s\n", (int)n, path);
  }
  if (folder != NULL) closedir(folder);
}

/* "cuInit 1" for each function, and the files that are open when the double is unloaded. */
__attribute__((destructor)) static void calls_write(void) {
  const char *path = getenv("FAKECUDA_COUNTS");
  FILE *file = path != NULL && *path != '\0' ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  for (size_t i = 0; i < n_counters; i++)
    fprintf(file, "%s %llu\n", counters[i].name, (unsigned long long)counters[i].calls);
  calls_write_files(file);
  fclose(file);
}

/* ---- failures on request: "cuLaunchKernel:17, cuMemAlloc_v2:1=2, cuMemFree_v2:3+": the third and all later;
 * "cublasLtMatmul:captured": each one while a stream captures; "kernel:3=hang": a kernel that never ends ----
 */

static bool calls_counts(uint64_t asked, const char *rest, uint64_t n) {
  return n == asked || (*rest == '+' && n > asked);
}

/* Behind the place of a failure. *hit: this call is to fail. */
static const char *calls_read_place(const char *at, uint64_t n, bool *hit) {
  static const char captured[] = "captured";
  char *rest = NULL;
  if (strncmp(at, captured, sizeof captured - 1) == 0) {
    *hit = fake_captures_active();
    return at + sizeof captured - 1;
  }
  uint64_t asked = strtoull(at, &rest, 10);
  *hit = calls_counts(asked, rest, n);
  return rest + (*rest == '+');
}

static CUresult calls_read_code(const char *rest) {
  if (*rest != '=') return CUDA_ERROR_UNKNOWN;
  return strncmp(rest, "=hang", 5) == 0 ? (CUresult)FAKE_HANGS : (CUresult)strtol(rest + 1, NULL, 10);
}

static CUresult calls_asked(const char *name, uint64_t n) {
  const char *at = getenv("FAKECUDA_FAIL");
  size_t length = strlen(name);
  while (at != NULL && *at != '\0') {
    at += strspn(at, ", ");
    if (strncmp(at, name, length) == 0 && at[length] == ':') {
      bool hit = false;
      const char *rest = calls_read_place(at + length + 1, n, &hit);
      if (hit) return calls_read_code(rest);
    }
    at += strcspn(at, ", ");
  }
  return CUDA_SUCCESS;
}

CUresult fake_count(const char *name) { return calls_asked(name, calls_add(name, 1)); }

void fake_count_more(const char *name, uint64_t more) { (void)calls_add(name, more); }

FAKE_API int fakecuda_call(const char *name) { return (int)fake_count(name); }

/* ---- entering ---- */

static atomic_bool initialized;

static CUresult calls_check_state(fake_call *call, int needs) {
  if ((needs & (FAKE_INITIALIZED | FAKE_CURRENT)) != 0 && !atomic_load(&initialized))
    return fake_refuse(call, CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called");
  if ((needs & FAKE_CURRENT) == 0) return CUDA_SUCCESS;
  CUresult code = fake_context_current(call);
  if (code != CUDA_SUCCESS) return code;
  CUresult fault = (CUresult)atomic_load(&call->context->fault);
  if (fault == CUDA_SUCCESS) return (needs & FAKE_UNSAFE) != 0 ? fake_capture_forbids(call) : CUDA_SUCCESS;
  if ((needs & FAKE_FREES) == 0) return fault;
  call->result = fault;
  return CUDA_SUCCESS;
}

CUresult fake_enter_inside(fake_call *call, int needs) {
  pthread_mutex_lock(&calls_lock);
  return calls_check_state(call, needs);
}

CUresult fake_enter(fake_call *call, int needs) {
  CUresult asked = fake_count(call->name);
  pthread_mutex_lock(&calls_lock);
  if (asked != CUDA_SUCCESS && (needs & FAKE_FREES) == 0) return asked;
  CUresult code = calls_check_state(call, needs);
  if (asked != CUDA_SUCCESS) call->result = asked;
  return code;
}

CUresult fake_leave(fake_call *call, CUresult code) {
  pthread_mutex_unlock(&calls_lock);
  return code == CUDA_SUCCESS ? call->result : code;
}

CUresult fake_refuse(const fake_call *call, CUresult code, const char *format, ...) {
  char text[768];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fake_log("%s: %s", call->name, text);
  return code;
}

void fake_reach(tn_sim_stream *stream, uint64_t position) {
  pthread_mutex_unlock(&calls_lock);
  tn_sim_reach(stream, position);
  pthread_mutex_lock(&calls_lock);
}

bool fake_finish(const fake_context *context) {
  CUcontext handle = context->handle;
  pthread_mutex_unlock(&calls_lock);
  tn_sim_finish(context->sim);
  pthread_mutex_lock(&calls_lock);
  return fake_handle_find(FAKE_CONTEXT, handle) == context;
}

CUresult fake_wait(fake_call *call, tn_sim_stream *stream, uint64_t position) {
  CUcontext handle = call->context->handle;
  fake_reach(stream, position);
  if (fake_handle_find(FAKE_CONTEXT, handle) == NULL)
    return fake_refuse(call, CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context was released during the wait");
  return (CUresult)atomic_load(&call->context->fault);
}

/* ---- the beginning ---- */

static CUresult calls_init(const fake_call *call, unsigned flags) {
  if (flags != 0) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "flags are %u, expected 0", flags);
  if (fake_settings_get()->devices < 1) return CUDA_ERROR_NO_DEVICE;
  fake_faults_open();
  atomic_store(&initialized, true);
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuInit(unsigned flags) { FAKE_CALL(0, calls_init(&call, flags)); }

static CUresult calls_version(const fake_call *call, int *version) {
  if (version == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the version");
  *version = fake_settings_get()->version;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDriverGetVersion(int *version) { FAKE_CALL(0, calls_version(&call, version)); }
