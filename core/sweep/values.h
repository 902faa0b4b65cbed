/* core/sweep/values.h: the values of one key of a sweep: a list, or a range to draw from. */
#pragma once

#include "core/base/arena.h"
#include "core/base/text/word_list.h"

typedef struct tn_sweep_values {
  const char *key;   /* "optimizer.lr" */
  const char *where; /* "net.ini:31" or "--set optimizer.lr", for messages */
  tn_words list;     /* of a list; n is 0 for a range */
  bool log, whole;   /* of a range: uniform in the logarithm; whole numbers */
  double low, high;
} tn_sweep_values;

/* Reads "1e-4, 3e-4", "0..0.5", "16..256" or "log 1e-5..1e-2". Commas and line ends divide a list, but not
 * within brackets or double quotes, which are removed from around a whole value. Texts live in the arena.
 * TN_EINVAL: there is no value; a range is empty, stands in a list, or is log and not above 0. */
tn_status tn_sweep_values_read(tn_arena *arena, const char *where, const char *key, const char *text,
                               tn_sweep_values *values);

/* Value i of a list. */
const char *tn_sweep_values_at(const tn_sweep_values *values, int64_t i);
/* A value of the range for u, uniform on [0, 1): with four digits, or a whole number. NULL: no memory. */
const char *tn_sweep_values_draw(tn_arena *arena, const tn_sweep_values *values, double u);
