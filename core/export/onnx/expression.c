/* core/export/onnx/expression.c: templates as nodes of ONNX.
 *
 *   template   = statement {";" statement}
 *   statement  = word {"," word} "=" call     names the outputs of a node
 *              | value                        is the next result of the op
 *   value      = call | word | "_" | number [":" dtype] | list | option | "'" name "'"
 *   call       = Operator "(" [argument {"," argument}] ")"
 *   argument   = value | word "=" setting     an input, or an attribute
 *   setting    = number | list | option | "'" text "'" | dtype | "T" | "Y"
 *   list       = "[" [integer {"," integer}] "]" | "['" word "']"
 *   option     = "{" word "}"                 of the op
 *
 * A word is an operand of the op, or a name of an earlier statement; `_` is absent. A number is a scalar of
 * the dtype of operand 0 unless it names another; a list is a vector of i64. T is the dtype of operand 0, and
 * Y that of result 0. A number with a point or an exponent is a float. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/export/onnx/nodes.h"
#include "core/graph/op/schema.h"

enum { MOST_LOCALS = 16, MOST_ARGUMENTS = 64, MOST_LIST = 64 };

typedef struct expression {
  const export_use *u;
  const char *text, *at;
  const char *local[MOST_LOCALS]; /* names of statements, and the values that they have */
  const char *value[MOST_LOCALS];
  int32_t n_locals, n_results;
} expression;

static tn_status expression_fail(const expression *e, const char *expected) {
  return tn_failf(e->u->x->env, TN_EINTERNAL, "template \"%s\": expected %s at \"%.20s\"", e->text, expected,
                  e->at);
}

/* ---- words ---- */

static void expression_skip(expression *e) {
  while (*e->at == ' ') e->at++;
}

static bool expression_take(expression *e, char c) {
  expression_skip(e);
  if (*e->at != c) return false;
  e->at++;
  return true;
}

static const char *expression_word(expression *e, size_t *n) {
  expression_skip(e);
  const char *start = e->at;
  while (isalnum((unsigned char)*e->at) || *e->at == '_') e->at++;
  *n = (size_t)(e->at - start);
  return start;
}

static bool expression_is(const char *word, size_t n, const char *name) {
  return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* ---- options of the op ---- */

static const tn_option *expression_option(expression *e) {
  size_t n;
  const tn_item *item = &e->u->node->op->item;
  const char *word = expression_word(e, &n);
  for (const tn_option *o = item->options; o != NULL && o->name != NULL; o++)
    if (expression_is(word, n, o->name) && expression_take(e, '}')) return o;
  expression_fail(e, "an option of the op");
  return NULL;
}

/* The word of an enum, in its range "a|b|c". */
static const char *option_word(const tn_option *o, int32_t index, size_t *n) {
  const char *at = o->range;
  for (int32_t i = 0; i < index; i++) at = strchr(at, '|') + 1;
  *n = strcspn(at, "|");
  return at;
}

static double option_number(const tn_option *o, const char *field) {
  if (o->type == TN_OPT_FLOAT) return *(const double *)(const void *)field;
  if (o->type == TN_OPT_INT) return (double)*(const int64_t *)(const void *)field;
  return *(const int32_t *)(const void *)field;
}

static void option_put(expression *e, const tn_option *o, tn_text *node, const char *name) {
  const char *field = (const char *)e->u->node->attributes + o->offset;
  size_t n;
  if (o->type == TN_OPT_ENUM) {
    const char *word = option_word(o, *(const int32_t *)(const void *)field, &n);
    export_put_word(node, name, word, n);
  } else if (o->type == TN_OPT_DTYPE) {
    export_put_int(node, name, export_dtype(*(const int32_t *)(const void *)field));
  } else if (o->type == TN_OPT_INTS) {
    const tn_ints *list = (const void *)field;
    export_put_ints(node, name, list->v, list->n);
  } else if (o->type == TN_OPT_FLOAT) {
    export_put_float(node, name, option_number(o, field));
  } else {
    export_put_int(node, name, (int64_t)option_number(o, field));
  }
}

/* ---- numbers ---- */

static int32_t expression_dtype(expression *e, const char *word, size_t n) {
  const tn_gnode *node = e->u->node;
  if (expression_is(word, n, "T")) return node->n_in > 0 ? export_type(e->u, 0)->dtype : TN_F32;
  if (expression_is(word, n, "Y")) return export_result(e->u, 0)->dtype;
  for (int32_t d = 0; d < TN_DTYPES; d++)
    if (d != TN_ANY && expression_is(word, n, tn_dtype_name(d))) return d;
  return TN_ANY;
}

static double expression_number(expression *e, bool *whole) {
  char *end;
  double value = strtod(e->at, &end);
  *whole = memchr(e->at, '.', (size_t)(end - e->at)) == NULL &&
           memchr(e->at, 'e', (size_t)(end - e->at)) == NULL &&
           memchr(e->at, 'i', (size_t)(end - e->at)) == NULL;
  e->at = end;
  return value;
}

static const char *expression_scalar(expression *e) {
  bool whole;
  size_t n;
  double value = expression_number(e, &whole);
  int32_t dtype = expression_dtype(e, "T", 1);
  if (*e->at == ':') {
    e->at++;
    const char *word = expression_word(e, &n);
    dtype = expression_dtype(e, word, n);
  }
  return export_number(e->u->x, dtype, value);
}

static int64_t expression_list(expression *e, int64_t list[MOST_LIST]) {
  int64_t n = 0;
  while (!expression_take(e, ']') && *e->at != '\0' && n < MOST_LIST) {
    char *end;
    list[n++] = strtoll(e->at, &end, 10);
    e->at = end;
    expression_take(e, ',');
  }
  return n;
}

/* ---- attributes ---- */

static tn_status expression_setting(expression *e, tn_text *node, const char *name) {
  int64_t list[MOST_LIST];
  size_t n;
  bool whole;
  if (expression_take(e, '{')) {
    const tn_option *o = expression_option(e);
    if (o == NULL) return TN_EINTERNAL;
    option_put(e, o, node, name);
    return TN_OK;
  }
  if (expression_take(e, '[')) {
    if (expression_take(e, '\'')) {
      n = strcspn(e->at, "'");
      export_put_words(node, name, e->at, n);
      e->at += n + 1;
      return expression_take(e, ']') ? TN_OK : expression_fail(e, "']'");
    }
    n = (size_t)expression_list(e, list);
    export_put_ints(node, name, list, (int64_t)n);
    return TN_OK;
  }
  if (expression_take(e, '\'')) {
    n = strcspn(e->at, "'");
    export_put_word(node, name, e->at, n);
    e->at += n + 1;
    return TN_OK;
  }
  if (isdigit((unsigned char)*e->at) || *e->at == '-') {
    double value = expression_number(e, &whole);
    if (whole)
      export_put_int(node, name, (int64_t)value);
    else
      export_put_float(node, name, value);
    return TN_OK;
  }
  const char *word = expression_word(e, &n);
  int32_t dtype = expression_dtype(e, word, n);
  if (dtype == TN_ANY) return expression_fail(e, "the value of an attribute");
  export_put_int(node, name, export_dtype(dtype));
  return TN_OK;
}

/* Whether an attribute comes next: its name, copied, is taken with the sign. */
static bool expression_is_setting(expression *e, char name[64]) {
  size_t n;
  const char *start = e->at, *word = expression_word(e, &n);
  if (n > 0 && n < 64 && *e->at == '=') {
    snprintf(name, 64, "%.*s", (int)n, word);
    e->at++;
    return true;
  }
  e->at = start;
  return false;
}

/* ---- values ---- */

static const char *expression_value(expression *e, const char *wanted);

static tn_status expression_arguments(expression *e, tn_text *node) {
  const char *in[MOST_ARGUMENTS];
  char name[64];
  int32_t n = 0, given = 0;
  while (!expression_take(e, ')')) {
    if (expression_is_setting(e, name)) {
      TN_TRY(expression_setting(e, node, name));
    } else {
      if (n == MOST_ARGUMENTS)
        return tn_failf(e->u->x->env, TN_EUNSUPPORTED, "more than %d operands", MOST_ARGUMENTS);
      in[n] = expression_value(e, NULL);
      if (in[n] == NULL) return TN_EINTERNAL;
      if (in[n++][0] != '\0') given = n;
    }
    if (!expression_take(e, ',') && *e->at != ')') return expression_fail(e, "',' or ')'");
  }
  for (int32_t i = 0; i < given; i++) tn_proto_put_text(node, ONNX_NODE_INPUT, in[i]);
  return TN_OK;
}

/* The names of a node and of its outputs; an output that has no name gets the node's. */
static tn_status expression_name(expression *e, const char *op, const char **name, const char **out,
                                 int32_t n_out) {
  *name = export_new_name(e->u->x, export_stem(e->u, op));
  for (int32_t i = 0; i < n_out && *name != NULL; i++)
    if (out[i] == NULL) out[i] = i == 0 ? *name : export_new_name(e->u->x, *name);
  return *name != NULL && out[n_out - 1] != NULL ? TN_OK : TN_ENOMEM;
}

/* A call whose outputs have these names; NULL: new ones. */
static tn_status expression_call(expression *e, const char *word, size_t n, const char **out, int32_t n_out) {
  export_graph *x = e->u->x;
  char op[64];
  const char *name;
  tn_text node = tn_text_new(x->env);
  tn_status status = expression_arguments(e, &node);
  snprintf(op, sizeof op, "%.*s", (int)n, word);
  if (status == TN_OK) status = expression_name(e, op, &name, out, n_out);
  if (status == TN_OK) return export_put_node(x, &node, name, op, out, n_out);
  tn_text_free(&node);
  return status;
}

static const char *expression_named(expression *e, const char *word, size_t n) {
  const tn_gnode *node = e->u->node;
  if (expression_is(word, n, "_")) return "";
  for (int32_t i = 0; i < e->n_locals; i++)
    if (strncmp(e->local[i], word, n) == 0 && e->local[i][n] == '\0') return e->value[i];
  for (int32_t i = 0; i < node->def->n_operands; i++)
    if (expression_is(word, n, node->def->operands[i].name)) return export_operand(e->u, i);
  expression_fail(e, "an operand");
  return NULL;
}

static const char *expression_of_option(expression *e) {
  const tn_option *o = expression_option(e);
  if (o == NULL) return NULL;
  const char *field = (const char *)e->u->node->attributes + o->offset;
  if (o->type == TN_OPT_INTS) {
    const tn_ints *list = (const void *)field;
    return export_list(e->u->x, list->v, list->n);
  }
  bool whole = o->type != TN_OPT_FLOAT;
  return export_number(e->u->x, whole ? TN_I64 : expression_dtype(e, "T", 1), option_number(o, field));
}

/* A name of the file, which a function of a row has put into the template. */
static const char *expression_quoted(expression *e) {
  size_t n = strcspn(e->at, "'");
  const char *name = tn_arena_printf(&e->u->x->arena, "%.*s", (int)n, e->at);
  e->at += n + 1;
  return name;
}

static const char *expression_value(expression *e, const char *wanted) {
  int64_t list[MOST_LIST];
  size_t n;
  if (expression_take(e, '{')) return expression_of_option(e);
  if (expression_take(e, '\'')) return expression_quoted(e);
  if (expression_take(e, '[')) {
    int64_t count = expression_list(e, list);
    return export_list(e->u->x, list, count);
  }
  if (isdigit((unsigned char)*e->at) || *e->at == '-') return expression_scalar(e);
  const char *word = expression_word(e, &n);
  if (n == 0) return expression_fail(e, "a value"), NULL;
  if (!expression_take(e, '(')) return expression_named(e, word, n);
  return expression_call(e, word, n, &wanted, 1) == TN_OK ? wanted : NULL;
}

/* ---- statements ---- */

/* The name that a result should have: that of the model's output; NULL: it has no such name. */
static const char *expression_result_name(const expression *e, tn_val v) {
  const tn_graph *g = e->u->x->graph;
  for (size_t i = 0; i < g->outputs.n; i++)
    if (g->outputs.v[i].value == v) return g->outputs.v[i].name;
  return NULL;
}

static bool expression_ends_in_call(const expression *e) {
  size_t n = strcspn(e->at, ";");
  while (n > 0 && e->at[n - 1] == ' ') n--;
  return n > 0 && e->at[n - 1] == ')';
}

static tn_status expression_result(expression *e) {
  export_graph *x = e->u->x;
  tn_val v = e->u->node->first_out + (tn_val)e->n_results++;
  const char *wanted = expression_ends_in_call(e) ? expression_result_name(e, v) : NULL;
  x->names[v] = expression_value(e, wanted);
  return x->names[v] != NULL ? TN_OK : TN_EINTERNAL;
}

/* Whether a statement names outputs: "a, b =". */
static bool expression_is_definition(const expression *e) {
  size_t n = strspn(e->at, " _abcdefghijklmnopqrstuvwxyz0123456789,");
  return e->at[n] == '=';
}

static tn_status expression_definition(expression *e) {
  const char *out[MOST_LOCALS] = {NULL};
  int32_t first = e->n_locals, n = 0;
  size_t length;
  do {
    const char *word = expression_word(e, &length);
    if (first + n == MOST_LOCALS) return expression_fail(e, "fewer names");
    e->local[first + n] = tn_arena_printf(&e->u->x->arena, "%.*s", (int)length, word);
    if (e->local[first + n++] == NULL) return TN_ENOMEM;
  } while (expression_take(e, ','));
  expression_take(e, '=');
  if (n == 1) {
    e->value[first] = expression_value(e, NULL);
    e->n_locals++;
    return e->value[first] != NULL ? TN_OK : TN_EINTERNAL;
  }
  const char *op = expression_word(e, &length);
  if (!expression_take(e, '(')) return expression_fail(e, "'('");
  TN_TRY(expression_call(e, op, length, out, n));
  for (int32_t i = 0; i < n; i++) e->value[e->n_locals++] = out[i];
  return TN_OK;
}

static tn_status expression_statements(expression *e) {
  do {
    expression_skip(e);
    TN_TRY(expression_is_definition(e) ? expression_definition(e) : expression_result(e));
  } while (expression_take(e, ';'));
  return *e->at == '\0' ? TN_OK : expression_fail(e, "';' or the end");
}

/* A value that could not be made has left its reason in env, unless memory is out. */
static tn_status expression_reason(const expression *e, tn_status status) {
  if (status == TN_OK) return TN_OK;
  int32_t code = e->u->x->env->record->code;
  return code != TN_OK ? code : TN_ENOMEM;
}

tn_status export_yield(const export_use *u, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  char *line = n >= 0 ? tn_arena_alloc(&u->x->arena, (size_t)n + 1) : NULL;
  if (line != NULL) vsnprintf(line, (size_t)n + 1, format, again);
  va_end(again);
  va_end(args);
  if (line == NULL) return TN_ENOMEM;
  expression e = {.u = u, .text = line, .at = line};
  tn_error_clear(u->x->env);
  return expression_reason(&e, expression_statements(&e));
}
