/* core/graph/text/parse.c: parses graph text, by recursive descent. */
#include <stdlib.h>
#include <string.h>

#include "core/config/options/options.h"
#include "core/graph/text/lexer.h"
#include "core/graph/op/schema.h"
#include "core/graph/input_state.h"

/* A result on the left of `=`. */
typedef struct result {
  const char *name;
  bool typed;
  tn_type type;
  tn_layout layout;
} result;

typedef struct graph_parser {
  tn_graph *g;
  tn_lexer lexer;
  tn_name_index names;    /* of values in the text: words and %N */
  TN_VEC(tn_val) values;  /* by number of the name */
  TN_VEC(result) results; /* of the current statement */
  TN_VEC(tn_val) operands;
} graph_parser;

/* ---- names of values ---- */

static tn_val parser_find(const graph_parser *p, const char *name) {
  int64_t i = tn_name_index_find(&p->names, name);
  return i != TN_NAME_INDEX_NONE ? p->values.v[i] : 0;
}

static tn_status parser_wrap(const graph_parser *p, tn_status status) {
  return tn_wrap(p->g->env, status, "%s:%d", p->lexer.name, p->lexer.line);
}

static tn_status parser_bind(graph_parser *p, const char *name, tn_val value) {
  const tn_env *env = p->g->env;
  if (parser_find(p, name) != 0)
    return tn_failf(env, TN_EINVAL, "%s is defined already, expected each name once", name);
  TN_TRY(tn_vec_push(env, &p->values, value));
  TN_TRY(tn_name_index_add(&p->names, name));
  return name[0] != '%' ? tn_graph_name(p->g, value, name) : TN_OK;
}

static bool parser_at_value(const tn_lexer *l) {
  return l->token.kind == TN_TOKEN_VALUE || (l->token.kind == TN_TOKEN_WORD && !tn_lexer_is(l, "_"));
}

/* A name or %N, as text. */
static tn_status parser_read_symbol(graph_parser *p, const char **name) {
  tn_lexer *l = &p->lexer;
  if (!parser_at_value(l)) return tn_lexer_expected(l, "a value such as x or %5");
  char *text = tn_arena_alloc(&p->g->arena, l->token.length + 1);
  if (text == NULL) return TN_ENOMEM;
  memcpy(text, l->token.start, l->token.length);
  tn_lexer_next(l);
  *name = text;
  return TN_OK;
}

static tn_status parser_read_value(graph_parser *p, tn_val *value) {
  const char *name = "";
  *value = 0;
  if (tn_lexer_take(&p->lexer, "_")) return TN_OK;
  TN_TRY(parser_read_symbol(p, &name));
  *value = parser_find(p, name);
  if (*value != 0) return TN_OK;
  return parser_wrap(p, tn_failf(p->g->env, TN_EINVAL, "%s is not defined above", name));
}

/* ---- types ---- */

/* number {"," number} before `close` */
static tn_status parser_read_dims(graph_parser *p, const char *close, int64_t *dims, int32_t *n) {
  tn_lexer *l = &p->lexer;
  *n = 0;
  if (tn_lexer_take(l, close)) return TN_OK;
  do {
    if (*n == TN_MAX_RANK) return tn_lexer_expected(l, "at most 8 dimensions");
    TN_TRY(tn_lexer_number(l, &dims[(*n)++]));
  } while (tn_lexer_take(l, ","));
  if (tn_lexer_is(l, ";")) return TN_OK;
  return tn_lexer_expect(l, close);
}

/* dim ":" size {"," dim ":" size} "}" */
static tn_status parser_read_blocks(graph_parser *p, tn_layout *layout) {
  tn_lexer *l = &p->lexer;
  do {
    int64_t dim, size;
    if (layout->n_blocks == TN_MAX_BLOCKS) return tn_lexer_expected(l, "at most 4 blocks");
    TN_TRY(tn_lexer_number(l, &dim));
    TN_TRY(tn_lexer_expect(l, ":"));
    TN_TRY(tn_lexer_number(l, &size));
    if (dim > UINT16_MAX || size > UINT16_MAX)
      return tn_lexer_expected(l, "block dimensions and sizes below 65536");
    layout->block[layout->n_blocks++] = (tn_block){(uint16_t)dim, (uint16_t)size};
  } while (tn_lexer_take(l, ","));
  return tn_lexer_expect(l, "}");
}

static tn_status parser_read_layout(graph_parser *p, int32_t rank, tn_layout *layout) {
  tn_lexer *l = &p->lexer;
  int64_t order[TN_MAX_RANK];
  int32_t n;
  if (!tn_lexer_take(l, "{")) return TN_OK;
  TN_TRY(parser_read_dims(p, "}", order, &n));
  if (n != rank) return tn_lexer_expected(l, "one number for each dimension in front of the layout's end");
  layout->set = 1;
  for (int32_t i = 0; i < n; i++) {
    if (order[i] >= rank) return tn_lexer_expected(l, "a layout of dimensions below the rank");
    layout->order[i] = (uint8_t)order[i];
  }
  return tn_lexer_take(l, ";") ? parser_read_blocks(p, layout) : TN_OK;
}

static tn_status parser_read_type(graph_parser *p, tn_type *type) {
  const char *dtype;
  TN_TRY(tn_lexer_name(&p->lexer, "a type such as f32[8, 3]", &dtype));
  tn_status status = tn_parse_dtype(p->g->env, dtype, &type->dtype);
  if (status != TN_OK) return parser_wrap(p, status);
  TN_TRY(tn_lexer_expect(&p->lexer, "["));
  return parser_read_dims(p, "]", type->dims, &type->rank);
}

/* name [":" type [layout]] */
static tn_status parser_read_result(graph_parser *p) {
  result r = {0};
  TN_TRY(parser_read_symbol(p, &r.name));
  r.typed = tn_lexer_take(&p->lexer, ":");
  if (r.typed) TN_TRY(parser_read_type(p, &r.type));
  if (r.typed) TN_TRY(parser_read_layout(p, r.type.rank, &r.layout));
  return tn_vec_push(p->g->env, &p->results, r);
}

/* ---- op(operands, attributes) ---- */

static tn_status parser_read_attribute(graph_parser *p, tn_options *options) {
  const char *name, *text;
  TN_TRY(tn_lexer_name(&p->lexer, "an attribute, as operands come first", &name));
  if (!tn_lexer_is(&p->lexer, "=")) return tn_lexer_expected(&p->lexer, "'=' and the attribute's value");
  TN_TRY(tn_lexer_raw(&p->lexer, &text));
  tn_status status = tn_options_set_text(p->g->env, options, name, text);
  return parser_wrap(p, tn_wrap(p->g->env, status, "%s", options->item->name));
}

static bool parser_at_attribute(const graph_parser *p) {
  tn_lexer ahead = p->lexer;
  tn_lexer_next(&ahead);
  return p->lexer.token.kind == TN_TOKEN_WORD && tn_lexer_is(&ahead, "=");
}

static tn_status parser_read_operand(graph_parser *p) {
  tn_val value;
  TN_TRY(parser_read_value(p, &value));
  return tn_vec_push(p->g->env, &p->operands, value);
}

static tn_status parser_read_arguments(graph_parser *p, tn_options *options) {
  tn_lexer *l = &p->lexer;
  bool attributes = false;
  p->operands.n = 0;
  TN_TRY(tn_lexer_expect(l, "("));
  if (tn_lexer_take(l, ")")) return TN_OK;
  do {
    attributes = attributes || parser_at_attribute(p);
    TN_TRY(attributes ? parser_read_attribute(p, options) : parser_read_operand(p));
  } while (tn_lexer_take(l, ","));
  return tn_lexer_expect(l, ")");
}

static tn_status parser_read_call(graph_parser *p, const tn_op_def **def, tn_options *options) {
  tn_graph *g = p->g;
  const char *op;
  TN_TRY(tn_lexer_name(&p->lexer, "an op", &op));
  TN_TRY(parser_wrap(p, tn_op_table_find(g->ops, g->env, op, def)));
  TN_TRY(parser_wrap(p, tn_options_start(g->env, &g->arena, &(*def)->op->item, options)));
  TN_TRY(parser_read_arguments(p, options));
  return parser_wrap(p, tn_wrap(g->env, tn_options_finish(g->env, options), "%s", op));
}

/* ---- statements ---- */

/* The type of a result in the text must be the inferred type. */
static tn_status parser_bind_result(graph_parser *p, const tn_op_def *def, const result *r, tn_val v) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  tn_gvalue *value = &p->g->values.v[v];
  if (r->typed && !tn_type_equal(&r->type, &value->type))
    return tn_failf(p->g->env, TN_EINVAL, "%s: result %s is written as %s, but it is %s", def->op->item.name,
                    r->name, tn_type_format(&r->type, one), tn_type_format(&value->type, other));
  value->layout = r->layout;
  return parser_bind(p, r->name, v);
}

static tn_status parser_add_node(graph_parser *p, const tn_op_def *def, const tn_options *options,
                                 const char *layer) {
  tn_graph *g = p->g;
  tn_val first;
  int32_t n = tn_op_n_results(def, options->data);
  if ((size_t)n != p->results.n)
    return tn_failf(g->env, TN_EINVAL, "%s: %zu results are named, expected %d", def->op->item.name,
                    p->results.n, n);
  if (tn_op_is_input_or_state(def->op)) *tn_input_state_type(def->op, options->data) = p->results.v[0].type;
  TN_TRY(tn_graph_add(g, def, options->data, p->operands.v, (int32_t)p->operands.n, layer, "", &first));
  for (size_t i = 0; i < p->results.n; i++)
    TN_TRY(parser_bind_result(p, def, &p->results.v[i], first + (tn_val)i));
  return TN_OK;
}

/* [result {"," result} "="] op "(" ... ")" ["in" layer] */
static tn_status parser_read_node(graph_parser *p) {
  const tn_op_def *def;
  tn_options options;
  const char *layer = "";
  tn_lexer ahead = p->lexer;
  tn_lexer_next(&ahead);
  p->results.n = 0;
  if (!tn_lexer_is(&ahead, "(")) {
    do TN_TRY(parser_read_result(p));
    while (tn_lexer_take(&p->lexer, ","));
    TN_TRY(tn_lexer_expect(&p->lexer, "="));
  }
  TN_TRY(parser_read_call(p, &def, &options));
  if (tn_lexer_take(&p->lexer, "in")) TN_TRY(tn_lexer_name(&p->lexer, "a layer", &layer));
  return parser_wrap(p, parser_add_node(p, def, &options, layer));
}

/* "commit" path "=" value ["if" value] */
static tn_status parser_read_commit(graph_parser *p) {
  const char *path;
  tn_val value, predicate = 0;
  TN_TRY(tn_lexer_name(&p->lexer, "a path", &path));
  TN_TRY(tn_lexer_expect(&p->lexer, "="));
  TN_TRY(parser_read_value(p, &value));
  if (tn_lexer_take(&p->lexer, "if")) TN_TRY(parser_read_value(p, &predicate));
  return parser_wrap(p, tn_graph_commit(p->g, path, value, predicate));
}

/* "output" name "=" value */
static tn_status parser_read_output(graph_parser *p) {
  const char *name;
  tn_val value;
  TN_TRY(tn_lexer_name(&p->lexer, "a name", &name));
  TN_TRY(tn_lexer_expect(&p->lexer, "="));
  TN_TRY(parser_read_value(p, &value));
  return parser_wrap(p, tn_graph_output(p->g, name, value));
}

/* "unread" type "=" "state" "(" ... ")" */
static tn_status parser_read_unread(graph_parser *p) {
  const tn_op_def *def;
  tn_options options;
  tn_type type = {0};
  TN_TRY(parser_read_type(p, &type));
  TN_TRY(tn_lexer_expect(&p->lexer, "="));
  if (!tn_lexer_is(&p->lexer, "state")) return tn_lexer_expected(&p->lexer, "'state'");
  TN_TRY(parser_read_call(p, &def, &options));
  const tn_state_attributes *a = options.data;
  tn_gstate state = {.path = a->path, .type = type, .what = a->what + 1, .init = a->init};
  return parser_wrap(p, tn_graph_register_state(p->g, &state));
}

/* Consumes `word` if it is a keyword here: a name follows it. */
static bool parser_take_keyword(graph_parser *p, const char *word) {
  tn_lexer ahead = p->lexer;
  tn_lexer_next(&ahead);
  bool names = ahead.token.kind == TN_TOKEN_WORD || ahead.token.kind == TN_TOKEN_STRING;
  return names && tn_lexer_take(&p->lexer, word);
}

static tn_status parser_read_statement(graph_parser *p) {
  if (parser_take_keyword(p, "commit")) return parser_read_commit(p);
  if (parser_take_keyword(p, "output")) return parser_read_output(p);
  if (parser_take_keyword(p, "unread")) return parser_read_unread(p);
  return parser_read_node(p);
}

static tn_status parser_read_text(graph_parser *p) {
  tn_lexer *l = &p->lexer;
  for (;;) {
    while (l->token.kind == TN_TOKEN_BREAK) tn_lexer_next(l);
    if (l->token.kind == TN_TOKEN_END) return TN_OK;
    TN_TRY(parser_read_statement(p));
    if (l->token.kind != TN_TOKEN_BREAK && l->token.kind != TN_TOKEN_END)
      return tn_lexer_expected(l, "the end of the statement");
  }
}

tn_status tn_graph_parse(tn_env *env, struct tn_op_table *ops, const char *text, const char *name,
                         tn_graph **graph) {
  graph_parser p = {.names = tn_name_index_new(env)};
  *graph = NULL;
  TN_TRY(tn_graph_create(env, ops, &p.g));
  p.lexer = tn_lexer_start(env, &p.g->arena, name, text);
  tn_status status = parser_read_text(&p);
  tn_name_index_free(&p.names);
  tn_vec_free(env, &p.values);
  tn_vec_free(env, &p.results);
  tn_vec_free(env, &p.operands);
  if (status == TN_OK)
    *graph = p.g;
  else
    tn_graph_destroy(p.g);
  return status;
}
