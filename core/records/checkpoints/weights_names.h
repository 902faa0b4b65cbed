/* core/records/checkpoints/weights_names.h: the names of a file of weights as names of the model: without the
 * prefix, and renamed by rules "layer*.conv.* -> block*.convolution.*". */
#pragma once

#include "core/base/arena.h"
#include "core/formats/safetensors.h"

typedef struct tn_named_tensor {
  const char *name; /* of the model */
  const tn_safetensor *tensor;
} tn_named_tensor;

typedef struct tn_weights_names {
  tn_named_tensor *v; /* sorted by name */
  int32_t n;
} tn_weights_names;

/* Tensors whose names lack the prefix are left out. `rules` are separated by commas or newlines; the first
 * rule that matches a name renames it, and each `*` of its right side stands for the text of the same `*` of
 * its left side. TN_EINVAL: a rule is malformed or matches no name, or two tensors get one name. */
tn_status tn_weights_names_make(const void *handle, tn_arena *arena, const tn_safetensors *file,
                                const char *path, const char *prefix, const char *rules,
                                tn_weights_names *names);
/* NULL: none. */
const tn_safetensor *tn_weights_names_find(const tn_weights_names *names, const char *name);
