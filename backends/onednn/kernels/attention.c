/* backends/onednn/kernels/attention.c: attention and its gradient in one pass over tiles, without storing the
 * probabilities of all pairs (Dao et al., "FlashAttention", NeurIPS 2022; Rabe and Staats, "Self-attention
 * does not need O(n^2) memory", 2021). A chunk is some whole heads of the batch, so that sums do not depend
 * on the number of threads. Here are query, prepare, and the operands of a launch. */
#include "backends/onednn/kernels/attention_kernel.h"

#include <math.h>
#include <string.h>

#include "backends/onednn/onednn.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"

enum { TILE = TN_ATTENTION_TILE, STRIP = TN_ATTENTION_STRIP, WIDTH = TN_ATTENTION_WIDTH };

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

static void attention_set_dims(tn_attention_kernel *p, const tn_attention_attributes *a, const tn_type *q,
                               const tn_type *v) {
  p->side_by_side = a->heads > 0;
  p->batch = q->dims[0];
  p->heads = p->side_by_side ? a->heads : q->dims[1];
  p->queries = q->dims[p->side_by_side ? 1 : 2];
  p->keys = v->dims[p->side_by_side ? 1 : 2];
  p->width = p->side_by_side ? q->dims[2] / a->heads : q->dims[3];
  p->value_width = p->side_by_side ? v->dims[2] / a->heads : v->dims[3];
}

/* The mask's dims are right-aligned with batch, heads, queries and keys. */
static tn_attention_mask attention_mask_of(const tn_attention_attributes *a, const tn_type *mask) {
  tn_attention_mask made = {.dtype = mask != NULL ? mask->dtype : -1, .window = a->window};
  int64_t step = 1;
  for (int32_t i = mask != NULL ? mask->rank : 0; i-- > 0; step *= mask->dims[i])
    made.step[4 - mask->rank + i] = mask->dims[i] == 1 ? 0 : step;
  return made;
}

static bool attention_is_general(const tn_match *m) {
  return strcmp(m->nodes[0].node->op, "general_attention") == 0;
}

/* A chunk takes some tens of microseconds. */
static void attention_make(const tn_match *m, const void *backend, tn_attention_kernel *p) {
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  int32_t isa = tn_onednn_isa_of(backend);
  *p = (tn_attention_kernel){.loops = TN_LOOPS_PICK_AT(tn_loops_attention, isa),
                             .gemm = TN_LOOPS_PICK_AT(tn_loops_gemm, isa),
                             .transpose = TN_LOOPS_PICK_AT(tn_loops_transpose, isa)->of_4,
                             .causal = a->causal != 0,
                             .general = attention_is_general(m)};
  if (p->general) p->mask = attention_mask_of(a, m->in[3]);
  attention_set_dims(p, a, m->in[0], m->in[2]);
  if (m->n_nodes > 1) p->joined = p->heads * (2 * p->width + p->value_width);
  p->scale = (float)(a->scale != 0 ? a->scale : 1 / sqrt((double)p->width));
  double work = (double)p->queries * (double)p->keys * (double)(p->width + p->value_width);
  p->heads_per_chunk = work > 0 && work < 1e6 ? (int64_t)(1e6 / work) : 1;
}

/* Masks of halves, and scores that are bounded or fall with the distance, are left to the decomposition. */
static tn_status attention_check_general(tn_env *env, const tn_match *m) {
  const tn_attention_attributes *a = m->nodes[0].node->attributes;
  if (!attention_is_general(m)) return TN_OK;
  if (a->softcap != 0 || a->alibi)
    return tn_fail(
        env, TN_EUNSUPPORTED, a->alibi ? "alibi" : "softcap",
        "scores are changed by their size or distance; here they have a mask and a window at most");
  if (m->in[3] == NULL || m->in[3]->dtype == TN_F32 || m->in[3]->dtype == TN_BOOL) return TN_OK;
  return tn_fail(env, TN_EUNSUPPORTED, "dtype", "the mask is %s, expected f32 or bool",
                 tn_dtype_name(m->in[3]->dtype));
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

static tn_status attention_check_width(tn_env *env, const tn_attention_kernel *p) {
  if (p->width >= 1 && p->width <= WIDTH && p->value_width >= 1 && p->value_width <= WIDTH) return TN_OK;
  return tn_fail(env, TN_EUNSUPPORTED, "shape", "heads are %lld and %lld wide, expected 1 to %d",
                 (long long)p->width, (long long)p->value_width, WIDTH);
}

static int64_t attention_padded(int64_t n) { return round_up(n, 16); }

/* bf16 operands and results are f32 in the workspace. */
static int64_t attention_count_f32(const tn_match *m) {
  int64_t n = 0;
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i] != NULL && m->in[i]->dtype == TN_BF16) n += attention_padded(tn_type_count(m->in[i]));
  for (int32_t i = 0; i < m->n_out; i++)
    if (m->out[i]->dtype == TN_BF16) n += attention_padded(tn_type_count(m->out[i]));
  return n + (m->n_nodes > 1 ? attention_padded(1) * 3 : 0);
}

tn_status tn_attention_query(tn_query *q) {
  TN_TRY(attention_check(&q->env, q->match));
  tn_attention_kernel p;
  attention_make(q->match, q->backend, &p);
  tn_status status = attention_check_width(&q->env, &p);
  if (status == TN_OK) status = attention_check_join(&q->env, q->match);
  if (status == TN_OK) status = attention_check_general(&q->env, q->match);
  if (status != TN_OK) return status;
  double macs_per_s = 3e10 * tn_thread_speed(q->device) * q->device->threads;
  double pairs = (double)p.batch * (double)p.heads * (double)p.queries * (double)p.keys;
  return tn_offer(q, (tn_variant){.name = "tiles",
                                  .workspace_bytes = 4 * attention_count_f32(q->match),
                                  .prepared_bytes = sizeof p,
                                  .cost_s = q->device->launch_s + pairs * (double)(p.width + p.value_width) *
                                                                      (q->match->n_in > 4 ? 3 : 2) /
                                                                      macs_per_s});
}

tn_status tn_attention_prepare(tn_prepare *p, void **made) {
  tn_attention_kernel *plan = tn_new(p, sizeof *plan);
  *made = plan;
  if (plan == NULL) return TN_ENOMEM;
  attention_make(p->match, p->backend, plan);
  return TN_OK;
}

/* ---- operands in f32 ------------------------------------------------------------------------------ */

static tn_attention_operand attention_dense_operand(const tn_attention_job *j, int32_t i, bool together) {
  const tn_attention_kernel *p = j->p;
  char letter = j->letters[i];
  int64_t rows = letter == 'k' || letter == 'v' ? p->keys : p->queries;
  int64_t width = letter == 'l' ? 1 : letter == 'v' || letter == 'y' ? p->value_width : p->width;
  return (tn_attention_operand){.rows = rows,
                                .width = width,
                                .row = together ? p->heads * width : width,
                                .head = together ? width : rows * width,
                                .batch = p->heads * rows * width};
}

/* The operand in the memory of the caller, from `*data` on; distances count its elements. */
static tn_attention_operand attention_caller_operand(const tn_attention_job *j, int32_t i, uint8_t **data,
                                                     int32_t *dtype) {
  const tn_attention_kernel *p = j->p;
  int32_t result = i - j->l->n_in;
  const tn_view *v = result < 0 ? &j->l->in[i] : &j->l->out[p->joined > 0 ? 0 : result];
  tn_attention_operand o = attention_dense_operand(j, i, p->side_by_side && j->letters[i] != 'l');
  *data = v->data;
  *dtype = v->type.dtype;
  if (result < 0 || p->joined == 0) return o;
  *data += result * p->heads * p->width * (int64_t)tn_dtype_size(*dtype);
  o.row = p->joined;
  o.batch = o.rows * p->joined;
  return o;
}

static void attention_set_operands(tn_attention_job *j) {
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
static int64_t attention_offset(const tn_attention_kernel *p, const tn_attention_operand *o, int64_t index) {
  return index / p->heads * o->batch + index % p->heads * o->head;
}
float *tn_attention_head_data(const tn_attention_kernel *p, const tn_attention_operand *o, int64_t index) {
  return o->data + attention_offset(p, o, index);
}

/* Converts a head of a bf16 operand to f32, or a head of a result back. */
void tn_attention_convert(const tn_attention_job *j, int32_t i, int64_t index) {
  const tn_attention_kernel *p = j->p;
  uint8_t *data;
  int32_t dtype;
  tn_attention_operand there = attention_caller_operand(j, i, &data, &dtype);
  if (dtype != TN_BF16) return;
  uint16_t *narrow = (uint16_t *)(void *)data + attention_offset(p, &there, index);
  float *wide = tn_attention_head_data(p, &j->at[i], index);
  for (int64_t r = 0; r < there.rows; r++, narrow += there.row, wide += there.width) {
    if (i < j->l->n_in)
      p->gemm->widen(narrow, wide, there.width);
    else
      p->gemm->narrow(wide, narrow, there.width);
  }
}

/* ---- launch ---- */

tn_status tn_attention_run(tn_launch *l, const char *letters, void (*body)(void *arg, int64_t chunk)) {
  tn_attention_job j = {.p = l->prepared, .l = l, .letters = letters};
  int64_t heads = j.p->batch * j.p->heads;
  if (heads == 0) return TN_OK;
  attention_set_operands(&j);
  tn_parallel(l, (heads + j.p->heads_per_chunk - 1) / j.p->heads_per_chunk, body, &j);
  return TN_OK;
}

/* ---- tiles ---------------------------------------------------------------------------------------- */

tn_attention_rows tn_attention_rows_of(const tn_attention_job *j, int32_t i, int64_t index) {
  return (tn_attention_rows){tn_attention_head_data(j->p, &j->at[i], index), j->at[i].row};
}

/* c = a b; a_k is the distance of the columns of a. */
void tn_attention_product(const tn_attention_kernel *p, int64_t m, int64_t n, int64_t k, tn_attention_rows a,
                          int64_t a_k, tn_attention_rows b, tn_attention_rows c) {
  const tn_sgemm g = {m, n, k, a.at, b.at, a.step, a_k, b.step, 1, c.at, c.step, {0}};
  p->gemm->straight(&g);
}

/* Transposes n rows into columns of a panel, with zeros behind them. */
void tn_attention_transpose(const tn_attention_kernel *p, tn_attention_rows from, int64_t n, int64_t width,
                            float *panel) {
  if (n < TILE) memset(panel, 0, sizeof(float) * (size_t)(TILE * width));
  p->transpose(from.at, from.step, panel, TILE, n, width);
}

tn_attention_view tn_attention_view_at(const tn_attention_kernel *p, int64_t query, int64_t key,
                                       int64_t keys) {
  tn_attention_view s = {.rows = least(STRIP, p->queries - query)};
  for (int64_t i = 0; i < s.rows; i++) {
    int64_t n = p->causal ? query + i + p->keys - p->queries + 1 - key : keys;
    s.visible[i] = (int32_t)(n < 0 ? 0 : least(n, keys));
    s.most = s.visible[i] > s.most ? s.visible[i] : s.most;
  }
  s.columns = (s.most + STRIP - 1) / STRIP * STRIP;
  return s;
}
