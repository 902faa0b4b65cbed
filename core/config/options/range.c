/* core/config/options/range.c: ranges of options: "> 0", "[0, 1)" and "a|b|c". A range without a bound on one
 * side ends before infinity; "[0, inf]" would include it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/config/options/option_value.h"
#include "core/config/options/range.h"

/* Reads a bound of a range; bounds are short, like "1e-12" or "65536". */
static bool range_read_number(const char *text, size_t n, double *value) {
  char digits[32];
  while (n > 0 && *text == ' ') {
    text++;
    n--;
  }
  while (n > 0 && text[n - 1] == ' ') n--;
  if (n == 0 || n >= sizeof(digits)) return false;
  memcpy(digits, text, n);
  digits[n] = '\0';
  return tn_text_to_float(digits, value) && !isnan(*value);
}

/* "> 0", ">= 1", "< 2", "<= 3" */
static bool range_read_bound(const char *text, tn_range *range) {
  bool open = text[1] != '=';
  const char *number = text + (open ? 1 : 2);
  if (*text == '>') {
    range->low_open = open;
    return range_read_number(number, strlen(number), &range->low);
  }
  range->high_open = open;
  return range_read_number(number, strlen(number), &range->high);
}

/* "[0, 1)" */
static bool range_read_interval(const char *text, tn_range *range) {
  const char *comma = strchr(text, ',');
  size_t n = strlen(text);
  if (comma == NULL || (text[n - 1] != ']' && text[n - 1] != ')')) return false;
  range->low_open = text[0] == '(';
  range->high_open = text[n - 1] == ')';
  return range_read_number(text + 1, (size_t)(comma - text) - 1, &range->low) &&
         range_read_number(comma + 1, (size_t)(text + n - 1 - comma) - 1, &range->high) &&
         range->low <= range->high;
}

bool tn_range_read(const char *text, tn_range *range) {
  *range = (tn_range){.low = -INFINITY, .high = INFINITY, .low_open = true, .high_open = true};
  if (*text == '>' || *text == '<') return range_read_bound(text, range);
  return (*text == '[' || *text == '(') && range_read_interval(text, range);
}

/* A NaN is outside every range. */
static bool range_holds(const tn_range *range, double x) {
  bool above = range->low_open ? x > range->low : x >= range->low;
  bool below = range->high_open ? x < range->high : x <= range->high;
  return above && below;
}

/* Whether the words are non-empty and distinct. */
static bool range_words_valid(const char *words) {
  size_t n, m;
  for (int32_t i = 0;; i++) {
    const char *word = tn_alternatives_at(words, i, &n);
    if (word == NULL) return i > 0;
    if (n == 0) return false;
    for (int32_t k = 0; k < i; k++) {
      const char *other = tn_alternatives_at(words, k, &m);
      if (n == m && memcmp(word, other, n) == 0) return false;
    }
  }
}

bool tn_option_range_valid(const tn_option *option) {
  tn_range range;
  if (option->type == TN_OPT_ENUM) return option->range != NULL && range_words_valid(option->range);
  if (option->range == NULL) return true;
  if (option->type == TN_OPT_TEXT || option->type == TN_OPT_PATH) return range_words_valid(option->range);
  switch (tn_option_type_of(option)->field) {
  case TN_FIELD_I64:
  case TN_FIELD_F64:
  case TN_FIELD_INTS:
  case TN_FIELD_FLOATS: return tn_range_read(option->range, &range);
  default: return false; /* flags, dtypes and initializers take no range */
  }
}

bool tn_option_allows(const tn_option *option, int64_t number) {
  tn_range range;
  return option->range == NULL ||
         (tn_range_read(option->range, &range) && range_holds(&range, (double)number));
}

static tn_status range_fail(const void *handle, const tn_option *option, bool integer, int64_t i, double x) {
  tn_text shown = tn_text_new(handle);
  if (integer)
    tn_text_addf(&shown, "%lld", (long long)i);
  else
    tn_text_add_float(&shown, x);
  tn_status status = tn_failf(handle, TN_EINVAL, "%s: %s is out of range, expected %s", option->name,
                              shown.failed ? "the value" : shown.v, option->range);
  tn_text_free(&shown);
  return status;
}

/* `x` is outside the option's range. */
static tn_status range_fail_float(const void *handle, const tn_option *option, double x) {
  if (isfinite(x)) return range_fail(handle, option, false, 0, x);
  return tn_failf(handle, TN_EINVAL, "%s: %s is not a finite number, expected one %s%s", option->name,
                  isnan(x) ? "nan"
                  : x < 0  ? "-inf"
                           : "inf",
                  strchr("[(", *option->range) ? "in " : "", option->range);
}

/* A scheduled option reaches the device as f32. */
static tn_status range_check_f32(const void *handle, const tn_option *option, double x) {
  if (!(option->flags & TN_OPT_SCHEDULED) || fabs(x) <= FLT_MAX) return TN_OK;
  return tn_failf(handle, TN_EINVAL, "%s: %g is too large, expected at most %g: it is used as f32",
                  option->name, x, (double)FLT_MAX);
}

static tn_status range_check_float(const void *handle, const tn_option *option, const tn_range *range,
                                   double x) {
  if (!range_holds(range, x)) return range_fail_float(handle, option, x);
  return range_check_f32(handle, option, x);
}

static tn_status range_check_word(const void *handle, const tn_option *option, const char *text) {
  if (tn_alternatives_find(option->range, text) >= 0) return TN_OK;
  return tn_failf(handle, TN_EINVAL, "%s: '%s' is not one of %s", option->name, text, option->range);
}

tn_status tn_option_check(const void *handle, const tn_option *option, const tn_option_value *value) {
  tn_range range;
  if (option->type == TN_OPT_ENUM) return TN_OK;
  if (option->range == NULL)
    return option->type == TN_OPT_FLOAT ? range_check_f32(handle, option, value->real) : TN_OK;
  if (option->type == TN_OPT_PATH) return TN_OK; /* its words are values beside paths */
  if (option->type == TN_OPT_TEXT) return range_check_word(handle, option, value->text);
  if (!tn_range_read(option->range, &range))
    return tn_failf(handle, TN_EABI, "%s: the range '%s' cannot be read", option->name, option->range);
  switch (tn_option_type_of(option)->field) {
  case TN_FIELD_I64:
    if (range_holds(&range, (double)value->integer)) return TN_OK;
    return range_fail(handle, option, true, value->integer, 0);
  case TN_FIELD_F64: return range_check_float(handle, option, &range, value->real);
  case TN_FIELD_INTS:
    for (int64_t i = 0; i < value->ints.n; i++)
      if (!range_holds(&range, (double)value->ints.v[i]))
        return range_fail(handle, option, true, value->ints.v[i], 0);
    return TN_OK;
  case TN_FIELD_FLOATS:
    for (int64_t i = 0; i < value->floats.n; i++)
      TN_TRY(range_check_float(handle, option, &range, value->floats.v[i]));
    return TN_OK;
  default: return TN_OK;
  }
}
