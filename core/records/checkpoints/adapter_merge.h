/* core/records/checkpoints/adapter_merge.h: W + s B A, the weight of a layer with its adapter, and with the
 * norms that it gives the units. */
#pragma once

#include "core/records/checkpoints/adapter_note.h"
#include "core/records/checkpoints/weights_names.h"

/* An adapter in a file; its layer has the weight LAYER.weight. */
typedef struct tn_stored_adapter {
  const char *layer;
  const tn_safetensor *down, *up;
  const tn_safetensor *magnitude; /* the norm of each unit; NULL: W + s B A has its own */
  bool embedding;
  double scale;
} tn_stored_adapter;

typedef struct tn_stored_adapters {
  tn_stored_adapter *v;
  int32_t n;
} tn_stored_adapters;

/* The adapters among the names of a file, in the arena. TN_EINVAL: one lacks its other half, or has no scale.
 */
tn_status tn_stored_adapters_list(tn_arena *arena, const tn_weights_names *names, const char *path,
                                  const tn_adapter_note *note, const tn_adapters *adapters,
                                  tn_stored_adapters *list);
/* The adapter of the layer whose weight has this name; NULL: the layer has no adapter. */
const tn_stored_adapter *tn_stored_adapters_find(const tn_stored_adapters *list, const char *weight);
/* Adds s B A to f32 elements of the layer's weight, (units, inputs, ...) or the table of an embedding, and
 * gives the units their norms. TN_EINVAL: the adapter is of another shape. */
tn_status tn_stored_adapter_merge(const void *handle, const tn_safetensors *file, const char *path,
                                  const tn_stored_adapter *adapter, const tn_type *type, float *weight);
/* Reads floats of any width as f32; *data is the caller's (tn_release). */
tn_status tn_stored_floats_read(const void *handle, const tn_safetensors *file, const tn_safetensor *tensor,
                                float **data);
