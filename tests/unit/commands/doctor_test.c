/* tn_doctor of a build that has left out a part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "core/plugin/context.h"
#include "tenon/inspect.h"

/* As core/linked.c has it of the build. */
const tn_left_out tn_left_out_parts[] = {{"made_up", "it was not found; install libmade-up"}, {NULL, NULL}};

static void a_part_that_is_left_out_is_missing(void **state) {
  (void)state;
  const tn_context_options options = {.struct_size = sizeof options, .plugin_folder = ""};
  tn_context *context = NULL;
  char *text = NULL;
  assert_int_equal(tn_context_open(&options, &context), TN_OK);
  assert_int_equal(tn_doctor(context, &text), TN_OK);
  json_t *result = json_loads(text, 0, NULL), *missing = json_object_get(result, "missing");
  assert_int_equal(json_array_size(missing), 1);
  assert_string_equal(json_string_value(json_object_get(json_array_get(missing, 0), "name")), "made_up");
  assert_string_equal(json_string_value(json_object_get(json_array_get(missing, 0), "reason")),
                      "it was not found; install libmade-up");
  json_decref(result);
  tn_string_free(context, text);
  tn_context_close(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_part_that_is_left_out_is_missing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
