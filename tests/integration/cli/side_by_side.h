/* tests/integration/cli/side_by_side.h: cases that run at the same time. */
#pragma once

#include "program.h"

/* Begins the cases at once, each in a process of its own. For cases that wait for the end of a limit:
 * together they take as long as the longest of them, and others can run meanwhile. */
void program_begin_side_by_side(const struct CMUnitTest *cases, int n);
/* Waits for them, and prints what they have printed in their order. Returns the number of cases that failed.
 */
int program_end_side_by_side(void);
