/* backends/onednn/kernels/attention_grad.c: the gradient of attention over tiles of queries and keys. */
#include <string.h>

#include "backends/onednn/kernels/attention_kernel.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"

enum {
  TILE = TN_ATTENTION_TILE,
  STRIP = TN_ATTENTION_STRIP,
  STRIPS = TN_ATTENTION_STRIPS,
  WIDTH = TN_ATTENTION_WIDTH,
  PANEL = TN_ATTENTION_PANEL
};

/* c += a b, or c = a b for the first. */
static void attention_add_product(const tn_attention_kernel *p, bool first, int64_t m, int64_t n, int64_t k,
                                  tn_attention_rows a, int64_t a_k, tn_attention_rows b,
                                  tn_attention_rows c) {
  float more[STRIP * WIDTH];
  if (first) {
    tn_attention_product(p, m, n, k, a, a_k, b, c);
    return;
  }
  if (k == 0) return;
  tn_attention_product(p, m, n, k, a, a_k, b, (tn_attention_rows){more, n});
  p->loops->accumulate(c.at, c.step, more, NULL, m, n);
}

typedef struct attention_grad_head {
  tn_attention_rows q, k, v, y, dy, dq, dk, dv;
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
  tn_attention_view s[STRIPS];
  _Alignas(64) float p[TILE * TILE], d[TILE * TILE];
} attention_grad_tile;

/* The probabilities of a strip of queries, their gradient, and its terms of dq. */
static void attention_grad_strip(const tn_attention_kernel *p, const attention_grad_head *h,
                                 const attention_key_tile *t, attention_grad_tile *m, int32_t strip) {
  float delta[STRIP];
  const tn_attention_view *s = &m->s[strip];
  int64_t query = m->query + strip * STRIP;
  tn_attention_rows scores = {m->p + strip * STRIP * TILE, TILE}, d = {m->d + strip * STRIP * TILE, TILE};
  tn_attention_rows dy = tn_attention_from_row(h->dy, query), y = tn_attention_from_row(h->y, query);
  const tn_attention_strip a = {scores.at, s->rows, s->columns, s->visible, p->scale};
  tn_attention_product(p, s->rows, s->columns, p->width, tn_attention_from_row(h->q, query), 1,
                       (tn_attention_rows){(float *)t->k, TILE}, scores);
  p->loops->probabilities(&a, h->lse + query, p->keys <= TILE);
  tn_attention_product(p, s->rows, s->columns, p->value_width, dy, 1,
                       (tn_attention_rows){(float *)t->v, TILE}, d);
  /* sum(dy y) = sum(p d). The second form does not depend on the rounding of y to bf16, but needs all keys.
   */
  if (p->keys <= TILE)
    p->loops->row_dots(scores.at, TILE, d.at, TILE, delta, s->rows, s->columns);
  else
    p->loops->row_dots(dy.at, dy.step, y.at, y.step, delta, s->rows, p->value_width);
  p->loops->score_grad(&a, d.at, delta);
  attention_add_product(p, t->key == 0, s->rows, p->width, s->most, d, 1, tn_attention_from_row(h->k, t->key),
                        tn_attention_from_row(h->dq, query));
}

/* The terms of a tile of queries and a tile of keys. */
static void attention_grad_tile_pair(const tn_attention_kernel *p, const attention_grad_head *h,
                                     int64_t query, attention_key_tile *t) {
  attention_grad_tile m; /* set for visible keys only */
  int64_t n = least(TILE, p->queries - query), most = 0;
  int32_t strips = (int32_t)((n + STRIP - 1) / STRIP), first = 0;
  m.query = query;
  for (int32_t i = 0; i < strips; i++) {
    m.s[i] = tn_attention_view_at(p, query + i * STRIP, t->key, t->n);
    if (m.s[i].most > 0) attention_grad_strip(p, h, t, &m, i);
    most = m.s[i].most;
  }
  if (most == 0) return; /* the last query has the most visible keys */
  for (int64_t key = 0; key < t->n; key += STRIP) {
    while (first < strips && m.s[first].most <= key) first++; /* the strip of keys is hidden from these */
    int64_t rows_in = least(STRIP, t->n - key), k = n - least(n, first * STRIP), at = n - k;
    attention_add_product(
        p, !t->started, rows_in, p->value_width, k, (tn_attention_rows){m.p + at * TILE + key, 1}, TILE,
        tn_attention_from_row(h->dy, query + at), tn_attention_from_row(h->dv, t->key + key));
    attention_add_product(p, !t->started, rows_in, p->width, k, (tn_attention_rows){m.d + at * TILE + key, 1},
                          TILE, tn_attention_from_row(h->q, query + at),
                          tn_attention_from_row(h->dk, t->key + key));
  }
  t->started = true;
}

static void attention_clear(tn_attention_rows r, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++) memset(r.at + i * r.step, 0, sizeof(float) * (size_t)width);
}

static void attention_grad_head_all(const tn_attention_kernel *p, const attention_grad_head *h) {
  attention_key_tile t;
  for (t.key = 0; t.key < p->keys; t.key += TILE) {
    t.n = least(TILE, p->keys - t.key);
    t.started = false;
    tn_attention_transpose(p, tn_attention_from_row(h->k, t.key), t.n, p->width, t.k);
    tn_attention_transpose(p, tn_attention_from_row(h->v, t.key), t.n, p->value_width, t.v);
    for (int64_t query = 0; query < p->queries; query += TILE) attention_grad_tile_pair(p, h, query, &t);
    if (t.started) continue;
    attention_clear(tn_attention_from_row(h->dk, t.key), t.n, p->width);
    attention_clear(tn_attention_from_row(h->dv, t.key), t.n, p->value_width);
  }
}

static void attention_grad_chunk(void *arg, int64_t chunk) {
  const tn_attention_job *j = arg;
  const tn_attention_kernel *p = j->p;
  int64_t first = chunk * p->heads_per_chunk;
  for (int64_t b = first; b < least(first + p->heads_per_chunk, p->batch * p->heads); b++) {
    for (int32_t i = 0; i < 6; i++) tn_attention_convert(j, i, b);
    const attention_grad_head h = {tn_attention_rows_of(j, 0, b),          tn_attention_rows_of(j, 1, b),
                                   tn_attention_rows_of(j, 2, b),          tn_attention_rows_of(j, 3, b),
                                   tn_attention_rows_of(j, 5, b),          tn_attention_rows_of(j, 6, b),
                                   tn_attention_rows_of(j, 7, b),          tn_attention_rows_of(j, 8, b),
                                   tn_attention_head_data(p, &j->at[4], b)};
    attention_grad_head_all(p, &h);
    for (int32_t i = 6; i < 9; i++) tn_attention_convert(j, i, b);
  }
}

static tn_status onednn_attention_grad_launch(tn_launch *l) {
  return tn_attention_run(l, "qkvylyqkv", attention_grad_chunk);
}

#define ATTENTION_GRAD(id, pattern, help)                                                                    \
  TN_DEFINE_KERNEL(onednn, id, "onednn_" #id, pattern, help, .query = tn_attention_query,                    \
                   .prepare = tn_attention_prepare, .release = tn_delete_prepared,                           \
                   .launch = onednn_attention_grad_launch)

ATTENTION_GRAD(attention_grad, "dq, dk, dv = attention_grad(q, k, v, y, lse, dy)",
               "the gradient of attention over tiles");
ATTENTION_GRAD(attention_grad_joined,
               "dq, dk, dv = attention_grad(q, k, v, y, lse, dy); dx = concat(dq, dk, dv)",
               "the gradient of attention, with q, k and v as one tensor");
