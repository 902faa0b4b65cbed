/* core/compile/kernels/pattern.c: a recursive-descent parser of pattern text, and the match order. */
#include "core/compile/kernels/pattern.h"

#include <ctype.h>
#include <string.h>

#include "core/base/text/text.h"
#include "tenon/plugin/op.h"

/* Names of the op classes, by TN_CLASS_... */
static const char *const class_names[] = {"other", "matmul", "pointwise", "reduce", "norm",
                                          "loss",  "index",  "move",      "random"};
enum { CLASSES = sizeof class_names / sizeof class_names[0] };

/* The class of a lower-case name; -1: there is no such class. */
static int32_t find_op_class(const char *name, size_t length) {
  for (int32_t i = 0; i < CLASSES; i++)
    if (strlen(class_names[i]) == length && memcmp(class_names[i], name, length) == 0) return i;
  return -1;
}

/* The parser's state. finish_pattern copies the tables, which have their largest size here. */
typedef struct pattern_reader {
  const void *handle;
  tn_arena *arena;
  const char *text, *at;
  tn_pattern_node nodes[TN_PATTERN_NODES];
  tn_pattern_value values[TN_PATTERN_VALUES];
  int32_t n_nodes, n_values;
} pattern_reader;

static tn_status pattern_error(const pattern_reader *r, const char *what) {
  return tn_failf(r->handle, TN_EINVAL, "pattern \"%s\": %s at character %zu", r->text, what,
                  (size_t)(r->at - r->text) + 1);
}

static void pattern_skip_space(pattern_reader *r) {
  while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take_pattern_token(pattern_reader *r, const char *token) {
  pattern_skip_space(r);
  size_t n = strlen(token);
  if (strncmp(r->at, token, n) != 0) return false;
  r->at += n;
  return true;
}

/* The length of the word at the reader's position; 0: there is no word. */
static size_t pattern_word_length(pattern_reader *r) {
  pattern_skip_space(r);
  size_t n = 0;
  if (!isalpha((unsigned char)r->at[0]) && r->at[0] != '_') return 0;
  while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_' || r->at[n] == '.') n++;
  return n;
}

static tn_status take_pattern_word(pattern_reader *r, const char *what, char **word) {
  size_t n = pattern_word_length(r);
  if (n == 0) return pattern_error(r, what);
  *word = tn_arena_alloc(r->arena, n + 1);
  if (*word == NULL) return TN_ENOMEM;
  memcpy(*word, r->at, n);
  r->at += n;
  return TN_OK;
}

static int32_t find_pattern_value(const pattern_reader *r, const char *name) {
  for (int32_t i = 0; i < r->n_values; i++)
    if (strcmp(r->values[i].name, name) == 0) return i;
  return -1;
}

static tn_status add_pattern_value(pattern_reader *r, const char *name, int32_t maker, int32_t result,
                                   int32_t *value) {
  if (r->n_values == TN_PATTERN_VALUES) return pattern_error(r, "too many values");
  *value = r->n_values++;
  r->values[*value] = (tn_pattern_value){.name = name, .maker = maker, .result = result};
  return TN_OK;
}

typedef struct value_list {
  int32_t v[TN_PATTERN_VALUES], n;
} value_list;

static tn_status value_list_add(const pattern_reader *r, value_list *list, int32_t value) {
  if (list->n == TN_PATTERN_VALUES) return pattern_error(r, "too many values");
  list->v[list->n++] = value;
  return TN_OK;
}

static tn_status value_list_store(pattern_reader *r, const value_list *list, int32_t **v, int32_t *n) {
  *v = tn_arena_copy(r->arena, list->v, (size_t)list->n * sizeof(int32_t));
  *n = list->n;
  return *v == NULL ? TN_ENOMEM : TN_OK;
}

/* One operand, `x`, `x?`, `xs*` or `_`. */
static tn_status read_pattern_operand(pattern_reader *r, value_list *in) {
  char *name = NULL;
  int32_t value;
  TN_TRY(take_pattern_word(r, "expected the name of an operand", &name));
  if (strcmp(name, "_") == 0) return value_list_add(r, in, -1);
  value = find_pattern_value(r, name);
  bool known = value >= 0;
  if (!known) TN_TRY(add_pattern_value(r, name, -1, 0, &value));
  tn_pattern_value *v = &r->values[value];
  bool optional = take_pattern_token(r, "?"), rest = !optional && take_pattern_token(r, "*");
  if ((optional || rest) && v->maker >= 0)
    return pattern_error(r, "only operands of the kernel can be marked, not results,");
  if (known && (rest || v->rest)) return pattern_error(r, "an operand marked * can be used once only;");
  v->optional |= optional;
  v->rest |= rest;
  return value_list_add(r, in, value);
}

static tn_status read_pattern_operands(pattern_reader *r, tn_pattern_node *node) {
  value_list in = {.n = 0};
  if (!take_pattern_token(r, "(")) return pattern_error(r, "expected '('");
  if (!take_pattern_token(r, ")")) {
    do {
      if (in.n > 0 && in.v[in.n - 1] >= 0 && r->values[in.v[in.n - 1]].rest)
        return pattern_error(r, "an operand marked * must be the last one;");
      TN_TRY(read_pattern_operand(r, &in));
    } while (take_pattern_token(r, ","));
    if (!take_pattern_token(r, ")")) return pattern_error(r, "expected ',' or ')'");
  }
  return value_list_store(r, &in, &node->in, &node->n_in);
}

/* The nodes that a kernel recomputes must be computable elsewhere, from values that exist without the kernel.
 */
static tn_status check_shared_operands(const pattern_reader *r, const tn_pattern_node *node) {
  for (int32_t i = 0; i < node->n_in && node->shared; i++) {
    const tn_pattern_value *v = node->in[i] < 0 ? NULL : &r->values[node->in[i]];
    if (v != NULL && v->maker >= 0 && !r->nodes[v->maker].shared)
      return pattern_error(r, "a statement marked & reads operands and results of such statements only;");
    if (v != NULL && v->rest) return pattern_error(r, "a statement marked & has no operand marked *;");
  }
  return TN_OK;
}

/* `s, q = op(...)`, or with a `&` in front. The values of the results are added after the operands are read:
 * a node cannot use itself. */
static tn_status read_pattern_statement(pattern_reader *r) {
  char *names[TN_PATTERN_VALUES];
  int32_t n_names = 0;
  value_list out = {.n = 0};
  tn_pattern_node node = {0};
  char *op = NULL;
  if (r->n_nodes == TN_PATTERN_NODES) return pattern_error(r, "too many nodes");
  node.shared = take_pattern_token(r, "&");
  do {
    if (n_names == TN_PATTERN_VALUES) return pattern_error(r, "too many values");
    TN_TRY(take_pattern_word(r, "expected the name of a result", &names[n_names]));
    n_names++;
  } while (take_pattern_token(r, ","));
  if (!take_pattern_token(r, "=")) return pattern_error(r, "expected '='");
  TN_TRY(take_pattern_word(r, "expected the name of an op", &op));
  node.op = op;
  TN_TRY(read_pattern_operands(r, &node));
  TN_TRY(check_shared_operands(r, &node));
  for (int32_t i = 0; i < n_names; i++) {
    int32_t value = -1;
    if (find_pattern_value(r, names[i]) >= 0)
      return pattern_error(r, "a name is given twice, or used before it is given,");
    if (strcmp(names[i], "_") != 0) TN_TRY(add_pattern_value(r, names[i], r->n_nodes, i, &value));
    TN_TRY(value_list_add(r, &out, value));
  }
  TN_TRY(value_list_store(r, &out, &node.out, &node.n_out));
  r->nodes[r->n_nodes++] = node;
  return TN_OK;
}

/* `-> c, s`, or by default every named result of the last statement. */
static tn_status read_pattern_outs(pattern_reader *r, value_list *outs) {
  if (!take_pattern_token(r, "->")) {
    const tn_pattern_node *last = &r->nodes[r->n_nodes - 1];
    for (int32_t i = 0; i < last->n_out; i++)
      if (last->out[i] >= 0) TN_TRY(value_list_add(r, outs, last->out[i]));
    return outs->n > 0 ? TN_OK : pattern_error(r, "nothing leaves the kernel");
  }
  do {
    char *name = NULL;
    TN_TRY(take_pattern_word(r, "expected the name of a result that leaves", &name));
    int32_t value = find_pattern_value(r, name);
    if (value < 0 || r->values[value].maker < 0) return pattern_error(r, "only results can leave;");
    if (r->nodes[r->values[value].maker].shared)
      return pattern_error(r, "the result of a statement marked & cannot leave;");
    for (int32_t i = 0; i < outs->n; i++)
      if (outs->v[i] == value) return pattern_error(r, "a result leaves twice");
    TN_TRY(value_list_add(r, outs, value));
  } while (take_pattern_token(r, ","));
  return TN_OK;
}

static bool pattern_node_uses(const tn_pattern_node *node, int32_t value) {
  for (int32_t i = 0; i < node->n_in; i++)
    if (node->in[i] == value) return true;
  return false;
}

static bool pattern_node_touches(const pattern_reader *r, int32_t node, int32_t value) {
  return r->values[value].maker == node || pattern_node_uses(&r->nodes[node], value);
}

/* A value that a found node makes or uses, and that `node` makes (or, forward, uses); -1: there is no such
 * value. */
static int32_t find_linking_value(const pattern_reader *r, const bool *found, int32_t node, bool forward) {
  for (int32_t v = 0; v < r->n_values; v++) {
    bool leads =
        forward ? pattern_node_uses(&r->nodes[node], v) && !r->values[v].rest : r->values[v].maker == node;
    for (int32_t i = 0; leads && i < r->n_nodes; i++)
      if (found[i] && i != node && pattern_node_touches(r, i, v)) return v;
  }
  return -1;
}

/* Makers are found before users: a value has one maker and many users. */
static bool next_pattern_step(const pattern_reader *r, const bool *found, tn_pattern_step *step) {
  for (int forward = 0; forward < 2; forward++)
    for (int32_t node = r->n_nodes - 1; node >= 0; node--) {
      if (found[node]) continue;
      int32_t value = find_linking_value(r, found, node, forward);
      *step = (tn_pattern_step){node, value, forward};
      if (value >= 0) return true;
    }
  return false;
}

static tn_status order_pattern_steps(pattern_reader *r, tn_pattern *pattern) {
  bool found[TN_PATTERN_NODES] = {false};
  pattern->steps = tn_arena_alloc(r->arena, (size_t)r->n_nodes * sizeof(tn_pattern_step));
  if (pattern->steps == NULL) return TN_ENOMEM;
  pattern->steps[0] = (tn_pattern_step){r->n_nodes - 1, -1, false};
  found[r->n_nodes - 1] = true;
  for (int32_t i = 1; i < r->n_nodes; i++) {
    if (!next_pattern_step(r, found, &pattern->steps[i]))
      return tn_failf(r->handle, TN_EINVAL, "pattern \"%s\": no value joins all of its statements", r->text);
    found[pattern->steps[i].node] = true;
  }
  return TN_OK;
}

static tn_status finish_pattern(pattern_reader *r, const value_list *outs, tn_pattern *pattern) {
  value_list operands = {.n = 0};
  for (int32_t i = 0; i < r->n_values; i++)
    if (r->values[i].maker < 0) TN_TRY(value_list_add(r, &operands, i));
  pattern->n_nodes = r->n_nodes;
  pattern->n_values = r->n_values;
  pattern->nodes = tn_arena_copy(r->arena, r->nodes, (size_t)r->n_nodes * sizeof(tn_pattern_node));
  pattern->values = tn_arena_copy(r->arena, r->values, (size_t)r->n_values * sizeof(tn_pattern_value));
  if (pattern->nodes == NULL || pattern->values == NULL) return TN_ENOMEM;
  TN_TRY(value_list_store(r, &operands, &pattern->operands, &pattern->n_operands));
  TN_TRY(value_list_store(r, outs, &pattern->outs, &pattern->n_outs));
  return order_pattern_steps(r, pattern);
}

/* `CLASS+` at the reader's position. *op_class is -1 where the text there is another. */
static tn_status read_pattern_region(pattern_reader *r, int32_t *op_class) {
  size_t n = pattern_word_length(r);
  *op_class = -1;
  if (n == 0 || r->at[n] != '+') return TN_OK;
  *op_class = find_op_class(r->at, n);
  if (*op_class < 0)
    return pattern_error(r, "unknown class of ops; expected pointwise, reduce, move or another class,");
  r->at += n + 1;
  pattern_skip_space(r);
  return TN_OK;
}

static tn_status expect_end_of_region(const pattern_reader *r) {
  return *r->at == '\0' ? TN_OK : pattern_error(r, "expected the end after a region");
}

static tn_status read_fixed_pattern(pattern_reader *r, tn_pattern *pattern) {
  value_list outs = {.n = 0};
  do {
    pattern_skip_space(r);
    if (r->n_nodes > 0 && (*r->at == '\0' || strncmp(r->at, "->", 2) == 0)) break;
    if (r->n_nodes > 0) TN_TRY(read_pattern_region(r, &pattern->epilogue));
    if (pattern->epilogue >= 0) {
      TN_TRY(expect_end_of_region(r));
      break;
    }
    TN_TRY(read_pattern_statement(r));
  } while (take_pattern_token(r, ";"));
  if (r->nodes[r->n_nodes - 1].shared)
    return pattern_error(r, "the last statement cannot be marked & and ends");
  TN_TRY(read_pattern_outs(r, &outs));
  pattern_skip_space(r);
  if (*r->at != '\0') return pattern_error(r, "expected ';', '->' or the end");
  return finish_pattern(r, &outs, pattern);
}

tn_status tn_pattern_parse(const void *handle, tn_arena *arena, const char *text,
                           const tn_pattern **pattern) {
  pattern_reader r = {.handle = handle, .arena = arena, .text = text, .at = text};
  tn_pattern *made = tn_arena_alloc(arena, sizeof *made);
  *pattern = NULL;
  if (made == NULL) return TN_ENOMEM;
  made->text = text;
  made->prologue = made->epilogue = -1;
  TN_TRY(read_pattern_region(&r, &made->op_class));
  if (made->op_class >= 0 && take_pattern_token(&r, ";")) {
    made->prologue = made->op_class;
    made->op_class = -1;
  }
  TN_TRY(made->op_class < 0 ? read_fixed_pattern(&r, made) : expect_end_of_region(&r));
  *pattern = made;
  return TN_OK;
}

/* The bytes of the statements, without the results and the epilogue. */
static size_t length_of_statements(const tn_pattern *p) {
  const char *arrow = strstr(p->text, "->"), *end = p->epilogue >= 0 ? strrchr(p->text, ';') : arrow;
  size_t n = end != NULL ? (size_t)(end - p->text) : strlen(p->text);
  while (n > 0 && p->text[n - 1] == ' ') n--;
  return n;
}

bool tn_pattern_extends(const tn_pattern *with_epilogue, const tn_pattern *without) {
  size_t n = length_of_statements(with_epilogue);
  if (with_epilogue->prologue >= 0 || without->prologue >= 0) return false;
  return with_epilogue->epilogue >= 0 && without->epilogue < 0 && n == length_of_statements(without) &&
         memcmp(with_epilogue->text, without->text, n) == 0;
}
