/* core/conformance/items/optimizer_cases.c: optimizers: updates on the device against the reference, behind a
 * checkpoint, and the operands on which the new parameter depends. */
#include "core/config/options/options.h"
#include "core/conformance/items/items.h"
#include "core/conformance/suite.h"
#include "tenon/plugin/optimizer.h"

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

/* Draws of one update are left out: the first update of some optimizers only takes its measure. */
static tn_status optimizer_with_runs(tn_check *check, tn_status (*look)(optimizer_run *r)) {
  for (int64_t draw = 1; draw < 8 && check->wrong[0] == '\0'; draw++) {
    if (draw % TN_OPTIMIZER_UPDATES == 0) continue;
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
  tn_item_case c = {.c = {.op = item,
                          .emit = tn_optimizer_emit,
                          .forward_only = true,
                          .successive = true,
                          .draws = TN_ITEM_DRAWS},
                    .item = entry->item,
                    .registry = suite->site.registry};
  TN_TRY(tn_suite_run_dtype(suite, &c.c, TN_F32));
  TN_TRY(tn_check_run(suite, entry, item, "gradient", check_gradient));
  if (tn_options_find(entry->item, "lr") != NULL) TN_TRY(tn_check_run(suite, entry, item, "lr", check_rate));
  TN_TRY(tn_check_run(suite, entry, item, "checkpoint", tn_optimizer_check_checkpoint));
  if (optimizer->granularity != TN_UPDATE_ELEMENTWISE) return TN_OK;
  return tn_check_run(suite, entry, item, "elements", check_elements);
}
