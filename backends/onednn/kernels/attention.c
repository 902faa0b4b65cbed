/* backends/onednn/kernels/attention.c: attention and its gradient in one pass over tiles, without storing the
 * probabilities of all pairs (Dao et al., "FlashAttention", NeurIPS 2022; Rabe and Staats, "Self-attention
 * does not need O(n^2) memory", 2021). A chunk is some whole heads of the batch, so that sums do not depend
 * on the number of threads. */
#include "backends/onednn/kernels/attention.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/onednn/kernels/gemm/loops.h"
#include "backends/onednn/kernels/transpose.h"
#include "backends/shared/integer_math.h"
#include "tenon/attributes.h"

enum {
  TILE = TN_ATTENTION_TILE,
  STRIP = TN_ATTENTION_STRIP,
  STRIPS = TILE / STRIP,
  WIDTH = TN_ATTENTION_WIDTH,
  PANEL = TILE * WIDTH
};

typedef struct attention_kernel {
  const tn_attention_loops *loops;
  const tn_gemm_loops *gemm;
  tn_transpose_function transpose;
  int64_t batch, heads, heads_per_chunk, queries, keys, width, value_width;
  int64_t joined;            /* width of the concatenated gradients of q, k and v; 0: separate gradients */
  bool causal, side_by_side; /* the heads of a token are adjacent */
  float scale;
} attention_kernel;

/* ---- query and prepare --------------------------------------------------------------------------- */

static tn_status attention_check(tn_env *env, const tn_match *m) {
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  const tn_type *q = m->in[0];
  if (q->dtype != TN_F32 && q->dtype != TN_BF16)
    return tn_fail(env, TN_EUNSUPPORTED, "dtype", "elements are %s, expected f32 or bf16",
                   tn_dtype_name(q->dtype));
  if (a->math != TN_MATH_FULL)
    return tn_fail(env, TN_EUNSUPPORTED, "math", "products are rounded to tf32, expected full precision");
  return TN_OK;
}

static void attention_set_dims(attention_kernel *p, const tn_attention_attributes *a, const tn_type *q,
                               const tn_type *v) {
  p->side_by_side = a->heads > 0;
  p->batch = q->dims[0];
  p->heads = p->side_by_side ? a->heads : q->dims[1];
  p->queries = q->dims[p->side_by_side ? 1 : 2];
  p->keys = v->dims[p->side_by_side ? 1 : 2];
  p->width = p->side_by_side ? q->dims[2] / a->heads : q->dims[3];
  p->value_width = p->side_by_side ? v->dims[2] / a->heads : v->dims[3];
}

/* A chunk takes some tens of microseconds. */
static void attention_make(const tn_match *m, const void *backend, attention_kernel *p) {
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  int32_t isa = tn_onednn_isa_of(backend);
  *p = (attention_kernel){.loops = TN_LOOPS_PICK_AT(tn_loops_attention, isa),
                          .gemm = TN_LOOPS_PICK_AT(tn_loops_gemm, isa),
                          .transpose = TN_LOOPS_PICK_AT(tn_loops_transpose, isa)->of_4,
                          .causal = a->causal != 0};
  attention_set_dims(p, a, m->in[0], m->in[2]);
  if (m->n_nodes > 1) p->joined = p->heads * (2 * p->width + p->value_width);
  p->scale = (float)(a->scale != 0 ? a->scale : 1 / sqrt((double)p->width));
  double work = (double)p->queries * (double)p->keys * (double)(p->width + p->value_width);
  p->heads_per_chunk = work > 0 && work < 1e6 ? (int64_t)(1e6 / work) : 1;
}

/* Concatenated gradients are supported along the width of tokens only. */
static tn_status attention_check_join(tn_env *env, const tn_match *m) {
  if (m->n_nodes == 1) return TN_OK;
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  const tn_axis_attributes *join = m->nodes[1].node->attributes;
  if (a->heads > 0 && (join->axis == 2 || join->axis == -1)) return TN_OK;
  return tn_fail(env, TN_EUNSUPPORTED, "axis",
                 "gradients are not concatenated along the adjacent heads of a token");
}

static tn_status attention_check_width(tn_env *env, const attention_kernel *p) {
  if (p->width >= 1 && p->width <= WIDTH && p->value_width >= 1 && p->value_width <= WIDTH) return TN_OK;
  return tn_fail(env, TN_EUNSUPPORTED, "shape", "heads are %lld and %lld wide, expected 1 to %d",
                 (long long)p->width, (long long)p->value_width, WIDTH);
}

static int64_t attention_padded(int64_t n) { return round_up(n, 16); }

/* bf16 operands and results are f32 in the workspace. */
static int64_t attention_count_f32(const tn_match *m) {
  int64_t n = 0;
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i]->dtype == TN_BF16) n += attention_padded(tn_type_count(m->in[i]));
  for (int32_t i = 0; i < m->n_out; i++)
    if (m->out[i]->dtype == TN_BF16) n += attention_padded(tn_type_count(m->out[i]));
  return n + (m->n_nodes > 1 ? attention_padded(1) * 3 : 0);
}

static tn_status onednn_attention_query(tn_query *q) {
  TN_TRY(attention_check(&q->env, q->match));
  attention_kernel p;
  attention_make(q->match, q->backend, &p);
  tn_status status = attention_check_width(&q->env, &p);
  if (status == TN_OK) status = attention_check_join(&q->env, q->match);
  if (status != TN_OK) return status;
  double macs_per_s = 3e10 * tn_thread_speed(q->device) * q->device->threads;
  double pairs = (double)p.batch * (double)p.heads * (double)p.queries * (double)p.keys;
  return tn_offer(q, (tn_variant){.name = "tiles",
                                  .workspace_bytes = 4 * attention_count_f32(q->match),
                                  .prepared_bytes = sizeof p,
                                  .cost_s = q->device->launch_s + pairs * (double)(p.width + p.value_width) *
                                                                      (q->match->n_in > 3 ? 3 : 2) /
                                                                      macs_per_s});
}

static tn_status onednn_attention_prepare(tn_prepare *p, void **made) {
  attention_kernel *plan = tn_new(p, sizeof *plan);
  *made = plan;
  if (plan == NULL) return TN_ENOMEM;
  attention_make(p->match, p->backend, plan);
  return TN_OK;
}

/* ---- operands in f32 ------------------------------------------------------------------------------ */

enum { MOST = 9 };

/* Rows of one width; row, head and batch are the distances of rows, heads and items of the batch. */
typedef struct attention_operand {
  float *data;
  int64_t rows, width, row, head, batch;
} attention_operand;

typedef struct attention_job {
  const attention_kernel *p;
  tn_launch *l;
  const char *letters;        /* of each operand and result: query, key, value, y, log-sum-exp */
  attention_operand at[MOST]; /* all f32 */
} attention_job;

static attention_operand attention_dense_operand(const attention_job *j, int32_t i, bool together) {
  const attention_kernel *p = j->p;
  char letter = j->letters[i];
  int64_t rows = letter == 'k' || letter == 'v' ? p->keys : p->queries;
  int64_t width = letter == 'l' ? 1 : letter == 'v' || letter == 'y' ? p->value_width : p->width;
  return (attention_operand){.rows = rows,
                             .width = width,
                             .row = together ? p->heads * width : width,
                             .head = together ? width : rows * width,
                             .batch = p->heads * rows * width};
}

/* The operand in the memory of the caller, from `*data` on; distances count its elements. */
static attention_operand attention_caller_operand(const attention_job *j, int32_t i, uint8_t **data,
                                                  int32_t *dtype) {
  const attention_kernel *p = j->p;
  int32_t result = i - j->l->n_in;
  const tn_view *v = result < 0 ? &j->l->in[i] : &j->l->out[p->joined > 0 ? 0 : result];
  attention_operand o = attention_dense_operand(j, i, p->side_by_side && j->letters[i] != 'l');
  *data = v->data;
  *dtype = v->type.dtype;
  if (result < 0 || p->joined == 0) return o;
  *data += result * p->heads * p->width * (int64_t)tn_dtype_size(*dtype);
  o.row = p->joined;
  o.batch = o.rows * p->joined;
  return o;
}

static void attention_set_operands(attention_job *j) {
  float *next = j->l->workspace;
  for (int32_t i = 0; j->letters[i] != '\0'; i++) {
    uint8_t *data;
    int32_t dtype;
    j->at[i] = attention_caller_operand(j, i, &data, &dtype);
    j->at[i].data = (float *)(void *)data;
    if (dtype != TN_BF16) continue;
    j->at[i] = attention_dense_operand(j, i, false);
    j->at[i].data = next;
    next += attention_padded(j->p->batch * j->at[i].batch);
  }
}

/* Head `index` of all heads of the batch. */
static int64_t attention_offset(const attention_kernel *p, const attention_operand *o, int64_t index) {
  return index / p->heads * o->batch + index % p->heads * o->head;
}
static float *attention_head_data(const attention_kernel *p, const attention_operand *o, int64_t index) {
  return o->data + attention_offset(p, o, index);
}

/* Converts a head of a bf16 operand to f32, or a head of a result back. */
static void attention_convert(const attention_job *j, int32_t i, int64_t index) {
  const attention_kernel *p = j->p;
  uint8_t *data;
  int32_t dtype;
  attention_operand there = attention_caller_operand(j, i, &data, &dtype);
  if (dtype != TN_BF16) return;
  uint16_t *narrow = (uint16_t *)(void *)data + attention_offset(p, &there, index);
  float *wide = attention_head_data(p, &j->at[i], index);
  for (int64_t r = 0; r < there.rows; r++, narrow += there.row, wide += there.width) {
    if (i < j->l->n_in)
      p->gemm->widen(narrow, wide, there.width);
    else
      p->gemm->narrow(wide, narrow, there.width);
  }
}

/* ---- tiles ---------------------------------------------------------------------------------------- */

/* Rows that are `step` apart. */
typedef struct attention_rows {
  float *at;
  int64_t step;
} attention_rows;

static attention_rows attention_rows_of(const attention_job *j, int32_t i, int64_t index) {
  return (attention_rows){attention_head_data(j->p, &j->at[i], index), j->at[i].row};
}
static attention_rows attention_from_row(attention_rows r, int64_t n) {
  return (attention_rows){r.at + n * r.step, r.step};
}

/* c = a b; a_k is the distance of the columns of a. */
static void onednn_attention_product(const attention_kernel *p, int64_t m, int64_t n, int64_t k,
                                     attention_rows a, int64_t a_k, attention_rows b, attention_rows c) {
  const tn_sgemm g = {m, n, k, a.at, b.at, a.step, a_k, b.step, 1, c.at, c.step, {0}};
  p->gemm->straight(&g);
}

/* c += a b, or c = a b for the first. */
static void attention_add_product(const attention_kernel *p, bool first, int64_t m, int64_t n, int64_t k,
                                  attention_rows a, int64_t a_k, attention_rows b, attention_rows c) {
  float more[STRIP * WIDTH];
  if (first) {
    onednn_attention_product(p, m, n, k, a, a_k, b, c);
    return;
  }
  if (k == 0) return;
  onednn_attention_product(p, m, n, k, a, a_k, b, (attention_rows){more, n});
  p->loops->accumulate(c.at, c.step, more, NULL, m, n);
}

/* Transposes n rows into columns of a panel, with zeros behind them. */
static void attention_transpose(const attention_kernel *p, attention_rows from, int64_t n, int64_t width,
                                float *panel) {
  if (n < TILE) memset(panel, 0, sizeof(float) * (size_t)(TILE * width));
  p->transpose(from.at, from.step, panel, TILE, n, width);
}

/* A strip of queries and the keys of a tile that are visible to it. */
typedef struct attention_view {
  int64_t rows;
  int64_t most;    /* visible to any of them */
  int64_t columns; /* computed */
  int32_t visible[STRIP];
} attention_view;

static attention_view attention_view_at(const attention_kernel *p, int64_t query, int64_t key, int64_t keys) {
  attention_view s = {.rows = least(STRIP, p->queries - query)};
  for (int64_t i = 0; i < s.rows; i++) {
    int64_t n = p->causal ? query + i + p->keys - p->queries + 1 - key : keys;
    s.visible[i] = (int32_t)(n < 0 ? 0 : least(n, keys));
    s.most = s.visible[i] > s.most ? s.visible[i] : s.most;
  }
  s.columns = (s.most + STRIP - 1) / STRIP * STRIP;
  return s;
}

/* ---- forward --------------------------------------------------------------------------------------- */

typedef struct attention_head {
  attention_rows q, k, v, y;
  float *lse;
} attention_head;

/* The online softmax of a tile of queries. */
typedef struct attention_query_tile {
  float largest[TILE], sum[TILE];
  _Alignas(64) float keys[PANEL]; /* the tile of keys, transposed */
} attention_query_tile;

/* Adds a tile of keys to a strip of queries. False where no key of it is visible. */
static bool attention_add_strip(const attention_kernel *p, const attention_head *h, attention_query_tile *t,
                                int64_t query, int64_t key, int64_t keys) {
  _Alignas(64) float scores[STRIP * TILE], more[STRIP * WIDTH], rescale[STRIP];
  int64_t at = query % TILE;
  attention_view s = attention_view_at(p, query, key, keys);
  attention_rows probabilities = {scores, TILE}, y = attention_from_row(h->y, query),
                 v = attention_from_row(h->v, key);
  if (s.most == 0) return false;
  onednn_attention_product(p, s.rows, s.columns, p->width, attention_from_row(h->q, query), 1,
                           (attention_rows){t->keys, TILE}, probabilities);
  const tn_attention_strip strip = {scores, s.rows, s.columns, s.visible, p->scale};
  p->loops->softmax_step(&strip, t->largest + at, t->sum + at, rescale);
  if (key == 0) {
    onednn_attention_product(p, s.rows, p->value_width, s.most, probabilities, 1, v, y);
    return true;
  }
  onednn_attention_product(p, s.rows, p->value_width, s.most, probabilities, 1, v,
                           (attention_rows){more, p->value_width});
  p->loops->accumulate(y.at, y.step, more, rescale, s.rows, p->value_width);
  return true;
}

/* A tile of queries and all keys. */
static void onednn_attention_query_rows(const attention_kernel *p, const attention_head *h, int64_t query) {
  attention_query_tile t;
  int64_t end = least(p->queries, query + TILE);
  bool any = true;
  for (int32_t i = 0; i < TILE; i++) t.largest[i] = -INFINITY;
  memset(t.sum, 0, sizeof t.sum);
  for (int64_t key = 0; key < p->keys && any; key += TILE) {
    int64_t keys = least(TILE, p->keys - key);
    any = false;
    attention_transpose(p, attention_from_row(h->k, key), keys, p->width, t.keys);
    for (int64_t i = query; i < end; i += STRIP) any |= attention_add_strip(p, h, &t, i, key, keys);
  }
  for (int64_t i = query; i < end; i += STRIP) {
    attention_rows y = attention_from_row(h->y, i);
    p->loops->normalize(y.at, y.step, h->lse + i, t.largest + i - query, t.sum + i - query,
                        least(STRIP, end - i), p->value_width);
  }
}

static void attention_chunk(void *arg, int64_t chunk) {
  const attention_job *j = arg;
  const attention_kernel *p = j->p;
  int64_t first = chunk * p->heads_per_chunk;
  for (int64_t b = first; b < least(first + p->heads_per_chunk, p->batch * p->heads); b++) {
    for (int32_t i = 0; i < 3; i++) attention_convert(j, i, b);
    const attention_head h = {attention_rows_of(j, 0, b), attention_rows_of(j, 1, b),
                              attention_rows_of(j, 2, b), attention_rows_of(j, 3, b),
                              attention_head_data(p, &j->at[4], b)};
    for (int64_t query = 0; query < p->queries; query += TILE) onednn_attention_query_rows(p, &h, query);
    attention_convert(j, 3, b);
  }
}

static tn_status attention_run(tn_launch *l, const char *letters, void (*body)(void *arg, int64_t chunk)) {
  attention_job j = {.p = l->prepared, .l = l, .letters = letters};
  int64_t heads = j.p->batch * j.p->heads;
  if (heads == 0) return TN_OK;
  attention_set_operands(&j);
  tn_parallel(l, (heads + j.p->heads_per_chunk - 1) / j.p->heads_per_chunk, body, &j);
  return TN_OK;
}

static tn_status onednn_attention_launch(tn_launch *l) { return attention_run(l, "qkvyl", attention_chunk); }

/* ---- backward -------------------------------------------------------------------------------------- */

typedef struct attention_grad_head {
  attention_rows q, k, v, y, dy, dq, dk, dv;
  const float *lse;
} attention_grad_head;

/* A tile of keys and values, transposed. */
typedef struct attention_key_tile {
  int64_t key, n;
  bool started; /* dk and dv have terms of earlier queries */
  _Alignas(64) float k[PANEL], v[PANEL];
} attention_key_tile;

/* A tile of queries with a tile of keys: probabilities, and the gradient with respect to the scores. */
typedef struct attention_grad_tile {
  int64_t query;
  attention_view s[STRIPS];
  _Alignas(64) float p[TILE * TILE], d[TILE * TILE];
} attention_grad_tile;

/* The probabilities of a strip of queries, their gradient, and its terms of dq. */
static void attention_grad_strip(const attention_kernel *p, const attention_grad_head *h,
                                 const attention_key_tile *t, attention_grad_tile *m, int32_t strip) {
  float delta[STRIP];
  const attention_view *s = &m->s[strip];
  int64_t query = m->query + strip * STRIP;
  attention_rows scores = {m->p + strip * STRIP * TILE, TILE}, d = {m->d + strip * STRIP * TILE, TILE};
  attention_rows dy = attention_from_row(h->dy, query), y = attention_from_row(h->y, query);
  const tn_attention_strip a = {scores.at, s->rows, s->columns, s->visible, p->scale};
  onednn_attention_product(p, s->rows, s->columns, p->width, attention_from_row(h->q, query), 1,
                           (attention_rows){(float *)t->k, TILE}, scores);
  p->loops->probabilities(&a, h->lse + query, p->keys <= TILE);
  onednn_attention_product(p, s->rows, s->columns, p->value_width, dy, 1,
                           (attention_rows){(float *)t->v, TILE}, d);
  /* sum(dy y) = sum(p d). The second form does not depend on the rounding of y to bf16, but needs all keys.
   */
  if (p->keys <= TILE)
    p->loops->row_dots(scores.at, TILE, d.at, TILE, delta, s->rows, s->columns);
  else
    p->loops->row_dots(dy.at, dy.step, y.at, y.step, delta, s->rows, p->value_width);
  p->loops->score_grad(&a, d.at, delta);
  attention_add_product(p, t->key == 0, s->rows, p->width, s->most, d, 1, attention_from_row(h->k, t->key),
                        attention_from_row(h->dq, query));
}

/* The terms of a tile of queries and a tile of keys. */
static void attention_grad_tile_pair(const attention_kernel *p, const attention_grad_head *h, int64_t query,
                                     attention_key_tile *t) {
  attention_grad_tile m; /* set for visible keys only */
  int64_t n = least(TILE, p->queries - query), most = 0;
  int32_t strips = (int32_t)((n + STRIP - 1) / STRIP), first = 0;
  m.query = query;
  for (int32_t i = 0; i < strips; i++) {
    m.s[i] = attention_view_at(p, query + i * STRIP, t->key, t->n);
    if (m.s[i].most > 0) attention_grad_strip(p, h, t, &m, i);
    most = m.s[i].most;
  }
  if (most == 0) return; /* the last query has the most visible keys */
  for (int64_t key = 0; key < t->n; key += STRIP) {
    while (first < strips && m.s[first].most <= key) first++; /* the strip of keys is hidden from these */
    int64_t rows_in = least(STRIP, t->n - key), k = n - least(n, first * STRIP), at = n - k;
    attention_add_product(p, !t->started, rows_in, p->value_width, k,
                          (attention_rows){m.p + at * TILE + key, 1}, TILE,
                          attention_from_row(h->dy, query + at), attention_from_row(h->dv, t->key + key));
    attention_add_product(p, !t->started, rows_in, p->width, k, (attention_rows){m.d + at * TILE + key, 1},
                          TILE, attention_from_row(h->q, query + at),
                          attention_from_row(h->dk, t->key + key));
  }
  t->started = true;
}

static void attention_clear(attention_rows r, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) memset(r.at + i * r.step, 0, sizeof(float) * (size_t)width);
}

static void attention_grad_head_all(const attention_kernel *p, const attention_grad_head *h) {
  attention_key_tile t;
  for (t.key = 0; t.key < p->keys; t.key += TILE) {
    t.n = least(TILE, p->keys - t.key);
    t.started = false;
    attention_transpose(p, attention_from_row(h->k, t.key), t.n, p->width, t.k);
    attention_transpose(p, attention_from_row(h->v, t.key), t.n, p->value_width, t.v);
    for (int64_t query = 0; query < p->queries; query += TILE) attention_grad_tile_pair(p, h, query, &t);
    if (t.started) continue;
    attention_clear(attention_from_row(h->dk, t.key), t.n, p->width);
    attention_clear(attention_from_row(h->dv, t.key), t.n, p->value_width);
  }
}

static void attention_grad_chunk(void *arg, int64_t chunk) {
  const attention_job *j = arg;
  const attention_kernel *p = j->p;
  int64_t first = chunk * p->heads_per_chunk;
  for (int64_t b = first; b < least(first + p->heads_per_chunk, p->batch * p->heads); b++) {
    for (int32_t i = 0; i < 6; i++) attention_convert(j, i, b);
    const attention_grad_head h = {
        attention_rows_of(j, 0, b), attention_rows_of(j, 1, b), attention_rows_of(j, 2, b),
        attention_rows_of(j, 3, b), attention_rows_of(j, 5, b), attention_rows_of(j, 6, b),
        attention_rows_of(j, 7, b), attention_rows_of(j, 8, b), attention_head_data(p, &j->at[4], b)};
    attention_grad_head_all(p, &h);
    for (int32_t i = 6; i < 9; i++) attention_convert(j, i, b);
  }
}

static tn_status onednn_attention_grad_launch(tn_launch *l) {
  return attention_run(l, "qkvylyqkv", attention_grad_chunk);
}

TN_DEFINE_KERNEL(onednn, attention, "onednn_attention", "y, lse = attention(q, k, v)", "attention over tiles",
                 .query = onednn_attention_query, .prepare = onednn_attention_prepare,
                 .release = tn_delete_prepared, .launch = onednn_attention_launch);
TN_DEFINE_KERNEL(onednn, attention_grad, "onednn_attention_grad",
                 "dq, dk, dv = attention_grad(q, k, v, y, lse, dy)", "the gradient of attention over tiles",
                 .query = onednn_attention_query, .prepare = onednn_attention_prepare,
                 .release = tn_delete_prepared, .launch = onednn_attention_grad_launch);
TN_DEFINE_KERNEL(onednn, attention_grad_joined, "onednn_attention_grad_joined",
                 "dq, dk, dv = attention_grad(q, k, v, y, lse, dy); dx = concat(dq, dk, dv)",
                 "the gradient of attention, with q, k and v as one tensor", .query = onednn_attention_query,
                 .prepare = onednn_attention_prepare, .release = tn_delete_prepared,
                 .launch = onednn_attention_grad_launch);
