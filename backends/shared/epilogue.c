/* backends/shared/epilogue.c: see epilogue.h. */
#include "backends/shared/epilogue.h"

#include <stdbool.h>
#include <stddef.h>

/* Sizes that suffice for either part of a match. */
typedef struct epilogue_sizes {
  int32_t views, nodes, numbers;
} epilogue_sizes;

static epilogue_sizes epilogue_sizes_of(const tn_match *m) {
  epilogue_sizes s = {m->n_in, m->n_nodes, 0};
  for (int32_t i = 0; i < m->n_nodes; i++) {
    s.views += m->nodes[i].node->n_out + m->nodes[i].node->n_in;
    s.numbers += m->nodes[i].node->n_in;
  }
  return s;
}

tn_status tn_epilogue_new_part(const void *handle, const tn_match *m, tn_epilogue_part *p) {
  epilogue_sizes s = epilogue_sizes_of(m);
  p->types = tn_new(handle, (size_t)s.views * sizeof *p->types);
  p->out_number = tn_new(handle, (size_t)s.views * sizeof *p->out_number);
  p->constant = tn_new(handle, (size_t)s.views);
  p->constant_node = tn_new(handle, (size_t)s.views * sizeof *p->constant_node);
  p->nodes = tn_new(handle, (size_t)s.nodes * sizeof *p->nodes);
  p->numbers = tn_new(handle, (size_t)s.numbers * sizeof *p->numbers + 1);
  p->source = tn_new(handle, (size_t)s.views * sizeof *p->source);
  if (!p->types || !p->out_number || !p->constant || !p->constant_node || !p->nodes || !p->numbers ||
      !p->source)
    return TN_ENOMEM;
  return TN_OK;
}

void tn_epilogue_drop_part(const void *handle, tn_epilogue_part *p) {
  void *const blocks[] = {p->types, p->out_number, p->constant, p->constant_node,
                          p->nodes, p->numbers,    p->source};
  for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) tn_delete(handle, blocks[i]);
}

void tn_epilogue_finish_part(tn_epilogue_part *p, int32_t n_in, int32_t n_out, int32_t n_nodes) {
  p->match = (tn_match){.struct_size = sizeof p->match,
                        .n_in = n_in,
                        .n_out = n_out,
                        .n_nodes = n_nodes,
                        .in = p->types,
                        .out = p->types + n_in,
                        .out_number = p->out_number,
                        .nodes = p->nodes,
                        .constant = p->constant,
                        .constant_node = p->constant_node};
}

/* Whether the region is behind the op: what the op reads comes from outside. */
static bool epilogue_is_behind(const tn_match *m, const tn_match_node *op) {
  for (int32_t i = 0; i < op->node->n_in; i++)
    if (op->in[i] < 0 || op->in[i] >= m->n_in) return false;
  return true;
}

/* The result of the match that is result k of the op, if it is one. */
static tn_epilogue_source epilogue_source_of_result(const tn_match *m, const tn_match_node *op, int32_t k) {
  for (int32_t i = 0; i < m->n_out; i++)
    if (m->out_number[i] == op->first_out + k) return (tn_epilogue_source){TN_EPILOGUE_RESULT, i};
  return (tn_epilogue_source){TN_EPILOGUE_INNER, -1};
}

/* The op with all of its results. */
static void epilogue_split_op(const tn_match *m, const tn_match_node *op, tn_epilogue_part *p) {
  const tn_node *n = op->node;
  for (int32_t i = 0; i < n->n_in; i++) {
    p->types[i] = n->in[i];
    p->numbers[i] = i;
    p->source[i] = (tn_epilogue_source){TN_EPILOGUE_OPERAND, op->in[i]};
    p->constant[i] = m->constant[op->in[i]];
    p->constant_node[i] = m->constant_node[op->in[i]];
  }
  for (int32_t k = 0; k < n->n_out; k++) {
    p->types[n->n_in + k] = &n->out[k];
    p->out_number[k] = n->n_in + k;
    p->source[n->n_in + k] = epilogue_source_of_result(m, op, k);
  }
  p->nodes[0] = (tn_match_node){n, p->numbers, n->n_in};
  tn_epilogue_finish_part(p, n->n_in, n->n_out, 1);
}

/* Adds an operand of the launch to those of the region, unless it is there; returns its number. */
static int32_t epilogue_region_operand(const tn_match *m, int32_t operand, tn_epilogue_part *p,
                                       int32_t *n_in) {
  for (int32_t i = 0; i < *n_in; i++)
    if (p->source[i].place == TN_EPILOGUE_OPERAND && p->source[i].at == operand) return i;
  p->types[*n_in] = m->in[operand];
  p->constant[*n_in] = m->constant[operand];
  p->constant_node[*n_in] = m->constant_node[operand];
  p->source[*n_in] = (tn_epilogue_source){TN_EPILOGUE_OPERAND, operand};
  return (*n_in)++;
}

/* The nodes of a match: `op` is the last statement, and the only one where the first node may be the
 * region's. */
typedef struct epilogue_nodes {
  const tn_match *match;
  const tn_match_node *op;
  int32_t first; /* nodes before it are statements */
} epilogue_nodes;

static bool epilogue_is_in_region(const epilogue_nodes *e, int32_t node) {
  return node >= e->first && &e->match->nodes[node] != e->op;
}

/* The operands of the region: the op's results, then operands of the launch. */
static int32_t epilogue_list_operands(const epilogue_nodes *e, tn_epilogue_part *p) {
  const tn_match *m = e->match;
  int32_t n_in = 0;
  for (; n_in < e->op->node->n_out; n_in++) {
    p->types[n_in] = &e->op->node->out[n_in];
    p->source[n_in] = epilogue_source_of_result(m, e->op, n_in);
  }
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (int32_t k = 0; epilogue_is_in_region(e, i) && k < m->nodes[i].node->n_in; k++)
      if (m->nodes[i].in[k] >= 0 && m->nodes[i].in[k] < m->n_in)
        epilogue_region_operand(m, m->nodes[i].in[k], p, &n_in);
  return n_in;
}

/* A number of the match as the region numbers it. Results of the region move down by those of the statements.
 */
static int32_t epilogue_region_number(const epilogue_nodes *e, tn_epilogue_part *p, int32_t n_in,
                                      int32_t number) {
  const tn_match *m = e->match;
  int32_t n_out = e->op->node->n_out, of_statements = 0;
  if (number < 0) return number;
  if (number < m->n_in) return epilogue_region_operand(m, number, p, &n_in);
  if (number >= e->op->first_out && number < e->op->first_out + n_out) return number - e->op->first_out;
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (!epilogue_is_in_region(e, i) && m->nodes[i].first_out < number)
      of_statements += m->nodes[i].node->n_out;
  return n_in + number - m->n_in - of_statements;
}

static bool epilogue_is_made_in_region(const epilogue_nodes *e, int32_t number) {
  for (int32_t i = 0; i < e->match->n_nodes; i++) {
    const tn_match_node *n = &e->match->nodes[i];
    if (number >= n->first_out && number < n->first_out + n->node->n_out) return epilogue_is_in_region(e, i);
  }
  return false;
}

static void epilogue_split_region(const epilogue_nodes *e, tn_epilogue_part *p) {
  const tn_match *m = e->match;
  int32_t n_in = epilogue_list_operands(e, p), n_nodes = 0, n_out = 0, *numbers = p->numbers;
  for (int32_t i = 0; i < m->n_nodes; i++) {
    const tn_match_node *n = &m->nodes[i];
    if (!epilogue_is_in_region(e, i)) continue;
    p->nodes[n_nodes++] = (tn_match_node){n->node, numbers, epilogue_region_number(e, p, n_in, n->first_out)};
    for (int32_t k = 0; k < n->node->n_in; k++) *numbers++ = epilogue_region_number(e, p, n_in, n->in[k]);
  }
  for (int32_t k = 0; k < m->n_out; k++) {
    if (!epilogue_is_made_in_region(e, m->out_number[k])) continue;
    p->types[n_in + n_out] = m->out[k];
    p->source[n_in + n_out] = (tn_epilogue_source){TN_EPILOGUE_RESULT, k};
    p->out_number[n_out++] = epilogue_region_number(e, p, n_in, m->out_number[k]);
  }
  tn_epilogue_finish_part(p, n_in, n_out, n_nodes);
}

tn_status tn_epilogue_region(const void *handle, const tn_match *m, int32_t n_statements,
                             tn_epilogue_part *region) {
  const epilogue_nodes e = {m, &m->nodes[n_statements - 1], n_statements};
  *region = (tn_epilogue_part){{0}};
  tn_status status = tn_epilogue_new_part(handle, m, region);
  if (status == TN_OK) epilogue_split_region(&e, region);
  return status;
}

tn_status tn_epilogue_split(const void *handle, const tn_match *m, const tn_match_node *op, tn_epilogue *e) {
  *e = (tn_epilogue){0};
  if (!epilogue_is_behind(m, op))
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "an operand of %s is absent or made in the region",
                   op->node->op);
  TN_TRY(tn_epilogue_new_part(handle, m, &e->op));
  TN_TRY(tn_epilogue_new_part(handle, m, &e->region));
  epilogue_split_op(m, op, &e->op);
  epilogue_split_region(&(epilogue_nodes){m, op, 0}, &e->region);
  return TN_OK;
}

void tn_epilogue_drop(const void *handle, tn_epilogue *e) {
  tn_epilogue_drop_part(handle, &e->op);
  tn_epilogue_drop_part(handle, &e->region);
}
