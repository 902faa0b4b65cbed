/* backends/shared/prologue.c: see prologue.h. */
#include "backends/shared/prologue.h"

#include <stdbool.h>

/* The match, and one of its two parts: nodes `from` to `to` - 1, whose values have numbers `first` to `end` -
 * 1. */
typedef struct prologue_side {
  const tn_match *match;
  int32_t from, to, first, end;
  const tn_prologue *prologue;
  tn_epilogue_part *part;
  int32_t n_in; /* operands of the part found so far */
} prologue_side;

static bool prologue_makes(const prologue_side *s, int32_t number) {
  return number >= s->first && number < s->end;
}

/* The type of a value that a node of the match makes. */
static const tn_type *prologue_made_type(const tn_match *m, int32_t number) {
  int32_t i = 0;
  while (number >= m->nodes[i].first_out + m->nodes[i].node->n_out) i++;
  return &m->nodes[i].node->out[number - m->nodes[i].first_out];
}

/* ---- operands ---- */

/* Where a value comes from that the part reads and does not make. */
static tn_epilogue_source prologue_operand_source(const prologue_side *s, int32_t number) {
  const tn_match *m = s->match;
  const tn_epilogue_part *region = &s->prologue->region;
  if (number < m->n_in) return (tn_epilogue_source){TN_EPILOGUE_OPERAND, number};
  int32_t k = 0;
  while (region->out_number[k] - region->nodes[0].first_out + m->n_in != number) k++;
  return (tn_epilogue_source){TN_EPILOGUE_INNER, k};
}

/* The number of an operand in the part, which it gets when it is first asked for. */
static int32_t prologue_operand(prologue_side *s, int32_t number) {
  tn_epilogue_part *p = s->part;
  tn_epilogue_source source = prologue_operand_source(s, number);
  for (int32_t i = 0; i < s->n_in; i++)
    if (p->source[i].place == source.place && p->source[i].at == source.at) return i;
  bool outside = source.place == TN_EPILOGUE_OPERAND;
  p->types[s->n_in] = outside ? s->match->in[number] : prologue_made_type(s->match, number);
  p->constant[s->n_in] = outside ? s->match->constant[number] : 0;
  p->constant_node[s->n_in] = outside ? s->match->constant_node[number] : NULL;
  p->source[s->n_in] = source;
  return s->n_in++;
}

static void prologue_list_operands(prologue_side *s) {
  for (int32_t i = s->from; i < s->to; i++)
    for (int32_t k = 0; k < s->match->nodes[i].node->n_in; k++) {
      int32_t number = s->match->nodes[i].in[k];
      if (number >= 0 && !prologue_makes(s, number)) prologue_operand(s, number);
    }
}

/* ---- nodes and results ---- */

static int32_t prologue_number(prologue_side *s, int32_t number) {
  if (number < 0) return number;
  return prologue_makes(s, number) ? number - s->first + s->n_in : prologue_operand(s, number);
}

static int32_t prologue_list_nodes(prologue_side *s) {
  int32_t *numbers = s->part->numbers;
  for (int32_t i = s->from; i < s->to; i++) {
    const tn_match_node *n = &s->match->nodes[i];
    s->part->nodes[i - s->from] = (tn_match_node){n->node, numbers, prologue_number(s, n->first_out)};
    for (int32_t k = 0; k < n->node->n_in; k++) *numbers++ = prologue_number(s, n->in[k]);
  }
  return s->to - s->from;
}

static void prologue_add_result(prologue_side *s, int32_t number, int32_t *n_out) {
  tn_epilogue_part *p = s->part;
  tn_epilogue_source source = {TN_EPILOGUE_INNER, -1};
  for (int32_t i = 0; i < *n_out; i++)
    if (p->out_number[i] == prologue_number(s, number)) return;
  for (int32_t k = 0; k < s->match->n_out; k++)
    if (s->match->out_number[k] == number) source = (tn_epilogue_source){TN_EPILOGUE_RESULT, k};
  p->types[s->n_in + *n_out] = prologue_made_type(s->match, number);
  p->source[s->n_in + *n_out] = source;
  p->out_number[(*n_out)++] = prologue_number(s, number);
}

/* The values of the part that nodes behind it read. */
static int32_t prologue_list_taken(prologue_side *s) {
  int32_t n_out = 0;
  for (int32_t i = s->to; i < s->match->n_nodes; i++)
    for (int32_t k = 0; k < s->match->nodes[i].node->n_in; k++)
      if (prologue_makes(s, s->match->nodes[i].in[k]))
        prologue_add_result(s, s->match->nodes[i].in[k], &n_out);
  return n_out;
}

/* Fills in the part; returns how many of its results nodes behind it read. */
static int32_t prologue_fill(prologue_side *s) {
  tn_epilogue_part *p = s->part;
  prologue_list_operands(s);
  int32_t n_nodes = prologue_list_nodes(s), n_taken = prologue_list_taken(s), n_out = n_taken;
  for (int32_t k = 0; k < s->match->n_out; k++)
    if (prologue_makes(s, s->match->out_number[k])) prologue_add_result(s, s->match->out_number[k], &n_out);
  tn_epilogue_finish_part(p, s->n_in, n_out, n_nodes);
  return n_taken;
}

tn_status tn_prologue_split(const void *handle, const tn_match *m, int32_t n_region, tn_prologue *p) {
  *p = (tn_prologue){.n_taken = 0};
  TN_TRY(tn_epilogue_new_part(handle, m, &p->region));
  TN_TRY(tn_epilogue_new_part(handle, m, &p->rest));
  const tn_match_node *last = &m->nodes[m->n_nodes - 1];
  int32_t border = m->nodes[n_region].first_out, end = last->first_out + last->node->n_out;
  prologue_side region = {m, 0, n_region, m->n_in, border, p, &p->region, 0},
                rest = {m, n_region, m->n_nodes, border, end, p, &p->rest, 0};
  p->n_taken = prologue_fill(&region);
  prologue_fill(&rest);
  return TN_OK;
}

void tn_prologue_drop(const void *handle, tn_prologue *p) {
  tn_epilogue_drop_part(handle, &p->region);
  tn_epilogue_drop_part(handle, &p->rest);
}

tn_epilogue_source tn_prologue_source(const tn_prologue *p, tn_epilogue_source s) {
  if (s.place == TN_EPILOGUE_OPERAND) return p->rest.source[s.at];
  if (s.place == TN_EPILOGUE_RESULT) return p->rest.source[p->rest.match.n_in + s.at];
  return s;
}
