/* core/conformance/results/report.c: the results as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/conformance/results/results.h"
#include "core/tensor/tensor.h"

static json_t *failures_json(const tn_suite_failure *v, size_t n) {
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++)
    json_array_append_new(list, json_pack("{s:s, s:s}", "case", v[i].name, "reason", v[i].reason));
  return list;
}

static json_t *stale_json(const tn_suite *suite) {
  json_t *list = json_array();
  for (size_t i = 0; i < suite->known.n; i++)
    if (!suite->known.v[i].met) json_array_append_new(list, json_string(suite->known.v[i].line));
  return list;
}

static json_t *kernels_json(const tn_suite *suite) {
  json_t *list = json_array();
  for (size_t i = 0; i < suite->kernels.n; i++) {
    const tn_suite_kernel *k = &suite->kernels.v[i];
    json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "name", k->name, "plugin", k->plugin, "launches",
                                          (json_int_t)k->launches));
  }
  return list;
}

/* {"relu/f32": 16} */
static json_t *counts_json(const tn_suite *suite) {
  json_t *all = json_object();
  for (size_t i = 0; i < suite->counts.n; i++) {
    const tn_suite_count *c = &suite->counts.v[i];
    char name[160];
    snprintf(name, sizeof name, "%s/%s", c->op, tn_dtype_name(c->dtype));
    json_object_set_new(all, name, json_integer((json_int_t)c->trials));
  }
  return all;
}

static json_t *report_json(const tn_suite *suite) {
  const tn_device *device = suite->site.device;
  char bits[17];
  snprintf(bits, sizeof bits, "%016llx", (unsigned long long)suite->bits);
  return json_pack("{s:s, s:s, s:s, s:s?, s:I, s:o, s:o, s:o, s:o, s:o}", "backend", device->use->backend,
                   "device", device->target.properties.name, "bits", bits, "broken_in", suite->broken_in,
                   "passed", (json_int_t)suite->passed, "failed",
                   failures_json(suite->failed.v, suite->failed.n), "unsupported",
                   failures_json(suite->unsupported.v, suite->unsupported.n), "stale",
                   tn_suite_is_partial(suite) ? json_array() : stale_json(suite), "kernels",
                   kernels_json(suite), "cases", counts_json(suite));
}

tn_status tn_suite_report(const tn_suite *suite, char **json) {
  json_t *report = report_json(suite);
  char *dumped = report != NULL ? json_dumps(report, JSON_COMPACT) : NULL;
  json_decref(report);
  *json = dumped != NULL ? tn_strdup(suite->env, dumped) : NULL;
  free(dumped);
  return *json != NULL ? TN_OK : tn_failf(suite->env, TN_ENOMEM, "out of memory for the report");
}
