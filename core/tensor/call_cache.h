/* core/tensor/call_cache.h: private to core/tensor: calls by signature. What differs in the signature differs
 * in the program: the op, its attributes, the operands' types and order, and what is asked for. */
#ifndef TN_CORE_TENSOR_CALL_CACHE_H
#define TN_CORE_TENSOR_CALL_CACHE_H

#include "core/exec/caller_memory.h"
#include "core/graph/op/schema.h"

/* What a tensor is to a call. */
enum { TN_PORT_OPERAND = 1, TN_PORT_DRESULT = 2, TN_PORT_RESULT = 3, TN_PORT_GRADIENT = 4 };
typedef struct tn_port {
  int32_t role, number; /* operand 2, result 0 */
  int32_t present;
  int32_t permuted;
  tn_type type; /* operands and gradients of results; zero for what the program decides */
  int32_t order[TN_MAX_RANK];
} tn_port;

/* Ports are compared byte by byte: they start as zeros. */
typedef struct tn_call_key {
  const tn_op_def *def;
  const void *attributes;
  const tn_port *ports;
  int32_t n_ports;
  int32_t gradient;
} tn_call_key;

/* A compiled call. */
typedef struct tn_compiled {
  tn_env *env;
  tn_arena arena; /* of the key */
  tn_call_key key;
  uint64_t hash;
  int64_t used; /* when: the number of the call */
  tn_state_map *map;
  tn_program *program;
  tn_outside *outside;
  int32_t *input_port, *output_port; /* per input and output of the program: index into ports */
} tn_compiled;

enum { TN_CALLS_KEPT = 128 };

typedef struct tn_call_cache {
  TN_VEC(tn_compiled *) calls;
  int64_t clock;    /* counts calls */
  int64_t compiled; /* counts compilations */
} tn_call_cache;

/* The compiled call of a signature, made where there is none; the least recently used one makes room. */
tn_status tn_cache_get(tn_device *device, const tn_call_key *key, tn_compiled **compiled);
/* Waits for the device. */
void tn_cache_empty(tn_device *device);

/* one_op.c: the graph of a call. Inputs and outputs are named after ports: "3" is ports[3]. */
tn_status tn_one_op_graph(tn_env *env, struct tn_op_table *ops, const tn_call_key *key, tn_graph **graph);

#endif
