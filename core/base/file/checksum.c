/* core/base/file/checksum.c: CRC-32C. By tables eight bytes at a time ("slicing by 8": Kounavis and Berry, A
 * systematic approach to building high performance software-based CRC generators, 2005). By instruction in
 * three streams: the instruction takes three cycles, and one can begin in each (Gopal et al., Fast CRC
 * computation for iSCSI polynomial using CRC32 instruction, 2011). By products, a part of the sequence is
 * replaced by a shorter one with the same remainder (Gopal et al., Fast CRC computation for generic
 * polynomials using PCLMULQDQ instruction, 2009).
 *
 * A CRC is a polynomial over GF(2) modulo P; bit 31 is the coefficient of 1, bit 0 that of x^31. The CRC of a
 * piece, times x to the power of the bits behind it, is its part in the CRC of the whole. */
#include "core/base/file/checksum.h"

#include <string.h>

#define CHECKSUM_POLYNOMIAL 0x82F63B78u
#define CHECKSUM_ONE        0x80000000u

enum { CHECKSUM_STREAM = 8192 /* bytes of each of the three */ };

/* ---- arithmetic modulo P ---- */

static uint32_t checksum_times_x(uint32_t a) { return a >> 1 ^ (CHECKSUM_POLYNOMIAL & (0u - (a & 1u))); }

static uint32_t checksum_multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int i = 0; i < 32; i++) {
    product ^= a & (0u - (b >> 31));
    a = checksum_times_x(a);
    b <<= 1;
  }
  return product;
}

static void checksum_fill_powers(tn_checksum *sum) {
  sum->powers[0] = CHECKSUM_ONE >> 1;
  for (int i = 1; i < 64; i++) sum->powers[i] = checksum_multiply(sum->powers[i - 1], sum->powers[i - 1]);
}

/* a x^bits, by the binary digits of `bits`. */
static uint32_t checksum_move(const tn_checksum *sum, uint32_t a, uint64_t bits) {
  for (int i = 0; i < 64 && bits >> i > 0; i++)
    if ((bits >> i & 1) != 0) a = checksum_multiply(a, sum->powers[i]);
  return a;
}

uint32_t tn_checksum_part(const tn_checksum *sum, uint32_t crc, uint64_t behind) {
  return checksum_move(sum, crc, 8 * behind);
}

/* ---- by tables ---- */

static uint32_t checksum_remainder(uint32_t byte) {
  uint32_t crc = byte;
  for (int bit = 0; bit < 8; bit++) crc = checksum_times_x(crc);
  return crc;
}

static void checksum_fill_tables(tn_checksum *sum) {
  for (uint32_t i = 0; i < 256; i++) sum->table[0][i] = checksum_remainder(i);
  for (int k = 1; k < 8; k++)
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t before = sum->table[k - 1][i];
      sum->table[k][i] = before >> 8 ^ sum->table[0][before & 0xff];
    }
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

static uint32_t checksum_by_tables(const tn_checksum *sum, uint32_t crc, const unsigned char *p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) crc = checksum_eight_bytes(sum, crc, p);
  for (; n > 0; n--, p++) crc = crc >> 8 ^ sum->table[0][(crc ^ *p) & 0xff];
  return crc;
}

/* ---- by instruction ---- */

#if defined(__x86_64__)
#include <nmmintrin.h>
#define CHECKSUM_TARGET          __attribute__((target("sse4.2")))
#define CHECKSUM_WORD(crc, word) ((uint32_t)_mm_crc32_u64(crc, word))
#define CHECKSUM_BYTE(crc, byte) _mm_crc32_u8(crc, byte)
static bool checksum_has_instruction(void) { return __builtin_cpu_supports("sse4.2") != 0; }
#elif defined(__AARCH64EL__) && defined(__linux__)
#include <sys/auxv.h>
#define CHECKSUM_TARGET
#define CHECKSUM_WORD(crc, word) checksum_crc_word(crc, word)
#define CHECKSUM_BYTE(crc, byte) checksum_crc_byte(crc, byte)
static bool checksum_has_instruction(void) { return (getauxval(AT_HWCAP) & 1ul << 7 /* CRC32 */) != 0; }

/* The functions of arm_acle.h need other options of each compiler. */
static inline uint32_t checksum_crc_word(uint32_t crc, uint64_t word) {
  __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
  return crc;
}
static inline uint32_t checksum_crc_byte(uint32_t crc, unsigned char byte) {
  __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
  return crc;
}
#endif

#ifdef CHECKSUM_TARGET
static uint64_t checksum_load_u64(const unsigned char *p) {
  uint64_t word;
  memcpy(&word, p, sizeof word);
  return word;
}

/* Three streams beside each other, then their parts. The first takes the CRC of what came before. */
CHECKSUM_TARGET static uint32_t checksum_three_streams(uint32_t shift, uint32_t crc, const unsigned char *p) {
  uint32_t second = 0, third = 0;
  for (int i = 0; i < CHECKSUM_STREAM; i += 8) {
    crc = CHECKSUM_WORD(crc, checksum_load_u64(p + i));
    second = CHECKSUM_WORD(second, checksum_load_u64(p + i + CHECKSUM_STREAM));
    third = CHECKSUM_WORD(third, checksum_load_u64(p + i + 2 * CHECKSUM_STREAM));
  }
  return checksum_multiply(checksum_multiply(crc, shift) ^ second, shift) ^ third;
}

CHECKSUM_TARGET static uint32_t checksum_by_instruction(uint32_t shift, uint32_t crc, const unsigned char *p,
                                                        size_t n) {
  enum { THREE = 3 * CHECKSUM_STREAM };
  for (; n >= THREE; n -= THREE, p += THREE) crc = checksum_three_streams(shift, crc, p);
  for (; n >= 8; n -= 8, p += 8) crc = CHECKSUM_WORD(crc, checksum_load_u64(p));
  for (; n > 0; n--, p++) crc = CHECKSUM_BYTE(crc, *p);
  return crc;
}
#else
static bool checksum_has_instruction(void) { return false; }

static uint32_t checksum_by_instruction(uint32_t shift, uint32_t crc, const unsigned char *p, size_t n) {
  (void)shift, (void)p, (void)n;
  return crc; /* not called */
}
#endif

/* ---- by products ---- */

#if defined(__x86_64__)
#include <immintrin.h>
#define CHECKSUM_PRODUCTS_TARGET __attribute__((target("avx512f,vpclmulqdq,sse4.2")))

enum { CHECKSUM_FOLDED = 256 /* bytes that are left */ };

static bool checksum_has_products(void) {
  return checksum_has_instruction() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("vpclmulqdq") != 0;
}

/* Bytes that stand for those that are CHECKSUM_FOLDED bytes in front of `next`, and for these. */
CHECKSUM_PRODUCTS_TARGET static inline __m512i checksum_fold(__m512i x, __m512i factors, const void *next) {
  __m512i first = _mm512_clmulepi64_epi128(x, factors, 0x00),
          second = _mm512_clmulepi64_epi128(x, factors, 0x11);
  return _mm512_ternarylogic_epi64(first, second, _mm512_loadu_si512(next), 0x96 /* exclusive or */);
}

/* n is at least CHECKSUM_FOLDED. */
CHECKSUM_PRODUCTS_TARGET static uint32_t checksum_by_products(const uint64_t fold[2], uint32_t crc,
                                                              const unsigned char *p, size_t n) {
  unsigned char left[CHECKSUM_FOLDED];
  __m512i factors = _mm512_broadcast_i32x4(_mm_set_epi64x((long long)fold[1], (long long)fold[0])), x[4];
  for (int i = 0; i < 4; i++) x[i] = _mm512_loadu_si512(p + 64 * i);
  x[0] = _mm512_xor_si512(x[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
  for (; n >= 2 * CHECKSUM_FOLDED; n -= CHECKSUM_FOLDED) {
    p += CHECKSUM_FOLDED;
    for (int i = 0; i < 4; i++) x[i] = checksum_fold(x[i], factors, p + 64 * i);
  }
  for (int i = 0; i < 4; i++) _mm512_storeu_si512(left + 64 * i, x[i]);
  crc = checksum_by_instruction(0, 0, left, CHECKSUM_FOLDED);
  return checksum_by_instruction(0, crc, p + CHECKSUM_FOLDED, n - CHECKSUM_FOLDED);
}
#else
enum { CHECKSUM_FOLDED = 256 };

static bool checksum_has_products(void) { return false; }

static uint32_t checksum_by_products(const uint64_t fold[2], uint32_t crc, const unsigned char *p, size_t n) {
  (void)fold, (void)p, (void)n;
  return crc; /* not called */
}
#endif

/* ---- any way ---- */

/* Of the two halves of 16 bytes the first is the higher one, by 64. A product of two reflected polynomials
 * has one bit less than its register, hence one power less. */
static void checksum_fill_factors(tn_checksum *sum) {
  sum->shift = checksum_move(sum, CHECKSUM_ONE, 8 * CHECKSUM_STREAM);
  sum->fold[0] = (uint64_t)checksum_move(sum, CHECKSUM_ONE, 8 * CHECKSUM_FOLDED + 63) << 32;
  sum->fold[1] = (uint64_t)checksum_move(sum, CHECKSUM_ONE, 8 * CHECKSUM_FOLDED - 1) << 32;
}

bool tn_checksum_start_by(tn_checksum *sum, int way) {
  if (way == TN_CHECKSUM_INSTRUCTION && !checksum_has_instruction()) return false;
  if (way == TN_CHECKSUM_PRODUCTS && !checksum_has_products()) return false;
  sum->way = way;
  checksum_fill_powers(sum);
  sum->crc = 0;
  sum->bytes = 0;
  if (way == TN_CHECKSUM_TABLES)
    checksum_fill_tables(sum);
  else
    checksum_fill_factors(sum);
  return true;
}

void tn_checksum_start(tn_checksum *sum) {
  for (int way = TN_CHECKSUM_WAYS - 1; !tn_checksum_start_by(sum, way); way--) continue;
}

static uint32_t checksum_by(const tn_checksum *sum, uint32_t crc, const unsigned char *p, size_t n) {
  if (sum->way == TN_CHECKSUM_TABLES) return checksum_by_tables(sum, crc, p, n);
  return sum->way == TN_CHECKSUM_PRODUCTS && n >= CHECKSUM_FOLDED
             ? checksum_by_products(sum->fold, crc, p, n)
             : checksum_by_instruction(sum->shift, crc, p, n);
}

void tn_checksum_add(tn_checksum *sum, const void *bytes, size_t count) {
  sum->bytes += count;
  sum->crc = ~checksum_by(sum, ~sum->crc, bytes, count);
}
