/* backends/onednn/own/attention.c: attention and its gradient as one pass over tiles, without ever keeping
 * the probabilities of all pairs (Dao et al., "FlashAttention", NeurIPS 2022; Rabe and Staats,
 * "Self-attention does not need O(n^2) memory", 2021). A chunk is some heads of the batch, each of them
 * whole, so that sums do not depend on threads. */
#include "own/attention.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels.h"
#include "own/gemm.h"
#include "tenon/attributes.h"

enum { TILE = TN_ATTENTION_TILE, WIDTH = TN_ATTENTION_WIDTH, PANEL = TILE * WIDTH };

typedef struct attention_plan {
  const tn_attention_loops *loops;
  const tn_gemm_loops *gemm;
  int64_t heads, heads_per_chunk, queries, keys, width, value_width;
  bool causal, bf16;
  float scale;
} attention_plan;

/* ---- query and prepare --------------------------------------------------------------------------- */

static tn_status check(tn_env *env, const tn_match *m) {
  const tn_attention_attributes *a = m->nodes[0].node.attributes;
  const tn_type *q = m->in[0], *v = m->in[2];
  if (q->dtype != TN_F32 && q->dtype != TN_BF16)
    return tn_fail(env, TN_EUNSUPPORTED, "dtype", "elements are %s, expected f32 or bf16",
                   tn_dtype_name(q->dtype));
  if (a->math != TN_MATH_FULL)
    return tn_fail(env, TN_EUNSUPPORTED, "math", "products are rounded to tf32, expected full precision");
  if (q->dims[3] > WIDTH || v->dims[3] > WIDTH || q->dims[3] < 1 || v->dims[3] < 1)
    return tn_fail(env, TN_EUNSUPPORTED, "shape", "heads are %lld and %lld wide, expected 1 to %d",
                   (long long)q->dims[3], (long long)v->dims[3], WIDTH);
  return TN_OK;
}

/* A chunk is worth some tens of microseconds. */
static void make_plan(const tn_match *m, const void *backend, attention_plan *p) {
  const tn_attention_attributes *a = m->nodes[0].node.attributes;
  const tn_type *q = m->in[0], *v = m->in[2];
  int32_t isa = tn_onednn_isa_of(backend);
  *p = (attention_plan){.loops = TN_LOOPS_PICK_AT(tn_loops_attention, isa),
                        .gemm = TN_LOOPS_PICK_AT(tn_loops_gemm, isa),
                        .heads = q->dims[0] * q->dims[1],
                        .queries = q->dims[2],
                        .keys = v->dims[2],
                        .width = q->dims[3],
                        .value_width = v->dims[3],
                        .causal = a->causal != 0,
                        .bf16 = q->dtype == TN_BF16,
                        .scale = (float)(a->scale != 0 ? a->scale : 1 / sqrt((double)q->dims[3]))};
  double work = (double)p->queries * (double)p->keys * (double)(p->width + p->value_width);
  p->heads_per_chunk = work > 0 && work < 1e6 ? (int64_t)(1e6 / work) : 1;
}

/* bf16 operands and results are f32 in the workspace. */
static int64_t count_f32(const tn_match *m) {
  int64_t n = 0;
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i]->dtype == TN_BF16) n += (tn_type_count(m->in[i]) + 15) / 16 * 16;
  for (int32_t i = 0; i < m->n_out; i++)
    if (m->out[i]->dtype == TN_BF16) n += (tn_type_count(m->out[i]) + 15) / 16 * 16;
  return n;
}

static tn_status query(tn_query *q) {
  tn_status status = check(&q->env, q->match);
  if (status != TN_OK) return status;
  attention_plan p;
  make_plan(q->match, q->backend, &p);
  double pairs = (double)p.heads * (double)p.queries * (double)p.keys;
  tn_variant v = {.struct_size = sizeof v,
                  .name = "tiles",
                  .workspace_bytes = 4 * count_f32(q->match),
                  .keep_bytes = sizeof p,
                  .cost_s = 1e-6 + pairs * (double)(p.width + p.value_width) * q->match->n_out / 3e10,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **made) {
  attention_plan *plan = tn_new(p, sizeof *plan);
  *made = plan;
  if (plan == NULL) return TN_ENOMEM;
  make_plan(p->match, p->backend, plan);
  return TN_OK;
}

static void release(tn_env *env, void *plan) { tn_delete(env, plan); }

/* ---- operands in f32 ------------------------------------------------------------------------------ */

enum { MOST = 9 };
typedef struct job {
  const attention_plan *p;
  tn_launch *l;
  float *at[MOST]; /* operands, then results, all f32 */
} job;

static void lay_out(job *j) {
  float *next = j->l->workspace;
  for (int32_t i = 0; i < j->l->n_in + j->l->n_out; i++) {
    const tn_view *v = i < j->l->n_in ? &j->l->in[i] : &j->l->out[i - j->l->n_in];
    j->at[i] = v->type.dtype == TN_BF16 ? next : v->data;
    if (v->type.dtype == TN_BF16) next += (tn_type_count(&v->type) + 15) / 16 * 16;
  }
}

/* The part of an operand or result that belongs to some heads. */
static void convert(const job *j, int32_t i, int64_t first, int64_t heads) {
  bool in = i < j->l->n_in;
  const tn_view *v = in ? &j->l->in[i] : &j->l->out[i - j->l->n_in];
  if (v->type.dtype != TN_BF16) return;
  int64_t step = tn_type_count(&v->type) / j->p->heads;
  uint16_t *narrow = (uint16_t *)v->data + first * step;
  if (in)
    j->p->gemm->widen(narrow, j->at[i] + first * step, heads * step);
  else
    j->p->gemm->narrow(j->at[i] + first * step, narrow, heads * step);
}

/* ---- products of tiles ---------------------------------------------------------------------------- */

/* c = a b, with steps of a along rows and along k; b and c dense in rows of `b_k` and `c_i`. */
static void product(const attention_plan *p, int64_t m, int64_t n, int64_t k, const float *a, int64_t a_i,
                    int64_t a_k, const float *b, int64_t b_k, float *c, int64_t c_i) {
  const tn_sgemm g = {m, n, k, a, b, a_i, a_k, b_k, 1, c, c_i, {0}};
  p->gemm->straight(&g);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* How many of `keys` keys from `key` on each of `rows` queries from `query` on sees. False: none sees any. */
static bool look(const attention_plan *p, int64_t query, int64_t rows, int64_t key, int64_t keys,
                 int32_t *sees) {
  int64_t most = 0;
  for (int64_t i = 0; i < rows; i++) {
    int64_t n = p->causal ? query + i + p->keys - p->queries + 1 - key : keys;
    sees[i] = (int32_t)(n < 0 ? 0 : least(n, keys));
    most = sees[i] > most ? sees[i] : most;
  }
  return most > 0;
}

/* ---- forward --------------------------------------------------------------------------------------- */

typedef struct head {
  const float *q, *k, *v;
  float *y, *lse;
} head;

/* One tile of queries over all keys. */
static void attend(const attention_plan *p, const head *h, int64_t query) {
  _Alignas(64) float turned[PANEL], scores[TILE * TILE], more[PANEL];
  float largest[TILE], sum[TILE], fade[TILE];
  int32_t sees[TILE];
  int64_t rows = least(TILE, p->queries - query);
  float *y = h->y + query * p->value_width;
  for (int64_t i = 0; i < rows; i++) largest[i] = -INFINITY;
  memset(sum, 0, sizeof sum);
  memset(y, 0, sizeof *y * (size_t)(rows * p->value_width));
  for (int64_t key = 0; key < p->keys; key += TILE) {
    int64_t keys = least(TILE, p->keys - key);
    if (!look(p, query, rows, key, keys, sees)) break;
    p->loops->turn(h->k + key * p->width, turned, keys, p->width);
    product(p, rows, TILE, p->width, h->q + query * p->width, p->width, 1, turned, TILE, scores, TILE);
    const tn_attention_tile tile = {scores, rows, sees, p->scale};
    p->loops->soften(&tile, largest, sum, fade);
    product(p, rows, p->value_width, keys, scores, TILE, 1, h->v + key * p->value_width, p->value_width, more,
            p->value_width);
    p->loops->gather(y, more, fade, rows, p->value_width);
  }
  p->loops->finish(y, h->lse + query, largest, sum, rows, p->value_width);
}

static void forward_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const attention_plan *p = j->p;
  int64_t first = chunk * p->heads_per_chunk, n = least(p->heads_per_chunk, p->heads - first);
  for (int32_t i = 0; i < 3; i++) convert(j, i, first, n);
  for (int64_t b = first; b < first + n; b++) {
    const head h = {j->at[0] + b * p->queries * p->width, j->at[1] + b * p->keys * p->width,
                    j->at[2] + b * p->keys * p->value_width, j->at[3] + b * p->queries * p->value_width,
                    j->at[4] + b * p->queries};
    for (int64_t query = 0; query < p->queries; query += TILE) attend(p, &h, query);
  }
  convert(j, 3, first, n);
}

static tn_status run(tn_launch *l, void (*body)(void *arg, int64_t chunk)) {
  job j = {.p = l->plan, .l = l};
  if (j.p->heads == 0) return TN_OK;
  lay_out(&j);
  tn_parallel(l, (j.p->heads + j.p->heads_per_chunk - 1) / j.p->heads_per_chunk, body, &j);
  return TN_OK;
}

static tn_status launch(tn_launch *l) { return run(l, forward_chunk); }

/* ---- backward -------------------------------------------------------------------------------------- */

typedef struct head_grad {
  const float *q, *k, *v, *y, *lse, *dy;
  float *dq, *dk, *dv;
} head_grad;

/* A tile of keys and values, also turned, and the sums of its gradients. */
typedef struct key_tile {
  int64_t key, n;
  _Alignas(64) float k[PANEL], v[PANEL], dk[PANEL], dv[PANEL];
} key_tile;

/* What a tile of queries adds to the gradients of a tile of keys, and the other way round. */
static void meet(const attention_plan *p, const head_grad *h, int64_t query, key_tile *t) {
  _Alignas(64) float scores[TILE * TILE], d[TILE * TILE], more[PANEL];
  float delta[TILE];
  int32_t sees[TILE];
  int64_t rows = least(TILE, p->queries - query), width = p->width, values = p->value_width;
  const float *q = h->q + query * width, *dy = h->dy + query * values;
  if (!look(p, query, rows, t->key, t->n, sees)) return;
  const tn_attention_tile tile = {scores, rows, sees, p->scale};
  product(p, rows, TILE, width, q, width, 1, t->k, TILE, scores, TILE);
  p->loops->recall(&tile, h->lse + query);
  product(p, t->n, values, rows, scores, 1, TILE, dy, values, more, values);
  p->loops->gather(t->dv, more, NULL, t->n, values);
  product(p, rows, TILE, values, dy, values, 1, t->v, TILE, d, TILE);
  /* sum(dy y) = sum(p d), which rounding y to bf16 has not touched, but only all keys together give it */
  if (p->keys <= TILE)
    p->loops->dot(scores, d, delta, rows, TILE);
  else
    p->loops->dot(dy, h->y + query * values, delta, rows, values);
  p->loops->differ(&tile, d, delta);
  product(p, rows, width, t->n, d, TILE, 1, h->k + t->key * width, width, more, width);
  p->loops->gather(h->dq + query * width, more, NULL, rows, width);
  product(p, t->n, width, rows, d, 1, TILE, q, width, more, width);
  p->loops->gather(t->dk, more, NULL, t->n, width);
}

static void differentiate(const attention_plan *p, const head_grad *h) {
  key_tile t;
  memset(h->dq, 0, sizeof(float) * (size_t)(p->queries * p->width));
  for (t.key = 0; t.key < p->keys; t.key += TILE) {
    t.n = least(TILE, p->keys - t.key);
    p->loops->turn(h->k + t.key * p->width, t.k, t.n, p->width);
    p->loops->turn(h->v + t.key * p->value_width, t.v, t.n, p->value_width);
    memset(t.dk, 0, sizeof(float) * (size_t)(t.n * p->width));
    memset(t.dv, 0, sizeof(float) * (size_t)(t.n * p->value_width));
    for (int64_t query = 0; query < p->queries; query += TILE) meet(p, h, query, &t);
    memcpy(h->dk + t.key * p->width, t.dk, sizeof(float) * (size_t)(t.n * p->width));
    memcpy(h->dv + t.key * p->value_width, t.dv, sizeof(float) * (size_t)(t.n * p->value_width));
  }
}

static void backward_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const attention_plan *p = j->p;
  int64_t first = chunk * p->heads_per_chunk, n = least(p->heads_per_chunk, p->heads - first);
  for (int32_t i = 0; i < 6; i++) convert(j, i, first, n);
  for (int64_t b = first; b < first + n; b++) {
    int64_t q = b * p->queries * p->width, k = b * p->keys * p->width, v = b * p->keys * p->value_width;
    int64_t y = b * p->queries * p->value_width;
    const head_grad h = {j->at[0] + q, j->at[1] + k, j->at[2] + v, j->at[3] + y, j->at[4] + b * p->queries,
                         j->at[5] + y, j->at[6] + q, j->at[7] + k, j->at[8] + v};
    differentiate(p, &h);
  }
  for (int32_t i = 6; i < 9; i++) convert(j, i, first, n);
}

static tn_status launch_grad(tn_launch *l) { return run(l, backward_chunk); }

#define ATTENTION(name, text, what, how)                                                                     \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name, what),    \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query,                                                        \
                                      .prepare = prepare,                                                    \
                                      .release = release,                                                    \
                                      .launch = how}

ATTENTION(attention, "y, lse = attention(q, k, v)", "attention over tiles", launch);
ATTENTION(attention_grad, "dq, dk, dv = attention_grad(q, k, v, y, lse, dy)", "its gradient over tiles",
          launch_grad);
