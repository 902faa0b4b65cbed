/* core/onnx/onnx.h: models of ONNX (https://onnx.ai/onnx/repo-docs/IR.html) as configurations. */
#pragma once

#include "core/model/model.h"

/* A value for an input of the graph, which is no input of the model then but a tensor of it. */
typedef struct tn_onnx_given {
  const char *name, *path; /* of the input, and of a .npy file */
} tn_onnx_given;

typedef struct tn_onnx_request {
  const char *path;         /* of the model */
  const char *weights_path; /* the file of weights that is written */
  const char *weights_name; /* its name in the configuration */
  const tn_onnx_given *given;
  int32_t n_given;
} tn_onnx_request;

typedef struct tn_onnx_imported {
  char *text; /* the configuration: [model] and [weights]; the caller's (tn_release) */
  int64_t nodes, lines, parameters;
  bool whole; /* the batch is one sample */
} tn_onnx_imported;

/* Writes the weights, and returns the configuration. TN_EUNSUPPORTED: the message lists all operators that
 * cannot be expressed, each with its reason, and nothing is written. TN_EINVAL: the file is no model of ONNX,
 * or damaged. */
tn_status tn_onnx_import(tn_env *env, tn_registry *registry, struct tn_op_table *ops,
                         const tn_onnx_request *request, tn_onnx_imported *made);
