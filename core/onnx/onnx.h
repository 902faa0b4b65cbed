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
  bool flat; /* without blocks: a line for each layer */
} tn_onnx_request;

typedef struct tn_onnx_imported {
  char *text; /* the configuration: [model] and [weights]; the caller's (tn_release) */
  int64_t nodes, lines, parameters;
  bool whole; /* the batch is one sample */
} tn_onnx_imported;

/* The key of metadata_props, and of notes of files of weights, for names of classes; of the loss, of the
 * targets and of source and transforms of the data of a model that was trained here. */
#define TN_ONNX_CLASSES    "tenon.classes"
#define TN_ONNX_LOSS       "tenon.loss"
#define TN_ONNX_TARGETS    "tenon.targets"
#define TN_ONNX_SOURCE     "tenon.source"
#define TN_ONNX_TRANSFORMS "tenon.transforms"

/* A model whose weights stay in its file. */
typedef struct tn_onnx_model tn_onnx_model;
/* Fails as tn_onnx_import. Registry and ops must outlive it; messages go to `env`. */
tn_status tn_onnx_model_open(tn_env *env, tn_registry *registry, struct tn_op_table *ops, const char *path,
                             tn_onnx_model **model);
void tn_onnx_model_close(tn_onnx_model *model);
/* The configuration, without [weights]. */
const char *tn_onnx_model_text(const tn_onnx_model *model);
/* The value of a key of metadata_props; NULL: the file has no such key. */
const char *tn_onnx_model_note(const tn_onnx_model *model, const char *key);
/* Reads the weight that the configuration calls `path`, of `count` numbers. TN_EINVAL: it has no such weight.
 */
tn_status tn_onnx_model_read(tn_onnx_model *model, const char *path, float *to, int64_t count);

/* Writes the weights, and returns the configuration. TN_EUNSUPPORTED: the message lists all operators that
 * cannot be expressed, each with its reason, and nothing is written. TN_EINVAL: the file is no model of ONNX,
 * or damaged. */
tn_status tn_onnx_import(tn_env *env, tn_registry *registry, struct tn_op_table *ops,
                         const tn_onnx_request *request, tn_onnx_imported *made);
