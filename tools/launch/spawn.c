/* tools/launch/spawn.c: starts one process, on this host or by ssh. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/launch/launch.h"

enum { ARGUMENTS = 2 * CLI_MAX_LIST + 32, COMMAND = 65536 };

/* ---- the command ---- */

/* The path of this program; "tenon" where the system does not tell. */
static const char *spawn_program(void) {
  static char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return "tenon";
  path[n] = '\0';
  return path;
}

static void spawn_add(const char **argv, int *n, const char *option, const char *value) {
  if (value == NULL) return;
  if (option != NULL) argv[(*n)++] = option;
  argv[(*n)++] = value;
}

/* A launch that starts again goes on from the last checkpoint. */
static void spawn_arguments(const launch *l, const char **argv) {
  const cli_args *a = l->args;
  int n = 0;
  spawn_add(argv, &n, spawn_program(), "train");
  spawn_add(argv, &n, NULL, a->words[0]);
  for (int i = 0; i < a->n_set; i++) spawn_add(argv, &n, "--set", a->set[i]);
  for (int i = 0; i < a->n_plugins; i++) spawn_add(argv, &n, "--plugin", a->plugins[i]);
  spawn_add(argv, &n, "--resume", l->attempt > 0 ? "auto" : a->resume);
  spawn_add(argv, &n, "--output", a->output);
  spawn_add(argv, &n, "--weights", a->weights);
  spawn_add(argv, &n, "--trace", a->trace);
  spawn_add(argv, &n, NULL, a->json ? "--json" : NULL);
  spawn_add(argv, &n, NULL, a->quiet ? "--quiet" : NULL);
  spawn_add(argv, &n, NULL, a->verbose ? "--verbose" : NULL);
  argv[n] = NULL;
}

/* ---- the environment ---- */

enum { VARIABLES = 6 };

typedef struct variable {
  const char *name;
  char value[256];
} variable;

/* Without the token, which other users of a host must not see among its processes. */
static void spawn_variables(const launch *l, int i, variable v[VARIABLES]) {
  const launch_process *p = &l->processes[i];
  static const char *const names[VARIABLES] = {"TENON_PROCESS",       "TENON_PROCESSES",
                                               "TENON_LOCAL_PROCESS", "TENON_LOCAL_PROCESSES",
                                               "MASTER_ADDR",         "MASTER_PORT"};
  const int numbers[VARIABLES] = {i, l->n, p->local, p->host->processes, 0, l->port};
  for (int k = 0; k < VARIABLES; k++) {
    v[k].name = names[k];
    snprintf(v[k].value, sizeof v[k].value, "%d", numbers[k]);
  }
  snprintf(v[4].value, sizeof v[4].value, "%s", l->master);
}

/* ---- by ssh ---- */

/* 'text' for a shell; false: there is no room. */
static bool spawn_quote(char *command, const char *text) {
  size_t n = strlen(command);
  if (n + 4 * strlen(text) + 8 > COMMAND) return false;
  n += (size_t)sprintf(command + n, " '");
  for (; *text != '\0'; text++)
    n += *text == '\'' ? (size_t)sprintf(command + n, "'\\''") : (size_t)sprintf(command + n, "%c", *text);
  sprintf(command + n, "'");
  return true;
}

/* cd FOLDER && read TOKEN && exec env NAME=VALUE ... tenon train ...; the token comes by stdin. */
static bool spawn_remote_command(const launch *l, int i, const char *const *argv, char *command) {
  variable v[VARIABLES];
  char folder[4096], one[512];
  spawn_variables(l, i, v);
  snprintf(command, COMMAND, "cd");
  bool room = getcwd(folder, sizeof folder) != NULL && spawn_quote(command, folder);
  strcat(command, " && read -r TENON_TOKEN && export TENON_TOKEN && exec env");
  for (int k = 0; k < VARIABLES && room; k++) {
    snprintf(one, sizeof one, "%s=%s", v[k].name, v[k].value);
    room = spawn_quote(command, one);
  }
  for (; *argv != NULL && room; argv++) room = spawn_quote(command, *argv);
  return room;
}

static void spawn_give_token(const launch *l) {
  int pipes[2];
  char line[64];
  int n = snprintf(line, sizeof line, "%s\n", l->token);
  if (pipe(pipes) != 0 || write(pipes[1], line, (size_t)n) != n) return;
  close(pipes[1]);
  dup2(pipes[0], STDIN_FILENO);
  close(pipes[0]);
}

/* ---- in the child ---- */

static void spawn_exec(const launch *l, int i) {
  static char command[COMMAND + 256];
  const launch_process *p = &l->processes[i];
  const char *argv[ARGUMENTS], *ssh = getenv("TENON_SSH");
  variable v[VARIABLES];
  spawn_arguments(l, argv);
  if (p->host->name[0] != '\0') {
    if (!spawn_remote_command(l, i, argv, command)) return;
    spawn_give_token(l);
    execlp(ssh != NULL ? ssh : "ssh", ssh != NULL ? ssh : "ssh", "-o", "BatchMode=yes", "--", p->host->name,
           command, (char *)NULL);
    return;
  }
  spawn_variables(l, i, v);
  for (int k = 0; k < VARIABLES; k++) setenv(v[k].name, v[k].value, 1);
  setenv("TENON_TOKEN", l->token, 1);
  execv(argv[0], (char *const *)(const void *)argv);
}

/* The launcher's handlers are not those of the child, where a signal that came would be lost. */
static void spawn_take_signals(const launch *l, const sigset_t *before) {
  for (int number = 1; number < NSIG; number++)
    if (sigismember(&l->signals, number) == 1) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, before, NULL);
}

/* A group of its own: an interrupt at the terminal reaches the launcher alone, which passes it on. */
static void spawn_child(const launch *l, int i, int output, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(CLI_COMM);
  int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  spawn_exec(l, i);
  fprintf(stderr, "tenon: process %d cannot be started: %s\n", i, strerror(errno));
  _exit(CLI_UNAVAILABLE);
}

int launch_spawn(launch *l, int i) {
  launch_process *p = &l->processes[i];
  int pipes[2] = {-1, -1};
  pid_t parent = getpid();
  sigset_t before;
  p->output = -1;
  p->pending = 0;
  p->ended = false;
  p->stopped_s = 0;
  if (i > 0 && pipe2(pipes, O_CLOEXEC) != 0)
    return cli_refuse(l->args, CLI_UNAVAILABLE, "process %d: %s", i, strerror(errno));
  fflush(NULL);
  sigprocmask(SIG_BLOCK, &l->signals, &before);
  p->pid = fork();
  if (p->pid == 0) spawn_take_signals(l, &before);
  if (p->pid == 0) spawn_child(l, i, pipes[1], parent);
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (pipes[1] >= 0) close(pipes[1]);
  p->output = pipes[0];
  if (p->pid > 0 && p->output >= 0) fcntl(p->output, F_SETFL, O_NONBLOCK);
  if (p->pid > 0) return CLI_OK;
  p->ended = true;
  return cli_refuse(l->args, CLI_UNAVAILABLE, "process %d: %s", i, strerror(errno));
}
