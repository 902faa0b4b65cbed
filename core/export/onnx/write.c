/* core/export/onnx/write.c: the file, and the contents of its weights beside it. The sizes of all messages
 * are known before the first byte is written, so the weights are streamed, one at a time. */
#include "core/export/onnx/write.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/graph/input_state.h"
#include "tenon/context.h"

enum { MOST_TOLD = 40, MOST_IN_FILE = 2000000000, ALIGNMENT = 64 };

/* ---- sizes and types of inputs and outputs ---- */

enum {
  INFO_NAME = 1,
  INFO_TYPE = 2,
  TYPE_TENSOR = 1,
  TENSOR_ELEMENT = 1,
  TENSOR_SHAPE = 2,
  SHAPE_DIM = 1,
  DIM_VALUE = 1,
  DIM_NAME = 2
};

static void write_dim(export_graph *x, tn_text *shape, int64_t size) {
  tn_text dim = tn_text_new(x->env);
  char name[48];
  snprintf(name, sizeof name, "%lld*batch", (long long)(size / x->batch));
  if (export_is_batch(x, size))
    tn_proto_put_text(&dim, DIM_NAME, size == x->batch ? "batch" : name);
  else
    tn_proto_put_number(&dim, DIM_VALUE, size);
  tn_proto_put_message(shape, SHAPE_DIM, &dim);
}

static void write_info(export_graph *x, tn_text *graph, uint32_t field, const char *name,
                       const tn_type *type) {
  tn_text info = tn_text_new(x->env), of = tn_text_new(x->env), tensor = tn_text_new(x->env),
          shape = tn_text_new(x->env);
  for (int32_t i = 0; i < type->rank; i++) write_dim(x, &shape, type->dims[i]);
  tn_proto_put_number(&tensor, TENSOR_ELEMENT, export_dtype(type->dtype));
  tn_proto_put_message(&tensor, TENSOR_SHAPE, &shape);
  tn_proto_put_message(&of, TYPE_TENSOR, &tensor);
  tn_proto_put_text(&info, INFO_NAME, name);
  tn_proto_put_message(&info, INFO_TYPE, &of);
  tn_proto_put_message(graph, field, &info);
}

static void write_graph(export_writer *w) {
  export_graph *x = w->x;
  const tn_graph *g = x->graph;
  tn_text_addn(&w->graph, x->nodes.v, x->nodes.n);
  w->graph.failed = w->graph.failed || x->nodes.failed;
  tn_proto_put_text(&w->graph, ONNX_GRAPH_NAME, "model");
  for (size_t i = 0; i < g->inputs.n; i++) {
    const tn_input_attributes *a = tn_graph_maker(g, g->inputs.v[i])->attributes;
    write_info(x, &w->graph, ONNX_GRAPH_INPUT, a->name, &a->type);
  }
  for (size_t i = 0; i < g->outputs.n; i++)
    write_info(x, &w->graph, ONNX_GRAPH_OUTPUT, g->outputs.v[i].name,
               tn_graph_type(g, g->outputs.v[i].value));
}

/* ---- the head of the model ---- */

/* The version of the format that came with an opset (https://onnx.ai/onnx/repo-docs/Versioning.html). */
static int64_t write_ir_version(int32_t opset) {
  return opset <= 14 ? 7 : opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : 11;
}

static void write_head(const export_writer *w, tn_text *head) {
  enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
  const tn_onnx_export_request *r = w->request;
  tn_text opset = tn_text_new(r->env);
  tn_proto_put_number(head, ONNX_MODEL_IR_VERSION, write_ir_version(r->opset));
  tn_proto_put_text(head, ONNX_MODEL_PRODUCER, "tenon");
  tn_proto_put_text(head, ONNX_MODEL_PRODUCER_VERSION, tn_version());
  tn_proto_put_text(&opset, OPSET_DOMAIN, "");
  tn_proto_put_number(&opset, OPSET_VERSION, r->opset);
  tn_proto_put_message(head, ONNX_MODEL_OPSET, &opset);
  for (int32_t i = 0; i < r->n_notes; i++) {
    if (r->notes[i].value == NULL) continue;
    tn_text entry = tn_text_new(r->env);
    tn_proto_put_text(&entry, ENTRY_KEY, r->notes[i].key);
    tn_proto_put_text(&entry, ENTRY_VALUE, r->notes[i].value);
    tn_proto_put_message(head, ONNX_MODEL_METADATA, &entry);
  }
}

/* ---- initializers ---- */

static void tensor_entry(tn_text *tensor, const char *key, const char *value) {
  tn_text entry = tn_text_new(tensor->handle);
  tn_proto_put_text(&entry, 1, key);
  tn_proto_put_text(&entry, 2, value);
  tn_proto_put_message(tensor, ONNX_TENSOR_EXTERNAL, &entry);
}

/* The message of a tensor up to its contents. */
static tn_text tensor_start(const export_writer *w, const export_weight *weight, uint64_t offset) {
  enum { LOCATION_EXTERNAL = 1 };
  tn_text t = tn_text_new(w->request->env);
  char number[24];
  size_t bytes = tn_type_bytes(&weight->type);
  for (int32_t i = 0; i < weight->type.rank; i++)
    tn_proto_put_number(&t, ONNX_TENSOR_DIM, weight->type.dims[i]);
  tn_proto_put_number(&t, ONNX_TENSOR_TYPE, export_dtype(weight->type.dtype));
  tn_proto_put_text(&t, ONNX_TENSOR_NAME, weight->name);
  if (!w->external) {
    tn_proto_put_head(&t, ONNX_TENSOR_RAW, bytes);
    return t;
  }
  tensor_entry(&t, "location", w->data_name);
  snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
  tensor_entry(&t, "offset", number);
  snprintf(number, sizeof number, "%zu", bytes);
  tensor_entry(&t, "length", number);
  tn_proto_put_number(&t, ONNX_TENSOR_LOCATION, LOCATION_EXTERNAL);
  return t;
}

static uint64_t tensor_align(uint64_t offset) { return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* The field of an initializer, without contents that are in the file; *contents is their size there. */
static tn_text tensor_head(const export_writer *w, const export_weight *weight, uint64_t *offset,
                           size_t *contents) {
  size_t bytes = tn_type_bytes(&weight->type);
  tn_text start = tensor_start(w, weight, *offset), field = tn_text_new(w->request->env);
  *contents = w->external ? 0 : bytes;
  tn_proto_put_head(&field, ONNX_GRAPH_INITIALIZER, start.n + *contents);
  tn_text_addn(&field, start.v, start.n);
  field.failed = field.failed || start.failed;
  tn_text_free(&start);
  *offset = tensor_align(*offset + bytes);
  return field;
}

static tn_status write_graph_bytes(const export_writer *w, uint64_t *bytes) {
  uint64_t offset = 0;
  *bytes = w->graph.n;
  for (size_t i = 0; i < w->x->weights.n; i++) {
    size_t contents;
    tn_text field = tensor_head(w, &w->x->weights.v[i], &offset, &contents);
    bool failed = field.failed;
    *bytes += field.n + contents;
    tn_text_free(&field);
    if (failed) return TN_ENOMEM;
  }
  return TN_OK;
}

/* ---- files ---- */

static tn_status file_append(export_writer *w, tn_new_file *file, const void *bytes, size_t n) {
  w->bytes += (int64_t)n;
  return n > 0 ? tn_file_append(w->request->env, file, bytes, n) : TN_OK;
}

static tn_status file_append_weight(export_writer *w, tn_new_file *file, const export_weight *weight) {
  size_t bytes = tn_type_bytes(&weight->type);
  void *data = tn_alloc(w->request->env, bytes + 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = tn_check_stop(w->request->env);
  if (status == TN_OK) status = export_weight_read(w, weight, data);
  if (status == TN_OK) status = file_append(w, file, data, bytes);
  tn_release(w->request->env, data);
  return status;
}

static tn_status file_append_data(export_writer *w, tn_new_file *file) {
  static const char zeros[ALIGNMENT];
  uint64_t offset = 0;
  for (size_t i = 0; i < w->x->weights.n; i++) {
    const export_weight *weight = &w->x->weights.v[i];
    uint64_t end = offset + tn_type_bytes(&weight->type);
    TN_TRY(file_append_weight(w, file, weight));
    offset = tensor_align(end);
    if (i + 1 < w->x->weights.n) TN_TRY(file_append(w, file, zeros, offset - end));
  }
  return TN_OK;
}

static tn_status file_append_model(export_writer *w, tn_new_file *file) {
  uint64_t graph_bytes, offset = 0;
  tn_text head = tn_text_new(w->request->env);
  TN_TRY(write_graph_bytes(w, &graph_bytes));
  write_head(w, &head);
  tn_proto_put_head(&head, ONNX_MODEL_GRAPH, graph_bytes);
  tn_status status = head.failed || w->graph.failed ? TN_ENOMEM : file_append(w, file, head.v, head.n);
  tn_text_free(&head);
  if (status == TN_OK) status = file_append(w, file, w->graph.v, w->graph.n);
  for (size_t i = 0; i < w->x->weights.n && status == TN_OK; i++) {
    size_t contents;
    tn_text field = tensor_head(w, &w->x->weights.v[i], &offset, &contents);
    status = field.failed ? TN_ENOMEM : file_append(w, file, field.v, field.n);
    tn_text_free(&field);
    if (status == TN_OK && contents > 0) status = file_append_weight(w, file, &w->x->weights.v[i]);
  }
  return status;
}

static tn_status file_write(export_writer *w, const char *path,
                            tn_status (*append)(export_writer *w, tn_new_file *file)) {
  tn_new_file file;
  TN_TRY(tn_file_begin(w->request->env, path, &file));
  tn_status status = append(w, &file);
  if (status == TN_OK) return tn_file_commit(w->request->env, &file);
  tn_file_abandon(w->request->env, &file);
  return status;
}

static tn_status write_files(export_writer *w) {
  if (w->external) TN_TRY(file_write(w, w->data_path, file_append_data));
  tn_status status = file_write(w, w->request->path, file_append_model);
  if (status != TN_OK && w->external) unlink(w->data_path);
  return status;
}

/* ---- the call ---- */

static tn_status write_tell_missing(export_graph *x) {
  int64_t count = 0;
  const char **lines = tn_arena_alloc(&x->arena, (x->missing.n + 1) * sizeof *lines);
  if (lines == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < x->missing.n; i++) {
    const export_missing *m = &x->missing.v[i];
    lines[i + 1] = tn_arena_printf(&x->arena, "  %lld x %s: %s", (long long)m->count, m->op, m->reason);
    if (lines[i + 1] == NULL) return TN_ENOMEM;
    count += m->count;
  }
  lines[0] = tn_arena_printf(&x->arena,
                             "%lld ops cannot be written as ONNX, and nothing is written:", (long long)count);
  if (lines[0] == NULL) return TN_ENOMEM;
  return tn_fail_lines(x->env, TN_EUNSUPPORTED, lines, (int32_t)x->missing.n + 1, MOST_TOLD);
}

static tn_status write_place_data(export_writer *w) {
  const char *path = w->request->path, *slash = strrchr(path, '/');
  uint64_t bytes = 0;
  for (size_t i = 0; i < w->x->weights.n; i++) bytes += tn_type_bytes(&w->x->weights.v[i].type);
  w->external = w->request->external || bytes > MOST_IN_FILE;
  w->data_path = tn_arena_printf(&w->x->arena, "%s.data", path);
  w->data_name = tn_arena_printf(&w->x->arena, "%s.data", slash != NULL ? slash + 1 : path);
  if (w->data_path == NULL || w->data_name == NULL) return TN_ENOMEM;
  if (w->external && tn_file_exists(w->data_path))
    return tn_failf(w->x->env, TN_EINVAL,
                    "%s: exists, and is not overwritten; remove it, or name another output", w->data_path);
  return TN_OK;
}

static tn_status write_run(export_writer *w) {
  TN_TRY(export_express(w->x));
  if (w->x->missing.n > 0) return write_tell_missing(w->x);
  TN_TRY(write_place_data(w));
  write_graph(w);
  return write_files(w);
}

static void write_free(export_graph *x) {
  tn_graph_destroy(x->graph);
  tn_text_free(&x->nodes);
  tn_name_index_free(&x->taken);
  tn_name_index_free(&x->keys);
  tn_vec_free(x->env, &x->constants);
  tn_vec_free(x->env, &x->weights);
  tn_vec_free(x->env, &x->missing);
  tn_arena_free(&x->arena);
}

tn_status tn_onnx_export(const tn_onnx_export_request *request, tn_onnx_exported *made) {
  tn_env *env = request->env;
  export_graph x = {.env = env,
                    .arena = tn_arena_new(env),
                    .graph = request->graph,
                    .batch = request->batch,
                    .opset = request->opset,
                    .precision = request->precision,
                    .fold = request->fold,
                    .read = request->read,
                    .context = request->context,
                    .nodes = tn_text_new(env),
                    .taken = tn_name_index_new(env),
                    .keys = tn_name_index_new(env)};
  export_writer w = {.request = request, .x = &x, .graph = tn_text_new(env)};
  tn_status status = write_run(&w);
  *made = (tn_onnx_exported){
      .nodes = x.n_nodes, .weights = (int64_t)x.weights.n, .bytes = w.bytes, .external = w.external};
  tn_text_free(&w.graph);
  write_free(&x);
  return status;
}
