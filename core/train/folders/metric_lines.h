/* core/train/folders/metric_lines.h: reads FOLDER/metrics.jsonl line by line. */
#ifndef TN_CORE_TRAIN_FOLDERS_METRIC_LINES_H
#define TN_CORE_TRAIN_FOLDERS_METRIC_LINES_H

#include "core/base/text.h"

/* Calls `take` for each complete line, without its end; the last one may be incomplete while a run writes it,
 * and is left out. A run without the file has no lines. */
tn_status tn_metric_lines_scan(const void *handle, const char *folder,
                               void (*take)(void *context, const tn_text *line), void *context);

#endif
