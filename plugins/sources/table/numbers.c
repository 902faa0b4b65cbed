/* plugins/sources/table/numbers.c: numbers and times as text. Most numbers are short: a whole number below
 * 2^53 times or divided by a power of ten up to 10^22 is rounded once (Clinger, "How to Read Floating Point
 * Numbers Accurately", PLDI 1990). The extended precision of x86 does so with 64 bits and 10^27; a second
 * rounding to 53 bits is wrong only where the first one gives a tie. strtod converts the others. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/table/table.h"

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MOST_DIGITS = 19, MOST_POWER = 22, LONGEST_NUMBER = 400 };

#if LDBL_MANT_DIG == 64
static const long double long_powers_of_ten[] = {
    1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
    1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
enum { MOST_LONG_POWER = 27, LOW_BITS = 0x7FF, TIE = 0x400 };

static bool number_extended(uint64_t mantissa, int exponent, double *value) {
  uint64_t bits;
  if (exponent < -MOST_LONG_POWER || exponent > MOST_LONG_POWER) return false;
  long double whole = (long double)mantissa;
  whole = exponent < 0 ? whole / long_powers_of_ten[-exponent] : whole * long_powers_of_ten[exponent];
  memcpy(&bits, &whole, sizeof(bits)); /* its significand */
  *value = (double)whole;
  return (bits & LOW_BITS) != TIE;
}
#else
static bool number_extended(uint64_t mantissa, int exponent, double *value) {
  (void)mantissa, (void)exponent, (void)value;
  return false;
}
#endif

static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The exponent behind e; NULL: there is no exponent, or a large one. */
static const char *number_exponent(const char *at, int *exponent) {
  bool minus = *at == '-';
  int value = 0;
  if (*at == '-' || *at == '+') at++;
  if (!is_digit(*at)) return NULL;
  for (; is_digit(*at); at++) {
    value = 10 * value + (*at - '0');
    if (value > 99) return NULL;
  }
  *exponent += minus ? -value : value;
  return at;
}

const char *table_number_fast(const char *at, double *value) {
  bool minus = *at == '-';
  uint64_t mantissa = 0;
  int digits = 0, exponent = 0;
  if (*at == '-' || *at == '+') at++;
  const char *first = at;
  for (; is_digit(*at); at++) mantissa = 10 * mantissa + (uint64_t)(*at - '0');
  digits = (int)(at - first);
  if (*at == '.') {
    const char *point = ++at;
    for (; is_digit(*at); at++) mantissa = 10 * mantissa + (uint64_t)(*at - '0');
    exponent = (int)(point - at);
    digits -= exponent;
  }
  if (digits == 0 || digits > MOST_DIGITS) return NULL;
  if ((*at == 'e' || *at == 'E') && (at = number_exponent(at + 1, &exponent)) == NULL) return NULL;
  double whole = (double)mantissa;
  if (mantissa >> 53 == 0 && exponent >= -MOST_POWER && exponent <= MOST_POWER)
    whole = exponent < 0 ? whole / powers_of_ten[-exponent] : whole * powers_of_ten[exponent];
  else if (!number_extended(mantissa, exponent, &whole))
    return NULL;
  *value = minus ? -whole : whole;
  return at;
}

/* Hexadecimal numbers, nan and inf, which strtod accepts, are no numbers of a table. */
static bool number_exact(const char *text, size_t n, double *value) {
  char copy[LONGEST_NUMBER + 1], *end;
  if (n == 0 || n > LONGEST_NUMBER) return false;
  for (size_t i = 0; i < n; i++)
    if (!is_digit(text[i]) && strchr("+-.eE", text[i]) == NULL) return false;
  memcpy(copy, text, n);
  copy[n] = '\0';
  *value = strtod(copy, &end);
  return end == copy + n && isfinite(*value);
}

static inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

static void number_trim(const char **text, size_t *n) {
  for (; *n > 0 && is_blank((*text)[*n - 1]); --*n) continue;
  for (; *n > 0 && is_blank(**text); --*n) ++*text;
}

bool table_to_number(const char *text, size_t n, double *value) {
  char copy[MOST_DIGITS + 8];
  number_trim(&text, &n);
  if (n > 0 && n < sizeof(copy)) {
    memcpy(copy, text, n);
    copy[n] = '\0';
    const char *end = memchr(copy, 0, n) == NULL ? table_number_fast(copy, value) : NULL;
    if (end == copy + n) return true;
  }
  return number_exact(text, n, value);
}

bool table_is_missing(const char *text, size_t n) {
  static const char *const words[] = {"NA",   "NaN",      "nan",    "N/A",     "n/a",     "NULL",
                                      "null", "None",     "<NA>",   "#N/A",    "-nan",    "-NaN",
                                      "#NA",  "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"};
  number_trim(&text, &n);
  if (n == 0) return true;
  if (n > 8 || (is_digit(*text) && *text != '1')) return false;
  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (strlen(words[i]) == n && memcmp(words[i], text, n) == 0) return true;
  return false;
}

/* ---- times ---- */

typedef struct time_text {
  const char *at, *end;
} time_text;

/* A number of exactly so many digits; -1: there are others. */
static int time_digits(time_text *t, int digits) {
  int value = 0;
  if (t->end - t->at < digits) return -1;
  for (int i = 0; i < digits; i++, t->at++) {
    if (!is_digit(*t->at)) return -1;
    value = 10 * value + (*t->at - '0');
  }
  return value;
}

static bool time_accept(time_text *t, char c) {
  if (t->at == t->end || *t->at != c) return false;
  t->at++;
  return true;
}

/* Days since 1970-01-01 of the proleptic Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms"). */
static int64_t time_days(int64_t year, int month, int day) {
  year -= month <= 2;
  int64_t era = (year >= 0 ? year : year - 399) / 400;
  int64_t of_era = year - era * 400, of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool time_date(time_text *t, double *seconds) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int year = time_digits(t, 4);
  if (year < 0 || !time_accept(t, '-')) return false;
  int month = time_digits(t, 2);
  if (month < 1 || month > 12 || !time_accept(t, '-')) return false;
  int day = time_digits(t, 2), leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (day < 1 || day > lengths[month - 1] + (month == 2 && leap)) return false;
  *seconds = 86400.0 * (double)time_days(year, month, day);
  return true;
}

/* ".25"; nothing is 0. */
static bool time_fraction(time_text *t, double *fraction) {
  double unit = 0.1;
  *fraction = 0;
  if (!time_accept(t, '.')) return true;
  if (t->at == t->end || !is_digit(*t->at)) return false;
  for (; t->at < t->end && is_digit(*t->at); t->at++, unit /= 10) *fraction += unit * (*t->at - '0');
  return true;
}

static bool time_clock(time_text *t, double *seconds) {
  double fraction = 0;
  int hour = time_digits(t, 2), minute = time_accept(t, ':') ? time_digits(t, 2) : -1, second = 0;
  if (hour < 0 || hour > 24 || minute < 0 || minute > 59) return false;
  if (time_accept(t, ':')) {
    second = time_digits(t, 2);
    if (second < 0 || second > 60 || !time_fraction(t, &fraction)) return false;
  }
  *seconds += 3600 * hour + 60 * minute + second + fraction;
  return true;
}

/* Z, +02:00 or +0200; nothing is UTC. */
static bool time_offset(time_text *t, double *seconds) {
  bool east = time_accept(t, '+'), west = !east && time_accept(t, '-');
  if (!east && !west) return time_accept(t, 'Z') || true;
  int hours = time_digits(t, 2);
  bool colon = time_accept(t, ':');
  int minutes = t->at < t->end || colon ? time_digits(t, 2) : 0;
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return false;
  *seconds += (east ? -60.0 : 60.0) * (60 * hours + minutes);
  return true;
}

bool table_to_time(const char *text, size_t n, double *seconds) {
  number_trim(&text, &n);
  time_text t = {text, text + n};
  if (n < 10 || text[4] != '-') return table_to_number(text, n, seconds);
  if (!time_date(&t, seconds)) return false;
  if (t.at == t.end) return true;
  if (!time_accept(&t, 'T') && !time_accept(&t, ' ')) return false;
  return time_clock(&t, seconds) && time_offset(&t, seconds) && t.at == t.end;
}
