/* core/conformance/suite.c: every op, dtype, draw; and the list of what is known to be missing. */
#include "core/conformance/suite.h"

#include <string.h>

#include "core/conformance/trial/schema_case.h"

/* ---- names of cases ---- */

static const char *name_of(tn_suite *suite, const tn_trial *t) {
  return tn_arena_printf(&suite->arena, "%s/%s/%lld%s", t->c->op, tn_dtype_name(t->dtype), (long long)t->draw,
                         t->gradient ? "/gradient" : "");
}

bool tn_suite_wants(const tn_suite *suite, const tn_trial *t) {
  const tn_suite_filter *f = &suite->filter;
  if (f->op[0] != '\0' && strcmp(f->op, t->c->op) != 0) return false;
  if (f->dtype != TN_ANY && f->dtype != t->dtype) return false;
  return f->gradient < 0 || (f->gradient == 1) == t->gradient;
}

/* ---- outcomes ---- */

tn_status tn_suite_fail(tn_suite *suite, const char *name, const char *reason) {
  tn_suite_failure failure = {name, tn_arena_strdup(&suite->arena, reason)};
  if (name == NULL || failure.reason == NULL) return TN_ENOMEM;
  if (suite->options->say != NULL) {
    const char *line = tn_arena_printf(&suite->arena, "%s: %s", name, reason);
    if (line == NULL) return TN_ENOMEM;
    suite->options->say(suite->options->user, line);
  }
  return tn_vec_push(suite->env, &suite->failed, failure);
}

void tn_suite_begin(const tn_suite *suite, const char *name) {
  if (suite->options->begin != NULL) suite->options->begin(suite->options->user, name);
}

tn_status tn_suite_look(tn_suite *suite, const char *name) {
  tn_device *device = suite->site.device;
  void *compute = device->streams[TN_STREAM_COMPUTE];
  if (suite->broken || device->backend->stream_wait(&device->env, compute) == TN_OK) return TN_OK;
  suite->broken = true;
  const char *reason = tn_arena_printf(
      &suite->arena, "it broke in %s and does nothing more, so no case behind that one was tried: %s", name,
      tn_error_text(&device->env));
  return reason != NULL ? tn_suite_fail(suite, "device", reason) : TN_ENOMEM;
}

static tn_suite_known *find_known(tn_suite *suite, const tn_trial *t) {
  for (size_t i = 0; i < suite->known.n; i++) {
    tn_suite_known *k = &suite->known.v[i];
    if (tn_text_glob(k->op, t->c->op) && tn_text_glob(k->dtype, tn_dtype_name(t->dtype))) return k;
  }
  return NULL;
}

/* An op that lacks a dtype lacks it in every draw: one line for all of them. */
static bool is_noted(const tn_suite *suite, const char *name) {
  size_t n = suite->unsupported.n;
  return n > 0 && strcmp(suite->unsupported.v[n - 1].name, name) == 0;
}

static tn_status note_unsupported(tn_suite *suite, const tn_trial *t, const char *reason) {
  const char *name = tn_arena_printf(&suite->arena, "%s/%s", t->c->op, tn_dtype_name(t->dtype));
  tn_suite_failure one = {name, tn_arena_strdup(&suite->arena, reason)};
  tn_suite_known *known = find_known(suite, t);
  if (name == NULL || one.reason == NULL) return TN_ENOMEM;
  if (known != NULL) known->met = true;
  if (is_noted(suite, name)) return TN_OK;
  TN_TRY(tn_vec_push(suite->env, &suite->unsupported, one));
  if (known != NULL || suite->options->unsupported == NULL) return TN_OK;
  return tn_suite_fail(suite, name_of(suite, t), reason);
}

tn_status tn_suite_note(tn_suite *suite, const tn_trial *t, const tn_verdict *verdict) {
  suite->bits = tn_hash_bytes(suite->bits, &verdict->bits, sizeof verdict->bits);
  switch (verdict->what) {
  case TN_VERDICT_PASSED: suite->passed++; return TN_OK;
  case TN_VERDICT_FAILED: return tn_suite_fail(suite, name_of(suite, t), verdict->text);
  case TN_VERDICT_UNSUPPORTED: return note_unsupported(suite, t, verdict->text);
  default: return TN_OK;
  }
}

/* Which kernel took something. A failure to remember it shows as a kernel that was never chosen. */
static void note_launch(void *context, const char *kernel, const char *plugin) {
  tn_suite *suite = context;
  for (size_t i = 0; i < suite->kernels.n; i++)
    if (strcmp(suite->kernels.v[i].name, kernel) == 0 && strcmp(suite->kernels.v[i].plugin, plugin) == 0) {
      suite->kernels.v[i].launches++;
      return;
    }
  tn_suite_kernel one = {kernel, plugin, 1};
  if (tn_vec_push(suite->env, &suite->kernels, one) != TN_OK)
    tn_logf(suite->env, TN_LOG_WARN, "kernel %s is not counted: out of memory", kernel);
}

/* ---- trials ---- */

static tn_status try_one(tn_suite *suite, const tn_trial *t) {
  const tn_trial_watch watch = {note_launch, suite};
  tn_verdict verdict;
  if (suite->broken || !tn_suite_wants(suite, t)) return TN_OK;
  const char *name = name_of(suite, t);
  if (name == NULL) return TN_ENOMEM;
  tn_suite_begin(suite, name);
  TN_TRY(tn_trial_run(&suite->site, t, &watch, &verdict));
  TN_TRY(tn_suite_note(suite, t, &verdict));
  return verdict.what == TN_VERDICT_FAILED ? tn_suite_look(suite, name) : TN_OK;
}

tn_status tn_suite_run_dtype(tn_suite *suite, const tn_case *c, int32_t dtype) {
  int64_t first = suite->filter.draw < 0 ? 0 : suite->filter.draw;
  int64_t end = suite->filter.draw < 0 ? suite->draws : first + 1;
  for (int64_t draw = first; draw < end; draw++)
    for (int32_t gradient = 0; gradient <= tn_dtype_is_float(dtype); gradient++) {
      tn_trial t = {c, dtype, draw, gradient == 1};
      TN_TRY(try_one(suite, &t));
    }
  return TN_OK;
}

tn_status tn_suite_run_case(tn_suite *suite, const tn_case *c) {
  for (int32_t dtype = TN_I32; dtype <= TN_F64; dtype++) {
    if (!tn_dtype_is_float(dtype) && c->dtypes != TN_CASE_NUMBERS) continue;
    TN_TRY(tn_suite_run_dtype(suite, c, dtype));
  }
  return TN_OK;
}

static const tn_case *const families[] = {tn_pointwise_cases, tn_fill_cases,  tn_reduce_cases,
                                          tn_product_cases,   tn_norm_cases,  tn_loss_cases,
                                          tn_movement_cases,  tn_update_cases};
enum { FAMILIES = sizeof families / sizeof *families };

tn_status tn_suite_run_core(tn_suite *suite) {
  TN_TRY(tn_suite_run_device(suite));
  for (size_t f = 0; f < FAMILIES; f++)
    for (const tn_case *c = families[f]; c->op != NULL; c++) TN_TRY(tn_suite_run_case(suite, c));
  return tn_suite_run_failure(suite);
}

const tn_case *tn_case_find(const char *op) {
  for (size_t f = 0; f < FAMILIES; f++)
    for (const tn_case *c = families[f]; c->op != NULL; c++)
      if (strcmp(c->op, op) == 0) return c;
  return NULL;
}
