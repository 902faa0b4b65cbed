/* core/exec/tune/tune_file.h: measurements of kernels in a text file. */
#pragma once

#include "core/base/text/text.h"
#include "core/base/vec.h"

typedef struct tn_timing {
  uint64_t key;
  double seconds; /* 0: the launch could not be measured */
  bool stored;    /* false: it is of use to this process only */
} tn_timing;

/* A measurement that did not end, as far as the file says. */
typedef struct tn_tune_mark {
  uint64_t key;
  long pid;
  bool here;  /* the process is, or was, one of this host */
  bool fault; /* the process has written that the device failed */
  bool told;  /* a line of the log has named it */
} tn_tune_mark;

typedef struct tn_tune_file {
  tn_env *env;
  char *path;    /* NULL: measurements stay in memory */
  char *heading; /* first line: names the device and the number of threads */
  bool writable; /* until a write fails */
  bool unread;   /* until the first lookup: most runs have no variants to choose from */
  TN_VEC(tn_timing) timings;
  TN_VEC(tn_tune_mark) marks;
} tn_tune_file;

/* The first lookup reads the file. Lines that are not measurements are ignored and their number is logged. A
 * file with another heading is not changed. */
tn_status tn_tune_file_open(tn_env *env, const char *folder, const char *heading, tn_tune_file *file);
void tn_tune_file_close(tn_tune_file *file);
/* NULL: the launch was not measured. Valid until the next call. */
const tn_timing *tn_tune_file_find(tn_tune_file *file, uint64_t key);
/* Keeps a measurement in memory alone. */
void tn_tune_file_remember(tn_tune_file *file, const tn_timing *timing);
/* Stores a measurement in memory and appends a line to the file, in one write, so that processes may share
 * it. A failure to write is logged. variant: text of the line after the time. */
void tn_tune_file_add(tn_tune_file *file, uint64_t key, double seconds, const char *variant);

/* Before a measurement: appends a line, so that later processes know of it if this one is killed. */
void tn_tune_file_begin(tn_tune_file *file, uint64_t key);
/* After a measurement that is not stored. */
void tn_tune_file_end(tn_tune_file *file, uint64_t key);
/* After a measurement in which the device failed. False: the next process will not know of it. */
bool tn_tune_file_fault(tn_tune_file *file, uint64_t key, const char *variant);
/* The mark of a variant that must not be measured: the device failed, or two processes of this host have
 * ended while they measured it: one may have been interrupted. NULL: the variant may be measured. */
tn_tune_mark *tn_tune_file_find_fault(tn_tune_file *file, uint64_t key);
bool tn_tune_file_has_marks(tn_tune_file *file); /* false: there is no such variant */
