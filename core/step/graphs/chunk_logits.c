/* core/step/graphs/chunk_logits.c: pass `chunk`: the loss of a large number of classes by chunks of rows. The
 * logits of a chunk, the loss and both gradients are made before the next chunk begins, as in Liger's fused
 * linear cross entropy (Hsu et al., 2024); the sum of the matrix's gradient goes from chunk to chunk. */
#include "core/step/graphs/chunk.h"
#include "core/step/graphs/training_graph.h"

/* Chunks of auto and yes have about so many bytes of logits; auto leaves smaller logits whole. */
enum { CHUNK_BYTES = 64 << 20, LEAST_BYTES = 64 << 20 };

/* ---- whether and how ---- */

static int64_t chunk_logits_bytes(const tn_chunk_region *region, int64_t rows) {
  return rows * region->classes * 4;
}

static int64_t chunk_rows(const tn_settings *s, const tn_chunk_region *region) {
  int64_t rows = 1;
  if (s->chunk_logits > 0) return s->chunk_logits;
  while (chunk_logits_bytes(region, 2 * rows) <= CHUNK_BYTES) rows *= 2;
  return rows;
}

/* The gradient of the matrix is in memory three times: its sum before and behind a chunk, and the chunk's
 * part. Whole logits are so twice where they have gradients: themselves and theirs. */
static bool chunk_pays(const tn_settings *s, const tn_chunk_region *region) {
  int64_t times = region->sum_bytes > 0 ? 2 : 1;
  int64_t whole = times * chunk_logits_bytes(region, region->rows);
  int64_t chunked = times * chunk_logits_bytes(region, region->rows / region->steps) + 2 * region->sum_bytes;
  if (s->chunk_logits != TN_CHUNK_LOGITS_AUTO) return true;
  return whole / times >= LEAST_BYTES && 2 * chunked <= whole;
}

static bool chunk_applies(const tn_settings *s, tn_chunk_region *region) {
  if (region->why[0] != '\0') return false;
  return tn_chunk_divide(region, chunk_rows(s, region)) && chunk_pays(s, region);
}

/* ---- rewriting ---- */

typedef struct chunk_pass {
  const tn_chunk_region *region;
  uint32_t last; /* node of the region */
  bool emitted;
} chunk_pass;

/* Nodes that depend on the region wait for the loop, which waits for all that the region reads. */
static tn_status chunk_emit_and_catch_up(tn_rewrite *r, chunk_pass *p) {
  p->emitted = true;
  TN_TRY(tn_chunk_emit(p->region, r));
  for (uint32_t i = 0; i < p->last; i++)
    if (r->live[i] && p->region->behind[i] && !p->region->inside[i])
      TN_TRY(tn_rewrite_copy(r, &r->from->nodes.v[i]));
  return TN_OK;
}

static tn_status chunk_rewrite_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  chunk_pass *p = context;
  uint32_t i = (uint32_t)(node - r->from->nodes.v);
  if (tn_chunk_is_made_twice(node) && !p->region->inside[i]) return tn_rewrite_copy(r, node);
  if (tn_chunk_is_made_twice(node))
    return tn_chunk_leaves(p->region, r->live, node->first_out) ? tn_rewrite_copy(r, node) : TN_OK;
  if (i == p->last) return chunk_emit_and_catch_up(r, p);
  if (p->region->inside[i] || (p->region->behind[i] && !p->emitted)) return TN_OK;
  return tn_rewrite_copy(r, node);
}

static tn_status chunk_rewrite(const tn_chunk_region *region, tn_graph **graph) {
  tn_graph *to;
  chunk_pass p = {.region = region};
  for (uint32_t i = 0; i < region->g->nodes.n; i++)
    if (region->inside[i] && !tn_chunk_is_made_twice(&region->g->nodes.v[i])) p.last = i;
  TN_TRY(tn_graph_rewrite(*graph, chunk_rewrite_node, &p, &to));
  tn_graph_destroy(*graph);
  *graph = to;
  return TN_OK;
}

/* ---- the pass ---- */

typedef struct chunk_tally {
  int32_t found, kept; /* losses whose logits are chunked, and that stay whole */
  char why[256];       /* of the first that stays */
} chunk_tally;

/* The loss node `number`, counted among all losses of classes; false: there are fewer. */
static bool chunk_find_loss(const tn_graph *g, int32_t number, uint32_t *loss) {
  for (*loss = 0; *loss < g->nodes.n; (*loss)++)
    if (tn_chunk_is_loss(&g->nodes.v[*loss]) && number-- == 0) return true;
  return false;
}

static tn_status chunk_next(tn_env *env, const tn_settings *s, uint32_t loss, tn_graph **graph,
                            chunk_tally *tally) {
  tn_arena arena = tn_arena_new(env);
  tn_chunk_region region;
  tn_status status = tn_chunk_region_find(&arena, *graph, loss, &region);
  if (status == TN_OK && chunk_applies(s, &region)) {
    tally->found++;
    status = chunk_rewrite(&region, graph);
  } else if (tally->kept++ == 0) {
    memcpy(tally->why, region.why, sizeof tally->why);
  }
  tn_arena_free(&arena);
  return tn_wrap(env, status, "pass chunk");
}

static tn_status chunk_refuse(tn_env *env, const tn_settings *s, const chunk_tally *tally) {
  const char *why = tally->kept == 0 ? "no cross_entropy or log_softmax is in the loss" : tally->why;
  return tn_failf(env, TN_EINVAL,
                  "%s: [run] chunk_logits = %s, but no logits can be divided into chunks: %s; expected auto "
                  "or no",
                  s->chunk_logits_where, s->run.chunk_logits,
                  *why != '\0' ? why : "a chunk has all rows already");
}

tn_status tn_pass_chunk(tn_env *env, const tn_settings *s, bool must, tn_graph **graph) {
  chunk_tally tally = {0};
  uint32_t loss;
  if (s->chunk_logits == TN_CHUNK_LOGITS_NO) return TN_OK;
  while (chunk_find_loss(*graph, tally.kept, &loss)) TN_TRY(chunk_next(env, s, loss, graph, &tally));
  bool asked = s->chunk_logits != TN_CHUNK_LOGITS_AUTO;
  return must && asked && tally.found == 0 ? chunk_refuse(env, s, &tally) : TN_OK;
}

tn_status tn_training_chunk(tn_training_graph *t) {
  size_t first = t->model->graph->outputs.n;
  TN_TRY(tn_training_add_outputs(t));
  TN_TRY(tn_pass_chunk(t->env, t->settings, t->settings->turn == NULL, &t->model->graph));
  tn_training_take_outputs(t, first);
  return TN_OK;
}
