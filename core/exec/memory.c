/* core/exec/memory.c: device memory of an executor, addresses in it, and error messages. */
#include "core/exec/bound_program.h"

/* ---- messages ---- */

tn_status tn_executor_fail(tn_executor *e, tn_status status) {
  tn_error_move(e->env, &e->device->env);
  return status;
}

tn_status tn_executor_wrap_step(tn_executor *e, const tn_bound_program *bound, const tn_step *step,
                                tn_status status) {
  if (status == TN_OK) return TN_OK;
  const tn_group *group = step->group;
  const tn_gnode *node =
      &bound->program->cover->graph->nodes.v[tn_group_lead(group, bound->program->cover->graph)];
  bool layer = node->layer != NULL && node->layer[0] != '\0',
       where = node->where != NULL && node->where[0] != '\0';
  return tn_wrap(&e->device->env, status, "op '%s'%s%s%s%s%s%s", node->op->item.name,
                 layer ? " of layer '" : "", layer ? node->layer : "", layer ? "'" : "", where ? " (" : "",
                 where ? node->where : "", where ? ")" : "");
}

/* ---- memory ---- */

tn_status tn_executor_allocate(tn_executor *e, int32_t kind, int64_t bytes, void **address) {
  tn_status status = tn_device_memory(e->device, kind, bytes, address);
  if (status == TN_OK) return TN_OK;
  tn_wrap(&e->device->env, status, "%lld bytes of %s memory", (long long)bytes,
          kind == TN_MEMORY_STAGING ? "staging" : "device");
  return tn_executor_fail(e, status);
}

tn_status tn_executor_zero(tn_executor *e, void *address, int64_t bytes) {
  if (address == NULL) return TN_OK;
  tn_device *device = e->device;
  tn_status status =
      device->backend->fill_zero(&device->env, device->streams[TN_STREAM_COMPUTE], address, (uint64_t)bytes);
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_executor_allocate_zeroed(tn_executor *e, int64_t bytes, void **address) {
  TN_TRY(tn_executor_allocate(e, TN_MEMORY_DEVICE, bytes, address));
  return tn_executor_zero(e, *address, bytes);
}

void tn_executor_free(tn_executor *e, int32_t kind, void *address, int64_t bytes) {
  tn_device_memory_free(e->device, kind, address, bytes);
}

void *tn_executor_address(const tn_executor *e, const tn_bound_program *bound, const tn_location *location,
                          int32_t slot, bool host) {
  void *base = NULL;
  switch (location->base) {
  case TN_BASE_ARENA: base = e->arena; break;
  case TN_BASE_REGION: base = e->regions[location->region]; break;
  case TN_BASE_SLOT: base = host ? e->slots[slot].host_input : e->slots[slot].input; break;
  case TN_BASE_OUTPUT: base = e->slots[slot].output; break;
  case TN_BASE_HOST: base = e->host; break;
  case TN_BASE_CONSTANT: base = bound->constants; break;
  case TN_BASE_OFFLOAD: base = e->offload; break;
  default: break;
  }
  return base == NULL ? NULL : (char *)base + location->offset;
}
