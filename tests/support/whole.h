/* tests/support/whole.h: how much of a test runs. `tools/dev test` takes a sample of cases that differ little
 * from one another, and `tools/dev whole`, which sets TENON_WHOLE, all of them. */
#pragma once

#include <stdlib.h>

static inline int whole_or(int all, int sample) { return getenv("TENON_WHOLE") != NULL ? all : sample; }
