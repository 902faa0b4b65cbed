#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/required_kernels.h"
#include "tests/unit/exec/far.h"
#include "core/base/system/system.h"
#include "core/plugin/handles.h"

static const tn_backend second = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "second", "for tests"),
                                  .extends = "quick"};
/* Backends without kernels, one of which does not say that its memory is the host's. */
static tn_status describe_nothing(tn_env *env, void *self, int32_t index, tn_device_properties *properties) {
  (void)env, (void)self, (void)index, (void)properties;
  return TN_OK;
}
static const tn_backend bare = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "bare", "for tests")};
static const tn_backend vague = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "vague", "for tests"),
                                 .properties = describe_nothing};
static const tn_kernel bare_full = REQUIRED_KERNEL("bare", "zeros", "pointwise+");
REQUIRED_KERNELS("slow");
static const tn_item *const items[] = {&far_backend.item, &near_backend.item, &quick_backend.item,
                                       &second.item,      &bare.item,         &vague.item,
                                       &bare_full.item,   REQUIRED_ITEMS,     NULL};
static const tn_plugin plugin = {sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "made_up", "1", "MIT",
                                 TN_BUILD_TEXT,     items};

static tn_error_record record;
static tn_env env;
static tn_registry *registry;
static far_report report;
static char logged[512];
static bool absent, wrong; /* options of the configuration */

static void write_log(void *context, int32_t level, const char *line) {
  (void)context;
  if (level <= TN_LOG_WARN) snprintf(logged, sizeof(logged), "%s", line);
}

static int start(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  record.sink = (tn_log_sink){NULL, write_log, TN_LOG_DEBUG};
  report = (far_report){0};
  absent = wrong = false;
  logged[0] = '\0';
  assert_int_equal(tn_registry_create(&env, "", &registry), TN_OK);
  assert_int_equal(tn_registry_add(registry, &env, &plugin, ""), TN_OK);
  return 0;
}

static int stop(void **state) {
  (void)state;
  tn_registry_destroy(registry);
  assert_int_equal(report.opened, report.closed);
  assert_true(report.devices == 0 && report.streams == 0 && report.events == 0 && report.blocks == 0);
  return 0;
}

static tn_status configure(tn_env *where, void *context, tn_options *options) {
  (void)context;
  if (tn_options_find(options->item, "report") == NULL) return TN_OK;
  if (wrong) return tn_options_set_text(where, options, "reprot", "1");
  if (absent && strcmp(options->item->name, "far") == 0)
    TN_TRY(tn_options_set_int(where, options, "absent", 1));
  return tn_options_set_int(where, options, "report", (int64_t)(uintptr_t)&report);
}

static tn_status open_first(const char *a, const char *b, int32_t index, tn_device **device) {
  const char *names[] = {a, b};
  tn_device_request request = {names, b != NULL ? 2 : 1, index, 5, configure, NULL};
  return tn_device_create(&env, registry, &request, device);
}

static void a_family_is_opened_with_its_streams_and_options(void **state) {
  (void)state;
  tn_device *device;
  assert_int_equal(open_first("near", NULL, 1, &device), TN_OK);
  assert_string_equal(device->backend->item.name, "near");
  assert_null(device->extension);
  assert_int_equal(report.streams, TN_STREAMS);
  assert_int_equal(report.threads, 5);
  assert_int_equal(device->target.n_families, 3);
  assert_string_equal(device->target.families[0], "near");
  assert_string_equal(device->target.families[1], "quick");
  assert_string_equal(device->target.families[2], "slow");
  assert_int_equal(device->target.properties.threads, 3);
  tn_device_destroy(device);
}

static void unset_threads_are_all_processors(void **state) {
  (void)state;
  const char *name = "near";
  tn_device_request request = {&name, 1, 0, 0, configure, NULL};
  tn_device *device;
  assert_int_equal(tn_device_create(&env, registry, &request, &device), TN_OK);
  assert_int_equal(report.threads, tn_cpu_count());
  assert_int_equal(device->target.properties.memory_bytes, tn_memory_total());
  tn_device_destroy(device);
}

/* The properties of a device need no open device. */
static void a_closed_device_has_a_target_and_nothing_else(void **state) {
  (void)state;
  const char *names[] = {"near"};
  tn_device_request request = {names, 1, 1, 5, configure, NULL};
  request.closed = true;
  tn_device *device;
  assert_int_equal(tn_device_create(&env, registry, &request, &device), TN_OK);
  assert_int_equal(report.opened, 1);
  assert_true(report.devices == 0 && report.streams == 0);
  assert_null(device->device);
  assert_int_equal(device->target.properties.threads, 3);
  assert_int_equal(device->target.n_families, 3);
  tn_device_destroy(device);
}

static void what_the_request_asks_of_kernels_holds_for_the_fallback(void **state) {
  (void)state;
  const char *names[] = {"far", "near"};
  tn_device_request request = {names, 2, 0, 5, configure, NULL};
  request.fallback = TN_FALLBACK_ALLOW;
  for (int i = 0; i < 2; i++) {
    tn_device *device;
    request.deterministic = i == 1;
    assert_int_equal(tn_device_create(&env, registry, &request, &device), TN_OK);
    assert_non_null(device->fallback);
    assert_int_equal(device->target.deterministic, i);
    assert_int_equal(device->fallback->target.deterministic, i);
    tn_device_destroy(device);
  }
}

static void an_extension_brings_its_family(void **state) {
  (void)state;
  tn_device *device;
  assert_int_equal(open_first("quick", NULL, 0, &device), TN_OK);
  assert_string_equal(device->backend->item.name, "near");
  assert_string_equal(device->target.families[0], "quick");
  assert_string_equal(device->target.families[1], "near");
  assert_int_equal(report.opened, 2);
  tn_device_destroy(device);
}

static void what_cannot_be_used_is_passed_over_with_its_reason(void **state) {
  (void)state;
  tn_device *device;
  absent = true;
  assert_int_equal(open_first("far", "near", 0, &device), TN_OK);
  assert_string_equal(device->backend->item.name, "near");
  assert_string_equal(logged, "backend 'far': it is far away; trying 'near'");
  tn_device_destroy(device);
}

static void all_reasons_are_told_when_none_is_left(void **state) {
  (void)state;
  tn_device *device;
  absent = true;
  assert_int_equal(open_first("far", "mars", 0, &device), TN_EUNAVAILABLE);
  assert_null(device);
  assert_non_null(
      strstr(tn_error_text(&env), "none of the backends can be used: backend 'far': it is far away; "));
  assert_non_null(strstr(tn_error_text(&env), "mars"));
}

static void a_wrong_option_is_not_passed_over(void **state) {
  (void)state;
  tn_device *device;
  wrong = true;
  assert_int_equal(open_first("far", "near", 0, &device), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(&env), "backend 'far'"));
  assert_non_null(strstr(tn_error_text(&env), "reprot"));
}

static void a_device_that_is_not_there_is_named(void **state) {
  (void)state;
  tn_device *device;
  assert_int_equal(open_first("near", NULL, 2, &device), TN_EUNAVAILABLE);
  assert_string_equal(tn_error_text(&env),
                      "backend 'near': device 2 does not exist, expected an index below 2");
}

static void only_a_family_can_be_extended(void **state) {
  (void)state;
  tn_device *device;
  assert_int_equal(open_first("second", NULL, 0, &device), TN_EABI);
  assert_non_null(strstr(tn_error_text(&env), "it extends 'quick', which extends 'near'"));
}

static void the_kernels_that_are_missing_are_named_at_once(void **state) {
  (void)state;
  tn_device *device;
  assert_int_equal(open_first("bare", NULL, 0, &device), TN_EABI);
  assert_non_null(strstr(tn_error_text(&env), "backend 'bare': it has no kernel for these ops, which memory "
                                              "plans insert: copy, reorder; add kernels of family 'bare'"));
  assert_int_equal(open_first("bare", "near", 0, &device), TN_OK);
  assert_string_equal(device->backend->item.name, "near");
  tn_device_destroy(device);
}

static void a_device_without_memory_of_its_own_is_the_hosts(void **state) {
  (void)state;
  tn_device *device;
  assert_int_equal(open_first("vague", NULL, 0, &device), TN_EABI);
  assert_non_null(strstr(tn_error_text(&env), "do not say host_addressable, and it has no memory_new"));
}

static void a_backend_that_binds_no_threads_is_told_from_one_that_does(void **state) {
  (void)state;
  const char *name = "near";
  const int64_t processor = 0;
  tn_device_request request = {&name, 1, 0, 1, configure, NULL};
  tn_device *device;
  request.pin = (tn_ints){1, &processor};
  assert_int_equal(tn_device_create(&env, registry, &request, &device), TN_OK);
  assert_int_equal(device->pin.n, 0);
  assert_string_equal(logged, "[run] pin has no effect: backend 'near' has no option pin");
  tn_device_destroy(device);
}

static void memory_is_counted(void **state) {
  (void)state;
  tn_device *device;
  void *a, *b, *none;
  assert_int_equal(open_first("near", NULL, 0, &device), TN_OK);
  assert_int_equal(tn_device_memory(device, TN_MEMORY_DEVICE, 100, &a), TN_OK);
  assert_int_equal(tn_device_memory(device, TN_MEMORY_STAGING, 50, &b), TN_OK);
  assert_int_equal(tn_device_memory(device, TN_MEMORY_DEVICE, 0, &none), TN_OK);
  assert_null(none);
  assert_int_equal(device->bytes, 150);
  tn_device_memory_free(device, TN_MEMORY_DEVICE, a, 100);
  tn_device_memory_free(device, TN_MEMORY_DEVICE, none, 0);
  assert_int_equal(device->bytes, 50);
  assert_int_equal(device->peak_bytes, 150);
  tn_device_memory_free(device, TN_MEMORY_STAGING, b, 50);
  tn_device_destroy(device);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_family_is_opened_with_its_streams_and_options),
      CASE(unset_threads_are_all_processors),
      CASE(a_closed_device_has_a_target_and_nothing_else),
      CASE(what_the_request_asks_of_kernels_holds_for_the_fallback),
      CASE(an_extension_brings_its_family),
      CASE(what_cannot_be_used_is_passed_over_with_its_reason),
      CASE(all_reasons_are_told_when_none_is_left),
      CASE(a_wrong_option_is_not_passed_over),
      CASE(a_device_that_is_not_there_is_named),
      CASE(only_a_family_can_be_extended),
      CASE(the_kernels_that_are_missing_are_named_at_once),
      CASE(a_device_without_memory_of_its_own_is_the_hosts),
      CASE(a_backend_that_binds_no_threads_is_told_from_one_that_does),
      CASE(memory_is_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
