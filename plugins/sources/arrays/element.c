/* plugins/sources/arrays/element.c: stored numbers, and their conversion. Numbers go through blocks of i64 or
 * f64, so that a stored type and a dtype are two loops and no pair. */
#include <string.h>

#include "plugins/sources/arrays/array.h"

enum { ELEMENT_BLOCK = 256 };

typedef struct element_type {
  const char *name;
  array_element element;
  int32_t dtype; /* the same in memory, or TN_ANY */
} element_type;

static const element_type element_types[] = {
    {"bool", {ELEMENT_BOOL, 1, 0}, TN_BOOL},  {"u8", {ELEMENT_UNSIGNED, 1, 0}, TN_U8},
    {"i8", {ELEMENT_SIGNED, 1, 0}, TN_ANY},   {"u16", {ELEMENT_UNSIGNED, 2, 0}, TN_ANY},
    {"i16", {ELEMENT_SIGNED, 2, 0}, TN_ANY},  {"u32", {ELEMENT_UNSIGNED, 4, 0}, TN_ANY},
    {"i32", {ELEMENT_SIGNED, 4, 0}, TN_I32},  {"u64", {ELEMENT_UNSIGNED, 8, 0}, TN_ANY},
    {"i64", {ELEMENT_SIGNED, 8, 0}, TN_I64},  {"f16", {ELEMENT_FLOAT, 2, 0}, TN_F16},
    {"f32", {ELEMENT_FLOAT, 4, 0}, TN_F32},   {"f64", {ELEMENT_FLOAT, 8, 0}, TN_F64},
    {"bf16", {ELEMENT_BFLOAT, 2, 0}, TN_BF16}};
enum { ELEMENT_TYPES = sizeof element_types / sizeof *element_types };

array_element element_named(const char *word, size_t n) {
  for (int i = 0; i < ELEMENT_TYPES; i++)
    if (strlen(element_types[i].name) == n && memcmp(element_types[i].name, word, n) == 0)
      return element_types[i].element;
  return (array_element){ELEMENT_NONE, 0, 0};
}

static const element_type *element_find(const array_element *e) {
  for (int i = 0; i < ELEMENT_TYPES; i++)
    if (element_types[i].element.kind == e->kind && element_types[i].element.size == e->size)
      return &element_types[i];
  return NULL;
}

const char *element_name(const array_element *e) { return element_find(e)->name; }

static int32_t element_is_real(const array_element *e) {
  return e->kind == ELEMENT_FLOAT || e->kind == ELEMENT_BFLOAT;
}

int32_t element_dtype(const array_element *e, int32_t role) {
  int32_t same = element_find(e)->dtype;
  int32_t whole = !element_is_real(e) && e->kind != ELEMENT_BOOL;
  if (whole && role == TN_FIELD_TARGET) return TN_I32;
  if (same != TN_ANY) return same;
  return e->size < 4 ? TN_I32 : TN_I64;
}

int32_t element_converts(const array_element *e, int32_t dtype) {
  if (element_find(e)->dtype == dtype || dtype == TN_F32 || dtype == TN_F64) return 1;
  return !element_is_real(e) && (dtype == TN_U8 || dtype == TN_I32 || dtype == TN_I64);
}

/* ---- blocks ---- */

typedef union element_block {
  int64_t whole[ELEMENT_BLOCK];
  double real[ELEMENT_BLOCK];
} element_block;

static void element_swap(const uint8_t *from, size_t size, int64_t n, uint8_t *to) {
  for (int64_t i = 0; i < n; i++, from += size, to += size)
    for (size_t k = 0; k < size; k++) to[k] = from[size - 1 - k];
}

/* IEEE 754 binary16. */
static double element_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double sign = bits >> 15 ? -1 : 1, value = 0;
  if (exponent == 31) return fraction != 0 ? (double)__builtin_nan("") : sign * __builtin_inf();
  value = exponent == 0 ? fraction * 0x1p-24 : (1024 + fraction) * __builtin_ldexp(1, exponent - 25);
  return sign * value;
}

static double element_upper_half(uint16_t bits) {
  uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return (double)value;
}

#define ELEMENT_LOAD(T, out, of)                                                                             \
  for (int64_t i = 0; i < n; i++) {                                                                          \
    T v;                                                                                                     \
    memcpy(&v, from + (size_t)i * sizeof v, sizeof v);                                                       \
    (out)[i] = of;                                                                                           \
  }                                                                                                          \
  return

static void element_load_real(const array_element *e, const uint8_t *from, int64_t n, double *out) {
  if (e->kind == ELEMENT_BFLOAT) {
    ELEMENT_LOAD(uint16_t, out, element_upper_half(v));
  }
  switch (e->size) {
  case 2: ELEMENT_LOAD(uint16_t, out, element_half(v));
  case 4: ELEMENT_LOAD(float, out, (double)v);
  default: ELEMENT_LOAD(double, out, v);
  }
}

/* Numbers of u64 that i64 cannot hold become negative. */
static void element_load_whole(const array_element *e, const uint8_t *from, int64_t n, int64_t *out) {
  if (e->kind == ELEMENT_BOOL) {
    ELEMENT_LOAD(uint8_t, out, v != 0);
  }
  switch (e->size + (e->kind == ELEMENT_SIGNED ? 16 : 0)) {
  case 1: ELEMENT_LOAD(uint8_t, out, v);
  case 2: ELEMENT_LOAD(uint16_t, out, v);
  case 4: ELEMENT_LOAD(uint32_t, out, v);
  case 8: ELEMENT_LOAD(uint64_t, out, (int64_t)v);
  case 17: ELEMENT_LOAD(int8_t, out, v);
  case 18: ELEMENT_LOAD(int16_t, out, v);
  case 20: ELEMENT_LOAD(int32_t, out, v);
  default: ELEMENT_LOAD(int64_t, out, v);
  }
}

#define ELEMENT_STORE(T, of)                                                                                 \
  for (int64_t i = 0; i < n; i++) ((T *)to)[i] = (T)(of);                                                    \
  return

static void element_store_real(const double *v, int64_t n, int32_t dtype, void *to) {
  if (dtype == TN_F32) {
    ELEMENT_STORE(float, v[i]);
  }
  ELEMENT_STORE(double, v[i]);
}

static void element_store_whole(const int64_t *v, int64_t n, int32_t dtype, void *to) {
  switch (dtype) {
  case TN_BOOL:
  case TN_U8: ELEMENT_STORE(uint8_t, v[i]);
  case TN_I32: ELEMENT_STORE(int32_t, v[i]);
  case TN_I64: ELEMENT_STORE(int64_t, v[i]);
  case TN_F32: ELEMENT_STORE(float, v[i]);
  default: ELEMENT_STORE(double, v[i]);
  }
}

/* The first number that a whole dtype cannot hold; -1: none. */
static int64_t element_misfit(const array_element *e, const int64_t *v, int64_t n, int32_t dtype,
                              double *value) {
  int64_t least = INT64_MIN, most = INT64_MAX;
  if (e->kind == ELEMENT_UNSIGNED && e->size == 8) least = 0;
  if (dtype == TN_U8) least = 0, most = UINT8_MAX;
  if (dtype == TN_I32) least = least < INT32_MIN ? INT32_MIN : least, most = INT32_MAX;
  int32_t bad = 0;
  for (int64_t i = 0; i < n; i++) bad |= v[i] < least || v[i] > most;
  for (int64_t i = 0; bad && i < n; i++)
    if (v[i] < least || v[i] > most) {
      *value = e->kind == ELEMENT_UNSIGNED ? (double)(uint64_t)v[i] : (double)v[i];
      return i;
    }
  return -1;
}

static int64_t element_read_block(const array_element *e, const uint8_t *from, int32_t dtype, void *to,
                                  int64_t n, double *value) {
  uint8_t turned[8 * ELEMENT_BLOCK];
  element_block block;
  if (e->swapped) {
    element_swap(from, e->size, n, turned);
    from = turned;
  }
  if (element_is_real(e)) {
    element_load_real(e, from, n, block.real);
    element_store_real(block.real, n, dtype, to);
    return -1;
  }
  element_load_whole(e, from, n, block.whole);
  int64_t misfit = element_misfit(e, block.whole, n, dtype, value);
  if (misfit < 0) element_store_whole(block.whole, n, dtype, to);
  return misfit;
}

int64_t element_read(const array_element *e, const uint8_t *from, int32_t dtype, void *to, int64_t n,
                     double *value) {
  size_t size = tn_dtype_size(dtype);
  if (element_find(e)->dtype == dtype && e->kind != ELEMENT_BOOL) {
    if (e->swapped)
      element_swap(from, size, n, to);
    else if (n > 0)
      memcpy(to, from, (size_t)n * size);
    return -1;
  }
  for (int64_t at = 0; at < n; at += ELEMENT_BLOCK) {
    int64_t part = n - at < ELEMENT_BLOCK ? n - at : ELEMENT_BLOCK;
    int64_t misfit = element_read_block(e, from + (size_t)at * e->size, dtype,
                                        (uint8_t *)to + (size_t)at * size, part, value);
    if (misfit >= 0) return at + misfit;
  }
  return -1;
}
