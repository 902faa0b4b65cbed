/* core/step/programs/program_graph.h: the graph of one program: the model, with gradients and update where it
 * trains. */
#pragma once

#include "core/step/programs/programs.h"

/* Builds the model and appends what the program adds to it; *graph stays NULL where a mistake is noted. */
tn_status tn_program_build_graph(tn_run *run, const tn_program_request *request, int32_t which,
                                 tn_program_set *set, tn_graph **graph);

/* The options of the request for a program that is dumped; NULL: it is not. */
const tn_compile_options *tn_program_dump_options(const tn_run *run, const tn_program_request *request,
                                                  int32_t which);
/* Prints the graph, if `dump` asks for this pass. */
tn_status tn_program_dump_graph(const tn_compile_options *dump, const char *name, const char *pass,
                                const tn_graph *graph);
