/* tests/integration/from_c/contexts_test.c: contexts that train concurrently in one process, each on a thread
 * of its own, give the results of training alone: the same bits, log and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenon/run.h"

static const char images[] = "[run]\nname = images\nepochs = 2\nseed = 5\nthreads = 2\n"
                             "[data]\nsource = digits\nbatch = 8\nepoch = 48\nworkers = 2\n"
                             "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                             "[data.valid]\nbatch = 10\nepoch = 20\n"
                             "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
                             "    conv1: conv2d(4, kernel=5, stride=2)\n    bn: batch_norm\n          relu\n"
                             "          max_pool(2)\n          flatten\n          dropout(0.2)\n"
                             "    fc:    linear(10)\n"
                             "loss = cross_entropy\nmetrics = accuracy\n"
                             "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";
static const char words[] = "[run]\nname = words\nepochs = 2\nseed = 6\n"
                            "[data]\nsource = random\ntokens = 8\nclasses = 12\nsamples = 40\nbatch = 4\n"
                            "[model]\ninputs = tokens: i32[8]\ntargets = next: i32[8]\nlayers =\n"
                            "    wte:  embedding(12, 16)\n    ln:   layer_norm\n    qkv:  linear(48)\n"
                            "    q, k, v: split(3, axis=-1)\n"
                            "    y:    attention(2, causal=yes) <- q, k, v\n    head: linear(12)\n"
                            "loss = cross_entropy\n"
                            "[optimizer]\ntype = adamw\nlr = 1e-2\nclip = 1\n[schedule]\ntype = cosine\n";
static const char holes[] = "[run]\nname = holes\nepochs = 3\nseed = 7\n"
                            "[plugins]\nload = " HOLES "\n"
                            "[data]\nsource = holes\nbatch = 8\nworkers = 0\n"
                            "[model]\ninputs = image: f32[2, 4, 4]\nlayers =\n"
                            "    conv: conv2d(4, kernel=3)\n          relu\n          flatten\n"
                            "    fc:   linear(3)\n"
                            "loss = cross_entropy\n"
                            "[optimizer]\ntype = adamw\nlr = 0.01\ncheck_finite = yes\n";

/* The training of one thread: a configuration and its overrides. */
typedef struct job {
  const char *name, *text, *set[3];
  int n_set;
} job;

enum { JOBS = 4 };
static const job jobs[JOBS] = {
    {"images", images, {"backend.use=cpu"}, 1},
    {"words", words, {"backend.use=sim", "backend.sim.seed=9"}, 2},
    {"holes", holes, {"backend.use=sim,cpu", "backend.sim.lacks=matmul", "backend.fallback=allow"}, 3},
    {"images", images, {"run.name=narrow", "precision.policy=fp16", "backend.use=sim"}, 3},
};

static char folder[64];
static pthread_barrier_t together;

/* ---- an application's memory and log ---- */

enum { MOST_LINES = 200, LINE = 400 };
typedef struct ledger {
  atomic_llong live, asked;
  pthread_mutex_t lock;
  int lines;
  char line[MOST_LINES][LINE];
} ledger;

static void *counted(void *user, void *block, size_t bytes) {
  ledger *l = user;
  if (bytes == 0) {
    if (block) atomic_fetch_sub(&l->live, 1);
    free(block);
    return NULL;
  }
  void *grown = realloc(block, bytes);
  atomic_fetch_add(&l->asked, 1);
  if (!block && grown) atomic_fetch_add(&l->live, 1);
  return grown;
}

static void noted(void *user, int32_t level, const char *line) {
  ledger *l = user;
  (void)level;
  pthread_mutex_lock(&l->lock);
  if (l->lines < MOST_LINES) snprintf(l->line[l->lines], LINE, "%s", line);
  l->lines++;
  pthread_mutex_unlock(&l->lock);
}

/* ---- one training ---- */

typedef struct training {
  const job *job;
  char output[160]; /* its own folder */
  int in_concurrent;
  tn_status status;
  char text[512];
  ledger *ledger;
} training;

static void keep(training *t, tn_status status, const void *handle) {
  t->status = status;
  snprintf(t->text, sizeof t->text, "%s", status != TN_OK ? tn_error_text(handle) : "");
}

static void train_in(training *t, tn_context *context) {
  char file[200], *json = NULL;
  tn_run *run = NULL;
  snprintf(file, sizeof file, "%s/%s.ini", folder, t->job->name);
  const tn_run_options options = {
      .struct_size = sizeof options, .set = t->job->set, .n_set = t->job->n_set, .output = t->output};
  keep(t, tn_run_open(context, file, &options, &run), context);
  if (t->status != TN_OK) return;
  keep(t, tn_run_train(run, &json), run);
  if (json) tn_string_free(run, json);
  tn_run_close(run);
}

static void *train(void *argument) {
  training *t = argument;
  tn_context *context = NULL;
  const tn_context_options options = {.struct_size = sizeof options,
                                      .realloc = counted,
                                      .realloc_user = t->ledger,
                                      .log = noted,
                                      .log_user = t->ledger,
                                      .log_level = TN_LOG_DEBUG};
  if (t->in_concurrent) pthread_barrier_wait(&together);
  keep(t, tn_context_open(&options, &context), context);
  if (t->status == TN_OK) train_in(t, context);
  tn_context_close(context);
  return NULL;
}

static void begin(training *t, int which, const char *where, int in_concurrent) {
  *t = (training){.job = &jobs[which], .in_concurrent = in_concurrent, .ledger = calloc(1, sizeof(ledger))};
  assert_non_null(t->ledger);
  pthread_mutex_init(&t->ledger->lock, NULL);
  snprintf(t->output, sizeof t->output, "%s/%s-%d", folder, where, which);
}

/* ---- comparing ---- */

static char *read_all(const char *path, size_t *n) {
  FILE *file = fopen(path, "r");
  if (!file) fail_msg("%s is not there", path);
  char *bytes = malloc(1 << 20);
  assert_non_null(bytes);
  *n = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

static void same_file(const training *a, const training *b, const char *file) {
  char path[2][320];
  const char *name = strcmp(a->job->set[0], "run.name=narrow") == 0 ? "narrow" : a->job->name;
  size_t n[2];
  snprintf(path[0], sizeof path[0], "%s/%s/%s", a->output, name, file);
  snprintf(path[1], sizeof path[1], "%s/%s/%s", b->output, name, file);
  char *x = read_all(path[0], &n[0]), *y = read_all(path[1], &n[1]);
  if (n[0] != n[1] || memcmp(x, y, n[0]) != 0) fail_msg("%s and %s differ", path[0], path[1]);
  free(x);
  free(y);
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

/* Numbers in the log, such as the work under way, differ between runs. */
static void drop_numbers(char *line) {
  char *to = line;
  for (const char *c = line; *c; c++)
    if (*c < '0' || *c > '9') *to++ = *c;
  *to = '\0';
}

/* Removes the folder's name from the lines and sorts them, so that they do not depend on threads. */
static void normalize_lines(training *t) {
  ledger *l = t->ledger;
  assert_in_range(l->lines, 0, MOST_LINES);
  for (int i = 0; i < l->lines; i++) {
    char *at = strstr(l->line[i], t->output);
    if (at) memmove(at, at + strlen(t->output), strlen(at + strlen(t->output)) + 1);
    drop_numbers(l->line[i]);
  }
  qsort(l->line, (size_t)l->lines, LINE, by_text);
}

static void same_lines(training *a, training *b) {
  normalize_lines(a);
  normalize_lines(b);
  if (a->ledger->lines != b->ledger->lines)
    fail_msg("%s logs %d lines alone and %d concurrently", a->output, a->ledger->lines, b->ledger->lines);
  for (int i = 0; i < a->ledger->lines; i++) assert_string_equal(a->ledger->line[i], b->ledger->line[i]);
}

static void end(training *t) {
  if (t->status != TN_OK) fail_msg("%s: %s", t->output, t->text);
  assert_true(atomic_load(&t->ledger->asked) > 1000);
  assert_int_equal(atomic_load(&t->ledger->live), 0);
}

static void discard(training *t) {
  pthread_mutex_destroy(&t->ledger->lock);
  free(t->ledger);
}

static void compare(int n, const char *where) {
  training alone[JOBS], concurrent[JOBS];
  pthread_t threads[JOBS];
  char apart[64];
  snprintf(apart, sizeof apart, "%s-alone", where);
  for (int i = 0; i < n; i++) {
    begin(&alone[i], i, apart, 0);
    train(&alone[i]);
    end(&alone[i]);
  }
  pthread_barrier_init(&together, NULL, (unsigned)n);
  for (int i = 0; i < n; i++) begin(&concurrent[i], i, where, 1);
  for (int i = 0; i < n; i++) assert_int_equal(pthread_create(&threads[i], NULL, train, &concurrent[i]), 0);
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&together);
  for (int i = 0; i < n; i++) {
    end(&concurrent[i]);
    same_file(&alone[i], &concurrent[i], "checkpoints/last/model.safetensors");
    same_file(&alone[i], &concurrent[i], "checkpoints/last/optimizer.safetensors");
    same_file(&alone[i], &concurrent[i], "plan.json");
    same_lines(&alone[i], &concurrent[i]);
    discard(&alone[i]);
    discard(&concurrent[i]);
  }
}

static void two_contexts_at_once_give_the_results_of_each_alone(void **state) {
  (void)state;
  compare(2, "two");
}

static void four_contexts_at_once_give_the_results_of_each_alone(void **state) {
  (void)state;
  compare(4, "four");
}

/* A failure in one context is reported there and in no other. */
static void a_failure_stays_in_its_context(void **state) {
  (void)state;
  static const job broken = {"images", images, {"model.loss=nonsense"}, 1};
  training t[2];
  pthread_t threads[2];
  begin(&t[0], 0, "fine", 1);
  begin(&t[1], 0, "broken", 1);
  t[1].job = &broken;
  pthread_barrier_init(&together, NULL, 2);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, train, &t[i]), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&together);
  end(&t[0]);
  assert_int_equal(t[1].status, TN_EINVAL);
  assert_non_null(strstr(t[1].text, "nonsense"));
  assert_int_equal(atomic_load(&t[1].ledger->live), 0);
  for (int i = 0; i < t[0].ledger->lines; i++) assert_null(strstr(t[0].ledger->line[i], "nonsense"));
  for (int i = 0; i < 2; i++) discard(&t[i]);
}

/* ---- the folder ---- */

/* ---- children ---- */

static tn_status open_locked(tn_context *context, int epochs, const char *resume, tn_run **run) {
  char path[160], output[160], count[32];
  snprintf(path, sizeof path, "%s/words.ini", folder);
  snprintf(output, sizeof output, "run.output=%s/locked", folder);
  snprintf(count, sizeof count, "run.epochs=%d", epochs);
  const char *set[] = {output, count};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 2, .resume = resume};
  return tn_run_open(context, path, &options, run);
}

/* In the middle of the training: the child has the lock's open file. */
static void *fork_child(void *to) {
  char lock[160];
  struct stat info;
  snprintf(lock, sizeof lock, "%s/locked/words/.lock", folder);
  while (stat(lock, &info) != 0 || info.st_size == 0) usleep(200); /* until it is signed: it is held */
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  *(pid_t *)to = child;
  return NULL;
}

static void train_locked(tn_context *context, int epochs, const char *resume) {
  tn_run *run;
  char *json = NULL;
  assert_int_equal(open_locked(context, epochs, resume, &run), TN_OK);
  tn_status status = tn_run_train(run, &json);
  if (status != TN_OK) fail_msg("%s", tn_error_text(run));
  tn_string_free(run, json);
  tn_run_close(run);
}

/* As of multiprocessing: it lives on when the run is closed. */
static void a_forked_child_does_not_keep_the_lock(void **state) {
  (void)state;
  tn_context *context;
  pthread_t thread;
  pid_t child = -1;
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  assert_int_equal(pthread_create(&thread, NULL, fork_child, &child), 0);
  train_locked(context, 200, NULL);
  pthread_join(thread, NULL);
  assert_true(child > 0);
  train_locked(context, 201, "auto");
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  tn_context_close(context);
}

/* The request comes before the call: nothing is compiled, and no folder is made. */
static void a_stop_before_the_training_ends_it(void **state) {
  (void)state;
  tn_context *context;
  tn_run *run;
  char *json = NULL, path[192];
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  assert_int_equal(open_locked(context, 1, NULL, &run), TN_OK);
  tn_run_stop(run);
  assert_int_equal(tn_run_train(run, &json), TN_ESTOPPED);
  assert_string_equal(tn_error_text(run), "stopped; nothing was saved");
  assert_null(json);
  snprintf(path, sizeof path, "%s/locked/words-2", folder);
  assert_int_not_equal(access(path, F_OK), 0);
  tn_run_close(run);
  tn_context_close(context);
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

static int write_configurations(void **state) {
  (void)state;
  const char *root = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/tenon-contexts-XXXXXX", root && strlen(root) < 32 ? root : "/tmp");
  if (!mkdtemp(folder)) return -1;
  for (int i = 0; i < JOBS; i++) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s.ini", folder, jobs[i].name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(jobs[i].text, file) < 0 || fclose(file) != 0) return -1;
  }
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_contexts_at_once_give_the_results_of_each_alone),
      cmocka_unit_test(four_contexts_at_once_give_the_results_of_each_alone),
      cmocka_unit_test(a_failure_stays_in_its_context),
      cmocka_unit_test(a_forked_child_does_not_keep_the_lock),
      cmocka_unit_test(a_stop_before_the_training_ends_it),
  };
  return cmocka_run_group_tests_name("contexts", tests, write_configurations, remove_folder);
}
