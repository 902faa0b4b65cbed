/* core/conformance/items/policy_cases.c: precision policies: the dtypes that they decide, and the scale of
 * the loss, which has to come back after overflows. */
#include <math.h>
#include <stdio.h>

#include "core/conformance/items/items.h"
#include "core/graph/input_state.h"
#include "core/graph/op/schema.h"
#include "tenon/plugin/precision.h"

/* ---- dtypes ---- */

static bool is_policy_answer(const tn_precision_site *site, int32_t answer) {
  if (answer == TN_ANY || answer == site->dtype) return true;
  if (answer == TN_PRECISION_TF32) return site->dtype == TN_F32;
  return answer > TN_ANY && answer < TN_DTYPES && tn_dtype_is_float(answer);
}

static void policy_ask(tn_check *check, const void *options, const tn_precision_site *site) {
  const tn_precision *policy = (const tn_precision *)(const void *)check->entry->item;
  int32_t answer = policy->decide(options, site), again = policy->decide(options, site);
  const char *place = site->is_result ? "result" : "operand";
  if (answer != again)
    tn_check_fail(check, "%s %d of %s in %s: it answers %d and then %d; expected a pure function", place,
                  site->index, site->op, tn_dtype_name(site->dtype), answer, again);
  if (!is_policy_answer(site, answer))
    tn_check_fail(
        check,
        "%s %d of %s in %s: it answers %d; expected a float dtype, TN_ANY or, for f32, TN_PRECISION_TF32",
        place, site->index, site->op, tn_dtype_name(site->dtype), answer);
}

static void policy_ask_about_op(tn_check *check, const void *options, const tn_op_def *def) {
  for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++)
    for (int32_t i = 0; i < def->n_operands + def->n_results; i++) {
      bool is_result = i >= def->n_operands;
      const tn_precision_site site = {.struct_size = sizeof site,
                                      .op = def->op->item.name,
                                      .op_class = def->op->op_class,
                                      .is_result = is_result,
                                      .index = is_result ? i - def->n_operands : i,
                                      .dtype = dtype};
      policy_ask(check, options, &site);
    }
}

static tn_status check_dtypes(tn_check *check) {
  const tn_suite *suite = check->suite;
  const tn_entry *ops;
  const void *options;
  int32_t n;
  tn_graph *graph = NULL;
  TN_TRY(tn_graph_create(suite->env, suite->site.ops, &graph));
  tn_draw d = {.graph = graph, .settings = suite->site.settings};
  tn_status status = tn_item_options(&d, check->entry->item, check->item, &options);
  if (status == TN_OK) status = tn_registry_list(suite->site.registry, suite->env, TN_OP, &ops, &n);
  for (int32_t i = 0; status == TN_OK && i < n; i++) {
    const tn_op_def *def;
    status = tn_op_table_find(suite->site.ops, suite->env, ops[i].item->name, &def);
    if (status == TN_OK) policy_ask_about_op(check, options, def);
  }
  tn_graph_destroy(graph);
  return status;
}

/* ---- the scale ---- */

enum { OVERFLOWS = 40, PATIENCE = 20000 };

/* One update of the scale as a graph; the states at entry are inputs. */
typedef struct policy_scale {
  tn_item_run run;
  tn_item_use use;
  const char *label; /* "precision:mixed" */
  double *state[TN_ITEM_STATES], *finite;
} policy_scale;

/* States are drawn operands, so that their values can be set. */
static tn_status policy_call(policy_scale *s, tn_status (*callback)(tn_build *, const void *),
                             const void *options, tn_build_frame frame) {
  tn_build *b = s->run.d.b;
  tn_builder_push(b, &frame);
  tn_status status = callback(b, options);
  if (status != TN_OK) tn_builder_fail(b, status);
  status = tn_build_status(b);
  tn_builder_pop(b);
  if (status != TN_OK) tn_error_move(s->run.d.graph->env, b);
  return status;
}

static tn_status policy_emit(policy_scale *s, const tn_precision *policy) {
  const tn_type flag = {.dtype = TN_BOOL};
  const void *options;
  tn_val scale = 0, finite = tn_graph_input(s->run.d.graph, "finite", &flag);
  s->use = (tn_item_use){.d = &s->run.d, .item = &policy->item, .scope = ""};
  TN_TRY(tn_item_options(&s->run.d, &policy->item, s->label, &options));
  tn_build_frame frame = tn_item_frame(&s->use);
  frame.yielded = &scale;
  frame.n_yield = 1;
  TN_TRY(policy_call(s, policy->scale, options, frame));
  if (scale == 0) return TN_OK;
  const tn_type *type = tn_graph_type(s->run.d.graph, scale);
  if (type->dtype != TN_F32 || type->rank != 0)
    return tn_failf(s->run.d.graph->env, TN_EABI, "the scale is not an f32 scalar");
  TN_TRY(tn_graph_output(s->run.d.graph, "scale", scale));
  frame = tn_item_frame(&s->use);
  frame.in = &finite;
  frame.n_in = 1;
  return policy_call(s, policy->update, options, frame);
}

static tn_status policy_open(tn_check *check, policy_scale *s) {
  const tn_suite *suite = check->suite;
  char name[sizeof "state." + 11];
  TN_TRY(tn_graph_create(suite->env, suite->site.ops, &s->run.d.graph));
  TN_TRY(tn_builder_create(s->run.d.graph, &s->run.builder));
  s->run.d.b = tn_builder_handle(s->run.builder);
  TN_TRY(policy_emit(s, (const tn_precision *)(const void *)check->entry->item));
  for (int32_t i = 0; i < s->use.n_states; i++) {
    if (s->use.states[i].committed == 0) s->use.states[i].committed = s->use.states[i].value;
    snprintf(name, sizeof name, "state.%d", i);
    TN_TRY(tn_graph_output(s->run.d.graph, name, s->use.states[i].committed));
  }
  TN_TRY(tn_reference_create(s->run.d.graph, &s->run.reference));
  s->finite = tn_reference_input(s->run.reference, "finite");
  for (int32_t i = 0; i < s->use.n_states; i++) {
    const tn_input_attributes *a = tn_graph_maker(s->run.d.graph, s->use.states[i].value)->attributes;
    s->state[i] = tn_reference_input(s->run.reference, a->name);
    if (s->state[i] != NULL) s->state[i][0] = s->use.states[i].initial;
  }
  return TN_OK;
}

/* One update; *scale is the one before it. */
static tn_status policy_step(policy_scale *s, bool finite, double *scale) {
  char name[sizeof "state." + 11];
  if (s->finite != NULL) *s->finite = finite;
  TN_TRY(tn_reference_run(s->run.reference));
  *scale = tn_reference_output(s->run.reference, "scale", NULL)[0];
  for (int32_t i = 0; i < s->use.n_states; i++) {
    snprintf(name, sizeof name, "state.%d", i);
    const double *now = tn_reference_output(s->run.reference, name, NULL);
    if (s->state[i] != NULL) s->state[i][0] = now[0];
  }
  return TN_OK;
}

static tn_status policy_overflow(tn_check *check, policy_scale *s, double *scale) {
  double first, before;
  TN_TRY(policy_step(s, false, &first));
  before = *scale = first;
  for (int32_t i = 0; i < OVERFLOWS && check->wrong[0] == '\0'; i++) {
    TN_TRY(policy_step(s, false, scale));
    if (!(*scale > 0 && isfinite(*scale)))
      tn_check_fail(check, "after %d overflows the scale is %g; expected a finite number above 0", i + 1,
                    *scale);
    if (*scale > before)
      tn_check_fail(check, "overflow %d raises the scale from %g to %g", i + 1, before, *scale);
    before = *scale;
  }
  if (*scale >= first)
    tn_check_fail(check, "after %d overflows the scale is still %g; expected a smaller one", OVERFLOWS,
                  *scale);
  return TN_OK;
}

static tn_status policy_recover(tn_check *check, policy_scale *s, double low) {
  double scale = low;
  for (int32_t i = 0; i < PATIENCE && !(scale > low) && check->wrong[0] == '\0'; i++)
    TN_TRY(policy_step(s, true, &scale));
  if (!(scale > low) || !isfinite(scale))
    tn_check_fail(check, "after %d finite updates the scale is still %g; expected that it grows again",
                  PATIENCE, scale);
  return TN_OK;
}

static tn_status check_scale(tn_check *check) {
  policy_scale s = {.label = check->item, .run.d.settings = check->suite->site.settings};
  double low = 0;
  tn_status status = policy_open(check, &s);
  if (status == TN_OK && s.use.n_states > 0) status = policy_overflow(check, &s, &low);
  if (status == TN_OK && s.use.n_states > 0 && check->wrong[0] == '\0')
    status = policy_recover(check, &s, low);
  tn_item_run_close(&s.run);
  return status;
}

tn_status tn_policy_cases(tn_suite *suite, const tn_entry *entry, const char *item) {
  const tn_precision *policy = (const tn_precision *)(const void *)entry->item;
  TN_TRY(tn_check_run(suite, entry, item, "dtypes", check_dtypes));
  return policy->scale != NULL ? tn_check_run(suite, entry, item, "scale", check_scale) : TN_OK;
}
