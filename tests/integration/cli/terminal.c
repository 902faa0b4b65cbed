#include "terminal.h"

#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

enum { MOST_OUTPUT = sizeof terminal_output, LOOK_MS = 20 };

char terminal_output[1 << 20];

/* After `resize_at` bars the window gets `resized` columns; true: it has. */
static bool terminal_resize(int terminal, size_t *n, int resize_at, int resized) {
  int bars = 0;
  for (const char *at = terminal_output; (at = strstr(at, "\033[K")) != NULL; at++) bars++;
  if (bars < resize_at) return false;
  struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)resized};
  assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
  *n += (size_t)snprintf(terminal_output + *n, MOST_OUTPUT - *n, "\001"); /* where the size changed */
  return true;
}

/* Writes the sign that ends the bytes of a program that has ended; false: the terminal has no room as yet. */
static bool terminal_mark(int end) {
  fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK);
  return write(end, "\002", 1) == 1;
}

/* The terminal stays open in this process: a read from one that the last process has closed may fail before
 * it has given all bytes. Behind the end of the program this process writes a sign of its own, which comes
 * last. */
int terminal_read(pid_t child, int terminal, int end, int resize_at, int resized) {
  size_t n = 0;
  int status = 0;
  bool ended = false, marked = false;
  struct pollfd look = {.fd = terminal, .events = POLLIN};
  do {
    int ready = poll(&look, 1, LOOK_MS);
    if (!ended) ended = waitpid(child, &status, WNOHANG) == child;
    if (ended && !marked) marked = terminal_mark(end);
    if (ready <= 0) continue;
    ssize_t got = read(terminal, terminal_output + n, MOST_OUTPUT - 2 - n);
    if (got <= 0) fail_msg("%zu bytes are read, then none: %s", n, strerror(errno));
    n += (size_t)got;
    terminal_output[n] = '\0';
    if (resized > 0 && terminal_resize(terminal, &n, resize_at, resized)) resized = 0;
  } while (!marked || n == 0 || terminal_output[n - 1] != '\002');
  terminal_output[n - 1] = '\0';
  return status;
}

/* Starts the program on a new terminal with so many columns. This process keeps its end of the program, too.
 */
pid_t terminal_start(char *const *words, int columns, int *terminal, int *end) {
  struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
  if (openpty(terminal, end, NULL, NULL, &size) != 0) {
    if (access("/dev/pts/ptmx", F_OK) == 0) fail_msg("openpty: %s", strerror(errno));
    print_message("skipped: /dev/pts is not mounted here, so there are no pseudo-terminals\n");
    skip();
  }
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) fail_msg("fork: %s", strerror(errno));
  if (child > 0) return child;
  close(*terminal);
  if (login_tty(*end) != 0) _exit(127);
  setenv("TERM", "xterm", 1);
  execv(TENON, words);
  _exit(127);
}
