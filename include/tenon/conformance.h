/* tenon/conformance.h: the conformance suite of backends and plugins, which Tenon's own backends pass as
 * well.
 *
 * Device cases need no kernels: memory, copies, zeroing, streams, events, capture; launches and calls on
 * tensors; and, last, a launch that fails.
 *
 * Op cases are drawn from a seed: shapes (empty ones and dimensions of 1 included), attributes, values,
 * operands that may be overwritten. Each is compiled like a training step, with and without gradients, in
 * every dtype, and compared with a reference in f64 that shares no code with any kernel. The tolerance is 8
 * (sqrt(k) eps(acc) + eps(T)) times the largest element; k is the length of the longest sum, acc its type:
 * f64 for f64, else f32. The variance of moments has 8 (sqrt(k) + 1) eps(acc) times the element itself, also
 * of elements far from 0, where a kernel does not declare plain sums. A kernel that declares itself
 * deterministic must repeat its bits, captured or not. A kernel must not write outside its results, and its
 * results must not depend on bytes outside its operands.
 *
 * Items of plugins have cases of their kinds: docs/plugins/conformance.md. */
#ifndef TENON_CONFORMANCE_H
#define TENON_CONFORMANCE_H

#include "tenon/tensor.h"

TN_BEGIN_C

typedef struct tn_conformance_options {
  uint32_t struct_size;
  /* The cases to run: "matmul", "matmul/f32", "matmul/f32/3", "matmul/f32/3/gradient", "device",
   * "device/events", "layer:serf", "source:rings/workers". NULL: all. The report names failing cases in this
   * form. */
  const char *only;
  /* A loaded plugin by name: its ops, with operands drawn from their schemas, its kernels, each with cases of
   * its whole pattern, and its layers, optimizers, precision policies, sources and transforms. Every kernel
   * must be chosen at least once. NULL: the core's ops on the kernels of the device. */
  const char *plugin;
  /* Text with a line for each op that the device does not support: "OP/DTYPE: reason", `*` for any part, `#`
   * for comments. An unsupported op that is not listed fails, and so does a line whose op is supported. NULL:
   * unsupported ops are reported and do not fail. */
  const char *unsupported;
  int64_t draws; /* cases of each op and dtype; 0: 8, and 64 for those of a plugin */
  /* Called with one line for each failure when it is found; may be NULL. */
  void (*say)(void *user, const char *line);
  void *user;
  /* Called with the name of each case before it runs, which identifies a case that hangs; may be NULL. */
  void (*begin)(void *user, const char *name);
  int32_t uncaptured; /* 1: no capture, as with [backend] capture = no */
  /* With `plugin`: options of its items, a line each: "source:idx.images=/data/images". Paths are relative to
   * the current folder. NULL: defaults, and for a required option a value in its range. */
  const char *settings;
  /* The suite begins behind this case, named as in `begin`: a run that a case has ended goes on in a new
   * process. Lines of `unsupported` and kernels that the rest does not meet are no failures then. NULL: with
   * the first case. */
  const char *after;
  /* 1: an op runs in one float and one integer dtype, which its name picks, since ops share the code of a
   * dtype. An op that a kernel of the device has in its pattern runs in f32 and i32 as well. */
  int32_t quick;
} tn_conformance_options;

/* Runs the suite on a device (tensor.h), on the calling thread; the device is not used elsewhere meanwhile.
 * The last case breaks a device that accepts kernels of another family: close it afterwards. *json, which the
 * caller frees: {backend, device, bits, passed, failed: [{case, reason}], unsupported: [{case, reason}],
 * stale: [line], broken_in: case or null, kernels: [{name, plugin, launches}], cases: {"relu/f32": 16}} cases
 * has the number of drawn uses of each op and dtype. bits is a hash of the results of deterministic kernels:
 * equal for any number of threads, with and without capture. A case that breaks the device ends the suite,
 * and broken_in has its name. Failing cases are in *json, and the function returns TN_OK. TN_EINVAL: an
 * option is wrong. options may be NULL. The caller frees the text with tn_string_free (context.h). */
TN_EXPORT tn_status tn_conformance_run(tn_device *device, const tn_conformance_options *options, char **json);

TN_END_C
#endif
