/* core/model/signature.c: parsing of `inputs = image: f32[3, 224, 224]` and `targets = label: i32[]`. */
#include "core/model/model.h"

#include <stdlib.h>
#include <string.h>

/* Parses "i32[64]" or "f32[]"; modifies the text. */
static tn_status signature_parse_type(tn_env *env, char *text, tn_type *type) {
  char *open = strchr(text, '['), *close = open != NULL ? strrchr(text, ']') : NULL;
  if (close == NULL || *tn_text_trim(close + 1) != '\0')
    return tn_failf(env, TN_EINVAL, "'%s' is not a type, expected dtype and dimensions like f32[3, 224, 224]",
                    text);
  *open = *close = '\0';
  TN_TRY(tn_parse_dtype(env, tn_text_trim(text), &type->dtype));
  type->rank = 0;
  char *save = NULL;
  for (char *part = strtok_r(open + 1, ",", &save); part != NULL; part = strtok_r(NULL, ",", &save)) {
    char *end = NULL, *digits = tn_text_trim(part);
    long long dim = strtoll(digits, &end, 10);
    if (end == digits || *end != '\0' || dim < 1 || dim > (1LL << 40))
      return tn_failf(env, TN_EINVAL, "'%s' is not a dimension, expected a whole number >= 1", digits);
    if (type->rank == TN_MAX_RANK - 1)
      return tn_failf(env, TN_EINVAL, "more than %d dimensions without the batch", TN_MAX_RANK - 1);
    type->dims[type->rank++] = dim;
  }
  return TN_OK;
}

static tn_status signature_parse_field(tn_env *env, tn_arena *arena, char *text, tn_signature_field *field) {
  char *colon = strchr(text, ':');
  if (colon == NULL)
    return tn_failf(env, TN_EINVAL,
                    "'%s' has no type, expected NAME: DTYPE[DIMENSIONS] like image: f32[3, 32, 32]",
                    tn_text_trim(text));
  *colon = '\0';
  field->name = tn_arena_strdup(arena, tn_text_trim(text));
  if (field->name == NULL) return TN_ENOMEM;
  if (*field->name == '\0') return tn_failf(env, TN_EINVAL, "a name is missing before ':'");
  return signature_parse_type(env, tn_text_trim(colon + 1), &field->type);
}

/* Terminates the field at `text` and returns the start of the next one, after a comma or line end outside
 * brackets; NULL after the last field. */
static char *signature_next_field(char *text) {
  int depth = 0;
  for (char *c = text; *c != '\0'; c++) {
    if (*c == '[') depth++;
    if (*c == ']') depth--;
    if (depth <= 0 && (*c == ',' || *c == '\n')) {
      *c = '\0';
      return c + 1;
    }
  }
  return NULL;
}

static tn_status signature_parse_fields(tn_env *env, tn_arena *arena, const char *text,
                                        tn_signature_field **fields, int32_t *n) {
  char *copy = tn_arena_strdup(arena, text);
  size_t most = 1;
  for (const char *c = text; *c != '\0'; c++) most += *c == ',' || *c == '\n';
  *fields = tn_arena_alloc(arena, tn_size_mul(most, sizeof **fields));
  *n = 0;
  if (copy == NULL || *fields == NULL) return TN_ENOMEM;
  for (char *rest = copy, *next; rest != NULL; rest = next) {
    next = signature_next_field(rest);
    char *field = tn_text_trim(rest);
    if (*field != '\0') TN_TRY(signature_parse_field(env, arena, field, &(*fields)[(*n)++]));
  }
  for (int32_t i = 0; i < *n; i++)
    for (int32_t j = 0; j < i; j++)
      if (tn_text_equal((*fields)[i].name, (*fields)[j].name))
        return tn_failf(env, TN_EINVAL, "'%s' appears twice", (*fields)[i].name);
  return TN_OK;
}

static tn_status signature_read_key(tn_env *env, tn_arena *arena, tn_ini *ini, tn_section *section,
                                    const char *name, const char *fallback, tn_signature_field **fields,
                                    int32_t *n) {
  tn_key *key = tn_section_key(section, name);
  if (key != NULL) key->used = true;
  tn_status status = signature_parse_fields(env, arena, key != NULL ? key->value : fallback, fields, n);
  if (status != TN_OK && key != NULL)
    return tn_wrap(env, status, "%s: [model] %s", tn_key_where(ini, section, key), name);
  return status;
}

tn_status tn_signature_read(tn_env *env, tn_arena *arena, tn_ini *ini, tn_signature *signature) {
  tn_section *section = tn_ini_section(ini, "model");
  memset(signature, 0, sizeof *signature);
  if (section == NULL)
    return tn_failf(env, TN_EINVAL, "%s: no [model] section, expected one with inputs, layers and loss",
                    ini->path);
  section->used = true;
  if (!tn_section_key(section, "inputs"))
    return tn_failf(env, TN_EINVAL,
                    "%s: [model] has no `inputs`, expected for example inputs = image: f32[3, 32, 32]",
                    tn_key_where(ini, section, NULL));
  TN_TRY(
      signature_read_key(env, arena, ini, section, "inputs", "", &signature->inputs, &signature->n_inputs));
  TN_TRY(signature_read_key(env, arena, ini, section, "targets", "label: i32[]", &signature->targets,
                            &signature->n_targets));
  if (signature->n_inputs == 0)
    return tn_failf(env, TN_EINVAL, "%s: [model] inputs is empty, expected at least one",
                    tn_key_where(ini, section, NULL));
  for (int32_t i = 0; i < signature->n_inputs; i++)
    for (int32_t j = 0; j < signature->n_targets; j++)
      if (tn_text_equal(signature->inputs[i].name, signature->targets[j].name))
        return tn_failf(env, TN_EINVAL, "%s: [model] '%s' is both an input and a target",
                        tn_key_where(ini, section, NULL), signature->inputs[i].name);
  return TN_OK;
}
