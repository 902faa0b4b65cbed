/* core/formats/input_sum.h: the checksum of an input whose ranges are read in any order, each summed while it
 * is in the cache of the processor. */
#pragma once

#include <stdatomic.h>

#include "core/base/file/checksum.h"
#include "core/formats/input.h"

typedef struct tn_input_sum {
  tn_checksum start;     /* of nothing */
  _Atomic(uint32_t) crc; /* of the whole input, once each byte has been in one range */
} tn_input_sum;

void tn_input_sum_start(tn_input_sum *sum);
/* tn_input_read of a range that becomes part of the sum. */
tn_status tn_input_read_summed(const tn_input *input, const void *handle, uint64_t offset, void *to,
                               size_t count, tn_input_sum *sum);
/* Reads a range for its sum alone. */
tn_status tn_input_sum_range(const tn_input *input, const void *handle, uint64_t offset, uint64_t count,
                             tn_input_sum *sum);
