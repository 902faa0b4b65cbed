/* tenon/import.h: models of other programs as configurations. */
#ifndef TENON_IMPORT_H
#define TENON_IMPORT_H

#include "tenon/context.h"

TN_BEGIN_C

/* Reads a model of ONNX (opset 7 or later, https://onnx.ai) and writes it as a configuration, with [model]
 * and [weights], and as a file of weights of the same name that ends in .safetensors. The first dimension of
 * every input is the batch, of any size; all other dimensions must be fixed. Floats of 16 and 64 bits are f32
 * in the configuration: a precision policy chooses another type. Contents of tensors that lie in files beside
 * the model are read from there.
 *
 * *json is one JSON object as text, {"configuration", "weights", "nodes", "lines", "parameters"}; the caller
 * frees it with tn_string_free (context.h). Nothing is overwritten, and after a failure nothing is left.
 * TN_EUNSUPPORTED: the message lists the operators that cannot be expressed, each with its reason. TN_EINVAL:
 * `path` is no model of ONNX or damaged, or a file to write exists. TN_EIO: a file cannot be read or written.
 * One call at a time for a context. */
TN_EXPORT tn_status tn_import_onnx(tn_context *context, const char *path, const char *configuration,
                                   char **json);

TN_END_C
#endif
