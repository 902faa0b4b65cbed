/* tests/integration/faults/victim.c: see victim.h. */
#include "victim.h"
#include "backends/shared/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char configuration[] =
    "[run]\nname = victim\nepochs = 3\nseed = 11\nsave_every = 1\n"
    "[data]\nsource = digits\nbatch = 4\nepoch = 32\ntransforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[data.valid]\nbatch = 8\nepoch = 16\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
    "    conv: conv2d(4, kernel=5, stride=4, padding=2)\n    bn:   batch_norm\n          relu\n"
    "          flatten\n          dropout(0.2)\n    fc1:  linear(256)\n          relu\n    fc2:  linear(10)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = adamw\nlr = 0.003\nclip = 1\n"
    "[schedule]\ntype = cosine\nwarmup = 3\n";

static const char *tenon, *test;
static char folder[64], backend[64];
static uint64_t seed;

/* ---- small things ---- */

void victim_die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("case failed: %s: ", test);
  vprintf(format, args);
  printf("\n  the files are in %s\n", folder);
  va_end(args);
  exit(1);
}

/* Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014. */
uint64_t victim_draw(void) {
  uint64_t z = seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void victim_sleep_s(double seconds) {
  struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) continue;
}

char *victim_read_file(const char *path, size_t *n) {
  FILE *file = fopen(path, "r");
  struct stat info;
  if (file == NULL || fstat(fileno(file), &info) != 0) victim_die("%s: %s", path, strerror(errno));
  char *bytes = malloc((size_t)info.st_size + 1);
  if (bytes == NULL || fread(bytes, 1, (size_t)info.st_size, file) != (size_t)info.st_size)
    victim_die("%s: not read", path);
  fclose(file);
  *n = (size_t)info.st_size;
  bytes[*n] = '\0';
  return bytes;
}

int victim_file_exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

/* FOLDER/FILE. */
static void join(char path[1024], const char *a, const char *b) {
  int n = snprintf(path, 1024, "%s/%s", a, b);
  if (n < 0 || n >= 1024) victim_die("%s: too long", a);
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

/* ---- processes ---- */

const char *victim_stdout(int place) { return place ? "stdout.1" : "stdout.0"; }

const char *victim_stderr(int place) { return place ? "stderr.1" : "stderr.0"; }

void victim_redirect(int fd, const char *path, int flags) {
  int file = open(path, O_WRONLY | O_CREAT | flags, 0666);
  if (file < 0 || dup2(file, fd) < 0) _exit(127);
}

pid_t victim_start(const char *output, int variant, int place) {
  static const char *const workers[] = {"data.workers=0", "data.workers=1", "data.workers=4"},
                           *const threads[] = {"run.threads=1", "run.threads=2"};
  pid_t child = fork();
  if (child < 0) victim_die("fork: %s", strerror(errno));
  if (child > 0) return child;
  victim_redirect(STDOUT_FILENO, victim_stdout(place), O_TRUNC);
  victim_redirect(STDERR_FILENO, victim_stderr(place), O_TRUNC);
  execl(tenon, tenon, "train", "victim.ini", "--json", "--resume", "auto", "--output", output, "--set",
        workers[variant % 3], "--set", threads[variant / 3 % 2], "--set", backend, (char *)NULL);
  _exit(127);
}

/* ---- comparing ---- */

void victim_run_folder(int place, char *path, size_t size) {
  json_t *json = json_load_file(victim_stdout(place), 0, NULL);
  const char *run = json_string_value(json_object_get(json, "run"));
  if (run == NULL) victim_die("no result in %s", victim_stdout(place));
  snprintf(path, size, "%s", run);
  json_decref(json);
}

static void same_bytes(const char *a, const char *b, const char *file) {
  char x[1024], y[1024];
  size_t n, m;
  join(x, a, file);
  join(y, b, file);
  char *u = victim_read_file(x, &n), *v = victim_read_file(y, &m);
  if (n != m || memcmp(u, v, n) != 0) victim_die("%s and %s differ", x, y);
  free(u);
  free(v);
}

static void same_state(const char *a, const char *b, const char *name) {
  static const char *const members[] = {"step", "epoch", "batch", "ended", "best", "plan"};
  json_t *json[2];
  for (int i = 0; i < 2; i++) {
    char path[1024], state[64];
    snprintf(state, sizeof state, "checkpoints/%s/state.json", name);
    join(path, i ? b : a, state);
    json[i] = json_load_file(path, 0, NULL);
    if (json[i] == NULL) victim_die("%s: no JSON", path);
  }
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (!json_equal(json_object_get(json[0], members[i]), json_object_get(json[1], members[i])))
      victim_die("%s and %s: %s of state.json differs", a, b, members[i]);
  json_decref(json[0]);
  json_decref(json[1]);
}

/* A line of metrics.jsonl without the fields that depend on the clock. */
static json_t *timeless(const char *line) {
  json_t *json = json_loads(line, 0, NULL);
  if (json == NULL) victim_die("half a line in metrics.jsonl: %s", line);
  json_object_del(json, "seconds");
  json_object_del(json, "per_s");
  return json;
}

/* The next line of metrics.jsonl that does not depend on the clock alone; NULL: none. */
static char *next_line(char *text, char **at) {
  static const char straggler[] = "{\"event\": \"straggler\"";
  char *line = strtok_r(text, "\n", at);
  while (line && strncmp(line, straggler, sizeof straggler - 1) == 0) line = strtok_r(NULL, "\n", at);
  return line;
}

static void same_lines(const char *a, const char *b) {
  char x[1024], y[1024], *at_x, *at_y;
  size_t n, m, lines = 0;
  join(x, a, "metrics.jsonl");
  join(y, b, "metrics.jsonl");
  char *u = victim_read_file(x, &n), *v = victim_read_file(y, &m);
  char *line_x = next_line(u, &at_x), *line_y = next_line(v, &at_y);
  for (; line_x && line_y; lines++) {
    json_t *p = timeless(line_x), *q = timeless(line_y);
    if (!json_equal(p, q)) victim_die("%s:%zu: %s, expected %s", x, lines + 1, line_x, line_y);
    json_decref(p);
    json_decref(q);
    line_x = next_line(NULL, &at_x);
    line_y = next_line(NULL, &at_y);
  }
  if (line_x || line_y)
    victim_die("%s and %s have not the same number of lines (%zu are the same)", x, y, lines);
  free(u);
  free(v);
}

/* A line of metrics.csv without its fourth column, the seconds. */
static void without_seconds(const char *line, char out[512]) {
  const char *third = line;
  for (int i = 0; i < 3 && third; i++) third = strchr(third + (i > 0), ',');
  const char *rest = third ? strchr(third + 1, ',') : NULL;
  if (rest == NULL) victim_die("half a line in metrics.csv: %s", line);
  snprintf(out, 512, "%.*s%s", (int)(third - line), line, rest);
}

static void same_rows(const char *a, const char *b) {
  char x[1024], y[1024], line_x[512], line_y[512], p[512], q[512];
  join(x, a, "metrics.csv");
  join(y, b, "metrics.csv");
  FILE *u = fopen(x, "r"), *v = fopen(y, "r");
  if (u == NULL || v == NULL) victim_die("%s or %s: %s", x, y, strerror(errno));
  for (;;) {
    char *more_x = fgets(line_x, sizeof line_x, u), *more_y = fgets(line_y, sizeof line_y, v);
    if (more_x == NULL && more_y == NULL) break;
    if (more_x == NULL || more_y == NULL) victim_die("%s and %s have not the same number of lines", x, y);
    without_seconds(line_x, p);
    without_seconds(line_y, q);
    if (strcmp(p, q) != 0) victim_die("%s: %s, expected %s", x, line_x, line_y);
  }
  fclose(u);
  fclose(v);
}

void victim_compare(const char *a, const char *b) {
  static const char *const files[] = {
      "checkpoints/last/model.safetensors", "checkpoints/last/optimizer.safetensors",
      "checkpoints/best/model.safetensors", "checkpoints/best/optimizer.safetensors"};
  for (int i = 0; i < 4; i++) same_bytes(a, b, files[i]);
  same_state(a, b, "last");
  same_state(a, b, "best");
  same_lines(a, b);
  same_rows(a, b);
}

/* ---- set-up ---- */

void victim_remove(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

/* The shorter of two trainings, since the machine has other load. */
double victim_train_whole(void) {
  double shortest = 1e9;
  for (int i = 0; i < 2; i++) {
    double from = tn_monotonic_s();
    int status;
    size_t n;
    victim_remove("whole");
    pid_t child = victim_start("whole", i, 0);
    if (waitpid(child, &status, 0) != child || status != 0)
      victim_die("the uninterrupted run ended with %d: %s", status, victim_read_file(victim_stderr(0), &n));
    if (tn_monotonic_s() - from < shortest) shortest = tn_monotonic_s() - from;
  }
  return shortest;
}

void victim_configure(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) victim_die("%s: %s", path, strerror(errno));
}

void victim_seed(uint64_t number) { seed = number; }

void victim_set_up(const char *name, const char *program, uint64_t number, const char *use) {
  const char *root = getenv("TMPDIR");
  test = name;
  seed = number;
  tenon = realpath(program, NULL);
  snprintf(backend, sizeof backend, "backend.use=%s", use);
  snprintf(folder, sizeof folder, "%s/tenon-%s-XXXXXX", root && strlen(root) < 32 ? root : "/tmp", name);
  if (tenon == NULL || mkdtemp(folder) == NULL || chdir(folder) != 0) victim_die("%s", strerror(errno));
  setenv("XDG_CACHE_HOME", folder, 1);
  victim_configure("victim.ini", configuration);
}

void victim_tear_down(void) {
  if (chdir("/") == 0) victim_remove(folder);
}
