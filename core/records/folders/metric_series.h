/* core/records/folders/metric_series.h: the training steps of FOLDER/metrics.jsonl as curves of at most about
 * a thousand points. */
#pragma once

#include <jansson.h>

#include "core/base/env.h"

/* {"step": [...], "lr": [...], "per_s": [...], "loss_scale": [...], "train": {"loss": [...], ...}}: point k
 * is the mean of as many steps as there are steps for a point. A value that no step has is null. A run
 * without the file has no points. The caller releases *series. */
tn_status tn_metric_series_read(const void *handle, const char *folder, json_t **series);
