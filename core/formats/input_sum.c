#include "core/formats/input_sum.h"

enum { INPUT_SUM_PIECE = 1 << 17 }; /* bytes: they stay in the second cache */

void tn_input_sum_start(tn_input_sum *sum) {
  tn_checksum_start(&sum->start);
  atomic_init(&sum->crc, 0);
}

/* Reads pieces to one buffer after the other, or all of them to the first. */
static tn_status input_sum_read(const tn_input *input, const void *handle, uint64_t offset, uint64_t count,
                                char *to, bool onwards, tn_input_sum *sum) {
  tn_checksum own = sum->start;
  for (uint64_t at = 0; at < count; at += INPUT_SUM_PIECE) {
    size_t n = count - at < INPUT_SUM_PIECE ? (size_t)(count - at) : INPUT_SUM_PIECE;
    char *piece = onwards ? to + at : to;
    TN_TRY(tn_input_read(input, handle, offset + at, piece, n));
    tn_checksum_add(&own, piece, n);
  }
  atomic_fetch_xor(&sum->crc, tn_checksum_part(&own, own.crc, input->bytes - offset - count));
  return TN_OK;
}

tn_status tn_input_read_summed(const tn_input *input, const void *handle, uint64_t offset, void *to,
                               size_t count, tn_input_sum *sum) {
  return input_sum_read(input, handle, offset, count, to, true, sum);
}

tn_status tn_input_sum_range(const tn_input *input, const void *handle, uint64_t offset, uint64_t count,
                             tn_input_sum *sum) {
  char *piece = tn_alloc(handle, INPUT_SUM_PIECE);
  if (piece == NULL) return TN_ENOMEM;
  tn_status status = input_sum_read(input, handle, offset, count, piece, false, sum);
  tn_release(handle, piece);
  return status;
}
