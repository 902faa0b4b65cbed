/* core/exec/tune/tune_file.h: measurements of kernels in a text file. */
#ifndef TN_CORE_EXEC_TUNE_TUNE_FILE_H
#define TN_CORE_EXEC_TUNE_TUNE_FILE_H

#include "core/base/text.h"
#include "core/base/vec.h"

typedef struct tn_timing {
  uint64_t key;
  double seconds;
} tn_timing;

typedef struct tn_tune_file {
  tn_env *env;
  char *path;    /* NULL: measurements stay in memory */
  char *heading; /* first line: names the device and the number of threads */
  bool writable; /* until a write fails */
  bool unread;   /* until the first lookup: most runs have no variants to choose from */
  TN_VEC(tn_timing) timings;
} tn_tune_file;

/* The first lookup reads the file. Lines that are not measurements are ignored and their number is logged. A
 * file with another heading is not changed. */
tn_status tn_tune_file_open(tn_env *env, const char *folder, const char *heading, tn_tune_file *file);
void tn_tune_file_close(tn_tune_file *file);
bool tn_tune_file_find(tn_tune_file *file, uint64_t key, double *seconds);
/* Stores a measurement in memory alone. */
void tn_tune_file_remember(tn_tune_file *file, uint64_t key, double seconds);
/* Stores a measurement in memory and appends a line to the file, in one write, so that processes may share
 * it. A failure to write is logged. variant: text of the line after the time. */
void tn_tune_file_add(tn_tune_file *file, uint64_t key, double seconds, const char *variant);

#endif
