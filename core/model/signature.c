/* core/model/signature.c: parsing of `inputs = image: f32[3, 224, 224]` and `targets = label: i32[]`. */
#include "core/config/language/parser.h"
#include "core/model/model.h"

#include <stdlib.h>
#include <string.h>

int32_t tn_signature_axis(const tn_type *type) {
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i] < 0) return i;
  return -1;
}

static void signature_size_fields(tn_signature_field *fields, int32_t n, int64_t length) {
  for (int32_t i = 0; i < n; i++)
    for (int32_t axis; (axis = tn_signature_axis(&fields[i].type)) >= 0;) fields[i].type.dims[axis] = length;
}

void tn_signature_size(tn_signature *signature, int64_t length) {
  signature_size_fields(signature->inputs, signature->n_inputs, length);
  signature_size_fields(signature->targets, signature->n_targets, length);
}

/* The fields that are parsed, and the word among their dimensions. */
typedef struct signature_reader {
  tn_env *env;
  tn_arena *arena;
  const char *word;
  bool sizes; /* of [model] sizes, as height and width */
} signature_reader;

/* A word stands for the dimension that varies, the same in all types, and once in each but for a size. */
static tn_status signature_take_word(signature_reader *r, const char *word, const tn_type *type) {
  const char *end = tn_scan_word(word);
  if (end == NULL || *end != '\0')
    return tn_failf(r->env, TN_EINVAL, "'%s' is not a dimension, expected a whole number >= 1", word);
  if (r->sizes && !tn_text_equal(word, TN_SIZE_NAME))
    return tn_failf(r->env, TN_EINVAL,
                    "'%s' is not a dimension, expected a whole number >= 1, or " TN_SIZE_NAME
                    ", which has [model] sizes",
                    word);
  if (tn_signature_axis(type) >= 0 && !r->sizes)
    return tn_failf(r->env, TN_EINVAL, "'%s' is the second dimension that varies, expected one", word);
  if (r->word != NULL && !tn_text_equal(r->word, word))
    return tn_failf(
        r->env, TN_EINVAL,
        "the dimensions '%s' and '%s' vary, expected one word for one length; give the other one a "
        "number",
        r->word, word);
  if (r->word == NULL) r->word = tn_arena_strdup(r->arena, word);
  return r->word != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status signature_parse_dim(signature_reader *r, char *text, tn_type *type) {
  char *end = NULL;
  long long dim = strtoll(text, &end, 10);
  if (end == text) {
    TN_TRY(signature_take_word(r, text, type));
    dim = -1;
  } else if (*end != '\0' || dim < 1 || dim > (1LL << 40)) {
    return tn_failf(r->env, TN_EINVAL, "'%s' is not a dimension, expected a whole number >= 1", text);
  }
  if (type->rank == TN_MAX_RANK - 1)
    return tn_failf(r->env, TN_EINVAL, "more than %d dimensions without the batch", TN_MAX_RANK - 1);
  type->dims[type->rank++] = dim;
  return TN_OK;
}

/* Parses "i32[64]", "f32[n, 80]" or "f32[]"; modifies the text. */
static tn_status signature_parse_type(signature_reader *r, char *text, tn_type *type) {
  tn_env *env = r->env;
  char *open = strchr(text, '['), *close = open != NULL ? strrchr(text, ']') : NULL;
  if (close == NULL || *tn_text_trim(close + 1) != '\0')
    return tn_failf(env, TN_EINVAL, "'%s' is not a type, expected dtype and dimensions like f32[3, 224, 224]",
                    text);
  *open = *close = '\0';
  TN_TRY(tn_parse_dtype(env, tn_text_trim(text), &type->dtype));
  type->rank = 0;
  char *save = NULL;
  for (char *part = strtok_r(open + 1, ",", &save); part != NULL; part = strtok_r(NULL, ",", &save)) {
    TN_TRY(signature_parse_dim(r, tn_text_trim(part), type));
  }
  return TN_OK;
}

static tn_status signature_parse_field(signature_reader *r, char *text, tn_signature_field *field) {
  tn_env *env = r->env;
  char *colon = strchr(text, ':');
  if (colon == NULL)
    return tn_failf(env, TN_EINVAL,
                    "'%s' has no type, expected NAME: DTYPE[DIMENSIONS] like image: f32[3, 32, 32]",
                    tn_text_trim(text));
  *colon = '\0';
  field->name = tn_arena_strdup(r->arena, tn_text_trim(text));
  if (field->name == NULL) return TN_ENOMEM;
  if (*field->name == '\0') return tn_failf(env, TN_EINVAL, "a name is missing before ':'");
  return signature_parse_type(r, tn_text_trim(colon + 1), &field->type);
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

static tn_status signature_parse_fields(signature_reader *r, const char *text, tn_signature_field **fields,
                                        int32_t *n) {
  tn_env *env = r->env;
  tn_arena *arena = r->arena;
  char *copy = tn_arena_strdup(arena, text);
  size_t most = 1;
  for (const char *c = text; *c != '\0'; c++) most += *c == ',' || *c == '\n';
  *fields = tn_arena_alloc(arena, tn_size_mul(most, sizeof **fields));
  *n = 0;
  if (copy == NULL || *fields == NULL) return TN_ENOMEM;
  for (char *rest = copy, *next; rest != NULL; rest = next) {
    next = signature_next_field(rest);
    char *field = tn_text_trim(rest);
    if (*field != '\0') TN_TRY(signature_parse_field(r, field, &(*fields)[(*n)++]));
  }
  for (int32_t i = 0; i < *n; i++)
    for (int32_t j = 0; j < i; j++)
      if (tn_text_equal((*fields)[i].name, (*fields)[j].name))
        return tn_failf(env, TN_EINVAL, "'%s' appears twice", (*fields)[i].name);
  return TN_OK;
}

static tn_status signature_read_key(signature_reader *r, tn_ini *ini, tn_section *section, const char *name,
                                    const char *fallback, tn_signature_field **fields, int32_t *n) {
  tn_key *key = tn_section_key(section, name);
  if (key != NULL) key->used = true;
  tn_status status = signature_parse_fields(r, key != NULL ? key->value : fallback, fields, n);
  if (status != TN_OK && key != NULL)
    return tn_wrap(r->env, status, "%s: [model] %s", tn_key_where(ini, section, key), name);
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
  const tn_key *sizes = tn_section_key(section, "sizes");
  signature_reader r = {env, arena, NULL, sizes != NULL && sizes->value[0] != '\0'};
  TN_TRY(signature_read_key(&r, ini, section, "inputs", "", &signature->inputs, &signature->n_inputs));
  const char *word = r.word; /* of the inputs */
  TN_TRY(signature_read_key(&r, ini, section, "targets", "label: i32[]", &signature->targets,
                            &signature->n_targets));
  signature->word = r.word;
  signature->sizes = r.sizes;
  if (r.word != word)
    return tn_failf(env, TN_EINVAL, "%s: [model] targets: no input has the dimension '%s', which varies",
                    tn_key_where(ini, section, tn_section_key(section, "targets")), r.word);
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
