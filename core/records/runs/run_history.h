/* core/records/runs/run_history.h: history.jsonl of a run folder: a line for each start of a training
 * there, and one for its end. A process that is killed leaves a start without an end. */
#pragma once

#include <jansson.h>

#include "core/base/env.h"

#define TN_HISTORY_NAME "history.jsonl"

/* Appends a line, with one write, and flushes it to the disk; an incomplete last line of a process that was
 * killed is removed first. The caller holds the lock of the folder. A failure to write is a warning, since
 * the weights matter more. Releases `line`; NULL: a lack of memory, which is a warning, too. */
void tn_run_history_add(const void *handle, const char *folder, json_t *line);
