/* core/exec/tune/operand_data.c: random bits of floats, without conversions. */
#include "core/exec/tune/operand_data.h"

#include <string.h>

#include "tenon/base.h"

/* Marsaglia's xorshift64*. */
static uint64_t operand_data_next(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1D;
}

/* A sign, an exponent of -3 .. 0, and a mantissa. */
static uint64_t operand_data_float(uint64_t random, int32_t bits, int32_t mantissa, uint64_t bias) {
  uint64_t sign = random >> 63, exponent = bias - (random >> 61 & 3);
  return sign << (bits - 1) | exponent << mantissa | (random & (((uint64_t)1 << mantissa) - 1));
}

static uint64_t operand_data_bits(int32_t dtype, uint64_t random) {
  switch (dtype) {
  case TN_F16: return operand_data_float(random, 16, 10, 15);
  case TN_BF16: return operand_data_float(random, 16, 7, 127);
  case TN_F32: return operand_data_float(random, 32, 23, 127);
  case TN_F64: return operand_data_float(random, 64, 52, 1023);
  case TN_U8:
  case TN_I8: return random >> 56;
  default: return random >> 63;
  }
}

void tn_operand_data(int32_t dtype, void *to, size_t bytes) {
  size_t size = tn_dtype_size(dtype);
  uint64_t state = 0x9E3779B97F4A7C15;
  for (size_t i = 0; size > 0 && i + size <= bytes; i += size) {
    uint64_t bits = operand_data_bits(dtype, operand_data_next(&state));
    uint32_t word = (uint32_t)bits;
    uint16_t half = (uint16_t)bits;
    uint8_t byte = (uint8_t)bits;
    const void *from = size == 8   ? (void *)&bits
                       : size == 4 ? (void *)&word
                       : size == 2 ? (void *)&half
                                   : &byte;
    memcpy((char *)to + i, from, size);
  }
}
