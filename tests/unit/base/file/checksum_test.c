#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/base/file/checksum.h"

static uint32_t whole(const void *bytes, size_t count) {
  tn_checksum sum;
  tn_checksum_start(&sum);
  tn_checksum_add(&sum, bytes, count);
  return sum.crc;
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

/* The definition, bit by bit. */
static uint32_t by_definition(const unsigned char *bytes, size_t count) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < 8 * count; i++) {
    crc ^= (uint32_t)(bytes[i / 8] >> i % 8 & 1);
    crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

static uint32_t by_way(int way, const void *bytes, size_t count) {
  tn_checksum sum;
  assert_true(tn_checksum_start_by(&sum, way));
  tn_checksum_add(&sum, bytes, count);
  return sum.crc;
}

static bool is_here(int way) {
  tn_checksum sum;
  return tn_checksum_start_by(&sum, way);
}

enum { MOST = 120000, ALIGNMENTS = 16 };

static unsigned char *some_bytes(void) {
  static unsigned char bytes[MOST + ALIGNMENTS];
  uint32_t random = 1;
  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (unsigned char)((random = random * 1664525u + 1013904223u) >> 24);
  return bytes;
}

static void check_way(int way, const unsigned char *bytes, size_t count, uint32_t expected) {
  uint32_t found = by_way(way, bytes, count);
  if (found != expected)
    fail_msg("way %d, %zu bytes at %zu: %x, expected %x", way, count, (size_t)(uintptr_t)bytes % ALIGNMENTS,
             found, expected);
}

/* RFC 3720, B.4, and the check value of the CRC catalogues. */
static void known_values_come_out(void **state) {
  static const unsigned char read_command[48] = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0,
                                                 0x14, 0,    0, 0, 0, 0, 4, 0, 0, 0, 0, 0x14, 0, 0, 0, 0x18,
                                                 0x28, 0,    0, 0, 0, 0, 0, 0, 2, 0, 0, 0,    0, 0, 0, 0};
  unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
  (void)state;
  memset(ones, 0xff, 32);
  for (int i = 0; i < 32; i++) up[i] = (unsigned char)i, down[i] = (unsigned char)(31 - i);
  for (int way = 0; way < TN_CHECKSUM_WAYS; way++) {
    if (!is_here(way)) continue;
    check_way(way, zeros, 32, 0x8A9136AAu);
    check_way(way, ones, 32, 0x62A8AB43u);
    check_way(way, up, 32, 0x46DD794Eu);
    check_way(way, down, 32, 0x113FDB5Cu);
    check_way(way, read_command, 48, 0xD9963A56u);
    check_way(way, (const unsigned char *)"123456789", 9, 0xE3069283u);
    check_way(way, (const unsigned char *)"", 0, 0);
  }
}

/* The definition of a sequence follows from that of the sequence without its last byte. */
static uint32_t with_byte(uint32_t sum, unsigned char byte) {
  uint32_t crc = ~sum ^ byte;
  for (int bit = 0; bit < 8; bit++) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
  return ~crc;
}

static void every_way_is_the_definition(void **state) {
  (void)state;
  const unsigned char *bytes = some_bytes();
  assert_true(is_here(TN_CHECKSUM_TABLES));
  for (int way = 0; way < TN_CHECKSUM_WAYS; way++) {
    for (size_t at = 0; is_here(way) && at < ALIGNMENTS; at++) {
      uint32_t expected = 0;
      for (size_t count = 0; count <= 5000; count++) {
        check_way(way, bytes + at, count, expected);
        expected = with_byte(expected, bytes[at + count]);
      }
    }
  }
}

/* Of several streams, and of almost several. */
static void long_sequences_are_the_definition(void **state) {
  static const size_t counts[] = {8191,  8192,  8193,  16384, 24575, 24576, 24577,
                                  24583, 24584, 49151, 49152, 73729, MOST};
  (void)state;
  const unsigned char *bytes = some_bytes();
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    uint32_t expected = by_definition(bytes + i, counts[i]);
    for (int way = 0; way < TN_CHECKSUM_WAYS; way++)
      if (is_here(way)) check_way(way, bytes + i, counts[i], expected);
  }
}

static void parts_in_any_order_make_the_whole(void **state) {
  static const size_t ends[] = {0, 1, 1, 40, 25000, 25007, 90000, MOST};
  (void)state;
  const unsigned char *bytes = some_bytes();
  uint32_t together = 0;
  tn_checksum sum;
  tn_checksum_start(&sum);
  for (size_t i = sizeof ends / sizeof *ends; i-- > 1;)
    together ^= tn_checksum_part(&sum, whole(bytes + ends[i - 1], ends[i] - ends[i - 1]), MOST - ends[i]);
  assert_int_equal(together, by_definition(bytes, MOST));
  assert_int_equal(tn_checksum_part(&sum, 0x12345678u, 0), 0x12345678u);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_way_is_the_definition),
      cmocka_unit_test(long_sequences_are_the_definition),
      cmocka_unit_test(parts_in_any_order_make_the_whole),
      cmocka_unit_test(known_values_come_out),
      cmocka_unit_test(pieces_of_any_size_give_the_same),
      cmocka_unit_test(every_flipped_bit_is_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
