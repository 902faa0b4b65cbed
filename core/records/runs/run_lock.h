/* core/records/runs/run_lock.h: one process at a time writes into a run folder. */
#pragma once

#include "core/run/run.h"

/* The file in the run folder that is locked. It names the process that holds the lock, and stays when the run
 * ends. */
#define TN_LOCK_NAME ".lock"

typedef struct tn_run_lock {
  int fd;
} tn_run_lock;

/* Locks FOLDER for this run; the kernel releases the lock when the process ends. TN_EUNAVAILABLE: another run
 * holds it, and the text says which; TN_EIO: the folder cannot be written. On a file system without locks a
 * warning says so, and the run goes on. run->lock is NULL before; rank 0 alone calls this. */
tn_status tn_run_lock_take(tn_run *run, const char *folder);
/* Whether a process holds the lock of FOLDER; `holder` names it then: "process 812 on node7, since ...". The
 * lock itself is asked, since a process that was killed leaves its name. */
enum { TN_LOCK_TEXT = 256 };
bool tn_run_lock_is_held(const void *handle, const char *folder, char holder[TN_LOCK_TEXT]);
/* Releases the lock, if the run holds one. */
void tn_run_lock_release(tn_run *run);
