#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/base/checksum.h"

static uint32_t whole(const void *bytes, size_t count) {
  tn_checksum sum;
  tn_checksum_start(&sum);
  tn_checksum_add(&sum, bytes, count);
  return sum.crc;
}

/* RFC 3720, B.4, and the check value of the CRC catalogues. */
static void known_values_come_out(void **state) {
  (void)state;
  unsigned char bytes[32] = {0};
  assert_int_equal(whole("123456789", 9), 0xE3069283u);
  assert_int_equal(whole(bytes, 32), 0x8A9136AAu);
  memset(bytes, 0xff, 32);
  assert_int_equal(whole(bytes, 32), 0x62A8AB43u);
  for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
  assert_int_equal(whole(bytes, 32), 0x46DD794Eu);
  assert_int_equal(whole("", 0), 0);
}

static void pieces_of_any_size_give_the_same(void **state) {
  (void)state;
  unsigned char bytes[200];
  for (int i = 0; i < 200; i++) bytes[i] = (unsigned char)(i * 37 + i / 7);
  for (size_t piece = 1; piece < 40; piece++) {
    tn_checksum sum;
    tn_checksum_start(&sum);
    for (size_t at = 0; at < 200; at += piece)
      tn_checksum_add(&sum, bytes + at, at + piece < 200 ? piece : 200 - at);
    assert_int_equal(sum.crc, whole(bytes, 200));
    assert_int_equal(sum.bytes, 200);
  }
}

static void every_flipped_bit_is_seen(void **state) {
  (void)state;
  unsigned char bytes[50] = "what a disk may do to a file that it was given";
  uint32_t good = whole(bytes, 50);
  for (int bit = 0; bit < 400; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    assert_int_not_equal(whole(bytes, 50), good);
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_values_come_out),
      cmocka_unit_test(pieces_of_any_size_give_the_same),
      cmocka_unit_test(every_flipped_bit_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
