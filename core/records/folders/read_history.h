/* core/records/folders/read_history.h: history.jsonl of a run folder: the trainings that began there. */
#pragma once

#include <jansson.h>

#include "core/base/env.h"

/* A list of the starts, the oldest first, each with its end as "end", or null: it runs, or it was killed. A
 * line that cannot be read is left out; a run without the file has none. The caller releases *trainings. */
tn_status tn_history_read(const void *handle, const char *folder, json_t **trainings);
