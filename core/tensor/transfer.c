/* core/tensor/transfer.c: copies elements between tensors, and to and from the host. Copies on one device are
 * in the order of its stream. A copy between two devices runs on the stream of one; the storage on the other
 * keeps an event to wait for. */
#include <math.h>
#include <string.h>

#include "core/base/element.h"
#include "core/tensor/call_run.h"

static bool is_host_addressable(const tn_device *device) {
  return device->target.properties.host_addressable != 0;
}

static tn_status wait_if_busy(tn_device *device) {
  return device->use->busy ? tn_device_wait(device) : TN_OK;
}

/* ---- to and from the host ---- */

static tn_status transfer_check_bytes(const tn_tensor *t, const char *call, const void *host, size_t bytes) {
  char type[TN_TYPE_TEXT];
  if (t == NULL) return TN_EINVAL;
  size_t has = tn_type_bytes(&t->type);
  if (bytes == has && (host != NULL || bytes == 0)) return TN_OK;
  if (bytes == has) return tn_failf(t, TN_EINVAL, "%s: the address of the host's memory is NULL", call);
  return tn_failf(t, TN_EINVAL, "%s: %zu bytes for %s, expected %zu", call, bytes,
                  tn_type_format(&t->type, type), has);
}

static tn_status move_bytes(tn_tensor *t, int32_t direction, void *to, const void *from, size_t bytes) {
  tn_device *device = tn_tensor_on(t);
  TN_TRY(tn_storage_wait(t->storage));
  if (bytes == 0) return TN_OK;
  if (!is_host_addressable(device)) {
    TN_TRY(tn_device_copy(device, direction, to, from, (int64_t)bytes));
    return tn_device_wait(device);
  }
  TN_TRY(wait_if_busy(device));
  memcpy(to, from, bytes);
  return TN_OK;
}

/* A permuted tensor is copied through a row-major one. */
static tn_status copy_via_row_major(tn_tensor *t, void *to, const void *from, size_t bytes) {
  tn_tensor *plain;
  TN_TRY(tn_tensor_allocate(tn_tensor_on(t), &t->type, &plain));
  tn_status status;
  if (from != NULL) {
    status = move_bytes(plain, TN_COPY_TO_DEVICE, plain->data, from, bytes);
    if (status == TN_OK) status = tn_tensor_copy(t, plain);
  } else {
    status = tn_tensor_copy(plain, t);
    if (status == TN_OK) status = move_bytes(plain, TN_COPY_TO_HOST, to, plain->data, bytes);
  }
  tn_tensor_delete(plain);
  return status;
}

tn_status tn_tensor_write(tn_tensor *t, const void *from, size_t bytes) {
  TN_THREAD_STATE;
  TN_TRY(transfer_check_bytes(t, "tn_tensor_write", from, bytes));
  if (t->permuted && bytes > 0) return copy_via_row_major(t, NULL, from, bytes);
  return move_bytes(t, TN_COPY_TO_DEVICE, t->data, from, bytes);
}

tn_status tn_tensor_read(tn_tensor *t, void *to, size_t bytes) {
  TN_THREAD_STATE;
  TN_TRY(transfer_check_bytes(t, "tn_tensor_read", to, bytes));
  if (t->permuted && bytes > 0) return copy_via_row_major(t, to, NULL, bytes);
  return move_bytes(t, TN_COPY_TO_HOST, to, t->data, bytes);
}

/* ---- one value ---- */

/* Whether an integer type represents the value. */
static bool integer_holds(int32_t dtype, double value) {
  double low, high;
  tn_element_range(dtype, &low, &high);
  return value == floor(value) && value >= low && value <= high;
}

/* Writes the value as one element of the tensor. */
static tn_status encode_element(const tn_tensor *t, double value, void *element) {
  int32_t dtype = t->type.dtype;
  if (!tn_dtype_is_float(dtype) && !integer_holds(dtype, value))
    return tn_failf(t, TN_EINVAL, "tn_tensor_fill: %s cannot hold %.17g", tn_dtype_name(dtype), value);
  tn_element_store(dtype, element, 0, value);
  return TN_OK;
}

/* Fills memory with copies of its first element, twice as many with each copy. */
static void repeat_element(char *to, size_t element, size_t bytes) {
  for (size_t done = element; done < bytes;) {
    size_t more = done < bytes - done ? done : bytes - done;
    memcpy(to + done, to, more);
    done += more;
  }
}

static tn_status fill_device_memory(tn_tensor *t, const void *element, size_t size, size_t bytes) {
  enum { PIECE = 1 << 16 };
  tn_device *device = tn_tensor_on(t);
  size_t piece = bytes < PIECE ? bytes : PIECE;
  char *host = tn_alloc(device, piece);
  if (host == NULL) return TN_ENOMEM;
  memcpy(host, element, size);
  repeat_element(host, size, piece);
  tn_status status = TN_OK;
  for (size_t at = 0; status == TN_OK && at < bytes; at += piece)
    status = tn_device_copy(device, TN_COPY_TO_DEVICE, t->data + at, host,
                            (int64_t)(bytes - at < piece ? bytes - at : piece));
  tn_status waited = tn_device_wait(device); /* the copies read `host` until then */
  tn_release(device, host);
  return status != TN_OK ? status : waited;
}

tn_status tn_tensor_fill(tn_tensor *t, double value) {
  uint64_t element = 0;
  TN_THREAD_STATE;
  if (t == NULL) return TN_EINVAL;
  size_t bytes = tn_type_bytes(&t->type), size = tn_dtype_size(t->type.dtype);
  TN_TRY(encode_element(t, value, &element));
  TN_TRY(tn_storage_wait(t->storage));
  if (bytes == 0) return TN_OK;
  if (!is_host_addressable(tn_tensor_on(t))) return fill_device_memory(t, &element, size, bytes);
  TN_TRY(wait_if_busy(tn_tensor_on(t)));
  memcpy(t->data, &element, size);
  repeat_element(t->data, size, bytes);
  return TN_OK;
}

/* ---- between devices ---- */

/* A copy between two devices. */
typedef struct cross_copy {
  tn_device *runs, *idle; /* the copy is on the stream of `runs`; `idle` has no work under way */
  tn_storage *waits;      /* on `idle`: keeps the event */
  int32_t direction;
  void *to;
  const void *from;
} cross_copy;

static tn_status enqueue_cross_copy(const cross_copy *r, tn_pending_copy *p) {
  tn_device *runs = r->runs;
  tn_env *env = &runs->env;
  TN_TRY(runs->backend->event_new(env, runs->device, &p->event));
  TN_TRY(tn_device_copy(runs, r->direction, r->to, r->from, p->bytes));
  return runs->backend->event_record(env, p->event, tn_device_stream(runs));
}

static tn_status start_cross_copy(const cross_copy *r, tn_pending_copy *p) {
  p->other = r->runs;
  tn_device_retain(r->runs);
  tn_status status = enqueue_cross_copy(r, p);
  if (status == TN_OK) {
    r->waits->pending = *p;
    return TN_OK;
  }
  tn_device_wait(r->runs); /* before its staging memory is freed */
  tn_pending_copy_end(p);
  return status;
}

/* Neither device is host-addressable: the copy goes through staging memory of the source. */
static tn_status copy_through_host(tn_tensor *to, const tn_tensor *from, int64_t bytes) {
  tn_pending_copy p = {.to = to->data, .bytes = bytes};
  tn_device *source = tn_tensor_on(from);
  TN_TRY(tn_device_memory(source, TN_MEMORY_STAGING, bytes, &p.staging));
  cross_copy r = {source, tn_tensor_on(to), to->storage, TN_COPY_TO_HOST, p.staging, from->data};
  return start_cross_copy(&r, &p);
}

static tn_status copy_between_devices(tn_tensor *to, tn_tensor *from, int64_t bytes) {
  tn_device *source = tn_tensor_on(from), *target = tn_tensor_on(to);
  tn_pending_copy p = {.bytes = bytes};
  if (!is_host_addressable(source) && !is_host_addressable(target)) return copy_through_host(to, from, bytes);
  cross_copy r = is_host_addressable(target)
                     ? (cross_copy){source, target, to->storage, TN_COPY_TO_HOST, to->data, from->data}
                     : (cross_copy){target, source, from->storage, TN_COPY_TO_DEVICE, to->data, from->data};
  tn_status status = wait_if_busy(r.idle);
  if (status == TN_OK) return start_cross_copy(&r, &p);
  return status;
}

static bool same_order(const tn_tensor *a, const tn_tensor *b) {
  return memcmp(a->order, b->order, sizeof a->order) == 0;
}

/* Runs the op copy. Overlapping tensors are copied through a row-major one. */
static tn_status run_copy_op(tn_tensor *to, tn_tensor *from, tn_arena *arena) {
  tn_device *device = tn_tensor_on(to);
  const tn_op_def *def;
  tn_options options;
  tn_call_run run;
  TN_TRY(tn_op_table_find(device->use->ops, device, "copy", &def));
  TN_TRY(tn_options_start(device, arena, &def->op->item, &options));
  TN_TRY(tn_options_finish(device, &options));
  TN_TRY(tn_call_run_start(device, arena, def, 2, &run));
  TN_TRY(tn_call_run_add(&run, TN_PORT_OPERAND, 0, from));
  TN_TRY(tn_call_run_add(&run, TN_PORT_RESULT, 0, to));
  tn_status status = tn_call_run_enqueue(&run, options.data, false);
  if (status == TN_OK && run.used[1] != to) status = tn_tensor_copy(to, run.used[1]);
  tn_call_run_discard(&run);
  return status;
}

static tn_status copy_reordered_on_device(tn_tensor *to, tn_tensor *from) {
  tn_arena arena = tn_arena_new(tn_tensor_on(to));
  tn_status status = run_copy_op(to, from, &arena);
  tn_arena_free(&arena);
  return status;
}

/* Between two devices, the device of the permuted tensor reorders the elements. */
static tn_status copy_reordered(tn_tensor *to, tn_tensor *from) {
  tn_tensor *between;
  if (tn_tensor_on(to) == tn_tensor_on(from)) return copy_reordered_on_device(to, from);
  TN_TRY(tn_tensor_allocate(tn_tensor_on(from->permuted ? from : to), &to->type, &between));
  tn_status status = tn_tensor_copy(between, from);
  if (status == TN_OK) status = tn_tensor_copy(to, between);
  tn_tensor_delete(between);
  return status;
}

static tn_status copy_tensor(tn_tensor *to, tn_tensor *from) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  if (!tn_type_equal(&to->type, &from->type))
    return tn_failf(to, TN_EINVAL,
                    "tn_tensor_copy: from %s to %s, expected the same type; use the op cast, or a view",
                    tn_type_format(&from->type, one), tn_type_format(&to->type, other));
  TN_TRY(tn_storage_wait(to->storage));
  TN_TRY(tn_storage_wait(from->storage));
  int64_t bytes = (int64_t)tn_type_bytes(&to->type);
  if (bytes == 0 ||
      (to->data == from->data && tn_tensor_on(to) == tn_tensor_on(from) && same_order(to, from)))
    return TN_OK;
  if (!same_order(to, from)) return copy_reordered(to, from);
  if (tn_tensor_on(to) != tn_tensor_on(from)) return copy_between_devices(to, from, bytes);
  return tn_device_copy(tn_tensor_on(to), TN_COPY_ON_DEVICE, to->data, from->data, bytes);
}

/* A failure on the source's device is also reported with the target. */
tn_status tn_tensor_copy(tn_tensor *to, tn_tensor *from) {
  TN_ENTER(to);
  TN_NEED(to, from, "from");
  tn_status status = copy_tensor(to, from);
  if (status != TN_OK && tn_error_text(to)[0] == '\0') tn_error_move(to, from);
  return status;
}
