/* core/base/checksum.h: CRC-32C (Castagnoli, RFC 3720) of bytes that come in pieces. It finds every
 * flipped bit and every burst of up to 32 bits, which is what disks and networks do to files. */
#ifndef TN_CORE_BASE_CHECKSUM_H
#define TN_CORE_BASE_CHECKSUM_H

#include "core/base/env.h"

typedef struct tn_checksum {
  uint32_t table[8][256]; /* of remainders; made by tn_checksum_start */
  uint32_t crc;           /* of the bytes so far */
  uint64_t bytes;
} tn_checksum;

void tn_checksum_start(tn_checksum *sum);
void tn_checksum_add(tn_checksum *sum, const void *bytes, size_t count);

#endif
