/* core/onnx/file/onnx_file.h: the contents of a file of ONNX (https://onnx.ai/onnx/repo-docs/IR.html,
 * onnx.proto). The file is mapped; texts are copied into the arena, and the contents of tensors stay in the
 * file. */
#pragma once

#include "core/base/arena.h"
#include "core/formats/protobuf.h"

/* TensorProto.DataType. */
enum {
  TN_ONNX_FLOAT = 1,
  TN_ONNX_UINT8 = 2,
  TN_ONNX_INT8 = 3,
  TN_ONNX_UINT16 = 4,
  TN_ONNX_INT16 = 5,
  TN_ONNX_INT32 = 6,
  TN_ONNX_INT64 = 7,
  TN_ONNX_STRING = 8,
  TN_ONNX_BOOL = 9,
  TN_ONNX_FLOAT16 = 10,
  TN_ONNX_DOUBLE = 11,
  TN_ONNX_UINT32 = 12,
  TN_ONNX_UINT64 = 13,
  TN_ONNX_BFLOAT16 = 16,
  TN_ONNX_FLOAT8E4M3FN = 17,
  TN_ONNX_FLOAT8E4M3FNUZ = 18,
  TN_ONNX_FLOAT8E5M2 = 19,
  TN_ONNX_FLOAT8E5M2FNUZ = 20,
  TN_ONNX_UINT4 = 21,
  TN_ONNX_INT4 = 22,
  TN_ONNX_FLOAT4E2M1 = 23,
  TN_ONNX_UINT2 = 25,
  TN_ONNX_INT2 = 26
};
enum { TN_ONNX_MOST_NODES = 100000, TN_ONNX_MOST_DEPTH = 16 };

typedef struct tn_onnx_file tn_onnx_file;
typedef struct tn_onnx_tensor tn_onnx_tensor;

struct tn_onnx_tensor {
  const char *name;
  int32_t data_type;     /* TN_ONNX_... */
  tn_type type;          /* dtype TN_ANY: Tenon has no such element type */
  tn_proto message;      /* of the tensor, for its contents */
  const char *location;  /* of its contents, a file beside the model; NULL: they are in the model */
  int64_t offset, bytes; /* of that file; bytes -1: up to its end */
  /* Writes elements that are in no file, but follow from `how`; NULL: they are in a file. */
  tn_status (*make)(tn_onnx_file *file, const tn_onnx_tensor *tensor, void *to);
  const void *how;
};

typedef struct tn_onnx_graph tn_onnx_graph;

typedef struct tn_onnx_attribute {
  const char *name;
  int32_t type; /* AttributeProto.AttributeType */
  double number;
  int64_t whole;
  const char *text; /* of a list of texts: all of them, with commas between */
  int64_t *wholes;
  double *numbers;
  int32_t n_wholes, n_numbers;
  tn_onnx_tensor *tensor;
  tn_onnx_graph *graph;  /* the body of a loop, or a branch */
  const char *reference; /* in the body of a function: the attribute of the call whose value it has */
} tn_onnx_attribute;

typedef struct tn_onnx_node {
  const char *name, *op, *domain;
  const char *modules; /* that the node stands in, "layer1: Sequential/layer1.0: Block/add: aten.add"; NULL */
  const char **in, **out; /* "": absent */
  int32_t n_in, n_out, n_attributes;
  tn_onnx_attribute *attributes;
} tn_onnx_node;

/* An input or output of the graph. Dimensions are -1 where they have a name or are unknown. */
typedef struct tn_onnx_field {
  const char *name;
  int32_t data_type;
  bool has_shape;
  tn_type type;
} tn_onnx_field;

/* An entry of metadata_props. */
typedef struct tn_onnx_entry {
  const char *key, *value;
} tn_onnx_entry;

struct tn_onnx_graph {
  tn_onnx_node *nodes;
  tn_onnx_tensor *initializers;
  tn_onnx_field *inputs, *outputs;
  int64_t n_nodes, n_initializers, n_inputs, n_outputs;
};

/* A function that nodes call by its name as their operator. */
typedef struct tn_onnx_function {
  const char *name, *domain;
  const char **in, **out;
  int32_t n_in, n_out;
  tn_onnx_graph body; /* the nodes alone */
} tn_onnx_function;

struct tn_onnx_file {
  tn_env *env;
  tn_arena arena;
  const char *path;
  const uint8_t *bytes;
  size_t count;
  const char *producer;
  int64_t opset;     /* of the main domain */
  int64_t all_nodes; /* with those of bodies and branches */
  int32_t depth;     /* of the graph that is being read */
  tn_onnx_graph graph;
  tn_onnx_function *functions;
  int64_t n_functions;
  tn_onnx_entry *entries; /* metadata_props */
  int64_t n_entries;
};

/* TN_EIO: the file cannot be read; TN_EINVAL: it is no model of ONNX, or damaged. The caller closes it, after
 * a failure, too. */
tn_status tn_onnx_open(tn_env *env, const char *path, tn_onnx_file *file);
void tn_onnx_close(tn_onnx_file *file);
/* The value of a key of metadata_props; NULL: the model has no such key. */
const char *tn_onnx_entry_of(const tn_onnx_file *file, const char *key);

/* The Tenon type of an element; TN_ANY where Tenon lacks it. */
int32_t tn_onnx_dtype(int32_t data_type);
/* FLOAT for 1; for messages. */
const char *tn_onnx_type_name(int32_t data_type);

/* The contents as elements of the tensor's Tenon type, row-major, into memory of tn_type_bytes. Contents of
 * another file are read from the model's folder. */
tn_status tn_onnx_tensor_read(tn_onnx_file *file, const tn_onnx_tensor *tensor, void *to);
