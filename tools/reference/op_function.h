/* tools/reference/op_function.h: the C function of an op, as its descriptor gives it.
 *
 * The function of op NAME is tn_NAME. Its arguments are the builder, the operands in the order of the schema,
 * and the options in the order of their table. An op with the options `dims` and `dtype` makes a value of a
 * type: both are one argument, at the place of `dims`. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "tools/cli/cli.h"

enum { OP_MOST_ARGUMENTS = 320, OP_MOST_NAME = 80 };

/* How an argument reaches the op. */
typedef enum op_role {
  OP_VALUE,  /* an operand: tn_val */
  OP_VALUES, /* the last operand of a schema with `*`: a number and a pointer */
  OP_TYPE,   /* const tn_type *: the options dims and dtype */
  OP_NUMBER, /* int64_t: a whole number or size */
  OP_CHOICE, /* int32_t: a flag, the position of a word, a dtype */
  OP_REAL,   /* double */
  OP_TEXT,   /* const char * */
  OP_INTS,   /* a number and a pointer */
  OP_FLOATS
} op_role;

typedef struct op_argument {
  op_role role;
  const json_t *option; /* NULL: an operand */
  char name[OP_MOST_NAME];
} op_argument;

typedef struct op_function {
  const char *op;
  op_argument arguments[OP_MOST_ARGUMENTS];
  int n;
} op_function;

/* `item` is an op of tn_inspect, and outlives the function. */
void op_function_read(const json_t *item, op_function *function);
/* "tn_val tn_relu(tn_build *build, tn_val x)". Lines after the first begin in column `indent`, and end before
 * column `width`; 0: one line. */
void op_function_write_head(FILE *to, const op_function *function, const char *before, int width);
/* The statements between the braces. */
void op_function_write_body(FILE *to, const op_function *function);
