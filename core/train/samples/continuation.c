#include "core/train/samples/continuation.h"

#include <string.h>

#include "core/base/element.h"

static bool continuation_is_tokens(const tn_sample_value *v, int32_t role) {
  return v->role == role && v->type.rank == 1 && v->type.dims[0] > 1 && !tn_dtype_is_float(v->type.dtype);
}

static int64_t continuation_token(const tn_sample_value *v, int64_t i, int64_t at) {
  return (int64_t)tn_element_load(v->type.dtype, tn_sample_row(v, i), at);
}

static void continuation_set(const tn_sample_value *v, int64_t i, int64_t at, int64_t token) {
  tn_element_store(v->type.dtype, v->rows + (size_t)i * v->bytes, at, (double)token);
}

/* ---- whether the data have a next token ---- */

static bool continuation_is_next(const tn_sample_set *set, const tn_sample_value *input,
                                 const tn_sample_value *target) {
  int64_t n = input->type.dims[0];
  if (target->type.dims[0] != n) return false;
  for (int64_t i = 0; i < set->n; i++)
    for (int64_t at = 0; at + 1 < tn_sample_length(set, i, n); at++) {
      int64_t next = continuation_token(target, i, at);
      if (next >= 0 && next != continuation_token(input, i, at + 1)) return false;
    }
  return true;
}

static const tn_sample_value *continuation_find_input(const tn_sample_set *set) {
  for (int32_t k = 0; k < set->n_values; k++)
    for (int32_t j = 0; j < set->n_values; j++) {
      const tn_sample_value *input = &set->values[k], *target = &set->values[j];
      if (continuation_is_tokens(input, TN_FIELD_INPUT) && continuation_is_tokens(target, TN_FIELD_TARGET) &&
          continuation_is_next(set, input, target))
        return input;
    }
  return NULL;
}

tn_status tn_continuation_find(tn_sample_set *set, tn_continuation *c) {
  *c = (tn_continuation){.most = set->run->settings.run.sample_tokens};
  const tn_sample_value *input = c->most > 0 ? continuation_find_input(set) : NULL;
  for (int32_t k = 0; input != NULL && c->output == NULL && k < set->n_values; k++) {
    const tn_sample_value *v = &set->values[k];
    if (continuation_is_tokens(v, TN_SAMPLE_OUTPUT) && v->type.dims[0] == input->type.dims[0]) c->output = v;
  }
  if (c->output == NULL) return TN_OK;
  c->input = input;
  if (c->most > input->type.dims[0]) c->most = input->type.dims[0];
  c->tokens = tn_arena_alloc(&set->arena, tn_size_mul((size_t)(set->batch * c->most), sizeof *c->tokens));
  return c->tokens != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- appending ---- */

int64_t tn_continuation_prompt(const tn_sample_set *set, const tn_continuation *c, int64_t i) {
  int64_t half = tn_sample_length(set, i, c->input->type.dims[0]) / 2;
  return half > 0 ? half : 1;
}

int64_t tn_continuation_count(const tn_sample_set *set, const tn_continuation *c, int64_t i) {
  int64_t room = c->input->type.dims[0] - tn_continuation_prompt(set, c, i);
  return room < c->most ? room : c->most;
}

/* The places behind the prompt repeat its last token, which is in the vocabulary. */
static void continuation_cut(const tn_sample_set *set, const tn_continuation *c) {
  for (int64_t i = 0; i < set->n; i++) {
    int64_t prompt = tn_continuation_prompt(set, c, i), last = continuation_token(c->input, i, prompt - 1);
    for (int64_t at = prompt; at < c->input->type.dims[0]; at++) continuation_set(c->input, i, at, last);
  }
}

/* Whether the outputs for the prompts are those that the whole samples gave. */
static bool continuation_is_causal(const tn_sample_set *set, const tn_continuation *c, const char *whole) {
  for (int64_t i = 0; i < set->n; i++)
    for (int64_t at = 0; at < tn_continuation_prompt(set, c, i); at++)
      if (tn_element_load(c->output->type.dtype, whole + (size_t)i * c->output->bytes, at) !=
          (double)continuation_token(c->output, i, at))
        return false;
  return true;
}

static void continuation_append(const tn_sample_set *set, tn_continuation *c, int64_t step) {
  for (int64_t i = 0; i < set->n; i++) {
    int64_t at = tn_continuation_prompt(set, c, i) + step;
    if (step >= tn_continuation_count(set, c, i)) continue;
    int64_t token = continuation_token(c->output, i, at - 1);
    c->tokens[i * c->most + step] = (int32_t)token;
    continuation_set(c->input, i, at, token);
  }
}

static tn_status continuation_go_on(tn_sample_set *set, tn_continuation *c, const char *whole,
                                    tn_sample_run run, void *context) {
  continuation_cut(set, c);
  for (int64_t step = 0; step < c->most; step++) {
    TN_TRY(run(context));
    if (step == 0) c->causal = continuation_is_causal(set, c, whole);
    if (!c->causal) return TN_OK;
    continuation_append(set, c, step);
  }
  return TN_OK;
}

tn_status tn_continuation_run(tn_sample_set *set, tn_continuation *c, tn_sample_run run, void *context) {
  size_t in = (size_t)set->batch * c->input->bytes;
  const void *env = &set->run->env;
  char *inputs = tn_alloc(env, in + 1), **outputs = tn_alloc(env, (size_t)set->n_values * sizeof *outputs);
  tn_status status = inputs != NULL && outputs != NULL ? TN_OK : TN_ENOMEM;
  for (int32_t k = 0; status == TN_OK && k < set->n_values; k++) {
    size_t bytes = (size_t)set->batch * set->values[k].bytes;
    if (set->values[k].role != TN_SAMPLE_OUTPUT) continue;
    outputs[k] = tn_alloc(env, bytes + 1);
    if (outputs[k] == NULL) status = TN_ENOMEM;
    if (outputs[k] != NULL) memcpy(outputs[k], set->values[k].rows, bytes);
  }
  if (status == TN_OK) {
    memcpy(inputs, c->input->rows, in);
    status = continuation_go_on(set, c, outputs[c->output - set->values], run, context);
    memcpy(c->input->rows, inputs, in);
  }
  for (int32_t k = 0; outputs != NULL && k < set->n_values; k++) {
    if (outputs[k] != NULL)
      memcpy(set->values[k].rows, outputs[k], (size_t)set->batch * set->values[k].bytes);
    tn_release(env, outputs[k]);
  }
  tn_release(env, outputs);
  tn_release(env, inputs);
  return status;
}
