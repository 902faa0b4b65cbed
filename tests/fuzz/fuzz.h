/* tests/fuzz/fuzz.h: shared code of the fuzz targets. A target is a file here with one function,
 * LLVMFuzzerTestOneInput, that takes any bytes. With clang it is driven by libFuzzer (`tools/dev fuzz`),
 * with gcc by replay.c over the seeds. A finding is a crash, a report of a sanitizer, a leak, a failure
 * without a message, or a violated property that the target checks. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "core/base/env.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A handle whose memory is counted and limited, so that a short input cannot exhaust the machine. */
typedef struct fuzz {
  tn_env env;
  tn_error_record record;
  size_t asked; /* in all */
  long live;    /* blocks */
} fuzz;

void fuzz_open(fuzz *f);
void fuzz_close(fuzz *f); /* aborts if a block was not released */

/* A failure must have a message and a code other than an internal fault. */
void fuzz_judge(fuzz *f, tn_status status);
/* Aborts with a message. */
void fuzz_expect(int holds, const char *what);

/* A path under which the bytes can be read as a regular file, until fuzz_file_end. */
int fuzz_file(const uint8_t *bytes, size_t size, char path[64]);
void fuzz_file_end(int file);

/* A folder of files, for sources that look for their names. */
typedef struct fuzz_folder {
  char path[64];
} fuzz_folder;

void fuzz_folder_open(fuzz_folder *folder);
void fuzz_folder_write(const fuzz_folder *folder, const char *name, const uint8_t *bytes, size_t size);
void fuzz_folder_close(const fuzz_folder *folder); /* removes the files, and the folder */

/* The bytes as a text; the caller frees it (free). */
char *fuzz_text(const uint8_t *bytes, size_t size);
