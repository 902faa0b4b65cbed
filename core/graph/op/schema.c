/* core/graph/op/schema.c: parses op schemas and checks op descriptors. */
#include "core/graph/op/schema.h"

#include <ctype.h>
#include <string.h>

/* Above the needs of any op; a variadic operand counts as one. */
enum { MAX_OPERANDS = 32, MAX_RESULTS = 16 };

typedef struct schema_scanner {
  const void *handle;
  tn_arena *arena;
  const tn_op *op;
  const char *at;
} schema_scanner;

static tn_status schema_expected(const schema_scanner *s, const char *what) {
  return tn_failf(s->handle, TN_EABI, "op %s: schema \"%s\": column %d: expected %s", s->op->item.name,
                  s->op->schema, (int)(s->at - s->op->schema) + 1, what);
}

static void schema_skip_space(schema_scanner *s) {
  while (isspace((unsigned char)*s->at)) s->at++;
}

static bool schema_take(schema_scanner *s, const char *mark) {
  schema_skip_space(s);
  if (!tn_text_starts(s->at, mark)) return false;
  s->at += strlen(mark);
  return true;
}

static size_t schema_word_length(schema_scanner *s) {
  schema_skip_space(s);
  size_t n = 0;
  while (isalnum((unsigned char)s->at[n]) || s->at[n] == '_') n++;
  return n;
}

static tn_status schema_read_name(schema_scanner *s, const char **name) {
  size_t n = schema_word_length(s);
  if (n == 0) return schema_expected(s, "a name");
  char *copy = tn_arena_alloc(s->arena, n + 1);
  if (copy == NULL) return TN_ENOMEM;
  memcpy(copy, s->at, n);
  s->at += n;
  *name = copy;
  return TN_OK;
}

static int32_t schema_find_dtype(const char *word, size_t n) {
  for (int32_t d = 1; d < TN_DTYPES; d++)
    if (strlen(tn_dtype_name(d)) == n && memcmp(tn_dtype_name(d), word, n) == 0) return d;
  return TN_ANY;
}

static bool schema_take_letter(schema_scanner *s, char *letter) {
  if (schema_word_length(s) != 1 || *s->at < 'A' || *s->at > 'Z') return false;
  *letter = *s->at++;
  return true;
}

/* [":" dtype] */
static tn_status schema_read_dtype(schema_scanner *s, int32_t *dtype, char *letter) {
  if (!schema_take(s, ":")) return TN_OK;
  if (schema_take_letter(s, letter)) return TN_OK;
  size_t n = schema_word_length(s);
  *dtype = schema_find_dtype(s->at, n);
  if (*dtype == TN_ANY && !(n == 3 && memcmp(s->at, "any", 3) == 0))
    return schema_expected(s, "an element type such as f32, a capital letter or any");
  s->at += n;
  return TN_OK;
}

static tn_status schema_read_operand(schema_scanner *s, tn_operand_def *operand) {
  *operand = (tn_operand_def){.below = -1};
  TN_TRY(schema_read_name(s, &operand->name));
  operand->optional = schema_take(s, "?");
  operand->variadic = schema_take(s, "*");
  return schema_read_dtype(s, &operand->dtype, &operand->letter);
}

static tn_status schema_read_operands(schema_scanner *s, tn_op_def *def) {
  tn_operand_def operands[MAX_OPERANDS];
  int32_t n = 0;
  if (!schema_take(s, "(")) return schema_expected(s, "\"(\"");
  if (!schema_take(s, ")")) {
    do {
      if (n == MAX_OPERANDS) return schema_expected(s, "at most 32 operands");
      if (def->variadic) return schema_expected(s, "\")\" after the operand marked *");
      TN_TRY(schema_read_operand(s, &operands[n]));
      def->variadic = operands[n++].variadic;
    } while (schema_take(s, ","));
    if (!schema_take(s, ")")) return schema_expected(s, "\",\" or \")\"");
  }
  def->operands = tn_arena_copy(s->arena, operands, (size_t)n * sizeof *operands);
  def->n_operands = n;
  return def->operands != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status schema_read_results(schema_scanner *s, tn_op_def *def) {
  tn_result_def results[MAX_RESULTS];
  int32_t n = 0;
  if (!schema_take(s, "->")) return schema_expected(s, "\"->\"");
  if (!schema_take(s, "(")) return schema_expected(s, "\"(\"");
  if (!schema_take(s, ")")) {
    do {
      if (n == MAX_RESULTS) return schema_expected(s, "at most 16 results");
      results[n] = (tn_result_def){0};
      TN_TRY(schema_read_name(s, &results[n].name));
      TN_TRY(schema_read_dtype(s, &results[n].dtype, &results[n].letter));
      n++;
    } while (schema_take(s, ","));
    if (!schema_take(s, ")")) return schema_expected(s, "\",\" or \")\"");
  }
  def->results = tn_arena_copy(s->arena, results, (size_t)n * sizeof *results);
  def->n_results = n;
  return def->results != NULL ? TN_OK : TN_ENOMEM;
}

/* word {word} */
static tn_status schema_read_dtypes(schema_scanner *s, uint32_t *dtypes) {
  *dtypes = 0;
  for (size_t n = schema_word_length(s); n > 0; n = schema_word_length(s)) {
    int32_t dtype = schema_find_dtype(s->at, n);
    if (dtype == TN_ANY) break;
    *dtypes |= 1u << dtype;
    s->at += n;
  }
  return *dtypes != 0 ? TN_OK : schema_expected(s, "an element type such as f32");
}

/* dtypes "as" word */
static tn_status schema_read_wide(schema_scanner *s, tn_op_def *def, char letter) {
  uint32_t narrow, wide;
  TN_TRY(schema_read_dtypes(s, &narrow));
  if (schema_word_length(s) != 2 || !schema_take(s, "as")) return schema_expected(s, "\"as\"");
  TN_TRY(schema_read_dtypes(s, &wide));
  if ((wide & (wide - 1)) != 0 || (wide & def->dtypes[letter - 'A']) == 0)
    return schema_expected(s, "behind \"as\" one of the element types in front of \",\"");
  def->dtypes[letter - 'A'] |= narrow;
  for (int32_t d = 1; d < TN_DTYPES; d++)
    if ((narrow >> d & 1) != 0) def->wide[letter - 'A'][d] = (uint8_t)__builtin_ctz(wide);
  return TN_OK;
}

/* letter "in" dtypes {"," dtypes "as" word} */
static tn_status schema_read_range(schema_scanner *s, tn_op_def *def) {
  char letter = 0;
  if (!schema_take_letter(s, &letter)) return schema_expected(s, "a capital letter");
  if (schema_word_length(s) != 2 || !schema_take(s, "in")) return schema_expected(s, "\"in\"");
  TN_TRY(schema_read_dtypes(s, &def->dtypes[letter - 'A']));
  while (schema_take(s, ",")) TN_TRY(schema_read_wide(s, def, letter));
  return TN_OK;
}

static tn_status read_schema(schema_scanner *s, tn_op_def *def) {
  TN_TRY(schema_read_operands(s, def));
  TN_TRY(schema_read_results(s, def));
  for (int32_t i = 0; i < TN_SCHEMA_LETTERS; i++) def->dtypes[i] = (1u << TN_DTYPES) - 2;
  while (schema_take(s, ";")) TN_TRY(schema_read_range(s, def));
  schema_skip_space(s);
  return *s->at == '\0' ? TN_OK : schema_expected(s, "\";\" or the end");
}

/* ---- the descriptor ---- */

static tn_status schema_check_flags(const void *handle, const tn_op_def *def) {
  const tn_op *op = def->op;
  if ((op->flags & TN_OP_COMMUTATIVE) != 0 && def->n_operands < 2)
    return tn_failf(handle, TN_EABI, "op %s is marked TN_OP_COMMUTATIVE, expected two operands or more",
                    op->item.name);
  if ((op->flags & TN_OP_VIEW) != 0 && (def->n_operands < 1 || def->n_results < 1))
    return tn_failf(handle, TN_EABI, "op %s is marked TN_OP_VIEW, expected an operand and a result",
                    op->item.name);
  return TN_OK;
}

tn_status tn_op_def_create(const void *handle, tn_arena *arena, const tn_op *op, const tn_op_def **def) {
  *def = NULL;
  if (op->schema == NULL) return tn_failf(handle, TN_EABI, "op %s has no schema", op->item.name);
  tn_op_def *made = tn_arena_alloc(arena, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  made->op = op;
  schema_scanner s = {.handle = handle, .arena = arena, .op = op, .at = op->schema};
  TN_TRY(read_schema(&s, made));
  TN_TRY(schema_check_flags(handle, made));
  TN_TRY(tn_op_def_read_formulas(handle, arena, made));
  TN_TRY(tn_op_def_read_domain(handle, arena, made));
  *def = made;
  return TN_OK;
}

int32_t tn_op_def_wide(const tn_op_def *def, int32_t i, int32_t dtype) {
  char letter = tn_op_def_operand(def, i)->letter;
  int32_t wide = letter != 0 ? def->wide[letter - 'A'][dtype] : TN_ANY;
  return wide != TN_ANY ? wide : dtype;
}

const tn_operand_def *tn_op_def_operand(const tn_op_def *def, int32_t i) {
  return &def->operands[i < def->n_operands ? i : def->n_operands - 1];
}
