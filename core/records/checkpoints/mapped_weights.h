/* core/records/checkpoints/mapped_weights.h: a file of weights in memory, as its pages: [weights] map. */
#pragma once

#include "core/records/checkpoints/weights.h"
#include "core/step/programs/mapped_states.h"

typedef struct tn_mapped_weights tn_mapped_weights;

/* Maps the file of the weights that a program without training reads, if it may be used in place: a
 * safetensors file of its own, whose size and checksum are not recorded, for a device in the host's memory,
 * without adapters and without low-precision copies. *mapped is NULL where it may not; a file that cannot be
 * opened is left to the reader of weights, which says why. `prefix` and `rename` as in tn_weights_source. */
tn_status tn_mapped_weights_open(tn_run *run, const tn_device *device, const char *path, const char *prefix,
                                 const char *rename, tn_mapped_weights **mapped);
/* The file of [weights]. */
tn_status tn_mapped_weights_open_configured(tn_run *run, const tn_device *device, tn_mapped_weights **mapped);
/* After the programs and their executor. Accepts NULL. */
void tn_mapped_weights_close(tn_mapped_weights *mapped);
/* NULL of NULL. */
const tn_mapped_states *tn_mapped_weights_states(const tn_mapped_weights *mapped);
