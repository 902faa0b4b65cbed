/* core/exec/collective.c: collectives as steps of a program. */
#include "core/exec/collective.h"

#include "core/compile/kernels/collective_kernel.h"

#include <stddef.h>
#include <time.h>

#include "core/graph/op/schema.h"
#include "core/plugin/default_callbacks.h"
#include "tenon/attributes.h"

/* ---- memory, which may be allocated before the communicator is open ---- */

typedef struct tn_comm_block {
  struct tn_comm_block *next;
  tn_comm_device seat;
  const tn_device *device;
  void *address;
  uint64_t bytes;
  bool attached;
} tn_comm_block;

static void *device_native(tn_env *env, const tn_device *device, void *stream, const char *name) {
  return device->backend->native != NULL ? device->backend->native(env, device->device, stream, name) : NULL;
}

static void *block_native(tn_env *env, const tn_comm_device *seat, void *stream, const char *name) {
  const char *block = (const char *)seat - offsetof(tn_comm_block, seat);
  return device_native(env, ((const tn_comm_block *)(const void *)block)->device, stream, name);
}

/* Tells an open communicator of a block. */
static tn_status block_attach(tn_env *env, tn_comm *comm, tn_comm_block *block) {
  tn_status status = comm->kind->attach(env, comm->self, block->address, block->bytes);
  block->attached = status == TN_OK;
  return status;
}

static tn_status block_attach_all(tn_comm *comm) {
  for (tn_comm_block *b = comm->device->comm_blocks; b != NULL; b = b->next)
    TN_TRY(block_attach(&comm->env, comm, b));
  return TN_OK;
}

static void block_free(tn_device *device, tn_comm_block *b) {
  const tn_communicator *kind = device->target.communicator;
  if (b->attached && device->comm != NULL)
    kind->detach(&device->env, device->comm->self, b->address, b->bytes);
  if (b->address != NULL)
    kind->memory_delete(&device->env, device->comm_options, &b->seat, b->address, b->bytes);
  tn_release(&device->env, b);
}

static tn_status block_new(tn_device *device, uint64_t bytes, tn_comm_block **out) {
  const tn_communicator *kind = device->target.communicator;
  tn_comm_block *b = tn_alloc(&device->env, sizeof *b);
  *out = NULL;
  if (b == NULL) return TN_ENOMEM;
  b->device = device;
  b->bytes = bytes;
  b->seat = (tn_comm_device){.struct_size = sizeof b->seat,
                             .index = device->index,
                             .device = device->device,
                             .native = block_native};
  tn_status status = kind->memory_new(&device->env, device->comm_options, &b->seat, bytes, &b->address);
  if (status == TN_OK && b->address != NULL && device->comm != NULL)
    status = block_attach(&device->env, device->comm, b);
  if (status == TN_OK && b->address != NULL)
    *out = b;
  else
    block_free(device, b);
  return tn_wrap(&device->env, status, "communicator '%s': %llu bytes of device memory", kind->item.name,
                 (unsigned long long)bytes);
}

tn_status tn_comm_memory(tn_device *device, int64_t bytes, void **address) {
  const tn_communicator *kind = device->target.communicator;
  tn_comm_block *block, **end = &device->comm_blocks;
  *address = NULL;
  if (kind == NULL || kind->memory_new == NULL || bytes == 0) return TN_OK;
  TN_TRY(block_new(device, (uint64_t)bytes, &block));
  if (block == NULL) return TN_OK;
  while (*end != NULL) end = &(*end)->next;
  *end = block;
  tn_device_count_memory(device, TN_MEMORY_DEVICE, bytes);
  *address = block->address;
  return TN_OK;
}

bool tn_comm_memory_free(tn_device *device, void *address, int64_t bytes) {
  tn_comm_block **link = &device->comm_blocks, *found;
  while ((found = *link) != NULL && found->address != address) link = &found->next;
  if (address == NULL || found == NULL) return false;
  *link = found->next;
  block_free(device, found);
  tn_device_count_memory(device, TN_MEMORY_DEVICE, -bytes);
  return true;
}

/* ---- the communicator of a device ---- */

tn_status tn_comm_check(tn_env *env, const tn_communicator *kind) {
  if (!kind->open || !kind->close || !kind->run || !kind->abort)
    return tn_failf(env, TN_EABI, "communicator '%s' lacks one of open, close, run and abort",
                    kind->item.name);
  if (!kind->await || !kind->capturable) return TN_OK;
  return tn_failf(env, TN_EABI,
                  "communicator '%s' has await and is capturable, expected one of the two: a replay begins "
                  "collectives that the host does not count",
                  kind->item.name);
}

static void *comm_native(tn_env *env, const tn_comm_device *seat, void *stream, const char *name) {
  const tn_comm *comm = (const tn_comm *)(const void *)((const char *)seat - offsetof(tn_comm, seat));
  return device_native(env, comm->device, stream, name);
}

/* The event of waits, then the communicator, which is told of its memory. */
static tn_status comm_join(tn_comm *comm, const tn_comm_request *request) {
  const tn_device *device = comm->device;
  if (device->backend->event_done != NULL)
    TN_TRY(device->backend->event_new(&comm->env, device->device, &comm->event));
  TN_TRY(comm->kind->open(&comm->env, request->options, &comm->seat, &comm->place, request->identity,
                          &comm->self));
  tn_status status = block_attach_all(comm);
  if (status != TN_OK) comm->kind->close(&comm->env, comm->self);
  return status;
}

static void comm_release(tn_comm *comm) {
  if (comm->event != NULL) comm->device->backend->event_delete(&comm->env, comm->event);
  /* comm->env is in the block that is released, so a copy of it releases the block */
  tn_error_record record = comm->record;
  tn_env env = {comm->env.api, &record};
  tn_release(&env, comm);
}

tn_status tn_comm_open(tn_env *env, tn_device *device, const tn_comm_request *request, tn_comm **out) {
  *out = NULL;
  tn_comm *comm = tn_alloc(env, sizeof *comm);
  if (comm == NULL) return TN_ENOMEM;
  tn_error_record_init(&comm->env, &comm->record, env);
  comm->kind = request->kind;
  comm->device = device;
  comm->place = request->place;
  comm->awaits = request->kind->await != NULL && tn_backend_is_synchronous(device->backend);
  comm->seat = (tn_comm_device){.struct_size = sizeof comm->seat,
                                .index = device->index,
                                .device = device->device,
                                .native = comm_native};
  tn_status status = comm_join(comm, request);
  if (status == TN_OK) {
    device->comm = comm;
    *out = comm;
    return TN_OK;
  }
  tn_wrap(&comm->env, status, "communicator '%s'", comm->kind->item.name);
  tn_error_move(env, &comm->env);
  comm_release(comm);
  return status;
}

void tn_comm_close(tn_comm *comm) {
  if (comm == NULL) return;
  comm->kind->close(&comm->env, comm->self);
  comm->device->comm = NULL;
  comm_release(comm);
}

void tn_comm_abort(tn_comm *comm) {
  if (comm == NULL) return;
  tn_error_record record;
  tn_env env; /* of this thread; comm->env belongs to the launching thread */
  tn_error_record_init(&env, &record, &comm->env);
  comm->kind->abort(&env, comm->self);
}

tn_status tn_comm_status(tn_env *env, tn_comm *comm) {
  return comm != NULL && comm->kind->status != NULL ? comm->kind->status(env, comm->self) : TN_OK;
}

bool tn_comm_where(tn_env *env, tn_comm *comm, tn_comm_position *position) {
  *position = (tn_comm_position){.struct_size = sizeof *position};
  if (comm == NULL || comm->kind->position == NULL) return false;
  if (comm->kind->position(env, comm->self, position) == TN_OK) return true;
  tn_error_clear(env);
  return false;
}

uint64_t tn_comm_begun(const tn_device *device) { return device->comm != NULL ? device->comm->begun : 0; }

/* ---- waits ---- */

/* The first pause between two looks at an event, and the longest. */
enum { WAIT_SHORT_NS = 10000, WAIT_LONG_NS = 160000 };

static tn_status wait_ask_communicator(tn_device *device) {
  tn_comm *comm = device->comm;
  tn_status status = comm->kind->status(&device->env, comm->self);
  if (status != TN_OK) tn_comm_abort(comm); /* collectives end, so that their memory can be freed */
  return status;
}

tn_status tn_comm_await(tn_device *device, uint64_t n) {
  tn_comm *comm = device->comm;
  if (comm == NULL || !comm->awaits || n <= comm->ended) return TN_OK;
  tn_flight_wait before = tn_flight_begin_wait(device->flight, TN_FLIGHT_COLLECTIVE, "a collective");
  tn_status status = comm->kind->await(&device->env, comm->self, n);
  tn_flight_end(device->flight, status == TN_OK ? n : 0);
  tn_flight_conclude(device->flight, &before, status);
  if (status == TN_OK)
    comm->ended = n;
  else
    tn_comm_abort(comm);
  return status;
}

/* An event that has ended may have done so because its collectives were given up, so the communicator is
 * asked once more after it. */
static tn_status wait_polling(tn_device *device, void *event) {
  struct timespec pause = {0, WAIT_SHORT_NS};
  int32_t done = 0;
  while (done == 0) {
    TN_TRY(device->backend->event_done(&device->env, event, &done));
    TN_TRY(wait_ask_communicator(device));
    if (done != 0) return TN_OK;
    nanosleep(&pause, NULL);
    if (2 * pause.tv_nsec <= WAIT_LONG_NS) pause.tv_nsec *= 2;
  }
  return TN_OK;
}

static tn_status wait_ask_after(tn_device *device, tn_status status) {
  return status == TN_OK && device->comm != NULL ? wait_ask_communicator(device) : status;
}

static tn_status wait_event(tn_device *device, void *event) {
  if (device->comm != NULL && device->comm->event != NULL) return wait_polling(device, event);
  return wait_ask_after(device, device->backend->event_wait(&device->env, event));
}

tn_status tn_device_wait_event(tn_device *device, void *event) {
  TN_TRY(tn_device_check_process(device));
  TN_TRY(tn_comm_await(device, tn_comm_begun(device)));
  tn_flight_wait before = tn_flight_begin_wait(device->flight, TN_FLIGHT_DEVICE, "its device");
  return tn_flight_conclude(device->flight, &before, wait_event(device, event));
}

static tn_status wait_stream(tn_device *device, void *stream) {
  const tn_backend *backend = device->backend;
  if (device->comm != NULL && device->comm->event != NULL) {
    TN_TRY(backend->event_record(&device->env, device->comm->event, stream));
    TN_TRY(wait_polling(device, device->comm->event));
  }
  return wait_ask_after(device, backend->stream_wait(&device->env, stream));
}

/* The compute stream awaits all collectives of a program at its end. */
tn_status tn_device_wait_stream(tn_device *device, void *stream) {
  TN_TRY(tn_device_check_process(device));
  TN_TRY(tn_comm_await(device, tn_comm_begun(device)));
  tn_flight_wait before = tn_flight_begin_wait(device->flight, TN_FLIGHT_DEVICE, "its device");
  tn_status status = tn_flight_conclude(device->flight, &before, wait_stream(device, stream));
  if (status == TN_OK && stream == device->streams[TN_STREAM_COMPUTE])
    tn_flight_end(device->flight, tn_flight_begun(device->flight));
  return status;
}

/* ---- steps ---- */

/* A prepared collective: all but its addresses. */
typedef struct prepared_collective {
  const tn_device *device;
  tn_collective collective;
  tn_flight_call call;
} prepared_collective;

/* The reduction of a step, and the number of ranks for which its types were inferred; 0: any number. */
static int32_t step_reduction(const tn_step *step, int32_t kind, int64_t *ranks) {
  const void *attributes = step->group->match->nodes[0].node->attributes;
  const tn_reduce_scatter_attributes *scatter = attributes;
  *ranks = 0;
  if (kind == TN_ALL_REDUCE) return ((const tn_all_reduce_attributes *)attributes)->reduction;
  *ranks = kind == TN_ALL_GATHER ? ((const tn_all_gather_attributes *)attributes)->ranks : scatter->ranks;
  return kind == TN_ALL_GATHER ? TN_REDUCTION_SUM : scatter->reduction;
}

static tn_status check_step_ranks(tn_executor *e, const tn_program *program, int64_t ranks) {
  int32_t there = program->cover->graph->ranks;
  if (ranks == 0 || ranks == there) return TN_OK;
  return tn_failf(&e->device->env, TN_EINVAL, "its attribute ranks is %lld, but the run has %d rank%s",
                  (long long)ranks, (int)there, there == 1 ? "" : "s");
}

tn_status tn_collective_prepare(tn_executor *e, const tn_program *program, const tn_step *step, void **out) {
  int32_t kind = tn_kernel_collective(step->group->kernel);
  int64_t ranks;
  int32_t reduction = step_reduction(step, kind, &ranks);
  TN_TRY(check_step_ranks(e, program, ranks));
  prepared_collective *prepared = tn_alloc(e->env, sizeof *prepared);
  if (prepared == NULL) return tn_failf(&e->device->env, TN_ENOMEM, "out of memory for a collective");
  const tn_type *type = &step->in[0].type;
  prepared->device = e->device;
  prepared->collective = (tn_collective){.struct_size = sizeof prepared->collective,
                                         .kind = kind,
                                         .reduction = reduction,
                                         .dtype = type->dtype,
                                         .count = tn_type_count(type),
                                         .name = step->name,
                                         .cost_s = step->group->choice.cost_s};
  prepared->call = tn_flight_call_of(program->name, step->name, kind, type->dtype, tn_type_count(type));
  *out = prepared;
  return TN_OK;
}

const tn_flight_call *tn_collective_call(const void *prepared) {
  const prepared_collective *p = prepared;
  return p->collective.count > 0 ? &p->call : NULL;
}

void tn_collective_release(tn_executor *e, void *prepared) { tn_release(e->env, prepared); }

static tn_status copy_collective(const tn_device *device, tn_launch *l, const tn_collective *c) {
  if (c->from == c->to) return TN_OK;
  uint64_t bytes = (uint64_t)c->count * tn_dtype_size(c->dtype);
  return device->backend->copy(&l->env, l->stream, TN_COPY_ON_DEVICE, c->to, c->from, bytes);
}

/* Without `await`, `run` returns on a synchronous device when the collective has ended. */
static tn_status run_and_end(tn_comm *comm, tn_env *env, void *stream, const tn_collective *collective) {
  tn_flight *flight = comm->device->flight;
  tn_flight_wait before = tn_flight_begin_wait(flight, TN_FLIGHT_COLLECTIVE, "a collective");
  tn_status status = comm->kind->run(env, comm->self, collective, stream);
  if (status == TN_OK) tn_flight_end(flight, tn_flight_begun(flight));
  if (status != TN_EUNSUPPORTED) return tn_flight_conclude(flight, &before, status);
  tn_flight_end_wait(flight, &before);
  return status;
}

static tn_status run_collective(tn_comm *comm, tn_env *env, void *stream, const tn_collective *collective,
                                const tn_flight_call *call) {
  bool ends = !comm->awaits && tn_backend_is_synchronous(comm->device->backend);
  tn_flight_begin(comm->device->flight, call);
  tn_status status = ends ? run_and_end(comm, env, stream, collective)
                          : comm->kind->run(env, comm->self, collective, stream);
  if (status == TN_OK)
    comm->begun++;
  else if (!ends || status == TN_EUNSUPPORTED)
    tn_flight_retract(comm->device->flight);
  return status;
}

tn_status tn_collective_launch(tn_launch *l) {
  const prepared_collective *prepared = l->prepared;
  tn_comm *comm = prepared->device->comm;
  tn_collective collective = prepared->collective;
  collective.from = l->in[0].data;
  collective.to = l->out[0].data;
  if (collective.count == 0) return TN_OK;
  if (comm == NULL) return copy_collective(prepared->device, l, &collective);
  return run_collective(comm, &l->env, l->stream, &collective, &prepared->call);
}

tn_status tn_comm_broadcast(tn_device *device, const char *name, int32_t dtype, int64_t count,
                            void *address) {
  tn_comm *comm = device->comm;
  void *stream = device->streams[TN_STREAM_COMM];
  const tn_collective collective = {.struct_size = sizeof collective,
                                    .kind = TN_BROADCAST,
                                    .dtype = dtype,
                                    .count = count,
                                    .from = address,
                                    .to = address,
                                    .name = name};
  const tn_flight_call call = tn_flight_call_of("state", name, TN_BROADCAST, dtype, count);
  if (count == 0) return TN_OK;
  TN_TRY(tn_device_wait_stream(device, device->streams[TN_STREAM_COMPUTE]));
  TN_TRY(run_collective(comm, &device->env, stream, &collective, &call));
  TN_TRY(tn_device_wait_stream(device, stream));
  tn_flight_end(device->flight, tn_flight_begun(device->flight));
  return TN_OK;
}
