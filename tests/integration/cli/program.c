/* tests/integration/cli/program.c: runs the program, and reads the files that it writes. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/shared/clock.h"
#include "tests/support/ports.h"

enum { MOST_WORDS = 64, NAP_MS = 5 };

char program_out[1 << 20], program_err[1 << 16];

static char folder[64];
static pid_t running;
static size_t file_limit;
static void (*prepare)(void);   /* in the child process, before the program */
static const char *out_path;    /* NULL: ".stdout" */
static const char *place = "."; /* the folder of the program */

/* Texts and results that live until the test ends. */
typedef struct list {
  void **v;
  size_t n, room;
} list;
static list texts, results;

static void *keep(list *l, void *item) {
  assert_non_null(item);
  if (l->n == l->room) {
    size_t room = 2 * l->room + 64;
    void **grown = realloc(l->v, room * sizeof *grown);
    assert_non_null(grown);
    *l = (list){grown, l->n, room};
  }
  return l->v[l->n++] = item;
}

static void forget(list *l, void (*release)(void *item)) {
  while (l->n > 0) release(l->v[--l->n]);
  free(l->v);
  *l = (list){0};
}

static void forget_result(void *result) { json_decref(result); }

/* ---- the folder ---- */

/* Measurements of kernels go to the folder too, so that no other program's change the choices of this one. */
int program_open(void **state) {
  static const char *const launchers[] = {"RANK",         "WORLD_SIZE",  "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                          "SLURM_PROCID", "MASTER_ADDR", "MASTER_PORT"};
  (void)state;
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) unsetenv(launchers[i]);
  strcpy(folder, "/tmp/tenon-cli-XXXXXX");
  return mkdtemp(folder) && chdir(folder) == 0 ? setenv("XDG_CACHE_HOME", folder, 1) : -1;
}

static int remove_one(const char *path, const struct stat *info, int what, struct FTW *at) {
  (void)info, (void)what, (void)at;
  return remove(path);
}

int program_close(void **state) {
  (void)state;
  if (running > 0) {
    kill(running, SIGKILL);
    waitpid(running, NULL, 0);
    running = 0;
  }
  file_limit = 0;
  out_path = NULL;
  prepare = NULL;
  place = ".";
  forget(&texts, free);
  forget(&results, forget_result);
  if (chdir("/") != 0) return -1;
  return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- files ---- */

void file_write_bytes(const char *path, const void *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

void file_write(const char *path, const char *text) { file_write_bytes(path, text, strlen(text)); }

/* The caller frees the text. */
static char *read_all(const char *path, size_t *n) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail_msg("%s: %s", path, strerror(errno));
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *text = calloc((size_t)size + 1, 1);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)size, file), size);
  fclose(file);
  if (n) *n = (size_t)size;
  return text;
}

char *file_read(const char *path, size_t *n) { return keep(&texts, read_all(path, n)); }

int file_exists(const char *path) { return access(path, F_OK) == 0; }

int file_lines(const char *path) {
  FILE *file = fopen(path, "rb");
  int lines = 0;
  for (int c; file && (c = getc(file)) != EOF;) lines += c == '\n';
  if (file) fclose(file);
  return lines;
}

void files_equal(const char *a, const char *b) {
  size_t na, nb;
  char *x = read_all(a, &na), *y = read_all(b, &nb);
  bool equal = na == nb && memcmp(x, y, na) == 0;
  free(x);
  free(y);
  if (!equal) fail_msg("%s and %s differ", a, b);
}

void checkpoint_folders_equal(const char *a, const char *b) {
  static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
  for (int i = 0; i < 2; i++) {
    char x[160], y[160];
    snprintf(x, sizeof x, "%s/%s", a, files[i]);
    snprintf(y, sizeof y, "%s/%s", b, files[i]);
    files_equal(x, y);
  }
}

void checkpoints_equal(const char *a, const char *b) {
  char x[128], y[128];
  snprintf(x, sizeof x, "%s/run/checkpoints/last", a);
  snprintf(y, sizeof y, "%s/run/checkpoints/last", b);
  checkpoint_folders_equal(x, y);
}

static const json_t *parse(const char *text, const char *from) {
  json_error_t error;
  json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (json == NULL) fail_msg("%s: line %d: %s: %s", from, error.line, error.text, text);
  return keep(&results, json);
}

const json_t *file_json(const char *path) { return parse(file_read(path, NULL), path); }

/* ---- the program ---- */

/* Reads a file into a fixed buffer, cut at its size. */
static void read_into(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "rb");
  size_t n = file ? fread(text, 1, size - 1, file) : 0;
  text[n] = '\0';
  if (file) fclose(file);
}

static void redirect(int to, const char *path) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || dup2(file, to) < 0) _exit(127);
  close(file);
}

/* In the child process: executes the program. */
static void become(char *line) {
  char *words[MOST_WORDS], *rest = line;
  int n = 0;
  words[n++] = (char *)(uintptr_t)TENON;
  for (char *word; n < MOST_WORDS - 1 && (word = strsep(&rest, " "));)
    if (*word) words[n++] = word;
  words[n] = NULL;
  if (chdir(place) != 0) _exit(127);
  redirect(STDOUT_FILENO, out_path ? out_path : ".stdout");
  redirect(STDERR_FILENO, ".stderr");
  if (file_limit > 0) {
    struct rlimit limit = {file_limit, file_limit};
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (prepare) prepare();
  execv(TENON, words);
  _exit(127);
}

int program_beside(const char *format, ...) {
  char words[4096], line[4608];
  va_list args;
  va_start(args, format);
  assert_true(vsnprintf(words, sizeof words, format, args) < (int)sizeof words);
  va_end(args);
  snprintf(line, sizeof line, "'%s' %s >beside 2>&1", TENON, words);
  int status = system(line);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- waits ---- */

void program_look_again(program_wait *wait, const char *condition) {
  char path[128];
  double now_s = tn_monotonic_s();
  if (wait->from_s == 0) wait->from_s = now_s;
  if (now_s - wait->from_s > PROGRAM_HANG_S) {
    snprintf(path, sizeof path, "%s/.stderr", place);
    read_into(path, program_err, sizeof program_err);
    fail_msg("not within %d s: %s; the program says: %s", PROGRAM_HANG_S, condition, program_err);
  }
  wait->looks++; /* the first ones follow each other closely, since most programs end soon */
  nanosleep(&(struct timespec){0, 1000000L * (wait->looks < 100 ? 1 : NAP_MS)}, NULL);
}

/* ---- starting ---- */

static void start(const char *format, va_list args) {
  char line[4096];
  assert_true(vsnprintf(line, sizeof line, format, args) < (int)sizeof line);
  assert_int_equal(running, 0);
  fflush(NULL);
  running = fork();
  assert_true(running >= 0);
  if (running == 0) become(line);
}

void program_start(const char *format, ...) {
  va_list args;
  va_start(args, format);
  start(format, args);
  va_end(args);
}

/* Exit codes of AddressSanitizer and UBSan, LeakSanitizer, and ThreadSanitizer. No command has them; the
 * report is printed. */
static void fail_if_sanitized(int code) {
  if (code == 1 || code == 23 || code == 66) fail_msg("the program ended with %d: %s", code, program_err);
}

int program_finish(void) {
  char path[128];
  int status = 0;
  program_await(waitpid(running, &status, WNOHANG) == running);
  running = 0;
  snprintf(path, sizeof path, "%s/.stdout", place);
  read_into(path, program_out, sizeof program_out);
  snprintf(path, sizeof path, "%s/.stderr", place);
  read_into(path, program_err, sizeof program_err);
  if (WIFSIGNALED(status)) fail_msg("the program ended by signal %d: %s", WTERMSIG(status), program_err);
  fail_if_sanitized(WEXITSTATUS(status));
  return WEXITSTATUS(status);
}

int program_run(const char *format, ...) {
  va_list args;
  va_start(args, format);
  start(format, args);
  va_end(args);
  return program_finish();
}

void program_expect(int code, int expected) {
  if (code != expected) fail_msg("exit code %d, expected %d: %s", code, expected, program_err);
}

const json_t *program_json(int code, const char *format, ...) {
  char with_json[4096];
  va_list args;
  snprintf(with_json, sizeof with_json, "%s --json", format);
  va_start(args, format);
  start(with_json, args);
  va_end(args);
  program_expect(program_finish(), code);
  return *program_out ? parse(program_out, "stdout") : NULL;
}

const json_t *program_member(const json_t *json, const char *path) {
  const json_t *at = json;
  char name[64];
  for (const char *rest = path; *rest;) {
    size_t n = strcspn(rest, ".");
    snprintf(name, sizeof name, "%.*s", (int)n, rest);
    at = json_object_get(at, name);
    if (at == NULL) fail_msg("the result has no '%s'", path);
    rest += n + (rest[n] == '.');
  }
  return at;
}

double program_number(const json_t *json, const char *path) {
  const json_t *number = program_member(json, path);
  if (!json_is_number(number)) fail_msg("'%s' is no number", path);
  return json_number_value(number);
}

const char *program_text(const json_t *json, const char *path) {
  const json_t *text = program_member(json, path);
  if (!json_is_string(text)) fail_msg("'%s' is no text", path);
  return json_string_value(text);
}

void program_limit_files(size_t bytes) { file_limit = bytes; }

void program_prepare(void (*call)(void)) { prepare = call; }

void program_stdout(const char *path) { out_path = path; }

void program_place(const char *path) { place = path; }

/* Below the ports that Linux gives to outgoing connections, and those of unit tests. This process has them
 * for as long as it lives; programs that it starts do not inherit that. */
int program_ports(void) {
  enum { FIRST = 2048, BLOCKS = 240 };
  static int first, lock;
  if (first == 0) first = ports_take(FIRST, BLOCKS, &lock);
  if (first == 0) fail_msg("all %d blocks of ports are in use", BLOCKS);
  return first;
}

const char *program_token(void) {
  static char token[64];
  static int n;
  snprintf(token, sizeof token, "%ld-%ld-%d", (long)getpid(), (long)time(NULL), n++);
  return token;
}

/* Its exit code stays there for program_finish. */
static bool has_ended(void) {
  siginfo_t info = {0};
  assert_int_equal(waitid(P_PID, (id_t)running, &info, WEXITED | WNOHANG | WNOWAIT), 0);
  return info.si_pid != 0;
}

/* Whether the file has so many lines, or the program has ended: looked at before the count, which then has
 * the last lines. */
static bool has_lines(const char *path, int lines, int *written) {
  bool ended = has_ended();
  *written = file_lines(path);
  return ended || *written >= lines;
}

void program_await_lines(const char *path, int lines) {
  int written = 0;
  program_await(has_lines(path, lines, &written));
  if (written >= lines) return;
  read_into(".stderr", program_err, sizeof program_err);
  fail_msg("%s has %d lines, expected %d: %s", path, written, lines, program_err);
}

pid_t program_swap(pid_t other) {
  pid_t one = running;
  running = other;
  return one;
}

void program_signal(int number) { assert_int_equal(kill(running, number), 0); }

void program_pause(void) {
  siginfo_t info = {0};
  program_signal(SIGSTOP);
  assert_int_equal(waitid(P_PID, (id_t)running, &info, WSTOPPED | WEXITED), 0);
  assert_int_equal(info.si_code, CLD_STOPPED);
}

void program_kill(void) {
  program_signal(SIGKILL);
  waitpid(running, NULL, 0);
  running = 0;
}
