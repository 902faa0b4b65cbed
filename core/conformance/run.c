/* core/conformance/run.c: tn_conformance_run. */

#include "core/conformance/suite.h"
#include "core/tensor/tensor.h"

static tn_status run_suite(tn_suite *suite, char **json) {
  TN_TRY(tn_suite_read_filter(suite));
  TN_TRY(tn_suite_read_known(suite));
  TN_TRY(suite->options->plugin != NULL ? tn_suite_run_plugin(suite) : tn_suite_run_core(suite));
  if (!suite->entered)
    return tn_failf(
        suite->env, TN_EINVAL,
        "after '%s': the suite has no such case; expected one as in relu/f32/3 or relu/f32/3/gradient, "
        "of the same draws",
        suite->options->after);
  if (suite->options->after == NULL &&
      suite->passed + (int64_t)suite->failed.n + (int64_t)suite->unsupported.n == 0)
    return tn_failf(suite->env, TN_EINVAL, "'%s': there is no such case",
                    suite->options->only != NULL ? suite->options->only : suite->options->plugin);
  return tn_suite_report(suite, json);
}

tn_status tn_conformance_run(tn_device *device, const tn_conformance_options *given, char **json) {
  tn_conformance_options all;
  const tn_conformance_options *options = &all;
  TN_ENTER(device);
  TN_NEED(device, json, "json");
  *json = NULL;
  TN_TRY(TN_READ_STRUCT(device, tn_conformance_options, only, given, &all));
  tn_suite suite = {.env = &device->env, .options = options, .arena = tn_arena_new(&device->env)};
  suite.site = (tn_trial_site){.env = &device->env,
                               .registry = device->use->context->registry,
                               .ops = device->use->ops,
                               .device = device};
  suite.site.settings = options->settings;
  suite.entered = options->after == NULL;
  suite.bits = TN_HASH_START;
  suite.draws = options->draws > 0        ? options->draws
                : options->plugin != NULL ? TN_PLUGIN_DRAWS
                                          : TN_TRIAL_DRAWS;
  int64_t guard = device->target.guard_bytes;
  bool uncaptured = device->uncaptured;
  device->target.guard_bytes = TN_TRIAL_GUARD;
  device->uncaptured = uncaptured || options->uncaptured != 0;
  tn_status status = run_suite(&suite, json);
  device->target.guard_bytes = guard;
  device->uncaptured = uncaptured;
  tn_vec_free(suite.env, &suite.known);
  tn_vec_free(suite.env, &suite.failed);
  tn_vec_free(suite.env, &suite.unsupported);
  tn_vec_free(suite.env, &suite.kernels);
  tn_vec_free(suite.env, &suite.counts);
  tn_arena_free(&suite.arena);
  return status;
}
