/* core/onnx/onnx.h: models of ONNX (https://onnx.ai/onnx/repo-docs/IR.html) as configurations. */
#pragma once

#include "core/model/model.h"

typedef struct tn_onnx_request {
  const char *path;         /* of the model */
  const char *weights_path; /* the file of weights that is written */
  const char *weights_name; /* its name in the configuration */
} tn_onnx_request;

typedef struct tn_onnx_imported {
  char *text; /* the configuration: [model] and [weights]; the caller's (tn_release) */
  int64_t nodes, lines, parameters;
} tn_onnx_imported;

/* Writes the weights, and returns the configuration. TN_EUNSUPPORTED: the message lists all operators that
 * cannot be expressed, each with its reason, and nothing is written. TN_EINVAL: the file is no model of ONNX,
 * or damaged. */
tn_status tn_onnx_import(tn_env *env, tn_registry *registry, struct tn_op_table *ops,
                         const tn_onnx_request *request, tn_onnx_imported *made);
