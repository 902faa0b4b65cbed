/* core/graph/build/term.h: arithmetic on terms, for formulas of ops and lines of the model language. A term
 * is a number that is known now, or scale * value. Numbers are folded; a number beside a value takes its
 * dtype. The scale is applied late, so that `2 * x + 1` becomes one affine. Private to core. */
#pragma once

#include <stdbool.h>

#include "tenon/build.h"

typedef struct tn_term {
  bool is_number;
  double number, scale; /* scale: of a value */
  tn_val value;
  const struct tn_formula_step *attribute; /* of a call in a formula: has its name; else NULL */
} tn_term;

/* Numbers that are tensors already. */
enum { TN_TERM_SCALARS = 8 };
typedef struct tn_term_scalars {
  struct {
    int32_t dtype;
    double number;
    tn_val value;
  } v[TN_TERM_SCALARS];
  int32_t n;
} tn_term_scalars;

/* The builder, and the dtype of tensors made of numbers where no value decides. */
typedef struct tn_terms {
  tn_build *b;
  int32_t dtype;
  tn_term_scalars *scalars; /* the first numbers are made once; NULL: each is made where it is used */
  bool rounds_scalars; /* an f64 scalar beside a value of another dtype is rounded to it; else an error */
} tn_terms;

typedef enum tn_term_comparison {
  TN_TERM_EQ,
  TN_TERM_NE,
  TN_TERM_LT,
  TN_TERM_LE,
  TN_TERM_GT,
  TN_TERM_GE
} tn_term_comparison;

tn_term tn_term_of_number(double number);
tn_term tn_term_of_value(tn_val value);
/* The term as a tensor; a number becomes a scalar of `dtype`, bool included. */
tn_val tn_term_tensor(const tn_terms *e, tn_term t, int32_t dtype);

/* Whether the term is an f64 scalar that is rounded beside other dtypes; and the term rounded, if it is. */
bool tn_term_rounds(const tn_terms *e, tn_term t);
tn_term tn_term_round(const tn_terms *e, tn_term t, int32_t dtype);

/* An op of two operands. One of them is a value at least. */
tn_term tn_term_binary(const tn_terms *e, const char *op, tn_term x, tn_term y);
tn_term tn_term_negate(const tn_terms *e, tn_term t);
tn_term tn_term_add(const tn_terms *e, tn_term x, tn_term y);
tn_term tn_term_subtract(const tn_terms *e, tn_term x, tn_term y);
tn_term tn_term_multiply(const tn_terms *e, tn_term x, tn_term y);
tn_term tn_term_divide(const tn_terms *e, tn_term x, tn_term y);
tn_term tn_term_raise(const tn_terms *e, tn_term x, tn_term y);
tn_term tn_term_compare(const tn_terms *e, tn_term_comparison kind, tn_term x, tn_term y);
tn_term tn_term_not(const tn_terms *e, tn_term t);
/* `op`: "and" or "or". A side that is a number either decides or drops out. */
tn_term tn_term_logic(const tn_terms *e, const char *op, tn_term x, tn_term y);
tn_term tn_term_choose(const tn_terms *e, tn_term yes, tn_term condition, tn_term no);
