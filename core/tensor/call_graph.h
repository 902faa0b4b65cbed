/* core/tensor/call_graph.h: private to core/tensor: the signature of a call, and its graph. Calls with the
 * same signature share a program: the op, its attributes, the types and dimension orders of the operands, and
 * the requested results or gradients. */
#pragma once

#include "core/graph/graph.h"
#include "core/graph/op/schema.h"

/* A port is an operand, a result, or a gradient of either. */
enum { TN_PORT_OPERAND = 1, TN_PORT_DRESULT = 2, TN_PORT_RESULT = 3, TN_PORT_GRADIENT = 4 };
typedef struct tn_port {
  int32_t role, number; /* operand 2, result 0 */
  int32_t present;
  int32_t permuted;
  tn_type type;               /* of operands and gradients of results; zero where the program determines it */
  int32_t order[TN_MAX_RANK]; /* as in tn_tensor */
} tn_port;

/* Ports are compared byte by byte, so their memory starts zeroed. */
typedef struct tn_call_key {
  const tn_op_def *def;
  const void *attributes;
  const tn_port *ports;
  int32_t n_ports;
  int32_t gradient;
} tn_call_key;

/* The type with its dimensions in storage order. */
static inline tn_type tn_stored_type(const tn_type *type, const int32_t *order) {
  tn_type stored = *type;
  for (int32_t i = 0; i < type->rank; i++) stored.dims[i] = type->dims[order[i]];
  return stored;
}

/* The graph of a call. Inputs and outputs are named after ports: "3" is ports[3]. */
tn_status tn_call_graph_create(tn_env *env, struct tn_op_table *ops, const tn_call_key *key,
                               tn_graph **graph);
