/* core/onnx/rows/flow.c: branches, loops and functions, whose nodes take the place of the node: a loop is
 * written out, a branch is chosen where its condition is known, and else the condition chooses between the
 * results. */
#include <stdlib.h>
#include <string.h>

#include "core/onnx/import.h"

enum { FLOW_MOST_TURNS = 4096 };

/* ---- names ---- */

/* New names of the values of a body, so that it can be there several times. */
typedef struct flow_names {
  onnx_import *m;
  tn_name_index index;
  TN_VEC(const char *) to;
} flow_names;

static tn_status flow_name(flow_names *f, const char *from, const char *to) {
  if (from[0] == '\0' || tn_name_index_find(&f->index, from) != TN_NAME_INDEX_NONE) return TN_OK;
  if (to == NULL) return TN_ENOMEM;
  TN_TRY(tn_name_index_add(&f->index, from));
  return tn_vec_push(f->m->env, &f->to, to);
}

static const char *flow_renamed(const flow_names *f, const char *name) {
  int64_t i = name[0] != '\0' ? tn_name_index_find(&f->index, name) : TN_NAME_INDEX_NONE;
  return i != TN_NAME_INDEX_NONE ? f->to.v[i] : name;
}

/* All values that a body defines get an end of their own. */
static tn_status flow_define(flow_names *f, const tn_onnx_graph *g, const char *end) {
  tn_arena *arena = &f->m->arena;
  for (int64_t i = 0; i < g->n_inputs; i++)
    TN_TRY(flow_name(f, g->inputs[i].name, tn_arena_printf(arena, "%s%s", g->inputs[i].name, end)));
  for (int64_t i = 0; i < g->n_initializers; i++)
    TN_TRY(
        flow_name(f, g->initializers[i].name, tn_arena_printf(arena, "%s%s", g->initializers[i].name, end)));
  for (int64_t i = 0; i < g->n_nodes; i++)
    for (int32_t k = 0; k < g->nodes[i].n_out; k++)
      TN_TRY(flow_name(f, g->nodes[i].out[k], tn_arena_printf(arena, "%s%s", g->nodes[i].out[k], end)));
  return TN_OK;
}

static flow_names flow_new(onnx_import *m) {
  return (flow_names){.m = m, .index = tn_name_index_new(m->env)};
}

static void flow_free(flow_names *f) {
  tn_name_index_free(&f->index);
  tn_vec_free(f->m->env, &f->to);
}

/* ---- copies of nodes ---- */

static tn_status copy_nodes(const flow_names *f, const tn_onnx_node *call, const tn_onnx_node *from,
                            int64_t count, tn_onnx_node **to);

static tn_status copy_graph(const flow_names *f, const tn_onnx_node *call, tn_onnx_attribute *a) {
  tn_onnx_graph *g = tn_arena_alloc(&f->m->arena, sizeof *g);
  if (g == NULL) return TN_ENOMEM;
  *g = *a->graph;
  TN_TRY(copy_nodes(f, call, a->graph->nodes, g->n_nodes, &g->nodes));
  g->outputs = tn_arena_alloc(&f->m->arena, (size_t)g->n_outputs * sizeof *g->outputs + 1);
  if (g->outputs == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < g->n_outputs; i++) {
    g->outputs[i] = a->graph->outputs[i];
    g->outputs[i].name = flow_renamed(f, g->outputs[i].name);
  }
  a->graph = g;
  return TN_OK;
}

/* Attributes, of which those that refer to an attribute of the call have its value. */
static tn_status copy_attributes(const flow_names *f, const tn_onnx_node *call, tn_onnx_node *node) {
  const tn_onnx_attribute *from = node->attributes;
  int32_t count = node->n_attributes;
  node->attributes = tn_arena_alloc(&f->m->arena, (size_t)count * sizeof *from + 1);
  node->n_attributes = 0;
  if (node->attributes == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < count; i++) {
    const tn_onnx_attribute *a = &from[i];
    if (from[i].reference != NULL)
      a = call != NULL ? onnx_attribute(&(onnx_use){f->m, call, 0}, from[i].reference) : NULL;
    if (a == NULL) continue;
    tn_onnx_attribute *to = &node->attributes[node->n_attributes++];
    *to = *a;
    to->name = from[i].name;
    if (to->graph != NULL) TN_TRY(copy_graph(f, call, to));
  }
  return TN_OK;
}

static tn_status copy_names(const flow_names *f, const char ***list, int32_t count) {
  const char **to = tn_arena_alloc(&f->m->arena, (size_t)count * sizeof *to + 1);
  if (to == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < count; i++) to[i] = flow_renamed(f, (*list)[i]);
  *list = to;
  return TN_OK;
}

static tn_status copy_nodes(const flow_names *f, const tn_onnx_node *call, const tn_onnx_node *from,
                            int64_t count, tn_onnx_node **to) {
  tn_onnx_node *copies = tn_arena_alloc(&f->m->arena, (size_t)count * sizeof *copies + 1);
  if (copies == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < count; i++) {
    copies[i] = from[i];
    TN_TRY(copy_names(f, &copies[i].in, copies[i].n_in));
    TN_TRY(copy_names(f, &copies[i].out, copies[i].n_out));
    TN_TRY(copy_attributes(f, call, &copies[i]));
  }
  *to = copies;
  return TN_OK;
}

/* ---- running of a body ---- */

static tn_status flow_run(const onnx_use *n, const tn_onnx_graph *g, const flow_names *f,
                          const tn_onnx_node *call) {
  onnx_import *m = n->m;
  tn_onnx_node *nodes;
  int64_t first = (int64_t)m->nodes.n;
  if (++m->depth > TN_ONNX_MOST_DEPTH) return ONNX_REFUSE(n, "bodies more than %d deep", TN_ONNX_MOST_DEPTH);
  for (int64_t i = 0; i < g->n_initializers; i++) {
    onnx_value value = {.name = flow_renamed(f, g->initializers[i].name), .tensor = &g->initializers[i]};
    value.type = g->initializers[i].type;
    value.type.dtype = onnx_value_dtype(g->initializers[i].data_type);
    TN_TRY(onnx_add_value(m, &value));
  }
  TN_TRY(copy_nodes(f, call, g->nodes, g->n_nodes, &nodes));
  for (int64_t i = 0; i < g->n_nodes; i++) TN_TRY(onnx_add_node(m, &nodes[i]));
  for (int64_t i = 0; i < g->n_outputs; i++)
    TN_TRY(onnx_count(m, flow_renamed(f, g->outputs[i].name), n->number));
  TN_TRY(m->steps(m, first, first + g->n_nodes));
  m->depth--;
  return TN_OK;
}

/* The value `to` is the value `from`. */
static tn_status flow_alias(onnx_import *m, const char *from, const char *to) {
  const onnx_value *value = onnx_find(m, from);
  onnx_value copy = value != NULL ? *value : (onnx_value){.lost = true};
  copy.name = to;
  return to[0] != '\0' ? onnx_add_value(m, &copy) : TN_OK;
}

static bool flow_is_lost(const onnx_import *m, const char *name) {
  const onnx_value *value = onnx_find(m, name);
  return value == NULL || value->lost;
}

/* ---- branches ---- */

static tn_status branch_run(const onnx_use *n, const char *attribute, const char *end,
                            const tn_onnx_graph **g, flow_names *f) {
  const tn_onnx_attribute *a = onnx_attribute(n, attribute);
  if (a == NULL || a->graph == NULL || a->graph->n_outputs != n->node->n_out)
    return ONNX_REFUSE(n, "no %s", attribute);
  *g = a->graph;
  TN_TRY(flow_define(f, a->graph, end));
  return flow_run(n, a->graph, f, NULL);
}

static tn_status branch_known(const onnx_use *n, bool holds, flow_names *f) {
  const tn_onnx_graph *g = NULL;
  TN_TRY(branch_run(n, holds ? "then_branch" : "else_branch", onnx_print(n, "@%lld", (long long)n->number),
                    &g, f));
  for (int64_t i = 0; i < g->n_outputs; i++)
    TN_TRY(flow_alias(n->m, flow_renamed(f, g->outputs[i].name), n->node->out[i]));
  return TN_OK;
}

/* Both branches are computed, and the condition chooses. */
static tn_status branch_both(const onnx_use *n, flow_names *yes, flow_names *no) {
  const tn_onnx_graph *a = NULL, *b = NULL;
  const char *condition = onnx_text_of(n, 0, false);
  if (condition == NULL) return onnx_failed(n);
  TN_TRY(branch_run(n, "then_branch", onnx_print(n, "@%lld.then", (long long)n->number), &a, yes));
  TN_TRY(branch_run(n, "else_branch", onnx_print(n, "@%lld.else", (long long)n->number), &b, no));
  for (int64_t i = 0; i < a->n_outputs; i++) {
    const char *x = flow_renamed(yes, a->outputs[i].name), *y = flow_renamed(no, b->outputs[i].name);
    if (flow_is_lost(n->m, x) || flow_is_lost(n->m, y)) {
      TN_TRY(flow_alias(n->m, "", n->node->out[i]));
      continue;
    }
    const tn_type *p = &onnx_find(n->m, x)->type, *q = &onnx_find(n->m, y)->type;
    if (p->dtype != q->dtype || p->rank != q->rank ||
        memcmp(p->dims, q->dims, (size_t)p->rank * sizeof *p->dims) != 0)
      return ONNX_REFUSE(
          n, "branches whose results differ in their types, by a condition that depends on the inputs");
    const char *then = onnx_line_of(n, x), *otherwise = onnx_line_of(n, y);
    const char *line = then != NULL && otherwise != NULL
                           ? onnx_let(n, "%s if %s else %s", then, condition, otherwise)
                           : NULL;
    if (line == NULL) return onnx_failed(n);
    if (n->node->out[i][0] != '\0') TN_TRY(onnx_bind(n, (int32_t)i, line));
  }
  return TN_OK;
}

static tn_status row_if(const onnx_use *n) {
  int64_t count;
  const double *known = onnx_peek(n, 0, &count);
  flow_names yes = flow_new(n->m), no = flow_new(n->m);
  tn_status status =
      known != NULL && count == 1 ? branch_known(n, known[0] != 0, &yes) : branch_both(n, &yes, &no);
  flow_free(&yes);
  flow_free(&no);
  return status;
}

/* ---- loops ---- */

/* Results that each turn of a loop adds to: names of values, a list for each. */
typedef struct flow_stack {
  const char **names;
  int64_t turns;
} flow_stack;

static tn_status stack_add(const onnx_use *n, flow_stack *s, const char *name) {
  const char **grown = tn_arena_grow(&n->m->arena, s->names, (size_t)s->turns, sizeof *grown);
  if (grown == NULL) return TN_ENOMEM;
  s->names = grown;
  s->names[s->turns++] = name;
  return TN_OK;
}

/* Result k: the values of all turns along a new axis. */
static tn_status stack_bind(const onnx_use *n, const flow_stack *s, int32_t k, int64_t axis, bool backwards) {
  const char *all = "";
  if (!onnx_wants(n, k)) return TN_OK;
  if (s->turns == 0) return ONNX_REFUSE(n, "a loop without turns");
  for (int64_t i = 0; i < s->turns; i++) {
    const char *name = s->names[backwards ? s->turns - 1 - i : i];
    if (flow_is_lost(n->m, name)) return flow_alias(n->m, "", n->node->out[k]);
    const char *line = onnx_line_of(n, name);
    if (line == NULL) return onnx_failed(n);
    all = onnx_print(n, "%s%s, ", all, line);
  }
  const char *line = onnx_let(n, "stack(%saxis=%lld)", all, (long long)axis);
  return line != NULL ? onnx_bind(n, k, line) : onnx_failed(n);
}

typedef struct flow_loop {
  const tn_onnx_graph *body;
  int32_t states, outputs; /* outputs: results that are stacked */
  const char **state;      /* names of the states' values */
  flow_stack *stacks;
} flow_loop;

static tn_status loop_read(const onnx_use *n, int32_t first, int32_t states, int32_t leading, flow_loop *l) {
  const tn_onnx_attribute *body = onnx_attribute(n, "body");
  if (body == NULL || body->graph == NULL) return ONNX_REFUSE(n, "no body");
  *l = (flow_loop){.body = body->graph, .states = states};
  l->outputs = (int32_t)body->graph->n_outputs - leading - states;
  if (states < 0 || l->outputs < 0 || n->node->n_out > states + l->outputs)
    return ONNX_REFUSE(n, "a body of other results");
  l->state = tn_arena_alloc(&n->m->arena, (size_t)states * sizeof *l->state + 1);
  l->stacks = tn_arena_alloc(&n->m->arena, (size_t)l->outputs * sizeof *l->stacks + 1);
  if (l->state == NULL || l->stacks == NULL) return TN_ENOMEM;
  memset(l->stacks, 0, (size_t)l->outputs * sizeof *l->stacks);
  for (int32_t i = 0; i < states; i++) l->state[i] = n->node->in[first + i];
  return TN_OK;
}

/* Takes the results of a turn, of which `leading` are in front of the states. */
static tn_status loop_take(const onnx_use *n, flow_loop *l, const flow_names *f, int32_t leading) {
  const tn_onnx_graph *g = l->body;
  for (int32_t i = 0; i < l->states; i++) l->state[i] = flow_renamed(f, g->outputs[leading + i].name);
  for (int32_t i = 0; i < l->outputs; i++)
    TN_TRY(stack_add(n, &l->stacks[i], flow_renamed(f, g->outputs[leading + l->states + i].name)));
  return TN_OK;
}

static tn_status loop_constant(onnx_import *m, const char *name, int32_t dtype, double number) {
  double *known = tn_arena_alloc(&m->arena, sizeof *known);
  if (known == NULL) return TN_ENOMEM;
  *known = number;
  return onnx_add_value(m, &(onnx_value){.name = name, .known = known, .type = {.dtype = dtype}});
}

/* One turn; *goes: whether another one follows. */
static tn_status loop_turn(const onnx_use *n, flow_loop *l, int64_t turn, bool *goes) {
  onnx_import *m = n->m;
  const tn_onnx_graph *g = l->body;
  flow_names f = flow_new(m);
  tn_status status = flow_define(&f, g, onnx_print(n, "@%lld.%lld", (long long)n->number, (long long)turn));
  if (status == TN_OK) status = loop_constant(m, flow_renamed(&f, g->inputs[0].name), TN_I64, (double)turn);
  if (status == TN_OK) status = loop_constant(m, flow_renamed(&f, g->inputs[1].name), TN_BOOL, 1);
  for (int32_t i = 0; i < l->states && status == TN_OK; i++)
    status = flow_alias(m, l->state[i], flow_renamed(&f, g->inputs[2 + i].name));
  if (status == TN_OK) status = flow_run(n, g, &f, NULL);
  onnx_value *condition = status == TN_OK ? onnx_find(m, flow_renamed(&f, g->outputs[0].name)) : NULL;
  if (condition != NULL && condition->known == NULL && condition->tensor != NULL)
    status = onnx_look(m, condition);
  if (status == TN_OK && (condition == NULL || condition->known == NULL))
    status = ONNX_REFUSE(n, "a loop whose end depends on the inputs of the model");
  if (status == TN_OK) *goes = condition->known[0] != 0;
  if (status == TN_OK) status = loop_take(n, l, &f, 1);
  flow_free(&f);
  return status;
}

static tn_status row_loop(const onnx_use *n) {
  flow_loop l;
  int64_t count, turns = FLOW_MOST_TURNS;
  bool goes = true;
  TN_TRY(loop_read(n, 2, n->node->n_in - 2, 1, &l));
  if (l.body->n_inputs != l.states + 2) return ONNX_REFUSE(n, "a body of other inputs");
  if (onnx_has(n, 0)) {
    const double *most = onnx_known(n, 0, &count);
    if (most == NULL) return onnx_failed(n);
    turns = onnx_to_whole(most[0]);
  }
  if (onnx_has(n, 1)) {
    const double *begins = onnx_known(n, 1, &count);
    if (begins == NULL) return onnx_failed(n);
    goes = begins[0] != 0;
  }
  for (int64_t turn = 0; turn < turns && goes; turn++) {
    if (turn == FLOW_MOST_TURNS) return ONNX_REFUSE(n, "more than %d turns", FLOW_MOST_TURNS);
    TN_TRY(loop_turn(n, &l, turn, &goes));
  }
  for (int32_t i = 0; i < l.states && i < n->node->n_out; i++)
    TN_TRY(flow_alias(n->m, l.state[i], n->node->out[i]));
  for (int32_t i = 0; i < l.outputs && l.states + i < n->node->n_out; i++)
    TN_TRY(stack_bind(n, &l.stacks[i], l.states + i, 0, false));
  return TN_OK;
}

/* ---- scans ---- */

static int64_t scan_number(const onnx_use *n, const char *name, int32_t i) {
  const tn_onnx_attribute *a = onnx_attribute(n, name);
  return a != NULL && i < a->n_wholes ? a->wholes[i] : 0;
}

/* Step `turn` of sequence i as a line. */
static tn_status scan_part(const onnx_use *n, int32_t operand, int32_t i, int64_t turn, int64_t turns,
                           const char *to) {
  const tn_type x = *onnx_type(n, operand);
  int32_t axis = onnx_axis(scan_number(n, "scan_input_axes", i), x.rank);
  const char *text = onnx_text_of(n, operand, false), *parts = "";
  if (text == NULL || axis < 0)
    return text == NULL ? onnx_failed(n) : ONNX_REFUSE(n, "an axis that the operand lacks");
  for (int32_t k = 0; k < axis; k++) parts = onnx_print(n, "%s:, ", parts);
  int64_t at = scan_number(n, "scan_input_directions", i) ? turns - 1 - turn : turn;
  const char *line = onnx_let(n, "%s[%s%lld]", text, parts, (long long)at);
  if (line == NULL) return onnx_failed(n);
  return onnx_add_value(n->m,
                        &(onnx_value){.name = to, .line = line, .type = *tn_growing_type(n->m->model, line)});
}

static tn_status scan_turn(const onnx_use *n, flow_loop *l, int64_t turn, int64_t turns) {
  onnx_import *m = n->m;
  const tn_onnx_graph *g = l->body;
  flow_names f = flow_new(m);
  tn_status status = flow_define(&f, g, onnx_print(n, "@%lld.%lld", (long long)n->number, (long long)turn));
  for (int32_t i = 0; i < l->states && status == TN_OK; i++)
    status = flow_alias(m, l->state[i], flow_renamed(&f, g->inputs[i].name));
  for (int32_t i = l->states; i < n->node->n_in && status == TN_OK; i++)
    status = scan_part(n, i, i - l->states, turn, turns, flow_renamed(&f, g->inputs[i].name));
  if (status == TN_OK) status = flow_run(n, g, &f, NULL);
  if (status == TN_OK) status = loop_take(n, l, &f, 0);
  flow_free(&f);
  return status;
}

static tn_status row_scan(const onnx_use *n) {
  flow_loop l;
  int32_t sequences = (int32_t)onnx_whole(n, "num_scan_inputs", 0), states = n->node->n_in - sequences;
  if (n->m->file->opset < 9) return ONNX_REFUSE(n, "the form of version 8");
  if (sequences < 1 || states < 0)
    return ONNX_REFUSE(n, "%d sequences of %d operands", sequences, n->node->n_in);
  TN_TRY(loop_read(n, 0, states, 0, &l));
  if (l.body->n_inputs != n->node->n_in) return ONNX_REFUSE(n, "a body of other inputs");
  const tn_type *x = onnx_type(n, states);
  int32_t axis = onnx_axis(scan_number(n, "scan_input_axes", 0), x->rank);
  int64_t turns = axis >= 0 ? x->dims[axis] : 0;
  if (axis < 0 || onnx_is_batch(n->m, turns) || turns > FLOW_MOST_TURNS)
    return ONNX_REFUSE(n, "a scan along the samples, or of more than %d steps", FLOW_MOST_TURNS);
  for (int64_t turn = 0; turn < turns; turn++) TN_TRY(scan_turn(n, &l, turn, turns));
  for (int32_t i = 0; i < states && i < n->node->n_out; i++)
    TN_TRY(flow_alias(n->m, l.state[i], n->node->out[i]));
  for (int32_t i = 0; i < l.outputs && states + i < n->node->n_out; i++)
    TN_TRY(stack_bind(n, &l.stacks[i], states + i, scan_number(n, "scan_output_axes", i),
                      scan_number(n, "scan_output_directions", i) != 0));
  return TN_OK;
}

/* ---- functions ---- */

static tn_status function_run(const onnx_use *n, const tn_onnx_function *function, flow_names *f) {
  for (int32_t i = 0; i < function->n_in; i++)
    TN_TRY(flow_name(f, function->in[i], i < n->node->n_in ? n->node->in[i] : ""));
  for (int32_t i = 0; i < function->n_out && i < n->node->n_out; i++)
    TN_TRY(flow_name(f, function->out[i], n->node->out[i]));
  TN_TRY(flow_define(f, &function->body, onnx_print(n, "@%lld", (long long)n->number)));
  return flow_run(n, &function->body, f, n->node);
}

static tn_status row_function(const onnx_use *n) {
  flow_names f = flow_new(n->m);
  tn_status status = function_run(n, onnx_function_of(n->m, n->node), &f);
  flow_free(&f);
  return status;
}

const onnx_row onnx_function_row = {"", row_function, NULL, 0, true};

const onnx_row onnx_flow_rows[] = {
    {"If", row_if, NULL},
    {"Loop", row_loop, NULL, 0, true},
    {"Scan", row_scan, NULL},
    {NULL, NULL, NULL},
};
