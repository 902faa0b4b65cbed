/* tests/fakenccl/log.c: the lines about violations, and the text of the last one. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakenccl/entry.h"
#include "tests/fakenccl/fakenccl.h"

static _Thread_local char last_text[FAKENCCL_TEXT];
static _Thread_local const char *entry = "";

void fakenccl_entry_set(const char *name) { entry = name; }
const char *fakenccl_entry(void) { return entry; }
const char *fakenccl_last_text(void) { return last_text; }

/* In one write, so that lines of several processes do not mix. */
static void log_write(int file, const char *text) {
  if (file >= 0 && write(file, text, strlen(text)) < 0) errno = 0;
}

void fakenccl_log(const char *format, ...) {
  char line[1024] = "fakenccl: ";
  size_t start = strlen(line);
  va_list args;
  va_start(args, format);
  vsnprintf(line + start, sizeof line - start - 1, format, args);
  va_end(args);
  strcat(line, "\n");
  log_write(STDERR_FILENO, line);
  const char *path = getenv("FAKENCCL_LOG");
  if (path == NULL || *path == '\0') return;
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  log_write(file, line + start);
  if (file >= 0) close(file);
}

ncclResult_t fakenccl_refuse(ncclResult_t code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_text, sizeof last_text, format, args);
  va_end(args);
  fakenccl_log("%s: %s", entry, last_text);
  return code;
}
