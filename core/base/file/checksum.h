/* core/base/file/checksum.h: CRC-32C (Castagnoli, RFC 3720) of a sequence of byte ranges. It detects every
 * flipped bit and every burst of up to 32 bits, the usual faults of disks and networks. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

/* How it is computed: by tables; by the processor's instruction (SSE4.2, AArch64 CRC32); by products of
 * polynomials, 64 bytes at a time (AVX-512 with VPCLMULQDQ). A later one is faster. */
enum { TN_CHECKSUM_TABLES = 0, TN_CHECKSUM_INSTRUCTION = 1, TN_CHECKSUM_PRODUCTS = 2, TN_CHECKSUM_WAYS = 3 };

typedef struct tn_checksum {
  uint32_t table[8][256]; /* remainders; filled by tn_checksum_start */
  uint32_t powers[64];    /* x to the power of 2^i, modulo the polynomial */
  uint32_t shift;         /* and of the bits of a stream */
  uint64_t fold[2];       /* the factors that move two halves of 16 bytes to those 256 bytes behind */
  int way;                /* TN_CHECKSUM_... */
  uint32_t crc;           /* of the bytes so far */
  uint64_t bytes;
} tn_checksum;

/* Chooses the fastest way of this processor. */
void tn_checksum_start(tn_checksum *sum);
/* False: this processor does not have the instructions. */
bool tn_checksum_start_by(tn_checksum *sum, int way);
void tn_checksum_add(tn_checksum *sum, const void *bytes, size_t count);

/* The part that bytes with this CRC, be they added to `sum` or not, have in the CRC of a sequence in which
 * `behind` further bytes follow. The CRC of a sequence is the exclusive or of the parts of its pieces, in any
 * order. */
uint32_t tn_checksum_part(const tn_checksum *sum, uint32_t crc, uint64_t behind);
