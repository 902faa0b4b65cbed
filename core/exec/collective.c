/* core/exec/collective.c: collectives as steps of a program. */
#include "core/exec/collective.h"

#include "core/graph/op/schema.h"
#include "tenon/attributes.h"

/* ---- the communicator of a device ---- */

static tn_status communicator_check(tn_env *env, const tn_communicator *kind) {
  if (kind->open && kind->close && kind->run && kind->abort) return TN_OK;
  return tn_failf(env, TN_EABI, "communicator '%s' lacks one of open, close, run and abort", kind->item.name);
}

tn_status tn_comm_open(tn_env *env, tn_device *device, const tn_comm_request *request, tn_comm **out) {
  *out = NULL;
  TN_TRY(communicator_check(env, request->kind));
  tn_comm *comm = tn_alloc(env, sizeof *comm);
  if (comm == NULL) return TN_ENOMEM;
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
  if (comm == NULL) return;
  comm->kind->close(&comm->env, comm->self);
  comm->device->comm = NULL;
  /* comm->env is in the block that is released, so a copy of it releases the block */
  tn_error_record record = comm->record;
  tn_env env = {comm->env.api, &record};
  tn_release(&env, comm);
}

void tn_comm_abort(tn_comm *comm) {
  if (comm == NULL) return;
  tn_error_record record;
  tn_env env; /* of this thread; comm->env belongs to the launching thread */
  tn_error_record_init(&env, &record, &comm->env);
  comm->kind->abort(&env, comm->self);
}

/* ---- steps ---- */

/* A prepared collective: all but its addresses. */
typedef struct prepared_collective {
  const tn_device *device;
  tn_collective collective;
} prepared_collective;

static int32_t reduction_of(const tn_step *step) {
  const tn_node *node = step->group->match->nodes[0].node;
  const tn_all_reduce_attributes *a = node->attributes;
  return a->reduction;
}

tn_status tn_collective_prepare(tn_executor *e, const tn_step *step, void **out) {
  prepared_collective *prepared = tn_alloc(e->env, sizeof *prepared);
  if (prepared == NULL) return tn_failf(&e->device->env, TN_ENOMEM, "out of memory for a collective");
  const tn_type *type = &step->in[0].type;
  prepared->device = e->device;
  prepared->collective = (tn_collective){.struct_size = sizeof prepared->collective,
                                         .kind = TN_ALL_REDUCE,
                                         .reduction = reduction_of(step),
                                         .dtype = type->dtype,
                                         .count = tn_type_count(type),
                                         .name = step->name};
  *out = prepared;
  return TN_OK;
}

void tn_collective_release(tn_executor *e, void *prepared) { tn_release(e->env, prepared); }

static tn_status copy_collective(const tn_device *device, tn_launch *l, const tn_collective *c) {
  if (c->from == c->to) return TN_OK;
  uint64_t bytes = (uint64_t)c->count * tn_dtype_size(c->dtype);
  return device->backend->copy(&l->env, l->stream, TN_COPY_ON_DEVICE, c->to, c->from, bytes);
}

tn_status tn_collective_launch(tn_launch *l) {
  const prepared_collective *prepared = l->prepared;
  const tn_comm *comm = prepared->device->comm;
  tn_collective collective = prepared->collective;
  collective.from = l->in[0].data;
  collective.to = l->out[0].data;
  if (collective.count == 0) return TN_OK;
  return comm != NULL ? comm->kind->run(&l->env, comm->self, &collective, l->stream)
                      : copy_collective(prepared->device, l, &collective);
}
