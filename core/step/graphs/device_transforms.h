/* core/step/graphs/device_transforms.h: the transforms of the data that a program applies, on the device. */
#pragma once

#include "core/data/transform_chain.h"
#include "core/model/model.h"

/* The inputs of the model that the chain's stages on the device compute: one for each field that they
 * replace. The program's inputs are then the fields of the loader's batch. `where` is the location of the
 * source. The result is allocated in `arena`; n is 0 if the host applies all transforms. */
tn_status tn_device_transforms_prepare(tn_arena *arena, const tn_transform_chain *chain, const char *where,
                                       tn_prepared_inputs *inputs);
