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
  int32_t flat; /* 1: a line for each layer; 0: parts that repeat become blocks */
} tn_import_options;

/* options may be NULL. Reads a model of ONNX (opset 7 or later, https://onnx.ai) and writes it as a
 * configuration, with [model], [weights] and a [block NAME] for each part that repeats, and as a file of
 * weights of the same name that ends in .safetensors; both forms are the same graph. The first dimension of
 * every input is the batch, of any size; all other dimensions must be fixed. Where no configuration follows
 * from that, as of a matrix that is transposed, and all dimensions are fixed, a batch is one sample, which
 * has all of them. Floats of 16 and 64 bits are f32 in the configuration: a precision policy chooses another
 * type. Contents of tensors that lie in files beside the model are read from there.
 *
 * *json is one JSON object as text, {"configuration", "weights", "nodes", "lines", "parameters", "whole"
 * (a batch is one sample)}; the caller frees it with tn_string_free (context.h). Nothing is overwritten, and
 * after a failure nothing is left. TN_EUNSUPPORTED: the message lists the operators that cannot be expressed,
 * each with its reason. TN_EINVAL: `path` is no model of ONNX or damaged, or a file to write exists. TN_EIO:
 * a file cannot be read or written. One call at a time for a context. */
TN_EXPORT tn_status tn_import_onnx(tn_context *context, const char *path, const char *configuration,
                                   const tn_import_options *options, char **json);

/* Reads a decoder of the LLaMA family from a file of GGUF, version 2 or 3, and writes it as a configuration,
 * its weights as f32 to a file of the same name that ends in .safetensors, and its tokenizer to one that ends
 * in .tokenizer.json. Tensors may be F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K; lines
 * have their names.
 *
 * *json is one JSON object as text, {"configuration", "weights", "tokenizer", "tensors", "parameters"}, where
 * "tokenizer" is null if the file has none; the caller frees it with tn_string_free (context.h). Nothing is
 * overwritten, and after a failure nothing is left. TN_EUNSUPPORTED: the architecture, a type of tensors or
 * the kind of the tokenizer is another one, with its name. TN_EINVAL: `path` is no file of GGUF or damaged,
 * or a file to write exists. TN_EIO: a file cannot be read or written. One call at a time for a context. */
TN_EXPORT tn_status tn_import_gguf(tn_context *context, const char *path, const char *configuration,
                                   char **json);

TN_END_C
#endif
