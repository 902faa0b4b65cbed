/* tests/unit/backends/nccl/rig.c: see rig.h. */
#include "tests/unit/backends/nccl/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/cuda/objects.h"

rank all[MOST];
const tn_backend *cuda = &tn_cuda_backend;
const tn_communicator *kind = &tn_nccl_communicator;
tn_nccl_options options = {.libraries = DOUBLES, .follow = 1};
static tn_cuda_options cuda_options = {.libraries = DOUBLES, .cache = "", .images = ""};
static void *backend;
static const char *set[16];
static int n_set;

void rig_set(const char *name, const char *value) {
  setenv(name, value, 1);
  set[n_set++] = name;
}

/* ---- what the doubles report ---- */

static char log_path[64];
static const char *logs; /* expected */

void rig_logs(const char *text) { logs = text; }

static void log_open(void) {
  snprintf(log_path, sizeof log_path, "/tmp/nccl-rig-%d", (int)getpid());
  setenv("FAKENCCL_LOG", log_path, 1);
  setenv("FAKECUDA_LOG", log_path, 1);
}

static void log_check(void) {
  char line[1024] = "";
  FILE *file = fopen(log_path, "r");
  bool found = logs == NULL, quiet = true;
  while (file != NULL && quiet && fgets(line, sizeof line, file) != NULL) {
    quiet = logs != NULL && strstr(line, logs) != NULL;
    found = found || quiet;
  }
  if (file != NULL) fclose(file);
  unlink(log_path);
  if (!quiet) fail_msg("the doubles say: %s", line);
  if (!found) fail_msg("the doubles do not say '%s'", logs);
  logs = NULL;
}

/* ---- handles ---- */

static tn_status say(const void *handle, tn_status code, const char *option, const char *format, ...) {
  speaker *s = (speaker *)(uintptr_t)handle;
  (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(s->text, sizeof s->text, format, args);
  va_end(args);
  return code;
}

static void mumble(const void *handle, int32_t level, const char *format, ...) {
  (void)handle, (void)level, (void)format;
}

static void *give(const void *handle, size_t bytes) {
  (void)handle;
  return calloc(1, bytes);
}

static void take(const void *handle, void *block) {
  (void)handle;
  free(block);
}

static const tn_api table = {
    .struct_size = sizeof table, .fail = say, .log = mumble, .alloc = give, .free = take};

static void *native(tn_env *env, const tn_comm_device *seat, void *stream, const char *name) {
  return cuda->native(env, seat->device, stream, name);
}

void says(const rank *r, const char *text) {
  if (strstr(r->said.text, text) == NULL)
    fail_msg("rank %d: '%s' does not say '%s'", (int)r->number, r->said.text, text);
}

/* ---- ranks ---- */

static unsigned char identity[RIG_IDENTITY];

int32_t (*rig_has_failed)(const tn_comm_place *place);

static void *rank_open(void *arg) {
  rank *r = arg;
  r->opened = kind->open(&r->said.env, &options, &r->seat, &r->place, identity, &r->communicator);
  return NULL;
}

void rank_open_late(rank *r) { rank_open(r); }

static void rank_take_device(rank *r, int32_t device) {
  tn_env *env = &r->said.env;
  void *memory[3];
  OK(cuda->device_open(env, backend, device, &r->device));
  OK(cuda->stream_new(env, r->device, TN_STREAM_COMM, &r->stream));
  OK(cuda->stream_new(env, r->device, TN_STREAM_COPY_OUT, &r->copies));
  for (int k = 0; k < 3; k++)
    OK(cuda->memory_new(env, r->device, k < 2 ? TN_MEMORY_DEVICE : TN_MEMORY_STAGING, ROOM, &memory[k]));
  r->from = memory[0];
  r->to = memory[1];
  r->host = memory[2];
  r->seat =
      (tn_comm_device){.struct_size = sizeof r->seat, .index = device, .device = r->device, .native = native};
}

void rig_identify(const tn_comm_place *place, void *bytes) {
  static speaker host = {.env = {.api = &table}};
  assert_true(kind->identity_bytes <= RIG_IDENTITY);
  log_open();
  if (cuda->open(&host.env, &cuda_options, &backend) != TN_OK) fail_msg("%s", host.text);
  if (bytes != NULL && kind->identify(&host.env, &options, place, bytes) != TN_OK) fail_msg("%s", host.text);
}

void ranks_join(int32_t n, const tn_comm_place *place, const void *bytes, const int32_t *devices) {
  memcpy(identity, bytes, sizeof identity);
  for (int32_t i = 0; i < n; i++) {
    all[i] = (rank){.said.env.api = &table, .number = place->rank + i, .place = *place};
    all[i].place.rank += i;
    all[i].place.has_failed = rig_has_failed;
    rank_take_device(&all[i], devices != NULL ? devices[i] : all[i].number);
  }
  for (int32_t i = 0; i < n; i++) pthread_create(&all[i].thread, NULL, rank_open, &all[i]);
  for (int32_t i = 0; i < n; i++) pthread_join(all[i].thread, NULL);
}

void ranks_start(int32_t ranks, int32_t come, const int32_t *devices, double timeout_s) {
  static unsigned char bytes[RIG_IDENTITY];
  tn_comm_place place = {
      .struct_size = sizeof place, .ranks = ranks, .processes = 1, .address = "", .timeout_s = timeout_s};
  rig_identify(&place, bytes);
  ranks_join(come, &place, bytes, devices);
}

static void rank_close(rank *r) {
  tn_env *env = &r->said.env;
  void *memory[] = {r->from, r->to, r->host};
  cuda->stream_wait(env, r->stream);
  if (r->capture != NULL) cuda->capture_delete(env, r->capture);
  if (r->communicator != NULL) kind->close(env, r->communicator);
  for (int k = 0; k < 3; k++)
    cuda->memory_delete(env, r->device, k < 2 ? TN_MEMORY_DEVICE : TN_MEMORY_STAGING, memory[k], ROOM);
  cuda->stream_delete(env, r->stream);
  cuda->stream_delete(env, r->copies);
}

void ranks_end(int32_t come) {
  speaker host = {.env = {.api = &table}};
  ranks_do(come, rank_close);
  for (int32_t i = 0; i < come; i++) cuda->device_close(&host.env, all[i].device);
  cuda->close(&host.env, backend);
  while (n_set > 0) unsetenv(set[--n_set]);
  log_check();
}

/* ---- work ---- */

static void (*doing)(rank *r);

static void *rank_do(void *arg) {
  doing(arg);
  return NULL;
}

static void ranks_begin(int32_t n, void (*body)(rank *r)) {
  doing = body;
  for (int32_t i = 0; i < n; i++) pthread_create(&all[i].thread, NULL, rank_do, &all[i]);
}

void ranks_run_end(int32_t n) {
  for (int32_t i = 0; i < n; i++) pthread_join(all[i].thread, NULL);
}

void ranks_do(int32_t n, void (*body)(rank *r)) {
  ranks_begin(n, body);
  ranks_run_end(n);
}

static tn_status rank_enqueue(void *arg) {
  rank *r = arg;
  return kind->run(&r->said.env, r->communicator, r->call, r->stream);
}

static void rank_run_call(rank *r) { r->status = r->call != NULL ? rank_enqueue(r) : TN_OK; }

static void rank_capture_call(rank *r) {
  if (r->call == NULL) return;
  r->status = cuda->capture(&r->said.env, r->device, r->stream, rank_enqueue, r, &r->capture);
}

static void ranks_give(int32_t n, const tn_collective *const *calls) {
  for (int32_t i = 0; i < n; i++) all[i].call = calls[i];
}

void ranks_run(int32_t n, const tn_collective *const *calls) {
  ranks_give(n, calls);
  ranks_do(n, rank_run_call);
}

void ranks_run_begin(int32_t n, const tn_collective *const *calls) {
  ranks_give(n, calls);
  ranks_begin(n, rank_run_call);
}

void ranks_capture(int32_t n, const tn_collective *const *calls) {
  ranks_give(n, calls);
  ranks_do(n, rank_capture_call);
}

void rank_replay(rank *r) { r->status = cuda->capture_launch(&r->said.env, r->capture, r->stream); }

void rank_wait(rank *r) { r->status = cuda->stream_wait(&r->said.env, r->stream); }

void rank_fails(rank *r, const char *text) {
  tn_status status = TN_OK;
  AWAIT((status = kind->status(&r->said.env, r->communicator)) != TN_OK);
  assert_int_equal(status, TN_ECOMM);
  says(r, text);
}

void rank_enters(rank *r) {
  tn_nccl_rank *opened = r->communicator;
  AWAIT((tn_nccl_follow_word(&opened->follow) & 1) != 0);
}

/* The status takes the time of the wait from its first look on. A stream that is followed comes to the
 * collective behind the beginning of the call. */
void rank_ends_limit(rank *r) {
  tn_nccl_rank *opened = r->communicator;
  if (opened->follow.word != NULL)
    rank_enters(r);
  else
    AWAIT(atomic_load(&opened->entered_s) > 0);
  test_clock_hold();
  OK(kind->status(&r->said.env, r->communicator));
  test_clock_pass(61);
}

int32_t rig_end_limit(const tn_comm_place *place) {
  (void)place;
  test_clock_pass(61);
  return 0;
}
