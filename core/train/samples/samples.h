/* core/train/samples/samples.h: [run] samples: at each validation, the first samples of its data with what
 * the model makes of them, for the observers (docs/guide/samples.md). */
#pragma once

#include "core/train/samples/sample_media.h"

typedef struct tn_samples tn_samples;

/* Reads the samples from the source of the run's loader of validation data, and finds how they are shown. All
 * ranks read the same ones. TN_EINVAL: a name of [run] sample_fields, or nothing can be shown. */
tn_status tn_samples_open(tn_run *run, const tn_loader *valid, tn_program_set *set, tn_executor *executor,
                          int32_t slots, tn_samples **samples);
/* Runs the model on them, between the runs of other programs and on all ranks at once: its program may have
 * collectives. *media stay until the next call, and have no entries but on rank 0. */
tn_status tn_samples_run(tn_samples *samples, const tn_media **media, int32_t *n);
void tn_samples_close(tn_samples *samples);
