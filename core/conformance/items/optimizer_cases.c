/* core/conformance/items/optimizer_cases.c: optimizers: updates on the device against the reference, and the
 * operands on which the new parameter depends. */
#include <math.h>
#include <string.h>

#include "core/config/options/options.h"
#include "core/conformance/items/items.h"
#include "core/conformance/suite.h"
#include "tenon/plugin/optimizer.h"

enum { SCHEDULED = 8 };

/* The updates of one parameter in a graph. */
typedef struct optimizer_use {
  tn_item_use use; /* first: the context of its frame's calls */
  const tn_optimizer *optimizer;
  const char *label; /* "optimizer:lion" */
  const void *options;
  tn_type type;
  tn_optimizer_roles roles;
  struct {
    const char *name;
    tn_val value;
  } scheduled[SCHEDULED];
  int32_t n_scheduled;
} optimizer_use;

/* ---- the calls of the optimizer ---- */

static tn_status optimizer_draw_option(optimizer_use *u, const char *name, tn_val *value) {
  tn_draw *d = u->use.d;
  const tn_option *option = tn_options_find(u->use.item, name);
  if (option == NULL || !(option->flags & TN_OPT_SCHEDULED) || u->n_scheduled == SCHEDULED)
    return tn_failf(d->graph->env, TN_EINVAL,
                    "it asks for the option '%s', which it does not mark TN_OPT_SCHEDULED", name);
  bool each = u->optimizer->granularity == TN_UPDATE_ELEMENTWISE && tn_draw_flag(d);
  if (strcmp(name, "lr") == 0) u->roles.lr = d->n_inputs;
  *value =
      tn_draw_domain(d, each ? u->type : tn_draw_type_of(TN_F32, 0, NULL), tn_item_option_domain(option));
  d->inputs[d->n_inputs - 1].style = TN_STYLE_ORDINARY;
  u->scheduled[u->n_scheduled].name = option->name;
  u->scheduled[u->n_scheduled++].value = *value;
  return TN_OK;
}

static tn_val optimizer_option(tn_build *b, void *context, const char *name) {
  optimizer_use *u = context;
  tn_val value = 0;
  for (int32_t i = 0; i < u->n_scheduled; i++)
    if (strcmp(u->scheduled[i].name, name) == 0) return u->scheduled[i].value;
  tn_status status = optimizer_draw_option(u, name, &value);
  if (status != TN_OK) tn_builder_fail(b, status);
  return value;
}

static tn_status optimizer_call(optimizer_use *u, const tn_val in[2], tn_val *now) {
  tn_build *b = u->use.d->b;
  tn_build_frame frame = tn_item_frame(&u->use);
  *now = 0;
  frame.in = in;
  frame.n_in = 2;
  frame.yielded = now;
  frame.n_yield = 1;
  frame.training = true;
  frame.option_value = optimizer_option;
  tn_builder_push(b, &frame);
  tn_status status = u->optimizer->update(b, u->options);
  if (status != TN_OK) tn_builder_fail(b, status);
  status = tn_build_status(b);
  tn_builder_pop(b);
  return status;
}

/* The host requires a parameter of the same type, and states that it can keep. */
static tn_status optimizer_check_update(const optimizer_use *u, tn_val now) {
  const tn_env *env = u->use.d->graph->env;
  if (now == 0) return tn_failf(env, TN_EABI, "it yields no new parameter");
  if (!tn_type_equal(tn_graph_type(u->use.d->graph, now), &u->type))
    return tn_failf(env, TN_EABI, "the new parameter has another type than the parameter");
  for (int32_t i = 0; i < u->use.n_states; i++) {
    const tn_item_state *s = &u->use.states[i];
    if (s->committed == 0)
      return tn_failf(env, TN_EABI, "state '%s' is never committed, so a checkpoint keeps its initial value",
                      s->name);
    if (u->optimizer->granularity == TN_UPDATE_ELEMENTWISE && !tn_type_equal(&s->type, &u->type))
      return tn_failf(env, TN_EABI,
                      "state '%s' is not of the parameter's type, as an elementwise optimizer requires",
                      s->name);
  }
  return TN_OK;
}

/* The next update begins with the committed states. */
static tn_status optimizer_update(optimizer_use *u, int32_t update, tn_val param, tn_val *now) {
  tn_draw *d = u->use.d;
  tn_val in[2] = {param, 0};
  u->roles.gradient[update] = d->n_inputs;
  in[1] = tn_draw_domain(d, u->type, tn_domain_any());
  u->use.counter = tn_scalar(d->b, TN_I64, update + 1);
  TN_TRY(optimizer_call(u, in, now));
  TN_TRY(optimizer_check_update(u, *now));
  for (int32_t i = 0; i < u->use.n_states; i++) {
    u->use.states[i].value = u->use.states[i].committed;
    u->use.states[i].committed = 0;
  }
  d->results[d->n_results++] = *now;
  return TN_OK;
}

static tn_type optimizer_draw_type(tn_draw *d, const tn_optimizer *optimizer) {
  static const int64_t sizes[] = {1, 3, 7, 17, 33, 67, 1021};
  int64_t size = sizes[tn_draw_between(d, 0, d->large ? 6 : 4)];
  return optimizer->granularity == TN_UPDATE_ELEMENTWISE ? tn_draw_type_of(TN_F32, 1, &size)
                                                         : tn_draw_type(d, TN_F32, 1, 4, false);
}

static tn_status optimizer_emit_updates(optimizer_use *u) {
  tn_draw *d = u->use.d;
  int32_t updates = 1 + (int32_t)(d->draw % TN_OPTIMIZER_UPDATES);
  tn_val param, now;
  TN_TRY(tn_item_options(d, u->use.item, u->label, &u->options));
  u->type = optimizer_draw_type(d, u->optimizer);
  u->roles.param = d->n_inputs;
  param = tn_draw_domain(d, u->type, tn_domain_any());
  for (int32_t i = 0; i < updates; i++) {
    TN_TRY(optimizer_update(u, i, param, &now));
    param = now;
  }
  for (int32_t i = 0; i < u->use.n_states && d->n_results < TN_CASE_RESULTS; i++)
    d->results[d->n_results++] = u->use.states[i].value;
  return TN_OK;
}

tn_val tn_optimizer_emit(tn_draw *d, const tn_case *c) {
  const tn_item_case *ic = (const tn_item_case *)c;
  optimizer_use u = {
      .use = {.d = d, .registry = ic->registry, .item = ic->item, .from_initial = true, .scope = ""},
      .optimizer = (const tn_optimizer *)(const void *)ic->item,
      .label = c->op,
      .roles = {.lr = -1, .gradient = {-1, -1, -1}}};
  if (d->style == TN_STYLE_SPECIAL) d->style = TN_STYLE_ORDINARY;
  tn_status status = optimizer_emit_updates(&u);
  if (ic->roles != NULL) *ic->roles = u.roles;
  if (status != TN_OK) tn_builder_fail(d->b, status);
  return status == TN_OK ? d->results[0] : 0;
}

/* ---- the operands that the new parameter depends on ---- */

typedef struct optimizer_run {
  tn_check *check;
  tn_item_run run;
  tn_optimizer_roles roles;
  int64_t draw;
  int32_t last;   /* the output of the last update */
  double *before; /* its value */
  int64_t n;
} optimizer_run;

static double *optimizer_input(const optimizer_run *r, int32_t input) {
  return input < 0 ? NULL : tn_reference_input(r->run.reference, r->run.d.inputs[input].name);
}

/* The number of elements that a change of `by` at element i, or at all with i = -1, of an input changes;
 * *other: one that changes beside i, -1: none. */
static tn_status optimizer_count_changes(optimizer_run *r, int32_t input, int64_t i, double by,
                                         int64_t *changes, int64_t *other) {
  double *x = optimizer_input(r, input);
  char name[16] = "y.0";
  int64_t n = tn_type_count(&r->run.d.inputs[input].type);
  name[2] = (char)('0' + r->last);
  *changes = 0;
  *other = -1;
  if (x == NULL) return TN_OK; /* nothing reads it */
  for (int64_t k = 0; k < n; k++)
    if (i < 0 || k == i) x[k] += by;
  tn_status status = tn_reference_run(r->run.reference);
  const double *now = tn_reference_output(r->run.reference, name, NULL);
  for (int64_t k = 0; k < r->n && status == TN_OK; k++) {
    if (now[k] == r->before[k]) continue;
    ++*changes;
    if (k != i) *other = k;
  }
  for (int64_t k = 0; k < n; k++)
    if (i < 0 || k == i) x[k] -= by;
  return status;
}

static tn_status optimizer_with_runs(tn_check *check, tn_status (*look)(optimizer_run *r)) {
  for (int64_t draw = 1; draw < 8 && check->wrong[0] == '\0'; draw++) {
    optimizer_run r = {.check = check, .draw = draw, .last = (int32_t)(draw % TN_OPTIMIZER_UPDATES)};
    const tn_item_case c = {.c = {.op = check->item, .emit = tn_optimizer_emit},
                            .item = check->entry->item,
                            .registry = check->suite->site.registry,
                            .roles = &r.roles};
    tn_status status = tn_item_run_open(&check->suite->site, &c, draw, &r.run);
    if (status == TN_OK) r.before = tn_item_run_copy(&r.run, r.last, &r.n);
    if (status == TN_OK) status = r.before != NULL ? look(&r) : TN_ENOMEM;
    tn_release(check->suite->env, r.before);
    tn_item_run_close(&r.run);
    TN_TRY(status);
  }
  return TN_OK;
}

static tn_status optimizer_look_at_neighbours(optimizer_run *r) {
  const int32_t inputs[] = {r->roles.param, r->roles.gradient[0], r->roles.gradient[1]};
  static const char *const names[] = {"the parameter", "the gradient", "the gradient of the update after it"};
  for (int32_t k = 0; k < 3 && r->check->wrong[0] == '\0'; k++) {
    int64_t changes, other, at = r->n / 2;
    if (optimizer_input(r, inputs[k]) == NULL || r->n == 0) continue;
    TN_TRY(optimizer_count_changes(r, inputs[k], at, 1.25, &changes, &other));
    if (other >= 0)
      tn_check_fail(
          r->check,
          "draw %lld: a change of element %lld of %s changes element %lld of the new parameter of %lld "
          "elements; expected that elements are independent, as TN_UPDATE_ELEMENTWISE says: the elements "
          "behind belong to other parameters",
          (long long)r->draw, (long long)at, names[k], (long long)other, (long long)r->n);
  }
  return TN_OK;
}

static tn_status check_elements(tn_check *check) {
  return optimizer_with_runs(check, optimizer_look_at_neighbours);
}

static tn_status optimizer_look_at_gradient(optimizer_run *r) {
  int64_t changes = 0, other;
  for (int32_t sign = -1; sign <= 1 && changes == 0; sign += 2)
    TN_TRY(optimizer_count_changes(r, r->roles.gradient[0], -1, 9.0 * sign, &changes, &other));
  if (changes == 0 && r->n > 0)
    tn_check_fail(r->check, "draw %lld: the new parameter is the same for every gradient",
                  (long long)r->draw);
  return TN_OK;
}

static tn_status check_gradient(tn_check *check) {
  return optimizer_with_runs(check, optimizer_look_at_gradient);
}

static tn_status optimizer_look_at_rate(optimizer_run *r) {
  int64_t changes, other;
  if (optimizer_input(r, r->roles.lr) == NULL) {
    tn_check_fail(r->check, "the new parameter does not depend on the option lr, which schedules change");
    return TN_OK;
  }
  TN_TRY(optimizer_count_changes(r, r->roles.lr, -1, 0.5, &changes, &other));
  if (changes == 0 && r->n > 0)
    tn_check_fail(r->check, "draw %lld: the new parameter is the same for every lr", (long long)r->draw);
  return TN_OK;
}

static tn_status check_rate(tn_check *check) { return optimizer_with_runs(check, optimizer_look_at_rate); }

tn_status tn_optimizer_cases(tn_suite *suite, const tn_entry *entry, const char *item) {
  const tn_optimizer *optimizer = (const tn_optimizer *)(const void *)entry->item;
  tn_item_case c = {
      .c = {.op = item, .emit = tn_optimizer_emit, .forward_only = true, .draws = TN_ITEM_DRAWS},
      .item = entry->item,
      .registry = suite->site.registry};
  TN_TRY(tn_suite_run_dtype(suite, &c.c, TN_F32));
  TN_TRY(tn_check_run(suite, entry, item, "gradient", check_gradient));
  if (tn_options_find(entry->item, "lr") != NULL) TN_TRY(tn_check_run(suite, entry, item, "lr", check_rate));
  if (optimizer->granularity != TN_UPDATE_ELEMENTWISE) return TN_OK;
  return tn_check_run(suite, entry, item, "elements", check_elements);
}
