/* core/config/options/units.c: parsing of sizes, durations and element types. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/config/options/options.h"

typedef struct unit_factor {
  const char *name;
  double factor;
} unit_factor;

static const unit_factor size_units[] = {
    {"", 1},      {"b", 1},        {"kb", 1e3},     {"mb", 1e6},     {"gb", 1e9},
    {"tb", 1e12}, {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40},
};
static const unit_factor duration_units[] = {
    {"", 1}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400},
};

/* Splits "64 MiB" into 64 and the factor of MiB; false without a number or with an unknown unit. */
static bool units_read_quantity(const char *text, const unit_factor *units, size_t n_units, double *number,
                                double *factor) {
  char digits[64];
  while (isspace((unsigned char)*text)) text++;
  size_t n = strspn(text, "+-.0123456789");
  if (n == 0 || n >= sizeof(digits)) return false;
  /* An "e" starts an exponent only if digits or a sign follow. */
  if ((text[n] == 'e' || text[n] == 'E') && strchr("+-0123456789", text[n + 1]) != NULL &&
      text[n + 1] != '\0')
    n += 1 + strspn(text + n + 1, "+-0123456789");
  if (n >= sizeof(digits)) return false;
  memcpy(digits, text, n);
  digits[n] = '\0';
  if (!tn_text_to_float(digits, number)) return false;
  const char *unit = text + n;
  while (isspace((unsigned char)*unit)) unit++;
  size_t length = strlen(unit);
  while (length > 0 && isspace((unsigned char)unit[length - 1])) length--;
  for (size_t i = 0; i < n_units; i++)
    if (strlen(units[i].name) == length && strncasecmp(units[i].name, unit, length) == 0) {
      *factor = units[i].factor;
      return true;
    }
  return false;
}

tn_status tn_parse_size(const void *handle, const char *text, int64_t *bytes) {
  double number, factor;
  size_t n = sizeof(size_units) / sizeof(size_units[0]);
  if (tn_text_to_int(text, bytes) && *bytes >= 0) return TN_OK; /* exact beyond 2^53 */
  *bytes = 0;
  if (!units_read_quantity(text, size_units, n, &number, &factor) || signbit(number))
    return tn_failf(handle, TN_EINVAL, "'%s' is not a size, expected bytes such as 512, 64MiB or 2GB", text);
  double product = nearbyint(number * factor);
  if (product >= 0x1p63)
    return tn_failf(handle, TN_EINVAL, "'%s' is too large for a size, expected below 2^63", text);
  *bytes = (int64_t)product;
  return TN_OK;
}

tn_status tn_parse_duration(const void *handle, const char *text, double *seconds) {
  double number, factor;
  size_t n = sizeof(duration_units) / sizeof(duration_units[0]);
  *seconds = 0;
  if (!units_read_quantity(text, duration_units, n, &number, &factor) || signbit(number) ||
      isinf(number * factor))
    return tn_failf(handle, TN_EINVAL, "'%s' is not a duration, expected a time such as 90s, 5min, 2h or 0.5",
                    text);
  *seconds = number * factor;
  return TN_OK;
}

/* Maps the names of element types in other frameworks to Tenon's, for the message. */
static const char *units_foreign_dtype(const char *text) {
  static const char *const names[][2] = {
      {"float16", "f16"}, {"fp16", "f16"},  {"half", "f16"},    {"bfloat16", "bf16"}, {"float32", "f32"},
      {"fp32", "f32"},    {"float", "f32"}, {"float64", "f64"}, {"fp64", "f64"},      {"double", "f64"},
      {"int32", "i32"},   {"int", "i32"},   {"int64", "i64"},   {"long", "i64"},      {"uint8", "u8"},
      {"byte", "u8"},     {"int8", "i8"},   {"char", "i8"},     {"boolean", "bool"},
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(names[i][0], text) == 0) return names[i][1];
  return NULL;
}

tn_status tn_parse_dtype(const void *handle, const char *text, int32_t *dtype) {
  for (int32_t i = 0; i < TN_DTYPES; i++)
    if (strcmp(tn_dtype_name(i), text) == 0) {
      *dtype = i;
      return TN_OK;
    }
  *dtype = TN_ANY;
  const char *meant = units_foreign_dtype(text);
  if (meant != NULL)
    return tn_failf(handle, TN_EINVAL, "'%s' is not an element type, did you mean '%s'?", text, meant);
  return tn_failf(handle, TN_EINVAL,
                  "'%s' is not an element type, expected f32, f16, bf16, f64, i32, i64, i8, u8, bool or any",
                  text);
}
