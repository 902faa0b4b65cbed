/* core/conformance/device/device_cases.c: the table of the cases of a device. */
#include "core/conformance/device/device_cases.h"

#include <string.h>

typedef struct device_case {
  const char *name;
  tn_status (*run)(tn_device_fixture *f);
} device_case;

static const device_case device_cases[] = {
    {"device/memory", tn_device_case_memory},   {"device/copy", tn_device_case_copy},
    {"device/zero", tn_device_case_zero},       {"device/stream", tn_device_case_stream},
    {"device/events", tn_device_case_events},   {"device/time", tn_device_case_time},
    {"device/capture", tn_device_case_capture}, {"device/launch", tn_device_case_launch},
    {"device/calls", tn_device_case_calls}};
static const device_case failure_case = {"device/failure", tn_device_case_failure};

static tn_status try_device_case(tn_suite *suite, const device_case *one) {
  tn_device *device = suite->site.device;
  tn_device_fixture f = {.device = device, .backend = device->backend, .env = &device->env};
  tn_status status = tn_device_fixture_open(&f);
  if (status == TN_OK) status = one->run(&f);
  tn_text reason = tn_text_new(suite->env);
  if (status != TN_OK) tn_text_addf(&reason, "%s", tn_error_text(f.env));
  tn_device_fixture_close(&f);
  const char *wrong = status != TN_OK ? (reason.v != NULL ? reason.v : "out of memory") : f.wrong;
  status = TN_OK;
  if (wrong != NULL)
    status = tn_suite_fail(suite, one->name, wrong);
  else if (f.lacking != NULL)
    status = tn_suite_lack(suite, one->name, f.lacking);
  else
    suite->passed++;
  tn_text_free(&reason);
  return status;
}

static tn_status run_device_case(tn_suite *suite, const device_case *one) {
  const char *only = suite->filter.op;
  size_t failed = suite->failed.n;
  if (only[0] != '\0' && strcmp(only, "device") != 0 && strcmp(only, one->name) != 0) return TN_OK;
  if (!tn_suite_begin(suite, one->name)) return TN_OK;
  TN_TRY(try_device_case(suite, one));
  return suite->failed.n > failed && one != &failure_case ? tn_suite_check_device(suite, one->name) : TN_OK;
}

tn_status tn_device_cases_run(tn_suite *suite) {
  for (size_t i = 0; i < sizeof device_cases / sizeof *device_cases; i++)
    TN_TRY(run_device_case(suite, &device_cases[i]));
  return TN_OK;
}

tn_status tn_device_cases_run_failure(tn_suite *suite) {
  return suite->options->plugin == NULL ? run_device_case(suite, &failure_case) : TN_OK;
}
