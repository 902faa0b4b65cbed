/* tests/unit/exec/device/auto_backend_test.c: the backends that `use = auto` tries, by their preference. */
#include "tests/support/check_status.h"

#include "core/exec/device/auto_backend.h"
#include "core/plugin/handles.h"
#include "tenon/plugin/backend.h"

#define BACKEND(NAME, PREFERENCE)                                                                            \
  { .item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, NAME, "for tests"), .preference = PREFERENCE }
static const tn_backend reference = BACKEND("reference", 10), quick = BACKEND("quick", 20),
                        alike = BACKEND("alike", 20), devices = BACKEND("devices", 100),
                        simulated = BACKEND("simulated", 0);

static tn_error_record record;
static tn_env env;
static tn_registry *registry;
static tn_arena arena;

static void start(const tn_item *const *items) {
  static tn_plugin plugin;
  plugin = (tn_plugin){sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "made_up", "1", "MIT",
                       TN_BUILD_TEXT,     items};
  tn_error_record_init_root(&env, &record, &tn_host_api);
  arena = tn_arena_new(&env);
  assert_int_equal(tn_registry_create(&env, "", &registry), TN_OK);
  assert_int_equal(tn_registry_add(registry, &env, &plugin, ""), TN_OK);
}

static void stop(void) {
  tn_registry_destroy(registry);
  tn_arena_free(&arena);
}

static void expect_names(const char *use, bool automatic, const char *expected) {
  tn_backend_names names;
  char text[128] = "";
  size_t n = 0;
  assert_int_equal(tn_backend_names_read(&env, registry, &arena, use, &names), TN_OK);
  assert_int_equal(names.automatic, automatic);
  for (int32_t i = 0; i < names.words.n; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%s ", names.words.v[i]);
  assert_string_equal(text, expected);
}

static void auto_stands_for_the_preferred_backends_in_their_order(void **state) {
  (void)state;
  const tn_item *const items[] = {&simulated.item, &reference.item, &quick.item,
                                  &devices.item,   &alike.item,     NULL};
  start(items);
  expect_names("auto", true, "devices alike quick reference ");
  expect_names("quick, auto", true, "quick devices alike reference ");
  expect_names("simulated, auto, reference", true, "simulated devices alike quick reference ");
  expect_names("reference, simulated", false, "reference simulated ");
  stop();
}

static void auto_never_takes_a_backend_without_preference(void **state) {
  (void)state;
  const tn_item *const items[] = {&simulated.item, NULL};
  tn_backend_names names;
  start(items);
  assert_int_equal(tn_backend_names_read(&env, registry, &arena, "auto", &names), TN_EUNAVAILABLE);
  assert_non_null(strstr(tn_error_text(&env), "auto finds no backend"));
  expect_names("auto, simulated", true, "simulated ");
  stop();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(auto_stands_for_the_preferred_backends_in_their_order),
      cmocka_unit_test(auto_never_takes_a_backend_without_preference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
