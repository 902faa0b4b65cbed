/* core/export/source/write.c: the program's files: NAME.h, NAME.c, NAME.weights. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/export/decompose.h"
#include "core/export/source/source.h"
#include "core/graph/input_state.h"

enum { MOST_TOLD = 40, MOST_PATH = 4096 };

/* ---- steps ---- */

static bool write_has(void *context, const tn_graph *graph, const int32_t *reads, const tn_gnode *node) {
  source_program here = *(const source_program *)context;
  here.graph = (tn_graph *)(uintptr_t)graph;
  here.reads = reads;
  return source_is_view(&here, node) || source_row_of(&(source_use){&here, node}) != NULL;
}

static tn_status write_miss(source_program *p, const char *op) {
  for (size_t i = 0; i < p->missing.n; i++)
    if (strcmp(p->missing.v[i].op, op) == 0) {
      p->missing.v[i].count++;
      return TN_OK;
    }
  return tn_vec_push(p->env, &p->missing, ((source_missing){op, 1}));
}

static bool write_has_step(const source_program *p, const tn_gnode *node) {
  return !tn_op_is_input_or_state(node->op) && !source_is_view(p, node);
}

static tn_status write_find_rows(source_program *p) {
  const tn_graph *g = p->graph;
  p->row = tn_arena_alloc(&p->arena, (g->nodes.n + 1) * sizeof *p->row);
  if (p->row == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < g->nodes.n; i++)
    if (write_has_step(p, &g->nodes.v[i])) p->row[i] = source_row_of(&(source_use){p, &g->nodes.v[i]});
  return TN_OK;
}

static tn_status write_step(source_program *p, size_t i) {
  const tn_gnode *node = &p->graph->nodes.v[i];
  const source_use use = {p, node};
  const source_row *row = p->row[i];
  if (!write_has_step(p, node)) return TN_OK;
  if (node->n_out > 0 && p->root[node->first_out] >= 0) return TN_OK; /* in the loop of another */
  if (row == NULL) return write_miss(p, node->op->item.name);
  if (source_is_pointwise(row))
    source_pointwise(&use);
  else
    row->emit(&use);
  return p->steps.failed || p->calls.failed ? TN_ENOMEM : TN_OK;
}

static tn_status write_list_missing(source_program *p) {
  const char **lines = tn_arena_alloc(&p->arena, (p->missing.n + 1) * sizeof *lines);
  int64_t count = 0;
  if (lines == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < p->missing.n; i++) {
    lines[i + 1] =
        tn_arena_printf(&p->arena, "  %lld x %s", (long long)p->missing.v[i].count, p->missing.v[i].op);
    if (lines[i + 1] == NULL) return TN_ENOMEM;
    count += p->missing.v[i].count;
  }
  lines[0] = tn_arena_printf(&p->arena,
                             "%lld ops cannot be written as C, and nothing is written:", (long long)count);
  return lines[0] != NULL
             ? tn_fail_lines(p->env, TN_EUNSUPPORTED, lines, (int32_t)p->missing.n + 1, MOST_TOLD)
             : TN_ENOMEM;
}

static tn_status write_steps(source_program *p) {
  TN_TRY(tn_export_decompose(&p->graph, &(tn_export_target){write_has, p}));
  p->reads = tn_export_reads(&p->arena, p->graph);
  if (p->reads == NULL) return TN_ENOMEM;
  p->folded = tn_export_fold_find(&p->arena, p->graph, p->reads);
  if (p->folded == NULL) return TN_ENOMEM;
  TN_TRY(write_find_rows(p));
  TN_TRY(source_find_chains(p));
  TN_TRY(source_place_values(p));
  for (size_t i = 0; i < p->graph->nodes.n; i++) TN_TRY(write_step(p, i));
  return p->missing.n > 0 ? write_list_missing(p) : TN_OK;
}

/* ---- text ---- */

/* "const float *image, float *output" */
static void write_parameters(const source_program *p, tn_text *t) {
  const tn_graph *g = p->graph;
  for (size_t i = 0; i < g->inputs.n; i++) {
    const tn_input_attributes *a = tn_graph_maker(g, g->inputs.v[i])->attributes;
    tn_text_addf(t, ", const %s *%s", source_type(a->type.dtype), a->name);
  }
  for (size_t i = 0; i < g->outputs.n; i++)
    tn_text_addf(t, ", %s *%s", source_type(tn_graph_type(g, g->outputs.v[i].value)->dtype),
                 g->outputs.v[i].name);
}

static void write_sizes(const source_program *p, tn_text *t) {
  const tn_graph *g = p->graph;
  char type[TN_TYPE_TEXT];
  for (size_t i = 0; i < g->inputs.n; i++) {
    const tn_input_attributes *a = tn_graph_maker(g, g->inputs.v[i])->attributes;
    tn_text_addf(t, " * %s is %s", a->name, tn_type_format(&a->type, type));
    tn_text_add(t, i + 1 < g->inputs.n ? ",\n" : ";\n");
  }
  for (size_t i = 0; i < g->outputs.n; i++) {
    tn_text_addf(t, " * %s is %s", g->outputs.v[i].name,
                 tn_type_format(tn_graph_type(g, g->outputs.v[i].value), type));
    tn_text_add(t, i + 1 < g->outputs.n ? ",\n" : ", row-major.\n");
  }
}

static void write_header(const source_program *p, const char *name, tn_text *t) {
  tn_text_addf(
      t,
      "/* %s.h: a model for inference, written by tenon.\n *\n"
      " * `weights` are the bytes of %s.weights, and `arena` is memory that the call uses; both are "
      "aligned to 64 bytes.\n"
      " * Calls with arenas of their own may run at the same time. Compilers make the fastest program with\n"
      " * -O3 -march=native -ffp-contract=fast.\n",
      name, name);
  write_sizes(p, t);
  tn_text_addf(t, " */\n#ifndef %s_model_h\n#define %s_model_h\n\n#include <stdint.h>\n\n", name, name);
  tn_text_addf(t, "enum { %s_weight_bytes = %lld, %s_arena_bytes = %lld };\n\n", name,
               (long long)p->weight_bytes, name, (long long)(p->arena_bytes + p->scratch_bytes));
  tn_text_addf(t, "void %s_run(const void *weights, void *arena", name);
  write_parameters(p, t);
  tn_text_add(t, ");\n\n#endif\n");
}

static void write_body(const source_program *p, const char *name, tn_text *t) {
  const tn_graph *g = p->graph;
  tn_text_addf(t, "void %s_run(const void *weight_bytes, void *arena_bytes", name);
  write_parameters(p, t);
  tn_text_add(t, ") {\n  const char *weights = weight_bytes;\n  char *arena = arena_bytes;\n");
  if (p->scratch_bytes > 0) tn_text_addf(t, "  char *scratch = arena + %lld;\n", (long long)p->arena_bytes);
  tn_text_add(t, "  (void)weights, (void)arena;\n");
  tn_text_addn(t, p->calls.v, p->calls.n);
  for (size_t i = 0; i < g->outputs.n; i++) {
    tn_val v = g->outputs.v[i].value;
    tn_text_addf(t, "  memcpy(%s, %s, %zu);\n", g->outputs.v[i].name, p->place[v],
                 tn_type_bytes(tn_graph_type(g, v)));
  }
  tn_text_add(t, "}\n");
}

static void write_program(const source_program *p, const char *name, tn_text *t) {
  tn_text_addf(t, "/* %s.c: see %s.h. */\n#include \"%s.h\"\n\n#include <math.h>\n#include <string.h>\n\n",
               name, name, name);
  for (uint32_t kernel = SOURCE_TILE; kernel <= SOURCE_AVG_POOL; kernel *= 2)
    if (p->kernels & kernel) tn_text_add(t, source_kernel(kernel));
  tn_text_addn(t, p->steps.v, p->steps.n);
  write_body(p, name, t);
}

/* ---- files ---- */

typedef struct write_files {
  const tn_source_request *request;
  source_program *p;
  char path[3][MOST_PATH]; /* header, program, weights */
  int32_t written;
} write_files;

static tn_status files_name(write_files *w) {
  static const char *const endings[] = {"h", "c", "weights"};
  for (int i = 0; i < 3; i++) {
    int n = snprintf(w->path[i], MOST_PATH, "%s/%s.%s", w->request->folder, w->request->name, endings[i]);
    if (n < 0 || n >= MOST_PATH)
      return tn_failf(w->request->env, TN_EINVAL, "%s: the path is too long", w->request->folder);
    if (tn_file_exists(w->path[i]))
      return tn_failf(w->request->env, TN_EINVAL,
                      "%s: exists, and is not overwritten; remove it, or name another folder", w->path[i]);
  }
  return tn_folder_make(w->request->env, w->request->folder);
}

static tn_status files_append_weight(const write_files *w, tn_new_file *file, const source_weight *weight,
                                     int64_t end) {
  size_t room = (size_t)(end - weight->offset);
  char *data = tn_alloc(w->request->env, room + 1);
  if (data == NULL) return TN_ENOMEM;
  tn_status status = source_weight_read(w->p, weight, w->request->read, w->request->context, data);
  if (status == TN_OK) status = tn_file_append(w->request->env, file, data, room);
  tn_release(w->request->env, data);
  return status;
}

static tn_status files_write_weights(write_files *w) {
  tn_new_file file;
  source_program *p = w->p;
  TN_TRY(tn_file_begin(w->request->env, w->path[2], &file));
  tn_status status = TN_OK;
  for (size_t i = 0; i < p->weights.n && status == TN_OK; i++)
    status = files_append_weight(w, &file, &p->weights.v[i],
                                 i + 1 < p->weights.n ? p->weights.v[i + 1].offset : p->weight_bytes);
  if (status == TN_OK) return tn_file_commit(w->request->env, &file);
  tn_file_abandon(w->request->env, &file);
  return status;
}

static tn_status files_write_text(write_files *w, int32_t which,
                                  void (*make)(const source_program *, const char *, tn_text *)) {
  tn_text text = tn_text_new(w->request->env);
  make(w->p, w->request->name, &text);
  tn_status status =
      text.failed ? TN_ENOMEM : tn_file_write_atomic(w->request->env, w->path[which], text.v, text.n);
  tn_text_free(&text);
  if (status == TN_OK) w->written = which + 1;
  return status;
}

static tn_status files_write(write_files *w) {
  TN_TRY(files_name(w));
  tn_status status = files_write_text(w, 0, write_header);
  if (status == TN_OK) status = files_write_text(w, 1, write_program);
  if (status == TN_OK) status = files_write_weights(w);
  for (int32_t i = 0; status != TN_OK && i < w->written; i++) unlink(w->path[i]);
  return status;
}

/* ---- the call ---- */

static void write_release(source_program *p) {
  tn_graph_destroy(p->graph);
  tn_text_free(&p->steps);
  tn_text_free(&p->calls);
  tn_vec_free(p->env, &p->weights);
  tn_vec_free(p->env, &p->missing);
  tn_arena_free(&p->arena);
}

tn_status tn_source_export(const tn_source_request *request, tn_source_made *made) {
  tn_env *env = request->env;
  source_program p = {.env = env,
                      .arena = tn_arena_new(env),
                      .graph = request->graph,
                      .steps = tn_text_new(env),
                      .calls = tn_text_new(env)};
  write_files w = {.request = request, .p = &p};
  tn_status status = write_steps(&p);
  if (status == TN_OK) status = files_write(&w);
  *made = (tn_source_made){p.n_steps, p.arena_bytes + p.scratch_bytes, p.weight_bytes};
  write_release(&p);
  return status;
}
