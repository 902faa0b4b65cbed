/* core/export/onnx/onnx.h: a graph as a model of ONNX (docs/decisions/0088). */
#pragma once

#include "core/export/fold.h"
#include "core/graph/graph.h"

enum { TN_ONNX_FIRST_OPSET = 13, TN_ONNX_LAST_OPSET = 23 };

/* An entry of metadata_props; value NULL: it is left out. */
typedef struct tn_onnx_note {
  const char *key, *value;
} tn_onnx_note;

typedef struct tn_onnx_export_request {
  tn_env *env;
  /* Of inference, without passes behind the model; the call takes it. Its batch is a prime that no other size
   * is a multiple of. */
  tn_graph *graph;
  int64_t batch;
  const char *path;  /* of the file to write; it does not exist */
  int32_t opset;     /* TN_ONNX_FIRST_OPSET to TN_ONNX_LAST_OPSET */
  int32_t precision; /* TN_F32, TN_F16 or TN_BF16: of floating weights in the file */
  bool fold;         /* batch norm becomes part of the convolution in front of it */
  bool external;     /* weights in PATH.data beside the file; they always are there above 2 GB */
  const tn_onnx_note *notes;
  int32_t n_notes;
  tn_export_read *read; /* of states */
  void *context;
} tn_onnx_export_request;

typedef struct tn_onnx_exported {
  int64_t nodes, weights, bytes; /* bytes: of the files */
  bool external;
} tn_onnx_exported;

/* Expresses the graph and writes it. One weight at a time is in memory. TN_EUNSUPPORTED: the message lists
 * the ops that cannot be expressed, each with its reason and number; nothing is written. After any other
 * failure nothing is left either. */
tn_status tn_onnx_export(const tn_onnx_export_request *request, tn_onnx_exported *made);
