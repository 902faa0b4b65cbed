/* Devices described by JSON: read back as written, wrong files refused with file and line. */
#include "core/exec/device/device_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/plugin/context.h"

static char path[64];
static tn_context *context;
static tn_env *env;
static tn_arena arena;

static int start(void **state) {
  (void)state;
  snprintf(path, sizeof path, "/tmp/tenon-device-XXXXXX");
  int fd = mkstemp(path);
  if (fd < 0 || tn_context_open(NULL, &context) != TN_OK) return -1;
  close(fd);
  env = (tn_env *)context;
  arena = tn_arena_new(env);
  return 0;
}

static int stop(void **state) {
  (void)state;
  tn_arena_free(&arena);
  tn_context_close(context);
  return remove(path);
}

static void write_file(const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static const char small[] = "{\"family\": \"f\", \"name\": \"n\", \"memory_bytes\": 151e9,\n"
                            " \"bytes_per_s\": 4.8e12, \"vector_flops_per_s\": 6.7e13%s}";

/* The message for the small file with one more member. */
static const char *refusal(const char *more) {
  static char text[600];
  char content[512];
  tn_device_file file;
  snprintf(content, sizeof content, small, more);
  write_file(content);
  assert_int_equal(tn_device_file_read(env, &arena, path, &file), TN_EINVAL);
  snprintf(text, sizeof text, "%s", tn_error_text(env));
  tn_error_clear(env);
  assert_ptr_equal(strstr(text, path), text);
  return text + strlen(path);
}

static void a_device_is_read_back_as_it_was_written(void **state) {
  tn_device_properties p = {.struct_size = sizeof p,
                            .host_addressable = 1,
                            .threads = 7,
                            .arch = 90,
                            .memory_bytes = 1LL << 40,
                            .name = "made up",
                            .free_bytes = 12345,
                            .cache_bytes = 50 << 20,
                            .bytes_per_s = 4.8e12,
                            .vector_flops_per_s = 6.7e13,
                            .launch_s = 2.5e-6,
                            .processors = 132,
                            .details = "{\"warpSize\":32}"};
  tn_device_file file;
  (void)state;
  p.matrix_flops_per_s[TN_F16] = 9.9e14;
  p.matrix_flops_per_s[TN_F64] = 3.3e13;
  json_t *json = tn_device_file_json("cuda", "cpu", 8, &p);
  assert_int_equal(json_dump_file(json, path, 0), 0);
  json_decref(json);
  assert_int_equal(tn_device_file_read(env, &arena, path, &file), TN_OK);
  assert_string_equal(file.family, "cuda");
  assert_string_equal(file.accepts, "cpu");
  assert_null(file.extension);
  assert_int_equal(file.count, 8);
  assert_string_equal(file.properties.details, p.details);
  file.properties.details = p.details;
  assert_memory_equal(&file.properties, &p, sizeof p);
}

static void members_that_a_file_lacks_are_unknown(void **state) {
  tn_device_file file;
  char content[512];
  (void)state;
  snprintf(content, sizeof content, small, "");
  write_file(content);
  assert_int_equal(tn_device_file_read(env, &arena, path, &file), TN_OK);
  assert_int_equal(file.count, 1);
  assert_int_equal(file.properties.threads, 1);
  assert_true(file.properties.memory_bytes == 151000000000 && file.properties.free_bytes == 0);
  assert_true(file.properties.matrix_flops_per_s[TN_F16] == 0 && file.properties.launch_s == 0);
  assert_null(file.accepts);
  assert_null(file.properties.details);
}

static void wrong_members_are_refused_with_their_line(void **state) {
  (void)state;
  assert_string_equal(refusal(",\n\"bytes_per_sec\": 1"),
                      ":3: a device has no property 'bytes_per_sec', did you mean 'bytes_per_s'?");
  assert_string_equal(refusal(",\n\n\"threads\": \"two\""),
                      ":4: property 'threads' is not a whole number from 0");
  assert_string_equal(refusal(",\n\"arch\": 1.5"), ":3: property 'arch' is not a whole number from 0");
  assert_string_equal(refusal(",\n\"processors\": 3e9"),
                      ":3: property 'processors' is not a whole number from 0");
  assert_string_equal(refusal(",\n\"launch_s\": 0"), ":3: property 'launch_s' is not a number above 0");
  assert_string_equal(refusal(",\n\"host_addressable\": 1"),
                      ":3: property 'host_addressable' is not true or false");
  assert_string_equal(refusal(",\n\"accepts\": 1"), ":3: property 'accepts' is not a text");
  assert_string_equal(refusal(",\n\"count\": 0"), ":3: property 'count' is not a whole number from 1");
  assert_string_equal(refusal(",\n\"details\": \"{}\""), ":3: property 'details' is not an object");
  assert_string_equal(refusal(",\n\"matrix_flops_per_s\": 1"),
                      ":3: property 'matrix_flops_per_s' is not an object of rates by dtype");
  assert_string_equal(refusal(",\n\"matrix_flops_per_s\": {\"f12\": 1}"),
                      ":3: property 'matrix_flops_per_s' names 'f12', which is no dtype");
  assert_string_equal(refusal(",\n\"matrix_flops_per_s\": {\"f16\": -1}"),
                      ":3: property 'f16' is not a number above 0");
}

static void files_that_describe_no_device_are_refused(void **state) {
  static const struct {
    const char *content, *message;
  } wrong[] = {
      {"{\"family\": \"f\",\n \"name\" 1}", ":2: "},
      {"[1]", ": is not a JSON object with the properties of a device"},
      {"{\"name\": \"n\"}", ": property 'family' is missing"},
      {"{\"family\": \"f\"}", ": property 'name' is missing"},
      {"{\"family\": \"f\", \"name\": \"n\"}", ": property 'memory_bytes' is missing"},
      {"{\"family\": \"f\", \"name\": \"n\", \"memory_bytes\": 1, \"bytes_per_s\": 1}",
       ": property 'vector_flops_per_s' is missing"},
      {"{\"family\": \"f\",\n\"family\": \"g\"}", ":2: "},
  };
  tn_device_file file;
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    write_file(wrong[i].content);
    assert_int_equal(tn_device_file_read(env, &arena, path, &file), TN_EINVAL);
    assert_ptr_equal(strstr(tn_error_text(env) + strlen(path), wrong[i].message),
                     tn_error_text(env) + strlen(path));
    tn_error_clear(env);
  }
  assert_int_equal(tn_device_file_read(env, &arena, "/no/such/file", &file), TN_EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_device_is_read_back_as_it_was_written),
      TEST(members_that_a_file_lacks_are_unknown),
      TEST(wrong_members_are_refused_with_their_line),
      TEST(files_that_describe_no_device_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
