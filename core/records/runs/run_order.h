/* core/records/runs/run_order.h: which of the runs of a name trained last. A start of a training in
 * history.jsonl has a number, "order": milliseconds since 1970, and more than that of every training before
 * it in the runs of this name. Times of files do not tell: a copy has other ones, and a clock may go back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The greatest number in FOLDER/history.jsonl; of trainings of earlier versions, which have none, that of
 * their last "time"; 0: the folder has no such record. */
int64_t tn_run_order_read(const void *handle, const char *folder);
/* The number of a training that begins now in `folder`, one of the runs NAME, NAME-2, NAME-3 ... in PARENT.
 */
int64_t tn_run_order_next(const void *handle, const char *folder, const char *parent, const char *name);

/* "2026-05-01T09:12:44Z" in milliseconds since 1970; 0: it is no such text, or NULL. */
int64_t tn_run_order_of_time(const char *text);
/* Whether a file name is NAME or NAME-2, NAME-3 ... */
bool tn_run_order_is_named(const char *file, const char *name);
