/* core/conformance/suite.c: every op, dtype and draw. */
#include "core/conformance/suite.h"

#include <ctype.h>
#include <string.h>

#include "core/base/element.h"
#include "core/conformance/cases/schema_case.h"
#include "core/conformance/device/device_cases.h"
#include "core/conformance/trial/finite_differences.h"

enum { FIRST_DTYPE = 1 }; /* of tn_dtype_order: all but bool are drawn */

/* ---- quick ---- */

/* Whether a pattern names the op: "x, w" and "relu(conv2d(x, w))" have words. */
static bool pattern_names(const char *pattern, const char *op) {
  size_t n = strlen(op);
  for (const char *at = strstr(pattern, op); at != NULL; at = strstr(at + 1, op)) {
    bool begins = at == pattern || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
    if (begins && !(isalnum((unsigned char)at[n]) || at[n] == '_')) return true;
  }
  return false;
}

static bool has_kernel(const tn_suite *suite, const char *op) {
  const tn_target *target = &suite->site.device->target;
  for (int32_t f = 0; f < target->n_families; f++) {
    const tn_entry *entries;
    int32_t n = 0;
    if (tn_registry_kernels(suite->site.registry, suite->env, target->families[f], &entries, &n) != TN_OK)
      return true;
    for (int32_t i = 0; i < n; i++)
      if (pattern_names(((const tn_kernel *)(const void *)entries[i].item)->pattern, op)) return true;
  }
  return false;
}

/* Of a case that draws its operands, the letter T counts: others are of indices or of sums. */
static bool accepts(const tn_suite *suite, const tn_case *c, const tn_op_def *def, int32_t dtype) {
  const tn_op_def *own = NULL;
  if (def != NULL) return tn_schema_accepts(def, dtype);
  if (tn_dtype_is_float(dtype) || c->dtypes != TN_CASE_NUMBERS) return tn_dtype_is_float(dtype);
  if (tn_op_table_find(suite->site.ops, suite->env, c->op, &own) == TN_OK)
    return (own->dtypes['T' - 'A'] & 1u << dtype) != 0;
  tn_error_clear(suite->env);
  return true;
}

/* Quick: the name of an op picks one of its float dtypes and one of its integers; an op that has a kernel
 * runs in f32 and i32 as well. */
static bool leaves_out(const tn_suite *suite, const tn_case *c, const tn_op_def *def, int32_t dtype) {
  uint64_t place = tn_hash_text(TN_HASH_START, c->op) >> 32, count = 0;
  if (suite->options->quick == 0) return false;
  bool before = true;
  for (int32_t i = FIRST_DTYPE; i < TN_DTYPES - 1; i++) {
    int32_t other = tn_dtype_order[i];
    before = before && other != dtype;
    if (tn_dtype_is_float(other) != tn_dtype_is_float(dtype) || !accepts(suite, c, def, other)) continue;
    place += before;
    count++;
  }
  if (place % count == 0) return false;
  return !(dtype == TN_F32 || dtype == TN_I32) || !has_kernel(suite, c->op);
}

/* Whether a case runs in a dtype. `def`: the op whose schema says so; NULL: the case does. */
static bool runs_in(const tn_suite *suite, const tn_case *c, const tn_op_def *def, int32_t dtype) {
  return accepts(suite, c, def, dtype) && !leaves_out(suite, c, def, dtype);
}

/* ---- trials ---- */

static tn_status run_trial(tn_suite *suite, const tn_trial *t) {
  const tn_trial_watch watch = {tn_suite_count_launch, suite};
  tn_verdict verdict;
  if (!tn_suite_selects(suite, t)) return TN_OK;
  const char *name = tn_suite_trial_name(suite, t);
  if (name == NULL) return TN_ENOMEM;
  if (!tn_suite_begin(suite, name)) return TN_OK;
  TN_TRY(tn_trial_run(&suite->site, t, &watch, &verdict));
  TN_TRY(tn_suite_record(suite, t, &verdict));
  return verdict.what == TN_VERDICT_FAILED ? tn_suite_check_device(suite, name) : TN_OK;
}

/* The draws of a case: `first` to `end` - 1. */
static void choose_draws(const tn_suite *suite, const tn_case *c, int64_t *first, int64_t *end) {
  int64_t draws = c->draws > 0 && c->draws < suite->draws ? c->draws : suite->draws;
  *first = suite->filter.draw < 0 ? 0 : suite->filter.draw;
  *end = suite->filter.draw < 0 ? draws : *first + 1;
}

tn_status tn_suite_run_dtype(tn_suite *suite, const tn_case *c, int32_t dtype) {
  int64_t first, end;
  choose_draws(suite, c, &first, &end);
  for (int64_t draw = first; draw < end; draw++)
    for (int32_t gradient = 0; gradient <= tn_dtype_is_float(dtype); gradient++) {
      tn_trial t = {c, dtype, draw, gradient == 1};
      TN_TRY(run_trial(suite, &t));
    }
  return TN_OK;
}

tn_status tn_suite_run_differences(tn_suite *suite, const tn_case *c) {
  int64_t first, end;
  choose_draws(suite, c, &first, &end);
  for (int64_t draw = first; draw < end; draw++) {
    const tn_trial trial = {c, TN_F64, draw, true};
    tn_verdict verdict;
    if (!tn_suite_selects(suite, &trial)) continue;
    const char *name = tn_suite_trial_name(suite, &trial);
    if (name == NULL) return TN_ENOMEM;
    if (!tn_suite_begin(suite, name)) continue;
    TN_TRY(tn_finite_differences_run(&suite->site, &trial, &verdict));
    TN_TRY(tn_suite_record(suite, &trial, &verdict));
    if (verdict.what == TN_VERDICT_FAILED) TN_TRY(tn_suite_check_device(suite, name));
  }
  return TN_OK;
}

static tn_status run_case(tn_suite *suite, const tn_case *c) {
  for (int32_t i = FIRST_DTYPE; i < TN_DTYPES - 1; i++)
    if (runs_in(suite, c, NULL, tn_dtype_order[i])) TN_TRY(tn_suite_run_dtype(suite, c, tn_dtype_order[i]));
  return TN_OK;
}

tn_status tn_suite_run_schema(tn_suite *suite, const char *op) {
  const tn_op_def *def = NULL;
  const tn_case c = {op, tn_schema_emit, TN_FILL_ANY, TN_CASE_NUMBERS};
  TN_TRY(tn_op_table_find(suite->site.ops, suite->env, op, &def));
  for (int32_t i = FIRST_DTYPE; i < TN_DTYPES - 1; i++)
    if (runs_in(suite, &c, def, tn_dtype_order[i])) TN_TRY(tn_suite_run_dtype(suite, &c, tn_dtype_order[i]));
  return runs_in(suite, &c, def, TN_F64) ? tn_suite_run_differences(suite, &c) : TN_OK;
}

/* Ops of the core without a case of their own: those whose schema says all that operands need. */
static tn_status run_ops_without_case(tn_suite *suite) {
  const tn_entry *entries;
  int32_t n;
  TN_TRY(tn_registry_list(suite->site.registry, suite->env, TN_OP, &entries, &n));
  for (int32_t i = 0; i < n; i++)
    if (strcmp(entries[i].plugin, "core") == 0 && tn_case_find(entries[i].item->name) == NULL)
      TN_TRY(tn_suite_run_schema(suite, entries[i].item->name));
  return TN_OK;
}

tn_status tn_suite_run_core(tn_suite *suite) {
  TN_TRY(tn_device_cases_run(suite));
  for (int32_t i = 0; tn_case_tables[i] != NULL; i++)
    for (const tn_case *c = tn_case_tables[i]; c->op != NULL; c++) TN_TRY(run_case(suite, c));
  TN_TRY(run_ops_without_case(suite));
  return tn_device_cases_run_failure(suite);
}
