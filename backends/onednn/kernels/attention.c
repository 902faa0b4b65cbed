/* backends/onednn/kernels/attention.c: attention and its gradient as one pass over tiles, without ever
 * keeping the probabilities of all pairs (Dao et al., "FlashAttention", NeurIPS 2022; Rabe and Staats,
 * "Self-attention does not need O(n^2) memory", 2021). A chunk is some heads of the batch, each of them
 * whole, so that sums do not depend on threads. */
#include "backends/onednn/kernels/attention.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/gemm/loops.h"
#include "backends/onednn/kernels/transpose.h"
#include "backends/onednn/integer_math.h"
#include "tenon/attributes.h"

enum {
  TILE = TN_ATTENTION_TILE,
  STRIP = TN_ATTENTION_STRIP,
  STRIPS = TILE / STRIP,
  WIDTH = TN_ATTENTION_WIDTH,
  PANEL = TILE * WIDTH
};

typedef struct attention_plan {
  const tn_attention_loops *loops;
  const tn_gemm_loops *gemm;
  tn_turn_function turn;
  int64_t batch, heads, heads_per_chunk, queries, keys, width, value_width;
  int64_t joined;            /* width of the gradients of q, k and v side by side; 0: they lie apart */
  bool causal, side_by_side; /* a token has its heads side by side */
  float scale;
} attention_plan;

/* ---- query and prepare --------------------------------------------------------------------------- */

static tn_status check(tn_env *env, const tn_match *m) {
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  const tn_type *q = m->in[0];
  if (q->dtype != TN_F32 && q->dtype != TN_BF16)
    return tn_fail(env, TN_EUNSUPPORTED, "dtype", "elements are %s, expected f32 or bf16",
                   tn_dtype_name(q->dtype));
  if (a->math != TN_MATH_FULL)
    return tn_fail(env, TN_EUNSUPPORTED, "math", "products are rounded to tf32, expected full precision");
  return TN_OK;
}

static void set_dims(attention_plan *p, const tn_attention_attributes *a, const tn_type *q,
                     const tn_type *v) {
  p->side_by_side = a->heads > 0;
  p->batch = q->dims[0];
  p->heads = p->side_by_side ? a->heads : q->dims[1];
  p->queries = q->dims[p->side_by_side ? 1 : 2];
  p->keys = v->dims[p->side_by_side ? 1 : 2];
  p->width = p->side_by_side ? q->dims[2] / a->heads : q->dims[3];
  p->value_width = p->side_by_side ? v->dims[2] / a->heads : v->dims[3];
}

/* A chunk is worth some tens of microseconds. */
static void make_plan(const tn_match *m, const void *backend, attention_plan *p) {
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  int32_t isa = tn_onednn_isa_of(backend);
  *p = (attention_plan){.loops = TN_LOOPS_PICK_AT(tn_loops_attention, isa),
                        .gemm = TN_LOOPS_PICK_AT(tn_loops_gemm, isa),
                        .turn = TN_LOOPS_PICK_AT(tn_loops_turn, isa)->of_4,
                        .causal = a->causal != 0};
  set_dims(p, a, m->in[0], m->in[2]);
  if (m->n_nodes > 1) p->joined = p->heads * (2 * p->width + p->value_width);
  p->scale = (float)(a->scale != 0 ? a->scale : 1 / sqrt((double)p->width));
  double work = (double)p->queries * (double)p->keys * (double)(p->width + p->value_width);
  p->heads_per_chunk = work > 0 && work < 1e6 ? (int64_t)(1e6 / work) : 1;
}

/* Gradients are joined along the width of tokens, or not here. */
static tn_status check_join(tn_env *env, const tn_match *m) {
  if (m->n_nodes == 1) return TN_OK;
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  const tn_axis_attributes *join = m->nodes[1].node->attributes;
  if (a->heads > 0 && (join->axis == 2 || join->axis == -1)) return TN_OK;
  return tn_fail(env, TN_EUNSUPPORTED, "axis", "gradients are not joined along heads that lie side by side");
}

static tn_status check_width(tn_env *env, const attention_plan *p) {
  if (p->width >= 1 && p->width <= WIDTH && p->value_width >= 1 && p->value_width <= WIDTH) return TN_OK;
  return tn_fail(env, TN_EUNSUPPORTED, "shape", "heads are %lld and %lld wide, expected 1 to %d",
                 (long long)p->width, (long long)p->value_width, WIDTH);
}

static int64_t padded(int64_t n) { return round_up(n, 16); }

/* bf16 operands and results are f32 in the workspace. */
static int64_t count_f32(const tn_match *m) {
  int64_t n = 0;
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i]->dtype == TN_BF16) n += padded(tn_type_count(m->in[i]));
  for (int32_t i = 0; i < m->n_out; i++)
    if (m->out[i]->dtype == TN_BF16) n += padded(tn_type_count(m->out[i]));
  return n + (m->n_nodes > 1 ? padded(1) * 3 : 0);
}

static tn_status query(tn_query *q) {
  tn_status status = check(&q->env, q->match);
  if (status != TN_OK) return status;
  attention_plan p;
  make_plan(q->match, q->backend, &p);
  status = check_width(&q->env, &p);
  if (status == TN_OK) status = check_join(&q->env, q->match);
  if (status != TN_OK) return status;
  double pairs = (double)p.batch * (double)p.heads * (double)p.queries * (double)p.keys;
  tn_variant v = {.struct_size = sizeof v,
                  .name = "tiles",
                  .workspace_bytes = 4 * count_f32(q->match),
                  .prepared_bytes = sizeof p,
                  .cost_s =
                      1e-6 + pairs * (double)(p.width + p.value_width) * (q->match->n_in > 3 ? 3 : 2) / 3e10,
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

/* Rows of one width, `row` numbers apart, those of the next head and of the next of the batch so far on. */
typedef struct operand {
  float *data;
  int64_t rows, width, row, head, batch;
} operand;

typedef struct job {
  const attention_plan *p;
  tn_launch *l;
  const char *letters; /* of each operand and result: query, key, value, y, log-sum-exp */
  operand at[MOST];    /* all f32 */
} job;

static operand lay_rows(const job *j, int32_t i, bool together) {
  const attention_plan *p = j->p;
  char letter = j->letters[i];
  int64_t rows = letter == 'k' || letter == 'v' ? p->keys : p->queries;
  int64_t width = letter == 'l' ? 1 : letter == 'v' || letter == 'y' ? p->value_width : p->width;
  return (operand){.rows = rows,
                   .width = width,
                   .row = together ? p->heads * width : width,
                   .head = together ? width : rows * width,
                   .batch = p->heads * rows * width};
}

/* How the caller has it, as bytes from `*data` on; row, head and batch count its elements. */
static operand outside(const job *j, int32_t i, uint8_t **data, int32_t *dtype) {
  const attention_plan *p = j->p;
  int32_t result = i - j->l->n_in;
  const tn_view *v = result < 0 ? &j->l->in[i] : &j->l->out[p->joined > 0 ? 0 : result];
  operand o = lay_rows(j, i, p->side_by_side && j->letters[i] != 'l');
  *data = v->data;
  *dtype = v->type.dtype;
  if (result < 0 || p->joined == 0) return o;
  *data += result * p->heads * p->width * (int64_t)tn_dtype_size(*dtype);
  o.row = p->joined;
  o.batch = o.rows * p->joined;
  return o;
}

static void lay_out(job *j) {
  float *next = j->l->workspace;
  for (int32_t i = 0; j->letters[i] != '\0'; i++) {
    uint8_t *data;
    int32_t dtype;
    j->at[i] = outside(j, i, &data, &dtype);
    j->at[i].data = (float *)(void *)data;
    if (dtype != TN_BF16) continue;
    j->at[i] = lay_rows(j, i, false);
    j->at[i].data = next;
    next += padded(j->p->batch * j->at[i].batch);
  }
}

/* A head, counted through the batch. */
static int64_t offset_of(const attention_plan *p, const operand *o, int64_t index) {
  return index / p->heads * o->batch + index % p->heads * o->head;
}
static float *head_of(const attention_plan *p, const operand *o, int64_t index) {
  return o->data + offset_of(p, o, index);
}

/* A head of an operand from bf16 to f32, of a result back. */
static void convert(const job *j, int32_t i, int64_t index) {
  const attention_plan *p = j->p;
  uint8_t *data;
  int32_t dtype;
  operand there = outside(j, i, &data, &dtype);
  if (dtype != TN_BF16) return;
  uint16_t *narrow = (uint16_t *)(void *)data + offset_of(p, &there, index);
  float *wide = head_of(p, &j->at[i], index);
  for (int64_t r = 0; r < there.rows; r++, narrow += there.row, wide += there.width) {
    if (i < j->l->n_in)
      p->gemm->widen(narrow, wide, there.width);
    else
      p->gemm->narrow(wide, narrow, there.width);
  }
}

/* ---- tiles ---------------------------------------------------------------------------------------- */

/* Rows `step` apart. */
typedef struct rows {
  float *at;
  int64_t step;
} rows;

static rows rows_of(const job *j, int32_t i, int64_t index) {
  return (rows){head_of(j->p, &j->at[i], index), j->at[i].row};
}
static rows from_row(rows r, int64_t n) { return (rows){r.at + n * r.step, r.step}; }

/* c = a b, and a lies by columns `a_k` apart. */
static void product(const attention_plan *p, int64_t m, int64_t n, int64_t k, rows a, int64_t a_k, rows b,
                    rows c) {
  const tn_sgemm g = {m, n, k, a.at, b.at, a.step, a_k, b.step, 1, c.at, c.step, {0}};
  p->gemm->straight(&g);
}

/* The same, added to what is there, unless this is the first. */
static void add_product(const attention_plan *p, bool first, int64_t m, int64_t n, int64_t k, rows a,
                        int64_t a_k, rows b, rows c) {
  float more[STRIP * WIDTH];
  if (first) {
    product(p, m, n, k, a, a_k, b, c);
    return;
  }
  if (k == 0) return;
  product(p, m, n, k, a, a_k, b, (rows){more, n});
  p->loops->gather(c.at, c.step, more, NULL, m, n);
}

/* n rows as columns of a panel, with zeros behind them. */
static void turn(const attention_plan *p, rows from, int64_t n, int64_t width, float *panel) {
  if (n < TILE) memset(panel, 0, sizeof(float) * (size_t)(TILE * width));
  p->turn(from.at, from.step, panel, TILE, n, width);
}

/* A strip of queries and the keys of a tile that it sees. */
typedef struct sight {
  int64_t rows;
  int64_t most;    /* that any of them sees */
  int64_t columns; /* that are computed */
  int32_t sees[STRIP];
} sight;

static sight look(const attention_plan *p, int64_t query, int64_t key, int64_t keys) {
  sight s = {.rows = least(STRIP, p->queries - query)};
  for (int64_t i = 0; i < s.rows; i++) {
    int64_t n = p->causal ? query + i + p->keys - p->queries + 1 - key : keys;
    s.sees[i] = (int32_t)(n < 0 ? 0 : least(n, keys));
    s.most = s.sees[i] > s.most ? s.sees[i] : s.most;
  }
  s.columns = (s.most + STRIP - 1) / STRIP * STRIP;
  return s;
}

/* ---- forward --------------------------------------------------------------------------------------- */

typedef struct head {
  rows q, k, v, y;
  float *lse;
} head;

/* What is known of a tile of queries. */
typedef struct query_tile {
  float largest[TILE], sum[TILE];
  _Alignas(64) float keys[PANEL]; /* of the tile of keys that they meet, turned */
} query_tile;

/* A strip of the queries of a tile over a tile of keys. */
static bool attend(const attention_plan *p, const head *h, query_tile *t, int64_t query, int64_t key,
                   int64_t keys) {
  _Alignas(64) float scores[STRIP * TILE], more[STRIP * WIDTH], fade[STRIP];
  int64_t at = query % TILE;
  sight s = look(p, query, key, keys);
  rows probabilities = {scores, TILE}, y = from_row(h->y, query), v = from_row(h->v, key);
  if (s.most == 0) return false;
  product(p, s.rows, s.columns, p->width, from_row(h->q, query), 1, (rows){t->keys, TILE}, probabilities);
  const tn_attention_strip strip = {scores, s.rows, s.columns, s.sees, p->scale};
  p->loops->soften(&strip, t->largest + at, t->sum + at, fade);
  if (key == 0) {
    product(p, s.rows, p->value_width, s.most, probabilities, 1, v, y);
    return true;
  }
  product(p, s.rows, p->value_width, s.most, probabilities, 1, v, (rows){more, p->value_width});
  p->loops->gather(y.at, y.step, more, fade, s.rows, p->value_width);
  return true;
}

/* A tile of queries over all keys. */
static void attend_all(const attention_plan *p, const head *h, int64_t query) {
  query_tile t;
  int64_t end = least(p->queries, query + TILE);
  bool any = true;
  for (int32_t i = 0; i < TILE; i++) t.largest[i] = -INFINITY;
  memset(t.sum, 0, sizeof t.sum);
  for (int64_t key = 0; key < p->keys && any; key += TILE) {
    int64_t keys = least(TILE, p->keys - key);
    any = false;
    turn(p, from_row(h->k, key), keys, p->width, t.keys);
    for (int64_t i = query; i < end; i += STRIP) any |= attend(p, h, &t, i, key, keys);
  }
  for (int64_t i = query; i < end; i += STRIP) {
    rows y = from_row(h->y, i);
    p->loops->finish(y.at, y.step, h->lse + i, t.largest + i - query, t.sum + i - query,
                     least(STRIP, end - i), p->value_width);
  }
}

static void forward_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const attention_plan *p = j->p;
  int64_t first = chunk * p->heads_per_chunk;
  for (int64_t b = first; b < least(first + p->heads_per_chunk, p->batch * p->heads); b++) {
    for (int32_t i = 0; i < 3; i++) convert(j, i, b);
    const head h = {rows_of(j, 0, b), rows_of(j, 1, b), rows_of(j, 2, b), rows_of(j, 3, b),
                    head_of(p, &j->at[4], b)};
    for (int64_t query = 0; query < p->queries; query += TILE) attend_all(p, &h, query);
    convert(j, 3, b);
  }
}

static tn_status run(tn_launch *l, const char *letters, void (*body)(void *arg, int64_t chunk)) {
  job j = {.p = l->plan, .l = l, .letters = letters};
  int64_t heads = j.p->batch * j.p->heads;
  if (heads == 0) return TN_OK;
  lay_out(&j);
  tn_parallel(l, (heads + j.p->heads_per_chunk - 1) / j.p->heads_per_chunk, body, &j);
  return TN_OK;
}

static tn_status launch(tn_launch *l) { return run(l, "qkvyl", forward_chunk); }

/* ---- backward -------------------------------------------------------------------------------------- */

typedef struct head_grad {
  rows q, k, v, y, dy, dq, dk, dv;
  const float *lse;
} head_grad;

/* A tile of keys and values, turned. */
typedef struct key_tile {
  int64_t key, n;
  bool met; /* by queries before */
  _Alignas(64) float k[PANEL], v[PANEL];
} key_tile;

/* A tile of queries that meets it: probabilities, and the gradient with respect to the scores. */
typedef struct meeting {
  int64_t query;
  sight s[STRIPS];
  _Alignas(64) float p[TILE * TILE], d[TILE * TILE];
} meeting;

/* A strip's probabilities and their gradients, and what that gives for its queries. */
static void meet_strip(const attention_plan *p, const head_grad *h, const key_tile *t, meeting *m,
                       int32_t strip) {
  float delta[STRIP];
  const sight *s = &m->s[strip];
  int64_t query = m->query + strip * STRIP;
  rows scores = {m->p + strip * STRIP * TILE, TILE}, d = {m->d + strip * STRIP * TILE, TILE};
  rows dy = from_row(h->dy, query), y = from_row(h->y, query);
  const tn_attention_strip a = {scores.at, s->rows, s->columns, s->sees, p->scale};
  product(p, s->rows, s->columns, p->width, from_row(h->q, query), 1, (rows){(float *)t->k, TILE}, scores);
  p->loops->recall(&a, h->lse + query);
  product(p, s->rows, s->columns, p->value_width, dy, 1, (rows){(float *)t->v, TILE}, d);
  /* sum(dy y) = sum(p d), which rounding y to bf16 has not touched, but only all keys together give it */
  if (p->keys <= TILE)
    p->loops->dot(scores.at, TILE, d.at, TILE, delta, s->rows, s->columns);
  else
    p->loops->dot(dy.at, dy.step, y.at, y.step, delta, s->rows, p->value_width);
  p->loops->differ(&a, d.at, delta);
  add_product(p, t->key == 0, s->rows, p->width, s->most, d, 1, from_row(h->k, t->key),
              from_row(h->dq, query));
}

/* A tile of queries and one of keys. */
static void meet(const attention_plan *p, const head_grad *h, int64_t query, key_tile *t) {
  meeting m; /* of which only what is seen is set */
  int64_t n = least(TILE, p->queries - query), most = 0;
  int32_t strips = (int32_t)((n + STRIP - 1) / STRIP), first = 0;
  m.query = query;
  for (int32_t i = 0; i < strips; i++) {
    m.s[i] = look(p, query + i * STRIP, t->key, t->n);
    if (m.s[i].most > 0) meet_strip(p, h, t, &m, i);
    most = m.s[i].most;
  }
  if (most == 0) return; /* the last query sees most */
  for (int64_t key = 0; key < t->n; key += STRIP) {
    while (first < strips && m.s[first].most <= key) first++; /* these do not see the strip */
    int64_t rows_in = least(STRIP, t->n - key), k = n - least(n, first * STRIP), at = n - k;
    add_product(p, !t->met, rows_in, p->value_width, k, (rows){m.p + at * TILE + key, 1}, TILE,
                from_row(h->dy, query + at), from_row(h->dv, t->key + key));
    add_product(p, !t->met, rows_in, p->width, k, (rows){m.d + at * TILE + key, 1}, TILE,
                from_row(h->q, query + at), from_row(h->dk, t->key + key));
  }
  t->met = true;
}

static void clear(rows r, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) memset(r.at + i * r.step, 0, sizeof(float) * (size_t)width);
}

static void differentiate(const attention_plan *p, const head_grad *h) {
  key_tile t;
  for (t.key = 0; t.key < p->keys; t.key += TILE) {
    t.n = least(TILE, p->keys - t.key);
    t.met = false;
    turn(p, from_row(h->k, t.key), t.n, p->width, t.k);
    turn(p, from_row(h->v, t.key), t.n, p->value_width, t.v);
    for (int64_t query = 0; query < p->queries; query += TILE) meet(p, h, query, &t);
    if (t.met) continue;
    clear(from_row(h->dk, t.key), t.n, p->width);
    clear(from_row(h->dv, t.key), t.n, p->value_width);
  }
}

static void backward_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const attention_plan *p = j->p;
  int64_t first = chunk * p->heads_per_chunk;
  for (int64_t b = first; b < least(first + p->heads_per_chunk, p->batch * p->heads); b++) {
    for (int32_t i = 0; i < 6; i++) convert(j, i, b);
    const head_grad h = {rows_of(j, 0, b), rows_of(j, 1, b), rows_of(j, 2, b),
                         rows_of(j, 3, b), rows_of(j, 5, b), rows_of(j, 6, b),
                         rows_of(j, 7, b), rows_of(j, 8, b), head_of(p, &j->at[4], b)};
    differentiate(p, &h);
    for (int32_t i = 6; i < 9; i++) convert(j, i, b);
  }
}

static tn_status launch_grad(tn_launch *l) { return run(l, "qkvylyqkv", backward_chunk); }

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
ATTENTION(attention_grad_joined, "dq, dk, dv = attention_grad(q, k, v, y, lse, dy); dx = concat(dq, dk, dv)",
          "its gradient, of q, k and v that were one tensor", launch_grad);
