/* tests/unit/backends/tcp/rig.c: see rig.h. */
#include "tests/unit/backends/tcp/rig.h"

#include <pthread.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

rig_rank *rig;

const tn_tcp_options rig_defaults = {.address = "", .ports = "", .direct = 16 << 10, .buffer = 512 << 10};

/* ---- the host's functions ---- */

const char rig_token[] = "a token";

void rig_prove(const tn_comm_place *place, const void *bytes, uint64_t n, uint8_t proof[32]) {
  unsigned char key[32];
  crypto_generichash(key, sizeof key, place->job, strlen(place->job), NULL, 0);
  crypto_generichash(proof, 32, bytes, n, key, sizeof key);
}

static tn_status rig_say(const void *handle, tn_status code, const char *option, const char *format, ...) {
  rig_rank *r = (rig_rank *)(uintptr_t)handle;
  va_list args;
  (void)option;
  va_start(args, format);
  vsnprintf(r->text, sizeof r->text, format, args);
  va_end(args);
  return code;
}

static void *rig_give(const void *handle, size_t bytes) {
  atomic_fetch_add(&((rig_rank *)(uintptr_t)handle)->allocations, 1);
  return calloc(1, bytes);
}

static void rig_take(const void *handle, void *block) {
  (void)handle;
  free(block);
}

static const tn_api rig_table = {
    .struct_size = sizeof rig_table, .fail = rig_say, .alloc = rig_give, .free = rig_take};

/* ---- ranks ---- */

void rig_start(int32_t ranks, double timeout_s) {
  if (rig == NULL)
    rig = mmap(NULL, RIG_RANKS * sizeof *rig, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(rig != MAP_FAILED && ranks <= RIG_RANKS);
  memset(rig, 0, RIG_RANKS * sizeof *rig);
  for (int32_t i = 0; i < ranks; i++) {
    rig[i].env.api = &rig_table;
    rig[i].options = rig_defaults;
    rig[i].place = (tn_comm_place){.struct_size = sizeof rig[i].place,
                                   .rank = i,
                                   .ranks = ranks,
                                   .process = i,
                                   .processes = ranks,
                                   .address = "",
                                   .timeout_s = timeout_s,
                                   .prove = rig_prove,
                                   .job = rig_token};
  }
  OK(tn_tcp_communicator.identify(&rig[0].env, &rig[0].options, &rig[0].place, &rig[0].identity));
  for (int32_t i = 1; i < ranks; i++) rig[i].identity = rig[0].identity;
}

tn_status rig_open(rig_rank *r) {
  r->calls = 0;
  return tn_tcp_communicator.open(&r->env, &r->options, NULL, &r->place, &r->identity, &r->communicator);
}

void rig_close(rig_rank *r) {
  if (r->communicator != NULL) tn_tcp_communicator.close(&r->env, r->communicator);
  r->communicator = NULL;
}

typedef struct rig_part {
  rig_rank *rank;
  rig_body *body;
} rig_part;

static void *rig_run_part(void *arg) {
  const rig_part *part = arg;
  rig_rank *r = part->rank;
  if (r->delay_ms < 0) return NULL;
  rig_pause_ms(r->delay_ms);
  AWAIT(atomic_load(&r->stage) >= r->opens_at);
  tn_status status = rig_open(r);
  if (status == TN_OK && part->body != NULL)
    part->body(r);
  else if (status != TN_OK && part->body != NULL)
    snprintf(r->wrong, sizeof r->wrong, "open: %s", r->text);
  rig_close(r);
  return NULL;
}

void rig_threads(rig_body *body) {
  pthread_t threads[RIG_RANKS];
  rig_part parts[RIG_RANKS];
  int32_t ranks = rig[0].place.ranks;
  for (int32_t i = 0; i < ranks; i++) {
    parts[i] = (rig_part){&rig[i], body};
    pthread_create(&threads[i], NULL, rig_run_part, &parts[i]);
  }
  for (int32_t i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
  rig_judge();
}

void rig_fork(int32_t first, int32_t last, rig_body *body) {
  for (int32_t i = first; i <= last; i++) {
    pid_t process = fork();
    assert_true(process >= 0);
    if (process == 0) {
      rig_run_part(&(rig_part){&rig[i], body});
      _exit(rig[i].wrong[0] != '\0');
    }
    rig[i].process = process;
  }
}

int rig_join(int32_t rank) {
  int status = 0;
  waitpid(rig[rank].process, &status, 0);
  return status;
}

void rig_processes(rig_body *body) {
  int32_t ranks = rig[0].place.ranks;
  rig_fork(0, ranks - 1, body);
  close(rig[0].identity.listener);
  for (int32_t i = 0; i < ranks; i++) rig_join(i);
  rig_judge();
}

void rig_judge(void) {
  for (int32_t i = 0; i < RIG_RANKS; i++)
    if (rig[i].wrong[0]) fail_msg("rank %d: %s", (int)i, rig[i].wrong);
}

/* ---- collectives ---- */

tn_status rig_call(rig_rank *r, const tn_collective *call) {
  tn_status status = tn_tcp_communicator.run(&r->env, r->communicator, call, NULL);
  if (status != TN_OK) return status;
  return tn_tcp_communicator.await(&r->env, r->communicator, ++r->calls);
}

tn_collective rig_sum(const float *from, float *to, int64_t count) {
  return (tn_collective){.struct_size = sizeof(tn_collective),
                         .kind = TN_ALL_REDUCE,
                         .dtype = TN_F32,
                         .count = count,
                         .from = from,
                         .to = to,
                         .name = "bucket 7"};
}

/* ---- time ---- */

void rig_pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

void rig_await_stage(int32_t rank, int stage) { AWAIT(atomic_load(&rig[rank].stage) >= stage); }
