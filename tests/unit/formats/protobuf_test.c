/* The rest format of Protocol Buffers: fields, numbers, packed numbers, and every cut of a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/formats/protobuf.h"

/* Field 1: 300; field 2: "ab"; field 3: 1.5 in 4 bytes; field 4: -2 in 8 bytes; field 5: packed 1, 2, 300. */
static const uint8_t message[] = {0x08, 0xac, 0x02, 0x12, 0x02, 'a',  'b',  0x1d, 0x00,
                                  0x00, 0xc0, 0x3f, 0x21, 0x00, 0x00, 0x00, 0x00, 0x00,
                                  0x00, 0x00, 0xc0, 0x2a, 0x04, 0x01, 0x02, 0xac, 0x02};

static void add(void *context, uint64_t value) { *(uint64_t *)context = *(uint64_t *)context * 1000 + value; }

static void fields_have_their_numbers_and_values(void **state) {
  (void)state;
  tn_proto rest = tn_proto_of(message, sizeof message);
  tn_proto_field field;
  uint64_t digits = 0;
  assert_true(tn_proto_next(&rest, &field));
  assert_int_equal(field.number, 1);
  assert_int_equal(field.value, 300);
  assert_true(tn_proto_next(&rest, &field));
  assert_int_equal(field.form, TN_PROTO_BYTES);
  assert_memory_equal(field.bytes.at, "ab", tn_proto_left(&field.bytes));
  assert_true(tn_proto_next(&rest, &field));
  assert_true(tn_proto_float(field.value) == 1.5F);
  assert_true(tn_proto_next(&rest, &field));
  assert_true(tn_proto_double(field.value) == -2.0);
  assert_true(tn_proto_next(&rest, &field));
  tn_proto_numbers(&field, TN_PROTO_VARINT, add, &digits);
  assert_int_equal(digits, 1002300);
  assert_false(tn_proto_next(&rest, &field));
  assert_false(rest.bad);
}

/* A message that is cut between two fields is a shorter one. */
static void a_cut_field_is_damage(void **state) {
  (void)state;
  static const size_t ends[] = {0, 3, 7, 12, 21, sizeof message};
  for (size_t n = 0, next = 0; n <= sizeof message; n++) {
    tn_proto rest = tn_proto_of(message, n);
    tn_proto_field field;
    while (tn_proto_next(&rest, &field)) {
    }
    bool whole = n == ends[next];
    assert_int_equal(rest.bad, !whole);
    next += whole;
  }
}

static void forms_and_numbers_that_do_not_exist_are_damage(void **state) {
  (void)state;
  static const uint8_t bad[][12] = {{0x0b},
                                    {0x0c},
                                    {0x0e, 1},
                                    {0x00, 1},
                                    {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
                                    {0x0a, 0x7f}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    tn_proto rest = tn_proto_of(bad[i], sizeof bad[i]);
    tn_proto_field field;
    assert_false(tn_proto_next(&rest, &field));
    assert_true(rest.bad);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields_have_their_numbers_and_values),
      cmocka_unit_test(a_cut_field_is_damage),
      cmocka_unit_test(forms_and_numbers_that_do_not_exist_are_damage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
