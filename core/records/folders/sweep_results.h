/* core/records/folders/sweep_results.h: the folder of a sweep: sweep.json, and a run folder for each run. */
#pragma once

#include <jansson.h>

#include "core/base/arena.h"

/* Whether a folder is a sweep's. */
bool tn_is_sweep_folder(const void *handle, const char *folder);
/* The result of tn_list_sweep; the caller releases *json. */
tn_status tn_sweep_results(const void *handle, tn_arena *arena, const char *folder, json_t **json);
