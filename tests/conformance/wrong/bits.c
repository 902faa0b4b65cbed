/* The bits differ in every run, within the tolerance. */
#define DECLINES 0
#define WRONG(y, n)                                                                                          \
  do {                                                                                                       \
    static float drift = 1e-9f;                                                                              \
    if ((n) > 0) (y)[0] += drift += 1e-9f;                                                                   \
  } while (0)
#include "relu.h"
