/* core/export/source/loops.c: loops over the elements of values, whose sizes and strides are constants.
 * Dimensions that all operands go through in one stride are one loop. */
#include <stdio.h>
#include <string.h>

#include "core/export/source/source.h"
#include "tenon/attributes.h"

enum { MOST_LISTS = SOURCE_MOST_OPERANDS + 1, INDEX_TEXT = 256 };

/* Nested loops, and the strides of several arrays in them. */
typedef struct loops {
  int32_t rank, n; /* n arrays */
  int64_t dims[TN_MAX_RANK], stride[MOST_LISTS][TN_MAX_RANK], base[MOST_LISTS];
} loops;

static void loops_strides(const tn_type *type, int64_t stride[TN_MAX_RANK]) {
  int64_t step = 1;
  for (int32_t i = type->rank - 1; i >= 0; step *= type->dims[i--]) stride[i] = step;
}

static loops loops_of(const tn_type *type) {
  loops l = {.rank = type->rank, .n = 1};
  memcpy(l.dims, type->dims, sizeof l.dims);
  loops_strides(type, l.stride[0]);
  return l;
}

/* Adds an array whose dimensions are aligned at the last; those of size 1 are repeated. */
static void loops_add(loops *l, const tn_type *type) {
  int64_t stride[TN_MAX_RANK];
  loops_strides(type, stride);
  for (int32_t i = 0; i < l->rank; i++) {
    int32_t k = i - (l->rank - type->rank);
    l->stride[l->n][i] = k >= 0 && type->dims[k] != 1 ? stride[k] : 0;
  }
  l->n++;
}

static bool loops_can_join(const loops *l, int32_t i) {
  for (int32_t k = 0; k < l->n; k++)
    if (l->stride[k][i] != l->stride[k][i + 1] * l->dims[i + 1]) return false;
  return true;
}

static void loops_drop(loops *l, int32_t i) {
  for (int32_t d = i; d + 1 < l->rank; d++) {
    l->dims[d] = l->dims[d + 1];
    for (int32_t k = 0; k < l->n; k++) l->stride[k][d] = l->stride[k][d + 1];
  }
  l->rank--;
}

static void loops_join(loops *l) {
  for (int32_t i = l->rank - 1; i >= 0; i--)
    if (l->dims[i] == 1) loops_drop(l, i);
  for (int32_t i = l->rank - 2; i >= 0; i--) {
    if (!loops_can_join(l, i)) continue;
    l->dims[i + 1] *= l->dims[i];
    loops_drop(l, i);
  }
}

/* "12 + i0 * 5 + i1" of array k. */
static const char *loops_index(const loops *l, int32_t k, char text[INDEX_TEXT]) {
  size_t at = 0;
  const char *link = "";
  text[0] = '\0';
  if (l->base[k] != 0) {
    at += (size_t)snprintf(text + at, INDEX_TEXT - at, "%lld", (long long)l->base[k]);
    link = " + ";
  }
  for (int32_t i = 0; i < l->rank; i++) {
    if (l->stride[k][i] == 0) continue;
    at += (size_t)snprintf(text + at, INDEX_TEXT - at, l->stride[k][i] == 1 ? "%si%d" : "%si%d * %lld", link,
                           (int)i, (long long)l->stride[k][i]);
    link = " + ";
  }
  return text[0] != '\0' ? text : "0";
}

static void loops_open(const source_use *u, const loops *l) {
  for (int32_t i = 0; i < l->rank; i++)
    tn_text_addf(&u->p->steps, "%*sfor (long i%d = 0; i%d < %lld; i%d++)%s\n", (int)(2 + 2 * i), "", (int)i,
                 (int)i, (long long)l->dims[i], (int)i, i + 1 == l->rank ? " {" : "");
  if (l->rank == 0) tn_text_add(&u->p->steps, "  {\n");
}

static void loops_close(const source_use *u) { tn_text_add(&u->p->steps, "  }\n"); }

/* ---- pointwise ---- */

/* Elements of the operands, by their places in the loops. */
static void loops_read(const source_use *u, const loops *l, const tn_val *operands, int32_t n) {
  char index[INDEX_TEXT];
  for (int32_t i = 0; i < n; i++)
    tn_text_addf(&u->p->steps, "    const %s v%d = a%d[%s];\n",
                 source_type(tn_graph_type(u->p->graph, operands[i])->dtype), (int)i, (int)i,
                 loops_index(l, i + 1, index));
}

void source_pointwise(const source_use *u) {
  static const char *const names[] = {"a0", "a1", "a2",  "a3",  "a4",  "a5",  "a6",  "a7",
                                      "a8", "a9", "a10", "a11", "a12", "a13", "a14", "a15"};
  char index[INDEX_TEXT];
  tn_val operands[SOURCE_MOST_OPERANDS];
  source_parameter in[SOURCE_MOST_OPERANDS];
  int32_t n = source_chain_operands(u, operands);
  loops l = loops_of(source_out(u, 0));
  for (int32_t i = 0; i < n; i++) {
    in[i] = source_parameter_of(u->p, names[i], operands[i]);
    loops_add(&l, tn_graph_type(u->p->graph, operands[i]));
  }
  loops_join(&l);
  source_begin_with(u, in, n, 0);
  loops_open(u, &l);
  loops_read(u, &l, operands, n);
  source_chain_body(u, operands, loops_index(&l, 0, index));
  loops_close(u);
  source_end(u);
}

static void loops_affine(const source_use *u, char text[SOURCE_EXPRESSION]) {
  const tn_affine_attributes *a = u->node->attributes;
  snprintf(text, SOURCE_EXPRESSION, "(float)%.9e * a + (float)%.9e", a->scale, a->shift);
}

static void loops_cast(const source_use *u, char text[SOURCE_EXPRESSION]) {
  snprintf(text, SOURCE_EXPRESSION, "%s", source_out(u, 0)->dtype == TN_BOOL ? "a != 0" : "a");
}

static void loops_full(const source_use *u, char text[SOURCE_EXPRESSION]) {
  const tn_full_attributes *a = u->node->attributes;
  const char *type = source_type(source_out(u, 0)->dtype);
  if (a->value - a->value == 0)
    snprintf(text, SOURCE_EXPRESSION, "((%s)%.17g)", type, a->value);
  else
    snprintf(text, SOURCE_EXPRESSION, "((%s)%s)", type,
             a->value > 0   ? "INFINITY"
             : a->value < 0 ? "-INFINITY"
                            : "NAN");
}

/* ---- values without operands ---- */

static void loops_iota(const source_use *u) {
  const tn_iota_attributes *a = u->node->attributes;
  char index[INDEX_TEXT];
  loops l = loops_of(source_out(u, 0));
  source_begin(u, 0);
  loops_open(u, &l);
  tn_text_addf(&u->p->steps, "    y0[%s] = (%s)i%d;\n", loops_index(&l, 0, index),
               source_type(source_out(u, 0)->dtype), (int)(a->axis < 0 ? a->axis + l.rank : a->axis));
  loops_close(u);
  source_end(u);
}

/* ---- moves ---- */

static void loops_move(const source_use *u, loops *l, int32_t operand) {
  char to[INDEX_TEXT], from[INDEX_TEXT];
  loops_join(l);
  loops_open(u, l);
  tn_text_addf(&u->p->steps, "    y0[%s] = a%d[%s];\n", loops_index(l, 0, to), (int)operand,
               loops_index(l, 1, from));
  loops_close(u);
}

static void loops_transpose(const source_use *u) {
  const tn_transpose_attributes *a = u->node->attributes;
  loops l = loops_of(source_out(u, 0));
  int64_t stride[TN_MAX_RANK];
  loops_strides(source_in(u, 0), stride);
  for (int32_t i = 0; i < l.rank; i++) l.stride[1][i] = stride[a->order.v[i]];
  l.n = 2;
  source_begin(u, 0);
  loops_move(u, &l, 0);
  source_end(u);
}

static void loops_slice(const source_use *u) {
  const tn_slice_attributes *a = u->node->attributes;
  loops l = loops_of(source_out(u, 0));
  int64_t stride[TN_MAX_RANK];
  loops_strides(source_in(u, 0), stride);
  l.n = 2;
  for (int32_t i = 0; i < l.rank; i++) {
    l.base[1] += a->starts.v[i] * stride[i];
    l.stride[1][i] = stride[i] * (a->steps.n > 0 ? a->steps.v[i] : 1);
  }
  source_begin(u, 0);
  loops_move(u, &l, 0);
  source_end(u);
}

static void loops_concat(const source_use *u) {
  const tn_axis_attributes *a = u->node->attributes;
  int64_t stride[TN_MAX_RANK], at = 0;
  int32_t axis = (int32_t)(a->axis < 0 ? a->axis + source_out(u, 0)->rank : a->axis);
  loops_strides(source_out(u, 0), stride);
  source_begin(u, 0);
  for (int32_t i = 0; i < u->node->n_in; i++) {
    loops l = loops_of(source_in(u, i));
    memcpy(l.stride[1], l.stride[0], sizeof stride);
    memcpy(l.stride[0], stride, sizeof stride);
    l.base[0] = at;
    l.n = 2;
    loops_move(u, &l, i);
    at += source_in(u, i)->dims[axis] * stride[axis];
  }
  source_end(u);
}

static void loops_pad(const source_use *u) {
  const tn_pad_attributes *a = u->node->attributes;
  loops l = loops_of(source_in(u, 0));
  int64_t stride[TN_MAX_RANK];
  loops_strides(source_out(u, 0), stride);
  memcpy(l.stride[1], l.stride[0], sizeof stride);
  l.n = 2;
  for (int32_t i = 0; i < l.rank; i++) {
    l.base[0] += a->low.v[i] * stride[i];
    l.stride[0][i] = stride[i] * (1 + (a->inner.n > 0 ? a->inner.v[i] : 0));
  }
  source_begin(u, 0);
  tn_text_addf(&u->p->steps, "  for (long i = 0; i < %lld; i++) y0[i] = 0;\n",
               (long long)tn_type_count(source_out(u, 0)));
  loops_move(u, &l, 0);
  source_end(u);
}

/* ---- gathers ---- */

/* Slices by a list of indices of any rank in place of the axis. */
static void loops_take(const source_use *u, int32_t table, int32_t index, int32_t axis) {
  const tn_type *x = source_in(u, table);
  int64_t before = 1, behind = 1, n = tn_type_count(source_in(u, index));
  for (int32_t i = 0; i < axis; i++) before *= x->dims[i];
  for (int32_t i = axis + 1; i < x->rank; i++) behind *= x->dims[i];
  source_begin(u, 0);
  tn_text_addf(&u->p->steps,
               "  for (long i = 0; i < %lld; i++)\n    for (long k = 0; k < %lld; k++)\n"
               "      for (long j = 0; j < %lld; j++) y0[(i * %lld + k) * %lld + j] = a%d[(i * %lld + "
               "(long)a%d[k]) * %lld + j];\n",
               (long long)before, (long long)n, (long long)behind, (long long)n, (long long)behind,
               (int)table, (long long)x->dims[axis], (int)index, (long long)behind);
  source_end(u);
}

static void loops_embedding(const source_use *u) { loops_take(u, 1, 0, 0); }

static void loops_gather(const source_use *u) {
  const tn_axis_attributes *a = u->node->attributes;
  loops_take(u, 0, 1, (int32_t)(a->axis < 0 ? a->axis + source_in(u, 0)->rank : a->axis));
}

static bool loops_takes_vector(const source_use *u) { return source_in(u, 1)->rank == 1; }

/* ---- reductions ---- */

/* Moves the reduced dimensions to the end, so that the first ones are those of the result; returns their
 * number. */
static int32_t loops_reduce(const source_use *u, const tn_ints *axes, loops *l) {
  const tn_type *x = source_in(u, 0);
  bool reduced[TN_MAX_RANK] = {false};
  int64_t stride[TN_MAX_RANK];
  int32_t kept = 0;
  for (int64_t i = 0; i < axes->n; i++) reduced[axes->v[i] < 0 ? axes->v[i] + x->rank : axes->v[i]] = true;
  loops_strides(x, stride);
  *l = (loops){.rank = x->rank, .n = 1};
  for (int pass = 0; pass < 2; pass++)
    for (int32_t i = 0, at = pass == 0 ? 0 : kept; i < x->rank; i++) {
      bool ends = axes->n == 0 || reduced[i];
      if (ends != (pass == 1)) continue;
      l->dims[at] = x->dims[i];
      l->stride[0][at++] = stride[i];
      kept += pass == 0;
    }
  return kept;
}

static void loops_reduction(const source_use *u, const tn_ints *axes, const char *start, const char *step,
                            const char *end) {
  tn_text *t = &u->p->steps;
  char index[INDEX_TEXT];
  loops l;
  int32_t kept = loops_reduce(u, axes, &l);
  source_begin(u, 0);
  tn_text_add(t, "  long o = 0;\n");
  for (int32_t i = 0; i < kept; i++)
    tn_text_addf(t, "  for (long i%d = 0; i%d < %lld; i%d++)\n", (int)i, (int)i, (long long)l.dims[i],
                 (int)i);
  tn_text_addf(t, "  {\n    %s\n    long n = 0;\n", start);
  for (int32_t i = kept; i < l.rank; i++)
    tn_text_addf(t, "    for (long i%d = 0; i%d < %lld; i%d++)\n", (int)i, (int)i, (long long)l.dims[i],
                 (int)i);
  tn_text_addf(t,
               "    {\n      const %s v = a0[%s];\n      %s\n      n++;\n    }\n    y0[o++] = %s;\n    "
               "(void)n;\n  }\n",
               source_type(source_in(u, 0)->dtype), loops_index(&l, 0, index), step, end);
  source_end(u);
}

static const tn_ints *loops_axes(const source_use *u) {
  return &((const tn_reduce_attributes *)u->node->attributes)->axes;
}

static void loops_sum(const source_use *u) {
  loops_reduction(u, loops_axes(u), "float s = 0;", "s += v;", "s");
}
static void loops_mean(const source_use *u) {
  loops_reduction(u, loops_axes(u), "float s = 0;", "s += v;", "s / (float)n");
}
static void loops_max(const source_use *u) {
  loops_reduction(u, loops_axes(u), "float s = -INFINITY;", "s = v > s || v != v ? v : s;", "s");
}
static void loops_min(const source_use *u) {
  loops_reduction(u, loops_axes(u), "float s = INFINITY;", "s = v < s || v != v ? v : s;", "s");
}

static void loops_argmax(const source_use *u) {
  const tn_axis_attributes *a = u->node->attributes;
  const tn_ints axes = {1, &a->axis};
  loops_reduction(u, &axes, "float s = -INFINITY; int32_t at = 0;", "if (v > s) { s = v; at = (int32_t)n; }",
                  "at");
}

static bool loops_takes_f32(const source_use *u) { return source_in(u, 0)->dtype == TN_F32; }

/* ---- normalization ---- */

static bool loops_is_f32(const source_use *u) {
  for (int32_t i = 0; i < u->node->n_in; i++)
    if (source_has(u, i) && source_in(u, i)->dtype != TN_F32) return false;
  return true;
}

/* By channel: x f + g, with f and g of the statistics. */
static void loops_batch_norm(const source_use *u) {
  const tn_norm_attributes *a = u->node->attributes;
  const tn_type *x = source_in(u, 0);
  int64_t space = 1;
  for (int32_t i = 2; i < x->rank; i++) space *= x->dims[i];
  source_begin(u, 0);
  tn_text_addf(&u->p->steps,
               "  for (long n = 0; n < %lld; n++)\n    for (long c = 0; c < %lld; c++) {\n"
               "      const float f = %s / sqrtf(a2[c] + %.9ef), g = %s - a1[c] * f;\n"
               "      for (long i = 0; i < %lld; i++) y0[(n * %lld + c) * %lld + i] = a0[(n * %lld + c) * "
               "%lld + i] * f + g;\n    }\n",
               (long long)x->dims[0], (long long)x->dims[1], source_has(u, 3) ? "a3[c]" : "1.0f", a->epsilon,
               source_has(u, 4) ? "a4[c]" : "0.0f", (long long)space, (long long)x->dims[1], (long long)space,
               (long long)x->dims[1], (long long)space);
  source_end(u);
}

const source_row source_rows_loops[] = {
    {"affine", .express = loops_affine, .takes = loops_takes_f32},
    {"cast", .express = loops_cast},
    {"full", .express = loops_full},
    {"broadcast", "a"},
    {"iota", .emit = loops_iota},
    {"transpose", .emit = loops_transpose},
    {"slice", .emit = loops_slice},
    {"concat", .emit = loops_concat},
    {"pad", .emit = loops_pad},
    {"embedding", .emit = loops_embedding},
    {"gather", .emit = loops_gather, .takes = loops_takes_vector},
    {"reduce_sum", .emit = loops_sum, .takes = loops_takes_f32},
    {"reduce_mean", .emit = loops_mean, .takes = loops_takes_f32},
    {"reduce_max", .emit = loops_max, .takes = loops_takes_f32},
    {"reduce_min", .emit = loops_min, .takes = loops_takes_f32},
    {"argmax", .emit = loops_argmax, .takes = loops_takes_f32},
    {"batch_norm_apply", .emit = loops_batch_norm, .takes = loops_is_f32},
    {NULL},
};
