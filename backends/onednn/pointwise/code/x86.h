/* backends/onednn/pointwise/code/x86.h: writes vector instructions of AVX2 or AVX-512 and the few others that
 * a loop needs, as the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, encodes them.
 * Most instructions differ between the two sets in their prefix alone: VEX and EVEX. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tn_x86_set { TN_X86_AVX2, TN_X86_AVX512 } tn_x86_set;

typedef struct tn_x86 {
  uint8_t *bytes;
  size_t n, room;
  bool full; /* an instruction did not fit, and nothing that was written counts */
  tn_x86_set set;
} tn_x86;

/* Numbers that instructions read from memory in front of the code: with AVX-512 once each, with AVX2 in 8
 * lanes. */
enum {
  TN_X86_SIGN,
  TN_X86_NO_SIGN,
  TN_X86_ONE,
  TN_X86_INFINITY,
  TN_X86_BF16_HALF,      /* 0x7fff */
  TN_X86_BIT,            /* 1 */
  TN_X86_BF16_QUIET,     /* 0x40 */
  TN_X86_MOST_OF_U8,     /* 255.0f */
  TN_X86_MOST_OF_I8,     /* 127.0f */
  TN_X86_LEAST_OF_I8,    /* -128.0f */
  TN_X86_BEYOND_I32,     /* 2^31 */
  TN_X86_LAST_BELOW_I32, /* the f32 below 2^31 */
  TN_X86_LEAST_OF_I32,   /* -2^31 */
  TN_X86_UPPER_HALF,     /* 0xffff0000 */
  TN_X86_QUIET,          /* 0x400000 */
  TN_X86_NUMBERS,
  TN_X86_TRUTHS = 16,         /* 16 bytes of 1; this and the others with AVX-512 alone */
  TN_X86_QUOTIENTS_FROM = 20, /* -2^31 + 1 - (bits of 2^-100) * 2 */
  TN_X86_CONSTANTS
};

/* General registers, by number. */
enum { TN_X86_RAX, TN_X86_RCX, TN_X86_RDX, TN_X86_RBX, TN_X86_RSP, TN_X86_RBP, TN_X86_RSI, TN_X86_RDI };

/* The last operand of a vector instruction: a register, memory at base + rax * scale + displacement, or a
 * constant in every lane (all bytes of it: `whole`). */
typedef struct tn_x86_operand {
  enum { TN_X86_REGISTER, TN_X86_MEMORY, TN_X86_CONSTANT } kind;
  int32_t number; /* of the register, of the base, or of the constant */
  int32_t scale;  /* 1, 2, 4; 0: base alone */
  bool whole;
  int32_t displacement;
} tn_x86_operand;

/* A vector instruction: opcode map and prefix as VEX and EVEX number them, the length of its vectors (0: 128
 * bits, 2: the longest of the set), opcode, and whether a byte follows. */
typedef struct tn_x86_op {
  uint8_t map, prefix, length, code;
  bool immediate;
} tn_x86_op;

/* Of AVX-512. */
typedef struct tn_x86_mask {
  uint8_t number; /* k1 to k7; 0: no mask */
  bool zero;      /* lanes outside it become 0; else they stay as they are */
} tn_x86_mask;

/* Begins with the constants. */
void tn_x86_start(tn_x86 *x, tn_x86_set set, uint8_t *bytes, size_t room);
/* An instruction with a destination (or source of a store), a first source (0: it has none) and an operand.
 */
void tn_x86_vector(tn_x86 *x, tn_x86_op op, int32_t to, int32_t from, tn_x86_operand operand,
                   tn_x86_mask mask, uint8_t immediate);
void tn_x86_push(tn_x86 *x, int32_t number);
void tn_x86_pop(tn_x86 *x, int32_t number);
/* number = pointer `index` of the table that rdi points to. */
void tn_x86_load_pointer(tn_x86 *x, int32_t number, int32_t index);
/* A jump where no bit of a mask of AVX-512 is set, and one in any case, both to where tn_x86_land is called
 * with what they return, at most 127 bytes further. */
size_t tn_x86_jump_unless(tn_x86 *x, int32_t mask);
size_t tn_x86_jump(tn_x86 *x);
void tn_x86_land(tn_x86 *x, size_t jump);
/* rax = 0; rax += elements; back to `start` while rax < rsi. */
void tn_x86_start_count(tn_x86 *x);
void tn_x86_repeat(tn_x86 *x, size_t start, uint8_t elements);
/* vzeroupper; ret */
void tn_x86_return(tn_x86 *x);
