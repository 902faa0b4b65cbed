/* tests/support/clock_of_core.c: the test's clock in place of tn_clock_s. */
#include "tests/support/test_clock.h"

double __wrap_tn_clock_s(void);

double __wrap_tn_clock_s(void) { return test_clock_s(); }
