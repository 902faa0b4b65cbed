/* core/exec/nonfinite/search.c: the search for the first value that is not finite. */
#include "core/exec/nonfinite/search.h"

#include <stdio.h>

#include "core/exec/nonfinite/search_hooks.h"
#include "core/exec/nonfinite/scan.h"
#include "core/graph/input_state.h"
#include "tenon/plugin/storage.h"

struct tn_finite {
  tn_executor *executor;
  const tn_program *program; /* that is under way; NULL: none */
  tn_seen *seen;             /* of each value of its graph */
  char *bytes;               /* elements that were copied to the host */
  int64_t capacity;
  int64_t runs; /* programs that were looked at */
  int32_t found;
  int64_t position;
  tn_text text;
};

tn_status tn_finite_create(tn_executor *executor, tn_finite **out) {
  *out = NULL;
  tn_finite *f = tn_alloc(executor->env, sizeof *f);
  if (f == NULL) return TN_ENOMEM;
  f->executor = executor;
  f->text = tn_text_new(executor->env);
  executor->finite = f;
  *out = f;
  return TN_OK;
}

static void forget_run(tn_finite *f) {
  tn_release(f->executor->env, f->seen);
  f->seen = NULL;
  f->program = NULL;
}

void tn_finite_destroy(tn_finite *f) {
  if (f == NULL) return;
  tn_env *env = f->executor->env;
  f->executor->finite = NULL;
  forget_run(f);
  tn_release(env, f->bytes);
  tn_text_free(&f->text);
  tn_release(env, f);
}

int32_t tn_finite_found(const tn_finite *f, const char **text, int64_t *position) {
  *text = f->text.v != NULL ? f->text.v : "";
  *position = f->position;
  return f->found;
}

/* ---- looking ---- */

bool tn_finite_looks(const tn_executor *e) { return e->finite != NULL && e->finite->found == 0; }

static tn_status reserve(tn_finite *f, int64_t bytes) {
  if (bytes <= f->capacity) return TN_OK;
  char *grown = tn_resize(f->executor->env, f->bytes, (size_t)bytes);
  if (grown == NULL) return TN_ENOMEM;
  f->bytes = grown;
  f->capacity = bytes;
  return TN_OK;
}

static tn_status look_at_inputs(tn_finite *f, int32_t slot) {
  const tn_program *p = f->program;
  const tn_graph *graph = p->cover->graph;
  for (int32_t i = 0; i < p->n_inputs; i++) {
    const tn_binding *in = &p->inputs[i];
    const char *data = (const char *)f->executor->slots[slot].host_input + in->offset;
    tn_seen seen = tn_seen_of(in->type.dtype, data, tn_type_count(&in->type));
    for (size_t k = 0; k < graph->inputs.n; k++) {
      const tn_input_attributes *a = tn_graph_maker(graph, graph->inputs.v[k])->attributes;
      if (tn_text_equal(a->name, in->name)) f->seen[graph->inputs.v[k]] = seen;
    }
  }
  return TN_OK;
}

static tn_status look_at_state(tn_finite *f) {
  const tn_graph *graph = f->program->cover->graph;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    if (state->value == 0 || !tn_dtype_is_float(state->type.dtype)) continue;
    size_t bytes = tn_type_bytes(&state->type);
    TN_TRY(reserve(f, (int64_t)bytes));
    TN_TRY(tn_executor_read(f->executor, state->path, f->bytes, bytes));
    f->seen[state->value] = tn_seen_of(state->type.dtype, f->bytes, tn_type_count(&state->type));
  }
  return TN_OK;
}

tn_status tn_finite_begin(tn_executor *e, const tn_bound_program *bound, int32_t slot) {
  tn_finite *f = e->finite;
  forget_run(f);
  f->seen = tn_alloc(e->env, tn_size_mul(bound->program->cover->graph->values.n, sizeof *f->seen));
  if (f->seen == NULL) return TN_ENOMEM;
  f->program = bound->program;
  f->runs++;
  TN_TRY(look_at_inputs(f, slot));
  return look_at_state(f);
}

/* The host's view of what a step has made. */
static tn_status fetch(tn_finite *f, const tn_view *view, bool on_host, int64_t bytes, const void **data) {
  tn_device *device = f->executor->device;
  *data = view->data;
  if (on_host || f->executor->near || bytes == 0) return TN_OK;
  if (reserve(f, bytes) != TN_OK) return tn_error_move(&device->env, f->executor->env);
  void *stream = device->streams[TN_STREAM_COPY_OUT];
  TN_TRY(device->backend->copy(&device->env, stream, TN_COPY_TO_HOST, f->bytes, view->data, (uint64_t)bytes));
  *data = f->bytes;
  return device->backend->stream_wait(&device->env, stream);
}

tn_status tn_finite_launched(tn_executor *e, const tn_bound_step *b) {
  tn_finite *f = e->finite;
  const tn_step *step = b->step;
  bool on_host = tn_device_of(e, step) != e->device;
  for (int32_t i = 0; i < step->n_out; i++) {
    const tn_view *view = &b->host.pub.out[i];
    if (!tn_dtype_is_float(view->type.dtype)) continue;
    int64_t bytes = tn_layout_bytes(&view->type, &view->layout);
    const void *data;
    TN_TRY(fetch(f, view, on_host, bytes, &data));
    f->seen[step->group->out[i]] =
        tn_seen_of(view->type.dtype, data, bytes / (int64_t)tn_dtype_size(view->type.dtype));
  }
  return TN_OK;
}

/* ---- going back ---- */

/* Views and packs are not launched: they are as bad as the worst of what they are made of. */
static bool is_launched(const tn_gnode *node) { return node->group >= 0; }

static tn_val worst_of(const tn_finite *f, const tn_val *values, int32_t n);

static int32_t kind_of(const tn_finite *f, tn_val v) {
  const tn_gnode *node = tn_graph_maker(f->program->cover->graph, v);
  if (f->seen[v].kind != TN_SEEN_FINITE || is_launched(node) || node->n_in == 0) return f->seen[v].kind;
  tn_val worst = worst_of(f, node->in, node->n_in);
  return worst != 0 ? kind_of(f, worst) : TN_SEEN_FINITE;
}

/* What was seen of a value, or of what it is a view of; NULL: nothing. */
static const tn_seen *seen_of(const tn_finite *f, tn_val v) {
  const tn_gnode *node = tn_graph_maker(f->program->cover->graph, v);
  while (!is_launched(node) && node->n_in == 1) {
    v = node->in[0];
    node = tn_graph_maker(f->program->cover->graph, v);
  }
  return f->seen[v].looked ? &f->seen[v] : NULL;
}

/* The first of the worst kind; 0: all are finite. */
static tn_val worst_of(const tn_finite *f, const tn_val *values, int32_t n) {
  tn_val worst = 0;
  int32_t kind = TN_SEEN_FINITE;
  for (int32_t i = 0; i < n; i++) {
    int32_t this = values[i] != 0 ? kind_of(f, values[i]) : TN_SEEN_FINITE;
    if (this <= kind) continue;
    kind = this;
    worst = values[i];
  }
  return worst;
}

/* The step that makes a value; -1: none does. */
static int32_t maker_step(const tn_finite *f, tn_val v) {
  const tn_program *p = f->program;
  for (int32_t i = 0; i < p->n_steps; i++)
    for (int32_t k = 0; k < p->steps[i].group->n_out; k++)
      if (p->steps[i].group->out[k] == v) return i;
  return -1;
}

/* From a value that is not finite to one whose operands are. *step: that makes it; -1: it was there before.
 */
static tn_val go_back(const tn_finite *f, tn_val v, int32_t *step) {
  for (;;) {
    const tn_gnode *node = tn_graph_maker(f->program->cover->graph, v);
    *step = maker_step(f, v);
    tn_val worse = 0;
    if (*step >= 0)
      worse = worst_of(f, f->program->steps[*step].group->in, f->program->steps[*step].group->n_in);
    else if (!is_launched(node))
      worse = worst_of(f, node->in, node->n_in);
    if (worse == 0) return v;
    v = worse;
  }
}

/* The earliest of what is found from each of the ends. */
static void try_end(const tn_finite *f, tn_val end, tn_val *found, int32_t *at) {
  int32_t step;
  if (kind_of(f, end) == TN_SEEN_FINITE) return;
  tn_val v = go_back(f, end, &step);
  if (*found != 0 && step >= *at) return;
  *found = v;
  *at = step;
}

/* What a program leaves behind: its outputs, the state that it writes, and what it refuses to write. */
static tn_val find(const tn_finite *f, int32_t *at) {
  const tn_graph *graph = f->program->cover->graph;
  tn_val found = 0;
  for (size_t i = 0; i < graph->outputs.n; i++) try_end(f, graph->outputs.v[i].value, &found, at);
  for (size_t i = 0; i < graph->commits.n; i++) try_end(f, graph->commits.v[i].value, &found, at);
  for (size_t i = 0; i < graph->nodes.n; i++)
    if (tn_text_equal(graph->nodes.v[i].op->item.name, "all_finite"))
      try_end(f, graph->nodes.v[i].in[0], &found, at);
  return found;
}

/* ---- saying ---- */

/* "element [0, 3] of f32[8, 10] is -inf (5 of 80 are not finite)". Where an element lies in a layout of
 * blocks is of no use to anyone. */
static void say_elements(tn_text *text, const tn_seen *seen, const tn_type *type, const tn_layout *layout) {
  char shape[TN_TYPE_TEXT];
  int64_t index[TN_MAX_RANK], rest = seen->first, n = tn_type_count(type);
  bool plain = layout == NULL || !layout->set || layout->n_blocks == 0;
  for (int32_t i = 0; layout != NULL && layout->set && i < type->rank; i++) plain &= layout->order[i] == i;
  for (int32_t i = type->rank - 1; i >= 0; i--) {
    index[i] = rest % (type->dims[i] > 0 ? type->dims[i] : 1);
    rest /= type->dims[i] > 0 ? type->dims[i] : 1;
  }
  tn_text_add(text, plain && type->rank > 0 ? "element [" : "");
  for (int32_t i = 0; plain && i < type->rank; i++)
    tn_text_addf(text, "%s%lld", i > 0 ? ", " : "", (long long)index[i]);
  tn_text_add(text, plain && type->rank > 0 ? "] of " : type->rank > 0 ? "an element of " : "");
  const char *value = seen->kind == TN_SEEN_NAN ? "nan" : seen->value < 0 ? "-inf" : "inf";
  tn_text_addf(text, "%s is %s", tn_type_format(type, shape), value);
  if (n > 1) tn_text_addf(text, " (%lld of %lld are not finite)", (long long)seen->count, (long long)n);
}

static void say_place(tn_text *text, const char *layer, const char *where) {
  if (layer != NULL && layer[0] != '\0') tn_text_addf(text, " of layer '%s'", layer);
  if (where != NULL && where[0] != '\0') tn_text_addf(text, " (%s)", where);
}

/* The number, row-major, of the element at a position of a state as it lies. */
static int64_t logical_element(const tn_placement *p, int64_t position) {
  tn_storage storage = tn_storage_of(&p->type, &p->layout);
  int64_t at[TN_MAX_RANK] = {0}, element = 0;
  for (int32_t i = 0; i < storage.n; i++) {
    const tn_storage_axis *a = &storage.axis[i];
    at[a->dim] += position / a->stride % a->extent * a->scale;
  }
  for (int32_t i = 0; i < p->type.rank; i++) element = element * p->type.dims[i] + at[i];
  return element;
}

/* A state that begins with '@' is a region; its element lies in the state of a name. */
static const tn_placement *placed(const tn_finite *f, const char *path, int64_t *element) {
  const tn_state_map *map = f->executor->map;
  const tn_placement *whole = tn_state_map_find(map, path);
  for (size_t i = 0; path[0] == '@' && i < map->states.n; i++) {
    const tn_placement *p = &map->states.v[i];
    if (p->path[0] == '@' || !tn_text_equal(map->regions.v[p->region].name, path + 1)) continue;
    if (*element < p->offset || *element >= p->offset + tn_type_count(&p->type)) continue;
    *element = logical_element(p, *element - p->offset);
    return p;
  }
  return whole;
}

static void say_state(tn_finite *f, const tn_gstate *state) {
  tn_seen seen = f->seen[state->value];
  const tn_placement *p = placed(f, state->path, &seen.first);
  int32_t what = p != NULL ? p->what : state->what;
  f->found = what == TN_STATE_DERIVED ? TN_FINITE_DERIVED : TN_FINITE_STATE;
  tn_text_addf(&f->text, "%s '%s'",
               what == TN_STATE_PARAM     ? "parameter"
               : what == TN_STATE_DERIVED ? "the low-precision copy"
                                          : "state",
               p != NULL ? p->path : state->path);
  say_place(&f->text, NULL, p != NULL ? p->where : state->where);
  tn_text_add(&f->text, " is not finite before the step: ");
  bool part = p != NULL && p->path[0] != '@' && state->path[0] == '@';
  seen.count = part ? 1 : seen.count;
  say_elements(&f->text, &seen, part ? &p->type : &state->type, NULL);
}

/* Between what the finite elements of the operands lie. */
static void say_operands(tn_finite *f, const tn_group *group) {
  const char *between = ", from operands within ";
  for (int32_t i = 0; i < group->n_in; i++) {
    tn_val v = group->in[i];
    bool counts = v != 0 && tn_dtype_is_float(tn_graph_type(f->program->cover->graph, v)->dtype);
    const tn_seen *seen = counts ? seen_of(f, v) : NULL;
    if (seen == NULL || seen->low > seen->high) continue;
    tn_text_addf(&f->text, "%s[%.4g, %.4g]", between, seen->low, seen->high);
    between = ", ";
  }
}

/* Whether a node before the i-th of the group, or the one that is named already, reads the same. */
static bool is_said(const tn_graph *graph, const tn_group *group, int32_t i, const tn_gnode *named) {
  const tn_gnode *node = &graph->nodes.v[group->nodes[i]];
  if (node == named) return true;
  for (int32_t k = 0; k < i; k++) {
    const tn_gnode *other = &graph->nodes.v[group->nodes[k]];
    if (other->op == node->op && tn_text_equal(other->layer, node->layer)) return true;
  }
  return false;
}

/* What the same kernel does: those values are in no memory. */
static void say_companions(tn_finite *f, const tn_group *group, const tn_gnode *named) {
  const tn_graph *graph = f->program->cover->graph;
  const char *before = ", done together with ";
  for (int32_t i = 0; i < group->n_nodes; i++) {
    const tn_gnode *node = &graph->nodes.v[group->nodes[i]];
    if (is_said(graph, group, i, named)) continue;
    tn_text_addf(&f->text, "%s'%s'", before, node->op->item.name);
    if (!tn_text_equal(node->layer, named->layer)) say_place(&f->text, node->layer, NULL);
    before = ", ";
  }
  tn_text_add(&f->text, group->n_nodes > 1 ? "," : "");
}

static void say_op(tn_finite *f, tn_val v, int32_t at) {
  const tn_graph *graph = f->program->cover->graph;
  const tn_gnode *node = tn_graph_maker(graph, v);
  const tn_group *group = f->program->steps[at].group;
  tn_text_addf(&f->text, "op '%s'", node->op->item.name);
  say_place(&f->text, node->layer, node->where);
  say_companions(f, group, node);
  tn_text_addf(&f->text, " is the first whose result is not finite: ");
  say_elements(&f->text, &f->seen[v], tn_graph_type(graph, v), &graph->values.v[v].layout);
  say_operands(f, group);
}

static void say(tn_finite *f, tn_val v, int32_t at) {
  const tn_graph *graph = f->program->cover->graph;
  const tn_gnode *node = tn_graph_maker(graph, v);
  if (at >= 0) {
    f->found = TN_FINITE_OP;
    say_op(f, v, at);
    return;
  }
  for (size_t i = 0; i < graph->states.n; i++)
    if (graph->states.v[i].value == v) {
      say_state(f, &graph->states.v[i]);
      return;
    }
  const tn_input_attributes *a = node->attributes;
  f->found = TN_FINITE_INPUT;
  tn_text_addf(&f->text, "input '%s' is not finite: ", a->name);
  say_elements(&f->text, &f->seen[v], tn_graph_type(graph, v), NULL);
}

tn_status tn_finite_end(tn_executor *e, const tn_bound_program *bound) {
  tn_finite *f = e->finite;
  int32_t at = -1;
  tn_val v = f->program == bound->program ? find(f, &at) : 0;
  if (v != 0) {
    f->position = f->runs * ((int64_t)1 << 32) + at;
    say(f, v, at);
  }
  forget_run(f);
  return f->text.failed ? TN_ENOMEM : TN_OK;
}
