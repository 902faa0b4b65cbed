/* core/tensor/call_cache.h: private to core/tensor: compiled calls by signature. */
#pragma once

#include "core/exec/caller_memory.h"
#include "core/tensor/call_graph.h"

typedef struct tn_compiled_call {
  tn_env *env;
  tn_device *device;
  tn_arena arena; /* of the key */
  tn_call_key key;
  uint64_t hash;
  int64_t last_use; /* value of tn_call_cache.clock */
  tn_state_map *map;
  tn_program *program;
  tn_caller_program *runnable;
  int32_t *input_port, *output_port; /* per input and output of the program: index into ports */
} tn_compiled_call;

enum { TN_CALLS_KEPT = 128 };

typedef struct tn_call_cache {
  TN_VEC(tn_compiled_call *) calls;
  int64_t clock;    /* counts calls */
  int64_t compiled; /* counts compilations */
} tn_call_cache;

/* The compiled call of a signature, compiled on a miss. A full cache evicts the least recently used call. */
tn_status tn_call_cache_get(tn_device *device, const tn_call_key *key, tn_compiled_call **compiled);
/* Waits for the device. */
void tn_call_cache_clear(tn_device *device);
