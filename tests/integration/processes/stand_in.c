/* tests/integration/processes/stand_in.c: see stand_in.h. */
#include "stand_in.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 255 };

/* ---- the server ---- */

/* Variables of a login; the program finds its plugins by its own path. */
static char **stand_in_environment(void) {
  static const char *const names[] = {"PATH",         "HOME",         "XDG_CACHE_HOME", "ASAN_OPTIONS",
                                      "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"};
  enum { NAMES = sizeof names / sizeof *names };
  static char text[NAMES][4096], *list[NAMES + 1];
  int n = 0;
  for (int i = 0; i < NAMES; i++)
    if (getenv(names[i]) != NULL) {
      snprintf(text[n], sizeof text[n], "%s=%s", names[i], getenv(names[i]));
      list[n] = text[n];
      n++;
    }
  return list;
}

static void stand_in_serve(const char *command, int in, int out) {
  setsid();
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  if (chdir("/") == 0) execle("/bin/sh", "sh", "-c", command, (char *)NULL, stand_in_environment());
  _exit(127);
}

/* ---- the client ---- */

static void stand_in_end(int number) {
  (void)number;
  _exit(FAILED);
}

/* False: there is nothing more. */
static bool stand_in_pass(int from, int to) {
  char bytes[65536];
  ssize_t n = read(from, bytes, sizeof bytes);
  for (ssize_t done = 0; done < n;) {
    ssize_t written = write(to, bytes + done, (size_t)(n - done));
    if (written < 0) return false;
    done += written;
  }
  return n > 0;
}

/* Until the command has closed its stdout. */
static void stand_in_relay(int to, int from) {
  struct pollfd polls[2] = {{.fd = from, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
  while (poll(polls, 2, -1) >= 0) {
    if (polls[1].revents != 0 && !stand_in_pass(STDIN_FILENO, to)) {
      close(to);
      polls[1].fd = -1;
    }
    if (polls[0].revents != 0 && !stand_in_pass(from, STDOUT_FILENO)) return;
  }
}

int stand_in_run(const char *command) {
  static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
  int in[2], out[2], status = 0;
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return FAILED;
  pid_t pid = fork();
  if (pid == 0) stand_in_serve(command, in[0], out[1]);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], stand_in_end);
  signal(SIGPIPE, SIG_IGN);
  close(in[0]);
  close(out[1]);
  stand_in_relay(in[1], out[0]);
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return FAILED;
  return WEXITSTATUS(status);
}

static bool stand_in_names(const char *variable, const char *host) {
  const char *text = getenv(variable);
  return text != NULL && strcmp(text, host) == 0;
}

int stand_in_main(int argc, char **argv) {
  int at = 1;
  while (at < argc && strcmp(argv[at], "--") != 0) at++;
  if (at + 2 >= argc) return FAILED;
  const char *host = argv[at + 1], *log = getenv("STAND_IN_LOG");
  FILE *file = log != NULL ? fopen(log, "a") : NULL;
  if (file != NULL) fprintf(file, "%s\n", host);
  if (file != NULL) fclose(file);
  for (pid_t caller = getppid(); stand_in_names("STAND_IN_SLOW", host) && getppid() == caller;)
    poll(NULL, 0, 100);
  if (!stand_in_names("STAND_IN_REFUSES", host)) {
    dprintf(STDOUT_FILENO, "Welcome to %s. ", host);
    return stand_in_run(argv[at + 2]);
  }
  fprintf(stderr, "ssh: connect to host %s port 22: Connection refused\n", host);
  return FAILED;
}
