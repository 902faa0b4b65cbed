/* core/conformance/device/device_cases.h: cases of a device itself: memory, copies, streams, events, capture,
 * launches. */
#pragma once

#include "core/conformance/device/fixture.h"
#include "core/conformance/results/results.h"

/* "device/memory", "device/zero" ... */
tn_status tn_device_cases_run(tn_suite *suite);
/* "device/failure": a launch that fails. It breaks the device, so it is the last case. */
tn_status tn_device_cases_run_failure(tn_suite *suite);

/* ---- memory_cases.c: without kernels ---- */

tn_status tn_device_case_memory(tn_device_fixture *f);
tn_status tn_device_case_copy(tn_device_fixture *f);
tn_status tn_device_case_zero(tn_device_fixture *f);
tn_status tn_device_case_stream(tn_device_fixture *f);
tn_status tn_device_case_events(tn_device_fixture *f);
tn_status tn_device_case_time(tn_device_fixture *f);
tn_status tn_device_case_capture(tn_device_fixture *f);

/* ---- launch_cases.c ---- */

/* Kernels of an accepted family. Operands, results, workspace and folded memory have addresses that the
 * backend translates; an absent operand has NULL. */
tn_status tn_device_case_launch(tn_device_fixture *f);
/* Ops on tensors of an application, more of them than may be under way. */
tn_status tn_device_case_calls(tn_device_fixture *f);
/* A kernel fails between others on a stream. Waits after it report the failure. The device is broken then. */
tn_status tn_device_case_failure(tn_device_fixture *f);
