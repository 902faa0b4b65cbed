/* core/compare/launch_file.c: one launch in a safetensors file. */
#include "core/compare/launch_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/compare/group_graph.h"
#include "core/compile/kernels/recorded_choices.h"
#include "core/formats/safetensors.h"

enum { MOST_OPERANDS = 64 };

/* ---- writing ---- */

/* The metadata of a launch. */
enum {
  NOTE_GRAPH,
  NOTE_KERNEL,
  NOTE_PLUGIN,
  NOTE_VARIANT,
  NOTE_VARIANT_NAME,
  NOTE_KEY,
  NOTE_NAME,
  NOTE_LAUNCHES,
  NOTE_IN,
  NOTE_OUT,
  NOTE_IN_PLACE,
  NOTES
};
static const char *const NOTE_KEYS[NOTES] = {"tenon.graph",       "tenon.kernel",       "tenon.plugin",
                                             "tenon.variant",     "tenon.variant_name", "tenon.key",
                                             "tenon.name",        "tenon.launches",     "tenon.in_layouts",
                                             "tenon.out_layouts", "tenon.in_place"};

/* "row-major|0 2 3 1|" */
static void write_layouts(tn_text *text, const tn_operand *operands, int32_t n) {
  tn_text_add(text, "");
  for (int32_t i = 0; i < n; i++) {
    tn_layout_print(&operands[i].layout, operands[i].type.rank, text);
    tn_text_add(text, "|");
  }
}

static bool shares_location(const tn_operand *a, const tn_operand *b) {
  return a->location.base == b->location.base && a->location.region == b->location.region &&
         a->location.offset == b->location.offset && a->location.base != TN_BASE_NONE;
}

/* "-1|2|": per result the operand whose memory it overwrites. */
static void write_in_place(tn_text *text, const tn_step *step) {
  tn_text_add(text, "");
  for (int32_t k = 0; k < step->n_out; k++) {
    int32_t found = -1;
    for (int32_t i = 0; i < step->n_in && found < 0; i++)
      if (step->group->in[i] != 0 && shares_location(&step->in[i], &step->out[k])) found = i;
    tn_text_addf(text, "%" PRId32 "|", found);
  }
}

static void write_notes(tn_text *texts, const tn_graph *graph, const tn_watched_launch *l, int32_t launches) {
  const tn_step *step = l->step;
  const tn_group *g = step->group;
  if (tn_graph_print(graph, &texts[NOTE_GRAPH]) != TN_OK) texts[NOTE_GRAPH].failed = true;
  tn_text_add(&texts[NOTE_KERNEL], g->entry->item->name);
  tn_text_add(&texts[NOTE_PLUGIN], g->entry->plugin != NULL ? g->entry->plugin : "");
  tn_text_addf(&texts[NOTE_VARIANT], "%" PRId32, g->choice.id);
  tn_text_add(&texts[NOTE_VARIANT_NAME], g->choice.name != NULL ? g->choice.name : "");
  tn_text_addf(&texts[NOTE_KEY], "%" PRIu64, tn_recorded_key(l->program->cover->graph, g->nodes, g->n_nodes));
  tn_text_add(&texts[NOTE_NAME], step->name);
  tn_text_addf(&texts[NOTE_LAUNCHES], "%" PRId32, launches);
  write_layouts(&texts[NOTE_IN], step->in, step->n_in);
  write_layouts(&texts[NOTE_OUT], step->out, step->n_out);
  write_in_place(&texts[NOTE_IN_PLACE], step);
}

/* The operands that the graph reads. Returns their number. */
static int32_t list_operands(const tn_graph *graph, const tn_step *step, tn_safetensor_named *list,
                             int32_t *operands, char names[][TN_GROUP_NAME]) {
  int32_t n = 0;
  for (int32_t i = 0; i < step->n_in; i++) {
    if (tn_group_graph_find(graph, i) == 0) continue;
    list[n] = (tn_safetensor_named){tn_group_graph_in(i, names[n]), step->in[i].type};
    operands[n++] = i;
  }
  return n;
}

static tn_status write_tensors(tn_env *env, const char *path, const tn_graph *graph,
                               const tn_watched_launch *l, const tn_safetensor_note *notes) {
  tn_safetensor_named tensors[MOST_OPERANDS] = {{NULL}};
  char names[MOST_OPERANDS][TN_GROUP_NAME];
  int32_t operands[MOST_OPERANDS];
  tn_safetensors_writer *writer;
  if (l->step->n_in > MOST_OPERANDS)
    return tn_failf(env, TN_EUNSUPPORTED, "it has more than %d operands", MOST_OPERANDS);
  int32_t n = list_operands(graph, l->step, tensors, operands, names);
  TN_TRY(tn_safetensors_begin(env, path, tensors, n, notes, NOTES, &writer));
  tn_status status = TN_OK;
  for (int32_t i = 0; i < n && status == TN_OK; i++)
    status = tn_safetensors_append(writer, l->in[operands[i]], tn_type_bytes(&tensors[i].type));
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}

tn_status tn_launch_file_write(tn_env *env, const char *path, const tn_graph *graph,
                               const tn_watched_launch *l, int32_t launches) {
  tn_text texts[NOTES];
  tn_safetensor_note notes[NOTES];
  bool failed = false;
  for (int32_t i = 0; i < NOTES; i++) texts[i] = tn_text_new(env);
  write_notes(texts, graph, l, launches);
  for (int32_t i = 0; i < NOTES; i++) {
    notes[i] = (tn_safetensor_note){NOTE_KEYS[i], texts[i].v != NULL ? texts[i].v : ""};
    failed = failed || texts[i].failed;
  }
  tn_status status = failed ? TN_ENOMEM : write_tensors(env, path, graph, l, notes);
  for (int32_t i = 0; i < NOTES; i++) tn_text_free(&texts[i]);
  return status;
}

/* ---- reading ---- */

/* The work of tn_launch_file_read. */
typedef struct file_reader {
  tn_env *env;
  const char *path;
  tn_safetensors *tensors;
  tn_launch_file *file;
} file_reader;

static tn_status reader_fail(const file_reader *r, const char *what) {
  return tn_failf(r->env, TN_EINVAL,
                  "%s: %s; expected a file that `tenon compare` has written for a launch that departs",
                  r->path, what);
}

static tn_status reader_note(const file_reader *r, int32_t which, const char **text) {
  const char *found = tn_safetensors_metadata(r->tensors, NOTE_KEYS[which]);
  if (found == NULL) return reader_fail(r, tn_arena_printf(&r->file->memory, "has no %s", NOTE_KEYS[which]));
  *text = tn_arena_strdup(&r->file->memory, found);
  return *text != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status reader_number(const file_reader *r, int32_t which, int64_t least, int64_t *number) {
  const char *text = NULL;
  TN_TRY(reader_note(r, which, &text));
  if (tn_text_to_int(text, number) && *number >= least && *number <= INT32_MAX) return TN_OK;
  return reader_fail(r, tn_arena_printf(&r->file->memory, "%s is '%s'", NOTE_KEYS[which], text));
}

/* Cuts the next part of a list that ends in '|'; NULL at its end. */
static char *reader_cut(char **list) {
  char *part = *list, *end = strchr(part, '|');
  if (end == NULL) return NULL;
  *end = '\0';
  *list = end + 1;
  return part;
}

static int32_t reader_count(const char *list) {
  int32_t n = 0;
  for (; *list != '\0'; list++) n += *list == '|';
  return n;
}

static tn_status reader_list(const file_reader *r, int32_t which, int32_t *n, char **list) {
  const char *text = NULL;
  TN_TRY(reader_note(r, which, &text));
  *n = reader_count(text);
  *list = (char *)(uintptr_t)text; /* a copy in the arena */
  return *n <= MOST_OPERANDS ? TN_OK : reader_fail(r, "has too many operands");
}

/* The value of an operand or result of the graph; 0: the graph has no such value. */
static tn_val reader_value(const tn_graph *graph, bool in, int32_t i) {
  char name[TN_GROUP_NAME];
  return in ? tn_group_graph_find(graph, i) : tn_graph_find_output(graph, tn_group_graph_out(i, name));
}

static tn_status reader_layouts(const file_reader *r, bool in, int32_t *n, tn_layout **layouts) {
  tn_launch_file *f = r->file;
  char *list = NULL;
  TN_TRY(reader_list(r, in ? NOTE_IN : NOTE_OUT, n, &list));
  *layouts = tn_arena_alloc(&f->memory, ((size_t)*n + 1) * sizeof **layouts);
  if (*layouts == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < *n; i++) {
    const char *text = reader_cut(&list);
    tn_val v = reader_value(f->graph, in, i);
    if (v != 0 && !tn_layout_parse(text, tn_graph_type(f->graph, v), &(*layouts)[i]))
      return reader_fail(r, tn_arena_printf(&f->memory, "'%s' is no layout of its value", text));
  }
  return TN_OK;
}

static tn_status reader_in_place(const file_reader *r) {
  tn_launch_file *f = r->file;
  char *list = NULL;
  int32_t n = 0;
  TN_TRY(reader_list(r, NOTE_IN_PLACE, &n, &list));
  f->in_place = tn_arena_alloc(&f->memory, ((size_t)n + 1) * sizeof *f->in_place);
  if (f->in_place == NULL) return TN_ENOMEM;
  if (n != f->n_out) return reader_fail(r, "has lists of different lengths");
  for (int32_t k = 0; k < n; k++)
    if (!tn_text_to_int(reader_cut(&list), &f->in_place[k]) || f->in_place[k] < -1 ||
        f->in_place[k] >= f->n_in)
      return reader_fail(r, "names an operand that does not exist");
  return TN_OK;
}

static tn_status reader_operand(const file_reader *r, int32_t i) {
  tn_launch_file *f = r->file;
  char name[TN_GROUP_NAME];
  tn_val v = reader_value(f->graph, true, i);
  if (v == 0) return TN_OK;
  const tn_type *type = tn_graph_type(f->graph, v);
  const tn_safetensor *tensor = tn_safetensors_find(r->tensors, tn_group_graph_in(i, name));
  if (tensor == NULL || !tn_type_equal(&tensor->type, type))
    return reader_fail(r, tn_arena_printf(&f->memory, "has no tensor '%s' of the graph's type", name));
  f->in_type[i] = *type;
  f->in[i] = tn_arena_alloc(&f->memory, tn_type_bytes(type) + 1);
  if (f->in[i] == NULL) return TN_ENOMEM;
  return tn_safetensors_read(r->tensors, r->env, tensor, f->in[i], tn_type_bytes(type));
}

static tn_status reader_operands(const file_reader *r) {
  tn_launch_file *f = r->file;
  size_t n = (size_t)f->n_in + 1;
  f->in = tn_arena_alloc(&f->memory, n * sizeof *f->in);
  f->in_type = tn_arena_alloc(&f->memory, n * sizeof *f->in_type);
  if (f->in == NULL || f->in_type == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < f->n_in; i++) TN_TRY(reader_operand(r, i));
  for (size_t k = 0; k < f->graph->inputs.n; k++) {
    int32_t operand = tn_group_graph_operand(f->graph, f->graph->inputs.v[k]);
    if (operand < 0 || operand >= f->n_in)
      return reader_fail(r, "has a graph with an input that is no operand");
  }
  for (int32_t i = 0; i < f->n_out; i++)
    if (reader_value(f->graph, false, i) == 0)
      return reader_fail(r, "has a graph without one of its results");
  return TN_OK;
}

static tn_status reader_kernel(const file_reader *r) {
  tn_launch_file *f = r->file;
  const char *key = NULL;
  TN_TRY(reader_note(r, NOTE_KERNEL, &f->kernel));
  TN_TRY(reader_note(r, NOTE_PLUGIN, &f->plugin));
  TN_TRY(reader_note(r, NOTE_VARIANT_NAME, &f->variant_name));
  TN_TRY(reader_note(r, NOTE_NAME, &f->name));
  TN_TRY(reader_note(r, NOTE_KEY, &key));
  f->key = strtoull(key, NULL, 10);
  TN_TRY(reader_number(r, NOTE_VARIANT, INT32_MIN, &f->variant));
  return reader_number(r, NOTE_LAUNCHES, 1, &f->launches);
}

static tn_status reader_read(const file_reader *r, struct tn_op_table *ops) {
  tn_launch_file *f = r->file;
  const char *graph = NULL;
  TN_TRY(reader_note(r, NOTE_GRAPH, &graph));
  TN_TRY(
      tn_wrap(r->env, tn_graph_parse(r->env, ops, graph, NOTE_KEYS[NOTE_GRAPH], &f->graph), "%s", r->path));
  TN_TRY(reader_kernel(r));
  TN_TRY(reader_layouts(r, true, &f->n_in, &f->in_layout));
  TN_TRY(reader_layouts(r, false, &f->n_out, &f->out_layout));
  TN_TRY(reader_in_place(r));
  return reader_operands(r);
}

tn_status tn_launch_file_read(tn_env *env, struct tn_op_table *ops, const char *path, tn_launch_file *file) {
  file_reader r = {.env = env, .path = path, .file = file};
  *file = (tn_launch_file){.memory = tn_arena_new(env)};
  TN_TRY(tn_safetensors_open(env, path, &r.tensors));
  tn_status status = reader_read(&r, ops);
  tn_safetensors_close(r.tensors);
  return status;
}

void tn_launch_file_free(tn_launch_file *file) {
  tn_graph_destroy(file->graph);
  tn_arena_free(&file->memory);
}
