/* Plain sums, which the kernel declares: it passes. */
#define DECLARED 1
#include "moments.h"
