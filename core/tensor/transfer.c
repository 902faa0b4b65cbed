/* core/tensor/transfer.c: elements on their way. On one device everything is in the order of its stream;
 * between two devices the memory that waits keeps an event of the other's. */
#include <math.h>
#include <string.h>

#include "core/tensor/tensor.h"

static bool is_near(const tn_device *device) { return device->target.properties.host_addressable != 0; }

static tn_status enqueue_copy(tn_device *device, int32_t direction, void *to, const void *from,
                              int64_t bytes) {
  device->use->busy = true;
  return device->backend->copy(&device->env, tn_device_stream(device), direction, to, from, (uint64_t)bytes);
}

static tn_status wait_if_busy(tn_device *device) {
  return device->use->busy ? tn_device_wait(device) : TN_OK;
}

/* ---- to and from the host ---- */

static tn_status check_bytes(const tn_tensor *t, const char *call, size_t bytes) {
  char type[TN_TYPE_TEXT];
  size_t has = tn_type_bytes(&t->type);
  if (bytes == has) return TN_OK;
  return tn_failf(t, TN_EINVAL, "%s: %zu bytes for %s, expected %zu", call, bytes,
                  tn_type_format(&t->type, type), has);
}

static tn_status move_bytes(tn_tensor *t, int32_t direction, void *to, const void *from, size_t bytes) {
  tn_device *device = tn_tensor_on(t);
  TN_TRY(tn_storage_settle(t->storage));
  if (bytes == 0) return TN_OK;
  if (!is_near(device)) {
    TN_TRY(enqueue_copy(device, direction, to, from, (int64_t)bytes));
    return tn_device_wait(device);
  }
  TN_TRY(wait_if_busy(device));
  memcpy(to, from, bytes);
  return TN_OK;
}

/* A permuted tensor goes through one that is row-major. */
static tn_status through_plain(tn_tensor *t, void *to, const void *from, size_t bytes) {
  tn_tensor *plain;
  TN_TRY(tn_tensor_make(tn_tensor_on(t), &t->type, &plain));
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
  TN_TRY(check_bytes(t, "tn_tensor_write", bytes));
  if (t->permuted && bytes > 0) return through_plain(t, NULL, from, bytes);
  return move_bytes(t, TN_COPY_TO_DEVICE, t->data, from, bytes);
}

tn_status tn_tensor_read(tn_tensor *t, void *to, size_t bytes) {
  TN_TRY(check_bytes(t, "tn_tensor_read", bytes));
  if (t->permuted && bytes > 0) return through_plain(t, to, NULL, bytes);
  return move_bytes(t, TN_COPY_TO_HOST, to, t->data, bytes);
}

/* ---- one value ---- */

/* binary32 to bfloat16, to nearest, ties to even; a NaN stays one. */
static uint16_t bf16_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static uint16_t f16_of(double value) {
  _Float16 half = (_Float16)value;
  uint16_t bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}

/* The greatest value of an integer type, as a double that is not above it. */
static bool integer_holds(int32_t dtype, double value) {
  static const double low[] = {0, 0, -0x1p31, -0x1p63}, high[] = {1, 255, 0x1p31 - 1, 0x1p63 - 1024};
  int32_t i = dtype - TN_BOOL;
  return value == floor(value) && value >= low[i] && value <= high[i];
}

/* One element in its own representation. */
static tn_status encode(const tn_tensor *t, double value, void *element) {
  int32_t dtype = t->type.dtype;
  if (!tn_dtype_is_float(dtype) && !integer_holds(dtype, value))
    return tn_failf(t, TN_EINVAL, "tn_tensor_fill: %s cannot hold %.17g", tn_dtype_name(dtype), value);
  switch (dtype) {
  case TN_BOOL:
  case TN_U8: *(uint8_t *)element = (uint8_t)value; break;
  case TN_I32: *(int32_t *)element = (int32_t)value; break;
  case TN_I64: *(int64_t *)element = (int64_t)value; break;
  case TN_F16: *(uint16_t *)element = f16_of(value); break;
  case TN_BF16: *(uint16_t *)element = bf16_of((float)value); break;
  case TN_F32: *(float *)element = (float)value; break;
  default: *(double *)element = value; break;
  }
  return TN_OK;
}

/* Doubles what is there until all is. */
static void repeat(char *to, size_t element, size_t bytes) {
  for (size_t done = element; done < bytes;) {
    size_t more = done < bytes - done ? done : bytes - done;
    memcpy(to + done, to, more);
    done += more;
  }
}

static tn_status fill_far(tn_tensor *t, const void *element, size_t size, size_t bytes) {
  enum { PIECE = 1 << 16 };
  tn_device *device = tn_tensor_on(t);
  size_t piece = bytes < PIECE ? bytes : PIECE;
  char *host = tn_alloc(device, piece);
  if (host == NULL) return TN_ENOMEM;
  memcpy(host, element, size);
  repeat(host, size, piece);
  tn_status status = TN_OK;
  for (size_t at = 0; status == TN_OK && at < bytes; at += piece)
    status = enqueue_copy(device, TN_COPY_TO_DEVICE, t->data + at, host,
                          (int64_t)(bytes - at < piece ? bytes - at : piece));
  tn_status waited = tn_device_wait(device); /* the host's piece must last until then */
  tn_release(device, host);
  return status != TN_OK ? status : waited;
}

tn_status tn_tensor_fill(tn_tensor *t, double value) {
  uint64_t element = 0;
  size_t bytes = tn_type_bytes(&t->type), size = tn_dtype_size(t->type.dtype);
  TN_TRY(encode(t, value, &element));
  TN_TRY(tn_storage_settle(t->storage));
  if (bytes == 0) return TN_OK;
  if (!is_near(tn_tensor_on(t))) return fill_far(t, &element, size, bytes);
  TN_TRY(wait_if_busy(tn_tensor_on(t)));
  memcpy(t->data, &element, size);
  repeat(t->data, size, bytes);
  return TN_OK;
}

/* ---- between devices ---- */

static void end_transfer(tn_crossing *p) {
  tn_device *other = p->other;
  if (p->staging != NULL) tn_device_memory_free(other, TN_MEMORY_STAGING, p->staging, p->bytes);
  if (p->event != NULL) other->backend->event_delete(&other->env, p->event);
  *p = (tn_crossing){0};
  tn_device_drop(other);
}

/* The first half has come to the host; the second goes on from there. */
static tn_status upload(tn_storage *s) {
  TN_TRY(enqueue_copy(s->device, TN_COPY_TO_DEVICE, s->pending.to, s->pending.staging, s->pending.bytes));
  return tn_device_wait(s->device);
}

tn_status tn_storage_settle(tn_storage *s) {
  tn_device *other = s->pending.other;
  if (other == NULL) return TN_OK;
  tn_status status = other->backend->event_wait(&other->env, s->pending.event);
  if (status != TN_OK)
    tn_error_move(s->device, other);
  else if (s->pending.staging != NULL)
    status = upload(s);
  end_transfer(&s->pending);
  return status;
}

/* Which device's stream a copy runs on, who else must wait for it, and where its ends are on that side. */
typedef struct route {
  tn_device *runs, *rests; /* `rests` has nothing under way when the copy is enqueued */
  tn_storage *waits;       /* of `rests` */
  int32_t direction;
  void *to;
  const void *from;
} route;

static tn_status start_transfer(const route *r, tn_crossing *p) {
  tn_device *runs = r->runs;
  tn_env *env = &runs->env;
  TN_TRY(runs->backend->event_new(env, runs->device, &p->event));
  TN_TRY(enqueue_copy(runs, r->direction, r->to, r->from, p->bytes));
  return runs->backend->event_record(env, p->event, tn_device_stream(runs));
}

static tn_status run_route(const route *r, tn_crossing *p) {
  p->other = r->runs;
  tn_device_keep(r->runs);
  tn_status status = start_transfer(r, p);
  if (status == TN_OK) {
    r->waits->pending = *p;
    return TN_OK;
  }
  tn_device_wait(r->runs); /* staging may not go before the copy into it is over */
  end_transfer(p);
  return status;
}

/* Neither end can be reached from the host: through staging memory of the source's. */
static tn_status copy_through_host(tn_tensor *to, const tn_tensor *from, int64_t bytes) {
  tn_crossing p = {.to = to->data, .bytes = bytes};
  tn_device *source = tn_tensor_on(from);
  TN_TRY(tn_device_memory(source, TN_MEMORY_STAGING, bytes, &p.staging));
  route r = {source, tn_tensor_on(to), to->storage, TN_COPY_TO_HOST, p.staging, from->data};
  return run_route(&r, &p);
}

static tn_status copy_across(tn_tensor *to, tn_tensor *from, int64_t bytes) {
  tn_device *source = tn_tensor_on(from), *target = tn_tensor_on(to);
  tn_crossing p = {.bytes = bytes};
  if (!is_near(source) && !is_near(target)) return copy_through_host(to, from, bytes);
  route r = is_near(target) ? (route){source, target, to->storage, TN_COPY_TO_HOST, to->data, from->data}
                            : (route){target, source, from->storage, TN_COPY_TO_DEVICE, to->data, from->data};
  tn_status status = wait_if_busy(r.rests);
  if (status == TN_OK) return run_route(&r, &p);
  return status;
}

static bool same_order(const tn_tensor *a, const tn_tensor *b) {
  return memcmp(a->order, b->order, sizeof a->order) == 0;
}

/* Elements that lie in another order are moved by the op that does so, on the device of the permuted one. */
static tn_status copy_reordered(tn_tensor *to, tn_tensor *from) {
  tn_tensor *between;
  if (tn_tensor_on(to) == tn_tensor_on(from)) return tn_apply(tn_tensor_on(to), "copy", &from, 1, &to, 1);
  TN_TRY(tn_tensor_make(tn_tensor_on(from->permuted ? from : to), &to->type, &between));
  tn_status status = tn_tensor_copy(between, from);
  if (status == TN_OK) status = tn_tensor_copy(to, between);
  tn_tensor_delete(between);
  return status;
}

static tn_status copy_elements(tn_tensor *to, tn_tensor *from) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  if (!tn_type_equal(&to->type, &from->type))
    return tn_failf(to, TN_EINVAL,
                    "tn_tensor_copy: from %s to %s, expected the same type; use the op cast, or a view",
                    tn_type_format(&from->type, one), tn_type_format(&to->type, other));
  TN_TRY(tn_storage_settle(to->storage));
  TN_TRY(tn_storage_settle(from->storage));
  int64_t bytes = (int64_t)tn_type_bytes(&to->type);
  if (bytes == 0 ||
      (to->data == from->data && tn_tensor_on(to) == tn_tensor_on(from) && same_order(to, from)))
    return TN_OK;
  if (!same_order(to, from)) return copy_reordered(to, from);
  if (tn_tensor_on(to) != tn_tensor_on(from)) return copy_across(to, from, bytes);
  return enqueue_copy(tn_tensor_on(to), TN_COPY_ON_DEVICE, to->data, from->data, bytes);
}

/* What fails on the source's device is to be found with the target, too. */
tn_status tn_tensor_copy(tn_tensor *to, tn_tensor *from) {
  tn_error_clear(to);
  tn_status status = copy_elements(to, from);
  if (status != TN_OK && tn_error_text(to)[0] == '\0') tn_error_move(to, from);
  return status;
}
