/* tests/integration/from_c/host_state_test.c: what an application has set in its threads (rounding, traps of
 * floating-point exceptions, denormals, a decimal comma) changes no result, and is as before after each call.
 */
#include <fenv.h>
#include <ftw.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tenon/run.h"
#include "tenon/session.h"
#include "tenon/tensor.h"

/* Six and nine channels: vectors have lanes behind them. */
static const char images[] = "[run]\nname = images\nepochs = 2\nseed = 5\nthreads = 2\nobservers = csv\n"
                             "[data]\nsource = digits\nbatch = 8\nepoch = 48\nworkers = 2\n"
                             "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                             "[data.valid]\nbatch = 10\nepoch = 20\n"
                             "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
                             "    conv1: conv2d(6, kernel=5, stride=2)\n    bn1: batch_norm\n          gelu\n"
                             "    conv2: conv2d(9, kernel=3)\n    bn2: batch_norm\n          relu\n"
                             "          max_pool(2)\n          flatten\n          dropout(0.2)\n"
                             "    fc:    linear(10)\n"
                             "loss = cross_entropy\nmetrics = accuracy\n"
                             "[optimizer]\ntype = adamw\nlr = 0.003\nclip = 1\n";
static const char words[] = "[run]\nname = words\nepochs = 1\nseed = 6\n"
                            "[data]\nsource = random\ntokens = 8\nclasses = 12\nsamples = 40\nbatch = 4\n"
                            "[model]\ninputs = tokens: i32[8]\ntargets = next: i32[8]\nlayers =\n"
                            "    wte:  embedding(12, 16)\n    ln:   layer_norm\n    qkv:  linear(48)\n"
                            "    q, k, v: split(3, axis=-1)\n"
                            "    y:    attention(2, causal=yes) <- q, k, v\n    head: linear(12)\n"
                            "loss = cross_entropy\n"
                            "[optimizer]\ntype = adamw\nlr = 1e-2\nclip = 1\n[schedule]\ntype = cosine\n";

static char folder[64];

/* ---- the state of the thread ---- */

#if defined(__x86_64__)
#include <xmmintrin.h>
static unsigned control(void) { return _mm_getcsr(); }
static void flush_denormals(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
#else
static unsigned control(void) { return 0; }
static void flush_denormals(void) {}
#endif

typedef struct thread_state {
  int rounding, traps, flags;
  unsigned control;
  char point[8];
} thread_state;

static thread_state state_now(void) {
  thread_state s = {fegetround(), fegetexcept(), fetestexcept(FE_ALL_EXCEPT), control(), ""};
  snprintf(s.point, sizeof s.point, "%s", localeconv()->decimal_point);
  return s;
}

static void check_state(const thread_state *before, const char *call) {
  thread_state now = state_now();
  if (now.rounding == before->rounding && now.traps == before->traps && now.flags == before->flags &&
      now.control == before->control && strcmp(now.point, before->point) == 0)
    return;
  fail_msg("%s: rounding %x, traps %x, flags %x, control %x, point %s; before %x, %x, %x, %x, %s", call,
           now.rounding, now.traps, now.flags, now.control, now.point, before->rounding, before->traps,
           before->flags, before->control, before->point);
}

/* A call that succeeds and leaves the state as it was. */
#define OK(handle, call)                                                                                     \
  do {                                                                                                       \
    thread_state before_ = state_now();                                                                      \
    tn_status status_ = (call);                                                                              \
    check_state(&before_, #call);                                                                            \
    if (status_ != TN_OK) fail_msg("%s: %s", #call, tn_error_text(handle));                                  \
  } while (0)
#define KEEPS(call)                                                                                          \
  do {                                                                                                       \
    thread_state before_ = state_now();                                                                      \
    call;                                                                                                    \
    check_state(&before_, #call);                                                                            \
  } while (0)

static void set_traps(void) { feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW); }
static void set_rounding(void) { fesetround(FE_UPWARD); }
static void set_all(void) {
  set_rounding();
  flush_denormals();
  set_traps();
}

static void reset(void) { fesetenv(FE_DFL_ENV); }

/* ---- what a host does ---- */

enum { TINY = 4, TOKENS = 12 };

typedef struct outcome {
  uint64_t weights, predictions, metrics;
  char tokens[8 * TOKENS];
  float tiny[TINY]; /* denormal products */
  float scores[10];
  char lr[24];
} outcome;

static uint64_t hash_bytes(const char *bytes, size_t n) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
  return hash;
}

static char *read_file(const char *path, size_t *n) {
  FILE *file = fopen(path, "re");
  if (file == NULL) fail_msg("%s is not there", path);
  char *bytes = malloc((1 << 20) + 1);
  assert_non_null(bytes);
  *n = fread(bytes, 1, 1 << 20, file);
  bytes[*n] = '\0';
  fclose(file);
  return bytes;
}

static uint64_t hash_file(const char *path) {
  size_t n;
  char *bytes = read_file(path, &n);
  uint64_t hash = hash_bytes(bytes, n);
  free(bytes);
  return hash;
}

static tn_run *open_run(tn_context *context, const char *name, const char *backend, const char *where,
                        const char *weights) {
  char path[128], use[64], output[160];
  tn_run *run = NULL;
  snprintf(path, sizeof path, "%s/%s.ini", folder, name);
  snprintf(use, sizeof use, "backend.use=%s", backend);
  snprintf(output, sizeof output, "%s/%s", folder, where);
  const char *set[] = {use};
  const tn_run_options options = {
      .struct_size = sizeof options, .set = set, .n_set = 1, .output = output, .weights = weights};
  OK(context, tn_run_open(context, path, &options, &run));
  return run;
}

/* Losses and metrics of the lines, behind the columns of time. */
static uint64_t hash_metrics(const char *path) {
  size_t n;
  uint64_t hash = 0;
  char *text = read_file(path, &n), *rest = text, *line;
  int columns = 0, lines = 0;
  while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
    int commas = 0;
    for (const char *c = line; *c != '\0'; c++) commas += *c == ',';
    if (lines++ == 0) columns = commas;
    if (commas != columns) fail_msg("%s: '%s' has %d commas, expected %d", path, line, commas, columns);
    hash = hash * 31 + (uint64_t)commas;
  }
  assert_true(lines > 2);
  free(text);
  return hash;
}

static void train_images(tn_context *context, const char *backend, const char *where, outcome *o) {
  char path[224], *json = NULL, *ini = NULL;
  tn_run *run = open_run(context, "images", backend, where, NULL);
  OK(run, tn_run_resolved_config(run, &ini));
  snprintf(o->lr, sizeof o->lr, "%.10s", strstr(ini, "\nlr = ") + 6);
  tn_string_free(run, ini);
  OK(run, tn_run_train(run, &json));
  tn_string_free(run, json);
  KEEPS(tn_run_close(run));
  snprintf(path, sizeof path, "%s/%s/images/checkpoints/last/optimizer.safetensors", folder, where);
  o->weights = hash_file(path);
  snprintf(path, sizeof path, "%s/%s/images/checkpoints/last/model.safetensors", folder, where);
  o->weights = o->weights * 31 + hash_file(path);
  snprintf(path, sizeof path, "%s/%s/images/metrics.csv", folder, where);
  o->metrics = hash_metrics(path);
}

/* Rows of the model's input. */
static void write_rows(const char *path) {
  enum { ROWS = 5, PIXELS = 28 * 28, HEADER = 118 };
  char header[10 + HEADER + 1];
  static float rows[ROWS * PIXELS];
  for (int i = 0; i < ROWS * PIXELS; i++) rows[i] = (float)(i % 13 - 6) * 0.25f; /* exact */
  snprintf(header, sizeof header, "\x93NUMPY\1%c%c%c%-117s\n", 'x', HEADER, 'x',
           "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 1, 28, 28), }");
  header[7] = header[9] = 0;
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  assert_int_equal(fwrite(header, 1, 10 + HEADER, file), 10 + HEADER);
  assert_int_equal(fwrite(rows, sizeof *rows, ROWS * PIXELS, file), ROWS * PIXELS);
  fclose(file);
}

static void predict_images(tn_context *context, const char *backend, const char *where, outcome *o) {
  char given[160], path[224], rows[224], *json = NULL;
  snprintf(rows, sizeof rows, "%s/rows.npy", folder);
  write_rows(rows);
  snprintf(given, sizeof given, "%s/%s/images", folder, where);
  snprintf(path, sizeof path, "%s/%s.npy", folder, where);
  tn_run *run = open_run(context, "images", backend, where, given);
  const char *const inputs[] = {rows};
  const tn_predict_options options = {
      .struct_size = sizeof options, .inputs = inputs, .n_inputs = 1, .output = path};
  OK(run, tn_run_predict(run, &options, &json));
  assert_non_null(strstr(json, "0."));
  tn_string_free(run, json);
  KEEPS(tn_run_close(run));
  o->predictions = hash_file(path);
}

static int32_t take_token(void *user, const char *text, size_t bytes) {
  outcome *o = user;
  size_t n = strlen(o->tokens);
  snprintf(o->tokens + n, sizeof o->tokens - n, "%.*s", (int)bytes, text);
  return 0;
}

static void generate_words(tn_context *context, const char *backend, const char *where, outcome *o) {
  const int32_t prompt[] = {3, 1, 4};
  char *json = NULL;
  tn_run *run = open_run(context, "words", backend, where, NULL);
  OK(run, tn_run_train(run, &json));
  tn_string_free(run, json);
  const tn_generate_options options = {.struct_size = sizeof options,
                                       .tokens = prompt,
                                       .n_tokens = 3,
                                       .count = TOKENS,
                                       .temperature = 1.3,
                                       .top_p = 0.9,
                                       .seed = 11,
                                       .write = take_token,
                                       .user = o};
  OK(run, tn_run_generate(run, &options, &json));
  tn_string_free(run, json);
  KEEPS(tn_run_close(run));
}

static void infer_image(tn_context *context, const char *backend, const char *where, outcome *o) {
  static float image[28 * 28];
  tn_session *session = NULL;
  for (int i = 0; i < 28 * 28; i++) image[i] = (float)(i % 7) * 0.125f;
  tn_run *run = open_run(context, "images", backend, where, NULL);
  OK(run, tn_session_open(run, NULL, &session));
  OK(session, tn_session_bind(session, "image", image, sizeof image));
  OK(session, tn_session_bind(session, "output", o->scores, sizeof o->scores));
  OK(session, tn_session_infer(session, 1));
  KEEPS(tn_session_close(session));
  KEEPS(tn_run_close(run));
}

/* Products below the smallest normal number. */
static void multiply_tiny(tn_context *context, const char *backend, outcome *o) {
  static const float a[TINY] = {3e-30f, 1e-25f, -2e-28f, 1.5f}, b[TINY] = {2e-12f, 1e-15f, 3e-13f, 2.0f};
  const tn_type type = {TN_F32, 1, {TINY}};
  tn_device *device = NULL;
  tn_tensor *in[2] = {NULL}, *out = NULL;
  OK(context, tn_device_open(context, backend, 0, "threads = 2", &device));
  for (int i = 0; i < 2; i++) {
    OK(device, tn_tensor_new(device, &type, &in[i]));
    OK(device, tn_tensor_write(in[i], i == 0 ? a : b, sizeof a));
  }
  OK(device, tn_apply(device, "mul", in, 2, &out, 1));
  OK(device, tn_tensor_read(out, o->tiny, sizeof o->tiny));
  for (int i = 0; i < 2; i++) KEEPS(tn_tensor_delete(in[i]));
  KEEPS(tn_tensor_delete(out));
  KEEPS(tn_device_close(device));
}

static void work(const char *backend, const char *where, outcome *o) {
  tn_context *context = NULL;
  memset(o, 0, sizeof *o);
  OK(NULL, tn_context_open(NULL, &context));
  train_images(context, backend, where, o);
  predict_images(context, backend, where, o);
  infer_image(context, backend, where, o);
  generate_words(context, backend, where, o);
  multiply_tiny(context, backend, o);
  KEEPS(tn_context_close(context));
}

static void compare(const char *backend, const char *host, const outcome *a, const outcome *b) {
  if (a->weights != b->weights) fail_msg("%s, %s: other weights", backend, host);
  if (a->predictions != b->predictions) fail_msg("%s, %s: other predictions", backend, host);
  if (memcmp(a->scores, b->scores, sizeof a->scores) != 0) fail_msg("%s, %s: other scores", backend, host);
  if (strcmp(a->tokens, b->tokens) != 0) fail_msg("%s, %s: tokens %s", backend, host, b->tokens);
  if (memcmp(a->tiny, b->tiny, sizeof a->tiny) != 0) fail_msg("%s, %s: other denormals", backend, host);
  if (strcmp(a->lr, b->lr) != 0) fail_msg("%s, %s: lr %s", backend, host, b->lr);
  if (a->metrics != b->metrics) fail_msg("%s, %s: other lines of metrics", backend, host);
}

/* ---- floating-point environments ---- */

static void hosts_of(const char *backend) {
  static const struct {
    const char *name;
    void (*set)(void);
  } hosts[] = {
      {"traps", set_traps}, {"upward", set_rounding}, {"flushed", flush_denormals}, {"all", set_all}};
  char where[64];
  outcome usual, other;
  reset();
  snprintf(where, sizeof where, "%s-usual", backend);
  work(backend, where, &usual);
  for (int i = 0; i < TINY; i++) assert_true(usual.tiny[i] != 0);
  assert_int_equal(fpclassify(usual.tiny[0]), FP_SUBNORMAL);
  for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
    snprintf(where, sizeof where, "%s-%s", backend, hosts[i].name);
    hosts[i].set();
    work(backend, where, &other);
    reset();
    compare(backend, hosts[i].name, &usual, &other);
  }
}

static void cpu_gives_the_same_bits(void **state) {
  (void)state;
  hosts_of("cpu");
}

static void sim_gives_the_same_bits(void **state) {
  (void)state;
  hosts_of("sim");
}

static void onednn_gives_the_same_bits(void **state) {
  (void)state;
#ifdef HAS_ONEDNN
  hosts_of("onednn");
#else
  skip();
#endif
}

/* ---- threads of the application's own parallel regions, which oneDNN uses as well ---- */

#ifdef HAS_ONEDNN
#include <omp.h>

enum { TEAM = 2 };

static void set_in_team(void (*set)(void)) {
#pragma omp parallel num_threads(TEAM)
  set();
}

/* The threads that have the environment of set_all. */
static int count_in_team(void) {
  int n = 0;
#pragma omp parallel num_threads(TEAM) reduction(+ : n)
  n += fegetround() == FE_UPWARD && fegetexcept() == (FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  return n;
}

static void threads_of_openmp_give_the_same_bits(void **state) {
  (void)state;
  outcome usual, other;
  reset();
  set_in_team(reset);
  omp_set_num_threads(TEAM + 1);
  work("onednn", "team-usual", &usual);
  set_in_team(set_all);
  work("onednn", "team-all", &other);
  int kept = count_in_team(), threads = omp_get_max_threads();
  set_in_team(reset);
  compare("onednn", "team", &usual, &other);
  assert_int_equal(kept, TEAM);
  assert_int_equal(threads, TEAM + 1);
}
#else
static void threads_of_openmp_give_the_same_bits(void **state) {
  (void)state;
  skip();
}
#endif

static void failures_give_the_environment_back(void **state) {
  (void)state;
  tn_context *context = NULL;
  tn_run *run = NULL;
  set_all();
  thread_state before = state_now();
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  assert_int_equal(tn_run_open(context, "/none.ini", NULL, &run), TN_EIO);
  check_state(&before, "tn_run_open of no file");
  assert_int_equal(tn_run_open(context, NULL, NULL, &run), TN_EINVAL);
  check_state(&before, "tn_run_open of NULL");
  assert_int_equal(tn_run_train(NULL, NULL), TN_EINVAL);
  check_state(&before, "tn_run_train of NULL");
  tn_context_close(context);
  reset();
}

/* ---- a decimal comma ---- */

/* False: the system cannot make a locale. */
static bool set_comma(void) {
  char command[256];
  snprintf(command, sizeof command, "localedef --no-archive -c -i de_DE -f UTF-8 %s/comma >/dev/null 2>&1",
           folder);
  (void)!system(command);
  setenv("LOCPATH", folder, 1);
  return setlocale(LC_ALL, "comma") != NULL && strcmp(localeconv()->decimal_point, ",") == 0;
}

static void a_decimal_comma_changes_nothing(void **state) {
  (void)state;
  outcome usual, other;
  work("cpu", "point", &usual);
  if (!set_comma()) skip();
  work("cpu", "comma", &other);
  setlocale(LC_ALL, "C");
  compare("cpu", "comma", &usual, &other);
}

/* ---- the folder ---- */

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

static int write_configuration(const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s.ini", folder, name);
  FILE *file = fopen(path, "we");
  return file == NULL || fputs(text, file) < 0 || fclose(file) != 0 ? -1 : 0;
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/tenon-host-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  return write_configuration("images", images) != 0 ? -1 : write_configuration("words", words);
}

static int remove_folder(void **state) {
  (void)state;
  return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_decimal_comma_changes_nothing),
      cmocka_unit_test(failures_give_the_environment_back),
      cmocka_unit_test(cpu_gives_the_same_bits),
      cmocka_unit_test(sim_gives_the_same_bits),
      cmocka_unit_test(onednn_gives_the_same_bits),
      cmocka_unit_test(threads_of_openmp_give_the_same_bits),
  };
  return cmocka_run_group_tests_name("host states", tests, make_folder, remove_folder);
}
