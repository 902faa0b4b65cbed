/* core/config/language/expressions.c: the parser of expressions, by recursive descent with one level per
 * precedence. */
#include <ctype.h>
#include <string.h>

#include "core/config/language/parser.h"

/* Precedence levels from lowest to highest. `not` is between AND and COMPARE, the sign above MULTIPLY, and
 * `**` binds tighter than a sign in front of it. */
enum { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_ADD, LEVEL_MULTIPLY, LEVEL_SIGN };

typedef struct expr_operator {
  const char *mark;
  int32_t level, op;
} expr_operator;

/* A mark precedes its own prefixes in this list ("<=" before "<"). */
static const expr_operator expr_operators[] = {
    {"==", LEVEL_COMPARE, TN_BIN_EQ},
    {"!=", LEVEL_COMPARE, TN_BIN_NE},
    {"<=", LEVEL_COMPARE, TN_BIN_LE},
    {">=", LEVEL_COMPARE, TN_BIN_GE},
    {"<", LEVEL_COMPARE, TN_BIN_LT},
    {">", LEVEL_COMPARE, TN_BIN_GT},
    {"+", LEVEL_ADD, TN_BIN_ADD},
    {"-", LEVEL_ADD, TN_BIN_SUB},
    {"**", LEVEL_SIGN, TN_BIN_POW},
    {"*", LEVEL_MULTIPLY, TN_BIN_MUL},
    {"//", LEVEL_MULTIPLY, TN_BIN_FLOORDIV},
    {"/", LEVEL_MULTIPLY, TN_BIN_DIV},
    {"%", LEVEL_MULTIPLY, TN_BIN_MOD},
};

static tn_expr *expr_parse_level(tn_parser *p, int32_t level);

static tn_expr *expr_new(tn_parser *p, int32_t what) {
  tn_expr *expr = p->status == TN_OK ? tn_arena_alloc(p->arena, sizeof(*expr)) : NULL;
  if (expr == NULL && p->status == TN_OK) p->status = TN_ENOMEM;
  if (expr != NULL) expr->kind = what;
  return expr;
}

static bool expr_add_item(tn_parser *p, tn_expr *expr, tn_expr *item) {
  if (item == NULL) return false;
  tn_expr **grown = tn_arena_grow(p->arena, expr->items, (size_t)expr->n_items, sizeof(tn_expr *));
  if (grown == NULL) {
    p->status = TN_ENOMEM;
    return false;
  }
  expr->items = grown;
  grown[expr->n_items++] = item;
  return true;
}

static bool expr_enter(tn_parser *p) {
  if (++p->depth <= TN_SYNTAX_DEPTH) return true;
  tn_parser_fail(p, p->at, "the expression nests deeper than %d levels", TN_SYNTAX_DEPTH);
  return false;
}

/* A chain of operators makes a tree as deep as it is long. */
static void expr_count_operator(tn_parser *p) {
  if (++p->operators > TN_SYNTAX_OPERATORS)
    tn_parser_fail(p, p->at, "the line has more than %d operators", TN_SYNTAX_OPERATORS);
}

static tn_expr *expr_combine(tn_parser *p, int32_t op, tn_expr *left, tn_expr *right) {
  tn_expr *expr = expr_new(p, TN_EXPR_BINARY);
  if (expr == NULL || !expr_add_item(p, expr, left) || !expr_add_item(p, expr, right)) return NULL;
  expr->op = op;
  expr_count_operator(p);
  return expr;
}

/* Consumes an operator of the level and returns it, or -1. */
static int32_t expr_take_operator(tn_parser *p, int32_t level) {
  tn_parser_skip(p);
  if (level == LEVEL_OR) return tn_parser_take_word(p, "or") ? TN_BIN_OR : -1;
  if (level == LEVEL_AND) return tn_parser_take_word(p, "and") ? TN_BIN_AND : -1;
  if (tn_text_starts(p->at, "<-")) return -1;
  for (size_t i = 0; i < sizeof(expr_operators) / sizeof(expr_operators[0]); i++) {
    if (!tn_text_starts(p->at, expr_operators[i].mark)) continue;
    if (expr_operators[i].level != level) return -1;
    p->at += strlen(expr_operators[i].mark);
    return expr_operators[i].op;
  }
  return -1;
}

/* a < b < c is (a < b) and (b < c). */
static tn_expr *expr_parse_comparison(tn_parser *p) {
  tn_expr *left = expr_parse_level(p, LEVEL_ADD), *all = NULL;
  for (int32_t op; left != NULL && (op = expr_take_operator(p, LEVEL_COMPARE)) >= 0;) {
    tn_expr *right = expr_parse_level(p, LEVEL_ADD),
            *one = right != NULL ? expr_combine(p, op, left, right) : NULL;
    if (one == NULL) return NULL;
    all = all == NULL ? one : expr_combine(p, TN_BIN_AND, all, one);
    left = all != NULL ? right : NULL;
  }
  return left == NULL || all == NULL ? left : all;
}

static tn_expr *expr_parse_chain(tn_parser *p, int32_t level) {
  tn_expr *left = expr_parse_level(p, level + 1);
  for (int32_t op; left != NULL && (op = expr_take_operator(p, level)) >= 0;) {
    tn_expr *right = expr_parse_level(p, level + 1);
    left = right != NULL ? expr_combine(p, op, left, right) : NULL;
  }
  return left;
}

static tn_expr *expr_parse_unary(tn_parser *p, int32_t op, int32_t level) {
  tn_expr *expr = expr_new(p, TN_EXPR_UNARY);
  if (expr == NULL || !expr_enter(p)) return NULL;
  expr->op = op;
  bool added = expr_add_item(p, expr, expr_parse_level(p, level));
  p->depth--;
  return added ? expr : NULL;
}

/* The end of the number at `at`. The conversion of this text can only fail by overflow. */
static const char *expr_scan_number(const char *at) {
  const char *p = at;
  while (isdigit((unsigned char)*p)) p++;
  if (*p == '.') p++;
  while (isdigit((unsigned char)*p)) p++;
  if (*p == 'e' || *p == 'E') {
    const char *exponent = p + (p[1] == '-' || p[1] == '+' ? 2 : 1);
    if (isdigit((unsigned char)*exponent)) p = exponent;
    while (isdigit((unsigned char)*p)) p++;
  }
  return p;
}

/* Integers are stored in doubles, exact up to 2^53. */
static bool expr_read_number(const char *text, tn_expr *number) {
  int64_t integer;
  number->is_integer = strpbrk(text, ".eE") == NULL;
  if (!number->is_integer) return tn_text_to_float(text, &number->number);
  if (!tn_text_to_int(text, &integer) || integer > INT64_C(1) << 53) return false;
  number->number = (double)integer;
  return true;
}

static tn_expr *expr_parse_number(tn_parser *p) {
  const char *from = p->at, *to = expr_scan_number(from);
  tn_expr *expr = expr_new(p, TN_EXPR_NUMBER);
  const char *text = expr != NULL ? tn_parser_copy(p, from, to) : NULL;
  if (text == NULL) return NULL;
  if (tn_scan_word(to) != NULL || *to == '.') {
    tn_parser_expected(p, "a number");
    return NULL;
  }
  if (!expr_read_number(text, expr)) {
    tn_parser_fail(p, from, "the number %s is too large", text);
    return NULL;
  }
  p->at = to;
  return expr;
}

static tn_expr *expr_parse_list(tn_parser *p) {
  tn_expr *list = expr_new(p, TN_EXPR_LIST);
  if (list == NULL || tn_parser_take(p, "]")) return list;
  do {
    if (!expr_add_item(p, list, tn_parser_expr(p))) return NULL;
  } while (tn_parser_take(p, ","));
  if (tn_parser_take(p, "]")) return list;
  tn_parser_expected(p, "',' or ']'");
  return NULL;
}

static tn_expr *expr_parse_parentheses(tn_parser *p) {
  tn_expr *inner = tn_parser_expr(p);
  if (inner == NULL || tn_parser_take(p, ")")) return inner;
  tn_parser_expected(p, "')'");
  return NULL;
}

/* The rest of dim(REF, AXIS), or of dims(REF), after "(". */
static tn_expr *expr_parse_dim(tn_parser *p, bool all) {
  tn_expr *expr = expr_new(p, TN_EXPR_DIM);
  if (expr == NULL) return NULL;
  expr->word = tn_parser_name(p, false, "the name of a value");
  if (expr->word == NULL) return NULL;
  if (!all && !tn_parser_take(p, ",")) {
    tn_parser_expected(p, "',' and a dimension");
    return NULL;
  }
  if (!all && !expr_add_item(p, expr, tn_parser_expr(p))) return NULL;
  if (tn_parser_take(p, ")")) return expr;
  tn_parser_expected(p, "')'");
  return NULL;
}

static tn_expr *expr_parse_word(tn_parser *p) {
  const char *from = p->at, *to = tn_scan_word(from);
  if (tn_parser_reserved(from, to)) {
    tn_parser_expected(p, "a value");
    return NULL;
  }
  to = tn_scan_name(from, false); /* "layer1.0", "data.mask" and "op.add" are names, too */
  if (to == NULL) {
    tn_parser_expected(p, "the name of a value");
    return NULL;
  }
  p->at = to;
  bool call = tn_parser_take(p, "(");
  if (call && to - from == 3 && memcmp(from, "dim", 3) == 0) return expr_parse_dim(p, false);
  if (call && to - from == 4 && memcmp(from, "dims", 4) == 0) return expr_parse_dim(p, true);
  tn_expr *expr = expr_new(p, call ? TN_EXPR_CALL : TN_EXPR_WORD);
  if (expr == NULL) return NULL;
  expr->word = tn_parser_copy(p, from, to);
  if (expr->word == NULL || (call && !tn_parser_args(p, &expr->args, &expr->n_args))) return NULL;
  return expr;
}

static tn_expr *expr_parse_shared(tn_parser *p) {
  tn_expr *expr = expr_new(p, TN_EXPR_SHARED);
  if (expr != NULL) expr->word = tn_parser_name(p, false, "a name after '@'");
  return p->status == TN_OK ? expr : NULL;
}

static tn_expr *expr_parse_primary(tn_parser *p) {
  tn_parser_skip(p);
  if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1])))
    return expr_parse_number(p);
  if (tn_scan_word(p->at) != NULL) return expr_parse_word(p);
  if (tn_parser_take(p, "(")) return expr_parse_parentheses(p);
  if (tn_parser_take(p, "[")) return expr_parse_list(p);
  if (tn_parser_take(p, "@")) return expr_parse_shared(p);
  tn_parser_expected(p, "a value");
  return NULL;
}

/* Whether an index leaves out the number that could stand here. */
static bool expr_at_mark(tn_parser *p) {
  tn_parser_skip(p);
  return *p->at == ':' || *p->at == ',' || *p->at == ']';
}

static bool expr_parse_bound(tn_parser *p, tn_expr **bound) {
  if (!expr_at_mark(p)) *bound = tn_parser_expr(p);
  return p->status == TN_OK;
}

static bool expr_parse_range(tn_parser *p, tn_index_expr *index) {
  if (!expr_parse_bound(p, &index->start)) return false;
  if (!tn_parser_take(p, ":")) {
    if (index->start == NULL) tn_parser_expected(p, "an index, as in x[:, -1]");
    return p->status == TN_OK;
  }
  index->kind = TN_INDEX_RANGE;
  if (!expr_parse_bound(p, &index->stop)) return false;
  return !tn_parser_take(p, ":") || expr_parse_bound(p, &index->step);
}

static bool expr_parse_index(tn_parser *p, tn_expr *part) {
  tn_index_expr index = {.kind = TN_INDEX_ONE};
  if (tn_parser_take(p, "..."))
    index.kind = TN_INDEX_REST;
  else if (tn_parser_take_word(p, "None"))
    index.kind = TN_INDEX_NEW;
  else if (!expr_parse_range(p, &index))
    return false;
  tn_index_expr *grown = tn_arena_grow(p->arena, part->index, (size_t)part->n_index, sizeof index);
  if (grown == NULL) {
    p->status = TN_ENOMEM;
    return false;
  }
  part->index = grown;
  grown[part->n_index++] = index;
  return true;
}

/* The rest of x[0], x[:, 1:-1] or x[..., None], after "[". */
static tn_expr *expr_parse_part(tn_parser *p, tn_expr *of) {
  tn_expr *part = expr_new(p, TN_EXPR_PART);
  if (part == NULL || !expr_add_item(p, part, of) || !expr_enter(p)) return NULL;
  do {
    if (!expr_parse_index(p, part)) return NULL;
  } while (tn_parser_take(p, ","));
  p->depth--;
  if (!tn_parser_take(p, "]")) {
    const tn_index_expr *last = &part->index[part->n_index - 1];
    tn_parser_expected(p, last->kind == TN_INDEX_ONE ? "',', ':' or ']'" : "',' or ']'");
    return NULL;
  }
  expr_count_operator(p);
  return part;
}

static tn_expr *expr_parse_parts(tn_parser *p) {
  tn_expr *expr = expr_parse_primary(p);
  while (expr != NULL && tn_parser_take(p, "[")) expr = expr_parse_part(p, expr);
  return expr;
}

/* a ** b: the right side may have a sign, and further powers. */
static tn_expr *expr_parse_power(tn_parser *p) {
  tn_expr *base = expr_parse_parts(p);
  if (base == NULL || !tn_parser_take(p, "**") || !expr_enter(p)) return p->status == TN_OK ? base : NULL;
  tn_expr *exponent = expr_parse_level(p, LEVEL_SIGN);
  p->depth--;
  return exponent != NULL ? expr_combine(p, TN_BIN_POW, base, exponent) : NULL;
}

static tn_expr *expr_parse_level(tn_parser *p, int32_t level) {
  switch (level) {
  case LEVEL_NOT:
    return tn_parser_take_word(p, "not") ? expr_parse_unary(p, TN_UN_NOT, LEVEL_NOT)
                                         : expr_parse_comparison(p);
  case LEVEL_SIGN:
    return tn_parser_take(p, "-") ? expr_parse_unary(p, TN_UN_NEG, LEVEL_SIGN) : expr_parse_power(p);
  default: return expr_parse_chain(p, level);
  }
}

tn_expr *tn_parser_or(tn_parser *p) {
  if (!expr_enter(p)) return NULL;
  tn_expr *expr = expr_parse_level(p, LEVEL_OR);
  p->depth--;
  return p->status == TN_OK ? expr : NULL;
}

/* The rest of `yes if condition else no`, after "if". */
static tn_expr *expr_parse_choice(tn_parser *p, tn_expr *yes) {
  tn_expr *expr = expr_new(p, TN_EXPR_CHOOSE);
  if (expr == NULL || !expr_add_item(p, expr, yes) || !expr_add_item(p, expr, tn_parser_or(p))) return NULL;
  if (!tn_parser_take_word(p, "else")) {
    tn_parser_expected(p, "'else' and the other value");
    return NULL;
  }
  return expr_add_item(p, expr, tn_parser_expr(p)) ? expr : NULL;
}

tn_expr *tn_parser_expr(tn_parser *p) {
  tn_expr *expr = tn_parser_or(p);
  if (expr == NULL || !tn_parser_take_word(p, "if")) return expr;
  if (!expr_enter(p)) return NULL;
  expr = expr_parse_choice(p, expr);
  p->depth--;
  return expr;
}

/* Consumes "name =" in front of an argument and returns the name; "==" is an operator. */
static const char *expr_argument_name(tn_parser *p) {
  tn_parser_skip(p);
  const char *from = p->at, *to = tn_scan_word(from);
  if (to == NULL || tn_parser_reserved(from, to)) return NULL;
  const char *equals = to + strspn(to, " \t\n");
  if (*equals != '=' || equals[1] == '=') return NULL;
  p->at = equals + 1;
  return tn_parser_copy(p, from, to);
}

static bool expr_check_argument(tn_parser *p, const char *at, const tn_call_arg *args, int32_t n,
                                const tn_call_arg *arg) {
  if (arg->name == NULL && n > 0 && args[n - 1].name != NULL)
    tn_parser_fail(p, at, "a positional argument follows '%s=', expected name=value", args[n - 1].name);
  for (int32_t i = 0; i < n; i++)
    if (arg->name != NULL && tn_text_equal(args[i].name, arg->name))
      tn_parser_fail(p, at, "the argument '%s' is given twice", arg->name);
  return p->status == TN_OK;
}

static bool expr_parse_argument(tn_parser *p, tn_call_arg **args, int32_t *n) {
  tn_parser_skip(p);
  const char *at = p->at;
  tn_call_arg arg = {.name = expr_argument_name(p)};
  if (p->status == TN_OK) arg.value = tn_parser_expr(p);
  if (arg.value == NULL || !expr_check_argument(p, at, *args, *n, &arg)) return false;
  tn_call_arg *grown = tn_arena_grow(p->arena, *args, (size_t)*n, sizeof(arg));
  if (grown == NULL) {
    p->status = TN_ENOMEM;
    return false;
  }
  *args = grown;
  grown[(*n)++] = arg;
  return true;
}

bool tn_parser_args(tn_parser *p, tn_call_arg **args, int32_t *n) {
  *args = NULL;
  *n = 0;
  if (tn_parser_take(p, ")")) return true;
  do {
    if (!expr_parse_argument(p, args, n)) return false;
  } while (tn_parser_take(p, ","));
  if (tn_parser_take(p, ")")) return true;
  tn_parser_expected(p, "',' or ')'");
  return false;
}
