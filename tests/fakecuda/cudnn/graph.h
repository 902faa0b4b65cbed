/* tests/fakecuda/cudnn/graph.h: operation graphs as they finalize. */
#pragma once

#include "tests/fakecuda/cudnn/program.h"

enum { FAKEDNN_NODES = 64, FAKEDNN_TENSORS = 120 };

/* Makes the program of a graph: body->made. Programs stay in memory, so that work that outlives its graph
 * finds them. */
cudnnStatus_t fakednn_finalize_graph(fakednn_body *body);
const fakednn_program *fakednn_program_of(const fakednn_body *graph);
/* A copy that stays in memory. NULL: no memory. */
const fakednn_program *fakednn_keep_program(const fakednn_program *program);
