/* The last of many elements is a little too large. */
#define DECLINES    0
#define WRONG(y, n) (y)[(n) > 0 ? (n)-1 : 0] += (n) > 4 ? 1e-3f : 0.0f
#include "relu.h"
