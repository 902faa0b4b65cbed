/* Training while requests for memory are refused: three steps of LeNet are repeated, and each repetition
 * refuses a later request: of the host's memory on the cpu, of the host's on the simulated device, and of
 * that device's. The run must not crash, leak, or damage a file. It must report the failure, unless it can
 * finish without the memory.
 *
 * Without arguments a fixed sample; allocation_test STRIDE [FIRST]: every STRIDE-th request from FIRST on, 1
 * for all of them (`tools/dev faults`). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/run.h"
#include "tests/integration/cli/configs.h"

/* The sample refuses every request up to this number, and then one in so many. */
enum { EVERY_ONE = 40, CPU_STRIDE = 211, SIM_STRIDE = 307 };
static long long stride, first; /* 0: the sample */

static const char configuration[] =
    "[run]\nname = starved\nmax_steps = 3\nthreads = 2\nseed = 3\nsave_every = 1\nobservers = -progress\n"
    "[data]\nsource = digits\nepoch = 6\nbatch = 2\nworkers = 2\n"
    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[data.valid]\nepoch = 2\nbatch = 2\n" LENET "clip = 1\n"
    "[group.plain]\nmatch = *.bias\nweight_decay = 0\n"
    "[schedule]\ntype = cosine\nwarmup = 1\n";

/* ---- an allocator that refuses one request ---- */

typedef struct scarce {
  atomic_llong asked, live;
  long long refused; /* the number of the request that is refused; 0: no request */
} scarce;

static void *scarce_realloc(void *user, void *block, size_t bytes) {
  scarce *s = user;
  if (bytes == 0) {
    if (block) atomic_fetch_sub(&s->live, 1);
    free(block);
    return NULL;
  }
  if (atomic_fetch_add(&s->asked, 1) + 1 == s->refused) return NULL;
  void *grown = realloc(block, bytes);
  if (block == NULL && grown) atomic_fetch_add(&s->live, 1);
  return grown;
}

static char folder[64], file[80];

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

static void remove_runs(void) {
  char path[80];
  snprintf(path, sizeof path, "%s/runs", folder);
  nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- files ---- */

static char *read_all(const char *path, size_t *n) {
  FILE *f = fopen(path, "r");
  if (f == NULL) return NULL;
  char *bytes = malloc(1 << 20);
  assert_non_null(bytes);
  *n = fread(bytes, 1, (1 << 20) - 1, f);
  bytes[*n] = '\0';
  fclose(f);
  return bytes;
}

/* CRC-32C (Castagnoli et al., 1993), as state.json records it for each file. */
static uint32_t crc32c(const char *bytes, size_t n) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < n; i++) {
    crc ^= (unsigned char)bytes[i];
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

/* A checkpoint with a state.json has both other files undamaged. */
static void check_checkpoint(const char *name) {
  static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
  char path[200];
  snprintf(path, sizeof path, "%s/runs/starved/checkpoints/%s/state.json", folder, name);
  json_t *json = json_load_file(path, 0, NULL);
  if (json == NULL && access(path, F_OK) == 0) fail_msg("%s is no JSON", path);
  for (int i = 0; json && i < 2; i++) {
    json_t *told = json_object_get(json_object_get(json, "files"), files[i]);
    size_t n = 0;
    snprintf(path, sizeof path, "%s/runs/starved/checkpoints/%s/%s", folder, name, files[i]);
    char *bytes = read_all(path, &n);
    if (bytes == NULL || json_integer_value(json_object_get(told, "bytes")) != (json_int_t)n ||
        json_integer_value(json_object_get(told, "crc32c")) != (json_int_t)crc32c(bytes, n))
      fail_msg("%s is damaged", path);
    free(bytes);
  }
  json_decref(json);
}

/* Complete lines of JSON. */
static void check_lines(const char *name) {
  char path[200], *at;
  size_t n = 0;
  snprintf(path, sizeof path, "%s/runs/starved/%s", folder, name);
  char *bytes = read_all(path, &n);
  if (bytes == NULL) return;
  if (n > 0 && bytes[n - 1] != '\n') fail_msg("%s ends with half a line", path);
  for (char *line = strtok_r(bytes, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
    json_t *json = json_loads(line, 0, NULL);
    if (json == NULL) fail_msg("%s: %s", path, line);
    json_decref(json);
  }
  free(bytes);
}

static void check_files(void) {
  char path[200];
  check_checkpoint("last");
  check_checkpoint("best");
  check_lines("metrics.jsonl");
  snprintf(path, sizeof path, "%s/runs/starved/plan.json", folder);
  json_t *plan = json_load_file(path, 0, NULL);
  if (plan == NULL && access(path, F_OK) == 0) fail_msg("%s is no JSON", path);
  json_decref(plan);
}

/* ---- one run ---- */

typedef struct outcome {
  tn_status status;
  char text[256];
  long long asked, live;
} outcome;

static void keep(outcome *o, tn_status status, const void *handle) {
  o->status = status;
  snprintf(o->text, sizeof o->text, "%s", handle ? tn_error_text(handle) : "out of memory");
}

static void train_in(tn_context *context, const char *const *set, outcome *o) {
  char output[80], *json = NULL;
  tn_run *run = NULL;
  snprintf(output, sizeof output, "%s/runs", folder);
  const tn_run_options options = {.struct_size = sizeof options, .output = output, .set = set, .n_set = 2};
  keep(o, tn_run_open(context, file, &options, &run), context);
  if (o->status != TN_OK) return;
  keep(o, tn_run_train(run, &json), run);
  if (json) tn_string_free(run, json);
  tn_run_close(run);
}

/* Opens, trains and closes, with request number `refused` of the host's memory refused. */
static outcome train(const char *const *set, long long refused) {
  scarce s = {.refused = refused};
  outcome o = {0};
  tn_context *context = NULL;
  const tn_context_options options = {
      .struct_size = sizeof options, .realloc = scarce_realloc, .realloc_user = &s};
  keep(&o, tn_context_open(&options, &context), context);
  if (o.status == TN_OK) train_in(context, set, &o);
  tn_context_close(context);
  check_files();
  remove_runs();
  o.asked = atomic_load(&s.asked);
  o.live = atomic_load(&s.live);
  return o;
}

/* ---- the test ---- */

static int start(void **state) {
  (void)state;
  const char *root = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/tenon-faults-XXXXXX", root && strlen(root) < 32 ? root : "/tmp");
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(file, sizeof file, "%s/starved.ini", folder);
  FILE *f = fopen(file, "w");
  if (f == NULL) return -1;
  fputs(configuration, f);
  return fclose(f);
}

static int end(void **state) {
  (void)state;
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *const on_cpu[] = {"backend.use=cpu", "run.seed=3"}, *const on_sim[] = {"backend.use=sim",
                                                                                          "run.seed=3"};

static void ends_well(const char *const *set) {
  outcome o = train(set, 0);
  if (o.status != TN_OK) fail_msg("%s", o.text);
  assert_int_equal(o.live, 0);
  assert_true(o.asked > EVERY_ONE);
}

static void a_run_without_refused_requests_finishes(void **state) {
  (void)state;
  ends_well(on_cpu);
  ends_well(on_sim);
}

/* Counts of TN_ENOMEM and of other failures. */
typedef struct tally {
  int starved, other, finished;
} tally;

static void count(const outcome *o, const char *what, long long k, tally *t) {
  if (o->live != 0) fail_msg("%s %lld refused: %lld blocks leak", what, k, o->live);
  if (o->status != TN_OK && o->text[0] == '\0') fail_msg("%s %lld refused: %d, no text", what, k, o->status);
  if (o->status != TN_OK && o->status != TN_ENOMEM)
    print_message("%s %lld: %d %s\n", what, k, o->status, o->text);
  t->starved += o->status == TN_ENOMEM;
  t->finished += o->status == TN_OK;
  t->other += o->status != TN_OK && o->status != TN_ENOMEM;
}

static void sweep(const char *const *set, const char *what, long long sampled) {
  tally t = {0};
  long long all = train(set, 0).asked, step = stride ? stride : sampled;
  for (long long k = first ? first : 1; k <= all; k += !stride && k < EVERY_ONE ? 1 : step) {
    outcome o = train(set, k);
    count(&o, what, k, &t);
  }
  print_message("%s, of %lld: %d out of memory, %d failed otherwise, %d finished\n", what, all, t.starved,
                t.other, t.finished);
  assert_true(t.starved > 9 * (t.other + t.finished));
}

static void a_refused_request_on_the_cpu_ends_the_run_and_nothing_else(void **state) {
  (void)state;
  sweep(on_cpu, "request on the cpu", CPU_STRIDE);
}

static void a_refused_request_beside_a_late_device_ends_the_run_and_nothing_else(void **state) {
  (void)state;
  sweep(on_sim, "request beside sim", SIM_STRIDE);
}

/* The device's requests are few, so all are tried. */
static void refused_memory_of_the_device_ends_the_run_and_nothing_else(void **state) {
  (void)state;
  tally t = {0};
  for (long long k = 1; t.finished == 0; k++) {
    char fail[64];
    snprintf(fail, sizeof fail, "backend.sim.fail=allocation:%lld", k);
    outcome o = train((const char *const[]){"backend.use=sim", fail}, 0);
    count(&o, "memory of the device", k, &t);
    assert_in_range(k, 1, 200);
  }
  print_message("memory of the device: %d out of memory, %d failed otherwise\n", t.starved, t.other);
  assert_true(t.starved > 7);
  assert_int_equal(t.other, 0);
}

int main(int argc, char **argv) {
  stride = argc > 1 ? atoll(argv[1]) : 0;
  first = argc > 2 ? atoll(argv[2]) : 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_without_refused_requests_finishes),
      cmocka_unit_test(a_refused_request_on_the_cpu_ends_the_run_and_nothing_else),
      cmocka_unit_test(a_refused_request_beside_a_late_device_ends_the_run_and_nothing_else),
      cmocka_unit_test(refused_memory_of_the_device_ends_the_run_and_nothing_else),
  };
  return cmocka_run_group_tests(tests, start, end);
}
