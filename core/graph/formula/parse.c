/* core/graph/formula/parse.c: formulas to postfix steps, by recursive descent. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/base/vec.h"
#include "core/graph/formula/formula.h"
#include "core/plugin/kinds.h"

/* Limits the recursion over brackets, signs and choices. */
enum { MAX_DEPTH = 100 };

typedef struct formula_parser {
  const void *handle;
  const tn_formula *formula;
  const char *at;
  int32_t depth;
  TN_VEC(tn_formula_step) steps;
  tn_formula_statement statements[TN_FORMULA_STATEMENTS];
  int32_t n_statements; /* complete ones */
  tn_status status;
} formula_parser;

static void formula_choice(formula_parser *p);
static void formula_sign(formula_parser *p);

tn_status tn_formula_refuse(const void *handle, const tn_formula *formula, const char *at,
                            const char *expected) {
  int column = (int)(at - formula->text) + 1;
  char found[24];
  snprintf(found, sizeof found, "%s", at);
  return tn_failf(handle, TN_EINVAL, "%s \"%s\" of %s %s: column %d: expected %s, found %s%s%s",
                  formula->what, formula->text, tn_kind_name(formula->item->kind), formula->item->name,
                  column, expected, *found ? "\"" : "the end", found, *found ? "\"" : "");
}

/* The first failure counts. */
static void formula_expected(formula_parser *p, const char *expected) {
  if (p->status == TN_OK) p->status = tn_formula_refuse(p->handle, p->formula, p->at, expected);
}

/* ---- steps ---- */

static void formula_push(formula_parser *p, tn_formula_step step) {
  if (p->status == TN_OK) p->status = tn_vec_push(p->handle, &p->steps, step);
}

static void formula_push_kind(formula_parser *p, tn_formula_kind kind) {
  formula_push(p, (tn_formula_step){.kind = kind});
}

static void formula_reverse(tn_formula_step *steps, size_t first, size_t end) {
  for (; first + 1 < end; first++, end--) {
    tn_formula_step step = steps[first];
    steps[first] = steps[end - 1];
    steps[end - 1] = step;
  }
}

/* Exchanges the steps first .. middle - 1 and middle .. end - 1. */
static void formula_exchange(tn_formula_step *steps, size_t first, size_t middle, size_t end) {
  formula_reverse(steps, first, middle);
  formula_reverse(steps, middle, end);
  formula_reverse(steps, first, end);
}

int32_t tn_formula_step_pops(const tn_formula_step *s) {
  switch (s->kind) {
  case TN_FORMULA_NUMBER:
  case TN_FORMULA_LARGEST:
  case TN_FORMULA_WHOLE:
  case TN_FORMULA_GIVEN:
  case TN_FORMULA_NAMED:
  case TN_FORMULA_OPTION: return 0;
  case TN_FORMULA_CALL: return s->n;
  case TN_FORMULA_ATTRIBUTE:
  case TN_FORMULA_NEGATE:
  case TN_FORMULA_NOT:
  case TN_FORMULA_IF:
  case TN_FORMULA_ELSE: return 1;
  case TN_FORMULA_CHOOSE: return 3;
  default: return 2;
  }
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

static int32_t formula_find_word(const char *const *names, int32_t n, const char *word, size_t length) {
  for (int32_t i = 0; i < n; i++)
    if (formula_is_word(names[i], word, length)) return i;
  return -1;
}

static int32_t formula_find_statement(const formula_parser *p, const char *word, size_t n) {
  for (int32_t i = 0; i < p->n_statements; i++)
    if (p->statements[i].length == n && memcmp(p->statements[i].name, word, n) == 0) return i;
  return -1;
}

static bool formula_find_constant(const char *word, size_t n, tn_formula_step *step) {
  static const struct {
    const char *name;
    tn_formula_kind kind;
    double number;
  } constants[] = {{"pi", TN_FORMULA_NUMBER, M_PI},
                   {"inf", TN_FORMULA_NUMBER, INFINITY},
                   {"nan", TN_FORMULA_NUMBER, NAN},
                   {"largest", TN_FORMULA_LARGEST, 0},
                   {"whole", TN_FORMULA_WHOLE, 0}};
  for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
    if (formula_is_word(constants[i].name, word, n)) {
      *step = (tn_formula_step){.kind = constants[i].kind, .number = constants[i].number};
      return true;
    }
  return false;
}

/* A given value, an earlier statement, an option or a constant. */
static void formula_name(formula_parser *p, const char *word, size_t n) {
  const tn_formula *f = p->formula;
  const tn_option *o = formula_find_option(f->item, word, n);
  int32_t given = formula_find_word(f->given, f->n_given, word, n),
          named = formula_find_statement(p, word, n);
  tn_formula_step step;
  if (given >= 0) {
    step = (tn_formula_step){.kind = TN_FORMULA_GIVEN, .n = given};
  } else if (named >= 0) {
    step = (tn_formula_step){.kind = TN_FORMULA_NAMED, .n = named};
    p->statements[named].used = true;
  } else if (o != NULL && formula_is_number(o)) {
    step = (tn_formula_step){.kind = TN_FORMULA_OPTION, .option = o};
  } else if (!formula_find_constant(word, n, &step)) {
    p->at = word;
    formula_expected(p, "an operand, an earlier name or a numeric option");
  }
  formula_push(p, step);
}

/* [word "="] choice */
static void formula_argument(formula_parser *p) {
  formula_skip_space(p);
  const char *word = p->at;
  size_t n = formula_word_length(word);
  p->at += n;
  formula_skip_space(p);
  bool named = n > 0 && p->at[0] == '=' && p->at[1] != '=';
  p->at = named ? p->at + 1 : word;
  formula_choice(p);
  if (named) formula_push(p, (tn_formula_step){.kind = TN_FORMULA_ATTRIBUTE, .at = word, .length = n});
}

/* word "(" argument {"," argument} ")" */
static void formula_call(formula_parser *p, const char *word, size_t n) {
  int32_t count = 0;
  do {
    if (count == TN_FORMULA_ARGUMENTS) {
      formula_expected(p, "at most 8 arguments");
      return;
    }
    formula_argument(p);
    count++;
  } while (formula_take(p, ","));
  if (!formula_take(p, ")")) formula_expected(p, "\",\" or \")\"");
  formula_push(p, (tn_formula_step){.kind = TN_FORMULA_CALL, .n = count, .at = word, .length = n});
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
  formula_push(p, (tn_formula_step){.kind = TN_FORMULA_NUMBER, .number = v});
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
  formula_push_kind(p, TN_FORMULA_POW);
}

static void formula_sign(formula_parser *p) {
  if (++p->depth > MAX_DEPTH) formula_expected(p, "a formula nested less deeply");
  if (p->status == TN_OK && formula_take(p, "-")) {
    formula_sign(p);
    formula_push_kind(p, TN_FORMULA_NEGATE);
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
    formula_push_kind(p, divides ? TN_FORMULA_DIV : TN_FORMULA_MUL);
  }
}

static void formula_sum(formula_parser *p) {
  formula_product(p);
  for (;;) {
    bool subtracts = false;
    if (!formula_take(p, "+") && !(subtracts = formula_take(p, "-"))) return;
    formula_product(p);
    formula_push_kind(p, subtracts ? TN_FORMULA_SUB : TN_FORMULA_ADD);
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
    formula_push_kind(p, kind[i]);
    return;
  }
}

static void formula_negation(formula_parser *p) {
  bool invert = false;
  while (formula_take(p, "not")) invert = !invert;
  formula_comparison(p);
  if (invert) formula_push_kind(p, TN_FORMULA_NOT);
}

static void formula_conjunction(formula_parser *p) {
  formula_negation(p);
  while (formula_take(p, "and")) {
    formula_negation(p);
    formula_push_kind(p, TN_FORMULA_AND);
  }
}

static void formula_disjunction(formula_parser *p) {
  formula_conjunction(p);
  while (formula_take(p, "or")) {
    formula_conjunction(p);
    formula_push_kind(p, TN_FORMULA_OR);
  }
}

static void formula_choice(formula_parser *p) {
  size_t yes = p->steps.n;
  if (++p->depth > MAX_DEPTH) formula_expected(p, "a formula nested less deeply");
  if (p->status == TN_OK) formula_disjunction(p);
  if (formula_take(p, "if")) {
    size_t condition = p->steps.n;
    formula_disjunction(p);
    if (!formula_take(p, "else")) formula_expected(p, "\"else\"");
    int32_t n_yes = (int32_t)(condition - yes);
    formula_push(p, (tn_formula_step){.kind = TN_FORMULA_IF, .n = n_yes + 1});
    if (p->status == TN_OK) formula_exchange(p->steps.v, yes, condition, p->steps.n);
    size_t behind = p->steps.n;
    formula_push_kind(p, TN_FORMULA_ELSE);
    formula_choice(p);
    if (p->status == TN_OK) p->steps.v[behind].n = (int32_t)(p->steps.n - behind) - 1;
    formula_push_kind(p, TN_FORMULA_CHOOSE);
  }
  p->depth--;
}

/* A name that a statement may define. */
static bool formula_is_new(const formula_parser *p, const char *word, size_t n) {
  const tn_formula *f = p->formula;
  tn_formula_step step;
  return formula_find_word(f->given, f->n_given, word, n) < 0 && formula_find_statement(p, word, n) < 0 &&
         formula_find_option(f->item, word, n) == NULL && !formula_find_constant(word, n, &step);
}

/* word "=" choice */
static void formula_statement(formula_parser *p) {
  const tn_formula *f = p->formula;
  formula_skip_space(p);
  const char *word = p->at;
  size_t n = formula_word_length(word);
  int32_t target = formula_find_word(f->targets, f->n_targets, word, n);
  if (p->n_statements == TN_FORMULA_STATEMENTS) formula_expected(p, "at most 32 statements");
  if (n == 0) formula_expected(p, f->expects);
  if (p->status == TN_OK && !formula_is_new(p, word, n)) formula_expected(p, "a new name");
  p->at += n;
  if (!formula_take(p, "=")) formula_expected(p, "\"=\"");
  int32_t first = (int32_t)p->steps.n;
  formula_choice(p);
  if (p->status != TN_OK) return;
  p->statements[p->n_statements++] = (tn_formula_statement){
      .name = word, .length = n, .first = first, .n = (int32_t)p->steps.n - first, .target = target};
}

/* Every statement is a target or a part of one. An op has all its results, and the gradient of an operand at
 * least. */
static void formula_check_targets(formula_parser *p, bool all) {
  char expected[160];
  int32_t n = 0;
  for (int32_t i = 0; i < p->n_statements; i++) {
    const tn_formula_statement *s = &p->statements[i];
    n += s->target >= 0;
    if (s->target >= 0 || s->used) continue;
    p->at = s->name;
    snprintf(expected, sizeof expected, "%s, or a name that a later statement uses", p->formula->expects);
    formula_expected(p, expected);
  }
  if (n < (all ? p->formula->n_targets : 1)) formula_expected(p, p->formula->expects);
}

static void formula_statements(formula_parser *p) {
  do formula_statement(p);
  while (formula_take(p, ";"));
  formula_skip_space(p);
  if (*p->at != '\0') formula_expected(p, "an operator, \";\" or the end");
}

/* The height of the stack, with each statement begun while those before it wait. */
static int32_t formula_stack(const formula_parser *p) {
  int32_t sum = 0;
  for (int32_t k = 0; k < p->n_statements; k++) {
    int32_t height = 0, most = 0;
    for (int32_t i = 0; i < p->statements[k].n; i++) {
      height += 1 - tn_formula_step_pops(&p->steps.v[p->statements[k].first + i]);
      if (height > most) most = height;
    }
    sum += most;
  }
  return sum;
}

static tn_status formula_check_size(const void *handle, const tn_formula *f) {
  if (f->n_given > TN_FORMULA_NAMES)
    return tn_failf(handle, TN_EINVAL, "%s of %s %s: %d operands and results, expected at most %d", f->what,
                    tn_kind_name(f->item->kind), f->item->name, (int)f->n_given, (int)TN_FORMULA_NAMES);
  if (strnlen(f->text, TN_FORMULA_BYTES + 1) > TN_FORMULA_BYTES)
    return tn_failf(handle, TN_EINVAL,
                    "%s of %s %s: longer than %d bytes, expected at most so many; make ops of its parts",
                    f->what, tn_kind_name(f->item->kind), f->item->name, TN_FORMULA_BYTES);
  return TN_OK;
}

tn_status tn_formula_parse(const void *handle, tn_arena *arena, bool all, tn_formula *f) {
  formula_parser p = {.handle = handle, .formula = f, .at = f->text};
  TN_TRY(formula_check_size(handle, f));
  formula_statements(&p);
  formula_check_targets(&p, all);
  if (p.status == TN_OK) {
    f->steps = tn_arena_copy(arena, p.steps.v, p.steps.n * sizeof *p.steps.v);
    f->statements = tn_arena_copy(arena, p.statements, (size_t)p.n_statements * sizeof *p.statements);
    f->n_steps = (int32_t)p.steps.n;
    f->n_statements = p.n_statements;
    f->stack = formula_stack(&p);
    if (f->steps == NULL || f->statements == NULL) p.status = TN_ENOMEM;
  }
  tn_vec_free(handle, &p.steps);
  return p.status;
}
