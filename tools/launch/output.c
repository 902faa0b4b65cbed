/* tools/launch/output.c: the lines that processes print. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/launch/launch.h"

static void output_print(const char *label, const char *text, int length) {
  if (length > 0) fprintf(stderr, "[%s] %.*s\n", label, length, text);
}

/* The finished lines; a line that fills the buffer counts as finished. */
static void output_print_lines(launch_lines *s, const char *label) {
  char *from = s->line, *end;
  int left = s->pending;
  while ((end = memchr(from, '\n', (size_t)left)) != NULL) {
    output_print(label, from, (int)(end - from));
    left -= (int)(end - from) + 1;
    from = end + 1;
  }
  if (left == LAUNCH_LINE) {
    output_print(label, from, left);
    left = 0;
  }
  memmove(s->line, from, (size_t)left);
  s->pending = left;
}

void launch_pass_bytes(launch_lines *s, const char *label, const char *bytes, size_t n) {
  while (n > 0) {
    size_t room = (size_t)(LAUNCH_LINE - s->pending), part = n < room ? n : room;
    memcpy(s->line + s->pending, bytes, part);
    s->pending += (int)part;
    bytes += part;
    n -= part;
    output_print_lines(s, label);
  }
}

void launch_pass_lines(launch_lines *s, const char *label, bool last) {
  ssize_t n = -1;
  errno = EAGAIN;
  while (s->fd >= 0 && (n = read(s->fd, s->line + s->pending, (size_t)(LAUNCH_LINE - s->pending))) > 0) {
    s->pending += (int)n;
    output_print_lines(s, label);
  }
  bool closed = n == 0 || (errno != EAGAIN && errno != EINTR);
  if (!closed && !last) return;
  output_print(label, s->line, s->pending);
  s->pending = 0;
  if (s->fd >= 0) close(s->fd);
  s->fd = -1;
}
