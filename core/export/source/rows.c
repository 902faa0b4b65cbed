/* core/export/source/rows.c: the row of an op. */
#include <string.h>

#include "core/export/source/source.h"

/* Expressions of f32; others are those of whole numbers, too. */
static const source_row source_rows_expressions[] = {
    {"abs", "a < 0 ? -a : a"},
    {"neg", "-a"},
    {"sign", "(a > 0) - (a < 0)"},
    {"exp", "expf(a)"},
    {"log", "logf(a)"},
    {"sqrt", "sqrtf(a)"},
    {"rsqrt", "1.0f / sqrtf(a)"},
    {"reciprocal", "1.0f / a"},
    {"tanh", "tanhf(a)"},
    {"sigmoid", "1.0f / (1.0f + expf(-a))"},
    {"erf", "erff(a)"},
    {"erfc", "erfcf(a)"},
    {"floor", "floorf(a)"},
    {"ceil", "ceilf(a)"},
    {"trunc", "truncf(a)"},
    {"round", "rintf(a)"},
    {"sin", "sinf(a)"},
    {"cos", "cosf(a)"},
    {"tan", "tanf(a)"},
    {"exp2", "exp2f(a)"},
    {"expm1", "expm1f(a)"},
    {"log2", "log2f(a)"},
    {"log10", "log10f(a)"},
    {"log1p", "log1pf(a)"},
    {"pow", "powf(a, b)"},
    {"atan2", "atan2f(a, b)"},
    {"add", "a + b"},
    {"sub", "a - b"},
    {"mul", "a * b"},
    {"div", "a / b"},
    {"maximum", "a > b || a != a ? a : b"},
    {"minimum", "a < b || a != a ? a : b"},
    {"relu", "a > 0 || a != a ? a : 0"},
    {"square", "a * a"},
    {"eq", "a == b"},
    {"ne", "a != b"},
    {"lt", "a < b"},
    {"le", "a <= b"},
    {"gt", "a > b"},
    {"ge", "a >= b"},
    {"and", "a && b"},
    {"or", "a || b"},
    {"not", "!a"},
    {"where", "a ? b : c"},
    {NULL},
};

static bool row_has_type(const tn_type *type) { return source_type(type->dtype)[0] != 'v'; }

static bool row_has_types(const source_use *u) {
  for (int32_t i = 0; i < u->node->n_in; i++)
    if (source_has(u, i) && !row_has_type(source_in(u, i))) return false;
  for (int32_t k = 0; k < u->node->n_out; k++)
    if (!row_has_type(source_out(u, k))) return false;
  return true;
}

const source_row *source_row_of(const source_use *u) {
  const source_row *const families[] = {source_rows_expressions, source_rows_loops, source_rows_products};
  if (!row_has_types(u)) return NULL;
  for (size_t f = 0; f < sizeof families / sizeof *families; f++)
    for (const source_row *row = families[f]; row->op != NULL; row++)
      if (strcmp(row->op, u->node->op->item.name) == 0 && (row->takes == NULL || row->takes(u))) return row;
  return NULL;
}
