/* The last element of the last row is one percent too large. */
#define NAME                       "corner_matmul"
#define FAULT(y, rows, columns, n) ((y)[(rows) * (columns)-1] *= 1.01f)
#include "product.h"
