/* tests/attack/command.c: runs commands of tenon within a limit of time, and judges the rules for all. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/attack/attack.h"

/* Ends a hang: the commands take less than a second, also those that wait for a limit of their own a few. */
static const double LIMIT_S = 300;
enum { LOADER = 127 }; /* exit code of a program whose libraries cannot be loaded */

static const char *command_program;
static double command_factor = 1;
static uint64_t command_count;

double attack_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void attack_sleep_s(double seconds) {
  struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  while (nanosleep(&t, &t) != 0 && errno == EINTR) continue;
}

/* Children of a command that has ended become children of the campaign, which ends them. */
void attack_set_program(const char *path, double slow) {
  sigset_t child;
  command_program = path;
  command_factor = slow;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

double attack_slow(void) { return command_factor; }

uint64_t attack_commands(void) { return command_count; }

/* ---- starting ---- */

/* The file of stdout (1) or stderr (2). */
static const char *command_file(const attack_command *c, int fd) {
  static char path[2][32];
  snprintf(path[fd - 1], sizeof path[0], ".%s.%d", fd == STDOUT_FILENO ? "out" : "err", c->place);
  return path[fd - 1];
}

static void command_redirect(int to, const char *path, int flags) {
  int file = open(path, flags, 0666);
  if (file < 0 || dup2(file, to) < 0) _exit(LOADER);
  if (file != to) close(file);
}

/* The core is not written, and the memory of a hostile file's sizes is limited; a sanitizer reserves more. */
static void command_set_limits(void) {
  struct rlimit none = {0, 0}, memory = {16ull << 30, 16ull << 30};
  setrlimit(RLIMIT_CORE, &none);
  if (command_factor <= 1) setrlimit(RLIMIT_AS, &memory);
}

static void command_become(const attack_command *c) {
  const char *words[ATTACK_WORDS + 1] = {command_program};
  sigset_t none;
  for (int i = 0; i < ATTACK_WORDS && c->words[i] != NULL; i++) words[i + 1] = c->words[i];
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setpgid(0, 0);
  command_redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
  command_redirect(STDOUT_FILENO, command_file(c, STDOUT_FILENO), O_WRONLY | O_CREAT | O_TRUNC);
  command_redirect(STDERR_FILENO, command_file(c, STDERR_FILENO), O_WRONLY | O_CREAT | O_TRUNC);
  for (int i = 0; c->variables != NULL && c->variables[i] != NULL; i++)
    putenv((char *)(uintptr_t)c->variables[i]);
  if (c->folder != NULL && chdir(c->folder) != 0) _exit(LOADER);
  command_set_limits();
  if (c->in_child != NULL) c->in_child();
  execv(command_program, (char *const *)(uintptr_t)words);
  _exit(LOADER);
}

static void command_print(const attack_command *c) {
  printf("+ %s%s", c->folder != NULL ? c->folder : "", c->folder != NULL ? ": " : "");
  for (int i = 0; c->variables != NULL && c->variables[i] != NULL; i++) printf("%s ", c->variables[i]);
  printf("tenon");
  for (int i = 0; i < ATTACK_WORDS && c->words[i] != NULL; i++) printf(" '%s'", c->words[i]);
  printf("\n");
}

pid_t attack_start(const attack_command *command) {
  if (attack_is_single()) command_print(command);
  fflush(stdout);
  command_count++;
  pid_t pid = fork();
  if (pid < 0) attack_die("fork: %s", strerror(errno));
  if (pid == 0) command_become(command);
  return pid;
}

/* ---- waiting ---- */

static bool command_has_ended(pid_t pid, double until_s, int *status) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  for (;;) {
    if (waitpid(pid, status, WNOHANG) == pid) return true;
    double left = until_s - attack_now_s();
    if (left <= 0) return false;
    struct timespec t = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
    sigtimedwait(&child, NULL, &t);
  }
}

/* Processes that the command has left, in groups of their own. */
static void command_end_children(void) {
  char path[64], text[4096], *at = text;
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE *file = fopen(path, "r");
  size_t n = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
  text[n] = '\0';
  if (file != NULL) fclose(file);
  for (long pid; (pid = strtol(at, &at, 10)) > 0;) kill((pid_t)pid, SIGKILL);
  while (waitpid(-1, NULL, WNOHANG) > 0) continue;
}

/* Its threads: state, and the call of the kernel that each waits in. */
static void command_print_threads(pid_t pid) {
  char line[512];
  snprintf(line, sizeof line,
           "for t in /proc/%d/task/*; do echo \"  thread $(grep State $t/status) in $(cat $t/wchan), call "
           "$(cat $t/syscall)\"; done",
           (int)pid);
  fflush(stdout);
  if (system(line) != 0) printf("  its threads are not known\n");
}

/* A launcher passes SIGTERM on to its processes. */
static void command_end(pid_t pid) {
  int status;
  kill(-pid, SIGTERM);
  if (command_has_ended(pid, attack_now_s() + 1, &status)) return;
  kill(-pid, SIGKILL);
  waitpid(pid, &status, 0);
}

/* ---- judging ---- */

/* Control characters other than line ends and tabs, and C1 as UTF-8; bytes that are not UTF-8. */
static const char *command_bad_byte(const char *text, size_t n) {
  const unsigned char *t = (const unsigned char *)text;
  for (size_t i = 0; i < n; i++) {
    int more = t[i] < 0x80                   ? 0
               : t[i] >= 0xc2 && t[i] < 0xe0 ? 1
               : (t[i] & 0xf0) == 0xe0       ? 2
               : t[i] >= 0xf0 && t[i] < 0xf5 ? 3
                                             : -1;
    if (t[i] < 0x20 && t[i] != '\n' && t[i] != '\t') return "a control character";
    if (t[i] == 0x7f || (t[i] == 0xc2 && i + 1 < n && t[i + 1] < 0xa0)) return "a control character";
    if (t[i] == 0xe2 && i + 2 < n && t[i + 1] == 0x80 && (t[i + 2] >= 0xaa && t[i + 2] <= 0xae))
      return "a character that turns the direction of text";
    if (more < 0) return "a byte that is not UTF-8";
    for (; more > 0; more--)
      if (++i >= n || (t[i] & 0xc0) != 0x80) return i >= n ? NULL : "a byte that is not UTF-8";
  }
  return NULL;
}

/* The first line of a text, without control characters. */
static void command_first_line(const char *text, char line[200]) {
  size_t n = strcspn(text, "\n");
  if (n > 199) n = 199;
  for (size_t i = 0; i < n; i++) line[i] = (unsigned char)text[i] < 0x20 ? '?' : text[i];
  line[n] = '\0';
}

static void command_name(const attack_command *c, char name[256]) {
  size_t n = 0;
  name[0] = '\0';
  for (int i = 0; i < ATTACK_WORDS && c->words[i] != NULL && n < 200; i++)
    n += (size_t)snprintf(name + n, 256 - n, "%s%.30s", i > 0 ? " " : "", c->words[i]);
}

static const char *command_sanitizer(const char *err) {
  const char *found = strstr(err, "ERROR: AddressSanitizer");
  if (found == NULL) found = strstr(err, "runtime error:");
  if (found == NULL) found = strstr(err, "ERROR: LeakSanitizer");
  return found;
}

static bool command_is_documented(int code) {
  static const int codes[] = {0, 3, 65, 69, 74, 75, 76, 77};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (code == codes[i]) return true;
  return false;
}

/* Whether the limits have ended it before it was the program: the kernel does it while it loads, or the
 * loader. */
static bool command_did_not_begin(const attack_command *c, const attack_result *r) {
  bool killed = (r->signal == SIGKILL || r->signal == SIGSEGV) && r->n_err == 0 && r->n_out == 0;
  return c->in_child != NULL && (r->code == LOADER || (c->may_die && killed));
}

/* stdout of these is for programs: JSON, and the text of a model. */
static bool command_is_exact(const attack_command *c) {
  for (int i = 0; i < ATTACK_WORDS && c->words[i] != NULL; i++)
    if (strcmp(c->words[i], "--json") == 0) return true;
  return strcmp(c->words[0], "generate") == 0;
}

static void command_judge(const attack_command *c, const attack_result *r) {
  char name[256], line[200];
  const char *report = command_sanitizer(r->err), *bad;
  command_name(c, name);
  command_first_line(report != NULL ? report : r->err, line);
  if (r->hung)
    attack_find(ATTACK_HANG, "%s: no end after %g s", name,
                (c->limit_s > 0 ? c->limit_s : LIMIT_S) * command_factor);
  else if (report != NULL)
    attack_find(ATTACK_CRASH, "%s: %s", name, line);
  else if (command_did_not_begin(c, r))
    return;
  else if (r->signal != 0)
    attack_find(ATTACK_CRASH, "%s: signal %d: %s", name, r->signal, line);
  else if (!command_is_documented(r->code))
    attack_find(ATTACK_OTHER, "%s: exit code %d: %s", name, r->code, line);
  else if (r->code != 0 && r->n_err + r->n_out == 0 && !c->is_mute)
    attack_find(ATTACK_OTHER, "%s: exit code %d without a message", name, r->code);
  if ((!command_is_exact(c) && (bad = command_bad_byte(r->out, r->n_out)) != NULL) ||
      (bad = command_bad_byte(r->err, r->n_err)) != NULL)
    attack_find(ATTACK_OTHER, "%s: %s in its output", name, bad);
}

static attack_bytes command_texts[2];

static void command_read_texts(const attack_command *c, attack_result *r) {
  for (int i = 0; i < 2; i++) {
    free(command_texts[i].v);
    command_texts[i] = attack_read(command_file(c, i == 0 ? STDOUT_FILENO : STDERR_FILENO));
  }
  r->out = command_texts[0].v;
  r->n_out = command_texts[0].n;
  r->err = command_texts[1].v;
  r->n_err = command_texts[1].n;
}

static const attack_result *command_finish(pid_t pid, const attack_command *c) {
  static attack_result r;
  int status = 0;
  double limit = (c->limit_s > 0 ? c->limit_s : LIMIT_S) * command_factor;
  r = (attack_result){.code = -1};
  r.hung = !command_has_ended(pid, attack_now_s() + limit, &status);
  if (r.hung) command_print_threads(pid);
  if (r.hung) command_end(pid);
  if (!r.hung && WIFEXITED(status)) r.code = WEXITSTATUS(status);
  if (!r.hung && WIFSIGNALED(status)) r.signal = WTERMSIG(status);
  if (c->place == 0) command_end_children();
  command_read_texts(c, &r);
  if (attack_is_single()) printf("%s%s= %d\n", r.out, r.err, r.signal != 0 ? 128 + r.signal : r.code);
  return &r;
}

void attack_reap(pid_t pid) {
  waitpid(pid, NULL, 0);
  command_end_children();
}

const attack_result *attack_await(pid_t pid, const attack_command *command) {
  const attack_result *r = command_finish(pid, command);
  command_judge(command, r);
  return r;
}

const attack_result *attack_run(const attack_command *command) {
  return attack_await(attack_start(command), command);
}

const attack_result *attack_must(const char *const *words) {
  attack_command c = {.limit_s = 0};
  for (int i = 0; i < ATTACK_WORDS && words[i] != NULL; i++) c.words[i] = words[i];
  const attack_result *r = command_finish(attack_start(&c), &c);
  if (r->code != 0) attack_die("tenon %s ends with %d: %s", words[0], r->code, r->err);
  return r;
}
