/* tenon/conformance.h: does a device compute what ops mean? One suite for all backends and plugins, the one
 * that Tenon's own are held to.
 *
 * First the device itself, without kernels: its memory, copies, zeroing, streams, events and capture;
 * launches and calls on an application's tensors; and at the very end a launch that fails.
 *
 * For every op, uses are drawn from a seed: shapes (empty and of size 1 among them), attributes, values,
 * operands that may be overwritten. Each is compiled as a training step is, with and without gradients, in
 * every dtype, and compared with a reference in f64 that shares no code with any kernel. The tolerance is
 * 8 (sqrt(k) eps(acc) + eps(T)) of the largest element, k the longest sum, acc the type it is made in: f32
 * for f32 and narrower, f64 for f64. Kernels that say that they are deterministic must give the same bits
 * again, captured or not; nobody may write a byte that is not its own. */
#ifndef TENON_CONFORMANCE_H
#define TENON_CONFORMANCE_H

#include "tenon/tensor.h"

TN_BEGIN_C

typedef struct tn_conformance_options {
  uint32_t struct_size;
  /* What to try: "matmul", "matmul/f32", "matmul/f32/3", "matmul/f32/3/gradient",
   * "device", "device/events". NULL: everything. The
   * report names each failing use so. */
  const char *only;
  /* An opened plugin file by the name of its plugin: its ops, with operands drawn after their schemas, and
   * its kernels, each with a use of its whole pattern. Every kernel must have been chosen at least once.
   * NULL: the core's ops, on whatever kernels the device has. */
  const char *plugin;
  /* Text of what the device does not support, a line each: "OP/DTYPE: reason", `*` for any part, `#` for
   * comments. What is missing and not listed fails, and so does a line that no longer holds. NULL: what is
   * missing is reported and does not fail. */
  const char *unsupported;
  int64_t draws; /* uses of each op and dtype; 0: 8, and 64 for a plugin's */
  /* Called with one line for each failure, as it is found; NULL: not. */
  void (*say)(void *user, const char *line);
  void *user;
  /* Called with the name of each case before it runs, so that one that hangs can be named; NULL: not. */
  void (*begin)(void *user, const char *name);
  int32_t uncaptured; /* 1: launches are made one by one, as with [backend] capture = no */
} tn_conformance_options;

/* Runs the suite on a device (tensor.h), which nobody else may use meanwhile. The last case breaks a device
 * that takes kernels from another family, so close it afterwards. *json:
 *   {backend, device, bits, passed, failed: [{case, reason}], unsupported: [{case, reason}], stale: [line],
 *    kernels: [{name, plugin, launches}]}
 * bits is a hash of every result that a kernel calls deterministic: the same for any number of threads, with
 * and without capture, whatever else the process does. Whatever the device does wrong is in there and the
 * result TN_OK; TN_EINVAL: an option is wrong. Free the text with tn_string_free (context.h). */
TN_EXPORT tn_status tn_conformance_run(tn_device *device, const tn_conformance_options *options, char **json);

TN_END_C
#endif
