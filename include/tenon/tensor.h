/* tenon/tensor.h: devices, tensors, and single ops on tensors, without a model or a configuration.
 *
 *     tn_device *device;
 *     tn_tensor *x, *w, *y = NULL;
 *     tn_type image = {TN_F32, 4, {1, 3, 8, 8}}, weight = {TN_F32, 4, {16, 3, 3, 3}};
 *     tn_device_open(context, "cpu", 0, "threads = 2", &device);
 *     tn_tensor_new(device, &image, &x);
 *     tn_tensor_wrap(device, &weight, my_weights, &w);
 *     tn_tensor_write(x, my_pixels, sizeof my_pixels);
 *     tn_apply(device, "conv2d(padding=1)", (tn_tensor *[]){x, w, NULL}, 3, &y, 1);
 *     tn_tensor_read(y, my_result, sizeof my_result);
 *
 * Time. Work on a device is enqueued and runs in order. Calls return without waiting unless their comment
 * says that they wait. A device that runs on the host may do the work during the call.
 *
 * Errors. A function that fails leaves the text in the handle that was passed; a tensor shares the error
 * record of its device. A failure of enqueued work is returned by the next call that waits.
 *
 * Threads. A device, its tensors and its calls are used by one thread at a time; a copy between two devices
 * uses both. Devices of different contexts share nothing. */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include "tenon/context.h"

TN_BEGIN_C

typedef struct tn_device tn_device; /* begins with a tn_env */
typedef struct tn_tensor tn_tensor; /* begins with a tn_env */
typedef struct tn_call tn_call;     /* begins with a tn_env */

/* ---- devices ------------------------------------------------------------------------------------ */

/* Opens device `index` (from 0) of a backend by name: a family ("cpu"), an extension of one ("onednn"), or
 * "auto", the fastest that can be used, which NULL means as well; of several names, separated by commas, the
 * first that can be used. `options` are those of [backend.NAME] as "key = value", separated by newlines or
 * `;`; NULL or "": defaults. TN_EUNAVAILABLE: there is no such backend or device; TN_EINVAL: an option is
 * wrong. On failure the text is in the context. The context outlives the device. */
TN_EXPORT tn_status tn_device_open(tn_context *context, const char *backend, int32_t index,
                                   const char *options, tn_device **device);
/* Waits for the device and closes the handle. Tensors of the device stay valid; memory and device are freed
 * when the last of them is deleted. Accepts NULL. */
TN_EXPORT void tn_device_close(tn_device *device);

/* Waits until all enqueued work is done. TN_EDEVICE: some of it failed. */
TN_EXPORT tn_status tn_device_wait(tn_device *device);

typedef struct tn_device_info {
  uint32_t struct_size;
  int32_t index;
  const char *backend;       /* the name that it was opened by */
  const char *name;          /* the backend's name for the device; valid until it is closed */
  int32_t host_addressable;  /* 1: the data of tensors is host memory, which the caller may read */
  int32_t threads;           /* of kernels that run on the host */
  int64_t memory_bytes;      /* of the device; 0: unknown */
  int64_t bytes, peak_bytes; /* device memory allocated through this handle, now and at most */
  int64_t programs;          /* compiled calls in the cache */
  int64_t compiled;          /* calls compiled since the device was opened */
} tn_device_info;
/* The caller sets info->struct_size. */
TN_EXPORT tn_status tn_device_describe(tn_device *device, tn_device_info *info);

/* Frees the cache of compiled calls and their scratch memory. Later calls are compiled again. The cache is
 * bounded without this call, too. */
TN_EXPORT void tn_device_trim(tn_device *device);

/* ---- tensors -------------------------------------------------------------------------------------
 * A tensor has a type (base.h) and memory on one device. It is row-major unless it is a permuted view. It may
 * be empty (a dimension of 0) or a scalar (rank 0). The caller deletes every tensor that a function returns.
 */

/* A tensor with memory of its own, all zero. TN_ENOMEM: the device has too little memory. */
TN_EXPORT tn_status tn_tensor_new(tn_device *device, const tn_type *type, tn_tensor **tensor);

/* A tensor on the caller's memory, row-major, which stays valid and in place until the tensor is deleted.
 * `data` is a device address; on a host-addressable device, any host address. It is aligned to the element;
 * kernels are fastest at 64 bytes. The caller calls tn_device_wait before it reads or writes the memory
 * directly. */
TN_EXPORT tn_status tn_tensor_wrap(tn_device *device, const tn_type *type, void *data, tn_tensor **tensor);

/* A row-major view of the same memory, `offset` bytes into it: a row, another shape, another dtype. It keeps
 * the memory alive. TN_EINVAL: the view exceeds the memory, or `tensor` is permuted. */
TN_EXPORT tn_status tn_tensor_view(tn_tensor *tensor, const tn_type *type, int64_t offset, tn_tensor **view);

/* A view whose dimension i is dimension order[i] of the tensor: memory of {n, h, w, c}, permuted by {0, 3, 1,
 * 2}, is NCHW for every op. No element moves; an op whose kernel needs another layout reorders into scratch
 * memory. */
TN_EXPORT tn_status tn_tensor_permute(tn_tensor *tensor, const int32_t *order, tn_tensor **view);

/* Waits while the device may use the memory, then frees it. Accepts NULL. */
TN_EXPORT void tn_tensor_delete(tn_tensor *tensor);

TN_EXPORT const tn_type *tn_tensor_type(const tn_tensor *tensor);
TN_EXPORT tn_device *tn_tensor_device(const tn_tensor *tensor);
/* The device address of the first element; NULL if the tensor is empty. */
TN_EXPORT void *tn_tensor_data(const tn_tensor *tensor);

/* Copies all elements from or to host memory, row-major in the tensor's type; `bytes` is tn_type_bytes of it.
 * Both wait until the copy is done. */
TN_EXPORT tn_status tn_tensor_write(tn_tensor *tensor, const void *from, size_t bytes);
TN_EXPORT tn_status tn_tensor_read(tn_tensor *tensor, void *to, size_t bytes);
/* Sets every element to `value`, rounded to nearest. TN_EINVAL: an integer dtype cannot hold it. */
TN_EXPORT tn_status tn_tensor_fill(tn_tensor *tensor, double value);

/* Copies all elements of `from` to a tensor of the same type, on the same or another device. It does not
 * wait; later calls on either tensor run after the copy. Between two devices that are not host-addressable it
 * passes through host memory. Views of one memory must not overlap. */
TN_EXPORT tn_status tn_tensor_copy(tn_tensor *to, tn_tensor *from);

/* ---- ops -----------------------------------------------------------------------------------------
 * Any op that `tenon inspect` lists, by name. The first call with a signature (op, attributes, types, absent
 * operands, requested results) compiles a program of one op; later calls take it from the cache. */

/* One op in one call. `op` is its name, or its name and attributes as in a model: "softmax(axis=-1)".
 * Operands are in schema order, NULL for an absent optional one; trailing absent ones may be omitted.
 * results[i] is a tensor of the result's type to write to, possibly an operand; where it is NULL, the call
 * makes a tensor, which the caller deletes. Results from n_results on are dropped. TN_EINVAL: an operand or
 * attribute does not fit the op; the text has what it expects. TN_EUNSUPPORTED: the device has no kernel; the
 * text has the reason of each. After an error no result has been made or written. */
TN_EXPORT tn_status tn_apply(tn_device *device, const char *op, tn_tensor *const *operands,
                             int32_t n_operands, tn_tensor **results, int32_t n_results);

/* The same with a call for each operand and attribute, as in build.h. Errors stay in the call until
 * tn_call_end, which returns the first of them and frees the call. tn_call_begin returns NULL where memory
 * ran out or the device is NULL; the other functions accept it, and tn_call_end returns TN_ENOMEM. */
TN_EXPORT tn_call *tn_call_begin(tn_device *device, const char *op);
TN_EXPORT void tn_call_operand(tn_call *call, tn_tensor *operand);
TN_EXPORT void tn_call_set_int(tn_call *call, const char *name, int64_t value);
TN_EXPORT void tn_call_set_float(tn_call *call, const char *name, double value);
TN_EXPORT void tn_call_set_ints(tn_call *call, const char *name, int64_t n, const int64_t *values);
TN_EXPORT void tn_call_set_floats(tn_call *call, const char *name, int64_t n, const double *values);
TN_EXPORT void tn_call_set_text(tn_call *call, const char *name, const char *value);
TN_EXPORT tn_status tn_call_end(tn_call *call, tn_tensor **results, int32_t n_results);

/* Ends a call with its gradient: computes d loss / d operand i into gradients[i], of operand i's type, from
 * dresults[i], d loss / d result i, of result i's type (NULL: zero). gradients[i] is a tensor to write to, or
 * NULL for a new one, which the caller deletes. want[i] is 1 where the gradient of operand i is computed;
 * `want` NULL: for all operands of a float type. The entries of other operands are unchanged. An operand that
 * no result depends on has a gradient of zeros. */
TN_EXPORT tn_status tn_call_end_gradient(tn_call *call, tn_tensor *const *dresults, int32_t n_dresults,
                                         const int32_t *want, tn_tensor **gradients, int32_t n_gradients);

/* Frees a call without running it. Accepts NULL. */
TN_EXPORT void tn_call_cancel(tn_call *call);

TN_END_C
#endif
