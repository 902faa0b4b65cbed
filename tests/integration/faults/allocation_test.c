/* Training with memory that runs out: a small configuration is trained again and again while the
 * allocator refuses one request, each time a later one. Nothing may crash, nothing may leak, and the
 * run must say what went wrong; a run that can do without what was refused may finish. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/run.h"

/* Every request up to here is refused in its turn, and then every STRIDE-th. */
enum { EVERY_ONE = 300, STRIDE = 37 };

static const char configuration[] =
    "[run]\nname = starved\nmax_steps = 2\nthreads = 2\nseed = 3\n"
    "[backend]\nuse = cpu\n"
    "[data]\nsource = random\nshape = 1, 6, 6\nclasses = 3\nsamples = 8\nbatch = 4\nworkers = 2\n"
    "transforms = normalize(mean=0.1, std=0.5)\n"
    "[model]\ninputs = image: f32[1, 6, 6]\nlayers =\n"
    "    conv: conv2d(2, kernel=3)\n    bn: batch_norm\n          relu\n          flatten\n"
    "    fc:   linear(3)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = sgd\nlr = 0.1\nmomentum = 0.9\nclip = 1\n"
    "[group.plain]\nmatch = *.bias\nweight_decay = 0\n"
    "[schedule]\ntype = cosine\nwarmup = 1\n";

/* ---- an allocator that refuses one request ---- */

typedef struct scarce {
  atomic_llong asked, live;
  long long refused; /* the number of the request that is refused; 0: none */
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
  if (!block && grown) atomic_fetch_add(&s->live, 1);
  return grown;
}

/* ---- one run ---- */

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

typedef struct outcome {
  tn_status status;
  char text[256];
  long long asked, live;
} outcome;

static void keep(outcome *o, tn_status status, const void *handle) {
  o->status = status;
  snprintf(o->text, sizeof o->text, "%s", handle ? tn_error_text(handle) : "out of memory");
}

static void train_in(tn_context *context, outcome *o) {
  char output[80], *json = NULL;
  tn_run *run = NULL;
  snprintf(output, sizeof output, "%s/runs", folder);
  const tn_run_options options = {.struct_size = sizeof options, .output = output};
  keep(o, tn_run_open(context, file, &options, &run), context);
  if (o->status != TN_OK) return;
  keep(o, tn_run_train(run, &json), run);
  if (json) tn_run_free(run, json);
  tn_run_close(run);
}

/* Opens, trains and closes, with request number `refused` refused. */
static outcome train(long long refused) {
  scarce s = {.refused = refused};
  outcome o = {0};
  tn_context *context = NULL;
  const tn_context_options options = {
      .struct_size = sizeof options, .realloc = scarce_realloc, .realloc_user = &s};
  keep(&o, tn_context_open(&options, &context), context);
  if (o.status == TN_OK) train_in(context, &o);
  tn_context_close(context);
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
  if (!mkdtemp(folder)) return -1;
  snprintf(file, sizeof file, "%s/starved.ini", folder);
  FILE *f = fopen(file, "w");
  if (!f) return -1;
  fputs(configuration, f);
  return fclose(f);
}

static int end(void **state) {
  (void)state;
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void a_run_with_all_its_memory_ends_well(void **state) {
  (void)state;
  outcome o = train(0);
  if (o.status != TN_OK) fail_msg("%s", o.text);
  assert_int_equal(o.live, 0);
  assert_true(o.asked > EVERY_ONE);
}

/* How many of the failures were TN_ENOMEM, and how many were anything else. */
typedef struct tally {
  int starved, other, finished;
} tally;

static void refuse(long long k, tally *t) {
  outcome o = train(k);
  if (o.live != 0) fail_msg("request %lld refused: %lld blocks leak", k, o.live);
  if (o.status != TN_OK && o.text[0] == '\0') fail_msg("request %lld refused: %d, no text", k, o.status);
  if (o.status != TN_OK && o.status != TN_ENOMEM) print_message("request %lld: %d %s\n", k, o.status, o.text);
  t->starved += o.status == TN_ENOMEM;
  t->finished += o.status == TN_OK;
  t->other += o.status != TN_OK && o.status != TN_ENOMEM;
}

static void a_refused_allocation_ends_the_run_and_nothing_else(void **state) {
  (void)state;
  tally t = {0};
  long long all = train(0).asked;
  for (long long k = 1; k <= all; k += k < EVERY_ONE ? 1 : STRIDE) refuse(k, &t);
  print_message("%d out of memory, %d failed otherwise, %d finished\n", t.starved, t.other, t.finished);
  assert_true(t.starved > 9 * (t.other + t.finished));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_with_all_its_memory_ends_well),
      cmocka_unit_test(a_refused_allocation_ends_the_run_and_nothing_else),
  };
  return cmocka_run_group_tests(tests, start, end);
}
