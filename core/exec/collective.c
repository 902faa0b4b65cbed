/* core/exec/collective.c: collectives as steps of a program. */
#include "core/exec/collective.h"

#include "core/graph/op/schema.h"
#include "tenon/attributes.h"

/* ---- the device's part ---- */

static tn_status check(tn_env *env, const tn_communicator *kind) {
  if (kind->open && kind->close && kind->run && kind->abort) return TN_OK;
  return tn_failf(env, TN_EABI, "communicator '%s' lacks one of open, close, run and abort", kind->item.name);
}

tn_status tn_comm_open(tn_env *env, tn_device *device, const tn_comm_request *request, tn_comm **out) {
  *out = NULL;
  TN_TRY(check(env, request->kind));
  tn_comm *comm = tn_alloc(env, sizeof *comm);
  if (!comm) return TN_ENOMEM;
  tn_error_record_init(&comm->env, &comm->record, env);
  comm->kind = request->kind;
  comm->device = device;
  comm->rank = request->rank;
  comm->ranks = request->ranks;
  tn_status status = comm->kind->open(&comm->env, request->options, device->device, request->rank,
                                      request->ranks, request->identity, request->timeout_s, &comm->self);
  if (status == TN_OK) {
    device->comm = comm;
    *out = comm;
    return TN_OK;
  }
  tn_wrap(&comm->env, status, "communicator '%s'", comm->kind->item.name);
  tn_error_move(env, &comm->env);
  tn_release(env, comm);
  return status;
}

void tn_comm_close(tn_comm *comm) {
  if (!comm) return;
  comm->kind->close(&comm->env, comm->self);
  comm->device->comm = NULL;
  /* the handle stands in the very block that is released */
  tn_error_record record = comm->record;
  tn_env env = {comm->env.api, &record};
  tn_release(&env, comm);
}

void tn_comm_abort(tn_comm *comm) {
  if (!comm) return;
  tn_error_record record;
  tn_env env; /* of this thread: comm->env is the launching thread's */
  tn_error_record_init(&env, &record, &comm->env);
  comm->kind->abort(&env, comm->self);
}

/* ---- steps ---- */

/* What is known before the launch: all but the addresses. */
typedef struct tn_collective_plan {
  const tn_device *device;
  tn_collective what;
} tn_collective_plan;

static int32_t reduction_of(const tn_step *step) {
  const tn_node *node = step->group->match->nodes[0].node;
  const tn_all_reduce_attributes *a = node->attributes;
  return a->reduction;
}

tn_status tn_collective_prepare(tn_executor *e, const tn_step *step, void **out) {
  tn_collective_plan *plan = tn_alloc(e->env, sizeof *plan);
  if (!plan) return tn_failf(&e->device->env, TN_ENOMEM, "no memory for a collective");
  const tn_type *type = &step->in[0].type;
  plan->device = e->device;
  plan->what = (tn_collective){.struct_size = sizeof plan->what,
                               .kind = TN_ALL_REDUCE,
                               .reduction = reduction_of(step),
                               .dtype = type->dtype,
                               .count = tn_type_count(type),
                               .name = step->name};
  *out = plan;
  return TN_OK;
}

void tn_collective_release(tn_executor *e, void *plan) { tn_release(e->env, plan); }

static tn_status copy_alone(const tn_device *device, tn_launch *l, const tn_collective *what) {
  if (what->from == what->to) return TN_OK;
  uint64_t bytes = (uint64_t)what->count * tn_dtype_size(what->dtype);
  return device->backend->copy(&l->env, l->stream, TN_COPY_ON_DEVICE, what->to, what->from, bytes);
}

tn_status tn_collective_launch(tn_launch *l) {
  const tn_collective_plan *plan = l->plan;
  const tn_comm *comm = plan->device->comm;
  tn_collective what = plan->what;
  what.from = l->in[0].data;
  what.to = l->out[0].data;
  if (what.count == 0) return TN_OK;
  return comm ? comm->kind->run(&l->env, comm->self, &what, l->stream) : copy_alone(plan->device, l, &what);
}
