/* tools/launch/output.c: the lines that processes print. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/launch/launch.h"

static void output_print(int i, const char *text, int length) {
  if (length > 0) fprintf(stderr, "[%d] %.*s\n", i, length, text);
}

/* The finished lines; a line that fills the buffer counts as finished. */
static void output_print_lines(launch_process *p, int i) {
  char *from = p->line, *end;
  int left = p->pending;
  while ((end = memchr(from, '\n', (size_t)left)) != NULL) {
    output_print(i, from, (int)(end - from));
    left -= (int)(end - from) + 1;
    from = end + 1;
  }
  if (left == LAUNCH_LINE) {
    output_print(i, from, left);
    left = 0;
  }
  memmove(p->line, from, (size_t)left);
  p->pending = left;
}

void launch_pass_output(launch *l, int i, bool last) {
  launch_process *p = &l->processes[i];
  ssize_t n = -1;
  while (p->output >= 0 &&
         (n = read(p->output, p->line + p->pending, (size_t)(LAUNCH_LINE - p->pending))) > 0) {
    p->pending += (int)n;
    output_print_lines(p, i);
  }
  bool closed = p->output >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR));
  if (closed || last) {
    output_print(i, p->line, p->pending);
    p->pending = 0;
    if (p->output >= 0) close(p->output);
    p->output = -1;
  }
}
