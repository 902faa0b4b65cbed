/* core/step/graphs/chunk_emit.c: the loop over chunks of rows (core/graph/loop). Values from outside of the
 * region are its sequences and constants; sums over all rows are its states, in f32. */
#include <stdio.h>
#include <string.h>

#include "core/config/options/options.h"
#include "core/graph/loop/loop.h"
#include "core/graph/op/attributes.h"
#include "core/graph/op/schema.h"
#include "core/step/graphs/chunk.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

/* A value from outside, as the operands of one form read it. */
typedef struct chunk_operand {
  tn_val value, inner;
  tn_chunk_form form;
  int32_t rank; /* to which a value that is broadcast is broadcast */
} chunk_operand;

typedef struct chunk_writer {
  const tn_chunk_region *region;
  tn_rewrite *outer;
  tn_graph *body;
  tn_build *b; /* of the body */
  tn_val *map; /* value of the region -> that of a chunk */
  TN_VEC(chunk_operand) operands;
  TN_VEC(tn_val)
  outputs, sums; /* values of the region that others read, in the order of the loop's results */
  tn_loop_parts parts;
} chunk_writer;

/* ---- types ---- */

/* The first dimensions of a chunk's value of this form. */
static int32_t emit_chunk_lead(const tn_chunk_region *region, tn_chunk_form form, int64_t *lead) {
  int64_t rows = 1;
  for (int32_t i = 0; i < region->n_lead; i++) rows *= lead[i] = region->chunk[i];
  if (form == TN_CHUNK_FLAT) lead[0] = rows;
  return form == TN_CHUNK_FLAT ? 1 : region->n_lead;
}

static bool emit_is_divided(tn_chunk_form form) { return form == TN_CHUNK_ROWS || form == TN_CHUNK_FLAT; }

static tn_type emit_chunk_type(const tn_chunk_region *region, const tn_type *type, tn_chunk_form form) {
  tn_type chunk = *type;
  int64_t lead[TN_MAX_RANK];
  int32_t n = emit_chunk_lead(region, form, lead);
  for (int32_t i = 0; emit_is_divided(form) && i < n; i++) chunk.dims[i] = lead[i];
  return chunk;
}

/* ---- operands ---- */

/* A value that belongs to some of the rows, for all of them. */
static tn_val emit_spread(chunk_writer *w, tn_val v, int32_t rank) {
  tn_build *b = w->outer->b;
  tn_type type = *tn_val_type(b, v), all = {.dtype = type.dtype, .rank = rank};
  for (int32_t i = 0; i < rank; i++)
    all.dims[i] = i < w->region->n_lead  ? w->region->lead[i]
                  : i < rank - type.rank ? 1
                                         : type.dims[i - rank + type.rank];
  return tn_broadcast(b, v, all.rank, all.dims);
}

/* The chunks of a value, one behind the other. */
static tn_val emit_sequence(chunk_writer *w, tn_val v, tn_chunk_form form) {
  tn_type chunk = emit_chunk_type(w->region, tn_val_type(w->outer->b, v), form);
  tn_type all = tn_loop_stacked_type(&chunk, w->region->steps);
  return tn_reshape(w->outer->b, v, all.rank, all.dims);
}

static tn_status emit_add_operand(chunk_writer *w, chunk_operand *operand) {
  char name[24];
  const void *handle = w->body->env;
  bool spread = operand->form == TN_CHUNK_SPREAD;
  tn_val outer = w->outer->map[operand->value];
  tn_chunk_form form = spread ? TN_CHUNK_ROWS : operand->form;
  if (outer == 0) return tn_failf(handle, TN_EINTERNAL, "pass chunk reads a value that is not made yet");
  if (spread) outer = emit_spread(w, outer, operand->rank);
  tn_type type = emit_chunk_type(w->region, tn_val_type(w->outer->b, outer), form);
  bool divided = emit_is_divided(form);
  snprintf(name, sizeof name, "%c%zu", divided ? 'x' : 'c', w->operands.n);
  operand->inner = tn_graph_input(w->body, name, &type);
  if (operand->inner == 0) return TN_ENOMEM;
  tn_loop_value value = {.inner = operand->inner, .outer = divided ? emit_sequence(w, outer, form) : outer};
  TN_TRY(tn_vec_push(handle, divided ? &w->parts.sequences : &w->parts.constants, value));
  TN_TRY(tn_vec_push(handle, &w->operands, *operand));
  return tn_build_status(w->outer->b);
}

static tn_status emit_operand(chunk_writer *w, const tn_gnode *node, int32_t k, tn_val *in) {
  const tn_graph *g = w->region->g;
  chunk_operand wanted = {.value = node->in[k], .form = tn_chunk_operand_form(w->region, node, k)};
  if (wanted.form == TN_CHUNK_SPREAD) wanted.rank = tn_graph_type(g, node->first_out)->rank;
  *in = wanted.value;
  if (wanted.value == 0) return TN_OK;
  if (w->region->inside[g->values.v[wanted.value].node]) return *in = w->map[wanted.value], TN_OK;
  for (size_t i = 0; i < w->operands.n; i++) {
    const chunk_operand *o = &w->operands.v[i];
    if (o->value == wanted.value && o->form == wanted.form && o->rank == wanted.rank)
      return *in = o->inner, TN_OK;
  }
  TN_TRY(emit_add_operand(w, &wanted));
  *in = wanted.inner;
  return TN_OK;
}

/* ---- nodes ---- */

/* The dimensions that reshape, broadcast, full and iota have as an attribute are those of the chunk. */
static tn_status emit_chunk_dims(chunk_writer *w, const tn_gnode *node, void *attributes) {
  const tn_option *dims = tn_options_find(&node->op->item, "dims");
  if (dims == NULL) return TN_OK;
  tn_type type = emit_chunk_type(w->region, tn_graph_type(w->region->g, node->first_out),
                                 (tn_chunk_form)w->region->form[node->first_out]);
  int64_t *v = tn_arena_copy(&w->body->arena, type.dims, ((size_t)type.rank + 1) * sizeof *v);
  if (v == NULL) return TN_ENOMEM;
  *(tn_ints *)(void *)((char *)attributes + dims->offset) = (tn_ints){type.rank, v};
  return TN_OK;
}

static tn_status emit_node_with(chunk_writer *w, const tn_gnode *node, tn_val *in) {
  tn_val first;
  void *attributes = tn_attributes_copy(&w->body->arena, &node->op->item, node->attributes);
  if (attributes == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < node->n_in; k++) TN_TRY(emit_operand(w, node, k, &in[k]));
  TN_TRY(emit_chunk_dims(w, node, attributes));
  TN_TRY(tn_graph_add(w->body, node->def, attributes, in, node->n_in, node->layer, node->where, &first));
  for (int32_t i = 0; i < node->n_out; i++) w->map[node->first_out + (tn_val)i] = first + (tn_val)i;
  return TN_OK;
}

static tn_status emit_node(chunk_writer *w, const tn_gnode *node) {
  tn_val *in = tn_arena_alloc(w->region->arena, ((size_t)node->n_in + 1) * sizeof *in);
  return in != NULL ? emit_node_with(w, node, in) : TN_ENOMEM;
}

/* ---- results ---- */

bool tn_chunk_leaves(const tn_chunk_region *region, const bool *live, tn_val v) {
  const tn_uses *uses = &region->uses;
  bool leaves = uses->outside[v] > 0;
  for (int32_t i = uses->start[v]; i < uses->start[v + 1]; i++)
    leaves |= live[uses->node[i]] && !region->inside[uses->node[i]];
  return leaves;
}

/* The sum so far goes from chunk to chunk. */
static tn_status emit_add_sum(chunk_writer *w, tn_val v) {
  char name[24];
  tn_type type = *tn_graph_type(w->region->g, v);
  type.dtype = type.dtype == TN_F64 ? TN_F64 : TN_F32;
  snprintf(name, sizeof name, "h%zu", w->sums.n);
  tn_loop_value sum = {.inner = tn_graph_input(w->body, name, &type),
                       .outer = tn_full(w->outer->b, &type, 0)};
  if (sum.inner == 0) return TN_ENOMEM;
  TN_TRY(tn_vec_push(w->body->env, &w->parts.states, sum));
  tn_val next = tn_add(w->b, sum.inner, tn_to_dtype(w->b, w->map[v], type.dtype));
  TN_TRY(tn_vec_push(w->body->env, &w->parts.next, next));
  TN_TRY(tn_build_status(w->b));
  return tn_vec_push(w->body->env, &w->sums, v);
}

static tn_status emit_add_results(chunk_writer *w, const tn_gnode *node) {
  for (int32_t k = 0; k < node->n_out; k++) {
    tn_val v = node->first_out + (tn_val)k;
    if (tn_chunk_is_made_twice(node) || !tn_chunk_leaves(w->region, w->outer->live, v)) continue;
    if (w->region->form[v] == TN_CHUNK_SUM) {
      TN_TRY(emit_add_sum(w, v));
      continue;
    }
    TN_TRY(tn_vec_push(w->body->env, &w->parts.outputs, w->map[v]));
    TN_TRY(tn_vec_push(w->body->env, &w->outputs, v));
  }
  return TN_OK;
}

/* The loop's results in the types that the region gave them. */
static void emit_map_results(chunk_writer *w, tn_val first) {
  tn_build *b = w->outer->b;
  for (size_t i = 0; i < w->outputs.n + w->sums.n; i++) {
    bool is_sum = i >= w->outputs.n;
    tn_val v = is_sum ? w->sums.v[i - w->outputs.n] : w->outputs.v[i];
    const tn_type type = *tn_graph_type(w->region->g, v);
    tn_val made = tn_op_result(b, first, (int32_t)i);
    w->outer->map[v] = is_sum ? tn_to_dtype(b, made, type.dtype) : tn_reshape(b, made, type.rank, type.dims);
  }
}

/* ---- the loop ---- */

static tn_status emit_body(chunk_writer *w) {
  const tn_graph *g = w->region->g;
  for (size_t i = 0; i < g->nodes.n; i++)
    if (w->region->inside[i]) TN_TRY(emit_node(w, &g->nodes.v[i]));
  for (size_t i = 0; i < g->nodes.n; i++)
    if (w->region->inside[i]) TN_TRY(emit_add_results(w, &g->nodes.v[i]));
  w->parts.from = w->body;
  w->parts.steps = w->region->steps;
  emit_map_results(w, tn_loop_emit(w->outer->b, &w->parts));
  return tn_build_status(w->outer->b);
}

tn_status tn_chunk_emit(const tn_chunk_region *region, tn_rewrite *r) {
  const tn_graph *g = region->g;
  chunk_writer w = {.region = region, .outer = r};
  tn_builder *builder = NULL;
  TN_TRY(tn_graph_create(g->env, g->ops, &w.body));
  w.map = tn_arena_alloc(region->arena, tn_size_mul(g->values.n, sizeof *w.map));
  tn_status status = w.map != NULL ? tn_builder_create(w.body, &builder) : TN_ENOMEM;
  if (status == TN_OK) {
    w.b = tn_builder_handle(builder);
    status = emit_body(&w);
  }
  tn_builder_destroy(builder);
  tn_vec_free(g->env, &w.operands);
  tn_vec_free(g->env, &w.outputs);
  tn_vec_free(g->env, &w.sums);
  tn_loop_parts_free(g->env, &w.parts);
  tn_graph_destroy(w.body);
  return status;
}
