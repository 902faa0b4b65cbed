#include "core/graph/formula/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tenon/ops.h"

/* Brackets and chains of operators recurse; deeper text than this is refused, not overflowed. */
enum { MAX_DEPTH = 100, MAX_ARGUMENTS = 8 };

/* What a part of a formula stands for: a number known now, or scale * value. The scale waits so that
 * `2 * x + 1` becomes one affine. */
typedef struct term {
  bool is_number;
  double number, scale;
  tn_val value;
} term;

typedef struct parser {
  const void *handle;
  tn_build *b; /* NULL: check only */
  const tn_formula *formula;
  const void *attributes;
  const char *at;
  int32_t depth;
  int32_t dtype;                   /* in which numbers become tensors where nothing else decides */
  tn_val operand[TN_MAX_RANK * 4]; /* as computed with: cast at first use; 0: not used yet */
  tn_status status;
} parser;

enum { MAX_OPERANDS = sizeof(((parser *)0)->operand) / sizeof(tn_val) };

static term choice(parser *p);
static term sign(parser *p);

/* ---- terms ---- */

static term number_term(double number) { return (term){.is_number = true, .number = number, .scale = 1}; }
static term value_term(tn_val value) { return (term){.scale = 1, .value = value}; }

static tn_status refuse(parser *p, const char *expected) {
  if (p->status != TN_OK) return p->status;
  int column = (int)(p->at - p->formula->text) + 1;
  char found[24];
  size_t n = 0;
  while (n < sizeof found - 1 && p->at[n] != '\0') n++;
  memcpy(found, p->at, n);
  found[n] = '\0';
  p->status = tn_failf(p->handle, TN_EINVAL, "formula \"%s\" of op %s: column %d: expected %s, found %s%s%s",
                       p->formula->text, p->formula->item->name, column, expected, *found ? "\"" : "the end",
                       found, *found ? "\"" : "");
  return p->status;
}

static int32_t dtype_of(const parser *p, tn_val v) { return tn_val_type(p->b, v)->dtype; }

/* The term as a tensor; a number becomes a scalar of `dtype`, bool included. */
static tn_val tensor(parser *p, term t, int32_t dtype) {
  if (p->b == NULL) return 0;
  if (t.is_number) return tn_scalar(p->b, dtype, t.number);
  if (t.scale == 1) return t.value;
  return t.scale == -1 ? tn_neg(p->b, t.value) : tn_affine(p->b, t.value, t.scale, 0);
}

static bool is_float(const parser *p, term t) {
  return p->b != NULL && !t.is_number && tn_dtype_is_float(dtype_of(p, t.value));
}

/* A binary op; a number takes the type of the other side. */
static term binary(parser *p, const char *op, term x, term y) {
  if (p->b == NULL) return value_term(0);
  int32_t dtype = !x.is_number ? dtype_of(p, x.value) : !y.is_number ? dtype_of(p, y.value) : p->dtype;
  tn_val left = tensor(p, x, dtype), right = tensor(p, y, dtype);
  return value_term(tn_op2(p->b, op, left, right));
}

/* value + shift, in one affine with a scale that still waits. */
static term add_number(parser *p, term t, double shift) {
  if (!is_float(p, t)) return binary(p, "add", t, number_term(shift));
  return value_term(tn_affine(p->b, t.value, t.scale, shift));
}

static term negate(parser *p, term t) {
  if (t.is_number) return number_term(-t.number);
  if (is_float(p, t)) {
    t.scale = -t.scale;
    return t;
  }
  return p->b == NULL ? t : value_term(tn_neg(p->b, t.value));
}

static term add(parser *p, term x, term y) {
  if (x.is_number && y.is_number) return number_term(x.number + y.number);
  if (y.is_number) return add_number(p, x, y.number);
  if (x.is_number) return add_number(p, y, x.number);
  return binary(p, "add", x, y);
}

static term subtract(parser *p, term x, term y) {
  if (x.is_number || y.is_number) return add(p, x, negate(p, y));
  return binary(p, "sub", x, y);
}

static term multiply(parser *p, term x, term y) {
  if (x.is_number && y.is_number) return number_term(x.number * y.number);
  if (x.is_number) return multiply(p, y, x);
  if (!y.is_number || !is_float(p, x)) return binary(p, "mul", x, y);
  if (x.scale != 1) x = value_term(tensor(p, x, p->dtype));
  x.scale = y.number;
  return x;
}

/* Dividing by a power of two is multiplying by its inverse, exactly; other divisors keep the
 * rounding of a division. */
static term divide(parser *p, term x, term y) {
  int exponent;
  if (x.is_number && y.is_number) return number_term(x.number / y.number);
  if (y.is_number && y.number != 0 && fabs(frexp(y.number, &exponent)) == 0.5)
    return multiply(p, x, number_term(1 / y.number));
  if (x.is_number && x.number == 1 && p->b != NULL)
    return value_term(tn_op1(p->b, "reciprocal", tensor(p, y, p->dtype)));
  return binary(p, "div", x, y);
}

/* Small whole powers are products: exact for negative bases, and cheaper than pow. */
static term raise(parser *p, term x, term y) {
  if (x.is_number && y.is_number) return number_term(pow(x.number, y.number));
  if (p->b == NULL || !y.is_number) return binary(p, "pow", x, y);
  x = value_term(tensor(p, x, p->dtype));
  if (y.number == 1) return x;
  if (y.number == 0.5) return value_term(tn_sqrt(p->b, x.value));
  if (y.number == -0.5) return value_term(tn_rsqrt(p->b, x.value));
  if (y.number == -1) return value_term(tn_op1(p->b, "reciprocal", x.value));
  tn_val square = y.number == 2 || y.number == 3 || y.number == 4 ? tn_mul(p->b, x.value, x.value) : 0;
  if (y.number == 2) return value_term(square);
  if (y.number == 3) return value_term(tn_mul(p->b, square, x.value));
  if (y.number == 4) return value_term(tn_mul(p->b, square, square));
  return binary(p, "pow", x, y);
}

static double compare_numbers(const char *op, double x, double y) {
  if (strcmp(op, "eq") == 0) return x == y;
  if (strcmp(op, "ne") == 0) return x != y;
  if (strcmp(op, "lt") == 0) return x < y;
  if (strcmp(op, "le") == 0) return x <= y;
  return strcmp(op, "gt") == 0 ? x > y : x >= y;
}

/* `and` and `or`: a side that is a number either decides or drops out. */
static term logic(parser *p, const char *op, term x, term y) {
  bool decides = strcmp(op, "or") == 0;
  if (!x.is_number && !y.is_number) return binary(p, op, x, y);
  if (!x.is_number) return logic(p, op, y, x);
  return (x.number != 0) == decides ? number_term(decides) : y;
}

static term choose(parser *p, term condition, term yes, term no) {
  if (condition.is_number) return condition.number != 0 ? yes : no;
  if (p->b == NULL) return value_term(0);
  int32_t dtype = !yes.is_number ? dtype_of(p, yes.value) : !no.is_number ? dtype_of(p, no.value) : p->dtype;
  tn_val x = tensor(p, yes, dtype), y = tensor(p, no, dtype);
  return value_term(tn_where(p->b, condition.value, x, y));
}

/* ---- words ---- */

static void skip_space(parser *p) {
  while (isspace((unsigned char)*p->at)) p->at++;
}

/* Takes `symbol` if it stands next; a symbol of letters must end where the word does. */
static bool take(parser *p, const char *symbol) {
  skip_space(p);
  size_t n = strlen(symbol);
  if (p->status != TN_OK || strncmp(p->at, symbol, n) != 0) return false;
  if (isalpha((unsigned char)symbol[0]) && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_'))
    return false;
  p->at += n;
  return true;
}

static size_t word_length(const char *text) {
  size_t n = 0;
  if (!isalpha((unsigned char)*text) && *text != '_') return 0;
  while (isalnum((unsigned char)text[n]) || text[n] == '_') n++;
  return n;
}

static bool is_word(const char *name, const char *text, size_t n) {
  return strlen(name) == n && memcmp(name, text, n) == 0;
}

static tn_val operand(parser *p, int32_t i) {
  if (p->b == NULL || p->operand[i] != 0) return p->b == NULL ? 0 : p->operand[i];
  tn_val v = tn_build_in(p->b, i);
  int32_t dtype = dtype_of(p, v);
  bool narrow = dtype == TN_F16 || dtype == TN_BF16;
  return p->operand[i] = narrow ? tn_cast(p->b, v, TN_F32) : v;
}

/* The number that an option holds; false for types that are no number. */
static bool option_number(const tn_option *o, const void *attributes, double *number) {
  const char *field = attributes == NULL ? NULL : (const char *)attributes + o->offset;
  *number = 1;
  switch (o->type) {
  case TN_OPT_FLAG:
  case TN_OPT_ENUM:
    if (field != NULL) *number = *(const int32_t *)(const void *)field;
    return true;
  case TN_OPT_INT:
  case TN_OPT_SIZE:
    if (field != NULL) *number = (double)*(const int64_t *)(const void *)field;
    return true;
  case TN_OPT_FLOAT:
  case TN_OPT_DURATION:
    if (field != NULL) *number = *(const double *)(const void *)field;
    return true;
  default: return false;
  }
}

static const tn_option *find_option(const tn_item *item, const char *text, size_t n) {
  for (const tn_option *o = item->options; o != NULL && o->name != NULL;
       o = (const tn_option *)(const void *)((const char *)o + item->option_stride))
    if (is_word(o->name, text, n)) return o;
  return NULL;
}

static term named(parser *p, const char *word, size_t n) {
  const tn_formula *f = p->formula;
  for (int32_t i = 0; i < f->n_operands; i++)
    if (is_word(f->operands[i], word, n)) return value_term(operand(p, i));
  const tn_option *o = find_option(f->item, word, n);
  double number;
  if (o != NULL && option_number(o, p->attributes, &number))
    /* While checking, the number is not known: neither branch of an `if` may be skipped. */
    return p->b == NULL ? value_term(0) : number_term(number);
  p->at = word;
  refuse(p, "an operand or a numeric option of the op");
  return number_term(0);
}

/* word "(" choice {"," choice} ")": any op, as long as it is pointwise. */
static term call(parser *p, const char *word, size_t n) {
  term argument[MAX_ARGUMENTS];
  int32_t count = 0;
  do {
    if (count == MAX_ARGUMENTS) {
      refuse(p, "at most 8 arguments");
      return number_term(0);
    }
    argument[count++] = choice(p);
  } while (take(p, ","));
  if (!take(p, ")")) refuse(p, "\",\" or \")\"");
  if (p->b == NULL || p->status != TN_OK) return value_term(0);
  int32_t dtype = p->dtype;
  for (int32_t i = count - 1; i >= 0; i--)
    if (!argument[i].is_number && dtype_of(p, argument[i].value) != TN_BOOL)
      dtype = dtype_of(p, argument[i].value);
  tn_val in[MAX_ARGUMENTS];
  for (int32_t i = 0; i < count; i++) in[i] = tensor(p, argument[i], dtype);
  char op[64];
  snprintf(op, sizeof op, "%.*s", (int)n, word);
  tn_op_begin(p->b, op);
  for (int32_t i = 0; i < count; i++) tn_op_arg(p->b, in[i]);
  tn_val v = tn_op_end(p->b);
  if (v != 0 && tn_graph_maker(tn_builder_graph(p->b), v)->op->op_class != TN_CLASS_POINTWISE) {
    p->at = word;
    refuse(p, "a pointwise op");
  }
  return value_term(v);
}

/* ---- grammar ---- */

/* digits ["." digits] ["e" ["+" | "-"] digits] */
static term number(parser *p) {
  char text[64];
  size_t n = 0;
  double v = 0;
  while (isdigit((unsigned char)p->at[n]) || p->at[n] == '.') n++;
  if (p->at[n] == 'e' || p->at[n] == 'E') {
    n += p->at[n + 1] == '+' || p->at[n + 1] == '-' ? 2 : 1;
    while (isdigit((unsigned char)p->at[n])) n++;
  }
  snprintf(text, sizeof text, "%.*s", (int)n, p->at);
  if (n >= sizeof text || !tn_text_to_float(text, &v)) refuse(p, "a number");
  p->at += n;
  return number_term(v);
}

static term atom(parser *p) {
  skip_space(p);
  if (isdigit((unsigned char)*p->at) || *p->at == '.') return number(p);
  if (take(p, "(")) {
    term t = choice(p);
    if (!take(p, ")")) refuse(p, "\")\"");
    return t;
  }
  const char *word = p->at;
  size_t n = word_length(word);
  if (n == 0) {
    refuse(p, "a number, a name or \"(\"");
    return number_term(0);
  }
  p->at += n;
  return take(p, "(") ? call(p, word, n) : named(p, word, n);
}

static term power(parser *p) {
  term base = atom(p);
  return take(p, "^") ? raise(p, base, sign(p)) : base;
}

static term sign(parser *p) {
  if (++p->depth > MAX_DEPTH) refuse(p, "a formula nested less deeply");
  term t = p->status != TN_OK ? number_term(0) : take(p, "-") ? negate(p, sign(p)) : power(p);
  p->depth--;
  return t;
}

static term product(parser *p) {
  term t = sign(p);
  for (;;) {
    if (take(p, "*"))
      t = multiply(p, t, sign(p));
    else if (take(p, "/"))
      t = divide(p, t, sign(p));
    else
      return t;
  }
}

static term sum(parser *p) {
  term t = product(p);
  for (;;) {
    if (take(p, "+"))
      t = add(p, t, product(p));
    else if (take(p, "-"))
      t = subtract(p, t, product(p));
    else
      return t;
  }
}

static term comparison(parser *p) {
  static const char *const symbol[] = {"==", "!=", "<=", ">=", "<", ">"};
  static const char *const op[] = {"eq", "ne", "le", "ge", "lt", "gt"};
  term x = sum(p);
  for (size_t i = 0; i < sizeof symbol / sizeof *symbol; i++) {
    if (!take(p, symbol[i])) continue;
    term y = sum(p);
    if (x.is_number && y.is_number) return number_term(compare_numbers(op[i], x.number, y.number));
    return binary(p, op[i], x, y);
  }
  return x;
}

static term negation(parser *p) {
  bool invert = false;
  while (take(p, "not")) invert = !invert;
  term t = comparison(p);
  if (!invert) return t;
  if (t.is_number) return number_term(t.number == 0);
  return p->b == NULL ? t : value_term(tn_op1(p->b, "not", t.value));
}

static term conjunction(parser *p) {
  term t = negation(p);
  while (take(p, "and")) t = logic(p, "and", t, negation(p));
  return t;
}

static term disjunction(parser *p) {
  term t = conjunction(p);
  while (take(p, "or")) t = logic(p, "or", t, conjunction(p));
  return t;
}

static term choice(parser *p) {
  if (++p->depth > MAX_DEPTH) refuse(p, "a formula nested less deeply");
  term t = p->status != TN_OK ? number_term(0) : disjunction(p);
  if (take(p, "if")) {
    term condition = disjunction(p);
    if (!take(p, "else")) refuse(p, "\"else\"");
    t = choose(p, condition, t, choice(p));
  }
  p->depth--;
  return t;
}

static term parse(parser *p) {
  const tn_formula *f = p->formula;
  if (f->n_operands > MAX_OPERANDS) {
    p->status =
        tn_failf(p->handle, TN_EINVAL, "formula of op %s: %d operands, at most %d can be computed with",
                 f->item->name, (int)f->n_operands, (int)MAX_OPERANDS);
    return number_term(0);
  }
  skip_space(p);
  size_t n = word_length(p->at);
  if (n == 0 || (f->result != NULL && !is_word(f->result, p->at, n))) {
    refuse(p, f->result != NULL ? "the name of the op's result" : "the name of a result");
    return number_term(0);
  }
  p->at += n;
  if (!take(p, "=")) refuse(p, "\"=\"");
  term t = choice(p);
  skip_space(p);
  if (*p->at != '\0') refuse(p, "an operator or the end");
  return t;
}

tn_status tn_formula_check(const void *handle, const tn_formula *formula) {
  parser p = {.handle = handle, .formula = formula, .at = formula->text};
  parse(&p);
  return p.status;
}

/* ---- emission ---- */

/* The operands' broadcast dims, aligned at the last one, with the first float operand's dtype. The
 * host has checked that they fit. */
static tn_type result_type(tn_build *b, int32_t n) {
  tn_type type = {n > 0 ? tn_val_type(b, tn_build_in(b, 0))->dtype : TN_F32, 0, {0}};
  for (int32_t i = 0; i < n; i++) {
    tn_type t = *tn_val_type(b, tn_build_in(b, i));
    if (tn_dtype_is_float(t.dtype) && !tn_dtype_is_float(type.dtype)) type.dtype = t.dtype;
    int32_t grow = t.rank - type.rank;
    if (grow > 0) {
      memmove(type.dims + grow, type.dims, (size_t)type.rank * sizeof *type.dims);
      for (int32_t k = 0; k < grow; k++) type.dims[k] = 1;
      type.rank = t.rank;
    }
    for (int32_t k = 0; k < t.rank; k++) {
      int64_t *dim = &type.dims[type.rank - t.rank + k];
      if (*dim == 1) *dim = t.dims[k];
    }
  }
  return type;
}

static tn_status check_operands(tn_build *b, const tn_formula *f) {
  for (int32_t i = 0; i < f->n_operands; i++)
    if (tn_build_in(b, i) == 0)
      return tn_failf(b, TN_EINVAL,
                      "formula of op %s: operand %s is absent, but a formula needs all operands",
                      f->item->name, f->operands[i]);
  return TN_OK;
}

tn_status tn_formula_emit(tn_build *b, const tn_formula *formula, const void *attributes) {
  TN_TRY(tn_build_status(b));
  TN_TRY(check_operands(b, formula));
  tn_type type = result_type(b, formula->n_operands);
  bool narrow = type.dtype == TN_F16 || type.dtype == TN_BF16;
  parser p = {.handle = b,
              .b = b,
              .formula = formula,
              .attributes = attributes,
              .at = formula->text,
              .dtype = narrow ? TN_F32 : type.dtype};
  term t = parse(&p);
  if (p.status != TN_OK) return p.status;
  tn_val y = tensor(&p, t, p.dtype);
  if (dtype_of(&p, y) != TN_BOOL) y = tn_cast(b, y, type.dtype);
  if (!tn_type_same_dims(tn_val_type(b, y), &type)) y = tn_broadcast(b, y, type.rank, type.dims);
  tn_build_yield(b, 0, y);
  return tn_build_status(b);
}
