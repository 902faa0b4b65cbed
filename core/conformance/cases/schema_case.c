/* core/conformance/cases/schema_case.c: draws operands and attributes for an op of which only the schema is
 * known. */
#include "core/conformance/cases/schema_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/options/options.h"
#include "core/conformance/cases/examples.h"
#include "core/graph/op/infer.h"

enum { TRIES = 64, OPERANDS = 8, RESULTS = 16, ATTRIBUTES = 12 };

bool tn_schema_accepts(const tn_op_def *def, int32_t dtype) {
  for (int32_t i = 0; i < TN_SCHEMA_LETTERS; i++)
    if (def->dtypes[i] != 0 && (def->dtypes[i] & 1u << dtype) == 0) return false;
  return true;
}

/* ---- shapes ---- */

/* The shapes of further operands relative to the first. */
enum {
  SAME = 0,
  NARROWER = 1,
  LAST = 2,
  CHANNEL = 3,
  SCALAR = 4,
  PRODUCT = 5,
  PRODUCT_TRANSPOSED = 6,
  KINDS = 7
};

static tn_type vector_type(int32_t dtype, int64_t n) { return tn_draw_type_of(dtype, 1, &n); }

static tn_type matrix_type(int32_t dtype, int64_t rows, int64_t columns) {
  const int64_t dims[] = {rows, columns};
  return tn_draw_type_of(dtype, 2, dims);
}

static tn_type further_operand_type(tn_draw *d, int32_t kind, int32_t position, const tn_type *first,
                                    int64_t width) {
  int32_t dtype = first->dtype;
  int64_t last = first->rank > 0 ? first->dims[first->rank - 1] : 1;
  switch (kind) {
  case NARROWER: return tn_draw_narrower(d, first);
  case LAST: return vector_type(dtype, last);
  case CHANNEL: return vector_type(dtype, first->rank > 1 ? first->dims[1] : last);
  case SCALAR: return tn_draw_type_of(dtype, 0, NULL);
  case PRODUCT: return position == 1 ? matrix_type(dtype, last, width) : vector_type(dtype, width);
  case PRODUCT_TRANSPOSED: return position == 1 ? matrix_type(dtype, width, last) : vector_type(dtype, width);
  default: return *first;
  }
}

static int32_t operand_dtype(const tn_draw *d, const tn_operand_def *operand) {
  return operand->letter != 0 || operand->dtype == TN_ANY ? d->dtype : operand->dtype;
}

/* A long first operand with a size that no vector divides. */
static void draw_odd_size(tn_draw *d, tn_type *type) {
  static const int64_t sizes[] = {7, 17, 33, 67, 129, 1021};
  if (!d->large || type->rank < 1 || type->rank > 2 || type->dims[0] == 0) return;
  type->dims[type->rank - 1] = sizes[tn_draw_between(d, 0, 5)];
}

/* Types that broadcast; sometimes none has the dims of the result. */
static void draw_pointwise_types(tn_draw *d, tn_type *types, int32_t n) {
  tn_type wide = tn_draw_type(d, d->dtype, 0, 5, true);
  draw_odd_size(d, &wide);
  for (int32_t i = 0; i < n; i++) types[i] = n == 1 || tn_draw_flag(d) ? wide : tn_draw_narrower(d, &wide);
}

/* The types of all operands; an absent one has rank -1. */
static void draw_operand_types(tn_draw *d, const tn_op_def *def, int32_t kind, tn_type *types, int32_t n) {
  int64_t width = tn_draw_between(d, 1, 6);
  bool pointwise = kind <= NARROWER && tn_schema_is_pointwise(def->op);
  if (pointwise) draw_pointwise_types(d, types, n);
  for (int32_t i = 0; i < n; i++) {
    const tn_operand_def *operand = tn_op_def_operand(def, i);
    if (!pointwise) {
      types[i] = i == 0 ? tn_draw_type(d, d->dtype, kind >= LAST ? 2 : 0, 4, kind < LAST)
                        : further_operand_type(d, kind, i, &types[0], width);
      if (i == 0) draw_odd_size(d, &types[0]);
    }
    types[i].dtype = operand_dtype(d, operand);
    if (operand->optional && tn_draw_flag(d)) types[i].rank = -1;
  }
}

/* ---- attributes ---- */

/* Attributes that differ from their defaults, as text. */
typedef struct drawn_attributes {
  int32_t n;
  struct {
    const char *name;
    char text[48];
  } v[ATTRIBUTES];
} drawn_attributes;

/* A value that most ranges of required options contain. */
static const char *required_value(const tn_option *option) {
  switch (option->type) {
  case TN_OPT_FLAG: return "no";
  case TN_OPT_FLOAT: return "0.5";
  case TN_OPT_DTYPE: return "f32";
  default: return "1";
  }
}

/* A number near the default, of its sign. */
static bool draw_number_attribute(tn_draw *d, const tn_option *option, char *text, size_t room) {
  char *end;
  tn_range range = {-HUGE_VAL, HUGE_VAL, false, false};
  double number = strtod(option->default_text, &end);
  if (*end != '\0' || end == option->default_text) return false;
  if (option->range != NULL && !tn_range_read(option->range, &range)) return false;
  double drawn = number == 0 ? 0.5 : number * tn_rng_between(&d->rng, 0.5, 2);
  if (!(drawn > range.low && drawn < range.high)) return false;
  snprintf(text, room, "%.9g", drawn);
  return true;
}

static bool draw_word_attribute(tn_draw *d, const tn_option *option, char *text, size_t room) {
  const char *word = option->range;
  int64_t words = 1;
  for (const char *c = word; *c != '\0'; c++) words += *c == '|';
  for (int64_t skip = tn_draw_between(d, 0, words - 1); skip > 0; skip--) word = strchr(word, '|') + 1;
  size_t n = strcspn(word, "|");
  snprintf(text, room, "%.*s", (int)n, word);
  return n < room;
}

/* Numbers, flags and words; sizes and axes keep their defaults, which the shapes are drawn for. */
static bool draw_attribute(tn_draw *d, const tn_option *option, char *text, size_t room) {
  switch (option->type) {
  case TN_OPT_FLOAT: return draw_number_attribute(d, option, text, room);
  case TN_OPT_ENUM: return option->range != NULL && draw_word_attribute(d, option, text, room);
  case TN_OPT_FLAG: snprintf(text, room, "%s", tn_draw_flag(d) ? "yes" : "no"); return true;
  default: return false;
  }
}

/* Required attributes get a value; in half of the draws others get one beside their default, too. */
static void draw_attributes(tn_draw *d, const tn_op_def *def, bool vary, drawn_attributes *drawn) {
  const tn_item *item = &def->op->item;
  drawn->n = 0;
  for (int64_t i = 0; tn_options_at(item, i) != NULL && drawn->n < ATTRIBUTES; i++) {
    const tn_option *option = tn_options_at(item, i);
    char *text = drawn->v[drawn->n].text;
    if (option->default_text == NULL)
      snprintf(text, sizeof drawn->v[0].text, "%s", required_value(option));
    else if (!vary || !draw_attribute(d, option, text, sizeof drawn->v[0].text))
      continue;
    drawn->v[drawn->n++].name = option->name;
  }
}

static tn_status fill_attributes(tn_draw *d, const tn_op_def *def, const drawn_attributes *drawn,
                                 const void **attributes) {
  tn_options options;
  TN_TRY(tn_options_start(d->graph->env, &d->graph->arena, &def->op->item, &options));
  for (int32_t i = 0; i < drawn->n; i++)
    TN_TRY(tn_options_set_text(d->graph->env, &options, drawn->v[i].name, drawn->v[i].text));
  *attributes = options.data;
  return TN_OK;
}

/* ---- schemas ---- */

static bool infer_accepts(tn_draw *d, const tn_op_def *def, const void *attributes, const tn_type *types,
                          int32_t n) {
  const tn_type *in[OPERANDS];
  tn_type out[RESULTS] = {{0}};
  for (int32_t i = 0; i < n; i++) in[i] = types[i].rank < 0 ? NULL : &types[i];
  bool taken = tn_infer_types(d->graph->env, def, attributes, in, n, out) == TN_OK;
  if (!taken) tn_error_clear(d->graph->env);
  return taken;
}

/* The domain of an operand; an operand of a fixed integer dtype may be an index. */
static tn_range operand_domain(const tn_operand_def *operand, const tn_type *types) {
  bool index = operand->letter == 0 && (operand->dtype == TN_I32 || operand->dtype == TN_I64);
  tn_range domain = operand->has_domain ? operand->domain
                    : index             ? (tn_range){0, 1, false, false}
                                        : tn_domain_any();
  if (operand->below < 0) return domain;
  const tn_type *other = &types[operand->below];
  int32_t axis = operand->axis < 0 ? operand->axis + other->rank : operand->axis;
  if (axis >= 0 && axis < other->rank) domain.high = (double)other->dims[axis];
  return domain;
}

bool tn_schema_is_pointwise(const tn_op *op) {
  return op->op_class == TN_CLASS_POINTWISE || op->formula != NULL ||
         (op->infer == NULL && op->decompose == NULL);
}

static tn_val emit_from_schema(tn_draw *d, const tn_op_def *def, const drawn_attributes *drawn,
                               const tn_type *types, int32_t n) {
  tn_val in[OPERANDS];
  if (d->style == TN_STYLE_SPECIAL && !tn_schema_is_pointwise(def->op)) d->style = TN_STYLE_WIDE;
  for (int32_t i = 0; i < n; i++)
    in[i] =
        types[i].rank < 0 ? 0 : tn_draw_domain(d, types[i], operand_domain(tn_op_def_operand(def, i), types));
  tn_draw_begin(d, def->op->item.name, (int32_t)n, in);
  for (int32_t i = 0; i < drawn->n; i++) tn_op_set_text(d->b, drawn->v[i].name, drawn->v[i].text);
  return tn_op_end(d->b);
}

/* The op with the domain of the case. */
static tn_status schema_narrow(tn_draw *d, const tn_case *c, const tn_op_def **def) {
  if (c->domain == NULL || d->style == TN_STYLE_SPECIAL) return TN_OK;
  tn_op *op = tn_arena_copy(&d->graph->arena, (*def)->op, sizeof *op);
  if (op == NULL) return TN_ENOMEM;
  op->domain = c->domain;
  return tn_op_def_create(d->graph->env, &d->graph->arena, op, def);
}

tn_val tn_schema_emit(tn_draw *d, const tn_case *c) {
  if (tn_example_exists(c->op)) return tn_example_emit(d, c);
  const tn_op_def *def = NULL;
  const void *attributes = NULL;
  tn_type types[OPERANDS];
  tn_status status = tn_op_table_find(d->graph->ops, d->graph->env, c->op, &def);
  drawn_attributes drawn = {.n = 0};
  if (status == TN_OK) status = schema_narrow(d, c, &def);
  int32_t n = status == TN_OK ? def->n_operands + (def->variadic ? 1 : 0) : 0;
  if (n > OPERANDS) n = OPERANDS;
  for (int32_t i = 0; status == TN_OK && i < TRIES; i++) {
    draw_attributes(d, def, i < TRIES / 2 && d->draw / 4 % 2 == 1, &drawn);
    status = fill_attributes(d, def, &drawn, &attributes);
    draw_operand_types(d, def, (int32_t)tn_draw_between(d, 0, KINDS - 1), types, n);
    if (status == TN_OK && infer_accepts(d, def, attributes, types, n))
      return emit_from_schema(d, def, &drawn, types, n);
  }
  if (status == TN_OK)
    status = tn_failf(
        d->graph->env, TN_EUNSUPPORTED,
        "%s accepts none of the operand shapes that are tried: equal, broadcast, vectors of the last or "
        "second dimension, scalars, matrices",
        c->op);
  tn_builder_fail(d->b, status);
  return 0;
}

/* ---- patterns ---- */

/* A further operand of the pattern: of the type of another operand of its node, or narrower. */
static tn_val draw_further_operand(tn_draw *d, tn_val other) {
  tn_type type = *tn_val_type(d->b, other);
  return tn_draw_tensor(d, tn_draw_flag(d) ? type : tn_draw_narrower(d, &type), TN_FILL_ANY);
}

static void pattern_bind_operands(tn_draw *d, const tn_pattern_node *node, tn_val first, tn_val *bound) {
  const tn_gnode *made = tn_graph_maker(d->graph, first);
  for (int32_t i = 0; i < node->n_in && i < made->n_in; i++)
    if (node->in[i] >= 0) bound[node->in[i]] = made->in[i];
}

static void pattern_bind_results(const tn_pattern_node *node, tn_val first, tn_val *bound) {
  for (int32_t i = 0; i < node->n_out; i++)
    if (node->out[i] >= 0) bound[node->out[i]] = first + (tn_val)i;
}

static tn_val pattern_emit_node(tn_draw *d, const tn_pattern *p, const tn_pattern_node *node, tn_val *bound) {
  tn_val known = 0;
  for (int32_t i = 0; i < node->n_in; i++)
    if (node->in[i] >= 0 && bound[node->in[i]] != 0) known = bound[node->in[i]];
  for (int32_t i = 0; i < node->n_in; i++) {
    int32_t v = node->in[i];
    if (v < 0 || bound[v] != 0 || known == 0) continue;
    if (!p->values[v].optional || tn_draw_flag(d)) bound[v] = draw_further_operand(d, known);
  }
  tn_op_begin(d->b, node->op);
  for (int32_t i = 0; i < node->n_in; i++) tn_op_arg(d->b, node->in[i] >= 0 ? bound[node->in[i]] : 0);
  return tn_op_end(d->b);
}

/* A prologue that rounds nothing: -x where x is above another number, and 2 x elsewhere. Half of the time its
 * result has another reader. */
static tn_val pattern_emit_prologue(tn_draw *d, tn_val x) {
  tn_type type = *tn_val_type(d->b, x);
  tn_val z = tn_draw_tensor(d, tn_draw_flag(d) ? type : tn_draw_narrower(d, &type), TN_FILL_ANY);
  tn_val y = tn_where(d->b, tn_gt(d->b, x, z), tn_neg(d->b, x), tn_add(d->b, x, x));
  if (tn_draw_flag(d)) d->inner[d->n_inner++] = y;
  return y;
}

/* An epilogue of one node behind the first result. Only regions of pointwise ops have such an op. */
static tn_val pattern_emit_epilogue(tn_draw *d, const tn_pattern *p, tn_val first) {
  return p->epilogue == TN_CLASS_POINTWISE ? tn_affine(d->b, first, 2, 0.5) : first;
}

tn_val tn_pattern_emit(tn_draw *d, const tn_case *c) {
  const tn_pattern_case *pc = (const tn_pattern_case *)c;
  const tn_pattern *p = pc->pattern;
  const tn_case by_schema = {p->nodes[0].op, tn_schema_emit, TN_FILL_ANY, TN_CASE_FLOATS};
  const tn_case *first_case = pc->first != NULL ? pc->first : &by_schema;
  if (p->prologue == TN_CLASS_POINTWISE) d->front = pattern_emit_prologue;
  tn_val bound[TN_PATTERN_VALUES] = {0}, first = first_case->emit(d, first_case);
  if (tn_build_status(d->b) != TN_OK) return 0;
  pattern_bind_operands(d, &p->nodes[0], first, bound);
  pattern_bind_results(&p->nodes[0], first, bound);
  for (int32_t i = 1; i < p->n_nodes; i++) {
    first = pattern_emit_node(d, p, &p->nodes[i], bound);
    if (tn_build_status(d->b) != TN_OK) return 0;
    pattern_bind_results(&p->nodes[i], first, bound);
  }
  for (int32_t i = 0; i < p->n_outs && d->n_inner < TN_CASE_INNER; i++)
    if (bound[p->outs[i]] != 0) d->inner[d->n_inner++] = bound[p->outs[i]];
  return pattern_emit_epilogue(d, p, first);
}
