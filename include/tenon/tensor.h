/* tenon/tensor.h: devices, tensors, and single ops on them, without a model or a configuration.
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
 * Time. Work on a device is enqueued and runs in order; calls return without waiting unless they say
 * otherwise. A device that runs on the host may do the work at once.
 *
 * Errors. A function that fails returns its code and leaves the text in the handle that it was given; a
 * tensor shares the text of its device. What a device found out late comes from the next call that waits.
 *
 * Threads. A device, its tensors and its calls belong to one thread at a time; a copy between two devices
 * uses both. Different devices of different contexts have nothing in common. */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include "tenon/context.h"

TN_BEGIN_C

typedef struct tn_device tn_device; /* begins with a tn_env */
typedef struct tn_tensor tn_tensor; /* begins with a tn_env */
typedef struct tn_call tn_call;     /* begins with a tn_env */

/* ---- devices ------------------------------------------------------------------------------------ */

/* Opens device `index` (from 0) of a backend by name: "cpu", or an extension of one. `options` are those of
 * [backend.NAME] as "key = value", separated by line ends or `;`; NULL or "" for defaults. TN_EUNAVAILABLE:
 * there is no such backend or device; TN_EINVAL: an option is wrong. The text is in the context, which must
 * outlive the device. */
TN_EXPORT tn_status tn_device_open(tn_context *context, const char *backend, int32_t index,
                                   const char *options, tn_device **device);
/* Waits for the device. Tensors of it may live on: they keep it open until the last of them is deleted.
 * Accepts NULL. */
TN_EXPORT void tn_device_close(tn_device *device);

/* Waits until everything enqueued on the device is done. TN_EDEVICE: some of it failed. */
TN_EXPORT tn_status tn_device_wait(tn_device *device);

typedef struct tn_device_info {
  uint32_t struct_size;
  int32_t index;
  const char *backend;       /* the name that it was opened by */
  const char *name;          /* what the backend calls the device; lives as long as it */
  int32_t host_addressable;  /* 1: tensors lie in host memory that the caller may read */
  int32_t threads;           /* of kernels on the host */
  int64_t memory_bytes;      /* of the device; 0: unknown */
  int64_t bytes, peak_bytes; /* asked of the device through this handle, now and at most */
  int64_t programs;          /* compiled calls that are kept */
  int64_t compiled;          /* calls that had to be compiled since the device was opened */
} tn_device_info;
/* Set info->struct_size before. */
TN_EXPORT tn_status tn_device_describe(tn_device *device, tn_device_info *info);

/* Gives up the compiled calls and their scratch memory. They are made again when needed; their number is
 * bounded in any case. */
TN_EXPORT void tn_device_trim(tn_device *device);

/* ---- tensors -------------------------------------------------------------------------------------
 * A tensor has a type (base.h) and memory on one device. Its elements lie row-major unless it is a
 * permuted view. Empty tensors (a dimension of 0) and scalars (rank 0) are tensors like others. */

/* Memory of its own, all zero. TN_ENOMEM: the device has no room. */
TN_EXPORT tn_status tn_tensor_new(tn_device *device, const tn_type *type, tn_tensor **tensor);

/* The caller's memory, row-major, which must stay valid and in place until the tensor is deleted. `data`
 * is an address of the device: any host address where the device is host-addressable. It must be aligned
 * to the element; 64 bytes suit kernels best. While work on the tensor is under way nobody else may touch
 * it: tn_device_wait first. */
TN_EXPORT tn_status tn_tensor_wrap(tn_device *device, const tn_type *type, void *data, tn_tensor **tensor);

/* Other eyes on the same memory, `offset` bytes into it, row-major: a row, another shape, another dtype.
 * Shares the memory and keeps it alive. TN_EINVAL: it would not fit, or `tensor` is permuted. */
TN_EXPORT tn_status tn_tensor_view(tn_tensor *tensor, const tn_type *type, int64_t offset, tn_tensor **view);

/* The same elements with dimension i of the view being dimension order[i] of the tensor: what is wrapped as
 * {n, h, w, c} and permuted by {0, 3, 1, 2} is NCHW for every op. Nothing is moved; an op that cannot read
 * the order as it lies moves the elements in its own memory. */
TN_EXPORT tn_status tn_tensor_permute(tn_tensor *tensor, const int32_t *order, tn_tensor **view);

/* Waits where the device may still use the memory. Accepts NULL. */
TN_EXPORT void tn_tensor_delete(tn_tensor *tensor);

TN_EXPORT const tn_type *tn_tensor_type(const tn_tensor *tensor);
TN_EXPORT tn_device *tn_tensor_device(const tn_tensor *tensor);
/* The device address of the first element; NULL if the tensor is empty. */
TN_EXPORT void *tn_tensor_data(const tn_tensor *tensor);

/* All elements from and to host memory, row-major in the tensor's type; bytes must be tn_type_bytes of it.
 * Both wait until the host memory may be used again. */
TN_EXPORT tn_status tn_tensor_write(tn_tensor *tensor, const void *from, size_t bytes);
TN_EXPORT tn_status tn_tensor_read(tn_tensor *tensor, void *to, size_t bytes);
/* Every element becomes `value`, rounded to nearest; integers must hold it (TN_EINVAL). */
TN_EXPORT tn_status tn_tensor_fill(tn_tensor *tensor, double value);

/* Copies all elements into a tensor of the same type, on the same or another device, without waiting for
 * the copy to arrive: whatever next uses either tensor finds it done. Between two devices of which neither
 * is host-addressable it goes through host memory. Different tensors of one memory must not overlap. */
TN_EXPORT tn_status tn_tensor_copy(tn_tensor *to, tn_tensor *from);

/* ---- ops -----------------------------------------------------------------------------------------
 * Any op that `tenon inspect` lists, by name. The first call with a signature (op, attributes, types,
 * absent operands, results asked for) compiles a program of one op; further ones find it. */

/* One op at once. `op` is its name, or with attributes as in a model: "softmax(axis=-1)". Operands in
 * schema order, NULL for an absent optional one; trailing absent ones may be left out. results[i]: a tensor
 * of the right type to write to, which may be an operand; or NULL, and it becomes a new tensor, the
 * caller's. Results after the first n_results are not given back.
 * TN_EINVAL: an operand or attribute does not fit, said with what the op expects; TN_EUNSUPPORTED: no
 * kernel of the device does it, said with each kernel's reason. After an error no result is changed and
 * none is made. */
TN_EXPORT tn_status tn_apply(tn_device *device, const char *op, tn_tensor *const *operands,
                             int32_t n_operands, tn_tensor **results, int32_t n_results);

/* The same piece by piece, with attributes as numbers, in the manner of build.h. Errors stick in the call
 * and come back from its end, which also gives the call back: it is used once. NULL for want of memory is a
 * call, too: its end says TN_ENOMEM. */
TN_EXPORT tn_call *tn_call_begin(tn_device *device, const char *op);
TN_EXPORT void tn_call_operand(tn_call *call, tn_tensor *operand);
TN_EXPORT void tn_call_set_int(tn_call *call, const char *name, int64_t value);
TN_EXPORT void tn_call_set_float(tn_call *call, const char *name, double value);
TN_EXPORT void tn_call_set_ints(tn_call *call, const char *name, int64_t n, const int64_t *values);
TN_EXPORT void tn_call_set_floats(tn_call *call, const char *name, int64_t n, const double *values);
TN_EXPORT void tn_call_set_text(tn_call *call, const char *name, const char *value);
TN_EXPORT tn_status tn_call_end(tn_call *call, tn_tensor **results, int32_t n_results);

/* Ends a call with its gradient instead: dresults[i] holds d loss / d result i, in that result's type (NULL:
 * zero); gradients[i] takes d loss / d operand i, in that operand's type: a tensor to write to, or NULL for
 * a new one. `want` says for which operands (NULL: every one of a float type); the others' gradients stay as
 * they are. An operand that the results do not depend on has a gradient of zeros. */
TN_EXPORT tn_status tn_call_end_gradient(tn_call *call, tn_tensor *const *dresults, int32_t n_dresults,
                                         const int32_t *want, tn_tensor **gradients, int32_t n_gradients);

/* Gives a call back without making it. Accepts NULL. */
TN_EXPORT void tn_call_cancel(tn_call *call);

TN_END_C
#endif
