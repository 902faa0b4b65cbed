/* core/config/language/syntax.h: the model language as a syntax tree, and its expressions. This room
 * handles grammar and evaluation; core/model applies the layers.
 *
 *   line  = [names ":"] seq ["<-" value {"," value}] ["if" or]
 *         | names "=" expr
 *   names = name {"," name}
 *   name  = part {"." part}                      part: word, digits, word{i}
 *   seq   = item {"," item}
 *   item  = (call | "@" name) ["*" or]
 *   call  = ["op."] word ["(" [arg {"," arg}] ")"]
 *   arg   = [word "="] expr
 *   expr  = or ["if" or "else" expr]
 *   or    = number | name | call | "[" expr {"," expr} "]" | "@" name | "dim(" ref "," expr ")"
 *         | "dims(" ref ")" | "(" expr ")" | "-" or | or op or     (Python's precedence, `not` too)
 *         | or "[" index {"," index} "]"
 *   index = expr | [expr] ":" [expr] [":" [expr]] | "..." | "None"
 *   value = ref | or
 *   ref   = name | "in" | "data." name
 *
 * Lines join while a bracket is open or after a trailing comma. Comparisons chain as in Python. "<-" is
 * always the arrow: `a < -1` needs its blank. */
#pragma once

#include "core/base/arena.h"
#include "core/base/text/text.h"
#include "core/config/ini/ini.h"

enum {
  TN_EXPR_NUMBER,
  TN_EXPR_WORD,
  TN_EXPR_CALL,
  TN_EXPR_LIST,
  TN_EXPR_SHARED,
  TN_EXPR_DIM,
  TN_EXPR_UNARY,
  TN_EXPR_BINARY,
  TN_EXPR_CHOOSE,
  TN_EXPR_PART
};
enum {
  TN_BIN_OR,
  TN_BIN_AND,
  TN_BIN_EQ,
  TN_BIN_NE,
  TN_BIN_LT,
  TN_BIN_LE,
  TN_BIN_GT,
  TN_BIN_GE,
  TN_BIN_ADD,
  TN_BIN_SUB,
  TN_BIN_MUL,
  TN_BIN_DIV,
  TN_BIN_FLOORDIV,
  TN_BIN_MOD,
  TN_BIN_POW,
  TN_UN_NEG,
  TN_UN_NOT
};

typedef struct tn_expr tn_expr;
typedef struct tn_call_arg {
  const char *name; /* NULL: positional */
  tn_expr *value;
} tn_call_arg;
/* An entry between the brackets behind a value: `2`, `1:-1:2`, `...` or `None`. */
enum { TN_INDEX_ONE, TN_INDEX_RANGE, TN_INDEX_REST, TN_INDEX_NEW };
typedef struct tn_index_expr {
  int32_t kind;
  tn_expr *start, *stop, *step; /* ONE: start alone; RANGE: NULL where it is left out */
} tn_index_expr;
struct tn_expr {
  int32_t kind, op; /* TN_EXPR_..., TN_BIN_... or TN_UN_... */
  const char *word; /* WORD, CALL: name; SHARED: path; DIM: ref, without items for all dimensions */
  double number;    /* NUMBER */
  int32_t is_integer;
  tn_expr **items; /* entries of LIST; operands of UNARY and BINARY; axis of DIM; CHOOSE: yes, condition, no;
                      PART: the value in front of the bracket */
  int32_t n_items;
  tn_call_arg *args; /* CALL */
  int32_t n_args;
  tn_index_expr *index; /* PART */
  int32_t n_index;
};

typedef struct tn_item_call { /* an item of a seq */
  const char *layer;          /* name of the layer; NULL for "@name" */
  const char *shared;         /* "@name" */
  tn_call_arg *args;
  int32_t n_args;
  tn_expr *repeat; /* NULL: once */
} tn_item_call;

typedef struct tn_line {
  const char **names; /* may contain "{i}" */
  int32_t n_names;
  tn_item_call *items;
  int32_t n_items;
  const char **refs;  /* the text of each value behind the arrow */
  tn_expr **operands; /* NULL: a name */
  int32_t n_refs;
  tn_expr *value;     /* behind "=", in place of items; NULL: a line of layers */
  tn_expr *condition; /* NULL: always */
  const char *file;   /* file and line of the start */
  int32_t line;
  const char *text; /* as it stands in the file; NULL: a bracket stays open */
  bool wrong;       /* a syntax error, which was noted; the names may be there */
} tn_line;

/* Parses the value of a key as model lines. A syntax error is TN_EINVAL with "file.ini:14: ... expected
 * ..."; with an ini it is noted there, and its line is marked as wrong. */
tn_status tn_syntax_lines(const void *handle, tn_arena *arena, const tn_key *key, tn_ini *ini,
                          tn_line **lines, int32_t *n);
/* Parses one line or one call from text ("linear(128)"), for tn_build_layer and lists of transforms. */
tn_status tn_syntax_line(const void *handle, tn_arena *arena, const char *text, const char *file,
                         int32_t line, tn_line *out);
/* The "{i}" or "{i+N}" in a name, or NULL; and N, which is 0 for "{i}". */
const char *tn_name_hole(const char *name);
int64_t tn_name_hole_start(const char *hole);
/* Parses a single expression. */
tn_status tn_syntax_expr(const void *handle, tn_arena *arena, const char *text, tn_expr **out);

/* The result of an expression. */
enum { TN_VALUE_NUMBER, TN_VALUE_TEXT, TN_VALUE_LIST, TN_VALUE_SHARED, TN_VALUE_TENSOR };
enum { TN_VALUE_MOST_BYTES = 1 << 20 };
typedef struct tn_value {
  int32_t kind;
  uint32_t tensor; /* TENSOR: a value of the model, times `number`; 0: unknown, behind a line that is wrong */
  double number;
  int32_t is_integer;
  const char *text; /* TEXT: a word, or a call such as "normal(0, 0.02)"; SHARED: the path */
  struct tn_value *items;
  int32_t n_items;
  int32_t bytes; /* LIST: about the length of its text, lists in it included */
} tn_value;

/* An evaluated index. */
typedef struct tn_index {
  int32_t kind; /* TN_INDEX_... */
  bool has_start, has_stop;
  int64_t start, stop, step; /* ONE: start */
} tn_index;
/* index.c: the position that an index names among `size`; -1: none. Negative indices count from the end. */
int64_t tn_index_position(const tn_index *index, int64_t size);
/* index.c: the elements start, start + step ... below stop of `size` that a RANGE names, cut at both ends as
 * in Python; false: the range is empty. */
bool tn_index_range(const tn_index *index, int64_t size, int64_t *start, int64_t *stop);
/* index.c: "[:, -1]", for messages; allocated in the arena. */
const char *tn_index_text(tn_arena *arena, const tn_index *index, int32_t n);
/* index.c: the part of a list. */
tn_status tn_index_list(const void *handle, tn_arena *arena, const tn_value *list, const tn_index *index,
                        int32_t n, tn_value *value);

/* Expressions that compute with values of the model. A word that is no name of the scope, an operation with
 * a TENSOR among its operands, a part of a TENSOR and every call become calls of these functions. */
typedef struct tn_value_calls {
  tn_status (*name)(void *context, const char *name, tn_value *value);
  /* `op`: TN_BIN_..., TN_UN_..., or TN_CHOOSE on yes, condition, no. */
  tn_status (*operate)(void *context, int32_t op, const tn_value *operands, int32_t n, tn_value *value);
  tn_status (*call)(void *context, const tn_expr *call, tn_value *value);
  /* The part of `x`, the value of the expression `of`. */
  tn_status (*part)(void *context, const tn_expr *of, const tn_value *x, const tn_index *index, int32_t n,
                    tn_value *value);
  void *context;
} tn_value_calls;
enum { TN_CHOOSE = -1 };

/* The names that an expression may use, such as a block's arguments. `dim` gives the size of a dimension
 * of a value; false if there is no such value or dimension. `rank` gives the number of dimensions, or -1.
 * `word` is told each word that is no name. */
typedef struct tn_scope {
  const char *const *names;
  const tn_value *values;
  int32_t n;
  bool (*dim)(void *context, const char *ref, int64_t axis, int64_t *size);
  int32_t (*rank)(void *context, const char *ref);
  void (*word)(void *context, const char *word);
  void *context;
  const tn_value_calls *calls; /* NULL: numbers and words alone */
} tn_scope;

/* The function of a number: sqrt, exp, log, abs, sin, cos, tanh, floor. false: there is no such one, or it
 * has no value at x. */
bool tn_number_function(const char *name, double x, double *y);

/* Evaluates an expression. Integer arithmetic stays integer; / gives a float unless the quotient is exact;
 * // and % are as in Python. A value whose text has more than TN_VALUE_MOST_BYTES is an error: arguments that
 * contain others several times grow without end. A word that is not a name of the scope is TEXT. Division by
 * zero and operands of the wrong type are errors. */
tn_status tn_expr_evaluate(const void *handle, tn_arena *arena, const tn_expr *expr, const tn_scope *scope,
                           tn_value *value);
bool tn_value_true(const tn_value *value);
/* "+" for TN_BIN_ADD. */
const char *tn_operator_name(int32_t op);
/* Evaluates a condition. Unlike tn_value_true it rejects words other than yes and no. */
tn_status tn_expr_holds(const void *handle, tn_arena *arena, const tn_expr *expr, const tn_scope *scope,
                        bool *holds);
/* The value in the syntax of an option: "2", "[1, 2]", "tanh"; allocated in the arena. */
const char *tn_value_text(tn_arena *arena, const tn_value *value);
