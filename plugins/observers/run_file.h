/* plugins/observers/run_file.h: a file in the run folder to which an observer appends.
 *
 * Bytes that cannot be written are kept and written before the next ones, so that a disk that is full for a
 * while causes no loss. */
#pragma once

#include "tenon/plugin/observer.h"

enum { RUN_FILE_LINE = 4096 }; /* the largest number of bytes that one call of run_file_print adds */

typedef struct run_file {
  int fd;        /* -1: the run has no folder */
  char *pending; /* bytes to be written */
  size_t n, capacity;
  int refused; /* the last write failed and was reported */
  char path[4096];
} run_file;

/* The same file with a descriptor above 2: where the application has closed its standard streams, text that
 * is printed there would go into it. -1 with errno on failure. */
int run_file_move_up(int fd);

/* Opens folder/name, which is made if it does not exist; "" as folder: later calls write nothing. A link or a
 * file that is not regular is refused. run_file_close follows also on failure. */
tn_status run_file_open(run_file *f, tn_env *env, const char *folder, const char *name);
/* Writes the pending bytes, as far as possible, and closes. */
void run_file_close(run_file *f, tn_env *env);

/* Append to the pending bytes. After a failure the caller sets f->n to what it was before its record. */
tn_status run_file_add(run_file *f, tn_env *env, const void *bytes, size_t n);
TN_PRINTF(3, 4) tn_status run_file_print(run_file *f, tn_env *env, const char *format, ...);

/* Writes the pending bytes. A failure is a warning, until there are too many of them (TN_EIO). */
tn_status run_file_write(run_file *f, tn_env *env);
/* Flushes the written bytes to the disk. Failures are ignored. */
void run_file_sync(const run_file *f);
