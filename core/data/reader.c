/* core/data/reader.c: reads a sample and applies the stages per sample. */
#include "core/data/reader.h"

#include <string.h>

#include "core/base/system/system.h"
#include "core/data/byte_table.h"
#include "core/data/lengths.h"

/* Implements tn_sample_stopping. */
static int32_t reader_is_stopping(const tn_sample *sample) {
  const tn_reader *reader = (const tn_reader *)sample;
  bool stops = reader->stop != NULL && atomic_load_explicit(reader->stop, memory_order_relaxed) != 0;
  return (reader->cancelled != NULL && atomic_load_explicit(reader->cancelled, memory_order_relaxed)) ||
         (stops && (reader->patience_s == 0 || tn_clock_s() - reader->began_s >= reader->patience_s));
}

/* Scratch memory of at least `bytes`, with undefined contents. */
static void *reader_scratch(tn_reader *reader, tn_reader_field *field, int which, size_t bytes) {
  if (bytes <= field->capacity[which] && field->scratch[which] != NULL) return field->scratch[which];
  tn_release(reader, field->scratch[which]);
  field->capacity[which] = 0;
  field->scratch[which] = tn_resize(reader, NULL, bytes);
  if (field->scratch[which] != NULL) field->capacity[which] = bytes;
  return field->scratch[which];
}

/* Implements tn_sample_field. */
static void *reader_give_field(tn_sample *sample, int32_t i, const tn_type *type) {
  tn_reader *reader = (tn_reader *)sample;
  if (i < 0 || i >= reader->chain->n_fields) {
    tn_failf(reader, TN_EINVAL, "the source asks for field %d of %d", (int)i, (int)reader->chain->n_fields);
    return NULL;
  }
  const tn_field *described = &reader->chain->source[i];
  tn_reader_field *field = &reader->fields[i];
  const tn_type *actual = type != NULL ? type : &described->type;
  if (!tn_transform_chain_fits(&described->type, actual)) {
    tn_failf(reader, TN_EINVAL, "the source gives field '%s' a type that contradicts its description",
             described->name);
    return NULL;
  }
  field->type = *actual;
  void *to = field->last_stage < 0 && !field->padded
                 ? field->target
                 : reader_scratch(reader, field, 0, tn_transform_chain_bytes(actual));
  field->data = to;
  return to;
}

/* Stages that a reader calls: those per sample, and those on the device, which may draw. */
static int32_t reader_stage_count(const tn_transform_chain *chain) {
  return chain->n_sample_stages + chain->n_device_stages;
}

static tn_status reader_allocate(tn_reader *reader) {
  const tn_transform_chain *chain = reader->chain;
  size_t n = (size_t)chain->n_fields, most = (size_t)chain->most_fields;
  reader->fields = tn_alloc(reader, tn_size_mul(n, sizeof(*reader->fields)));
  reader->in_type = tn_alloc(reader, tn_size_mul(most, sizeof(tn_type)));
  reader->out_type = tn_alloc(reader, tn_size_mul(most, sizeof(tn_type)));
  reader->in = tn_alloc(reader, tn_size_mul(most, sizeof(void *)));
  reader->out = tn_alloc(reader, tn_size_mul(most, sizeof(void *)));
  reader->stage_scratch =
      tn_alloc(reader, tn_size_mul((size_t)reader_stage_count(chain), sizeof(*reader->stage_scratch)));
  reader->draws =
      tn_alloc(reader, tn_size_mul((size_t)(chain->n_outputs - chain->n_fields), sizeof(*reader->draws)));
  reader->cached = tn_alloc(reader, tn_size_mul(n, sizeof(*reader->cached)));
  bool all = reader->fields != NULL && reader->in_type != NULL && reader->out_type != NULL &&
             reader->in != NULL && reader->out != NULL && reader->stage_scratch != NULL &&
             reader->cached != NULL && reader->draws != NULL;
  return all ? TN_OK : TN_ENOMEM;
}

tn_status tn_reader_init(tn_env *env, const tn_transform_chain *chain, tn_sample_cache *cache,
                         tn_reader *reader) {
  *reader = (tn_reader){.chain = chain, .cache = cache, .host.field = reader_give_field};
  tn_error_record_init(tn_reader_env(reader), &reader->record, env);
  reader->host.pub.struct_size = sizeof reader->host.pub;
  reader->host.pub.scratch = &reader->source_scratch;
  reader->host.pub.stopping = reader_is_stopping;
  if (reader_allocate(reader) != TN_OK) return tn_error_move(env, reader);
  for (int32_t i = 0; i < chain->n_fields; i++) {
    reader->fields[i].last_stage = tn_transform_chain_last_stage(chain, 0, chain->n_sample_stages, i);
    reader->fields[i].padded = chain->n_lengths > 0 && chain->axis[i] >= 0;
  }
  return TN_OK;
}

void tn_reader_finish(tn_reader *reader) {
  if (reader->chain == NULL) return;
  for (int32_t i = 0; reader->fields != NULL && i < reader->chain->n_fields; i++)
    for (int which = 0; which < 2; which++) tn_release(reader, reader->fields[i].scratch[which]);
  for (int32_t s = 0; reader->stage_scratch != NULL && s < reader_stage_count(reader->chain); s++)
    tn_release(reader, reader->stage_scratch[s].memory);
  tn_release(reader, reader->source_scratch.memory);
  tn_sample_cache_writer_finish(reader, &reader->writer);
  tn_release(reader, reader->stage_scratch);
  tn_release(reader, reader->cached);
  tn_release(reader, reader->draws);
  tn_release(reader, reader->fields);
  tn_release(reader, reader->in_type);
  tn_release(reader, reader->out_type);
  tn_release(reader, reader->in);
  tn_release(reader, reader->out);
  reader->chain = NULL;
}

void tn_reader_aim(tn_reader *reader, int64_t index, uint64_t key, void *const *targets, int64_t row) {
  reader->host.pub.index = index;
  reader->host.pub.key = key;
  for (int32_t i = 0; i < reader->chain->n_fields; i++) {
    size_t bytes = tn_transform_chain_bytes(&reader->chain->sampled[i]);
    reader->fields[i].target = (char *)targets[i] + (size_t)row * bytes;
    reader->fields[i].data = NULL;
  }
  const tn_transform_chain *chain = reader->chain;
  if (chain->n_lengths > 0 && chain->length >= chain->n_fields) {
    reader->length = (int32_t *)targets[chain->length] + row;
    return;
  }
  for (int32_t i = chain->n_fields; i < chain->n_outputs; i++)
    reader->draws[i - chain->n_fields] = (int32_t *)targets[i] + row * chain->sampled[i].dims[0];
}

/* The code of the recorded error, since a callback may return TN_ENOMEM for any failed call of the host. */
static tn_status reader_recorded_status(const tn_reader *reader, tn_status status) {
  return status != TN_OK && status != TN_EOF && reader->record.code != TN_OK ? reader->record.code : status;
}

/* Takes the sample from the cache. The stages read its fields in place. */
static bool reader_take_cached(tn_reader *reader) {
  const char *sample = tn_sample_cache_find(reader->cache, reader->host.pub.index);
  if (sample == NULL) return false;
  tn_sample_cache_fields(reader->cache, sample, reader->cached);
  for (int32_t i = 0; i < reader->chain->n_fields; i++) {
    tn_reader_field *field = &reader->fields[i];
    field->type = reader->cached[i].type;
    field->data = reader->cached[i].data;
    if (field->last_stage >= 0 || field->padded) continue;
    size_t bytes = tn_transform_chain_bytes(&field->type);
    if (bytes > 0) memcpy(field->target, field->data, bytes);
    field->data = field->target;
  }
  return true;
}

static void reader_cache_sample(tn_reader *reader) {
  for (int32_t i = 0; i < reader->chain->n_fields; i++)
    reader->cached[i] = (tn_cached_field){reader->fields[i].type, reader->fields[i].data};
  tn_sample_cache_add(reader->cache, &reader->writer, reader, reader->host.pub.index, reader->cached);
}

tn_status tn_reader_read(tn_reader *reader, const tn_source *source, void *self) {
  tn_sample *sample = &reader->host.pub;
  tn_error_clear(reader);
  if (reader->patience_s > 0) reader->began_s = tn_clock_s();
  if (reader->cache != NULL && reader_take_cached(reader)) return TN_OK;
  tn_status status = source->next != NULL ? source->next(sample, self) : source->read(sample, self);
  if (status != TN_OK) return reader_recorded_status(reader, status);
  for (int32_t i = 0; i < reader->chain->n_fields; i++)
    if (reader->fields[i].data == NULL)
      return tn_failf(reader, TN_EABI, "the source did not write field '%s'", reader->chain->source[i].name);
  if (reader->cache != NULL) reader_cache_sample(reader);
  return TN_OK;
}

/* Determines the types of a call. If the size of a result depends on the sample, the transform infers
 * again with the actual sizes of its operands. */
static tn_status reader_find_types(tn_reader *reader, const tn_stage *stage) {
  for (int32_t k = 0; k < stage->n; k++) {
    reader->in_type[k] = reader->fields[stage->field[k]].type;
    reader->out_type[k] = stage->varies ? reader->in_type[k] : stage->out[k];
  }
  if (!stage->varies) return TN_OK;
  TN_TRY(stage->transform->infer(tn_reader_env(reader), stage->options, stage->n, reader->in_type,
                                 reader->out_type));
  for (int32_t k = 0; k < stage->n; k++)
    if (!tn_transform_chain_fits(&stage->out[k], &reader->out_type[k]))
      return tn_failf(reader, TN_EABI,
                      "the type that it infers for this sample contradicts the one it inferred before");
  return TN_OK;
}

/* The memory for the result of a stage: the batch, or the scratch buffer that the operand does not use. */
static void *reader_result_memory(tn_reader *reader, tn_reader_field *field, int32_t stage,
                                  const tn_type *type) {
  if (field->last_stage == stage && !field->padded) return field->target;
  int free_one = field->data == field->scratch[0];
  return reader_scratch(reader, field, free_one, tn_transform_chain_bytes(type));
}

/* The call of a stage. `number` counts the stages of a reader. */
static tn_transform_call reader_call(tn_reader *reader, const tn_stage *stage, int32_t number) {
  return (tn_transform_call){.env = *tn_reader_env(reader),
                             .struct_size = sizeof(tn_transform_call),
                             .n = stage->n,
                             .index = reader->host.pub.index,
                             .key = tn_hash_mix(reader->host.pub.key, (uint64_t)stage->position),
                             .scratch = &reader->stage_scratch[number]};
}

static tn_status reader_run_stage(tn_reader *reader, int32_t number) {
  const tn_stage *stage = &reader->chain->stages[number];
  TN_TRY(reader_find_types(reader, stage));
  for (int32_t k = 0; k < stage->n; k++) {
    tn_reader_field *field = &reader->fields[stage->field[k]];
    reader->in[k] = field->data;
    reader->out[k] = reader_result_memory(reader, field, number, &reader->out_type[k]);
    if (reader->out[k] == NULL) return TN_ENOMEM;
  }
  tn_transform_call call = reader_call(reader, stage, number);
  call.in_type = reader->in_type;
  call.out_type = reader->out_type;
  call.in = reader->in;
  call.out = reader->out;
  tn_status status = stage->transform->apply(&call, stage->options);
  if (status != TN_OK) return reader_recorded_status(reader, status);
  for (int32_t k = 0; k < stage->n; k++) {
    tn_reader_field *field = &reader->fields[stage->field[k]];
    field->data = reader->out[k];
    field->type = reader->out_type[k];
  }
  return TN_OK;
}

/* Applies all stages that the table replaces. */
static tn_status reader_run_table(tn_reader *reader, int32_t number) {
  const tn_stage *stage = &reader->chain->stages[number];
  const tn_byte_table *table = stage->table;
  tn_reader_field *field = &reader->fields[stage->field[0]];
  tn_type type = field->type;
  type.dtype = table->dtype;
  void *out = reader_result_memory(reader, field, number + table->n_stages - 1, &type);
  if (out == NULL) return TN_ENOMEM;
  tn_byte_table_apply(table, &field->type, field->data, out);
  field->data = out;
  field->type = type;
  return TN_OK;
}

static tn_status reader_wrap_stage(tn_reader *reader, const tn_stage *stage, tn_status status) {
  return tn_wrap(reader, status, "%s%stransform '%s', sample %lld", stage->where,
                 stage->where[0] != '\0' ? ": " : "", stage->transform->item.name,
                 (long long)reader->host.pub.index);
}

/* Writes the random choices of the stages on the device into the batch. */
static tn_status reader_draw(tn_reader *reader) {
  const tn_transform_chain *chain = reader->chain;
  for (int32_t s = 0; s < chain->n_device_stages; s++) {
    const tn_stage *stage = &tn_transform_chain_device_stages(chain)[s];
    if (stage->draws < 0) continue;
    tn_transform_call call = reader_call(reader, stage, chain->n_sample_stages + s);
    call.in_type = stage->in;
    call.out_type = stage->out;
    tn_status status =
        stage->transform->draw(&call, stage->options, reader->draws[stage->draws - chain->n_fields]);
    if (status != TN_OK) return reader_wrap_stage(reader, stage, reader_recorded_status(reader, status));
  }
  return TN_OK;
}

tn_status tn_reader_transform(tn_reader *reader) {
  for (int32_t s = 0; s < reader->chain->n_sample_stages; s++) {
    const tn_stage *stage = &reader->chain->stages[s];
    tn_status status = stage->table != NULL ? reader_run_table(reader, s) : reader_run_stage(reader, s);
    if (stage->table != NULL) s += stage->table->n_stages - 1;
    if (status != TN_OK) return reader_wrap_stage(reader, stage, status);
  }
  TN_TRY(tn_lengths_pad_sample(reader));
  return reader_draw(reader);
}
