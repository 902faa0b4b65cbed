/* tools/launch/frame.c: see frame.h. */
#include "tools/launch/frame.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { WRITE_MS = 5000 };

/* ---- writing ---- */

static bool frame_write_all(int fd, const char *bytes, size_t n) {
  while (n > 0) {
    ssize_t written = write(fd, bytes, n);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (written < 0 && errno == EAGAIN && poll(&ready, 1, WRITE_MS) != 0) continue;
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes += written;
    n -= (size_t)written;
  }
  return true;
}

bool frame_write(int fd, char kind, int process, const void *bytes, size_t n) {
  char all[FRAME_HEAD + FRAME_OUTPUT] = {
      kind,           0,      (char)(process >> 8), (char)process, (char)(n >> 24), (char)(n >> 16),
      (char)(n >> 8), (char)n};
  if (n > FRAME_MOST) return false;
  if (n > FRAME_OUTPUT) return frame_write_all(fd, all, FRAME_HEAD) && frame_write_all(fd, bytes, n);
  if (n > 0) memcpy(all + FRAME_HEAD, bytes, n);
  return frame_write_all(fd, all, FRAME_HEAD + n);
}

bool frame_write_text(int fd, char kind, int process, const char *text) {
  return frame_write(fd, kind, process, text, strlen(text) + 1);
}

/* ---- reading ---- */

ssize_t frame_fill(frame_reader *r, int fd) {
  memmove(r->bytes, r->bytes + r->used, r->n - r->used);
  r->n -= r->used;
  r->used = 0;
  ssize_t n = read(fd, r->bytes + r->n, sizeof r->bytes - r->n);
  if (n > 0) r->n += (size_t)n;
  return n;
}

int frame_next(frame_reader *r, frame *f) {
  const unsigned char *head = (const unsigned char *)r->bytes + r->used;
  size_t left = r->n - r->used;
  if (left < FRAME_HEAD) return 0;
  size_t n = (size_t)head[4] << 24 | (size_t)head[5] << 16 | (size_t)head[6] << 8 | head[7];
  if (n > FRAME_MOST || head[1] != 0) return -1;
  if (left < FRAME_HEAD + n) return 0;
  *f = (frame){(char)head[0], head[2] << 8 | head[3], r->bytes + r->used + FRAME_HEAD, n};
  r->used += FRAME_HEAD + n;
  return 1;
}

const char *frame_text(const frame *f) { return f->n > 0 && f->bytes[f->n - 1] == '\0' ? f->bytes : ""; }

/* ---- signals, whose numbers differ between processors ---- */

static const struct {
  int number;
  const char *name;
} frame_signals[] = {
    {SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGUSR1, "USR1"}, {SIGKILL, "KILL"}};
enum { SIGNALS = sizeof frame_signals / sizeof *frame_signals };

const char *frame_signal_name(int number) {
  for (int i = 0; i < SIGNALS; i++)
    if (frame_signals[i].number == number) return frame_signals[i].name;
  return NULL;
}

int frame_signal_number(const char *name) {
  for (int i = 0; i < SIGNALS; i++)
    if (strcmp(frame_signals[i].name, name) == 0) return frame_signals[i].number;
  return 0;
}
