/* tests/support/whole.h: how much of a test runs. `tools/dev test` takes a sample of what differs little from
 * the rest, and `tools/dev whole`, which sets TENON_WHOLE, all of it. */
#pragma once

#include <stdlib.h>

static inline int whole_or(int all, int sample) { return getenv("TENON_WHOLE") != NULL ? all : sample; }
