/* core/tensor/tensor.c: creates tensors and views of them. */
#include "core/tensor/tensor.h"

#include <string.h>

#include "core/graph/op/infer.h"

/* ---- types ---- */

/* TN_EINVAL for a type that a tensor cannot have. */
static tn_status tensor_check_type(const void *handle, const tn_type *type) {
  char text[TN_TYPE_TEXT];
  if (type->rank < 0 || type->rank > TN_MAX_RANK)
    return tn_failf(handle, TN_EINVAL, "a tensor of rank %d, expected 0 to %d", (int)type->rank, TN_MAX_RANK);
  if (tn_dtype_size(type->dtype) == 0)
    return tn_failf(handle, TN_EINVAL, "a tensor of dtype %d, expected TN_F32 or another of tenon/base.h",
                    (int)type->dtype);
  if (!tn_type_fits(type))
    return tn_failf(handle, TN_EINVAL, "a tensor %s, expected dimensions >= 0 and at most 2^63 - 1 bytes",
                    tn_type_format(type, text));
  return TN_OK;
}

/* The type with zeros beyond its rank, so that types compare byte by byte. */
static tn_type zero_padded_type(const tn_type *type) {
  tn_type clean = {type->dtype, type->rank, {0}};
  memcpy(clean.dims, type->dims, (size_t)type->rank * sizeof *type->dims);
  return clean;
}

/* ---- life ---- */

/* A tensor on a storage, which counts it as a user. A failure releases the storage. */
static tn_status new_tensor(tn_storage *storage, const tn_type *type, char *data, tn_tensor **out) {
  tn_device *device = storage->device;
  tn_tensor *t = tn_alloc(&device->env, sizeof *t);
  *out = t;
  storage->users++;
  if (t == NULL) {
    tn_storage_release(storage);
    return TN_ENOMEM;
  }
  t->env = (tn_env){device->env.api, device->env.record};
  t->storage = storage;
  t->type = zero_padded_type(type);
  t->data = data;
  for (int32_t i = 0; i < TN_MAX_RANK; i++) t->order[i] = i;
  return TN_OK;
}

tn_status tn_tensor_allocate(tn_device *device, const tn_type *type, tn_tensor **tensor) {
  tn_storage *storage;
  *tensor = NULL;
  TN_TRY(tensor_check_type(device, type));
  TN_TRY(tn_storage_new(device, (int64_t)tn_type_bytes(type), NULL, &storage));
  return new_tensor(storage, type, storage->address, tensor);
}

/* These functions are used by others here too, so that they leave an earlier error alone. */
static tn_status tensor_check_request(const void *handle, const char *call, const tn_type *type,
                                      tn_tensor **made) {
  if (handle == NULL) return TN_EINVAL;
  if (made == NULL) return tn_failf(handle, TN_EINVAL, "%s: the address of the result is NULL", call);
  *made = NULL;
  return type != NULL ? TN_OK : tn_failf(handle, TN_EINVAL, "%s: type is NULL", call);
}

tn_status tn_tensor_new(tn_device *device, const tn_type *type, tn_tensor **tensor) {
  TN_THREAD_STATE;
  TN_TRY(tensor_check_request(device, __func__, type, tensor));
  TN_TRY(tn_tensor_allocate(device, type, tensor));
  tn_storage *s = (*tensor)->storage;
  if (s->address == NULL) return TN_OK;
  device->use->busy = true;
  tn_status status =
      device->backend->fill_zero(&device->env, tn_device_stream(device), s->address, (uint64_t)s->bytes);
  if (status == TN_OK) return TN_OK;
  tn_tensor_delete(*tensor);
  *tensor = NULL;
  return status;
}

tn_status tn_tensor_wrap(tn_device *device, const tn_type *type, void *data, tn_tensor **tensor) {
  tn_storage *storage;
  TN_TRY(tensor_check_request(device, __func__, type, tensor));
  TN_TRY(tensor_check_type(device, type));
  size_t bytes = tn_type_bytes(type), size = tn_dtype_size(type->dtype);
  if (bytes > 0 && data == NULL)
    return tn_failf(device, TN_EINVAL, "tn_tensor_wrap: data is NULL, expected the address of %zu bytes",
                    bytes);
  if ((uintptr_t)data % size != 0)
    return tn_failf(device, TN_EINVAL, "tn_tensor_wrap: address %p is not aligned to an element of %zu bytes",
                    data, size);
  TN_TRY(tn_storage_new(device, bytes > 0 ? (int64_t)bytes : 0, bytes > 0 ? data : NULL, &storage));
  return new_tensor(storage, type, storage->address, tensor);
}

tn_status tn_tensor_view(tn_tensor *tensor, const tn_type *type, int64_t offset, tn_tensor **view) {
  TN_TRY(tensor_check_request(tensor, __func__, type, view));
  TN_TRY(tensor_check_type(tensor, type));
  int64_t bytes = (int64_t)tn_type_bytes(type), room = (int64_t)tn_type_bytes(&tensor->type);
  if (tensor->permuted)
    return tn_failf(tensor, TN_EINVAL,
                    "tn_tensor_view: of a permuted tensor, expected one that is row-major");
  if (offset < 0 || bytes > room || offset > room - bytes)
    return tn_failf(tensor, TN_EINVAL,
                    "tn_tensor_view: %lld bytes from byte %lld on, but the tensor has %lld", (long long)bytes,
                    (long long)offset, (long long)room);
  if (offset % (int64_t)tn_dtype_size(type->dtype) != 0)
    return tn_failf(tensor, TN_EINVAL, "tn_tensor_view: offset %lld is not aligned to an element of %s",
                    (long long)offset, tn_dtype_name(type->dtype));
  return new_tensor(tensor->storage, type, bytes > 0 ? tensor->data + offset : NULL, view);
}

static tn_status tensor_check_order(const tn_tensor *tensor, const int32_t *order) {
  uint32_t seen = 0;
  for (int32_t i = 0; i < tensor->type.rank; i++) {
    if (order[i] < 0 || order[i] >= tensor->type.rank || (seen >> order[i] & 1) != 0)
      return tn_failf(tensor, TN_EINVAL, "tn_tensor_permute: order[%d] is %d, expected each of 0 to %d once",
                      (int)i, (int)order[i], (int)tensor->type.rank - 1);
    seen |= 1u << order[i];
  }
  return TN_OK;
}

/* Dimension i of the view is dimension order[i] of the tensor, so storage axis k, which held dimension d of
 * the tensor, holds the i for which order[i] is d. */
tn_status tn_tensor_permute(tn_tensor *tensor, const int32_t *order, tn_tensor **view) {
  int32_t axis[TN_MAX_RANK] = {0};
  if (tensor == NULL) return TN_EINVAL;
  TN_TRY(tensor_check_request(tensor, __func__, &tensor->type, view));
  if (tensor->type.rank > 0) TN_NEED(tensor, order, "order");
  TN_TRY(tensor_check_order(tensor, order));
  TN_TRY(new_tensor(tensor->storage, &tensor->type, tensor->data, view));
  tn_tensor *v = *view;
  for (int32_t i = 0; i < v->type.rank; i++) {
    v->type.dims[i] = tensor->type.dims[order[i]];
    axis[order[i]] = i;
  }
  for (int32_t k = 0; k < v->type.rank; k++) {
    v->order[k] = axis[tensor->order[k]];
    v->permuted |= v->order[k] != k;
  }
  return TN_OK;
}

void tn_tensor_delete(tn_tensor *tensor) {
  if (tensor == NULL) return;
  TN_THREAD_STATE;
  tn_storage *storage = tensor->storage;
  tn_release(&tn_tensor_on(tensor)->env, tensor);
  tn_storage_release(storage);
}

const tn_type *tn_tensor_type(const tn_tensor *tensor) { return tensor != NULL ? &tensor->type : NULL; }
tn_device *tn_tensor_device(const tn_tensor *tensor) { return tensor != NULL ? tn_tensor_on(tensor) : NULL; }
void *tn_tensor_data(const tn_tensor *tensor) { return tensor != NULL ? tensor->data : NULL; }
