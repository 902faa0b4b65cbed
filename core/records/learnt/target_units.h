/* core/records/learnt/target_units.h: the units of targets travel with the weights: files of weights
 * have them in their metadata, as a JSON object with two lists for each target that the source has scaled,
 * {"price": {"scale": [2.5], "shift": [10]}} (tn_field.scale). */
#pragma once

#include "core/data/loader.h"
#include "core/formats/safetensors.h"
#include "core/run/run.h"

#define TN_TARGET_UNITS_NOTE "tenon.units"

/* Sets run->target_units to those of the targets of the data, if these are scaled. */
tn_status tn_target_units_of_data(tn_run *run, const tn_loader *loader);
/* Sets run->target_units, unless it is set, to those of a file of weights. */
tn_status tn_target_units_of_weights(tn_run *run, const tn_safetensors *file);
