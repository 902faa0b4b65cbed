/* core/records/learnt/class_names.h: the names of the classes travel with the weights: files of weights
 * have them in their metadata, as a JSON object with a list for each target, {"label": ["cat", "dog"]}. */
#pragma once

#include "core/data/loader.h"
#include "core/formats/safetensors.h"
#include "core/onnx/onnx.h"
#include "core/run/run.h"

#define TN_CLASS_NAMES_NOTE "tenon.classes"

/* Sets run->class_names to those that the targets of the data have, if they have names. */
tn_status tn_class_names_of_data(tn_run *run, const tn_loader *loader);
/* Sets run->class_names, unless it is set, to those of a file of weights, if it has names. */
void tn_class_names_of_weights(tn_run *run, const tn_safetensors *file);
