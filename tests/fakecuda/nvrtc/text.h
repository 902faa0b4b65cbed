/* tests/fakecuda/nvrtc/text.h: text that grows. The bytes end with a NUL that `bytes` does not count. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct nvrtc_text {
  char *at;
  size_t bytes, room;
  bool failed; /* no memory: later additions are lost */
} nvrtc_text;

void nvrtc_add_bytes(nvrtc_text *text, const char *from, size_t bytes);
void nvrtc_add(nvrtc_text *text, const char *from);
void nvrtc_print(nvrtc_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nvrtc_insert(nvrtc_text *text, size_t offset, const char *from, size_t bytes);
/* Takes out each `what`. */
void nvrtc_remove(nvrtc_text *text, const char *what);
void nvrtc_text_free(nvrtc_text *text);
/* 0, or -1 with errno. */
int nvrtc_read_file(const char *path, nvrtc_text *text);
int nvrtc_write_file(const char *path, const char *from, size_t bytes);
