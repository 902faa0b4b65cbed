/* Structs that grow: TN_HAS, and fields of a source that was built against other headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/plugin/source.h"

static void has_is_true_up_to_the_size(void **state) {
  (void)state;
  tn_sample s = {.struct_size = sizeof s};
  assert_true(TN_HAS(&s, index));
  assert_true(TN_HAS(&s, scratch));
  s.struct_size = offsetof(tn_sample, scratch);
  assert_true(TN_HAS(&s, key));
  assert_false(TN_HAS(&s, scratch));
  s.struct_size = (uint32_t)(offsetof(tn_sample, key) + sizeof s.key - 1);
  assert_false(TN_HAS(&s, key));
  assert_true(TN_HAS(&s, index));
}

/* Two fields, as a source built with a tn_field of `size` bytes lays them out. */
static void check_stride(size_t size) {
  _Alignas(8) char memory[512] = {0};
  const char *names[] = {"image", "label"};
  for (int32_t i = 0; i < 2; i++) {
    tn_field field = {.struct_size = (uint32_t)size, .name = names[i], .role = i};
    memcpy(memory + (size_t)i * size, &field, size < sizeof field ? size : sizeof field);
  }
  const tn_description d = {
      .struct_size = sizeof d, .n_fields = 2, .fields = (const tn_field *)(const void *)memory};
  for (int32_t i = 0; i < 2; i++) {
    const tn_field *field = tn_description_field(&d, i);
    assert_ptr_equal(field, memory + (size_t)i * size);
    assert_string_equal(field->name, names[i]);
    assert_int_equal(field->role, i);
  }
}

static void fields_have_the_stride_of_their_source(void **state) {
  (void)state;
  check_stride(sizeof(tn_field));
  check_stride(sizeof(tn_field) + 16);
  check_stride(offsetof(tn_field, class_names));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(has_is_true_up_to_the_size),
                                     cmocka_unit_test(fields_have_the_stride_of_their_source)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
