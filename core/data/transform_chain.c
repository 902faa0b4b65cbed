/* core/data/transform_chain.c: validates a source's fields and infers their types through the transforms. */
#include "core/data/transform_chain.h"

#include <string.h>

#include "core/base/rows.h"
#include "core/base/text/text.h"
#include "core/data/lengths.h"

size_t tn_transform_chain_bytes(const tn_type *type) {
  size_t bytes = tn_dtype_size(type->dtype);
  for (int32_t i = 0; i < type->rank; i++) bytes = tn_size_mul(bytes, (size_t)type->dims[i]);
  return bytes;
}

int32_t tn_transform_chain_last_stage(const tn_transform_chain *chain, int32_t from, int32_t to,
                                      int32_t field) {
  for (int32_t s = to - 1; s >= from; s--)
    for (int32_t k = 0; k < chain->stages[s].n; k++)
      if (chain->stages[s].field[k] == field) return s;
  return -1;
}

/* Prints a type as "f32[3, ?, ?]", for messages. */
static void chain_add_type(tn_text *text, const tn_type *type) {
  tn_text_addf(text, "%s[", tn_dtype_name(type->dtype));
  for (int32_t i = 0; i < type->rank; i++) {
    const char *comma = i > 0 ? ", " : "";
    if (type->dims[i] < 0)
      tn_text_addf(text, "%s?", comma);
    else
      tn_text_addf(text, "%s%lld", comma, (long long)type->dims[i]);
  }
  tn_text_add(text, "]");
}

static bool chain_type_is_sound(const tn_type *type, int64_t lowest) {
  if (tn_dtype_size(type->dtype) == 0 || type->rank < 0 || type->rank > TN_MAX_RANK) return false;
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i] < lowest) return false;
  return true;
}

bool tn_transform_chain_fits(const tn_type *described, const tn_type *actual) {
  if (described->dtype != actual->dtype || described->rank != actual->rank) return false;
  for (int32_t d = 0; d < described->rank; d++)
    if (actual->dims[d] < 0 || (described->dims[d] >= 0 && described->dims[d] != actual->dims[d]))
      return false;
  return true;
}

static tn_status chain_check_field(tn_env *env, const tn_transform_chain *chain, int32_t i) {
  const tn_field *field = &chain->source[i];
  if (field->name == NULL || field->name[0] == '\0')
    return tn_failf(env, TN_EABI, "the source describes field %d without a name", (int)i);
  if (!chain_type_is_sound(&field->type, -1))
    return tn_failf(env, TN_EABI, "the source describes field '%s' with a type that does not exist",
                    field->name);
  for (int32_t k = 0; k < i; k++)
    if (tn_text_equal(chain->source[k].name, field->name))
      return tn_failf(env, TN_EABI, "the source describes field '%s' twice", field->name);
  return TN_OK;
}

/* Copies the source's fields, whose struct may be shorter or longer than the host's. */
static tn_field *chain_copy_fields(tn_arena *arena, const tn_description *description, size_t bytes) {
  tn_field *fields = tn_arena_alloc(arena, bytes);
  for (int32_t i = 0; fields != NULL && i < description->n_fields; i++) {
    const tn_field *from = tn_description_field(description, i);
    size_t size = description->fields[0].struct_size;
    memcpy(&fields[i], from, size < sizeof(tn_field) ? size : sizeof(tn_field));
    fields[i].struct_size = sizeof(tn_field);
  }
  return fields;
}

static tn_status chain_take_fields(tn_env *env, tn_transform_chain *chain,
                                   const tn_description *description) {
  if (description->n_fields < 1 || description->fields == NULL)
    return tn_failf(env, TN_EABI, "the source describes no fields");
  if (description->fields[0].struct_size < offsetof(tn_field, class_names) + sizeof(const char *const *))
    return tn_failf(env, TN_EABI,
                    "the source describes fields of %u bytes, expected at least %zu; set struct_size",
                    description->fields[0].struct_size, sizeof(tn_field));
  chain->n_fields = chain->n_outputs = description->n_fields;
  size_t n = (size_t)chain->n_fields, bytes = tn_size_mul(n, sizeof(tn_field));
  chain->source = chain_copy_fields(&chain->arena, description, bytes);
  if (chain->source == NULL) return TN_ENOMEM;
  chain->fields = tn_arena_copy(&chain->arena, chain->source, bytes);
  chain->sampled = tn_arena_alloc(&chain->arena, tn_size_mul(n, sizeof(tn_type)));
  if (chain->fields == NULL || chain->sampled == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < chain->n_fields; i++) TN_TRY(chain_check_field(env, chain, i));
  return TN_OK;
}

static int32_t chain_find_field(const tn_transform_chain *chain, const char *name) {
  for (int32_t i = 0; i < chain->n_fields; i++)
    if (tn_text_equal(chain->fields[i].name, name)) return i;
  return -1;
}

static tn_status chain_fail_unknown_field(tn_env *env, const tn_transform_chain *chain, const char *name) {
  tn_text list = tn_text_new(env);
  for (int32_t i = 0; i < chain->n_fields; i++)
    tn_text_addf(&list, "%s%s", i > 0 ? ", " : "", chain->fields[i].name);
  tn_failf(env, TN_EINVAL, "the source has no field '%s'; it has: %s", name, list.v != NULL ? list.v : "");
  tn_text_free(&list);
  return TN_EINVAL;
}

/* Resolves the fields of a transform; the default is the first input field. None may be left of those that
 * are named, if `inputs_alone`. */
static tn_status chain_choose_fields(tn_env *env, tn_transform_chain *chain, const tn_transform_use *use,
                                     bool inputs_alone, tn_stage *stage) {
  int32_t named = use->fields != NULL ? use->n_fields : 1;
  if (named < 1) return tn_failf(env, TN_EINVAL, "no field follows '<-'");
  stage->n = use->fields != NULL ? 0 : 1;
  stage->field = tn_arena_alloc(&chain->arena, (size_t)named * sizeof(int32_t));
  stage->in = tn_arena_alloc(&chain->arena, (size_t)named * sizeof(tn_type));
  stage->out = tn_arena_alloc(&chain->arena, (size_t)named * sizeof(tn_type));
  if (stage->field == NULL || stage->in == NULL || stage->out == NULL) return TN_ENOMEM;
  if (use->fields == NULL) {
    for (int32_t i = 0; i < chain->n_fields; i++)
      if (chain->fields[i].role == TN_FIELD_INPUT) return stage->field[0] = i, TN_OK;
    return tn_failf(env, TN_EINVAL, "the source has no input field; name the field after '<-'");
  }
  for (int32_t k = 0; k < named; k++) {
    int32_t found = chain_find_field(chain, use->fields[k]);
    if (found < 0 && inputs_alone) continue;
    if (found < 0) return chain_fail_unknown_field(env, chain, use->fields[k]);
    for (int32_t j = 0; j < stage->n; j++)
      if (stage->field[j] == found)
        return tn_failf(env, TN_EINVAL, "field '%s' is named twice", use->fields[k]);
    stage->field[stage->n++] = found;
  }
  return TN_OK;
}

bool tn_transform_chain_is_fixed(const tn_type *types, int32_t n) {
  for (int32_t k = 0; k < n; k++)
    if (!chain_type_is_sound(&types[k], 0)) return false;
  return true;
}

/* A result may vary only if an operand varies, and keeps the batch dimension in front. */
static bool chain_results_are_sound(const tn_stage *stage, int64_t batch) {
  for (int32_t k = 0; k < stage->n; k++) {
    const tn_type *out = &stage->out[k];
    if (!chain_type_is_sound(out, -1)) return false;
    if (batch > 0 && (out->rank == 0 || out->dims[0] != batch)) return false;
  }
  return tn_transform_chain_is_fixed(stage->out, stage->n) ||
         !tn_transform_chain_is_fixed(stage->in, stage->n);
}

/* Infers the result types of a stage. `batch` is 0 for a stage per sample. */
static tn_status chain_infer_stage(tn_env *env, tn_transform_chain *chain, tn_stage *stage, int64_t batch) {
  for (int32_t k = 0; k < stage->n; k++) {
    const tn_field *field = &chain->fields[stage->field[k]];
    if (batch > 0 && field->type.rank == TN_MAX_RANK)
      return tn_failf(env, TN_EINVAL, "field '%s' has no room for the batch in front of its %d dimensions",
                      field->name, TN_MAX_RANK);
    stage->in[k] = batch > 0 ? tn_type_batched(&field->type, batch) : field->type;
    stage->out[k] = stage->in[k];
  }
  TN_TRY(stage->transform->infer(env, stage->options, stage->n, stage->in, stage->out));
  if (!chain_results_are_sound(stage, batch))
    return tn_failf(env, TN_EABI, "it infers an invalid type for field '%s'",
                    chain->fields[stage->field[0]].name);
  stage->varies = !tn_transform_chain_is_fixed(stage->out, stage->n);
  for (int32_t k = 0; k < stage->n; k++) {
    tn_field *field = &chain->fields[stage->field[k]];
    field->type = batch > 0 ? tn_type_row(&stage->out[k]) : stage->out[k];
  }
  return TN_OK;
}

/* Checks that all dimensions are fixed, which a batch requires. */
static tn_status chain_check_fixed(tn_env *env, const tn_transform_chain *chain) {
  for (int32_t i = 0; i < chain->n_fields; i++) {
    const tn_field *field = &chain->fields[i];
    if (chain_type_is_sound(&field->type, 0)) continue;
    tn_text type = tn_text_new(env);
    chain_add_type(&type, &field->type);
    tn_failf(env, TN_EINVAL,
             "field '%s' is %s: its size varies from sample to sample, but a batch needs one size; add a "
             "transform that fixes it, such as resize([224, 224]) <- %s",
             field->name, type.v != NULL ? type.v : "", field->name);
    tn_text_free(&type);
    return TN_EINVAL;
  }
  return TN_OK;
}

static tn_status chain_add_stage(tn_env *env, tn_transform_chain *chain, const tn_loader_options *options,
                                 int32_t position) {
  const tn_transform_use *use = &options->transforms[position];
  bool per_batch = use->transform->granularity == TN_PER_BATCH;
  tn_stage *stage = &chain->stages[chain->n_stages];
  stage->transform = use->transform;
  stage->options = use->options;
  stage->where = use->where != NULL ? use->where : "";
  stage->position = position;
  stage->draws = -1;
  stage->before = tn_arena_alloc(&chain->arena, tn_size_mul((size_t)chain->n_fields, sizeof(tn_type)));
  if (stage->before == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < chain->n_fields; i++) stage->before[i] = chain->fields[i].type;
  if (use->transform->infer == NULL || use->transform->apply == NULL)
    return tn_failf(env, TN_EUNSUPPORTED, "it cannot run on the host");
  if (!per_batch && chain->n_stages > chain->n_sample_stages)
    return tn_failf(env, TN_EINVAL,
                    "it works on samples, so it must stand before the transforms that work on batches");
  if (per_batch && chain->n_stages == chain->n_sample_stages) TN_TRY(chain_check_fixed(env, chain));
  TN_TRY(chain_choose_fields(env, chain, use, options->inputs_alone, stage));
  if (stage->n == 0) return TN_OK; /* it is for targets alone */
  TN_TRY(chain_infer_stage(env, chain, stage, per_batch ? options->batch : 0));
  chain->n_stages++;
  if (stage->n > chain->most_fields) chain->most_fields = stage->n;
  if (per_batch) return TN_OK;
  chain->n_sample_stages++;
  for (int32_t k = 0; k < stage->n; k++) chain->sampled[stage->field[k]] = stage->out[k];
  return TN_OK;
}

static tn_status chain_infer_types(tn_env *env, tn_transform_chain *chain, const tn_loader_options *options) {
  chain->stages = tn_arena_alloc(&chain->arena, tn_size_mul((size_t)options->n_transforms, sizeof(tn_stage)));
  if (chain->stages == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < chain->n_fields; i++) chain->sampled[i] = chain->fields[i].type;
  for (int32_t p = 0; p < options->n_transforms; p++) {
    const tn_transform_use *use = &options->transforms[p];
    if (use->transform->training_only && !options->training) continue;
    tn_status status = chain_add_stage(env, chain, options, p);
    const char *at = use->where != NULL ? use->where : "";
    if (status != TN_OK)
      return tn_wrap(env, status, "%s%stransform '%s'", at, at[0] != '\0' ? ": " : "",
                     use->transform->item.name);
  }
  return TN_OK;
}

tn_status tn_transform_chain_create(tn_env *env, const tn_loader_options *options,
                                    const tn_description *description, tn_transform_chain *chain) {
  *chain = (tn_transform_chain){.arena = tn_arena_new(env)};
  const char *where = options->where != NULL ? options->where : "", *colon = where[0] != '\0' ? ": " : "";
  const char *name = options->source->item.name;
  tn_status status =
      tn_wrap(env, chain_take_fields(env, chain, description), "%s%ssource '%s'", where, colon, name);
  if (status == TN_OK) status = chain_infer_types(env, chain, options);
  if (status == TN_OK)
    status = tn_wrap(env, tn_lengths_prepare(env, options, chain), "%s%ssource '%s'", where, colon, name);
  if (status == TN_OK)
    status = tn_wrap(env, chain_check_fixed(env, chain), "%s%ssource '%s'", where, colon, name);
  if (status != TN_OK) tn_transform_chain_free(chain);
  return status;
}

void tn_transform_chain_free(tn_transform_chain *chain) {
  tn_arena_free(&chain->arena);
  *chain = (tn_transform_chain){0};
}
