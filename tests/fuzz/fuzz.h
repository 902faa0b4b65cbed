/* tests/fuzz/fuzz.h: what the fuzz targets share. A target is a file here with one function,
 * LLVMFuzzerTestOneInput, that takes any bytes. With clang it is driven by libFuzzer (`tools/dev fuzz`), with
 * gcc by replay.c over the seeds. A finding is a crash, a report of a sanitizer, memory that is not given
 * back, a failure without a message, or a broken promise that the target checks. */
#ifndef TN_TESTS_FUZZ_FUZZ_H
#define TN_TESTS_FUZZ_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "core/base/env.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A handle whose memory is counted and limited: a few bytes must not cost a machine. */
typedef struct fuzz {
  tn_env env;
  tn_error_record record;
  size_t asked; /* in all */
  long live;    /* blocks */
} fuzz;

void fuzz_open(fuzz *f);
void fuzz_close(fuzz *f); /* aborts when a block is left */

/* A failure must have a message, and a code that the caller can do something about. */
void fuzz_judge(fuzz *f, tn_status status);
/* Aborts, saying why. */
void fuzz_expect(int holds, const char *what);

/* A path under which the bytes can be read as a regular file, until fuzz_file_end. */
int fuzz_file(const uint8_t *bytes, size_t size, char path[64]);
void fuzz_file_end(int file);

/* The bytes as a text; the caller's (free). */
char *fuzz_text(const uint8_t *bytes, size_t size);

#endif
