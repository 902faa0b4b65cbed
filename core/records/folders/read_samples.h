/* core/records/folders/read_samples.h: the pictures and texts of [run] samples in a run folder. */
#pragma once

#include <jansson.h>

#include "core/base/env.h"

/* [{"step": 100, "texts": {"table": "..."}, "pictures": {"0": "data:image/png;base64,..."}}, ...]: the newest
 * validations, the oldest of them first, as many as a page has room for. A run without samples has none; a
 * file that cannot be read is left out. The caller releases *samples. */
tn_status tn_run_samples_read(const void *handle, const char *folder, json_t **samples);
