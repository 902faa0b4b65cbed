#include "tests/fakecuda/nvrtc/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool text_reserve(nvrtc_text *text, size_t more) {
  if (text->failed) return false;
  if (text->bytes + more + 1 <= text->room) return true;
  size_t room = (text->bytes + more + 1) * 2;
  char *grown = realloc(text->at, room);
  text->failed = !grown;
  if (!grown) return false;
  text->at = grown;
  text->room = room;
  text->at[text->bytes] = 0;
  return true;
}

void nvrtc_insert(nvrtc_text *text, size_t offset, const char *from, size_t bytes) {
  if (!text_reserve(text, bytes)) return;
  memmove(text->at + offset + bytes, text->at + offset, text->bytes - offset + 1);
  if (bytes) memcpy(text->at + offset, from, bytes);
  text->bytes += bytes;
}

void nvrtc_add_bytes(nvrtc_text *text, const char *from, size_t bytes) {
  nvrtc_insert(text, text->bytes, from, bytes);
}
void nvrtc_add(nvrtc_text *text, const char *from) { nvrtc_add_bytes(text, from, strlen(from)); }

void nvrtc_print(nvrtc_text *text, const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *line = NULL;
  int n = vasprintf(&line, format, list);
  va_end(list);
  if (n < 0) {
    text->failed = true;
    return;
  }
  nvrtc_add_bytes(text, line, (size_t)n);
  free(line);
}

void nvrtc_remove(nvrtc_text *text, const char *what) {
  size_t bytes = strlen(what);
  for (char *found = text->at; found && (found = strstr(found, what));) {
    memmove(found, found + bytes, strlen(found + bytes) + 1);
    text->bytes -= bytes;
  }
}

void nvrtc_text_free(nvrtc_text *text) {
  free(text->at);
  *text = (nvrtc_text){0};
}

int nvrtc_read_file(const char *path, nvrtc_text *text) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char part[16384];
  ssize_t n;
  while ((n = read(file, part, sizeof part)) != 0) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    nvrtc_add_bytes(text, part, (size_t)n);
  }
  close(file);
  return n < 0 || text->failed ? -1 : 0;
}

int nvrtc_write_file(const char *path, const char *from, size_t bytes) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return -1;
  for (size_t done = 0; done < bytes;) {
    ssize_t n = write(file, from + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close(file);
      return -1;
    }
    done += (size_t)n;
  }
  return close(file);
}
