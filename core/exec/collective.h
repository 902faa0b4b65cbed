/* core/exec/collective.h: a device's part in a communicator, and the launches that go through it. */
#ifndef TN_CORE_EXEC_COLLECTIVE_H
#define TN_CORE_EXEC_COLLECTIVE_H

#include "core/exec/bound_program.h"
#include "tenon/plugin/communicator.h"

typedef struct tn_comm {
  tn_env env; /* of open, close and status */
  tn_error_record record;
  const tn_communicator *kind;
  void *self;
  tn_device *device;
  int32_t rank, ranks;
} tn_comm;

typedef struct tn_comm_request {
  const tn_communicator *kind;
  const void *options;
  const void *identity;
  int32_t rank, ranks;
  double timeout_s;
} tn_comm_request;

/* Blocks until all ranks are here. From then on the device's programs may hold collectives. The text of a
 * failure is in env. */
tn_status tn_comm_open(tn_env *env, tn_device *device, const tn_comm_request *request, tn_comm **comm);
/* After the device's executors, whose streams may still hold collectives. Accepts NULL. */
void tn_comm_close(tn_comm *comm);
/* From any thread: collectives that wait for others fail soon. Accepts NULL. */
void tn_comm_abort(tn_comm *comm);

/* ---- for bind.c ---- */

/* Makes the plan of a step whose kernel is tn_kernel_all_reduce, and frees it. */
tn_status tn_collective_prepare(tn_executor *e, const tn_step *step, void **plan);
void tn_collective_release(tn_executor *e, void *plan);
/* Its launch. On a device that is alone the result is the operand. */
tn_status tn_collective_launch(tn_launch *l);

#endif
