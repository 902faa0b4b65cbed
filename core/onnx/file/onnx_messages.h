/* core/onnx/file/onnx_messages.h: readers of messages of onnx.proto. Private to core/onnx/file. Each takes
 * the fields of its message; fields that nothing reads are passed over.
 *
 *   onnx_tensor.c   TensorProto, and the contents of tensors
 *   onnx_graph.c    GraphProto, FunctionProto, NodeProto, AttributeProto, ValueInfoProto
 *   onnx_file.c     ModelProto */
#pragma once

#include "core/onnx/file/onnx_file.h"

/* onnx_tensor.c. "FILE: the graph is damaged or cut off ...", as TN_EINVAL. */
tn_status onnx_damaged(const tn_onnx_file *f, const char *what);
/* The text of a field, in the file's arena. */
tn_status onnx_take_text(tn_onnx_file *f, const tn_proto_field *field, const char **text);
tn_status onnx_read_tensor(tn_onnx_file *f, tn_proto message, tn_onnx_tensor *t);

/* onnx_graph.c */
tn_status onnx_read_graph(tn_onnx_file *f, tn_proto message, tn_onnx_graph *g);
tn_status onnx_read_function(tn_onnx_file *f, tn_proto message, tn_onnx_function *to);
