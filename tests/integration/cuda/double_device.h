/* tests/integration/cuda/double_device.h: the device of the doubles, for tests that use the core without the
 * program. PLUGIN and DOUBLES are the backend's plugin and the folder of the doubles. */
#pragma once

#include "tests/conformance/fixture.h"

static tn_status double_device_configure(tn_env *env, void *context, tn_options *options) {
  (void)context;
  return tn_options_set_text(env, options, "libraries", DOUBLES);
}

/* The caller destroys the device, and closes the fixture. */
static void double_device_open(fixture *f, tn_device **device) {
  static const char *const names[] = {"cuda"};
  const tn_device_request request = {
      .names = names, .n_names = 1, .threads = 2, .configure = double_device_configure};
  if (fixture_open(f) != TN_OK || tn_registry_load(f->registry, &f->env, PLUGIN) != TN_OK ||
      tn_device_create(&f->env, f->registry, &request, device) != TN_OK)
    fail_msg("%s", tn_error_text(&f->env));
}
