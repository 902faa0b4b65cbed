/* core/graph/formula/parse.c: formulas to postfix steps, by recursive descent. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/base/vec.h"
#include "core/graph/formula/formula.h"

/* Limits the recursion over brackets, signs and choices. */
enum { MAX_DEPTH = 100 };

typedef struct formula_parser {
  const void *handle;
  const tn_formula *formula;
  const char *at;
  int32_t depth;
  TN_VEC(tn_formula_step) steps;
  int32_t height, stack; /* of the stack behind the last step; at most so far */
  tn_status status;
} formula_parser;

static void formula_choice(formula_parser *p);
static void formula_sign(formula_parser *p);

tn_status tn_formula_refuse(const void *handle, const tn_formula *formula, const char *at,
                            const char *expected) {
  int column = (int)(at - formula->text) + 1;
  char found[24];
  snprintf(found, sizeof found, "%s", at);
  return tn_failf(handle, TN_EINVAL, "formula \"%s\" of op %s: column %d: expected %s, found %s%s%s",
                  formula->text, formula->item->name, column, expected, *found ? "\"" : "the end", found,
                  *found ? "\"" : "");
}

/* The first failure counts. */
static void formula_expected(formula_parser *p, const char *expected) {
  if (p->status == TN_OK) p->status = tn_formula_refuse(p->handle, p->formula, p->at, expected);
}

/* ---- steps ---- */

/* Appends a step that pops n_popped terms and pushes one. */
static void formula_push(formula_parser *p, tn_formula_step step, int32_t n_popped) {
  if (p->status != TN_OK) return;
  p->height += 1 - n_popped;
  if (p->height > p->stack) p->stack = p->height;
  p->status = tn_vec_push(p->handle, &p->steps, step);
}

static void formula_unary(formula_parser *p, tn_formula_kind kind) {
  formula_push(p, (tn_formula_step){.kind = kind}, 1);
}

static void formula_binary(formula_parser *p, tn_formula_kind kind) {
  formula_push(p, (tn_formula_step){.kind = kind}, 2);
}

/* ---- words ---- */

static void formula_skip_space(formula_parser *p) {
  while (isspace((unsigned char)*p->at)) p->at++;
}

/* Consumes `symbol` if it comes next; a symbol of letters must end where the word ends. */
static bool formula_take(formula_parser *p, const char *symbol) {
  formula_skip_space(p);
  size_t n = strlen(symbol);
  if (p->status != TN_OK || strncmp(p->at, symbol, n) != 0) return false;
  if (isalpha((unsigned char)symbol[0]) && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_'))
    return false;
  p->at += n;
  return true;
}

static size_t formula_word_length(const char *text) {
  size_t n = 0;
  if (!isalpha((unsigned char)*text) && *text != '_') return 0;
  while (isalnum((unsigned char)text[n]) || text[n] == '_') n++;
  return n;
}

static bool formula_is_word(const char *name, const char *text, size_t n) {
  return strlen(name) == n && memcmp(name, text, n) == 0;
}

static bool formula_is_number(const tn_option *o) {
  switch (o->type) {
  case TN_OPT_FLAG:
  case TN_OPT_ENUM:
  case TN_OPT_INT:
  case TN_OPT_SIZE:
  case TN_OPT_FLOAT:
  case TN_OPT_DURATION: return true;
  default: return false;
  }
}

static const tn_option *formula_find_option(const tn_item *item, const char *text, size_t n) {
  for (const tn_option *o = item->options; o != NULL && o->name != NULL;
       o = (const tn_option *)(const void *)((const char *)o + item->option_stride))
    if (formula_is_word(o->name, text, n)) return o;
  return NULL;
}

/* An operand or an option. */
static void formula_name(formula_parser *p, const char *word, size_t n) {
  const tn_formula *f = p->formula;
  for (int32_t i = 0; i < f->n_operands; i++)
    if (formula_is_word(f->operands[i], word, n)) {
      formula_push(p, (tn_formula_step){.kind = TN_FORMULA_OPERAND, .n = i}, 0);
      return;
    }
  const tn_option *o = formula_find_option(f->item, word, n);
  if (o != NULL && formula_is_number(o)) {
    formula_push(p, (tn_formula_step){.kind = TN_FORMULA_OPTION, .option = o}, 0);
    return;
  }
  p->at = word;
  formula_expected(p, "an operand or a numeric option of the op");
}

/* word "(" choice {"," choice} ")" */
static void formula_call(formula_parser *p, const char *word, size_t n) {
  int32_t count = 0;
  do {
    if (count == TN_FORMULA_ARGUMENTS) {
      formula_expected(p, "at most 8 arguments");
      return;
    }
    formula_choice(p);
    count++;
  } while (formula_take(p, ","));
  if (!formula_take(p, ")")) formula_expected(p, "\",\" or \")\"");
  formula_push(p, (tn_formula_step){.kind = TN_FORMULA_CALL, .n = count, .at = word, .length = n}, count);
}

/* ---- grammar ---- */

/* digits ["." digits] ["e" ["+" | "-"] digits] */
static void formula_number(formula_parser *p) {
  char text[64];
  size_t n = 0;
  double v = 0;
  while (isdigit((unsigned char)p->at[n]) || p->at[n] == '.') n++;
  if (p->at[n] == 'e' || p->at[n] == 'E') {
    n += p->at[n + 1] == '+' || p->at[n + 1] == '-' ? 2 : 1;
    while (isdigit((unsigned char)p->at[n])) n++;
  }
  snprintf(text, sizeof text, "%.*s", (int)n, p->at);
  if (n >= sizeof text || !tn_text_to_float(text, &v)) formula_expected(p, "a number");
  p->at += n;
  formula_push(p, (tn_formula_step){.kind = TN_FORMULA_NUMBER, .number = v}, 0);
}

static void formula_atom(formula_parser *p) {
  formula_skip_space(p);
  if (isdigit((unsigned char)*p->at) || *p->at == '.') {
    formula_number(p);
    return;
  }
  if (formula_take(p, "(")) {
    formula_choice(p);
    if (!formula_take(p, ")")) formula_expected(p, "\")\"");
    return;
  }
  const char *word = p->at;
  size_t n = formula_word_length(word);
  if (n == 0) {
    formula_expected(p, "a number, a name or \"(\"");
    return;
  }
  p->at += n;
  if (formula_take(p, "("))
    formula_call(p, word, n);
  else
    formula_name(p, word, n);
}

static void formula_power(formula_parser *p) {
  formula_atom(p);
  if (!formula_take(p, "^")) return;
  formula_sign(p);
  formula_binary(p, TN_FORMULA_POW);
}

static void formula_sign(formula_parser *p) {
  if (++p->depth > MAX_DEPTH) formula_expected(p, "a formula nested less deeply");
  if (p->status == TN_OK && formula_take(p, "-")) {
    formula_sign(p);
    formula_unary(p, TN_FORMULA_NEGATE);
  } else if (p->status == TN_OK) {
    formula_power(p);
  }
  p->depth--;
}

static void formula_product(formula_parser *p) {
  formula_sign(p);
  for (;;) {
    bool divides = false;
    if (!formula_take(p, "*") && !(divides = formula_take(p, "/"))) return;
    formula_sign(p);
    formula_binary(p, divides ? TN_FORMULA_DIV : TN_FORMULA_MUL);
  }
}

static void formula_sum(formula_parser *p) {
  formula_product(p);
  for (;;) {
    bool subtracts = false;
    if (!formula_take(p, "+") && !(subtracts = formula_take(p, "-"))) return;
    formula_product(p);
    formula_binary(p, subtracts ? TN_FORMULA_SUB : TN_FORMULA_ADD);
  }
}

static void formula_comparison(formula_parser *p) {
  static const char *const symbol[] = {"==", "!=", "<=", ">=", "<", ">"};
  static const tn_formula_kind kind[] = {TN_FORMULA_EQ, TN_FORMULA_NE, TN_FORMULA_LE,
                                         TN_FORMULA_GE, TN_FORMULA_LT, TN_FORMULA_GT};
  formula_sum(p);
  for (size_t i = 0; i < sizeof symbol / sizeof *symbol; i++) {
    if (!formula_take(p, symbol[i])) continue;
    formula_sum(p);
    formula_binary(p, kind[i]);
    return;
  }
}

static void formula_negation(formula_parser *p) {
  bool invert = false;
  while (formula_take(p, "not")) invert = !invert;
  formula_comparison(p);
  if (invert) formula_unary(p, TN_FORMULA_NOT);
}

static void formula_conjunction(formula_parser *p) {
  formula_negation(p);
  while (formula_take(p, "and")) {
    formula_negation(p);
    formula_binary(p, TN_FORMULA_AND);
  }
}

static void formula_disjunction(formula_parser *p) {
  formula_conjunction(p);
  while (formula_take(p, "or")) {
    formula_conjunction(p);
    formula_binary(p, TN_FORMULA_OR);
  }
}

static void formula_choice(formula_parser *p) {
  if (++p->depth > MAX_DEPTH) formula_expected(p, "a formula nested less deeply");
  if (p->status == TN_OK) formula_disjunction(p);
  if (formula_take(p, "if")) {
    formula_disjunction(p);
    if (!formula_take(p, "else")) formula_expected(p, "\"else\"");
    formula_choice(p);
    formula_push(p, (tn_formula_step){.kind = TN_FORMULA_CHOOSE}, 3);
  }
  p->depth--;
}

/* word "=" choice */
static void formula_definition(formula_parser *p) {
  const char *result = p->formula->result;
  formula_skip_space(p);
  size_t n = formula_word_length(p->at);
  if (n == 0 || (result != NULL && !formula_is_word(result, p->at, n))) {
    formula_expected(p, result != NULL ? "the name of the op's result" : "the name of a result");
    return;
  }
  p->at += n;
  if (!formula_take(p, "=")) formula_expected(p, "\"=\"");
  formula_choice(p);
  formula_skip_space(p);
  if (*p->at != '\0') formula_expected(p, "an operator or the end");
}

tn_status tn_formula_parse(const void *handle, tn_arena *arena, tn_formula *f) {
  formula_parser p = {.handle = handle, .formula = f, .at = f->text};
  if (f->n_operands > TN_FORMULA_OPERANDS)
    return tn_failf(handle, TN_EINVAL, "formula of op %s: %d operands, expected at most %d", f->item->name,
                    (int)f->n_operands, (int)TN_FORMULA_OPERANDS);
  if (strnlen(f->text, TN_FORMULA_BYTES + 1) > TN_FORMULA_BYTES)
    return tn_failf(handle, TN_EINVAL,
                    "formula of op %s: longer than %d bytes, expected at most so many; make ops of its parts",
                    f->item->name, TN_FORMULA_BYTES);
  formula_definition(&p);
  if (p.status == TN_OK) {
    f->steps = tn_arena_copy(arena, p.steps.v, p.steps.n * sizeof *p.steps.v);
    f->n_steps = (int32_t)p.steps.n;
    f->stack = p.stack;
    if (f->steps == NULL) p.status = TN_ENOMEM;
  }
  tn_vec_free(handle, &p.steps);
  return p.status;
}
