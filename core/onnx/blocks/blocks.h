/* core/onnx/blocks/blocks.h: finds the parts of a model that repeat, and writes each once, as a block.
 * Private to this folder.
 *
 *   blocks.c    the phases, one after the other
 *   tokens.c    lines as tokens: text, numbers, and values that they read
 *   scopes.c    the module of each line; constants go in front of the first module that reads them
 *   groups.c    the lines of a module, which are its group; groups that are alike are of one kind
 *   choose.c    the kinds that become blocks, by the lines that they save
 *   flows.c     values that a block reads and gives
 *   args.c      numbers that differ within a kind become arguments
 *   section.c   the lines of [model] and of each block
 *   items.c     lines and uses of blocks in a section
 *   texts.c     calls and values, with the names of their own section
 *   names.c     names of blocks, arguments, inputs and lines
 *   chains.c    lines that follow each other become one: `layer1: block(64, 2), block(64) * 3`
 *
 * Work is bounded by the number of tokens times BLOCK_MOST_DEPTH: a group is the lines of a module, and a
 * line is in at most so many of them. */
#pragma once

#include "core/onnx/import.h"

enum {
  BLOCK_MOST_DEPTH = 16,  /* of modules; deeper ones belong to the one around them */
  BLOCK_MOST_INPUTS = 16, /* of a block */
  BLOCK_MOST_OUTPUTS = 8,
  BLOCK_MOST_ARGS = 8,
  BLOCK_LEAST_LINES = 2
};

/* Result `result` of line `line`; line -1 - i is input i of the model. */
typedef struct block_ref {
  int32_t line, result;
} block_ref;

typedef enum { BLOCK_TEXT, BLOCK_NUMBER, BLOCK_VALUE } block_token_kind;

typedef struct block_token {
  const char *at;
  int32_t length, kind;
  int32_t operand; /* of the line; -1: the call */
  bool of_dim;     /* VALUE: dim(VALUE, 0) reads its dimensions alone */
  bool hidden;     /* an option that the line leaves out, as its value is the default */
  block_ref ref;   /* VALUE */
} block_token;

typedef struct block_line {
  const onnx_line *line;
  const char *scope;  /* the module that it stands in; "" the model */
  const char **names; /* of results */
  int32_t first_value, first_token, end_token, first_number;
  bool constant; /* it depends on no input of the model, but for its dimensions */
} block_line;

/* The lines [first, end) of a module. */
typedef struct block_group {
  const char *path;
  int32_t first, end;
  int32_t parent; /* the group around it, -1 */
  int32_t kind;   /* -1: it can be no block */
  int32_t next;   /* the next group of the kind, -1 */
  int32_t cost;   /* lines that it takes where parts of it that repeat are blocks */
  block_ref inputs[BLOCK_MOST_INPUTS];
  int32_t n_inputs;
} block_group;

/* An argument, and what a number of a block is of it. */
typedef struct block_arg {
  const char *name;
  int32_t number;       /* the one that it is first */
  const char *standard; /* its default; NULL: none */
} block_arg;

typedef struct block_number {
  int32_t arg;    /* -1: the number is the same in all groups */
  int32_t factor; /* the number is factor * arg; 0: arg // 2 */
} block_number;

typedef struct block_kind {
  int32_t head, last, count; /* its groups, the first and the last one */
  int32_t group;             /* the one that is written */
  bool chosen;
  const char *name;
  block_arg args[BLOCK_MOST_ARGS];
  int32_t n_args;
  block_number *numbers; /* by number of the group */
  int32_t n_numbers;
  int32_t order[BLOCK_MOST_INPUTS]; /* of inputs: those that another group of the kind gives come first */
  const char *input_names[BLOCK_MOST_INPUTS];
  int32_t *outputs; /* values, counted from the first of the group */
  int32_t n_outputs;
} block_kind;

typedef struct blocks {
  onnx_import *m;
  tn_env *env;
  tn_arena *arena;
  block_line *lines;
  int32_t n_lines;
  TN_VEC(block_token) tokens;
  TN_VEC(int32_t) numbers; /* tokens that are numbers */
  TN_VEC(block_group) groups;
  TN_VEC(block_kind) kinds;
  int32_t n_values;
  int32_t *last_use;          /* by value: the last line that reads it; INT32_MAX: an output */
  tn_name_index values;       /* names of values */
  TN_VEC(block_ref) value_of; /* by name */
  tn_name_index block_names;
} blocks;

/* ---- tokens.c ---- */
tn_status block_read_tokens(blocks *b);
/* The number of a value. */
static inline int32_t block_value(const blocks *b, block_ref ref) {
  return b->lines[ref.line].first_value + ref.result;
}
/* The name of a value in the file's own model. */
const char *block_value_name(const blocks *b, block_ref ref);

/* ---- scopes.c ---- */
tn_status block_find_scopes(blocks *b);
/* Whether `path` is `scope`, or below it. */
bool block_is_within(const char *path, const char *scope);

/* ---- groups.c ---- */
tn_status block_find_groups(blocks *b);
tn_status block_find_kinds(blocks *b);

/* ---- choose.c ---- */
tn_status block_choose(blocks *b);

/* ---- flows.c ---- */
/* The outputs of a kind, and the order of its inputs. *few: it has at most BLOCK_MOST_OUTPUTS. */
tn_status block_find_flows(blocks *b, block_kind *kind, bool *few);

/* ---- args.c ---- */
/* *few: the numbers that differ take at most BLOCK_MOST_ARGS arguments. */
tn_status block_find_args(blocks *b, block_kind *kind, bool *few);
static inline const block_token *block_number_at(const blocks *b, const block_group *g, int32_t i) {
  return &b->tokens.v[b->numbers.v[b->lines[g->first].first_number + i]];
}

/* ---- section.c ---- */
/* A line of a section: a line of the model, or the use of a block. */
typedef struct block_item {
  int32_t line, group; /* one of both; the other is -1 */
  const char *names;   /* of the line that begins a chain; NULL: its own */
  const char *value;   /* of that line, where `names` is a pattern */
  int32_t chained;     /* items that the line has, with the first; 0: it is in the chain of another */
} block_item;

typedef struct block_context {
  blocks *b;
  const block_group *group; /* NULL: the model */
  block_kind *kind;
  int32_t first, end;
  const char **local;  /* by value, counted from the first: its name in the section */
  tn_name_index used;  /* names of the section, */
  tn_name_index words; /* and what its lines call, which no argument may be called */
  TN_VEC(block_item) items;
} block_context;

tn_status block_write_sections(blocks *b, onnx_section **sections, int32_t *n);

/* ---- items.c ---- */
tn_status block_find_items(block_context *c);
/* The kind of the block that an item uses. */
const block_kind *block_kind_of(const block_context *c, const block_item *item);
/* Whether the item has parameters, and so its own name. */
bool block_has_weights(const block_context *c, const block_item *item);
/* The number of results and result k of an item. */
int32_t block_results_of(const block_context *c, const block_item *item);
block_ref block_result_of(const block_context *c, const block_item *item, int32_t k);
/* The values that an item reads, most of them BLOCK_MOST_INPUTS; -1: it is no call of a layer on values. */
int32_t block_operands_of(const block_context *c, const block_item *item, block_ref refs[BLOCK_MOST_INPUTS]);

/* ---- texts.c ---- */
/* The text of a value in the section; "?" for one that the section does not have. */
const char *block_text_of(const block_context *c, block_ref ref);
/* The call of an item: "conv2d(channels, kernel=3)", "bottleneck(64, stride=2)". */
const char *block_call_of(const block_context *c, const block_item *item);
/* The call of line i, -1, or one of its operands. */
const char *block_part_of(const block_context *c, int32_t i, int32_t operand);

/* ---- names.c ---- */
tn_status block_name_kinds(blocks *b);
/* Names everything in the section, which has its items. */
tn_status block_name_section(block_context *c);
/* The part of a path below another one. */
const char *block_below(const char *path, const char *prefix);

/* ---- chains.c ---- */
tn_status block_find_chains(block_context *c);
