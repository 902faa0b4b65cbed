/* kill TENON [KILLS [SEED]]: trains, and kills the program (SIGKILL) at moments drawn from the seed and
 * resumes it, until the training is complete. Compares the result with an uninterrupted training: weights,
 * moments, best weights, and the lines of both metric files. The model writes a checkpoint after every step,
 * which takes longer than the step, so most kills interrupt a save. Workers and threads change with every
 * process. */
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

static const char *tenon;
static char folder[64];
static uint64_t seed;

/* ---- small things ---- */

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("case failed: kill: ");
  vprintf(format, args);
  printf("\n  the files are in %s\n", folder);
  va_end(args);
  exit(1);
}

/* Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014. */
static uint64_t draw(void) {
  uint64_t z = seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_s(double seconds) {
  struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) continue;
}

static char *read_file(const char *path, size_t *n) {
  FILE *file = fopen(path, "r");
  struct stat info;
  if (file == NULL || fstat(fileno(file), &info) != 0) die("%s: %s", path, strerror(errno));
  char *bytes = malloc((size_t)info.st_size + 1);
  if (bytes == NULL || fread(bytes, 1, (size_t)info.st_size, file) != (size_t)info.st_size)
    die("%s: not read", path);
  fclose(file);
  *n = (size_t)info.st_size;
  bytes[*n] = '\0';
  return bytes;
}

static int exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

/* FOLDER/FILE. */
static void join(char path[1024], const char *a, const char *b) {
  int n = snprintf(path, 1024, "%s/%s", a, b);
  if (n < 0 || n >= 1024) die("%s: too long", a);
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

/* ---- processes ---- */

static void redirect(int fd, const char *path) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || dup2(file, fd) < 0) _exit(127);
}

/* Workers and threads vary with `variant`. */
static pid_t start(const char *output, int variant) {
  static const char *const workers[] = {"data.workers=0", "data.workers=1", "data.workers=4"},
                           *const threads[] = {"run.threads=1", "run.threads=2"};
  pid_t child = fork();
  if (child < 0) die("fork: %s", strerror(errno));
  if (child > 0) return child;
  redirect(STDOUT_FILENO, "stdout");
  redirect(STDERR_FILENO, "stderr");
  execl(tenon, tenon, "train", "victim.ini", "--json", "--resume", "auto", "--output", output, "--set",
        workers[variant % 3], "--set", threads[variant / 3 % 2], (char *)NULL);
  _exit(127);
}

/* Whether the process ended by itself; any other exit code than 0 is fatal. */
static int ended(pid_t child, int flags) {
  int status;
  size_t n;
  if (waitpid(child, &status, flags) != child) return 0;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) die("status %d: %s", status, read_file("stderr", &n));
  return 1;
}

/* ---- comparing ---- */

/* The run folder that the program printed. */
static void run_folder(char *path, size_t size) {
  json_t *json = json_load_file("stdout", 0, NULL);
  const char *run = json_string_value(json_object_get(json, "run"));
  if (run == NULL) die("no result in stdout");
  snprintf(path, size, "%s", run);
  json_decref(json);
}

static void same_bytes(const char *a, const char *b, const char *file) {
  char x[1024], y[1024];
  size_t n, m;
  join(x, a, file);
  join(y, b, file);
  char *u = read_file(x, &n), *v = read_file(y, &m);
  if (n != m || memcmp(u, v, n) != 0) die("%s and %s differ", x, y);
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
    if (json[i] == NULL) die("%s: no JSON", path);
  }
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (!json_equal(json_object_get(json[0], members[i]), json_object_get(json[1], members[i])))
      die("%s and %s: %s of state.json differs", a, b, members[i]);
  json_decref(json[0]);
  json_decref(json[1]);
}

/* A line of metrics.jsonl without the fields that depend on the clock. */
static json_t *timeless(const char *line) {
  json_t *json = json_loads(line, 0, NULL);
  if (json == NULL) die("half a line in metrics.jsonl: %s", line);
  json_object_del(json, "seconds");
  json_object_del(json, "per_s");
  return json;
}

static void same_lines(const char *a, const char *b) {
  char x[1024], y[1024], *at_x, *at_y;
  size_t n, m, lines = 0;
  join(x, a, "metrics.jsonl");
  join(y, b, "metrics.jsonl");
  char *u = read_file(x, &n), *v = read_file(y, &m);
  char *line_x = strtok_r(u, "\n", &at_x), *line_y = strtok_r(v, "\n", &at_y);
  for (; line_x && line_y; lines++) {
    json_t *p = timeless(line_x), *q = timeless(line_y);
    if (!json_equal(p, q)) die("%s:%zu: %s, expected %s", x, lines + 1, line_x, line_y);
    json_decref(p);
    json_decref(q);
    line_x = strtok_r(NULL, "\n", &at_x);
    line_y = strtok_r(NULL, "\n", &at_y);
  }
  if (line_x || line_y) die("%s and %s have not the same number of lines (%zu are the same)", x, y, lines);
  free(u);
  free(v);
}

/* A line of metrics.csv without its fourth column, the seconds. */
static void without_seconds(const char *line, char out[512]) {
  const char *third = line;
  for (int i = 0; i < 3 && third; i++) third = strchr(third + (i > 0), ',');
  const char *rest = third ? strchr(third + 1, ',') : NULL;
  if (rest == NULL) die("half a line in metrics.csv: %s", line);
  snprintf(out, 512, "%.*s%s", (int)(third - line), line, rest);
}

static void same_rows(const char *a, const char *b) {
  char x[1024], y[1024], line_x[512], line_y[512], p[512], q[512];
  join(x, a, "metrics.csv");
  join(y, b, "metrics.csv");
  FILE *u = fopen(x, "r"), *v = fopen(y, "r");
  if (u == NULL || v == NULL) die("%s or %s: %s", x, y, strerror(errno));
  for (;;) {
    char *more_x = fgets(line_x, sizeof line_x, u), *more_y = fgets(line_y, sizeof line_y, v);
    if (more_x == NULL && more_y == NULL) break;
    if (more_x == NULL || more_y == NULL) die("%s and %s have not the same number of lines", x, y);
    without_seconds(line_x, p);
    without_seconds(line_y, q);
    if (strcmp(p, q) != 0) die("%s: %s, expected %s", x, line_x, line_y);
  }
  fclose(u);
  fclose(v);
}

static void compare(const char *a, const char *b) {
  static const char *const files[] = {
      "checkpoints/last/model.safetensors", "checkpoints/last/optimizer.safetensors",
      "checkpoints/best/model.safetensors", "checkpoints/best/optimizer.safetensors"};
  for (int i = 0; i < 4; i++) same_bytes(a, b, files[i]);
  same_state(a, b, "last");
  same_state(a, b, "best");
  same_lines(a, b);
  same_rows(a, b);
}

/* ---- the trainings ---- */

typedef struct tally {
  int kills, in_writing, trainings;
} tally;

/* Whether a kill interrupted the writing or the removal of a checkpoint. */
static int was_writing(const char *output) {
  static const char *const names[] = {"last", "best"};
  for (int i = 0; i < 2; i++)
    for (int k = 1; k < 10; k++) {
      char path[256], suffix[16] = "";
      if (k > 1) snprintf(suffix, sizeof suffix, "-%d", k);
      snprintf(path, sizeof path, "%s/victim%s/checkpoints/%s.new", output, suffix, names[i]);
      if (exists(path)) return 1;
    }
  return 0;
}

/* One training from start to end, killed until `most` kills have been made in all. */
static void train(const char *output, double span_s, int most, tally *t) {
  for (;;) {
    pid_t child = start(output, (int)(draw() % 6));
    if (t->kills < most) {
      sleep_s(span_s * (double)(draw() % 10000) / 10000.0);
      kill(child, SIGKILL);
    }
    if (ended(child, 0)) break;
    t->kills++;
    t->in_writing += was_writing(output);
  }
  t->trainings++;
}

/* The time of an uninterrupted training: the shorter of two, since the machine has other load. */
static double train_whole(void) {
  double shortest = 1e9;
  for (int i = 0; i < 2; i++) {
    double from = now_s();
    nftw("whole", remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (!ended(start("whole", i), 0)) die("the uninterrupted run was killed");
    if (now_s() - from < shortest) shortest = now_s() - from;
  }
  return shortest;
}

static void set_up(void) {
  const char *root = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/tenon-kill-XXXXXX", root && strlen(root) < 32 ? root : "/tmp");
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) die("%s", strerror(errno));
  setenv("XDG_CACHE_HOME", folder, 1);
  FILE *file = fopen("victim.ini", "w");
  if (file == NULL || fputs(configuration, file) < 0 || fclose(file) != 0)
    die("victim.ini: %s", strerror(errno));
}

int main(int argc, char **argv) {
  char path[256], output[32];
  tally t = {0};
  if (argc < 2 || (tenon = realpath(argv[1], NULL)) == NULL) return 2;
  int most = argc > 2 ? atoi(argv[2]) : 200;
  seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  set_up();
  double whole_s = train_whole();
  while (t.kills < most) {
    snprintf(output, sizeof output, "run%d", t.trainings);
    train(output, 0.8 * whole_s, most, &t);
    run_folder(path, sizeof path);
    compare(path, "whole/victim");
    nftw(output, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  }
  if (most >= 50 && 2 * t.in_writing <= t.kills)
    die("only %d of %d kills fell into writing a checkpoint", t.in_writing, t.kills);
  if (chdir("/") == 0) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  printf("case ok: %d kills (%d while a checkpoint was written) in %d trainings of %.2f s, bits as without\n",
         t.kills, t.in_writing, t.trainings, whole_s);
  return 0;
}
