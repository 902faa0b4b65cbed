/* disturb TENON [COUNT [SEED [AT_ONCE]]]: trainings by four processes, of which one is killed, stopped,
 * delayed, asked to stop or has a thread that hangs (../distributed/stuck.c) at a moment drawn from the seed:
 * at the start, between two steps, while a checkpoint is written, at the end. After each of the COUNT
 * disturbances (200) the process must be named and all have to end within 30 s; the training goes on from its
 * last checkpoint. At its end, weights, optimizer states and metrics must be those of an undisturbed
 * training. AT_ONCE (3) trainings run side by side, since most of the time is spent on waiting for a process
 * that is stopped. COUNT below 10 leaves out the disturbances that take 20 s. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "tally.h"
#include "tests/integration/faults/victim.h"
#include "backends/shared/clock.h"

enum { STOPPED = 75, FAILED = 77 }; /* exit codes */

static const double LIMIT_S = 30, /* for a name, and for the end of all processes */
    GIVE_UP_S = 90, POLL_S = 0.004;

/* A build whose plugins are inside of it loads no others. */
#ifdef STUCK
#define SCHEDULE "[schedule]\ntype = stuck\nwarmup = 3\n[plugins]\nload = " STUCK "\n"
enum { HANGS = 8 };
#else
#define SCHEDULE "[schedule]\ntype = cosine\nwarmup = 3\n"
enum { HANGS = 0 };
#endif

static const char configuration[] =
    "[run]\nname = victim\nepochs = %d\nseed = 11\nsave_every = 5\nthreads = 1\n"
    "[data]\nsource = digits\nbatch = 16\nepoch = 480\ntransforms = to_float, normalize(mean=0.13, "
    "std=0.31)\n"
    "[data.valid]\nbatch = 32\nepoch = 64\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
    "    conv: conv2d(4, kernel=5, stride=4, padding=2)\n          %s\n          relu\n          flatten\n"
    "          %s\n          dropout(0.2)\n    fc1:  linear(128)\n          relu\n    fc2:  linear(10)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = adamw\nlr = 0.003\nclip = 1\n" SCHEDULE "[backend]\nautotune = no\n";

static const group_variant variants[] = {
    {"tcp, cpu", "plain.ini", {"backend.use=cpu", "distributed.communicator=tcp", "data.workers=0"}},
    {"tcp, onednn, batch_norm",
     "victim.ini",
     {"backend.use=onednn", "distributed.communicator=tcp", "data.workers=3"},
     .averages = true},
    {"tcp, cpu, sharded",
     "plain.ini",
     {"backend.use=cpu", "distributed.communicator=tcp", "distributed.shard=optimizer", "data.workers=1"}},
    {"mpi, cpu",
     "plain.ini",
     {"backend.use=cpu", "distributed.communicator=mpi", "data.workers=2", "distributed.timeout=22s"},
     .mpi = true},
};
enum { VARIANTS = sizeof variants / sizeof *variants };
static int n_variants = VARIANTS; /* without mpirun one less */

/* Only disturbances that take no time, on the first variant: the form for a suite. */
static bool is_short;

/* ---- kinds and moments ---- */

static const int weights[KINDS] = {[KILL_ONE] = 56, [KILL_TWO] = 10,      [KILL_STOP] = 8,    [STOP] = 30,
                                   [STOP_LONG] = 6, [HANG] = HANGS,       [PAUSE] = 36,       [ASK_TERM] = 18,
                                   [ASK_USR1] = 18, [LAUNCHER_TERM] = 10, [LAUNCHER_KILL] = 8},
                 short_weights[KINDS] = {[KILL_ONE] = 1, [PAUSE] = 1, [ASK_USR1] = 1};

/* Kinds in the shares of the weights, in an order drawn from the seed. */
static int *draw_kinds(int count) {
  const int *share = is_short ? short_weights : weights;
  int *kinds = malloc(sizeof *kinds * (size_t)(count + 1)), all = 0, kind = 0, passed;
  if (kinds == NULL) victim_die("out of memory");
  for (int k = 0; k < KINDS; k++) all += share[k];
  passed = share[0];
  for (int i = 0; i < count; i++) {
    while ((2 * i + 1) * all >= 2 * count * passed) passed += share[++kind];
    kinds[i] = kind;
  }
  for (int i = count - 1; i > 0; i--) {
    int j = (int)(victim_draw() % (uint64_t)(i + 1)), other = kinds[i];
    kinds[i] = kinds[j];
    kinds[j] = other;
  }
  return kinds;
}

static double draw_between(double from, double to) {
  return from + (to - from) * (double)(victim_draw() % 1000000) / 1e6;
}

static double whole_s, start_s; /* of an undisturbed training; until its first step */
static size_t whole_bytes;      /* of its metrics.jsonl */

/* False: the training has ended before. */
static bool await_bytes(group *g, size_t bytes) {
  while (group_file_bytes(g, "metrics.jsonl") < bytes) {
    if (group_has_ended(g) || group_count(g) < GROUP_SIZE) return false;
    victim_sleep_s(POLL_S);
  }
  return true;
}

static bool await_writing(group *g) {
  double from = tn_monotonic_s();
  while (tn_monotonic_s() - from < 2) {
    if (group_file_bytes(g, "checkpoints/last.new") > 0) return true;
    victim_sleep_s(0.0003);
  }
  return false;
}

static int draw_phase(void) {
  static const int phases[] = {AT_START, AT_START, AT_TRAINING, AT_TRAINING, AT_WRITING, AT_WRITING, AT_END};
  return phases[victim_draw() % 7];
}

/* A thread that hangs is known to do so when all programs have run in some steps: after two epochs. */
static const size_t HANG_BYTES = 12000;

/* Waits for the moment of the phase, which becomes the one that it is. False: the training has ended before.
 */
static bool await_moment(group *g, int kind, int *phase) {
  size_t now = group_file_bytes(g, "metrics.jsonl");
  if (kind == HANG && !await_bytes(g, now += HANG_BYTES)) return false;
  if (kind == HANG && *phase == AT_START) *phase = AT_TRAINING;
  double share = *phase == AT_END ? 0.98 : draw_between(0, 0.5);
  size_t target = *phase == AT_END ? (size_t)(0.98 * (double)whole_bytes)
                                   : now + 400 + (size_t)(share * fmax(0, (double)whole_bytes - (double)now));
  if (*phase == AT_START) {
    victim_sleep_s(draw_between(0, 1.2 * start_s));
    return !group_has_ended(g);
  }
  if (!await_bytes(g, target)) return false;
  if (*phase == AT_WRITING && !await_writing(g)) *phase = AT_TRAINING;
  if (*phase == AT_TRAINING) victim_sleep_s(draw_between(0, 0.02));
  if (*phase == AT_END) victim_sleep_s(draw_between(0, 0.3));
  return !group_has_ended(g);
}

/* ---- names in messages ---- */

typedef struct culprits {
  int n, numbers[GROUP_SIZE];
  pid_t pids[GROUP_SIZE];
} culprits;

static bool is_culprit(const culprits *c, int number, int pid) {
  for (int i = 0; i < c->n; i++)
    if (c->numbers[i] == number && (pid == 0 || c->pids[i] == pid)) return true;
  return false;
}

/* The process that the text at `at` names, and its id, or 0 where it has none. */
static bool read_name(const char *at, int *number, int *pid) {
  *pid = 0;
  if (sscanf(at, "process %d, id %d on host", number, pid) == 2) return true;
  if (sscanf(at, "process %d (id %d", number, pid) == 2) return true;
  if (sscanf(at, "process %d on host %*s (process id %d)", number, pid) == 2) return true;
  if (sscanf(at, "process rank %d with PID %d on node", number, pid) == 2) return true;
  int end = 0;
  *pid = 0;
  if (sscanf(at, "process %d was not found%n", number, &end) == 1 && end > 0) return true;
  if (sscanf(at, "process %d on host %*s does not say%n", number, &end) == 1 && end > 0) return true;
  if (sscanf(at, "process %d on host %*s has ended%n", number, &end) == 1 && end > 0) return true;
  if (sscanf(at, "processes, %d did not come%n", number, &end) == 1 && end > 0) return true;
  return sscanf(at, "processes, %d, %*d did not come%n", number, &end) == 1 && end > 0;
}

/* "rank 1 (process 1, id 8124 on host b): tcp: rank 3 (10.0.0.2:4001) is gone": rank 1 only says it. */
static bool is_reporter(const char *at, int *number) {
  const char *end = strchr(at, ')');
  return end != NULL && (sscanf(end, "): tcp: rank %d (", number) == 1 ||
                         sscanf(end, "): op %*s tcp: rank %d (", number) == 1);
}

/* Counts the names of the culprits, and of others. */
static void count_names(const char *text, const culprits *c, int *right, int *wrong) {
  *right = *wrong = 0;
  for (const char *at = text; (at = strstr(at, "process")) != NULL; at++) {
    int number, pid;
    if (!read_name(at, &number, &pid)) continue;
    if (is_reporter(at, &number)) pid = 0;
    if (is_culprit(c, number, pid))
      ++*right;
    else
      ++*wrong;
  }
}

/* ---- doing ---- */

static bool is_of_launcher(int kind) { return kind == LAUNCHER_TERM || kind == LAUNCHER_KILL; }

/* Chooses one or two processes; a signal to the launcher is for all, and ends those that have no handler yet.
 */
static void draw_culprits(const group *g, int kind, culprits *c) {
  int first = (int)(victim_draw() % GROUP_SIZE), step = 1 + (int)(victim_draw() % (GROUP_SIZE - 1));
  c->n = is_of_launcher(kind) ? GROUP_SIZE : kind == KILL_TWO || kind == KILL_STOP ? 2 : 1;
  for (int i = 0; i < GROUP_SIZE; i++) {
    c->numbers[i] = c->n == GROUP_SIZE ? i : (first + i * step) % GROUP_SIZE;
    c->pids[i] = g->pids[c->numbers[i]];
  }
}

static void make_stuck(pid_t pid) {
  char path[32];
  snprintf(path, sizeof path, "stuck.%d", (int)pid);
  FILE *file = fopen(path, "w");
  if (file == NULL || fclose(file) != 0) victim_die("%s: %s", path, strerror(errno));
}

/* Sends the signals; returns when the disturbance has begun. */
static void disturb(const group *g, int kind, const culprits *c) {
  static const int signals[KINDS] = {
      [KILL_ONE] = SIGKILL,      [KILL_TWO] = SIGKILL,     [KILL_STOP] = SIGSTOP, [STOP] = SIGSTOP,
      [STOP_LONG] = SIGSTOP,     [PAUSE] = SIGSTOP,        [ASK_TERM] = SIGTERM,  [ASK_USR1] = SIGUSR1,
      [LAUNCHER_TERM] = SIGTERM, [LAUNCHER_KILL] = SIGKILL};
  if (kind == HANG) make_stuck(c->pids[0]);
  if (kind != HANG) kill(is_of_launcher(kind) ? g->launcher : c->pids[0], signals[kind]);
  if (kind == KILL_STOP) victim_sleep_s(draw_between(0, 2));
  if (c->n == 2) kill(c->pids[1], SIGKILL);
}

/* From 0.05 to 15 s, with as many below 0.9 s as above; of a short form, to 0.5 s. */
static double draw_pause(void) { return exp(draw_between(log(0.05), log(is_short ? 0.5 : 15))); }

/* ---- until all have ended ---- */

static void report(const group *g, const disturbance *d, const culprits *c, size_t from, const char *what) {
  char *text = group_words(g, from);
  size_t n = strlen(text);
  printf("miss: %s, phase %d, process %d (id %d), %s: %s\n%s\n", tally_kind(d->kind), d->phase, c->numbers[0],
         (int)c->pids[0], g->variant->name, what, n > 4000 ? text + n - 4000 : text);
  free(text);
}

static bool is_fatal(int kind) { return kind <= HANG; }

/* Measures until the process is named and all have ended. */
static void follow(group *g, disturbance *d, const culprits *c, size_t from, double since_s) {
  double continue_s = d->kind == STOP_LONG ? draw_between(23, 27) : INFINITY, s = 0;
  int right = 0, wrong = 0;
  while (s < GIVE_UP_S && (d->ended_s < 0 || (d->named_s < 0 && is_fatal(d->kind) && s < d->ended_s + 8))) {
    char *text = group_words(g, from);
    s = tn_monotonic_s() - since_s;
    count_names(text, c, &right, &wrong);
    free(text);
    if (d->named_s < 0 && right > 0) d->named_s = s;
    if (d->ended_s < 0 && group_count(g) == 0) d->ended_s = s;
    if (s > continue_s) kill(c->pids[0], SIGCONT);
    if (s > continue_s) continue_s = INFINITY;
    group_has_ended(g);
    victim_sleep_s(POLL_S);
  }
}

static void await_launcher(group *g, double limit_s) {
  double from = tn_monotonic_s();
  while (!group_has_ended(g) && tn_monotonic_s() - from < limit_s) victim_sleep_s(POLL_S);
}

/* Whether a process was ended by the signal that asks it to stop, since it had no handler yet. */
static bool was_ended_by_request(const char *text) {
  return strstr(text, "was ended by signal 1") != NULL || strstr(text, "exited on signal 1") != NULL;
}

static bool code_is_right(const group *g, int kind, const char *text) {
  int code = WIFEXITED(g->status) ? WEXITSTATUS(g->status) : 128 + WTERMSIG(g->status);
  if (kind == LAUNCHER_KILL) return code == 128 + SIGKILL;
  if (!is_fatal(kind) && code == STOPPED) return true;
  if (is_fatal(kind) || was_ended_by_request(text)) return code == FAILED || (g->variant->mpi && code > 128);
  return false;
}

/* Whether a process has not ended that was not disturbed. */
static bool has_bystander(const group *g, const culprits *c) {
  for (int i = 0; i < GROUP_SIZE; i++)
    if (group_is_alive(g->pids[i]) && !is_culprit(c, i, 0)) return true;
  return false;
}

/* Whether the training had ended before the process was stopped: the others end in order when all have left,
 * wait in MPI_Finalize for 10 s, and mpirun complains about the missing end. */
static bool is_behind_end(const group *g, const char *text) {
  char last[4096] = "", path[256];
  snprintf(path, sizeof path, "%s/victim/history.jsonl", g->output);
  FILE *file = fopen(path, "r");
  while (file != NULL && fgets(last, sizeof last, file) != NULL) continue;
  if (file != NULL) fclose(file);
  return g->variant->mpi && WIFEXITED(g->status) && WEXITSTATUS(g->status) == 1 &&
         strstr(text, "exiting improperly") != NULL && strstr(text, "tenon: ") == NULL &&
         strstr(last, "\"status\": \"finished\"") != NULL;
}

static void judge(group *g, disturbance *d, const culprits *c, size_t from) {
  char *text = group_words(g, from);
  int right, wrong;
  count_names(text, c, &right, &wrong);
  bool has_name = d->named_s >= 0 && d->named_s <= LIMIT_S;
  if (is_fatal(d->kind) && !has_name) d->misses |= UNNAMED;
  if (wrong > 0) d->misses |= WRONG_NAME;
  if (d->ended_s < 0 || d->ended_s > LIMIT_S) d->misses |= SLOW;
  bool goes_on = g->restarts && (is_fatal(d->kind) || was_ended_by_request(text)) && !g->variant->mpi;
  if (!goes_on) await_launcher(g, LIMIT_S);
  /* it passes on the messages, and ends a process that is stopped */
  if (!goes_on && !g->ended && g->variant->mpi && !has_bystander(g, c))
    d->misses = (d->misses & WRONG_NAME) | MPIRUN_HANGS;
  else if (!goes_on && g->ended && d->named_s < 0 && is_behind_end(g, text))
    d->misses = MPIRUN_COMPLAINS;
  else if (!goes_on && (!g->ended || !code_is_right(g, d->kind, text)))
    d->misses |= WRONG_CODE;
  char words[96];
  snprintf(words, sizeof words, "named after %.2f s, ended after %.2f s, status %#x, misses %d", d->named_s,
           d->ended_s, g->ended ? (unsigned)g->status : 0, d->misses);
  if (d->misses) report(g, d, c, from, words);
  if (!goes_on && !g->ended) group_kill(g);
  free(text);
}

static bool has_succeeded(const group *g) {
  return g->ended && WIFEXITED(g->status) && WEXITSTATUS(g->status) == 0;
}

/* The run must go on: until it has ended in order, or has come further, or for 3 s. */
static void pass_pause(group *g, disturbance *d, const culprits *c, size_t from) {
  double pause_s = draw_pause(), since = tn_monotonic_s();
  victim_sleep_s(pause_s);
  kill(c->pids[0], SIGCONT);
  size_t bytes = group_file_bytes(g, "metrics.jsonl");
  while (tn_monotonic_s() - since < pause_s + 3 && !group_has_ended(g) && group_count(g) == GROUP_SIZE &&
         group_file_bytes(g, "metrics.jsonl") <= bytes)
    victim_sleep_s(POLL_S);
  char *text = group_words(g, from);
  int right, wrong;
  count_names(text, c, &right, &wrong);
  free(text);
  if (right + wrong > 0 || (g->ended && !has_succeeded(g))) d->misses |= ENDED;
  if (d->misses) report(g, d, c, from, "a pause has ended the run");
}

/* One disturbance of a training that runs. False: it came too late. */
static bool disturb_once(group *g, disturbance *d) {
  culprits c;
  d->named_s = d->ended_s = -1;
  d->misses = 0;
  d->mpi = g->variant->mpi;
  d->phase = draw_phase();
  if (!await_moment(g, d->kind, &d->phase) || group_count(g) < GROUP_SIZE) return false;
  draw_culprits(g, d->kind, &c);
  size_t from = group_words_bytes(g);
  double since = tn_monotonic_s();
  disturb(g, d->kind, &c);
  if (d->kind == PAUSE) {
    pass_pause(g, d, &c, from);
    return true;
  }
  follow(g, d, &c, from, since);
  if (d->named_s < 0) await_launcher(g, 5);
  if (has_succeeded(g) && d->named_s < 0) return false;
  judge(g, d, &c, from);
  return true;
}

/* ---- trainings ---- */

/* A message of a worker: a disturbance, or the end of a training. */
typedef struct message {
  bool is_end, unequal;
  int starts;
  disturbance d;
} message;

static void tell(int pipe, const message *m) {
  if (write(pipe, m, sizeof *m) != sizeof *m) victim_die("pipe: %s", strerror(errno));
}

/* In a child, since victim_compare ends the process. */
static bool is_equal(const group *g) {
  char path[64];
  int status = -1;
  snprintf(path, sizeof path, "%s/victim", g->output);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    char whole[64];
    snprintf(whole, sizeof whole, "whole%d/victim", (int)(g->variant - variants));
    victim_compare(path, whole);
    exit(0);
  }
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Kinds that this worker still has to do; those that do not fit a training wait for the next. */
typedef struct work {
  int *kinds, n;
} work;

/* Disturbances of the launcher are for that of Tenon. A stop that saves averages the statistics of batch_norm
 * over the ranks at a step where they are not averaged otherwise, which changes their last bits. */
static bool kind_fits(int kind, const group_variant *v) {
  bool saves = kind == ASK_TERM || kind == ASK_USR1 || is_of_launcher(kind);
  return !(v->mpi && is_of_launcher(kind)) && !(v->averages && saves);
}

/* The place of the next kind for the variant; -1: none. */
static int next_kind(const work *w, const group_variant *v) {
  for (int i = 0; i < w->n; i++)
    if (kind_fits(w->kinds[i], v)) return i;
  return -1;
}

/* Disturbs one attempt after the other, until the launcher ends. */
static void disturb_launch(group *g, work *w, int pipe, message *m) {
  while (group_find(g)) {
    int at = 0;
    m->starts++;
    bool again = true;
    while (again && (at = next_kind(w, g->variant)) >= 0) {
      m->d = (disturbance){.kind = w->kinds[at]};
      if (!disturb_once(g, &m->d)) break;
      w->kinds[at] = w->kinds[--w->n];
      tell(pipe, m);
      again = m->d.kind == PAUSE && !group_has_ended(g) && group_count(g) == GROUP_SIZE;
    }
    if (at < 0) await_launcher(g, 10 * whole_s + GIVE_UP_S);
  }
}

static void train(group *g, work *w, int pipe) {
  message m = {.is_end = false};
  double from = tn_monotonic_s();
  do {
    group_start(g);
    disturb_launch(g, w, pipe, &m);
    if (!g->ended) printf("miss: the launcher has not ended\n");
    if (!g->ended) group_kill(g);
  } while (!has_succeeded(g) && tn_monotonic_s() - from < 1200);
  m.is_end = true;
  m.unequal = !has_succeeded(g) || !is_equal(g);
  tell(pipe, &m);
  if (!m.unequal) victim_remove(g->output);
}

static void run_worker(const char *tenon, int number, work *w, int pipe) {
  for (int i = 0; w->n > 0; i++) {
    group g = {.tenon = tenon, .variant = &variants[(i + number) % n_variants]};
    g.restarts = !g.variant->mpi && victim_draw() % 2 == 0;
    snprintf(g.output, sizeof g.output, "run%d.%d", number, i);
    snprintf(g.words, sizeof g.words, "words%d.%d", number, i);
    if (next_kind(w, g.variant) >= 0) train(&g, w, pipe);
    fflush(stdout);
  }
}

/* ---- the whole ---- */

static void configure(int epochs) {
  static const char *const norms[2][2] = {{"bn: batch_norm", "identity"}, {"identity", "ln: layer_norm"}},
                           *const files[2] = {"victim.ini", "plain.ini"};
  char text[2048];
  for (int i = 0; i < 2; i++) {
    snprintf(text, sizeof text, configuration, epochs, norms[i][0], norms[i][1]);
    victim_configure(files[i], text);
  }
}

/* Trains once without disturbances for each set of bits. The first gives the times. */
static void train_wholes(const char *tenon) {
  for (int i = 0; i < n_variants; i++) {
    group g = {.tenon = tenon, .variant = &variants[i], .words = "words"};
    snprintf(g.output, sizeof g.output, "whole%d", i);
    double from = tn_monotonic_s();
    group_start(&g);
    while (!group_has_ended(&g) && i == 0 && group_file_bytes(&g, "metrics.jsonl") == 0)
      victim_sleep_s(POLL_S);
    if (i == 0) start_s = tn_monotonic_s() - from;
    await_launcher(&g, 600);
    if (!has_succeeded(&g)) victim_die("an undisturbed training fails: %s", group_words(&g, 0));
    if (i == 0) whole_s = tn_monotonic_s() - from;
    if (i == 0) whole_bytes = group_file_bytes(&g, "metrics.jsonl");
  }
}

static void start_worker(const char *tenon, int number, work *w, uint64_t seed, int pipes[2]) {
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) victim_die("fork: %s", strerror(errno));
  if (child > 0) return;
  close(pipes[0]);
  victim_seed(seed);
  run_worker(tenon, number, w, pipes[1]);
  exit(0);
}

static void collect(int pipe, tally *t, int count) {
  message m;
  t->all = malloc(sizeof *t->all * (size_t)(count + 1));
  if (t->all == NULL) victim_die("out of memory");
  while (read(pipe, &m, sizeof m) == sizeof m) {
    if (!m.is_end && t->n < count) t->all[t->n++] = m.d;
    if (!m.is_end) continue;
    t->trainings++;
    t->unequal += m.unequal;
    t->starts += m.starts;
  }
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  int count = argc > 2 ? atoi(argv[2]) : 200, at_once = argc > 4 ? atoi(argv[4]) : 3, pipes[2];
  is_short = count < 10;
  if (system("command -v mpirun >/dev/null") != 0) n_variants--;
  if (is_short) n_variants = 1;
  uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  char *tenon = realpath(argv[1], NULL);
  tally t = {.n = 0};
  victim_set_up("disturb", argv[1], seed, "cpu");
  configure(is_short ? 6 : 20);
  if (tenon == NULL || pipe(pipes) != 0) victim_die("%s", strerror(errno));
  train_wholes(tenon);
  int *kinds = draw_kinds(count);
  for (int i = 0, from = 0; i < at_once; i++) {
    int to = count * (i + 1) / at_once;
    work w = {kinds + from, to - from};
    start_worker(tenon, i, &w, seed * 1000 + (uint64_t)i, pipes);
    from = to;
  }
  close(pipes[1]);
  collect(pipes[0], &t, count);
  while (wait(NULL) > 0) continue;
  int misses = tally_print(&t) + (t.n < count);
  printf("case %s: %d disturbances, an undisturbed training takes %.2f s\n",
         misses ? "failed: disturb" : "ok", t.n, whole_s);
  if (misses == 0) victim_tear_down();
  free(t.all);
  free(kinds);
  free(tenon);
  return misses != 0;
}
