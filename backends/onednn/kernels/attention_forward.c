/* backends/onednn/kernels/attention_forward.c: attention over tiles of queries and keys: alone, and with a
 * mask or a window, which hide keys from queries. */
#include <math.h>
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

typedef struct attention_head {
  tn_attention_rows q, k, v, y;
  float *lse;       /* of each query; NULL: it is no result */
  const void *mask; /* of the first query and key; NULL: there is no mask */
} attention_head;

/* The online softmax of a tile of queries. */
typedef struct attention_query_tile {
  float largest[TILE], sum[TILE];
  bool started[STRIPS];           /* a tile of keys was added to the strip */
  _Alignas(64) float keys[PANEL]; /* the tile of keys, transposed */
} attention_query_tile;

/* ---- which keys a query sees ---- */

/* The keys that query i sees, apart from the mask: begin .. end - 1. */
typedef struct attention_reach {
  int64_t begin, end;
} attention_reach;

static attention_reach attention_reach_of(const tn_attention_kernel *p, int64_t query) {
  int64_t own = query + p->keys - p->queries, window = p->mask.window;
  attention_reach r = {0, p->keys};
  if (p->causal) r.end = own + 1;
  if (window == 0) return r;
  r.begin = most(0, own - window + 1);
  r.end = least(r.end, own + window);
  return r;
}

/* Whether any of the queries query .. end - 1 may see a key of key .. key + keys - 1. */
static bool attention_sees_tile(const tn_attention_kernel *p, int64_t query, int64_t end, int64_t key,
                                int64_t keys) {
  return attention_reach_of(p, end - 1).end > key && attention_reach_of(p, query).begin < key + keys;
}

/* Of a strip whose queries may each see no key at all: every row has the keys up to the last one that any of
 * them sees, and those that it does not see are hidden by attention_hide. */
static tn_attention_view attention_general_view(const tn_attention_kernel *p, int64_t query, int64_t key,
                                                int64_t keys) {
  tn_attention_view s = {.rows = least(STRIP, p->queries - query)};
  int64_t last = query + s.rows - 1;
  if (attention_sees_tile(p, query, last + 1, key, keys))
    s.most = least(keys, attention_reach_of(p, last).end - key);
  for (int64_t i = 0; i < s.rows; i++) s.visible[i] = (int32_t)s.most;
  s.columns = round_up(s.most, STRIP);
  return s;
}

/* Scales the scores of a strip, adds the mask, and hides keys. */
static void attention_hide(const tn_attention_kernel *p, const attention_head *h, const tn_attention_view *s,
                           int64_t query, int64_t key, float *scores) {
  tn_attention_hiding hiding = {.scores = scores,
                                .rows = s->rows,
                                .columns = s->columns,
                                .keys = s->most,
                                .scale = p->scale,
                                .row = p->mask.step[2],
                                .key = p->mask.step[3]};
  int64_t at = query * hiding.row + key * hiding.key;
  if (p->mask.dtype == TN_F32) hiding.floats = (const float *)h->mask + at;
  if (p->mask.dtype == TN_BOOL) hiding.bools = (const uint8_t *)h->mask + at;
  for (int64_t i = 0; i < s->rows; i++) {
    attention_reach r = attention_reach_of(p, query + i);
    hiding.begin[i] = (int32_t)least(most(r.begin - key, 0), s->most);
    hiding.end[i] = (int32_t)least(most(r.end - key, 0), s->most);
  }
  p->loops->hide(&hiding);
}

/* ---- tiles ---- */

/* Scores of a strip become exponentials. */
static void attention_softmax(const tn_attention_kernel *p, const attention_head *h, attention_query_tile *t,
                              const tn_attention_view *s, int64_t query, int64_t key, float *scores,
                              float *rescale) {
  tn_attention_strip strip = {scores, s->rows, s->columns, s->visible, p->scale};
  if (p->general) {
    attention_hide(p, h, s, query, key, scores);
    strip.scale = 1;
  }
  p->loops->softmax_step(&strip, t->largest + query % TILE, t->sum + query % TILE, rescale);
}

/* Adds a tile of keys to a strip of queries. */
static void attention_add_strip(const tn_attention_kernel *p, const attention_head *h,
                                attention_query_tile *t, int64_t query, int64_t key, int64_t keys) {
  _Alignas(64) float scores[STRIP * TILE], more[STRIP * WIDTH], rescale[STRIP];
  tn_attention_view s = (p->general ? attention_general_view : tn_attention_view_at)(p, query, key, keys);
  tn_attention_rows probabilities = {scores, TILE}, y = tn_attention_from_row(h->y, query),
                    v = tn_attention_from_row(h->v, key);
  bool *started = &t->started[query % TILE / STRIP];
  if (s.most == 0) return;
  tn_attention_product(p, s.rows, s.columns, p->width, tn_attention_from_row(h->q, query), 1,
                       (tn_attention_rows){t->keys, TILE}, probabilities);
  attention_softmax(p, h, t, &s, query, key, scores, rescale);
  tn_attention_rows sums = *started ? (tn_attention_rows){more, p->value_width} : y;
  tn_attention_product(p, s.rows, p->value_width, s.most, probabilities, 1, v, sums);
  if (*started) p->loops->accumulate(y.at, y.step, more, rescale, s.rows, p->value_width);
  *started = true;
}

/* Rows without a key that they see are 0. */
static void attention_clear_unseeing(const tn_attention_kernel *p, tn_attention_rows y, const float *largest,
                                     int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (largest[i] <= TN_ATTENTION_HIDDEN)
      memset(y.at + i * y.step, 0, sizeof(float) * (size_t)p->value_width);
}

static void attention_finish_strip(const tn_attention_kernel *p, const attention_head *h,
                                   const attention_query_tile *t, int64_t query, int64_t n) {
  float unused[STRIP];
  const float *largest = t->largest + query % TILE, *sum = t->sum + query % TILE;
  tn_attention_rows y = tn_attention_from_row(h->y, query);
  if (t->started[query % TILE / STRIP])
    p->loops->normalize(y.at, y.step, h->lse != NULL ? h->lse + query : unused, largest, sum, n,
                        p->value_width);
  if (p->general) attention_clear_unseeing(p, y, largest, n);
}

/* A tile of queries and all keys. */
static void onednn_attention_query_rows(const tn_attention_kernel *p, const attention_head *h,
                                        int64_t query) {
  attention_query_tile t;
  int64_t end = least(p->queries, query + TILE);
  for (int32_t i = 0; i < TILE; i++) t.largest[i] = -INFINITY;
  memset(t.sum, 0, sizeof t.sum);
  memset(t.started, 0, sizeof t.started);
  for (int64_t key = 0; key < p->keys; key += TILE) {
    int64_t keys = least(TILE, p->keys - key);
    if (!attention_sees_tile(p, query, end, key, keys)) continue;
    tn_attention_transpose(p, tn_attention_from_row(h->k, key), keys, p->width, t.keys);
    for (int64_t i = query; i < end; i += STRIP) attention_add_strip(p, h, &t, i, key, keys);
  }
  for (int64_t i = query; i < end; i += STRIP) attention_finish_strip(p, h, &t, i, least(STRIP, end - i));
}

/* ---- heads ---- */

static const void *attention_mask_at(const tn_attention_job *j, int64_t index) {
  const tn_attention_kernel *p = j->p;
  int64_t at = index / p->heads * p->mask.step[0] + index % p->heads * p->mask.step[1];
  if (!p->general || p->mask.dtype < 0) return NULL;
  return (const uint8_t *)j->l->in[3].data + at * (int64_t)tn_dtype_size(p->mask.dtype);
}

/* Head `index`; y is tensor number `result`, and the log-sum-exp the one behind it. */
static void attention_run_head(const tn_attention_job *j, int64_t index, int32_t result) {
  const tn_attention_kernel *p = j->p;
  for (int32_t i = 0; i < 3; i++) tn_attention_convert(j, i, index);
  const attention_head h = {tn_attention_rows_of(j, 0, index),
                            tn_attention_rows_of(j, 1, index),
                            tn_attention_rows_of(j, 2, index),
                            tn_attention_rows_of(j, result, index),
                            p->general ? NULL : tn_attention_head_data(p, &j->at[result + 1], index),
                            attention_mask_at(j, index)};
  for (int64_t query = 0; query < p->queries; query += TILE) onednn_attention_query_rows(p, &h, query);
  tn_attention_convert(j, result, index);
}

static void attention_chunk(void *arg, int64_t chunk) {
  const tn_attention_job *j = arg;
  const tn_attention_kernel *p = j->p;
  int64_t first = chunk * p->heads_per_chunk;
  for (int64_t b = first; b < least(first + p->heads_per_chunk, p->batch * p->heads); b++)
    attention_run_head(j, b, p->general ? 4 : 3);
}

static tn_status onednn_attention_launch(tn_launch *l) {
  return tn_attention_run(l, "qkvyl", attention_chunk);
}

static tn_status onednn_attention_launch_general(tn_launch *l) {
  return tn_attention_run(l, "qkvmy", attention_chunk);
}

TN_DEFINE_KERNEL(onednn, attention, "onednn_attention", "y, lse = attention(q, k, v)", "attention over tiles",
                 .query = tn_attention_query, .prepare = tn_attention_prepare, .release = tn_delete_prepared,
                 .launch = onednn_attention_launch);
TN_DEFINE_KERNEL(onednn, general_attention, "onednn_general_attention",
                 "y = general_attention(q, k, v, mask?)", "attention over tiles with a mask or a window",
                 .query = tn_attention_query, .prepare = tn_attention_prepare, .release = tn_delete_prepared,
                 .launch = onednn_attention_launch_general);
