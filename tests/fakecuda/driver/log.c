/* tests/fakecuda/driver/log.c: FAKECUDA_LOG: one line for each violation of the header's contract, each fault
 * and each leak. The file exists, empty, as soon as the double is loaded. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/driver/driver.h"
#include "tests/fakecuda/driver/task.h"

static int log_file = -1;

__attribute__((constructor)) static void log_open(void) {
  const char *path = getenv("FAKECUDA_LOG");
  if (path != NULL && *path != '\0') log_file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

__attribute__((destructor)) static void log_close(void) {
  if (log_file >= 0) close(log_file);
  log_file = -1;
}

void fake_log_text(const char *text) {
  if (log_file >= 0 && write(log_file, text, strlen(text)) < 0) log_file = -1;
}

void fake_log(const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line - 1, format, args);
  va_end(args);
  if (n < 0) return;
  strcpy(line + (n < (int)sizeof line - 2 ? (size_t)n : sizeof line - 2), "\n");
  fake_log_text(line);
}

FAKE_API void fakecuda_log(const char *line) { fake_log("%s", line); }
