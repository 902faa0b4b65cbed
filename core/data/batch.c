/* core/data/batch.c: memory of a pending batch, padding, and the transforms per batch. */
#include "core/data/batch.h"

#include <string.h>

#include "core/base/text/text.h"
#include "core/data/lengths.h"

/* The size of the largest operand of a field among the stages per batch, and the number of stages with
 * that field. */
static size_t batch_largest_operand(const tn_transform_chain *chain, int32_t field, int *stages) {
  size_t largest = 0;
  *stages = 0;
  for (int32_t s = chain->n_sample_stages; s < chain->n_stages; s++)
    for (int32_t k = 0; k < chain->stages[s].n; k++) {
      if (chain->stages[s].field[k] != field) continue;
      size_t bytes = tn_transform_chain_bytes(&chain->stages[s].in[k]);
      if (bytes > largest) largest = bytes;
      ++*stages;
    }
  return largest;
}

static tn_status batch_allocate(tn_pending_batch *p) {
  size_t n = (size_t)p->chain->n_outputs, most = (size_t)p->chain->most_fields;
  p->fields = tn_alloc(p, tn_size_mul(n, sizeof(void *)));
  p->targets = tn_alloc(p, tn_size_mul(n, sizeof(void *)));
  p->buffers = tn_alloc(p, tn_size_mul(n, 2 * sizeof(void *)));
  p->in = tn_alloc(p, tn_size_mul(most, sizeof(void *)));
  p->out = tn_alloc(p, tn_size_mul(most, sizeof(void *)));
  p->scratch = tn_alloc(p, tn_size_mul((size_t)p->chain->n_stages, sizeof(*p->scratch)));
  if (p->fields == NULL || p->targets == NULL || p->buffers == NULL || p->in == NULL || p->out == NULL ||
      p->scratch == NULL)
    return TN_ENOMEM;
  for (int32_t i = 0; i < p->chain->n_outputs; i++) {
    int stages;
    size_t bytes = batch_largest_operand(p->chain, i, &stages);
    for (int which = 0; which < 2 && which < stages; which++) {
      p->buffers[2 * i + which] = tn_alloc(p, bytes);
      if (p->buffers[2 * i + which] == NULL) return TN_ENOMEM;
    }
  }
  return TN_OK;
}

tn_status tn_pending_batch_init(tn_env *env, const tn_transform_chain *chain, int64_t batch,
                                tn_pending_batch *p) {
  *p = (tn_pending_batch){.chain = chain, .batch = batch};
  tn_error_record_init(&p->env, &p->record, env);
  sem_init(&p->done, 0, 0);
  pthread_mutex_init(&p->lock, NULL);
  return batch_allocate(p) == TN_OK ? TN_OK : tn_error_move(env, p);
}

void tn_pending_batch_finish(tn_pending_batch *p) {
  if (p->chain == NULL) return;
  for (int32_t i = 0; p->buffers != NULL && i < 2 * p->chain->n_outputs; i++) tn_release(p, p->buffers[i]);
  for (int32_t s = 0; p->scratch != NULL && s < p->chain->n_stages; s++) tn_release(p, p->scratch[s].memory);
  tn_release(p, p->scratch);
  tn_release(p, p->fields);
  tn_release(p, p->targets);
  tn_release(p, p->buffers);
  tn_release(p, p->in);
  tn_release(p, p->out);
  sem_destroy(&p->done);
  pthread_mutex_destroy(&p->lock);
  p->chain = NULL;
}

void tn_pending_batch_aim(tn_pending_batch *p, const tn_batch *to, int64_t block, int64_t samples) {
  for (int32_t i = 0; i < p->chain->n_outputs; i++) {
    p->fields[i] = to->fields[i];
    p->targets[i] = p->buffers[2 * i] != NULL ? p->buffers[2 * i] : to->fields[i];
  }
  p->weights = to->weights;
  p->ids = to->ids;
  p->block = block;
  p->samples = samples > 0 ? samples : 0;
  p->filled = samples < 0 ? 0 : samples + (samples < p->batch);
  p->status = TN_OK;
  tn_error_clear(p);
}

void tn_pending_batch_fail(tn_pending_batch *p, int64_t row, tn_status status, const void *handle) {
  pthread_mutex_lock(&p->lock);
  if (p->status == TN_OK || row < p->failed_row) {
    p->status = status;
    p->failed_row = row;
    tn_error_move(p, handle);
  }
  pthread_mutex_unlock(&p->lock);
}

/* Pads the batch with copies of the sample in the last filled row: its values are valid input for the
 * model, and weight 0 removes them from every sum. */
static void batch_pad(tn_pending_batch *p) {
  for (int64_t row = 0; row < p->batch; row++) {
    bool real = row < p->samples;
    if (p->weights != NULL) p->weights[row] = real ? 1.0f : 0.0f;
    if (row < p->filled) continue;
    if (p->ids != NULL) p->ids[row] = p->ids[p->samples];
    for (int32_t i = 0; i < p->chain->n_outputs; i++) {
      size_t bytes = tn_transform_chain_bytes(&p->chain->sampled[i]);
      char *values = p->targets[i];
      if (bytes > 0) memcpy(values + (size_t)row * bytes, values + (size_t)p->samples * bytes, bytes);
    }
  }
}

static tn_status batch_run_stage(tn_pending_batch *p, int32_t number, uint64_t key) {
  const tn_transform_chain *chain = p->chain;
  const tn_stage *stage = &chain->stages[number];
  for (int32_t k = 0; k < stage->n; k++) {
    int32_t f = stage->field[k];
    bool last = tn_transform_chain_last_stage(chain, number, chain->n_stages, f) == number;
    p->in[k] = p->targets[f];
    p->out[k] = last ? p->fields[f] : p->buffers[2 * f + (p->targets[f] == p->buffers[2 * f])];
    p->targets[f] = p->out[k];
  }
  tn_transform_call call = {.env = p->env,
                            .struct_size = sizeof call,
                            .n = stage->n,
                            .in_type = stage->in,
                            .out_type = stage->out,
                            .in = p->in,
                            .out = p->out,
                            .index = p->block,
                            .key =
                                tn_hash_mix(tn_hash_mix(key, (uint64_t)p->block), (uint64_t)stage->position),
                            .scratch = &p->scratch[number]};
  return stage->transform->apply(&call, stage->options);
}

void tn_pending_batch_complete(tn_pending_batch *p, uint64_t key) {
  if (p->status != TN_OK) return;
  batch_pad(p);
  p->length = tn_lengths_shrink(p->chain, p->targets, p->filled, p->batch);
  for (int32_t s = p->chain->n_sample_stages; s < p->chain->n_stages && p->status == TN_OK; s++) {
    const tn_stage *stage = &p->chain->stages[s];
    p->status = batch_run_stage(p, s, key);
    tn_wrap(p, p->status, "%s%stransform '%s', batch %lld", stage->where, stage->where[0] != '\0' ? ": " : "",
            stage->transform->item.name, (long long)p->block);
  }
}
