/* tests/conformance/fixture.h: an env and the core's ops for tests of graphs, and devices. */
#pragma once

#include "core/exec/device/device.h"

typedef struct fixture {
  tn_env env;
  tn_error_record record;
  tn_registry *registry;
  struct tn_op_table *ops;
} fixture;

tn_status fixture_open(fixture *f);
void fixture_close(fixture *f);
/* The first device of a backend, whose plugin file is opened first. */
tn_status fixture_device(fixture *f, const char *backend, const char *file, tn_device **device);
