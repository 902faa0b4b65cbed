/* backends/cpu/kernels/attention.c: cached_attention. A task is one query of one head: scores of the rows
 * that it sees, their softmax, the weighted sum of values. The number of rows follows from the position, so a
 * token costs as much as there are tokens before it. The caches are written in place. Arithmetic is in f32,
 * for f64 in f64. */
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"
#include "backends/cpu/kernels/common/clones.h"
#include "backends/cpu/kernels/common/lane.h"

#include <math.h>
#include <string.h>

#include "tenon/attributes.h"

/* Elements from one batch, head or token of an operand to the next. */
typedef struct cached_strides {
  int64_t batch, head, token, width;
} cached_strides;

typedef struct cached_job {
  const tn_launch *l;
  cached_strides q, v, keys, values;
  int64_t heads, tokens, room, position;
  double scale;
} cached_job;

enum { Q, K, V, KEYS, VALUES, POSITION };

static cached_strides cached_strides_of(const tn_type *x, int64_t heads) {
  if (heads == 0)
    return (cached_strides){x->dims[1] * x->dims[2] * x->dims[3], x->dims[2] * x->dims[3], x->dims[3],
                            x->dims[3]};
  return (cached_strides){x->dims[1] * x->dims[2], x->dims[2] / heads, x->dims[2], x->dims[2] / heads};
}

/* ---- arithmetic on parts of rows ---- */

enum { LANES = 16 };

static TN_CPU_CLONES float cached_dot_f32(const float *x, const float *y, int64_t n) {
  float lanes[LANES] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) lanes[k] += x[i + k] * y[i + k];
  for (; i < n; i++) sum += x[i] * y[i];
  for (int k = 0; k < LANES; k++) sum += lanes[k];
  return sum;
}

static TN_CPU_CLONES double cached_dot_f64(const double *x, const double *y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

static TN_CPU_CLONES void cached_add_f32(float *sum, float factor, const float *x, int64_t n) {
  TN_CPU_VECTOR
  for (int64_t i = 0; i < n; i++) sum[i] += factor * x[i];
}

static TN_CPU_CLONES void cached_add_f64(double *sum, double factor, const double *x, int64_t n) {
  TN_CPU_VECTOR
  for (int64_t i = 0; i < n; i++) sum[i] += factor * x[i];
}

/* ---- one query ---- */

static double cached_score(const tn_view *q, int64_t q_at, const tn_view *keys, int64_t key_at, int64_t n) {
  double sum = 0;
  for (int64_t at = 0; at < n; at += TN_TILE) {
    int64_t m = least(n - at, TN_TILE);
    if (q->type.dtype == TN_F64) {
      sum += cached_dot_f64((const double *)q->data + q_at + at, (const double *)keys->data + key_at + at, m);
      continue;
    }
    float x[TN_TILE], y[TN_TILE];
    sum += (double)cached_dot_f32(tn_cpu_f32(q->type.dtype, q->data, q_at + at, m, x),
                                  tn_cpu_f32(keys->type.dtype, keys->data, key_at + at, m, y), m);
  }
  return sum;
}

/* Scores become probabilities, rounded to the dtype, as the product with the values takes them. */
static void cached_softmax(int32_t dtype, double *scores, int64_t n) {
  double largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < n; j++) largest = scores[j] > largest || isnan(scores[j]) ? scores[j] : largest;
  for (int64_t j = 0; j < n; j++) sum += scores[j] = exp(scores[j] - largest);
  for (int64_t j = 0; j < n; j++) {
    scores[j] /= sum;
    float p = (float)scores[j];
    if (dtype == TN_F64) continue;
    if (dtype != TN_F32) tn_cpu_round(dtype, &p, &p, 1);
    scores[j] = (double)p;
  }
}

/* y = sum of p[j] * row j of the values. */
static void cached_sum_values(const cached_job *j, int64_t base, const double *p, int64_t n, tn_view *y,
                              int64_t y_at) {
  const tn_view *values = &j->l->out[2];
  int32_t dtype = y->type.dtype;
  for (int64_t at = 0; at < j->values.width; at += TN_TILE) {
    int64_t m = least(j->values.width - at, TN_TILE);
    double wide[TN_TILE] = {0};
    float sum[TN_TILE] = {0}, tile[TN_TILE];
    for (int64_t row = 0; row < n; row++) {
      int64_t from = base + row * j->values.token + at;
      if (dtype == TN_F64)
        cached_add_f64(wide, p[row], (const double *)values->data + from, m);
      else
        cached_add_f32(sum, (float)p[row], tn_cpu_f32(dtype, values->data, from, m, tile), m);
    }
    void *to = tn_cpu_at(y->data, dtype, y_at + at);
    if (dtype == TN_F64)
      memcpy(to, wide, (size_t)m * sizeof *wide);
    else if (dtype == TN_F32)
      memcpy(to, sum, (size_t)m * sizeof *sum);
    else
      tn_cpu_narrow(dtype, sum, to, m);
  }
}

static void cached_attend_chunk(void *arg, int64_t chunk) {
  const cached_job *j = arg;
  int64_t token = chunk % j->tokens, head = chunk / j->tokens % j->heads,
          batch = chunk / j->tokens / j->heads;
  int64_t n = j->position + token + 1;
  double *scores = (double *)j->l->workspace + chunk * j->room;
  int64_t q_at = batch * j->q.batch + head * j->q.head + token * j->q.token;
  int64_t keys_at = batch * j->keys.batch + head * j->keys.head;
  for (int64_t row = 0; row < n; row++)
    scores[row] =
        j->scale * cached_score(&j->l->in[Q], q_at, &j->l->out[1], keys_at + row * j->keys.token, j->q.width);
  cached_softmax(j->l->in[Q].type.dtype, scores, n);
  cached_sum_values(j, batch * j->values.batch + head * j->values.head, scores, n, &j->l->out[0],
                    batch * j->v.batch + head * j->v.head + token * j->v.token);
}

/* ---- the caches ---- */

/* Copies the new rows into a cache; first the cache itself where it is not written in place. */
static void cached_write_rows(const cached_job *j, int32_t rows, int32_t cache, int32_t result) {
  const tn_view *from = &j->l->in[rows], *old = &j->l->in[cache], *to = &j->l->out[result];
  size_t size = tn_dtype_size(to->type.dtype), bytes = tn_type_bytes(&to->type);
  int32_t axis = to->type.rank - 2;
  int64_t blocks = 1, row = to->type.dims[axis + 1];
  for (int32_t i = 0; i < axis; i++) blocks *= to->type.dims[i];
  if (to->data != old->data && bytes > 0) memcpy(to->data, old->data, bytes);
  for (int64_t b = 0; b < blocks && row > 0 && j->tokens > 0; b++)
    memcpy((uint8_t *)to->data + (size_t)((b * j->room + j->position) * row) * size,
           (const uint8_t *)from->data + (size_t)(b * j->tokens * row) * size,
           (size_t)(j->tokens * row) * size);
}

static tn_status cached_attention_launch(tn_launch *l) {
  const tn_type *q = &l->in[Q].type, *keys = &l->in[KEYS].type;
  const tn_attention_attributes *a = l->prepared;
  int32_t axis = q->rank - 2;
  cached_job j = {.l = l,
                  .q = cached_strides_of(q, a->heads),
                  .v = cached_strides_of(&l->in[V].type, a->heads),
                  .keys = cached_strides_of(keys, a->heads),
                  .values = cached_strides_of(&l->in[VALUES].type, a->heads),
                  .heads = a->heads > 0 ? a->heads : q->dims[1],
                  .tokens = q->dims[axis],
                  .room = keys->dims[axis],
                  .position = *(const int64_t *)l->in[POSITION].data};
  if (j.position < 0 || j.position > j.room - j.tokens)
    return tn_fail(
        l, TN_EINVAL, NULL, "cached_attention: position %lld, expected 0 .. %lld: %lld tokens, room for %lld",
        (long long)j.position, (long long)(j.room - j.tokens), (long long)j.tokens, (long long)j.room);
  j.scale = a->scale != 0 ? a->scale : 1 / sqrt((double)j.q.width);
  cached_write_rows(&j, K, KEYS, 1);
  cached_write_rows(&j, V, VALUES, 2);
  tn_parallel(l, q->dims[0] * j.heads * j.tokens, cached_attend_chunk, &j);
  return TN_OK;
}

/* ---- query ---- */

static tn_status cached_attention_query(tn_query *q) {
  static const int32_t inplace[][2] = {{KEYS, 1}, {VALUES, 2}};
  const tn_match *m = q->match;
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  const tn_type *x = m->in[Q];
  int64_t heads = a->heads > 0 ? a->heads : x->dims[1], room = m->in[KEYS]->dims[x->rank - 2];
  if (a->math != TN_MATH_FULL)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "products of operands rounded to TF32 have no kernel");
  int64_t scores = x->dims[0] * heads * x->dims[x->rank - 2] * room;
  return tn_offer(q, (tn_variant){.name = "rows in sight",
                                  .workspace_bytes = scores * (int64_t)sizeof(double),
                                  .n_inplace = 2,
                                  .inplace = inplace});
}

static tn_status cached_attention_prepare(tn_prepare *p, void **prepared) {
  *prepared = (void *)(uintptr_t)p->match->nodes[0].node->attributes;
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, cached_attention, "cached_attention",
                 "y, all_keys, all_values = cached_attention(q, k, v, keys, values, position)",
                 "attention to the cached rows up to the position, which it writes in place",
                 .query = cached_attention_query, .prepare = cached_attention_prepare,
                 .launch = cached_attention_launch);
