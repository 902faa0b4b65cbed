/* core/records/folders/run_lines.h: reads a file of lines in a run folder, such as metrics.jsonl. */
#pragma once

#include "core/base/text/text.h"

/* Calls `take` for each complete line of FOLDER/NAME, without its end; the last one may be incomplete while a
 * run writes it, and is left out. A run without the file has no lines. */
tn_status tn_run_lines_scan(const void *handle, const char *folder, const char *name,
                            void (*take)(void *context, const tn_text *line), void *context);
