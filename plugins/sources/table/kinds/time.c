/* plugins/sources/table/kinds/time.c: a time as seconds since 1970, or as parts such as its hour. */
#include <math.h>
#include <string.h>

#include "plugins/sources/table/kinds/kinds.h"

enum { TIME_PARTS = 8 };

/* Year, month and day of a number of days since 1970-01-01 (Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms"). */
static void time_civil(int64_t days, int64_t *year, int64_t *month, int64_t *day) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
  int64_t of_cycle = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * of_cycle + of_cycle / 4 - of_cycle / 100),
          shifted = (5 * of_year + 2) / 153;
  *day = of_year - (153 * shifted + 2) / 5 + 1;
  *month = shifted + (shifted < 10 ? 3 : -9);
  *year = of_cycle + era * 400 + (*month <= 2);
}

/* One of "year|month|day|weekday|hour|minute|second|fraction"; Monday is weekday 0. */
static double time_part(double seconds, int part) {
  int64_t whole = (int64_t)floor(seconds), days = whole / 86400 - (whole % 86400 < 0),
          clock = whole - days * 86400;
  int64_t year, month, day;
  time_civil(days, &year, &month, &day);
  const double parts[TIME_PARTS] = {(double)year,
                                    (double)month,
                                    (double)day,
                                    (double)(((days + 3) % 7 + 7) % 7),
                                    (double)(clock / 3600),
                                    (double)(clock / 60 % 60),
                                    (double)(clock % 60),
                                    (double)clock / 86400};
  return parts[part];
}

/* The number of a part's name at *at, which moves behind it; -1: it is no part. */
static int time_next_part(const char **at) {
  static const char *const names[TIME_PARTS] = {"year", "month",  "day",    "weekday",
                                                "hour", "minute", "second", "of_day"};
  size_t n = strcspn(*at, "|");
  for (int i = 0; i < TIME_PARTS; i++)
    if (strlen(names[i]) == n && memcmp(names[i], *at, n) == 0) {
      *at += n + ((*at)[n] == '|');
      return i;
    }
  return -1;
}

static tn_status time_describe(table *t, table_field *f, tn_field *described) {
  int64_t n = 0;
  const char *at = f->choices.parts;
  *described = kind_field(f, (tn_type){TN_F32, 0, {0}});
  if (at != NULL) {
    for (; *at != '\0'; n++)
      if (time_next_part(&at) < 0 || n >= 64)
        return tn_fail(
            &t->env, TN_EINVAL, NULL,
            "field '%s': parts = %s: expected year, month, day, weekday, hour, minute, second or of_day, "
            "with | between them",
            f->name, f->choices.parts);
    if (f->choices.standardize)
      return tn_fail(&t->env, TN_EINVAL, NULL, "field '%s': standardize is for a time without parts",
                     f->name);
    described->type = (tn_type){TN_F32, 1, {n}};
  }
  table_tell_units(f, described);
  return table_check_numbers(t, f);
}

static void time_write(const table *t, const table_field *f, int64_t row, void *values) {
  (void)t;
  float *to = values;
  double seconds = table_scaled(f, 0, f->column[0]->numbers[row]);
  const char *at = f->choices.parts;
  if (at == NULL) *to = (float)seconds;
  for (; at != NULL && *at != '\0'; to++) *to = (float)time_part(seconds, time_next_part(&at));
}

const table_kind kind_time = {.name = "time",
                              .types = "f32[] or f32[parts]",
                              .doc = "a date or time as seconds since 1970, or its parts",
                              .choices = CHOICE_FILL | CHOICE_STANDARDIZE | CHOICE_PARTS,
                              .form = TABLE_TIMES,
                              .learn = table_learn_numbers,
                              .describe = time_describe,
                              .write = time_write};
