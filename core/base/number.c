/* core/base/number.c: numbers from text and back. An application may have set a locale with a decimal
 * comma; files and configurations have a point everywhere. */
#include "core/base/text.h"

#include <ctype.h>
#include <locale.h>
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
    /* Counting downwards reaches the least value, which has no positive twin. */
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *text - '0', &n)) return false;
  }
  if (*text != '\0' || (!negative && n == INT64_MIN)) return false;
  *value = negative ? n : -n;
  return true;
}

static const char *skip_digits(const char *p) {
  while (isdigit((unsigned char)*p)) p++;
  return p;
}

/* Digits with at most one point and an exponent; strtod would also take hexadecimal and spaces. */
static bool is_decimal(const char *text) {
  const char *whole = skip_digits(text), *rest = whole;
  bool any = whole > text;
  if (*rest == '.') {
    rest = skip_digits(whole + 1);
    any = any || rest > whole + 1;
  }
  if (!any) return false;
  if (*rest == 'e' || *rest == 'E') {
    const char *exponent = rest + 1;
    if (*exponent == '-' || *exponent == '+') exponent++;
    rest = skip_digits(exponent);
    if (rest == exponent) return false;
  }
  return *rest == '\0';
}

/* glibc and musl hand out a constant object for "C", so this costs no allocation. */
static locale_t c_locale(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static double from_decimal(const char *text) {
  locale_t c = c_locale();
  double value = c != (locale_t)0 ? strtod_l(text, NULL, c) : strtod(text, NULL);
  if (c != (locale_t)0) freelocale(c);
  return value;
}

bool tn_text_to_float(const char *text, double *value) {
  const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
  double size;
  if (strcmp(digits, "inf") == 0) {
    size = INFINITY;
  } else if (strcmp(digits, "nan") == 0) {
    size = NAN;
  } else {
    if (!is_decimal(digits)) return false;
    size = from_decimal(digits);
    if (isinf(size)) return false;
  }
  *value = *text == '-' ? -size : size;
  return true;
}

/* The shortest digits that read back the same, without an exponent where people would write none. */
static void print_shortest(char *digits, size_t capacity, double value) {
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
  locale_t c = c_locale(), before = c != (locale_t)0 ? uselocale(c) : (locale_t)0;
  print_shortest(digits, sizeof(digits), value);
  if (before != (locale_t)0) uselocale(before);
  if (c != (locale_t)0) freelocale(c);
  tn_text_add(text, digits);
}
