/* core/exec/nonfinite/describe.c: the message about a value that is not finite. */
#include "core/exec/nonfinite/search_state.h"

#include <string.h>

#include "core/graph/input_state.h"
#include "tenon/plugin/storage.h"

/* The scan of a value, or of the value that it is a view of; NULL: it was not scanned. */
static const tn_scan *value_scan(const tn_nonfinite_search *f, tn_val v) {
  const tn_gnode *node = tn_graph_maker(f->program->cover->graph, v);
  while (!tn_nonfinite_is_launched(node) && node->n_in == 1) {
    v = node->in[0];
    node = tn_graph_maker(f->program->cover->graph, v);
  }
  return f->seen[v].looked ? &f->seen[v] : NULL;
}

/* "element [0, 3] of f32[8, 10] is -inf (5 of 80 are not finite)". In a blocked layout the position says
 * little about the element, so the text leaves the index out. */
static void describe_elements(tn_text *text, const tn_scan *seen, const tn_type *type,
                              const tn_layout *layout) {
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
  const char *value = seen->kind == TN_SCAN_NAN ? "nan" : seen->value < 0 ? "-inf" : "inf";
  tn_text_addf(text, "%s is %s", tn_type_format(type, shape), value);
  if (n > 1) tn_text_addf(text, " (%lld of %lld are not finite)", (long long)seen->count, (long long)n);
}

static void describe_location(tn_text *text, const char *layer, const char *where) {
  if (layer != NULL && layer[0] != '\0') tn_text_addf(text, " of layer '%s'", layer);
  if (where != NULL && where[0] != '\0') tn_text_addf(text, " (%s)", where);
}

/* The row-major index of the element at a position in the storage of a state. */
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

/* The placement of a state. For a region, whose path begins with '@', it is the state that contains *element,
 * which becomes an index in that state. */
static const tn_placement *state_of_element(const tn_nonfinite_search *f, const char *path,
                                            int64_t *element) {
  const tn_state_map *map = f->executor->map;
  const tn_placement *placement = tn_state_map_find(map, path);
  if (path[0] == '@' && placement != NULL && tn_state_map_shards(map, placement) > 1)
    *element += map->rank * tn_type_count(&placement->type);
  for (size_t i = 0; path[0] == '@' && i < map->states.n; i++) {
    const tn_placement *p = &map->states.v[i];
    if (p->path[0] == '@' || !tn_text_equal(map->regions.v[p->region].name, path + 1)) continue;
    if (*element < p->offset || *element >= p->offset + tn_type_count(&p->type)) continue;
    *element = logical_element(p, *element - p->offset);
    return p;
  }
  return placement;
}

static void describe_state(tn_nonfinite_search *f, const tn_gstate *state) {
  tn_scan seen = f->seen[state->value];
  const tn_placement *p = state_of_element(f, state->path, &seen.first);
  int32_t kind = p != NULL ? p->what : state->what;
  f->found = kind == TN_STATE_DERIVED ? TN_NONFINITE_DERIVED : TN_NONFINITE_STATE;
  tn_text_addf(&f->text, "%s '%s'",
               kind == TN_STATE_PARAM     ? "parameter"
               : kind == TN_STATE_DERIVED ? "the low-precision copy"
                                          : "state",
               p != NULL ? p->path : state->path);
  describe_location(&f->text, NULL, p != NULL ? p->where : state->where);
  tn_text_add(&f->text, " is not finite before the step: ");
  bool part = p != NULL && p->path[0] != '@' && state->path[0] == '@';
  seen.count = part ? 1 : seen.count;
  describe_elements(&f->text, &seen, part ? &p->type : &state->type, NULL);
}

/* The ranges of the finite elements of the operands. */
static void describe_operand_ranges(tn_nonfinite_search *f, const tn_group *group) {
  const char *between = ", from operands within ";
  for (int32_t i = 0; i < group->n_in; i++) {
    tn_val v = group->in[i];
    bool counts = v != 0 && tn_dtype_is_float(tn_graph_type(f->program->cover->graph, v)->dtype);
    const tn_scan *seen = counts ? value_scan(f, v) : NULL;
    if (seen == NULL || seen->low > seen->high) continue;
    tn_text_addf(&f->text, "%s[%.4g, %.4g]", between, seen->low, seen->high);
    between = ", ";
  }
}

/* Whether the text of node i of the group would repeat that of an earlier node or of the named one. */
static bool is_repeated(const tn_graph *graph, const tn_group *group, int32_t i, const tn_gnode *named) {
  const tn_gnode *node = &graph->nodes.v[group->nodes[i]];
  if (node == named) return true;
  for (int32_t k = 0; k < i; k++) {
    const tn_gnode *other = &graph->nodes.v[group->nodes[k]];
    if (other->op == node->op && tn_text_equal(other->layer, node->layer)) return true;
  }
  return false;
}

/* The other ops of the same kernel: their values are in no memory, so any of them may be the source. */
static void describe_group(tn_nonfinite_search *f, const tn_group *group, const tn_gnode *named) {
  const tn_graph *graph = f->program->cover->graph;
  const char *before = ", done together with ";
  for (int32_t i = 0; i < group->n_nodes; i++) {
    const tn_gnode *node = &graph->nodes.v[group->nodes[i]];
    if (is_repeated(graph, group, i, named)) continue;
    tn_text_addf(&f->text, "%s'%s'", before, node->op->item.name);
    if (!tn_text_equal(node->layer, named->layer)) describe_location(&f->text, node->layer, NULL);
    before = ", ";
  }
  tn_text_add(&f->text, group->n_nodes > 1 ? "," : "");
}

/* The op to name for a value: behind a cast, the op of the same launch whose result is cast. */
static const tn_gnode *named_op(const tn_graph *graph, const tn_group *group, tn_val v) {
  const tn_gnode *node = tn_graph_maker(graph, v);
  while (strcmp(node->op->item.name, "cast") == 0 &&
         tn_group_has_node(group, graph->values.v[node->in[0]].node))
    node = tn_graph_maker(graph, node->in[0]);
  return node;
}

static void describe_op(tn_nonfinite_search *f, tn_val v, int32_t step) {
  const tn_graph *graph = f->program->cover->graph;
  const tn_group *group = f->program->steps[step].group;
  const tn_gnode *node = named_op(graph, group, v);
  tn_text_addf(&f->text, "op '%s'", node->op->item.name);
  describe_location(&f->text, node->layer, node->where);
  describe_group(f, group, node);
  tn_text_addf(&f->text, " is the first whose result is not finite: ");
  describe_elements(&f->text, &f->seen[v], tn_graph_type(graph, v), &graph->values.v[v].layout);
  describe_operand_ranges(f, group);
}

void tn_nonfinite_describe(tn_nonfinite_search *f, tn_val v, int32_t step) {
  const tn_graph *graph = f->program->cover->graph;
  const tn_gnode *node = tn_graph_maker(graph, v);
  if (step >= 0) {
    f->found = TN_NONFINITE_OP;
    describe_op(f, v, step);
    return;
  }
  for (size_t i = 0; i < graph->states.n; i++)
    if (graph->states.v[i].value == v) {
      describe_state(f, &graph->states.v[i]);
      return;
    }
  const tn_input_attributes *a = node->attributes;
  f->found = TN_NONFINITE_INPUT;
  tn_text_addf(&f->text, "input '%s' is not finite: ", a->name);
  describe_elements(&f->text, &f->seen[v], tn_graph_type(graph, v), NULL);
}
