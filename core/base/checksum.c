/* core/base/checksum.c: CRC-32C, eight bytes at a time ("slicing by 8": Kounavis and Berry, A systematic
 * approach to building high performance software-based CRC generators, 2005). */
#include "core/base/checksum.h"

static uint32_t checksum_remainder(uint32_t byte) {
  uint32_t crc = byte;
  for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0x82F63B78u & (0u - (crc & 1u)));
  return crc;
}

void tn_checksum_start(tn_checksum *sum) {
  for (uint32_t i = 0; i < 256; i++) sum->table[0][i] = checksum_remainder(i);
  for (int k = 1; k < 8; k++)
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t before = sum->table[k - 1][i];
      sum->table[k][i] = before >> 8 ^ sum->table[0][before & 0xff];
    }
  sum->crc = 0;
  sum->bytes = 0;
}

/* Reads 32 bits in little-endian order on every machine. */
static uint32_t checksum_load_u32(const unsigned char *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t checksum_eight_bytes(const tn_checksum *sum, uint32_t crc, const unsigned char *p) {
  uint32_t a = checksum_load_u32(p) ^ crc, b = checksum_load_u32(p + 4);
  return sum->table[7][a & 0xff] ^ sum->table[6][a >> 8 & 0xff] ^ sum->table[5][a >> 16 & 0xff] ^
         sum->table[4][a >> 24] ^ sum->table[3][b & 0xff] ^ sum->table[2][b >> 8 & 0xff] ^
         sum->table[1][b >> 16 & 0xff] ^ sum->table[0][b >> 24];
}

void tn_checksum_add(tn_checksum *sum, const void *bytes, size_t count) {
  const unsigned char *p = bytes;
  uint32_t crc = ~sum->crc;
  sum->bytes += count;
  for (; count >= 8; count -= 8, p += 8) crc = checksum_eight_bytes(sum, crc, p);
  for (; count > 0; count--, p++) crc = crc >> 8 ^ sum->table[0][(crc ^ *p) & 0xff];
  sum->crc = ~crc;
}
