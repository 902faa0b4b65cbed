/* Plain sums, which the kernel does not declare. */
#define DECLARED 0
#include "moments.h"
