/* tests/support/whole.h: how much of a test runs. `tools/dev test` takes a sample of cases that differ little
 * from one another, and `tools/dev whole`, which sets TENON_WHOLE, all of them. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>

static inline bool whole(void) { return getenv("TENON_WHOLE") != NULL; }
static inline int whole_or(int all, int sample) { return whole() ? all : sample; }
