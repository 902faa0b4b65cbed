/* tests/integration/cli/side_by_side.h: cases that run at the same time. */
#pragma once

#include "program.h"

/* Runs the cases at once, each in a process of its own, and prints what they have printed in their order.
 * For cases that wait for the end of a limit: the group takes as long as the longest of them. Returns the
 * number of cases that failed. */
int program_run_side_by_side(const struct CMUnitTest *cases, int n);
