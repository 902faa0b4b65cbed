/* A model in a file of its own, for tests that open it from C. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct model_file {
  char path[64];
} model_file;

/* 0, as set-up functions return it, or -1. */
static inline int model_file_write(model_file *file, const char *text) {
  snprintf(file->path, sizeof file->path, "/tmp/tenon-model-XXXXXX");
  int fd = mkstemp(file->path);
  if (fd < 0) return -1;
  ssize_t n = write(fd, text, strlen(text));
  close(fd);
  return n == (ssize_t)strlen(text) ? 0 : -1;
}

static inline int model_file_remove(const model_file *file) { return unlink(file->path); }
