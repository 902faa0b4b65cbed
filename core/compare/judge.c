/* core/compare/judge.c: compares the results of a launch with those of the reference backend, and with f64.
 */
#include "core/compare/judge.h"

#include <math.h>
#include <string.h>

#include "core/base/element.h"
#include "core/compare/group_graph.h"
#include "core/compile/kernels/describe_match.h"
#include "core/compile/kernels/query.h"
#include "core/conformance/reference/reference.h"
#include "core/conformance/trial/on_device.h"
#include "core/conformance/trial/trial.h"
#include "tenon/random.h"

/* The f64 reference is plain loops; beyond so many operations it is not asked. */
static const double MOST_F64_FLOPS = 4e9;

/* Variants of the operands, and the largest change of an element, in units of its rounding error. */
enum { VARIANTS = 4 };
static const double CHANGE = 4;

/* How much farther from f64 one backend is than the other, to be the one that departs. */
static const double FARTHER = 4;

typedef struct judging {
  const tn_judge *judge;
  const tn_graph *graph;
  const void *const *in, *const *found;
  int32_t n_in, n_out;
  tn_on_device *expected;
  tn_judgement *worst;
} judging;

/* ---- the reference backend ---- */

static tn_status judge_open_reference(judging *j) {
  const tn_judge *g = j->judge;
  tn_graph *graph;
  TN_TRY(tn_group_graph_copy(j->graph, &graph));
  return tn_on_device_create(g->env, g->registry, g->reference, graph, &j->expected);
}

static tn_status judge_run_reference(judging *j) {
  const tn_program *program = tn_on_device_program(j->expected);
  for (int32_t i = 0; i < j->n_in; i++) {
    char name[TN_GROUP_NAME];
    tn_group_graph_in(i, name);
    void *to = tn_on_device_operand(j->expected, name);
    for (int32_t k = 0; to != NULL && k < program->n_inputs; k++)
      if (tn_text_equal(program->inputs[k].name, name) && j->in[i] != NULL)
        memcpy(to, j->in[i], tn_type_bytes(&program->inputs[k].type));
  }
  return tn_on_device_run(j->expected);
}

/* ---- the tolerance ---- */

/* The dtype with the coarsest rounding of all values that the ops compute. */
static int32_t judge_coarsest(const tn_graph *graph) {
  int32_t coarsest = TN_I32;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    for (int32_t k = 0; node->n_in > 0 && k < node->n_out; k++) {
      int32_t dtype = tn_graph_type(graph, node->first_out + (tn_val)k)->dtype;
      if (tn_difference_epsilon(dtype) > tn_difference_epsilon(coarsest)) coarsest = dtype;
    }
  }
  return coarsest;
}

/* Relative to the largest element. Booleans and integers have none. */
static double judge_tolerance(const tn_graph *graph, const tn_type *type) {
  return tn_dtype_is_float(type->dtype) ? tn_trial_tolerance(graph, judge_coarsest(graph)) : 0;
}

static double judge_share(double difference, double tolerance) {
  if (difference == 0) return 0;
  return tolerance > 0 ? difference / tolerance : INFINITY;
}

/* ---- f64 ---- */

static double judge_flops(const tn_graph *graph) {
  tn_arena arena = tn_arena_new(graph->env);
  double flops = 0;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    tn_cost cost = {0};
    if (graph->nodes.v[i].n_in > 0 && tn_node_cost(&arena, graph, &graph->nodes.v[i], &cost) == TN_OK)
      flops += cost.flops;
  }
  tn_arena_free(&arena);
  return flops;
}

/* Variant 0 has the operands as they are. */
static void judge_fill_f64(const judging *j, tn_reference *reference, int32_t variant) {
  for (size_t k = 0; k < j->graph->inputs.n; k++) {
    tn_val v = j->graph->inputs.v[k];
    const tn_type *type = tn_graph_type(j->graph, v);
    int32_t operand = tn_group_graph_operand(j->graph, v);
    char name[TN_GROUP_NAME];
    double *to = tn_reference_input(reference, tn_group_graph_in(operand, name));
    double change = CHANGE * tn_difference_epsilon(type->dtype);
    tn_rng rng = tn_rng_at((uint64_t)variant, (uint64_t)k);
    int64_t n = to != NULL ? tn_type_count(type) : 0;
    for (int64_t i = 0; i < n; i++) {
      to[i] = tn_element_load(type->dtype, j->in[operand], i);
      if (variant > 0) to[i] *= 1 + change * (2 * tn_rng_uniform(&rng) - 1);
    }
  }
}

/* Numbers of one result in f64, and by how much each changes with the operands' rounding. */
typedef struct exact_result {
  double *value, *spread;
  double *stored; /* with the results of all ops rounded to their dtype, so that f16 may overflow */
  int64_t n;
  double magnitude;
} exact_result;

static void judge_add_variant(exact_result *e, const double *values, int32_t variant) {
  for (int64_t i = 0; i < e->n; i++) {
    if (variant == 0) e->value[i] = values[i];
    if (variant == 0 && isfinite(values[i])) e->magnitude = fmax(e->magnitude, fabs(values[i]));
    double change = fabs(values[i] - e->value[i]);
    if (variant > 0 && (change > e->spread[i] || isnan(change)))
      e->spread[i] = isnan(change) ? INFINITY : change;
  }
}

static tn_status judge_run_f64(const judging *j, int32_t result, exact_result *e) {
  tn_reference *reference;
  char name[TN_GROUP_NAME];
  TN_TRY(tn_reference_create(j->graph, &reference));
  tn_group_graph_out(result, name);
  judge_fill_f64(j, reference, 0);
  tn_reference_round_results(reference, true);
  tn_status status = tn_reference_run(reference);
  if (status == TN_OK)
    memcpy(e->stored, tn_reference_output(reference, name, NULL), (size_t)e->n * sizeof *e->stored);
  tn_reference_round_results(reference, false);
  for (int32_t variant = 0; variant <= VARIANTS && status == TN_OK; variant++) {
    judge_fill_f64(j, reference, variant);
    status = tn_reference_run(reference);
    if (status == TN_OK) judge_add_variant(e, tn_reference_output(reference, name, NULL), variant);
  }
  tn_reference_destroy(reference);
  return status;
}

/* Numbers that are not finite have no distance. */
static bool judge_is_same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* The largest distance from f64, over the tolerance of each element. A value inside of the ops that overflows
 * its dtype is infinite or not, as a kernel stores it or not. */
static double judge_distance(const exact_result *e, const tn_type *type, const void *values,
                             double tolerance) {
  double most = 0;
  for (int64_t i = 0; i < e->n; i++) {
    double v = tn_element_load(type->dtype, values, i), x = tn_reference_round(type->dtype, e->value[i]);
    if (judge_is_same(v, x) || (!isfinite(v) && judge_is_same(v, e->stored[i]))) continue;
    most = fmax(most, isfinite(v) && isfinite(x)
                          ? judge_share(fabs(v - e->value[i]), tolerance * e->magnitude + 2 * e->spread[i])
                          : INFINITY);
  }
  return most;
}

/* A result that both backends compute equally far from f64 is one that rounding makes uncertain. */
static int32_t judge_weigh(double reference_off, double tested_off) {
  if (tested_off > 1 && tested_off >= FARTHER * reference_off) return TN_JUDGED_DEPARTS;
  if (reference_off > 1 && reference_off >= FARTHER * tested_off) return TN_JUDGED_REFERENCE;
  return TN_JUDGED_ROUNDING;
}

static tn_status judge_in_f64(const judging *j, int32_t result, const void *expected, double tolerance,
                              tn_judgement *one) {
  tn_arena memory = tn_arena_new(j->judge->env);
  exact_result e = {.n = tn_type_count(&one->type)};
  e.value = tn_arena_alloc(&memory, (size_t)e.n * sizeof *e.value);
  e.spread = tn_arena_alloc(&memory, (size_t)e.n * sizeof *e.spread);
  e.stored = tn_arena_alloc(&memory, (size_t)e.n * sizeof *e.stored);
  tn_status status = e.value && e.spread && e.stored ? judge_run_f64(j, result, &e) : TN_ENOMEM;
  if (status == TN_OK) {
    one->in_f64 = true;
    one->reference_off = judge_distance(&e, &one->type, expected, tolerance);
    one->tested_off = judge_distance(&e, &one->type, j->found[result], tolerance);
    one->verdict = judge_weigh(one->reference_off, one->tested_off);
  }
  tn_arena_free(&memory);
  return status;
}

/* ---- one result ---- */

static bool judge_can_use_f64(const judging *j) { return judge_flops(j->graph) <= MOST_F64_FLOPS; }

static tn_status judge_result(judging *j, int32_t result, tn_judgement *one) {
  char name[TN_GROUP_NAME];
  tn_group_graph_out(result, name);
  const void *expected = tn_executor_output(tn_on_device_executor(j->expected), 0, 0, name);
  tn_val v = tn_graph_find_output(j->graph, name);
  *one = (tn_judgement){.result = result, .type = *tn_graph_type(j->graph, v)};
  if (expected == NULL || j->found[result] == NULL) return TN_OK;
  double tolerance = judge_tolerance(j->graph, &one->type);
  one->difference = tn_difference_of(&one->type, expected, j->found[result]);
  one->tolerance = tolerance * one->difference.magnitude;
  one->share = judge_share(one->difference.largest, one->tolerance);
  if (one->share <= 1) return TN_OK;
  one->verdict = TN_JUDGED_DEPARTS;
  if (!judge_can_use_f64(j)) return TN_OK;
  tn_status status = judge_in_f64(j, result, expected, tolerance, one);
  if (status == TN_EUNSUPPORTED) { /* an op of a plugin that the reference does not know */
    tn_error_clear(j->judge->env);
    return TN_OK;
  }
  return status;
}

static bool judge_is_worse(const tn_judgement *a, const tn_judgement *b) {
  return a->verdict != b->verdict ? a->verdict > b->verdict : a->share > b->share;
}

static tn_status judge_all_results(judging *j) {
  TN_TRY(judge_open_reference(j));
  TN_TRY(judge_run_reference(j));
  for (int32_t i = 0; i < j->n_out; i++) {
    tn_judgement one;
    TN_TRY(judge_result(j, i, &one));
    if (i == 0 || judge_is_worse(&one, j->worst)) *j->worst = one;
  }
  return TN_OK;
}

tn_status tn_judge_results(const tn_judge *judge, const tn_graph *graph, const void *const *in, int32_t n_in,
                           const void *const *found, int32_t n_out, tn_judgement *judgement) {
  judging j = {.judge = judge,
               .graph = graph,
               .in = in,
               .found = found,
               .n_in = n_in,
               .n_out = n_out,
               .worst = judgement};
  *judgement = (tn_judgement){.verdict = TN_JUDGED_SAME};
  tn_status status = judge_all_results(&j);
  tn_on_device_destroy(j.expected);
  return status;
}
