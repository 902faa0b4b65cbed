/* core/step/graphs/sample_outputs.h: the outputs of the program of [run] samples. */
#pragma once

#include "core/graph/graph.h"
#include "core/run/run.h"

/* Of a forward graph, replaces scores of many classes, as the main output or under the name of a target, by
 * the class with the greatest score, so that the host gets an i32 for each place: [batch, n, classes] of a
 * model with a target of class numbers [n], [batch, height, width, classes] and [batch, classes, height,
 * width] with a target [height, width]. Up to 3 classes in front of the others stay, as they may be a
 * picture. */
tn_status tn_sample_outputs(tn_run *run, tn_graph *graph);
