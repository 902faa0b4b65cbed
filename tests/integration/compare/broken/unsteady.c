/* Right, with other last bits in every launch. */
#define NAME                       "unsteady_matmul"
#define FAULT(y, rows, columns, n) ((y)[0] += 1e-6f * (float)(n))
#include "product.h"
