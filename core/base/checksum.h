/* core/base/checksum.h: CRC-32C (Castagnoli, RFC 3720) of a sequence of byte ranges. It detects every
 * flipped bit and every burst of up to 32 bits, the usual faults of disks and networks. */
#ifndef TN_CORE_BASE_CHECKSUM_H
#define TN_CORE_BASE_CHECKSUM_H

#include "core/base/env.h"

typedef struct tn_checksum {
  uint32_t table[8][256]; /* remainders; filled by tn_checksum_start */
  uint32_t crc;           /* of the bytes so far */
  uint64_t bytes;
} tn_checksum;

void tn_checksum_start(tn_checksum *sum);
void tn_checksum_add(tn_checksum *sum, const void *bytes, size_t count);

#endif
