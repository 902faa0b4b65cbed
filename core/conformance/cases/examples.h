/* core/conformance/cases/examples.h: uses of ops that a schema alone does not describe. */
#pragma once

#include "core/conformance/cases/cases.h"

bool tn_example_exists(const char *op);
/* Draws operands for an example of the op c->op, each in turn. */
tn_val tn_example_emit(tn_draw *d, const tn_case *c);
