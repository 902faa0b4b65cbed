/* core/tensor/call_run.h: private to core/tensor: a call whose tensors are known, from its signature to its
 * run. */
#pragma once

#include "core/tensor/tensor.h"

/* The tensors of a call, one per port. */
typedef struct tn_call_run {
  tn_device *device;
  tn_arena *arena; /* of the call */
  const tn_op_def *def;
  tn_port *ports;
  tn_tensor **given; /* NULL: an absent operand, or a result to allocate */
  tn_tensor **used;  /* read and written by the program: the given tensor, or an allocated one */
  int32_t n;
} tn_call_run;

/* Room for n ports. */
tn_status tn_call_run_start(tn_device *device, tn_arena *arena, const tn_op_def *def, size_t n,
                            tn_call_run *run);
/* TN_EINVAL unless the tensor is on the device of the call. */
tn_status tn_call_run_check_device(const tn_device *device, const tn_op_def *def, const tn_tensor *t,
                                   const char *kind, int32_t number);
/* t: NULL for an absent operand, and for a result to allocate. */
tn_status tn_call_run_add(tn_call_run *run, int32_t role, int32_t number, tn_tensor *t);

/* Enqueues the call. A result whose given tensor shares memory with another port is computed into an
 * allocated tensor: used[i] differs from given[i], and the caller copies it. */
tn_status tn_call_run_enqueue(tn_call_run *run, const void *attributes, bool gradient);
/* Deletes the tensors that the run allocated. */
void tn_call_run_discard(tn_call_run *run);
