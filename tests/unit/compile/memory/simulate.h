/* Runs a program on symbols instead of numbers, and the graph that it was compiled from as well.
 *
 * An element's symbol says what was computed from what; memory holds one symbol a byte. A launch
 * reads the symbols of its operands, spoils its workspace and writes those of its results. So a
 * buffer that is overwritten while still needed, a commit that sees a new value, a gap that is not
 * zero, or a result on top of an operand that its kernel did not allow shows as a wrong symbol. Collectives
 * are tried twice: as soon as they begin, and when somebody awaits them. */
#ifndef TN_TESTS_COMPILE_SIMULATE_H
#define TN_TESTS_COMPILE_SIMULATE_H

#include "tests/unit/compile/fixture.h"

/* Fails the test, with the program's text, where program and graph disagree. */
void simulate(fixture *f, const tn_graph *graph, const tn_program *program);

#endif
