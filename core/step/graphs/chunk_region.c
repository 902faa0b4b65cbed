/* core/step/graphs/chunk_region.c: finds the part of a graph that computes with logits: from the product that
 * makes them to all values that have no number for each class. */
#include <stdio.h>

#include "core/step/graphs/chunk.h"

static const tn_gnode *region_maker(const tn_chunk_region *r, tn_val v) { return tn_graph_maker(r->g, v); }

static bool region_is_inside(const tn_chunk_region *r, tn_val v) {
  return v != 0 && r->inside[r->g->values.v[v].node];
}

static tn_status region_fail(tn_chunk_region *r, const char *why) {
  if (r->why[0] == '\0') snprintf(r->why, sizeof r->why, "%s", why);
  return TN_OK;
}

/* ---- the product ---- */

/* Back from the loss, through caps, masks, casts and shapes, along the operand of the most elements. */
static tn_val region_product(const tn_graph *g, const tn_gnode *loss) {
  const tn_gnode *node = loss;
  while (node->n_in > 0 && !tn_text_equal(node->op->item.name, "matmul")) {
    tn_val largest = node->in[0];
    bool shape = tn_text_equal(node->op->item.name, "reshape");
    if (node != loss && !shape && node->op->op_class != TN_CLASS_POINTWISE) return 0;
    for (int32_t k = 1; k < node->n_in && node != loss; k++)
      if (node->in[k] != 0 &&
          tn_type_count(tn_graph_type(g, node->in[k])) >= tn_type_count(tn_graph_type(g, largest)) &&
          g->values.v[node->in[k]].node > g->values.v[largest].node)
        largest = node->in[k];
    node = tn_graph_maker(g, largest);
  }
  return node->n_in > 0 ? node->first_out : 0;
}

/* ---- the nodes ---- */

static bool region_has_large(const tn_chunk_region *r, const tn_gnode *node) {
  bool large = tn_chunk_is_large(r, tn_graph_type(r->g, node->first_out));
  for (int32_t k = 0; !large && k < node->n_in; k++)
    large = node->in[k] != 0 && tn_chunk_is_large(r, tn_graph_type(r->g, node->in[k]));
  return large;
}

/* The nodes behind one of the region's. */
static void region_mark_behind(tn_chunk_region *r) {
  for (size_t i = 0; i < r->g->nodes.n; i++) {
    const tn_gnode *node = &r->g->nodes.v[i];
    r->behind[i] = false;
    for (int32_t k = 0; r->live[i] && k < node->n_in; k++) {
      size_t maker = node->in[k] != 0 ? r->g->values.v[node->in[k]].node : i;
      bool counts = maker != i && !tn_chunk_is_made_twice(&r->g->nodes.v[maker]);
      r->behind[i] |= counts && (r->inside[maker] || r->behind[maker]);
    }
  }
}

/* Numbers that need no operand, and large values that are no logits, such as comparisons of classes and
 * targets, are made chunk by chunk as well. */
static bool region_takes_in(const tn_chunk_region *r, tn_val v) {
  const tn_gnode *maker = region_maker(r, v);
  return tn_chunk_is_made_twice(maker) || (maker->n_in > 0 && tn_chunk_is_large(r, tn_graph_type(r->g, v)));
}

static bool region_take_operands(tn_chunk_region *r) {
  bool changed = false;
  for (size_t i = r->g->nodes.n; i-- > 0;) {
    const tn_gnode *node = &r->g->nodes.v[i];
    for (int32_t k = 0; r->inside[i] && k < node->n_in; k++)
      if (node->in[k] != 0 && !region_is_inside(r, node->in[k]) && region_takes_in(r, node->in[k]))
        changed = r->inside[r->g->values.v[node->in[k]].node] = true;
  }
  return changed;
}

/* The nodes between two of the region belong to it. */
static bool region_close(tn_chunk_region *r, bool *before) {
  bool changed = false;
  region_mark_behind(r);
  for (size_t i = r->g->nodes.n; i-- > 0;) {
    const tn_gnode *node = &r->g->nodes.v[i];
    if (r->behind[i] && before[i] && !r->inside[i]) changed = r->inside[i] = true;
    for (int32_t k = 0; k < node->n_in; k++)
      if (node->in[k] != 0) before[r->g->values.v[node->in[k]].node] |= r->inside[i] || before[i];
  }
  return changed;
}

static tn_status region_collect(tn_chunk_region *r) {
  const tn_graph *g = r->g;
  bool *before = tn_arena_alloc(r->arena, g->nodes.n);
  if (before == NULL) return TN_ENOMEM;
  r->inside[g->values.v[r->logits].node] = true;
  region_mark_behind(r);
  for (size_t i = 0; i < g->nodes.n; i++)
    if (r->behind[i] && region_has_large(r, &g->nodes.v[i])) r->inside[i] = true;
  bool taken, closed;
  do {
    taken = region_take_operands(r);
    closed = region_close(r, before);
  } while (taken || closed);
  return TN_OK;
}

/* ---- whether it can be divided ---- */

static void region_note_sum(tn_chunk_region *r, tn_val v) {
  if (r->form[v] == TN_CHUNK_SUM) r->sum_bytes += 4 * tn_type_count(tn_graph_type(r->g, v));
}

static tn_status region_check_results(tn_chunk_region *r, const tn_gnode *node) {
  if (tn_chunk_is_made_twice(node)) return TN_OK;
  for (int32_t k = 0; k < node->n_out; k++) {
    tn_val v = node->first_out + (tn_val)k;
    region_note_sum(r, v);
    if (tn_chunk_is_large(r, tn_graph_type(r->g, v)) && tn_chunk_leaves(r, r->live, v))
      return region_fail(r, r->uses.outside[v] > 0
                                ? "an output or state is a value with a number for each class"
                                : "a value with a number for each class is read by more than the loss");
  }
  return TN_OK;
}

static tn_status region_check(tn_chunk_region *r) {
  for (size_t i = 0; i < r->g->nodes.n && r->why[0] == '\0'; i++) {
    const tn_gnode *node = &r->g->nodes.v[i];
    if (!r->inside[i]) continue;
    r->in_loss |= tn_chunk_is_loss(node);
    if (tn_chunk_rule(r, node)) TN_TRY(region_check_results(r, node));
  }
  return r->in_loss ? TN_OK : region_fail(r, "no cross_entropy or log_softmax reads the product");
}

/* ---- the region ---- */

static tn_status region_measure(tn_chunk_region *r) {
  const tn_gnode *product = region_maker(r, r->logits);
  const tn_type *type = tn_graph_type(r->g, r->logits);
  r->n_lead = type->rank - 1;
  r->classes = type->dims[type->rank - 1];
  r->rows = 1;
  for (int32_t i = 0; i < r->n_lead; i++) r->rows *= r->lead[i] = type->dims[i];
  int64_t width = tn_graph_type(r->g, product->in[0])->dims[type->rank - 1];
  if (tn_graph_type(r->g, product->in[1])->rank != 2 || r->n_lead + 2 > TN_MAX_RANK)
    return region_fail(r, "the product is not that of rows and a matrix");
  return r->classes > width ? TN_OK : region_fail(r, "there are no more classes than columns of the matrix");
}

tn_status tn_chunk_region_find(tn_arena *arena, const tn_graph *g, uint32_t loss, tn_chunk_region *r) {
  bool *live = NULL;
  *r = (tn_chunk_region){.arena = arena, .g = g, .logits = region_product(g, &g->nodes.v[loss])};
  if (r->logits == 0) return region_fail(r, "the logits are not made by a product");
  r->inside = tn_arena_alloc(arena, g->nodes.n);
  r->behind = tn_arena_alloc(arena, g->nodes.n);
  r->form = tn_arena_alloc(arena, g->values.n);
  if (r->inside == NULL || r->behind == NULL || r->form == NULL) return TN_ENOMEM;
  TN_TRY(region_measure(r));
  if (r->why[0] != '\0') return TN_OK;
  TN_TRY(tn_uses_create(arena, g, &r->uses));
  tn_status status = tn_graph_live(g, &live);
  r->live = live;
  if (status == TN_OK) status = region_collect(r);
  if (status == TN_OK) status = region_check(r);
  tn_release(g->env, live);
  r->live = NULL;
  return status;
}

/* The greatest divisor of n that is at most `most`. */
static int64_t region_divisor(int64_t n, int64_t most) {
  int64_t d = most < n ? most : n;
  while (d > 1 && n % d != 0) d--;
  return d > 0 ? d : 1;
}

/* A chunk lies contiguous: whole trailing dimensions, and a part of the one in front of them. */
bool tn_chunk_divide(tn_chunk_region *r, int64_t rows) {
  int64_t left = rows;
  r->steps = 1;
  for (int32_t i = r->n_lead; i-- > 0;) {
    r->chunk[i] = region_divisor(r->lead[i], left);
    r->steps *= r->lead[i] / r->chunk[i];
    left = r->chunk[i] == r->lead[i] ? left / r->lead[i] : 1;
  }
  return r->steps > 1;
}
