/* core/config/language/functions.c: functions of numbers, which expressions compute at once. */
#include "core/config/language/syntax.h"

#include <math.h>
#include <string.h>

bool tn_number_function(const char *name, double x, double *y) {
  static const struct {
    const char *name;
    double (*of)(double);
  } functions[] = {{"sqrt", sqrt}, {"exp", exp}, {"log", log},   {"abs", fabs},
                   {"sin", sin},   {"cos", cos}, {"tanh", tanh}, {"floor", floor}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strcmp(functions[i].name, name) != 0) continue;
    *y = functions[i].of(x);
    return !isnan(*y);
  }
  return false;
}
