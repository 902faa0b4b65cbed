/* tests/integration/processes/group.c: see group.h. */
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/faults/victim.h"
#include "backends/shared/clock.h"

enum { WORDS = 48 };
static const double PAUSE_S = 0.002, FIND_S = 90;

/* ---- starting ---- */

static int group_add(const char **argv, int n, const char *const *words) {
  for (; *words != NULL; words++) argv[n++] = *words;
  return n;
}

static void group_arguments(const group *g, const char **argv) {
  static const char *const
      mpi[] = {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "4", NULL},
      *const own[] = {"launch", "-n", "4", NULL}, *const again[] = {"--restarts", "1000", NULL};
  const char *const training[] = {g->variant->file, "--quiet", "--resume", "auto",
                                  "--output",       g->output, NULL};
  int n = 0;
  if (g->variant->mpi) n = group_add(argv, n, mpi);
  argv[n++] = g->tenon;
  if (g->variant->mpi)
    argv[n++] = "train";
  else
    n = group_add(argv, n, own);
  if (!g->variant->mpi && g->restarts) n = group_add(argv, n, again);
  n = group_add(argv, n, training);
  for (int i = 0; i < GROUP_OPTIONS && g->variant->options[i] != NULL; i++) {
    argv[n++] = "--set";
    argv[n++] = g->variant->options[i];
  }
  argv[n] = NULL;
}

/* The group of the terminal stays the caller's. */
void group_start(group *g) {
  const char *argv[WORDS];
  group_arguments(g, argv);
  g->ended = false;
  memset(g->pids, 0, sizeof g->pids);
  fflush(NULL);
  g->launcher = fork();
  if (g->launcher < 0) victim_die("fork: %s", strerror(errno));
  if (g->launcher > 0) return;
  victim_redirect(STDOUT_FILENO, g->words, O_APPEND);
  victim_redirect(STDERR_FILENO, g->words, O_APPEND);
  execvp(argv[0], (char *const *)(const void *)argv);
  _exit(127);
}

/* ---- processes ---- */

/* The bytes of a file of /proc, with a zero byte behind them; -1: it cannot be read. */
static ssize_t group_read_proc(pid_t pid, const char *file, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
  int f = open(path, O_RDONLY | O_CLOEXEC);
  size_t n = 0;
  ssize_t got = -1;
  while (f >= 0 && n < size - 1 && (got = read(f, text + n, size - 1 - n)) > 0) n += (size_t)got;
  if (f >= 0) close(f);
  text[n] = '\0';
  return f < 0 || got < 0 ? -1 : (ssize_t)n;
}

/* A zombie has ended. */
bool group_is_alive(pid_t pid) {
  char text[512];
  if (pid <= 0 || group_read_proc(pid, "stat", text, sizeof text) <= 0) return false;
  const char *name_end = strrchr(text, ')');
  return name_end != NULL && name_end[2] != 'Z' && name_end[2] != 'X';
}

int group_count(const group *g) {
  int n = 0;
  for (int i = 0; i < GROUP_SIZE; i++) n += group_is_alive(g->pids[i]);
  return n;
}

/* The number that its launcher has given it; -1: none yet, or it has ended. */
static int group_number(pid_t pid) {
  static const char *const names[] = {"TENON_PROCESS=", "OMPI_COMM_WORLD_RANK="};
  static char text[1 << 17];
  ssize_t n = group_read_proc(pid, "environ", text, sizeof text);
  for (const char *at = text; at < text + (n > 0 ? n : 0); at += strlen(at) + 1)
    for (int i = 0; i < 2; i++)
      if (strncmp(at, names[i], strlen(names[i])) == 0) return atoi(at + strlen(names[i]));
  return -1;
}

static bool group_look(group *g) {
  char file[64], text[4096], *at;
  bool changed = true;
  pid_t pids[GROUP_SIZE] = {0};
  snprintf(file, sizeof file, "task/%d/children", (int)g->launcher);
  if (group_read_proc(g->launcher, file, text, sizeof text) <= 0) return false;
  for (char *word = strtok_r(text, " ", &at); word != NULL; word = strtok_r(NULL, " ", &at)) {
    int number = group_number((pid_t)atoi(word));
    if (number >= 0 && number < GROUP_SIZE) pids[number] = (pid_t)atoi(word);
  }
  for (int i = 0; i < GROUP_SIZE; i++)
    changed = changed && pids[i] > 0 && pids[i] != g->pids[i] && group_is_alive(pids[i]);
  if (changed) memcpy(g->pids, pids, sizeof pids);
  return changed;
}

bool group_has_ended(group *g) {
  if (!g->ended) g->ended = waitpid(g->launcher, &g->status, WNOHANG) == g->launcher;
  return g->ended;
}

bool group_find(group *g) {
  double from = tn_monotonic_s();
  while (!group_has_ended(g) && tn_monotonic_s() - from < FIND_S) {
    if (group_look(g)) return true;
    victim_sleep_s(PAUSE_S);
  }
  return false;
}

void group_kill(group *g) {
  if (!group_has_ended(g)) {
    kill(g->launcher, SIGKILL);
    waitpid(g->launcher, &g->status, 0);
  }
  g->ended = true;
  for (int i = 0; i < GROUP_SIZE; i++)
    if (group_is_alive(g->pids[i])) kill(g->pids[i], SIGKILL);
}

/* ---- files ---- */

static size_t group_bytes(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

size_t group_words_bytes(const group *g) { return group_bytes(g->words); }

char *group_words(const group *g, size_t from) {
  size_t n;
  char *text = victim_read_file(g->words, &n);
  if (from > n) from = n;
  memmove(text, text + from, n - from + 1);
  for (size_t i = 0; i < n - from; i++)
    if (text[i] == '\0') text[i] = '?';
  return text;
}

size_t group_file_bytes(const group *g, const char *file) {
  char path[256];
  snprintf(path, sizeof path, "%s/victim/%s", g->output, file);
  return group_bytes(path);
}
