/* Symbolic execution of a program and of the graph that it was compiled from.
 *
 * The symbol of an element is a hash of the op and the operands' symbols; memory holds one symbol per byte. A
 * launch reads the symbols of its operands, overwrites its workspace and writes the symbols of its results. A
 * wrong symbol therefore shows a buffer that is overwritten while it is live, a commit that reads a new
 * value, a gap that is not zero, or a result that overwrites an operand without an in-place pair. The program
 * runs twice: collectives end when they begin, and when a step awaits them. */
#pragma once

#include "tests/unit/compile/fixture.h"

/* Fails the test, with the program's text, if program and graph give different symbols. */
void simulate(fixture *f, const tn_graph *graph, const tn_program *program);
