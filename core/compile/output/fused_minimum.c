/* core/compile/output/fused_minimum.c: see fused_minimum.h. One pass over the nodes in their order gives each
 * value the values in memory that it is computed from, and adds up what launches read and write. */
#include "core/compile/output/fused_minimum.h"

#include "core/graph/uses.h"

typedef struct fused_value {
  const tn_val *source; /* the kept values that it is computed from: itself alone where it is kept */
  int32_t n_sources;
  int32_t ready;  /* 2 x the launch in which it becomes known; 1 more: known when that launch has ended */
  int32_t launch; /* that makes it; 0: none does */
  bool written;   /* its bytes are counted */
} fused_value;

typedef struct fused_read {
  int32_t launch;
  tn_val value;
} fused_read;

typedef struct fused_count {
  const tn_graph *graph;
  tn_arena arena;
  tn_uses uses;
  bool *live; /* per node */
  fused_value *values;
  int32_t *seen; /* per value: the union that has it already */
  int32_t n_unions;
  TN_VEC(fused_read) reads;
  int32_t n_launches;
  double bytes;
} fused_count;

/* Kept values, each once. */
typedef struct fused_sources {
  tn_val *v;
  int32_t n;
  double bytes;
} fused_sources;

static double fused_bytes_of(const fused_count *f, tn_val v) {
  return (double)tn_type_bytes(tn_graph_type(f->graph, v));
}

/* ---- values ---- */

static tn_status fused_keep(fused_count *f, tn_val v, int32_t launch, int32_t ready, bool written) {
  const tn_val *source = tn_arena_copy(&f->arena, &v, sizeof v);
  f->values[v] = (fused_value){source, 1, ready, launch, written};
  return source != NULL ? TN_OK : TN_ENOMEM;
}

static bool fused_is_kept(const fused_count *f, tn_val v) {
  return f->values[v].n_sources == 1 && f->values[v].source[0] == v;
}

/* The nodes, commits and outputs that read a value. */
static int32_t fused_users(const fused_count *f, tn_val v) {
  int32_t n = f->uses.outside[v];
  for (int32_t i = f->uses.start[v]; i < f->uses.start[v + 1]; i++) {
    uint32_t user = f->uses.node[i];
    bool again = i > f->uses.start[v] && f->uses.node[i - 1] == user;
    n += f->live[user] && !again;
  }
  return n;
}

static int32_t fused_ready(const fused_count *f, const tn_val *in, int32_t n) {
  int32_t last = 0;
  for (int32_t i = 0; i < n; i++)
    if (in[i] != 0 && f->values[in[i]].ready > last) last = f->values[in[i]].ready;
  return last;
}

static tn_status fused_union(fused_count *f, const tn_val *in, int32_t n, fused_sources *sources) {
  size_t most = 0;
  int32_t mark = ++f->n_unions;
  for (int32_t i = 0; i < n; i++) most += (size_t)f->values[in[i]].n_sources;
  *sources = (fused_sources){.v = tn_arena_alloc(&f->arena, (most + 1) * sizeof(tn_val))};
  if (sources->v == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < f->values[in[i]].n_sources; k++) {
      tn_val v = f->values[in[i]].source[k];
      if (f->seen[v] == mark) continue;
      f->seen[v] = mark;
      sources->v[sources->n++] = v;
      sources->bytes += fused_bytes_of(f, v);
    }
  return TN_OK;
}

/* ---- reads ---- */

/* A launch reads a value once, and one that it has made not at all. */
static tn_status fused_read_value(fused_count *f, int32_t launch, tn_val v) {
  const fused_read read = {launch, v};
  if (launch > 0 && f->values[v].launch == launch) return TN_OK;
  for (size_t i = 0; i < f->reads.n; i++)
    if (f->reads.v[i].launch == launch && f->reads.v[i].value == v) return TN_OK;
  f->bytes += fused_bytes_of(f, v);
  return tn_vec_push(f->graph->env, &f->reads, read);
}

static tn_status fused_read_sources(fused_count *f, int32_t launch, tn_val v) {
  for (int32_t i = 0; i < f->values[v].n_sources; i++)
    TN_TRY(fused_read_value(f, launch, f->values[v].source[i]));
  return TN_OK;
}

static tn_status fused_read_operands(fused_count *f, int32_t launch, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_in; i++) TN_TRY(fused_read_sources(f, launch, node->in[i]));
  return TN_OK;
}

/* ---- nodes ---- */

/* Products, lookups, and collectives: of class `other`, and with a gradient, unlike updates of parameters. */
static bool fused_is_launch(const tn_gnode *node) {
  uint32_t class = node->op->op_class;
  return class == TN_CLASS_MATMUL || class == TN_CLASS_INDEX ||
         (class == TN_CLASS_OTHER && (node->op->flags & TN_OP_NONDIFF) == 0);
}

static bool fused_is_reduction(const tn_gnode *node) {
  uint32_t class = node->op->op_class;
  return class == TN_CLASS_REDUCE || class == TN_CLASS_NORM || class == TN_CLASS_LOSS;
}

/* A lookup reads as many bytes of its table as it returns. */
static tn_status fused_add_launch(fused_count *f, const tn_gnode *node) {
  int32_t launch = ++f->n_launches;
  double made = fused_bytes_of(f, node->first_out);
  for (int32_t i = 0; i < node->n_in; i++) {
    bool part = node->op->op_class == TN_CLASS_INDEX && fused_bytes_of(f, node->in[i]) > made;
    if (part) f->bytes += made;
    if (!part) TN_TRY(fused_read_sources(f, launch, node->in[i]));
  }
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val v = node->first_out + (tn_val)i;
    f->bytes += fused_bytes_of(f, v);
    TN_TRY(fused_keep(f, v, launch, 2 * launch, true));
  }
  return TN_OK;
}

/* The operand in whose launch a pointwise op can be computed: the one that becomes known last, where this op
 * alone reads it, or 0. */
static tn_val fused_open_operand(const fused_count *f, const tn_gnode *node) {
  uint32_t class = node->op->op_class;
  bool pointwise =
      class == TN_CLASS_POINTWISE || class == TN_CLASS_RANDOM || (node->op->flags & TN_OP_VIEW) != 0;
  int32_t last = fused_ready(f, node->in, node->n_in);
  if (!pointwise || node->n_out != 1 || last % 2 != 0) return 0;
  for (int32_t i = 0; i < node->n_in; i++) {
    tn_val v = node->in[i];
    if (v != 0 && f->values[v].ready == last && f->values[v].launch > 0 && fused_is_kept(f, v) &&
        fused_users(f, v) == 1 && fused_bytes_of(f, node->first_out) <= fused_bytes_of(f, v))
      return v;
  }
  return 0;
}

/* The result takes the place of the operand. */
static tn_status fused_extend_launch(fused_count *f, const tn_gnode *node, tn_val open) {
  int32_t launch = f->values[open].launch;
  f->bytes += fused_bytes_of(f, node->first_out) - fused_bytes_of(f, open);
  TN_TRY(fused_read_operands(f, launch, node));
  return fused_keep(f, node->first_out, launch, 2 * launch, true);
}

/* A result of a reduction that is smaller than what it reduces. Others of such an op, like a norm's first
 * result, are computed by their readers. */
static bool fused_is_reduced(const fused_count *f, const tn_gnode *node, tn_val v) {
  return fused_is_reduction(node) && fused_bytes_of(f, v) < fused_bytes_of(f, node->in[0]);
}

static bool fused_has_reduced(const fused_count *f, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_out; i++)
    if (fused_is_reduced(f, node, node->first_out + (tn_val)i)) return true;
  return false;
}

/* The launch that computes a reduction: that which makes the last of its operands, or a new one where they
 * are known after a launch has ended. */
static tn_status fused_reduce(fused_count *f, const tn_gnode *node, int32_t *ready) {
  int32_t launch = *ready % 2 == 0 ? *ready / 2 : 0;
  if (launch == 0) launch = ++f->n_launches;
  TN_TRY(fused_read_operands(f, launch, node));
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val v = node->first_out + (tn_val)i;
    if (!fused_is_reduced(f, node, v)) continue;
    f->bytes += fused_bytes_of(f, v);
    TN_TRY(fused_keep(f, v, launch, 2 * launch + 1, true));
  }
  *ready = 2 * launch + 1;
  return TN_OK;
}

/* Computed by every reader, or, where that is less, by the first one, which writes it for the others: the
 * bytes that it need not read pay for those that it writes. */
static tn_status fused_add_free(fused_count *f, const tn_gnode *node, int32_t ready) {
  fused_sources sources;
  double anew = 0, once = 0;
  TN_TRY(fused_union(f, node->in, node->n_in, &sources));
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val v = node->first_out + (tn_val)i;
    if (fused_is_reduced(f, node, v)) continue;
    anew += fused_users(f, v) * sources.bytes;
    once += fused_users(f, v) * fused_bytes_of(f, v);
  }
  bool keep = anew > sources.bytes + once;
  if (keep) f->bytes += sources.bytes;
  for (int32_t i = 0; i < node->n_out; i++) {
    tn_val v = node->first_out + (tn_val)i;
    if (fused_is_reduced(f, node, v)) continue;
    f->values[v] = (fused_value){sources.v, sources.n, ready, 0, false};
    if (keep) TN_TRY(fused_keep(f, v, 0, ready, true));
  }
  return TN_OK;
}

/* A part of a kept value is read where it lies. */
static bool fused_is_part(const fused_count *f, const tn_gnode *node) {
  return node->op->op_class == TN_CLASS_MOVE && node->n_in == 1 && node->n_out == 1 &&
         fused_is_kept(f, node->in[0]) && fused_bytes_of(f, node->first_out) < fused_bytes_of(f, node->in[0]);
}

static tn_status fused_add_node(fused_count *f, const tn_gnode *node) {
  tn_node_kind kind = tn_node_kind_of(node);
  int32_t ready = fused_ready(f, node->in, node->n_in);
  if (kind == TN_NODE_INPUT || kind == TN_NODE_STATE) return fused_keep(f, node->first_out, 0, 0, false);
  if (fused_is_launch(node)) return fused_add_launch(f, node);
  tn_val open = fused_open_operand(f, node);
  if (open != 0) return fused_extend_launch(f, node, open);
  if (fused_is_part(f, node)) return fused_keep(f, node->first_out, 0, ready, false);
  if (fused_has_reduced(f, node)) TN_TRY(fused_reduce(f, node, &ready));
  if (fused_is_reduction(node)) ready |= 1; /* it needs whole rows */
  return fused_add_free(f, node, ready);
}

/* Commits and outputs that no launch has written are written by a last one. */
static tn_status fused_add_end(fused_count *f, tn_val v, bool is_written_back) {
  if (v == 0 || f->values[v].written) return TN_OK;
  if (is_written_back) f->bytes += fused_bytes_of(f, v);
  return fused_read_sources(f, f->n_launches, v);
}

static tn_status fused_add_ends(fused_count *f) {
  const tn_graph *g = f->graph;
  f->n_launches++;
  for (size_t i = 0; i < g->commits.n; i++) {
    TN_TRY(fused_add_end(f, g->commits.v[i].value, true));
    TN_TRY(fused_add_end(f, g->commits.v[i].predicate, false));
  }
  for (size_t i = 0; i < g->outputs.n; i++) TN_TRY(fused_add_end(f, g->outputs.v[i].value, true));
  return TN_OK;
}

static tn_status fused_count_all(fused_count *f) {
  const tn_graph *g = f->graph;
  f->values = tn_arena_alloc(&f->arena, g->values.n * sizeof *f->values);
  f->seen = tn_arena_alloc(&f->arena, g->values.n * sizeof *f->seen);
  if (f->values == NULL || f->seen == NULL) return TN_ENOMEM;
  TN_TRY(tn_uses_create(&f->arena, g, &f->uses));
  TN_TRY(tn_graph_live(g, &f->live));
  for (size_t i = 0; i < g->nodes.n; i++)
    if (f->live[i]) TN_TRY(fused_add_node(f, &g->nodes.v[i]));
  return fused_add_ends(f);
}

tn_status tn_fused_minimum(const tn_graph *graph, double *bytes) {
  fused_count f = {.graph = graph, .arena = tn_arena_new(graph->env)};
  tn_status status = fused_count_all(&f);
  *bytes = f.bytes;
  tn_vec_free(graph->env, &f.reads);
  tn_release(graph->env, f.live);
  tn_arena_free(&f.arena);
  return status;
}
