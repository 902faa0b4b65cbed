/* backends/cuda/kernels/attention_operands.c: see attention_operands.h. */
#include "backends/cuda/kernels/attention_operands.h"

#include <math.h>
#include <string.h>

#include "tenon/attributes.h"

enum { QUERY, KEY, VALUE, RESULT, LOGARITHM, RESULT_GRADIENT };
enum { KEYS = 3, VALUES, POSITION /* of cached_attention */ };

static const tn_match_node *operands_find_op(const tn_match *m) {
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (strstr(m->nodes[i].node->op, "attention") != NULL) return &m->nodes[i];
  return NULL;
}

/* The node that makes a value of the match. */
static const tn_match_node *operands_find_maker(const tn_match *m, int32_t number) {
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (number >= m->nodes[i].first_out && number < m->nodes[i].first_out + m->nodes[i].node->n_out)
      return &m->nodes[i];
  return NULL;
}

/* The result of the match that is a value; -1: none. */
static int32_t operands_find_result(const tn_match *m, int32_t number) {
  for (int32_t i = 0; i < m->n_out; i++)
    if (m->out_number[i] == number) return i;
  return -1;
}

/* The distance of elements that follow each other along a dimension of a row-major tensor. */
static int64_t operands_step(const tn_type *t, int32_t dimension) {
  int64_t step = 1;
  for (int32_t i = dimension + 1; i < t->rank; i++) step *= t->dims[i];
  return step;
}

/* In a tensor of (batch, heads, tokens, width), or (batch, tokens, heads x width), of which the operand of
 * the op is a part. */
static tn_cuda_heads operands_heads_in(const tn_type *tensor, int32_t number, int64_t width) {
  bool together = tensor->rank == 3;
  return (tn_cuda_heads){.number = number,
                         .batch = operands_step(tensor, 0),
                         .head = together ? width : operands_step(tensor, 1),
                         .row = operands_step(tensor, together ? 1 : 2)};
}

static tn_status operands_skip_slice(tn_env *env, const tn_node *slice, tn_cuda_heads *heads) {
  const tn_slice_attributes *a = slice->attributes;
  for (int32_t i = 0; i < slice->in[0]->rank; i++) {
    heads->first += a->starts.v[i] * operands_step(slice->in[0], i);
    if (a->steps.n > 0 && a->steps.v[i] != 1)
      return tn_fail(env, TN_EUNSUPPORTED, NULL, "a slice takes every element number %lld of dimension %d",
                     (long long)a->steps.v[i], (int)i);
  }
  return TN_OK;
}

static tn_status operands_find_in(tn_env *env, const tn_match *m, int32_t operand, int64_t width,
                                  tn_cuda_heads *heads) {
  const tn_match_node *op = operands_find_op(m), *maker = operands_find_maker(m, op->in[operand]);
  if (maker == NULL) {
    *heads = operands_heads_in(op->node->in[operand], op->in[operand], width);
    return TN_OK;
  }
  *heads = operands_heads_in(maker->node->in[0], maker->in[0], width);
  return operands_skip_slice(env, maker->node, heads);
}

/* A result of the op: one of the match, or a part of a concatenation. */
static tn_cuda_heads operands_find_out(const tn_match *m, int32_t result, int64_t width) {
  const tn_match_node *op = operands_find_op(m), *last = &m->nodes[m->n_nodes - 1];
  int32_t number = operands_find_result(m, op->first_out + result);
  if (number >= 0) return operands_heads_in(&op->node->out[result], number, width);
  const tn_axis_attributes *a = last->node->attributes;
  const tn_type *all = &last->node->out[0];
  int32_t axis = (int32_t)(a->axis < 0 ? a->axis + all->rank : a->axis);
  tn_cuda_heads heads = operands_heads_in(all, operands_find_result(m, last->first_out), width);
  for (int32_t i = 0; i < last->node->n_in && last->in[i] != op->first_out + result; i++)
    heads.first += last->node->in[i]->dims[axis] * operands_step(all, axis);
  return heads;
}

static void operands_set_sizes(const tn_node *op, tn_cuda_attention_use *a) {
  const tn_attention_attributes *attributes = op->attributes;
  const tn_type *q = op->in[QUERY], *v = op->in[VALUE], *keys = op->in[a->cached ? KEYS : KEY];
  bool together = attributes->heads > 0;
  int32_t tokens = together ? 1 : 2;
  a->batch = q->dims[0];
  a->heads = together ? attributes->heads : q->dims[1];
  a->queries = q->dims[tokens];
  a->keys = keys->dims[tokens];
  a->width = q->dims[tokens + 1] / (together ? a->heads : 1);
  a->value_width = v->dims[tokens + 1] / (together ? a->heads : 1);
  a->causal = attributes->causal != 0;
  a->scale = attributes->scale != 0 ? attributes->scale : 1 / sqrt((double)a->width);
}

static tn_status operands_find_cache(tn_env *env, const tn_match *m, tn_cuda_attention_use *a) {
  const tn_match_node *op = operands_find_op(m);
  a->position = op->in[POSITION];
  for (int32_t i = 0; i < 2; i++) a->all[i] = operands_find_result(m, op->first_out + 1 + i);
  tn_status status = operands_find_in(env, m, KEYS, a->width, &a->cache[0]);
  return status == TN_OK ? operands_find_in(env, m, VALUES, a->value_width, &a->cache[1]) : status;
}

tn_status tn_cuda_attention_use_of(tn_env *env, const tn_match *match, tn_cuda_attention_use *a) {
  const tn_match_node *op = operands_find_op(match);
  const tn_cuda_heads none = {.number = -1};
  *a = (tn_cuda_attention_use){.gradient = strcmp(op->node->op, "attention_grad") == 0,
                               .cached = strcmp(op->node->op, "cached_attention") == 0,
                               .dtype = op->node->in[QUERY]->dtype};
  operands_set_sizes(op->node, a);
  TN_TRY(operands_find_in(env, match, QUERY, a->width, &a->q));
  TN_TRY(operands_find_in(env, match, KEY, a->width, &a->k));
  TN_TRY(operands_find_in(env, match, VALUE, a->value_width, &a->v));
  if (a->cached) TN_TRY(operands_find_cache(env, match, a));
  if (a->gradient) TN_TRY(operands_find_in(env, match, RESULT, a->value_width, &a->y));
  if (a->gradient) TN_TRY(operands_find_in(env, match, RESULT_GRADIENT, a->value_width, &a->dy));
  a->lse = a->gradient ? op->in[LOGARITHM] : operands_find_result(match, op->first_out + 1);
  if (!a->gradient) a->y = operands_find_out(match, 0, a->value_width);
  if (!a->gradient) a->dy = none;
  a->dq = a->gradient ? operands_find_out(match, 0, a->width) : none;
  a->dk = a->gradient ? operands_find_out(match, 1, a->width) : none;
  a->dv = a->gradient ? operands_find_out(match, 2, a->value_width) : none;
  return TN_OK;
}
