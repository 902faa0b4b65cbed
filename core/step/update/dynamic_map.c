/* core/step/update/dynamic_map.c: the 256 numbers of a state in 8 bits: dynamic tree quantization (Dettmers
 * et al., "8-bit optimizers via block-wise quantization", ICLR 2022). Decade i of seven ends at 10^(i - 6)
 * and is divided evenly into 2^i numbers, or 2^(i + 1) where no sign is needed; 0 and 1 are numbers, too. So
 * the number of a code, and the code nearest to a number, are a line each within a decade, and no table is
 * read. */
#include <math.h>

#include "core/step/update/update_stages.h"
#include "tenon/ops.h"

enum { DECADES = 7 };

/* The place of the first number of a decade, which is also how many numbers the decade has. */
static double dynamic_map_place(int32_t decade, bool positive) { return ldexp(1, decade + positive); }

/* Number k of a decade: the middle of the k-th part of its upper nine tenths. Decade 7 has the number 1. */
static double dynamic_map_number(int32_t decade, double k, bool positive) {
  double n = dynamic_map_place(decade, positive);
  return decade < DECADES ? pow(10, decade - 6) * (0.1 + 0.9 * (k + 0.5) / n) : 1;
}

/* Half way between the first number of a decade and the number before it. */
static double dynamic_map_middle(int32_t decade, bool positive) {
  double last = decade > 0 ? dynamic_map_place(decade - 1, positive) - 1 : 0;
  double before = decade > 0 ? dynamic_map_number(decade - 1, last, positive) : 0;
  return 0.5 * (before + dynamic_map_number(decade, 0, positive));
}

static tn_val dynamic_map_choose(tn_build *b, tn_val reached, double then, tn_val otherwise) {
  return tn_where(b, reached, tn_scalar(b, TN_F32, then), otherwise);
}

/* slope * place + start of the place's decade. */
static tn_val dynamic_map_line(tn_build *b, tn_val place, bool positive) {
  tn_val slope = tn_scalar(b, TN_F32, 0), start = tn_scalar(b, TN_F32, 0);
  for (int32_t i = 0; i <= DECADES; i++) {
    double n = dynamic_map_place(i, positive), part = i < DECADES ? 0.9 * pow(10, i - 6) / n : 0;
    tn_val reached = tn_ge(b, place, tn_scalar(b, TN_F32, n));
    slope = dynamic_map_choose(b, reached, part, slope);
    start = dynamic_map_choose(b, reached, dynamic_map_number(i, 0, positive) - part * n, start);
  }
  return tn_add(b, tn_mul(b, slope, place), start);
}

/* Codes have the order of their numbers: code 127 is 0, or code 0 of positive ones. */
tn_val tn_dynamic_map_decode(tn_build *b, tn_val codes, bool positive) {
  tn_val code = tn_to_dtype(b, codes, TN_F32);
  if (positive) return dynamic_map_line(b, tn_affine(b, code, 1, 1), true);
  tn_val place = tn_affine(b, code, 1, -127);
  return tn_mul(b, tn_sign(b, place), dynamic_map_line(b, tn_abs(b, place), false));
}

/* The place of the number nearest to a magnitude: its part of the decade, limited to the decade's numbers. A
 * decade's line begins at 8 / 9 of its first place; decade 7 is no line and has one place. */
static tn_val dynamic_map_nearest(tn_build *b, tn_val magnitude, bool positive) {
  tn_val slope = 0, first = 0;
  for (int32_t i = 0; i <= DECADES; i++) {
    double n = dynamic_map_place(i, positive), part = i < DECADES ? n / 0.9 * pow(10, 6 - i) : 0;
    tn_val reached = tn_ge(b, magnitude, tn_scalar(b, TN_F32, dynamic_map_middle(i, positive)));
    slope = i == 0 ? tn_scalar(b, TN_F32, part) : dynamic_map_choose(b, reached, part, slope);
    first = i == 0 ? tn_scalar(b, TN_F32, n) : dynamic_map_choose(b, reached, n, first);
  }
  tn_val start = tn_affine(b, first, 8.0 / 9, 0);
  tn_val place = tn_floor(b, tn_add(b, tn_mul(b, slope, magnitude), start));
  place = tn_minimum(b, tn_maximum(b, place, first), tn_affine(b, first, 2, -1));
  tn_val some = tn_ge(b, magnitude, tn_scalar(b, TN_F32, dynamic_map_middle(0, positive)));
  return tn_where(b, some, place, tn_scalar(b, TN_F32, positive));
}

/* -1 has no code: it becomes the number next to it. */
tn_val tn_dynamic_map_encode(tn_build *b, tn_val magnitude, tn_val sign, bool positive) {
  tn_val place = dynamic_map_nearest(b, magnitude, positive);
  tn_val code = positive ? tn_affine(b, place, 1, -1) : tn_affine(b, tn_mul(b, sign, place), 1, 127);
  return tn_to_dtype(b, tn_maximum(b, code, tn_scalar(b, TN_F32, 0)), TN_U8);
}
