/* From the eleventh launch on, the first element is wrong. */
#define NAME                       "eleventh_matmul"
#define FAULT(y, rows, columns, n) ((y)[0] += (n) > 10 ? 0.5f : 0.0f)
#include "product.h"
