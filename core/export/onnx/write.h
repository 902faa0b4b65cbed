/* core/export/onnx/write.h: from nodes to files. Private to core/export/onnx. */
#pragma once

#include "core/export/onnx/nodes.h"
#include "core/export/onnx/onnx.h"

typedef struct export_writer {
  const tn_onnx_export_request *request;
  export_graph *x;
  bool external;
  const char *data_path, *data_name; /* of the contents beside the file, with `external` */
  tn_text graph;                     /* GraphProto without its initializers */
  int64_t bytes;                     /* written */
} export_writer;

/* weight_data.c: the contents of an initializer, in memory of tn_type_bytes(&weight->type). */
tn_status export_weight_read(const export_writer *w, const export_weight *weight, void *to);
