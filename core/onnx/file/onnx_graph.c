/* core/onnx/file/onnx_graph.c: graphs and functions: nodes with their attributes, inputs and outputs. */
#include <string.h>

#include "core/base/text/text.h"
#include "core/onnx/file/onnx_messages.h"

/* ---- nodes ---- */

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
  const char *part = NULL;
  TN_TRY(onnx_take_text(f, field, &part));
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

tn_status onnx_read_graph(tn_onnx_file *f, tn_proto message, tn_onnx_graph *g) {
  if (f->depth == TN_ONNX_MOST_DEPTH)
    return tn_failf(f->env, TN_EINVAL, "%s: has graphs in graphs, more than %d deep", f->path,
                    TN_ONNX_MOST_DEPTH);
  f->depth++;
  tn_status status = onnx_graph_fields(f, message, g);
  f->depth--;
  return status;
}

/* ---- functions ---- */

tn_status onnx_read_function(tn_onnx_file *f, tn_proto message, tn_onnx_function *to) {
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
