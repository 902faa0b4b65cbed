#include "core/train/samples/sample_set.h"

#include <string.h>

#include "core/base/element.h"
#include "core/base/rows.h"
#include "core/records/learnt/vocabulary.h"
#include "core/step/checks/check_model.h"
#include "core/tokenizer/calls.h"
#include "core/train/feed/feeder.h"

/* ---- reading ---- */

/* A batch of the first samples of validation, on any rank the same. All transforms are the host's. */
static tn_status set_options(tn_sample_set *set, const tn_loader *valid, int64_t *longest,
                             tn_loader_options *options) {
  tn_run *run = set->run;
  TN_TRY(tn_feeder_options(run, TN_SPLIT_VALID, NULL, 1, options));
  options->like = valid;
  options->batch = set->batch;
  options->shard = 0;
  options->shards = 1;
  options->workers = 0;
  options->cache_bytes = 0;
  options->pad_last = true;
  if (options->n_padded == 0) return TN_OK;
  *longest = tn_settings_longest(&run->settings); /* the program has the longest of [model] lengths */
  options->lengths = longest;
  options->n_lengths = 1;
  return TN_OK;
}

static const tn_binding *set_find_input(const tn_program *program, const char *name) {
  for (int32_t i = 0; i < program->n_inputs; i++)
    if (tn_text_equal(program->inputs[i].name, name)) return &program->inputs[i];
  return NULL;
}

static tn_status set_add(tn_sample_set *set, const char *name, int32_t role, const tn_type *type) {
  tn_sample_value *value = &set->values[set->n_values++];
  *value = (tn_sample_value){
      .name = tn_arena_strdup(&set->arena, name), .role = role, .type = *type, .bytes = tn_type_bytes(type)};
  return value->name != NULL ? TN_OK : TN_ENOMEM;
}

/* Inputs that the model does not read are left out. */
static tn_status set_add_fields(tn_sample_set *set, const tn_loader *loader, const tn_program *program,
                                void *const *fields) {
  for (int32_t i = 0; i < tn_loader_field_count(loader); i++) {
    const tn_field *field = tn_loader_field(loader, i);
    if (field->role != TN_FIELD_TARGET && set_find_input(program, field->name) == NULL) continue;
    TN_TRY(set_add(set, field->name, field->role, &field->type));
    set->values[set->n_values - 1].classes = field->classes;
    set->values[set->n_values - 1].rows = fields[i];
  }
  return TN_OK;
}

static tn_status set_add_outputs(tn_sample_set *set, const tn_program *program) {
  for (int32_t i = 0; i < program->n_outputs; i++) {
    const tn_type *type = &program->outputs[i].type;
    if (type->rank < 1 || type->dims[0] != set->batch) continue; /* a number of the whole batch */
    const tn_type row = tn_type_row(type);
    TN_TRY(set_add(set, program->outputs[i].name, TN_SAMPLE_OUTPUT, &row));
    tn_sample_value *value = &set->values[set->n_values - 1];
    value->rows = tn_arena_alloc(&set->arena, tn_size_mul(value->bytes, (size_t)set->batch) + 1);
    if (value->rows == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status set_read_batch(tn_sample_set *set, tn_loader *loader, tn_batch *batch) {
  TN_TRY(tn_loader_new_batch(loader, &set->arena, set->batch, batch));
  TN_TRY(tn_loader_start(loader, 0, 0));
  TN_TRY(tn_loader_submit(loader, batch));
  return tn_loader_wait(loader, &set->n);
}

static tn_status set_read(tn_sample_set *set, const tn_loader *valid, const tn_program *program) {
  tn_env *env = &set->run->env;
  tn_loader_options options;
  tn_loader *loader = NULL;
  tn_batch batch = {.ids = NULL};
  int64_t longest;
  TN_TRY(set_options(set, valid, &longest, &options));
  TN_TRY(tn_loader_create(env, &options, &loader));
  size_t most = (size_t)(tn_loader_field_count(loader) + program->n_outputs);
  set->values = tn_arena_alloc(&set->arena, tn_size_mul(most, sizeof *set->values));
  tn_status status = set->values != NULL ? set_read_batch(set, loader, &batch) : TN_ENOMEM;
  if (status == TN_OK) status = set_add_fields(set, loader, program, batch.fields);
  tn_loader_destroy(loader);
  return status == TN_OK ? set_add_outputs(set, program) : tn_wrap(env, status, "[run] samples");
}

/* Every input of the program that is not the host's has a field of its type. */
static tn_status set_check_inputs(const tn_sample_set *set, const tn_program *program) {
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const tn_binding *input = &program->inputs[i];
    if (tn_input_is_of_host(input->name)) continue;
    const tn_signature_field wanted = tn_field_of_input(input->name, &input->type);
    const tn_sample_value *value = tn_sample_find(set, input->name, TN_FIELD_INPUT);
    if (value == NULL) value = tn_sample_find(set, input->name, TN_FIELD_TARGET);
    if (value == NULL || !tn_type_equal(&value->type, &wanted.type))
      return tn_failf(&set->run->env, TN_EINVAL,
                      "%s: the data for [run] samples have no field '%s' of the type that the model takes",
                      set->run->settings.data[TN_SPLIT_VALID].where, input->name);
  }
  return TN_OK;
}

/* ---- names ---- */

/* The target of a sequence of class numbers, whose names may be those of tokens. */
static const tn_sample_value *set_find_tokens(const tn_sample_set *set) {
  for (int32_t i = 0; i < set->n_values; i++)
    if (set->values[i].role == TN_FIELD_TARGET && set->values[i].type.rank == 1 && set->values[i].classes > 0)
      return &set->values[i];
  return NULL;
}

static tn_status set_open_names(tn_sample_set *set) {
  const tn_run *run = set->run;
  const tn_sample_value *tokens = set_find_tokens(set);
  int64_t unfit;
  if (run->class_names != NULL) set->names = json_loads(run->class_names, 0, NULL);
  TN_TRY(tn_vocabulary_of_note(&run->env, run->learnt, INT32_MAX, &set->tokenizer, &unfit));
  if (set->tokenizer != NULL || tokens == NULL) return TN_OK;
  return tn_vocabulary_of_names(&run->env, json_object_get(set->names, tokens->name), tokens->classes,
                                &set->tokenizer);
}

const char *tn_sample_class_name(const tn_sample_set *set, const char *target, int64_t number) {
  const json_t *list = json_object_get(set->names, target);
  return number >= 0 ? json_string_value(json_array_get(list, (size_t)number)) : NULL;
}

/* ---- */

tn_status tn_sample_set_read(tn_run *run, const tn_loader *valid, const tn_program *program, int64_t samples,
                             tn_sample_set *set) {
  *set = (tn_sample_set){.run = run, .arena = tn_arena_new(&run->env), .batch = samples};
  TN_TRY(set_read(set, valid, program));
  TN_TRY(set_check_inputs(set, program));
  return set_open_names(set);
}

void tn_sample_set_free(tn_sample_set *set) {
  if (set->run == NULL) return;
  tn_host_tokenizer_close(&set->run->env, set->tokenizer);
  json_decref(set->names);
  tn_arena_free(&set->arena);
}

tn_sample_value *tn_sample_find(const tn_sample_set *set, const char *name, int32_t role) {
  for (int32_t i = 0; i < set->n_values; i++)
    if (set->values[i].role == role && tn_text_equal(set->values[i].name, name)) return &set->values[i];
  return NULL;
}

int64_t tn_sample_length(const tn_sample_set *set, int64_t i, int64_t n) {
  for (int32_t k = 0; k < set->n_values; k++) {
    const tn_sample_value *v = &set->values[k];
    if (v->role != TN_FIELD_TARGET || v->type.rank != 1 || v->type.dims[0] != n ||
        tn_dtype_is_float(v->type.dtype))
      continue;
    while (n > 1 && tn_element_load(v->type.dtype, tn_sample_row(v, i), n - 1) < 0) n--;
    return n;
  }
  return n;
}
