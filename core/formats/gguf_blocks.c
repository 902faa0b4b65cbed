/* core/formats/gguf_blocks.c: see gguf_blocks.h. The layouts are those of the project ggml: a block has
 * scales of f16, and its elements are small whole numbers, two or more in a byte. */
#include "core/formats/gguf_blocks.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/base/element.h"

enum { BLOCK = 32, SUPER = 256 }; /* elements of a plain block, and of one of several scales */

static float block_f16(const uint8_t *at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return (float)tn_element_load(TN_F16, &bits, 0);
}

/* ---- floats ---- */

static void block_read_f32(const uint8_t *b, float *to) { memcpy(to, b, sizeof *to); }
static void block_read_f16(const uint8_t *b, float *to) { *to = block_f16(b); }
static void block_read_bf16(const uint8_t *b, float *to) {
  uint32_t bits = ((uint32_t)b[1] << 8 | b[0]) << 16;
  memcpy(to, &bits, sizeof bits);
}

/* ---- 32 elements with one scale ---- */

static void block_read_q8_0(const uint8_t *b, float *to) {
  float scale = block_f16(b);
  for (int i = 0; i < BLOCK; i++) to[i] = scale * (float)(int8_t)b[2 + i];
}

/* The lower halves of 16 bytes are the first elements, the upper halves the others. `high`: fifth bits. */
static void block_read_nibbles(const uint8_t *b, uint32_t high, float scale, float shift, int32_t zero,
                               float *to) {
  for (int i = 0; i < BLOCK; i++) {
    int32_t low = i < BLOCK / 2 ? b[i] & 15 : b[i - BLOCK / 2] >> 4;
    to[i] = scale * (float)((low | (int32_t)(high >> i & 1) << 4) - zero) + shift;
  }
}

static uint32_t block_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void block_read_q4_0(const uint8_t *b, float *to) {
  block_read_nibbles(b + 2, 0, block_f16(b), 0, 8, to);
}
static void block_read_q4_1(const uint8_t *b, float *to) {
  block_read_nibbles(b + 4, 0, block_f16(b), block_f16(b + 2), 0, to);
}
static void block_read_q5_0(const uint8_t *b, float *to) {
  block_read_nibbles(b + 6, block_u32(b + 2), block_f16(b), 0, 16, to);
}
static void block_read_q5_1(const uint8_t *b, float *to) {
  block_read_nibbles(b + 8, block_u32(b + 4), block_f16(b), block_f16(b + 2), 0, to);
}

/* ---- 256 elements in eight groups, each with a scale and a minimum of six bits ---- */

/* Twelve bytes hold the scales and minima: those of the first four groups in the lower six bits of a byte
 * each, those of the others in halves of the last four bytes and in the two upper bits of the first eight. */
static void block_scales(const uint8_t *s, int group, float *scale, float *minimum) {
  int other = group - 4;
  uint32_t a = group < 4 ? s[group] & 63u : (s[group + 4] & 15u) | (uint32_t)(s[other] >> 6) << 4;
  uint32_t m =
      group < 4 ? s[group + 4] & 63u : (uint32_t)(s[group + 4] >> 4) | (uint32_t)(s[group] >> 6) << 4;
  *scale = (float)a;
  *minimum = (float)m;
}

/* Two groups share 32 bytes: the lower halves are the first one's. `high` NULL: elements have four bits. */
static void block_read_groups(const uint8_t *b, const uint8_t *high, const uint8_t *nibbles, float *to) {
  float whole = block_f16(b), below = block_f16(b + 2), scale, minimum;
  for (int group = 0; group < SUPER / BLOCK; group++) {
    const uint8_t *q = nibbles + group / 2 * BLOCK;
    block_scales(b + 4, group, &scale, &minimum);
    float step = whole * scale, least = below * minimum;
    for (int i = 0; i < BLOCK; i++) {
      uint32_t v = group % 2 == 0 ? q[i] & 15u : (uint32_t)(q[i] >> 4);
      if (high != NULL) v |= (uint32_t)(high[i] >> group & 1) << 4;
      to[group * BLOCK + i] = step * (float)v - least;
    }
  }
}

static void block_read_q4_k(const uint8_t *b, float *to) { block_read_groups(b, NULL, b + 16, to); }
static void block_read_q5_k(const uint8_t *b, float *to) { block_read_groups(b, b + 16, b + 48, to); }

/* ---- 256 elements of six bits in sixteen groups ---- */

/* Each half has 64 bytes of lower four bits and 32 bytes of upper two: byte i of these belongs to the
 * elements i, i + 32, i + 64 and i + 96. */
static void block_read_q6_half(const uint8_t *low, const uint8_t *high, const int8_t *scales, float whole,
                               float *to) {
  for (int i = 0; i < SUPER / 2; i++) {
    int quarter = i / 32, at = i % 32;
    uint32_t four =
        quarter < 2 ? low[at + 32 * quarter] & 15u : (uint32_t)(low[at + 32 * (quarter - 2)] >> 4);
    int32_t v = (int32_t)(four | (uint32_t)(high[at] >> 2 * quarter & 3) << 4) - 32;
    to[i] = whole * (float)scales[i / 16] * (float)v;
  }
}

static void block_read_q6_k(const uint8_t *b, float *to) {
  const int8_t *scales = (const int8_t *)(b + 192);
  float whole = block_f16(b + 208);
  block_read_q6_half(b, b + 128, scales, whole, to);
  block_read_q6_half(b + 64, b + 160, scales + 8, whole, to + SUPER / 2);
}

/* ---- the list ---- */

static const tn_gguf_format block_formats[] = {
    {"F32", 0, 1, 4, block_read_f32},          {"F16", 1, 1, 2, block_read_f16},
    {"BF16", 30, 1, 2, block_read_bf16},       {"Q4_0", 2, BLOCK, 18, block_read_q4_0},
    {"Q4_1", 3, BLOCK, 20, block_read_q4_1},   {"Q5_0", 6, BLOCK, 22, block_read_q5_0},
    {"Q5_1", 7, BLOCK, 24, block_read_q5_1},   {"Q8_0", 8, BLOCK, 34, block_read_q8_0},
    {"Q4_K", 12, SUPER, 144, block_read_q4_k}, {"Q5_K", 13, SUPER, 176, block_read_q5_k},
    {"Q6_K", 14, SUPER, 210, block_read_q6_k},
};

const tn_gguf_format *tn_gguf_format_at(int32_t i) {
  return i >= 0 && (size_t)i < sizeof block_formats / sizeof *block_formats ? &block_formats[i] : NULL;
}

int32_t tn_gguf_format_of(uint32_t code) {
  for (int32_t i = 0; tn_gguf_format_at(i) != NULL; i++)
    if ((uint32_t)block_formats[i].code == code) return i;
  return -1;
}

const char *tn_gguf_format_name(uint32_t code) {
  static const char *const others[] = {
      [9] = "Q8_1",     [10] = "Q2_K",  [11] = "Q3_K",   [15] = "Q8_K",  [16] = "IQ2_XXS", [17] = "IQ2_XS",
      [18] = "IQ3_XXS", [19] = "IQ1_S", [20] = "IQ4_NL", [21] = "IQ3_S", [22] = "IQ2_S",   [23] = "IQ4_XS",
      [24] = "I8",      [25] = "I16",   [26] = "I32",    [27] = "I64",   [28] = "F64",     [29] = "IQ1_M",
      [34] = "TQ1_0",   [35] = "TQ2_0", [39] = "MXFP4"};
  int32_t known = tn_gguf_format_of(code);
  if (known >= 0) return block_formats[known].name;
  bool named = code < sizeof others / sizeof *others && others[code] != NULL;
  return named ? others[code] : "an unknown type";
}
