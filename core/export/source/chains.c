/* core/export/source/chains.c: pointwise ops in the loop of the op that reads them. A value that one
 * pointwise op alone reads, in its shape, is a constant of the loop's body; a number of no operands is one
 * wherever pointwise ops read it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/export/source/source.h"

enum { MOST_CHAIN = 32, MOST_LETTERS = 3 };

typedef struct chains_work {
  source_program *p;
  int32_t *reader;                 /* by value: the last node that reads it; -1: none */
  int32_t *length, *operands;      /* by node: of its loop: ops, and at most so many operands */
  bool *pointwise, *read_by_steps; /* by node; by value: by an op that is not pointwise, or as an output */
} chains_work;

static const source_row *chains_row(const source_program *p, const tn_gnode *node) {
  return p->row[node - p->graph->nodes.v];
}

static const tn_gnode *chains_node(const source_program *p, int32_t i) { return &p->graph->nodes.v[i]; }

static bool chains_is_number(const tn_gnode *node) { return strcmp(node->op->item.name, "full") == 0; }

/* ---- which ---- */

static void chains_look(chains_work *w, int32_t i) {
  const tn_gnode *node = chains_node(w->p, i);
  w->pointwise[i] = node->n_out == 1 && source_is_pointwise(chains_row(w->p, node));
  w->length[i] = 1;
  w->operands[i] = node->n_in;
  for (int32_t k = 0; k < node->n_in; k++) {
    w->reader[node->in[k]] = i;
    if (!w->pointwise[i]) w->read_by_steps[node->in[k]] = true;
  }
}

static bool chains_same_shape(const tn_type *a, const tn_type *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* The node in whose loop node i is computed; -1: it is a step of its own. */
static int32_t chains_root(const chains_work *w, int32_t i) {
  const tn_gnode *node = chains_node(w->p, i);
  tn_val v = node->first_out;
  if (!w->pointwise[i] || w->read_by_steps[v] || w->reader[v] < 0) return -1;
  const tn_gnode *reader = chains_node(w->p, w->reader[v]);
  int32_t above = w->p->root[reader->first_out], root = above >= 0 ? above : w->reader[v];
  if (chains_is_number(node)) return root;
  bool fits = w->length[root] < MOST_CHAIN && w->operands[root] + node->n_in - 1 <= SOURCE_MOST_OPERANDS;
  return fits && w->p->reads[v] == 1 &&
                 chains_same_shape(tn_graph_type(w->p->graph, v),
                                   tn_graph_type(w->p->graph, reader->first_out))
             ? root
             : -1;
}

static void chains_join(chains_work *w, int32_t i) {
  int32_t root = chains_root(w, i);
  const tn_gnode *node = chains_node(w->p, i);
  if (node->n_out == 0) return;
  w->p->root[node->first_out] = root;
  if (root < 0 || chains_is_number(node)) return;
  w->length[root]++;
  w->operands[root] += node->n_in - 1;
}

tn_status source_find_chains(source_program *p) {
  const tn_graph *g = p->graph;
  size_t values = g->values.n, nodes = g->nodes.n;
  chains_work w = {.p = p,
                   .reader = tn_arena_alloc(&p->arena, values * sizeof *w.reader),
                   .length = tn_arena_alloc(&p->arena, nodes * sizeof *w.length + 1),
                   .operands = tn_arena_alloc(&p->arena, nodes * sizeof *w.operands + 1),
                   .pointwise = tn_arena_alloc(&p->arena, nodes + 1),
                   .read_by_steps = tn_arena_alloc(&p->arena, values)};
  p->root = tn_arena_alloc(&p->arena, values * sizeof *p->root);
  if (w.reader == NULL || w.length == NULL || w.operands == NULL || w.pointwise == NULL ||
      w.read_by_steps == NULL || p->root == NULL)
    return TN_ENOMEM;
  for (size_t v = 0; v < values; v++) w.reader[v] = p->root[v] = -1;
  for (size_t i = 0; i < nodes; i++) chains_look(&w, (int32_t)i);
  for (size_t i = 0; i < g->outputs.n; i++) w.read_by_steps[g->outputs.v[i].value] = true;
  for (size_t i = nodes; i-- > 0;) chains_join(&w, (int32_t)i);
  return TN_OK;
}

/* ---- operands ---- */

static void chains_collect(const source_program *p, const tn_gnode *node, tn_val *operands, int32_t *n) {
  for (int32_t k = 0; k < node->n_in; k++) {
    tn_val v = node->in[k];
    int32_t at = 0;
    if (p->root[v] >= 0) {
      chains_collect(p, tn_graph_maker(p->graph, v), operands, n);
      continue;
    }
    while (at < *n && operands[at] != v) at++;
    if (at == *n) operands[(*n)++] = v;
  }
}

int32_t source_chain_operands(const source_use *u, tn_val operands[SOURCE_MOST_OPERANDS]) {
  int32_t n = 0;
  chains_collect(u->p, u->node, operands, &n);
  return n;
}

/* ---- the body of the loop ---- */

static const char *chains_expression(const source_use *u, char text[SOURCE_EXPRESSION]) {
  const source_row *row = chains_row(u->p, u->node);
  if (row->express == NULL) return row->expression;
  row->express(u, text);
  return text;
}

/* "v0" for operand 0 of the step, "t17" for value 17 of the loop, and numbers as they are. */
static void chains_name(const source_use *u, const tn_val *operands, tn_val v, char name[SOURCE_EXPRESSION]) {
  const tn_gnode *maker = tn_graph_maker(u->p->graph, v);
  int32_t at = 0;
  if (u->p->root[v] >= 0 && chains_is_number(maker)) {
    chains_expression(&(source_use){u->p, maker}, name);
  } else if (u->p->root[v] >= 0) {
    snprintf(name, SOURCE_EXPRESSION, "t%u", (unsigned)v);
  } else {
    while (operands[at] != v) at++;
    snprintf(name, SOURCE_EXPRESSION, "v%d", (int)at);
  }
}

static bool chains_is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* The expression with names in place of the letters a, b and c. */
static void chains_add_expression(tn_text *t, const char *expression, char name[][SOURCE_EXPRESSION],
                                  int32_t n) {
  for (const char *c = expression; *c != '\0'; c++) {
    bool alone = (c == expression || !chains_is_word(c[-1])) && !chains_is_word(c[1]);
    if (alone && *c >= 'a' && *c < 'a' + n)
      tn_text_add(t, name[*c - 'a']);
    else
      tn_text_addn(t, c, 1);
  }
}

static void chains_add_value(const source_use *u, const tn_val *operands) {
  char name[MOST_LETTERS][SOURCE_EXPRESSION], text[SOURCE_EXPRESSION];
  int32_t n = u->node->n_in < MOST_LETTERS ? u->node->n_in : MOST_LETTERS;
  for (int32_t k = 0; k < n; k++) chains_name(u, operands, u->node->in[k], name[k]);
  tn_text_addf(&u->p->steps, "(%s)(", source_type(source_out(u, 0)->dtype));
  chains_add_expression(&u->p->steps, chains_expression(u, text), name, n);
  tn_text_add(&u->p->steps, ")");
}

/* At most MOST_CHAIN calls lie in each other. */
static void chains_add_constants(const source_use *u, const tn_val *operands) {
  for (int32_t k = 0; k < u->node->n_in; k++) {
    tn_val v = u->node->in[k];
    const source_use inner = {u->p, tn_graph_maker(u->p->graph, v)};
    if (u->p->root[v] < 0 || chains_is_number(inner.node)) continue;
    chains_add_constants(&inner, operands);
    tn_text_addf(&u->p->steps, "    const %s t%u = ", source_type(source_out(&inner, 0)->dtype), (unsigned)v);
    chains_add_value(&inner, operands);
    tn_text_add(&u->p->steps, ";\n");
  }
}

void source_chain_body(const source_use *u, const tn_val *operands, const char *index) {
  chains_add_constants(u, operands);
  tn_text_addf(&u->p->steps, "    y0[%s] = ", index);
  chains_add_value(u, operands);
  tn_text_add(&u->p->steps, ";\n");
}
