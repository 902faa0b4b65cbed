/* tenon/import.h: models of other programs as configurations. */
#ifndef TENON_IMPORT_H
#define TENON_IMPORT_H

#include "tenon/context.h"

TN_BEGIN_C

typedef struct tn_import_options {
  uint32_t struct_size;
  /* "NAME=FILE.npy", n_constants of them: the value of an input, which becomes a tensor of the model: a
   * weight, a shape, an axis. */
  int32_t n_constants;
  const char *const *constants;
} tn_import_options;

/* options may be NULL. Reads a model of ONNX (opset 7 or later, https://onnx.ai) and writes it as a
 * configuration, with [model] and [weights], and as a file of weights of the same name that ends in
 * .safetensors. The first dimension of every input is the batch, of any size; all other dimensions must be
 * fixed. Where no configuration follows from that, as of a matrix that is transposed, and all dimensions are
 * fixed, a batch is one sample, which has all of them. Floats of 16 and 64 bits are f32 in the configuration:
 * a precision policy chooses another type. Contents of tensors that lie in files beside the model are read
 * from there.
 *
 * *json is one JSON object as text, {"configuration", "weights", "nodes", "lines", "parameters", "whole"
 * (a batch is one sample)}; the caller frees it with tn_string_free (context.h). Nothing is overwritten, and
 * after a failure nothing is left. TN_EUNSUPPORTED: the message lists the operators that cannot be expressed,
 * each with its reason. TN_EINVAL: `path` is no model of ONNX or damaged, or a file to write exists. TN_EIO:
 * a file cannot be read or written. One call at a time for a context. */
TN_EXPORT tn_status tn_import_onnx(tn_context *context, const char *path, const char *configuration,
                                   const tn_import_options *options, char **json);

TN_END_C
#endif
