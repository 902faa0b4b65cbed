/* disk TENON SHIM [STRIDE [FIRST]]: trains with a disk that fails once (shim.c): at call number FIRST, FIRST
 * + STRIDE ... of those that create or write files in the run folder, with each kind of failure. The program
 * must finish, or end with exit code 74 and name the file and the reason. Resumed with a working disk, it
 * must end with the weights and metrics of a run without failures. Then the same for a process that resumes.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char configuration[] =
    "[run]\nname = victim\nepochs = 2\nseed = 5\nsave_every = 1\n"
    "[data]\nsource = random\nshape = 1, 6, 6\nclasses = 3\nsamples = 12\nbatch = 4\nworkers = 0\n"
    "[model]\ninputs = image: f32[1, 6, 6]\nlayers =\n         flatten\n    fc1: linear(8)\n         relu\n"
    "    fc2: linear(3)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";

static const char *tenon, *shim;
static char folder[64], problem[512];

/* ---- small things ---- */

/* The first failure decides the result of a case. */
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
  va_list args;
  if (problem[0]) return;
  va_start(args, format);
  vsnprintf(problem, sizeof problem, format, args);
  va_end(args);
}

/* The text lives until eight others have been read. */
static char *read_file(const char *path, size_t *n) {
  static char nothing[] = "", *kept[8];
  static unsigned reads;
  FILE *file = fopen(path, "r");
  struct stat info;
  *n = 0;
  if (file == NULL || fstat(fileno(file), &info) != 0)
    return complain("%s: %s", path, strerror(errno)), nothing;
  char *bytes = calloc(1, (size_t)info.st_size + 1);
  if (bytes) *n = fread(bytes, 1, (size_t)info.st_size, file);
  fclose(file);
  if (bytes == NULL) return nothing;
  unsigned place = reads++ % 8;
  free(kept[place]);
  return kept[place] = bytes;
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

static void remove_tree(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static void redirect(int fd, const char *path) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || dup2(file, fd) < 0) _exit(127);
}

/* ---- one process ---- */

typedef struct fault {
  const char *kind; /* NULL: none */
  int at;
  const char *log;
} fault;

static void set_fault(const fault *f) {
  char number[16];
  if (f == NULL) return;
  snprintf(number, sizeof number, "%d", f->at);
  setenv("LD_PRELOAD", shim, 1);
  setenv("TENON_FAULT_ROOT", "/victim", 1);
  setenv("TENON_FAULT_AT", number, 1);
  setenv("TENON_FAULT_KIND", f->kind, 1);
  if (f->log) setenv("TENON_FAULT_LOG", f->log, 1);
  const char *options = getenv("ASAN_OPTIONS");
  char all[256];
  snprintf(all, sizeof all, "%s%sverify_asan_link_order=0", options ? options : "", options ? ":" : "");
  setenv("ASAN_OPTIONS", all, 1);
}

/* Runs `tenon train`; returns its exit code. stderr goes to the file "stderr". */
static int train(const char *output, const char *resume, const char *steps, const fault *f) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    redirect(STDOUT_FILENO, "stdout");
    redirect(STDERR_FILENO, "stderr");
    set_fault(f);
    execl(tenon, tenon, "train", "victim.ini", "--json", "--output", output, "--set", steps,
          resume ? "--resume" : (char *)NULL, resume, (char *)NULL);
    _exit(127);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) complain("no process: %s", strerror(errno));
  if (!WIFEXITED(status)) return complain("ended by signal %d", WTERMSIG(status)), -1;
  return WEXITSTATUS(status);
}

/* ---- the expected result ---- */

static void same_bytes(const char *run, const char *file) {
  char x[256], y[256];
  size_t n, m;
  snprintf(x, sizeof x, "%s/%s", run, file);
  snprintf(y, sizeof y, "whole/victim/%s", file);
  const char *a = read_file(x, &n), *b = read_file(y, &m);
  if (n != m || memcmp(a, b, n) != 0) complain("%s is not as without the failure", x);
}

/* The event, epoch and step of each line. */
static void same_lines(const char *run) {
  char x[256], *at_x, *at_y;
  size_t n, m;
  snprintf(x, sizeof x, "%s/metrics.jsonl", run);
  char *line_x = strtok_r(read_file(x, &n), "\n", &at_x),
       *line_y = strtok_r(read_file("whole/victim/metrics.jsonl", &m), "\n", &at_y);
  while (line_x && line_y) {
    size_t head = (size_t)(strstr(line_y, "\"seconds\"") - line_y);
    if (strncmp(line_x, line_y, head) != 0 || line_x[strlen(line_x) - 1] != '}')
      complain("%s: %s", x, line_x);
    line_x = strtok_r(NULL, "\n", &at_x);
    line_y = strtok_r(NULL, "\n", &at_y);
  }
  if (line_x || line_y) complain("%s has not as many lines as without the failure", x);
}

/* The run's folder, from the result. */
static void find_run(char *path, size_t size) {
  size_t n;
  char *start = strstr(read_file("stdout", &n), "\"run\": \"");
  snprintf(path, size, "%.*s", start ? (int)strcspn(start + 8, "\"") : 0, start ? start + 8 : "");
}

static void judge_end(void) {
  char run[128];
  find_run(run, sizeof run);
  same_bytes(run, "checkpoints/last/model.safetensors");
  same_bytes(run, "checkpoints/last/optimizer.safetensors");
  same_bytes(run, "checkpoints/best/model.safetensors");
  same_lines(run);
}

/* A failure must be reported with the file and the system's message. */
static void judge_message(const fault *f) {
  size_t n;
  const char *text = read_file("stderr", &n);
  int reason = strcmp(f->kind, "EACCES") == 0 ? EACCES : strcmp(f->kind, "EIO") == 0 ? EIO : ENOSPC;
  if (strstr(text, "/victim") == NULL) complain("no file is named: %s", text);
  if (strstr(text, strerror(reason)) == NULL) complain("\"%s\" is not said: %s", strerror(reason), text);
}

/* ---- the sweep ---- */

typedef struct tally {
  int cases, failed, stopped;
} tally;

/* The start of a resumed process: three steps of six, made once. */
static void prepare(const char *output, int resumes) {
  char command[128];
  remove_tree(output);
  snprintf(command, sizeof command, "mkdir %s && cp -r part/victim %s/", output, output);
  if (resumes && system(command) != 0) complain("%s", command);
}

static void try_one(const fault *f, int resumes, tally *t) {
  problem[0] = '\0';
  prepare("runs", resumes);
  int code = train("runs", resumes ? "auto" : NULL, "run.max_steps=0", f);
  if (code != 0 && code != 74) complain("exit code %d", code);
  if (code != 0) judge_message(f);
  if (code != 0 && train("runs", "auto", "run.max_steps=0", NULL) != 0) complain("cannot be resumed");
  judge_end();
  t->cases++;
  t->stopped += code != 0;
  t->failed += problem[0] != '\0';
  if (problem[0])
    printf("case failed: %s, call %d, %s: %s\n", resumes ? "resume" : "train", f->at, f->kind, problem);
}

static int count_calls(int resumes) {
  size_t n;
  remove("calls");
  prepare("runs", resumes);
  const fault none = {"EIO", 0, "calls"};
  if (train("runs", resumes ? "auto" : NULL, "run.max_steps=0", &none) != 0)
    complain("a run without failure fails");
  const char *text = read_file("calls", &n);
  int lines = 0;
  for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
  return lines;
}

static void sweep(int resumes, int first, int stride, tally *t) {
  static const char *const kinds[] = {"ENOSPC", "EIO", "EACCES", "short", "full"};
  int calls = count_calls(resumes);
  if (problem[0] || calls < 20) {
    printf("case failed: %d calls counted: %s\n", calls, problem);
    t->failed++;
  }
  for (int k = 0; k < 5; k++)
    for (int at = first + k; at <= calls; at += stride) try_one(&(fault){kinds[k], at, NULL}, resumes, t);
}

static int set_up(void) {
  const char *root = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/tenon-disk-XXXXXX", root && strlen(root) < 32 ? root : "/tmp");
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 0;
  setenv("XDG_CACHE_HOME", folder, 1);
  FILE *file = fopen("victim.ini", "w");
  if (file == NULL || fputs(configuration, file) < 0 || fclose(file) != 0) return 0;
  return train("whole", NULL, "run.max_steps=0", NULL) == 0 &&
         train("part", NULL, "run.max_steps=3", NULL) == 0;
}

int main(int argc, char **argv) {
  tally t = {0};
  if (argc < 3 || (tenon = realpath(argv[1], NULL)) == NULL || (shim = realpath(argv[2], NULL)) == NULL)
    return 2;
  int stride = argc > 3 ? atoi(argv[3]) : 1, first = argc > 4 ? atoi(argv[4]) : 1;
  if (stride < 1 || !set_up()) return 2;
  sweep(0, first, stride, &t);
  sweep(1, first, stride, &t);
  if (t.failed == 0 && chdir("/") == 0) remove_tree(folder);
  printf("case %s: %d failures of the disk, of which %d ended the run; %d left something wrong\n",
         t.failed ? "failed" : "ok", t.cases, t.stopped, t.failed);
  return t.failed > 0;
}
