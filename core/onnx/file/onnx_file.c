/* core/onnx/file/onnx_file.c: see onnx_file.h. Each message of the schema has a function that takes its
 * fields; fields that nothing reads are passed over. */
#include "core/onnx/file/onnx_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/formats/input.h"

static tn_status onnx_damaged(const tn_onnx_file *f, const char *what) {
  return tn_failf(f->env, TN_EINVAL, "%s: %s is damaged or cut off, expected a model of ONNX", f->path, what);
}

static const char *onnx_text(tn_onnx_file *f, const tn_proto *bytes) {
  size_t n = tn_proto_left(bytes);
  if (n == 0) return tn_arena_strdup(&f->arena, "");
  if (memchr(bytes->at, '\0', n) != NULL) n = strlen((const char *)bytes->at);
  char *text = tn_arena_alloc(&f->arena, n + 1);
  if (text != NULL) memcpy(text, bytes->at, n);
  return text;
}

static tn_status onnx_take_text(tn_onnx_file *f, const tn_proto_field *field, const char **text) {
  *text = onnx_text(f, &field->bytes);
  return *text != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- types ---- */

typedef struct onnx_type_row {
  const char *name;
  int32_t dtype;
  uint32_t form;   /* of typed contents */
  uint32_t number; /* of their field in TensorProto */
  size_t size;
} onnx_type_row;

/* By TensorProto.DataType. Whole numbers of 16 bits, and those without a sign of 32 and 64, become i32 and
 * i64. */
static const onnx_type_row onnx_types[] = {
    [TN_ONNX_FLOAT] = {"float", TN_F32, TN_PROTO_32, 4, 4},
    [TN_ONNX_UINT8] = {"uint8", TN_U8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_INT8] = {"int8", TN_I8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_UINT16] = {"uint16", TN_I32, TN_PROTO_VARINT, 5, 2},
    [TN_ONNX_INT16] = {"int16", TN_I32, TN_PROTO_VARINT, 5, 2},
    [TN_ONNX_INT32] = {"int32", TN_I32, TN_PROTO_VARINT, 5, 4},
    [TN_ONNX_INT64] = {"int64", TN_I64, TN_PROTO_VARINT, 7, 8},
    [TN_ONNX_STRING] = {"string", TN_ANY, 0, 0, 0},
    [TN_ONNX_BOOL] = {"bool", TN_BOOL, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT16] = {"float16", TN_F16, TN_PROTO_VARINT, 5, 2},
    [TN_ONNX_DOUBLE] = {"double", TN_F64, TN_PROTO_64, 10, 8},
    [TN_ONNX_UINT32] = {"uint32", TN_I64, TN_PROTO_VARINT, 11, 4},
    [TN_ONNX_UINT64] = {"uint64", TN_I64, TN_PROTO_VARINT, 11, 8},
    [14] = {"complex64", TN_ANY, 0, 0, 0},
    [15] = {"complex128", TN_ANY, 0, 0, 0},
    [TN_ONNX_BFLOAT16] = {"bfloat16", TN_BF16, TN_PROTO_VARINT, 5, 2},
    [TN_ONNX_FLOAT8E4M3FN] = {"float8e4m3fn", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT8E5M2] = {"float8e5m2", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_UINT4] = {"uint4", TN_U8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_INT4] = {"int4", TN_I8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT4E2M1] = {"float4e2m1", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_UINT2] = {"uint2", TN_U8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_INT2] = {"int2", TN_I8, TN_PROTO_VARINT, 5, 1},
};

static const onnx_type_row *onnx_type_of(int32_t data_type) {
  static const onnx_type_row unknown = {"an unknown type", TN_ANY, 0, 0, 0};
  bool known = data_type > 0 && (size_t)data_type < sizeof onnx_types / sizeof *onnx_types;
  return known && onnx_types[data_type].name != NULL ? &onnx_types[data_type] : &unknown;
}

int32_t tn_onnx_dtype(int32_t data_type) { return onnx_type_of(data_type)->dtype; }
const char *tn_onnx_type_name(int32_t data_type) { return onnx_type_of(data_type)->name; }

/* ---- tensors ---- */

static tn_status onnx_read_external(tn_onnx_file *f, tn_proto entry, tn_onnx_tensor *t) {
  const char *key = "", *value = "";
  tn_proto_field field;
  while (tn_proto_next(&entry, &field)) {
    if (field.number == 1) TN_TRY(onnx_take_text(f, &field, &key));
    if (field.number == 2) TN_TRY(onnx_take_text(f, &field, &value));
  }
  if (entry.bad) return onnx_damaged(f, "the place of a tensor's contents");
  if (strcmp(key, "location") == 0) t->location = value;
  int64_t *number = strcmp(key, "offset") == 0 ? &t->offset : strcmp(key, "length") == 0 ? &t->bytes : NULL;
  if (number != NULL && (!tn_text_to_int(value, number) || *number < 0))
    return tn_failf(f->env, TN_EINVAL, "%s: tensor '%s': its %s is '%.40s', expected a number of bytes",
                    f->path, t->name, key, value);
  return TN_OK;
}

typedef struct onnx_dims {
  tn_type *type;
  bool many;
} onnx_dims;

static void onnx_take_dim(void *context, uint64_t value) {
  onnx_dims *d = context;
  d->many = d->many || d->type->rank == TN_MAX_RANK;
  if (!d->many) d->type->dims[d->type->rank++] = (int64_t)value;
}

static tn_status onnx_read_tensor(tn_onnx_file *f, tn_proto message, tn_onnx_tensor *t) {
  bool elsewhere = false;
  onnx_dims dims = {&t->type, false};
  *t = (tn_onnx_tensor){.name = "", .message = message, .bytes = -1};
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) switch (field.number) {
    case 1: tn_proto_numbers(&field, TN_PROTO_VARINT, onnx_take_dim, &dims); break;
    case 2: t->data_type = (int32_t)field.value; break;
    case 8: TN_TRY(onnx_take_text(f, &field, &t->name)); break;
    case 13: TN_TRY(onnx_read_external(f, field.bytes, t)); break;
    case 14: elsewhere = field.value == 1; break;
    default: break;
    }
  int64_t bytes;
  t->type.dtype = tn_onnx_dtype(t->data_type);
  size_t size = t->type.dtype != TN_ANY ? tn_dtype_size(t->type.dtype) : 1;
  if (message.bad) return onnx_damaged(f, "a tensor");
  if (dims.many || !tn_checked_bytes(t->type.dims, t->type.rank, size, &bytes))
    return tn_failf(f->env, TN_EINVAL,
                    "%s: tensor '%s' has dimensions that no tensor has, expected at most %d", f->path,
                    t->name, TN_MAX_RANK);
  if (elsewhere && t->location == NULL) return onnx_damaged(f, "the place of a tensor's contents");
  if (!elsewhere) t->location = NULL;
  return TN_OK;
}

/* ---- nodes ---- */

static tn_status onnx_read_graph(tn_onnx_file *f, tn_proto message, tn_onnx_graph *g);

typedef struct onnx_numbers {
  tn_onnx_file *file;
  tn_onnx_attribute *attribute;
  bool failed;
} onnx_numbers;

static void onnx_take_whole(void *context, uint64_t value) {
  onnx_numbers *n = context;
  tn_onnx_attribute *a = n->attribute;
  int64_t *v = tn_arena_grow(&n->file->arena, a->wholes, (size_t)a->n_wholes, sizeof *v);
  n->failed = n->failed || v == NULL;
  if (n->failed) return;
  a->wholes = v;
  v[a->n_wholes++] = (int64_t)value;
}

static void onnx_take_float(void *context, uint64_t value) {
  onnx_numbers *n = context;
  tn_onnx_attribute *a = n->attribute;
  double *v = tn_arena_grow(&n->file->arena, a->numbers, (size_t)a->n_numbers, sizeof *v);
  n->failed = n->failed || v == NULL;
  if (n->failed) return;
  a->numbers = v;
  v[a->n_numbers++] = (double)tn_proto_float(value);
}

static tn_status onnx_attribute_tensor(tn_onnx_file *f, const tn_proto_field *field, tn_onnx_attribute *a) {
  a->tensor = tn_arena_alloc(&f->arena, sizeof *a->tensor);
  return a->tensor != NULL ? onnx_read_tensor(f, field->bytes, a->tensor) : TN_ENOMEM;
}

static tn_status onnx_attribute_graph(tn_onnx_file *f, const tn_proto_field *field, tn_onnx_attribute *a) {
  a->graph = tn_arena_alloc(&f->arena, sizeof *a->graph);
  if (a->graph == NULL) return TN_ENOMEM;
  *a->graph = (tn_onnx_graph){.nodes = NULL};
  return onnx_read_graph(f, field->bytes, a->graph);
}

/* A list of texts, with commas between. */
static tn_status onnx_join_text(tn_onnx_file *f, const tn_proto_field *field, tn_onnx_attribute *a) {
  const char *part = onnx_text(f, &field->bytes);
  if (part == NULL) return TN_ENOMEM;
  a->text = a->text[0] == '\0' ? part : tn_arena_printf(&f->arena, "%s,%s", a->text, part);
  return a->text != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status onnx_read_attribute(tn_onnx_file *f, tn_proto message, tn_onnx_attribute *a) {
  onnx_numbers numbers = {f, a, false};
  *a = (tn_onnx_attribute){.name = "", .text = ""};
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) switch (field.number) {
    case 1: TN_TRY(onnx_take_text(f, &field, &a->name)); break;
    case 2: a->number = (double)tn_proto_float(field.value); break;
    case 3: a->whole = (int64_t)field.value; break;
    case 4: TN_TRY(onnx_take_text(f, &field, &a->text)); break;
    case 5: TN_TRY(onnx_attribute_tensor(f, &field, a)); break;
    case 6: TN_TRY(onnx_attribute_graph(f, &field, a)); break;
    case 7: tn_proto_numbers(&field, TN_PROTO_32, onnx_take_float, &numbers); break;
    case 8: tn_proto_numbers(&field, TN_PROTO_VARINT, onnx_take_whole, &numbers); break;
    case 9: TN_TRY(onnx_join_text(f, &field, a)); break;
    case 20: a->type = (int32_t)field.value; break;
    case 21: TN_TRY(onnx_take_text(f, &field, &a->reference)); break;
    default: break;
    }
  if (numbers.failed) return TN_ENOMEM;
  return message.bad ? onnx_damaged(f, "an attribute") : TN_OK;
}

static tn_status onnx_add_text(tn_onnx_file *f, const tn_proto_field *field, const char ***list, int32_t *n) {
  const char **v = tn_arena_grow(&f->arena, *list, (size_t)*n, sizeof *v);
  if (v == NULL) return TN_ENOMEM;
  *list = v;
  return onnx_take_text(f, field, &v[(*n)++]);
}

static tn_status onnx_add_attribute(tn_onnx_file *f, const tn_proto_field *field, tn_onnx_node *node) {
  tn_onnx_attribute *v = tn_arena_grow(&f->arena, node->attributes, (size_t)node->n_attributes, sizeof *v);
  if (v == NULL) return TN_ENOMEM;
  node->attributes = v;
  return onnx_read_attribute(f, field->bytes, &v[node->n_attributes++]);
}

/* An entry of the node's metadata: the exporter of PyTorch notes the modules around the node. */
static tn_status onnx_read_modules(tn_onnx_file *f, tn_proto message, tn_onnx_node *node) {
  static const char key[] = "namespace";
  bool known = false;
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) {
    if (field.number == 1)
      known = field.bytes.end - field.bytes.at == sizeof key - 1 &&
              memcmp(field.bytes.at, key, sizeof key - 1) == 0;
    if (field.number == 2 && known) TN_TRY(onnx_take_text(f, &field, &node->modules));
  }
  return message.bad ? onnx_damaged(f, "metadata") : TN_OK;
}

static tn_status onnx_read_node(tn_onnx_file *f, tn_proto message, tn_onnx_node *node) {
  *node = (tn_onnx_node){.name = "", .op = "", .domain = ""};
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) switch (field.number) {
    case 1: TN_TRY(onnx_add_text(f, &field, &node->in, &node->n_in)); break;
    case 2: TN_TRY(onnx_add_text(f, &field, &node->out, &node->n_out)); break;
    case 3: TN_TRY(onnx_take_text(f, &field, &node->name)); break;
    case 4: TN_TRY(onnx_take_text(f, &field, &node->op)); break;
    case 5: TN_TRY(onnx_add_attribute(f, &field, node)); break;
    case 7: TN_TRY(onnx_take_text(f, &field, &node->domain)); break;
    case 9: TN_TRY(onnx_read_modules(f, field.bytes, node)); break;
    default: break;
    }
  if (strcmp(node->domain, "ai.onnx") == 0) node->domain = ""; /* the main domain has both names */
  return message.bad ? onnx_damaged(f, "a node") : TN_OK;
}

/* ---- inputs and outputs ---- */

static int64_t onnx_read_dimension(tn_proto *message) {
  int64_t size = -1;
  tn_proto_field field;
  while (tn_proto_next(message, &field))
    if (field.number == 1) size = (int64_t)field.value;
  return size >= 0 ? size : -1;
}

static tn_status onnx_read_shape(tn_onnx_file *f, tn_proto message, tn_onnx_field *to) {
  tn_proto_field field;
  to->has_shape = true;
  while (tn_proto_next(&message, &field)) {
    if (field.number != 1) continue;
    if (to->type.rank == TN_MAX_RANK)
      return tn_failf(f->env, TN_EINVAL, "%s: '%s' has more than %d dimensions, expected at most so many",
                      f->path, to->name, TN_MAX_RANK);
    to->type.dims[to->type.rank++] = onnx_read_dimension(&field.bytes);
  }
  return message.bad ? onnx_damaged(f, "a shape") : TN_OK;
}

/* TypeProto, of which tensors alone are read. */
static tn_status onnx_read_type(tn_onnx_file *f, tn_proto message, tn_onnx_field *to) {
  tn_proto_field field, part;
  while (tn_proto_next(&message, &field)) {
    if (field.number != 1) continue;
    tn_proto tensor = field.bytes;
    while (tn_proto_next(&tensor, &part)) {
      if (part.number == 1) to->data_type = (int32_t)part.value;
      if (part.number == 2) TN_TRY(onnx_read_shape(f, part.bytes, to));
    }
  }
  to->type.dtype = tn_onnx_dtype(to->data_type);
  return message.bad ? onnx_damaged(f, "a type") : TN_OK;
}

static tn_status onnx_read_field(tn_onnx_file *f, tn_proto message, tn_onnx_field *to) {
  *to = (tn_onnx_field){.name = ""};
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) {
    if (field.number == 1) TN_TRY(onnx_take_text(f, &field, &to->name));
    if (field.number == 2) TN_TRY(onnx_read_type(f, field.bytes, to));
  }
  return message.bad ? onnx_damaged(f, "an input or output") : TN_OK;
}

/* ---- the graph ---- */

#define ONNX_ADD(list, count, read)                                                                          \
  do {                                                                                                       \
    void *grown = tn_arena_grow(&f->arena, g->list, (size_t)g->count, sizeof *g->list);                      \
    if (grown == NULL) return TN_ENOMEM;                                                                     \
    g->list = grown;                                                                                         \
    TN_TRY(read(f, field.bytes, &g->list[g->count]));                                                        \
    g->count++;                                                                                              \
  } while (0)

static tn_status onnx_count_node(tn_onnx_file *f) {
  if (++f->all_nodes <= TN_ONNX_MOST_NODES) return TN_OK;
  return tn_failf(f->env, TN_EINVAL, "%s: has more than %d nodes, expected at most so many", f->path,
                  TN_ONNX_MOST_NODES);
}

static tn_status onnx_graph_fields(tn_onnx_file *f, tn_proto message, tn_onnx_graph *g) {
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) switch (field.number) {
    case 1:
      TN_TRY(onnx_count_node(f));
      ONNX_ADD(nodes, n_nodes, onnx_read_node);
      break;
    case 5: ONNX_ADD(initializers, n_initializers, onnx_read_tensor); break;
    case 11: ONNX_ADD(inputs, n_inputs, onnx_read_field); break;
    case 12: ONNX_ADD(outputs, n_outputs, onnx_read_field); break;
    default: break;
    }
  return message.bad ? onnx_damaged(f, "the graph") : TN_OK;
}

static tn_status onnx_read_graph(tn_onnx_file *f, tn_proto message, tn_onnx_graph *g) {
  if (f->depth == TN_ONNX_MOST_DEPTH)
    return tn_failf(f->env, TN_EINVAL, "%s: has graphs in graphs, more than %d deep", f->path,
                    TN_ONNX_MOST_DEPTH);
  f->depth++;
  tn_status status = onnx_graph_fields(f, message, g);
  f->depth--;
  return status;
}

/* ---- functions ---- */

static tn_status onnx_read_function(tn_onnx_file *f, tn_proto message, tn_onnx_function *to) {
  *to = (tn_onnx_function){.name = "", .domain = ""};
  tn_onnx_graph *g = &to->body;
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) switch (field.number) {
    case 1: TN_TRY(onnx_take_text(f, &field, &to->name)); break;
    case 4: TN_TRY(onnx_add_text(f, &field, &to->in, &to->n_in)); break;
    case 5: TN_TRY(onnx_add_text(f, &field, &to->out, &to->n_out)); break;
    case 7:
      TN_TRY(onnx_count_node(f));
      ONNX_ADD(nodes, n_nodes, onnx_read_node);
      break;
    case 10: TN_TRY(onnx_take_text(f, &field, &to->domain)); break;
    default: break;
    }
  return message.bad ? onnx_damaged(f, "a function") : TN_OK;
}

static tn_status onnx_add_function(tn_onnx_file *f, const tn_proto_field *field) {
  tn_onnx_function *v = tn_arena_grow(&f->arena, f->functions, (size_t)f->n_functions, sizeof *v);
  if (v == NULL) return TN_ENOMEM;
  f->functions = v;
  return onnx_read_function(f, field->bytes, &v[f->n_functions++]);
}

static tn_status onnx_read_opset(tn_onnx_file *f, tn_proto message) {
  const char *domain = "";
  int64_t version = 0;
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) {
    if (field.number == 1) TN_TRY(onnx_take_text(f, &field, &domain));
    if (field.number == 2) version = (int64_t)field.value;
  }
  if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) f->opset = version;
  return message.bad ? onnx_damaged(f, "the version") : TN_OK;
}

static tn_status onnx_read_entry(tn_onnx_file *f, tn_proto message) {
  tn_onnx_entry entry = {"", ""};
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) {
    if (field.number == 1) TN_TRY(onnx_take_text(f, &field, &entry.key));
    if (field.number == 2) TN_TRY(onnx_take_text(f, &field, &entry.value));
  }
  if (message.bad) return onnx_damaged(f, "metadata");
  tn_onnx_entry *grown = tn_arena_grow(&f->arena, f->entries, (size_t)f->n_entries, sizeof *grown);
  if (grown == NULL) return TN_ENOMEM;
  f->entries = grown;
  f->entries[f->n_entries++] = entry;
  return TN_OK;
}

const char *tn_onnx_entry_of(const tn_onnx_file *f, const char *key) {
  for (int64_t i = 0; i < f->n_entries; i++)
    if (strcmp(f->entries[i].key, key) == 0) return f->entries[i].value;
  return NULL;
}

static tn_status onnx_read_model(tn_onnx_file *f) {
  tn_proto message = tn_proto_of(f->bytes, f->count);
  bool has_graph = false;
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) switch (field.number) {
    case 2: TN_TRY(onnx_take_text(f, &field, &f->producer)); break;
    case 7:
      has_graph = true;
      TN_TRY(onnx_read_graph(f, field.bytes, &f->graph));
      break;
    case 8: TN_TRY(onnx_read_opset(f, field.bytes)); break;
    case 14: TN_TRY(onnx_read_entry(f, field.bytes)); break;
    case 25: TN_TRY(onnx_add_function(f, &field)); break;
    default: break;
    }
  if (message.bad || !has_graph) return onnx_damaged(f, "the file");
  if (f->opset > 0) return TN_OK;
  return tn_failf(f->env, TN_EINVAL, "%s: names no version of the operators, expected opset_import", f->path);
}

/* ---- the file ---- */

static tn_status onnx_map(tn_onnx_file *f) {
  tn_open_file open;
  TN_TRY(tn_file_open(f->env, f->path, O_RDONLY, &open));
  void *at = open.bytes > 0 ? mmap(NULL, (size_t)open.bytes, PROT_READ, MAP_PRIVATE, open.fd, 0) : NULL;
  tn_status status = at == MAP_FAILED ? tn_file_fail(f->env, f->path, "mapped") : TN_OK;
  close(open.fd);
  if (status != TN_OK || at == NULL) return status != TN_OK ? status : onnx_damaged(f, "the file");
  f->bytes = at;
  f->count = (size_t)open.bytes;
  return TN_OK;
}

tn_status tn_onnx_open(tn_env *env, const char *path, tn_onnx_file *file) {
  *file = (tn_onnx_file){.env = env, .path = path, .arena = tn_arena_new(env), .producer = ""};
  TN_TRY(onnx_map(file));
  return onnx_read_model(file);
}

void tn_onnx_close(tn_onnx_file *file) {
  if (file->bytes != NULL) munmap((void *)file->bytes, file->count);
  tn_arena_free(&file->arena);
  file->bytes = NULL;
}

/* ---- contents of tensors ---- */

/* Where elements are written, of the size of the tensor's Tenon type. */
typedef struct onnx_contents {
  const onnx_type_row *row;
  int32_t data_type, dtype;
  uint8_t *to;
  int64_t at, count;
} onnx_contents;

/* ---- elements of 8 bits and fewer ---- */

/* A float of a sign, `exponent` and `mantissa` bits. Without infinities the largest codes are numbers but for
 * NaN: that of all ones, or with `unsigned zero` that of the sign alone, whose bias is one more. */
typedef struct onnx_small_float {
  int32_t data_type, exponent, mantissa, bias;
  bool infinities, unsigned_zero;
} onnx_small_float;

static const onnx_small_float onnx_small_floats[] = {
    {TN_ONNX_FLOAT8E4M3FN, 4, 3, 7, false, false}, {TN_ONNX_FLOAT8E4M3FNUZ, 4, 3, 8, false, true},
    {TN_ONNX_FLOAT8E5M2, 5, 2, 15, true, false},   {TN_ONNX_FLOAT8E5M2FNUZ, 5, 2, 16, false, true},
    {TN_ONNX_FLOAT4E2M1, 2, 1, 1, false, false},
};

static float onnx_small_value(const onnx_small_float *s, uint32_t code) {
  uint32_t bits = (uint32_t)(s->exponent + s->mantissa), rest = code & ((1U << bits) - 1);
  int32_t exponent = (int32_t)(rest >> s->mantissa), top = (1 << s->exponent) - 1;
  double fraction = (double)(rest & ((1U << s->mantissa) - 1)) / (1 << s->mantissa);
  double sign = code >> bits & 1 ? -1 : 1;
  if (s->unsigned_zero && rest == 0 && sign < 0) return NAN;
  if (s->infinities && exponent == top) return fraction == 0 ? (float)(sign * HUGE_VAL) : NAN;
  if (!s->unsigned_zero && bits == 7 && rest == 127) return NAN;
  double size = exponent == 0 ? ldexp(fraction, 1 - s->bias) : ldexp(1 + fraction, exponent - s->bias);
  return (float)(sign * size);
}

/* Bits of an element in contents that are packed. */
static int32_t onnx_packed_bits(int32_t data_type) {
  bool half = data_type == TN_ONNX_UINT4 || data_type == TN_ONNX_INT4 || data_type == TN_ONNX_FLOAT4E2M1;
  return half ? 4 : data_type == TN_ONNX_UINT2 || data_type == TN_ONNX_INT2 ? 2 : 8;
}

/* Bits of an element as those of its Tenon type. */
static uint64_t onnx_widen(int32_t data_type, uint64_t value) {
  uint32_t bits = 0;
  if (data_type == TN_ONNX_INT16) return (uint64_t)(int64_t)(int16_t)value;
  if (data_type == TN_ONNX_INT4) return (uint64_t)(int64_t)((int64_t)(value << 60) >> 60);
  if (data_type == TN_ONNX_INT2) return (uint64_t)(int64_t)((int64_t)(value << 62) >> 62);
  for (size_t i = 0; i < sizeof onnx_small_floats / sizeof *onnx_small_floats; i++) {
    if (onnx_small_floats[i].data_type != data_type) continue;
    float number = onnx_small_value(&onnx_small_floats[i], (uint32_t)value);
    memcpy(&bits, &number, sizeof bits);
    return bits;
  }
  return value;
}

/* One element, given by its bits. Narrower whole numbers are extended by their sign. */
static void onnx_put(void *context, uint64_t value) {
  onnx_contents *c = context;
  size_t size = tn_dtype_size(c->dtype);
  if (c->at < c->count) {
    value = onnx_widen(c->data_type, value);
    memcpy(c->to + (size_t)c->at * size, &value, size);
  }
  c->at++;
}

/* A byte with several elements, the first in its lowest bits; those behind the last element are padding. */
static void onnx_put_packed(void *context, uint64_t byte) {
  onnx_contents *c = context;
  int32_t bits = onnx_packed_bits(c->data_type);
  for (int32_t at = 0; at < 8; at += bits)
    if (bits == 8 || c->at < c->count || at == 0) onnx_put(c, byte >> at & ((1U << bits) - 1));
}

static void onnx_put_raw(onnx_contents *c, tn_proto bytes) {
  uint64_t value = 0;
  bool packed = onnx_packed_bits(c->data_type) < 8;
  if (c->row->size == tn_dtype_size(c->dtype) && !packed) {
    size_t count = tn_proto_left(&bytes), room = (size_t)c->count * c->row->size;
    if (count > 0) memcpy(c->to, bytes.at, count < room ? count : room);
    c->at = (int64_t)(count / c->row->size) + (count % c->row->size != 0);
    return;
  }
  while (tn_proto_left(&bytes) >= c->row->size) {
    memcpy(&value, bytes.at, c->row->size);
    bytes.at += c->row->size;
    if (packed)
      onnx_put_packed(c, value);
    else
      onnx_put(c, value);
  }
}

static tn_status onnx_read_elsewhere(tn_onnx_file *f, const tn_onnx_tensor *t, onnx_contents *c) {
  if (t->location[0] == '/' || strstr(t->location, "..") != NULL)
    return tn_failf(f->env, TN_EINVAL, "%s: tensor '%s' lies in '%s', expected a file in the model's folder",
                    f->path, t->name, t->location);
  char *folder = tn_path_folder(f->env, f->path);
  char *path = folder != NULL ? tn_path_join(f->env, folder, t->location) : NULL;
  tn_input input = {.fd = -1};
  size_t bytes = ((size_t)c->count * c->row->size * (size_t)onnx_packed_bits(t->data_type) + 7) / 8;
  tn_status status = path != NULL ? tn_input_open(f->env, path, &input) : TN_ENOMEM;
  uint8_t *raw = status == TN_OK ? tn_alloc(f->env, bytes + 1) : NULL;
  if (status == TN_OK && raw == NULL) status = TN_ENOMEM;
  if (status == TN_OK && t->bytes >= 0 && (uint64_t)t->bytes != bytes)
    status = tn_failf(f->env, TN_EINVAL, "%s: tensor '%s' has %lld bytes in %s, expected %zu", f->path,
                      t->name, (long long)t->bytes, t->location, bytes);
  if (status == TN_OK) status = tn_input_read(&input, f->env, (uint64_t)t->offset, raw, bytes);
  if (status == TN_OK) onnx_put_raw(c, tn_proto_of(raw, bytes));
  tn_release(f->env, raw);
  if (input.fd >= 0) tn_input_close(f->env, &input);
  tn_release(f->env, path);
  tn_release(f->env, folder);
  return status;
}

tn_status tn_onnx_tensor_read(tn_onnx_file *f, const tn_onnx_tensor *t, void *to) {
  onnx_contents c = {onnx_type_of(t->data_type), t->data_type, t->type.dtype, to, 0, tn_type_count(&t->type)};
  if (t->type.dtype == TN_ANY)
    return tn_failf(f->env, TN_EUNSUPPORTED, "%s: tensor '%s' is of %s, which Tenon lacks", f->path, t->name,
                    tn_onnx_type_name(t->data_type));
  if (t->make != NULL) return t->make(f, t, to);
  tn_proto message = t->message;
  tn_proto_field field;
  while (t->location == NULL && tn_proto_next(&message, &field)) {
    if (field.number == 9 && field.form == TN_PROTO_BYTES) onnx_put_raw(&c, field.bytes);
    if (field.number == c.row->number && field.number != 9)
      tn_proto_numbers(&field, c.row->form, onnx_packed_bits(t->data_type) < 8 ? onnx_put_packed : onnx_put,
                       &c);
  }
  if (t->location != NULL) TN_TRY(onnx_read_elsewhere(f, t, &c));
  if (c.at == c.count) return TN_OK;
  return tn_failf(f->env, TN_EINVAL, "%s: tensor '%s' has %lld elements, expected %lld", f->path, t->name,
                  (long long)c.at, (long long)c.count);
}
