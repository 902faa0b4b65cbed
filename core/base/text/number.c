/* core/base/text/number.c: conversion of numbers from and to text. Files and configurations use a decimal
 * point; thread_state.h sees to it where the application's locale has a comma. */
#include "core/base/text/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tn_text_to_int(const char *text, int64_t *value) {
  bool negative = *text == '-';
  int64_t n = 0;
  if (*text == '-' || *text == '+') text++;
  if (!isdigit((unsigned char)*text)) return false;
  for (; isdigit((unsigned char)*text); text++) {
    /* Accumulating negative values covers INT64_MIN, which has no positive counterpart. */
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *text - '0', &n)) return false;
  }
  if (*text != '\0' || (!negative && n == INT64_MIN)) return false;
  *value = negative ? n : -n;
  return true;
}

static const char *number_skip_digits(const char *p) {
  while (isdigit((unsigned char)*p)) p++;
  return p;
}

/* Accepts digits with at most one point and an exponent. strtod alone would also accept hexadecimal and
 * blanks. */
static bool number_is_decimal(const char *text) {
  const char *point = number_skip_digits(text), *rest = point;
  bool any = point > text;
  if (*rest == '.') {
    rest = number_skip_digits(point + 1);
    any = any || rest > point + 1;
  }
  if (!any) return false;
  if (*rest == 'e' || *rest == 'E') {
    const char *exponent = rest + 1;
    if (*exponent == '-' || *exponent == '+') exponent++;
    rest = number_skip_digits(exponent);
    if (rest == exponent) return false;
  }
  return *rest == '\0';
}

bool tn_text_to_float(const char *text, double *value) {
  const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
  double size;
  if (strcmp(digits, "inf") == 0) {
    size = INFINITY;
  } else if (strcmp(digits, "nan") == 0) {
    size = NAN;
  } else {
    if (!number_is_decimal(digits)) return false;
    size = strtod(digits, NULL);
    if (isinf(size)) return false;
  }
  *value = *text == '-' ? -size : size;
  return true;
}

/* Prints the shortest digits that read back to the same value, without an exponent for ordinary
 * magnitudes. */
static void number_print_shortest(char *digits, size_t capacity, double value) {
  int precision = 0;
  do snprintf(digits, capacity, "%.*e", precision, value);
  while (strtod(digits, NULL) != value && ++precision < 17);
  int exponent = atoi(strchr(digits, 'e') + 1);
  if (exponent < -4 || exponent > 15) return;
  snprintf(digits, capacity, "%.*f", precision > exponent ? precision - exponent : 0, value);
}

void tn_text_add_float(tn_text *text, double value) {
  char digits[40];
  if (isnan(value) || isinf(value)) {
    tn_text_addf(text, "%s%s", signbit(value) ? "-" : "", isnan(value) ? "nan" : "inf");
    return;
  }
  number_print_shortest(digits, sizeof(digits), value);
  tn_text_add(text, digits);
}
