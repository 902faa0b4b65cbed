/* core/conformance/results/results.c: records the outcomes of cases. */
#include "core/conformance/results/results.h"

#include <string.h>

const char *tn_suite_trial_name(tn_suite *suite, const tn_trial *t) {
  return tn_arena_printf(&suite->arena, "%s/%s/%lld%s", t->c->op, tn_dtype_name(t->dtype), (long long)t->draw,
                         t->gradient ? "/gradient" : "");
}

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

bool tn_suite_begin(tn_suite *suite, const char *name) {
  if (suite->broken_in != NULL) return false;
  if (!suite->entered) {
    suite->entered = strcmp(name, suite->options->after) == 0;
    return false;
  }
  if (suite->options->begin != NULL) suite->options->begin(suite->options->user, name);
  return true;
}

tn_status tn_suite_check_device(tn_suite *suite, const char *name) {
  tn_device *device = suite->site.device;
  void *compute = device->streams[TN_STREAM_COMPUTE];
  if (suite->broken_in != NULL || device->backend->stream_wait(&device->env, compute) == TN_OK) return TN_OK;
  suite->broken_in = name;
  const char *reason = tn_arena_printf(&suite->arena, "it broke in %s, so no later case was run: %s", name,
                                       tn_error_text(&device->env));
  return reason != NULL ? tn_suite_fail(suite, "device", reason) : TN_ENOMEM;
}

static tn_suite_known *find_known(tn_suite *suite, const char *op, const char *dtype) {
  for (size_t i = 0; i < suite->known.n; i++) {
    tn_suite_known *k = &suite->known.v[i];
    if (tn_text_glob(k->op, op) && tn_text_glob(k->dtype, dtype)) return k;
  }
  return NULL;
}

/* An op without a dtype lacks it in every draw, so all draws share one line. */
static bool is_recorded(const tn_suite *suite, const char *name) {
  size_t n = suite->unsupported.n;
  return n > 0 && strcmp(suite->unsupported.v[n - 1].name, name) == 0;
}

/* `shown`: the name of the case in a failure. */
static tn_status record_unsupported(tn_suite *suite, const char *op, const char *dtype, const char *shown,
                                    const char *reason) {
  const char *name = tn_arena_printf(&suite->arena, "%s/%s", op, dtype);
  tn_suite_failure one = {name, tn_arena_strdup(&suite->arena, reason)};
  tn_suite_known *known = find_known(suite, op, dtype);
  if (name == NULL || one.reason == NULL) return TN_ENOMEM;
  if (known != NULL) known->met = true;
  if (is_recorded(suite, name)) return TN_OK;
  TN_TRY(tn_vec_push(suite->env, &suite->unsupported, one));
  if (known != NULL || suite->options->unsupported == NULL) return TN_OK;
  return tn_suite_fail(suite, shown, reason);
}

tn_status tn_suite_lack(tn_suite *suite, const char *name, const char *reason) {
  const char *slash = strchr(name, '/'),
             *item = tn_arena_printf(&suite->arena, "%.*s", (int)(slash - name), name);
  return item != NULL ? record_unsupported(suite, item, slash + 1, name, reason) : TN_ENOMEM;
}

static tn_status count_trial(tn_suite *suite, const tn_trial *t) {
  for (size_t i = suite->counts.n; i > 0; i--) {
    tn_suite_count *c = &suite->counts.v[i - 1];
    if (c->dtype != t->dtype || strcmp(c->op, t->c->op) != 0) continue;
    c->trials++;
    return TN_OK;
  }
  const tn_suite_count one = {t->c->op, t->dtype, 1};
  return tn_vec_push(suite->env, &suite->counts, one);
}

tn_status tn_suite_record(tn_suite *suite, const tn_trial *t, const tn_verdict *verdict) {
  suite->bits = tn_hash_bytes(suite->bits, &verdict->bits, sizeof verdict->bits);
  if (verdict->what <= TN_VERDICT_FAILED) TN_TRY(count_trial(suite, t));
  switch (verdict->what) {
  case TN_VERDICT_PASSED: suite->passed++; return TN_OK;
  case TN_VERDICT_FAILED: return tn_suite_fail(suite, tn_suite_trial_name(suite, t), verdict->text);
  case TN_VERDICT_UNSUPPORTED:
    return record_unsupported(suite, t->c->op, tn_dtype_name(t->dtype), tn_suite_trial_name(suite, t),
                              verdict->text);
  default: return TN_OK;
  }
}

/* A kernel that could not be recorded is reported as never chosen. */
void tn_suite_count_launch(void *context, const char *kernel, const char *plugin) {
  tn_suite *suite = context;
  for (size_t i = 0; i < suite->kernels.n; i++)
    if (strcmp(suite->kernels.v[i].name, kernel) == 0 && strcmp(suite->kernels.v[i].plugin, plugin) == 0) {
      suite->kernels.v[i].launches++;
      return;
    }
  tn_suite_kernel one = {kernel, plugin, 1};
  if (tn_vec_push(suite->env, &suite->kernels, one) != TN_OK)
    tn_logf(suite->env, TN_LOG_WARN, "kernel %s was not recorded: out of memory", kernel);
}
