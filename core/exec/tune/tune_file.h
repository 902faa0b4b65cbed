/* core/exec/tune/tune_file.h: measurements on disk. */
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
  char *path;    /* NULL: nothing is kept */
  char *heading; /* first line: whose measurements these are */
  bool writable; /* until writing fails */
  bool unread;   /* until somebody asks: most runs have nothing to choose between */
  TN_VEC(tn_timing) timings;
} tn_tune_file;

/* What there is is read with the first question. Lines that are no measurements are left out, and their
 * number is logged; a file with another heading is not touched. */
tn_status tn_tune_file_open(tn_env *env, const char *folder, const char *heading, tn_tune_file *file);
void tn_tune_file_close(tn_tune_file *file);
bool tn_tune_file_find(tn_tune_file *file, uint64_t key, double *seconds);
/* Adds a line at the end, in one write, so that several processes may share the file. What goes wrong is
 * logged: the measurement stands in memory. */
void tn_tune_file_add(tn_tune_file *file, uint64_t key, double seconds, const char *what);

#endif
