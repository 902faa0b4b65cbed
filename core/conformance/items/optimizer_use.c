/* core/conformance/items/optimizer_use.c: drawn updates of a parameter by an optimizer. */
#include <string.h>

#include "core/config/options/options.h"
#include "core/conformance/items/items.h"
#include "core/graph/build/emit_optimizer.h"
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
  if (option != NULL && (option->flags & TN_OPT_SCHEDULABLE)) return TN_OK; /* a number */
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
  tn_status status = tn_optimizer_update(b, u->optimizer, u->options);
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
    bool fits = s->type.rank == 0 || tn_type_equal(&s->type, &u->type);
    if (u->optimizer->granularity == TN_UPDATE_ELEMENTWISE && !fits)
      return tn_failf(
          env, TN_EABI,
          "state '%s' is neither of the parameter's type nor a scalar, as an elementwise optimizer "
          "requires",
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
  for (int32_t i = 0; i < u->use.n_states && d->n_results < TN_CASE_RESULTS; i++) {
    const tn_item_state *s = &u->use.states[i];
    d->results[d->n_results++] = s->value;
    u->roles.state[i].name = s->name;
    u->roles.state[i].initial = s->initial;
    u->roles.state[i].input = s->input;
    u->roles.n_states = i + 1;
  }
  return TN_OK;
}

tn_val tn_optimizer_emit(tn_draw *d, const tn_case *c) {
  const tn_item_case *ic = (const tn_item_case *)c;
  optimizer_use u = {.use = {.d = d,
                             .registry = ic->registry,
                             .item = ic->item,
                             .from_initial = !ic->drawn_states,
                             .scope = ""},
                     .optimizer = (const tn_optimizer *)(const void *)ic->item,
                     .label = c->op,
                     .roles = {.lr = -1, .gradient = {-1, -1, -1}}};
  if (d->style == TN_STYLE_SPECIAL) d->style = TN_STYLE_ORDINARY;
  tn_status status = optimizer_emit_updates(&u);
  if (ic->roles != NULL) *ic->roles = u.roles;
  if (status != TN_OK) tn_builder_fail(d->b, status);
  return status == TN_OK ? d->results[0] : 0;
}
