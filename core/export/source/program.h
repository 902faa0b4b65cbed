/* core/export/source/program.h: a graph as a program in C (docs/decisions/0089). */
#pragma once

#include "core/export/fold.h"
#include "core/graph/graph.h"

typedef struct tn_source_request {
  tn_env *env;
  tn_graph *graph;      /* of inference, for one batch; the call takes it */
  const char *folder;   /* of the files; it is made */
  const char *name;     /* of the files, a word */
  tn_export_read *read; /* of states */
  void *context;
} tn_source_request;

typedef struct tn_source_made {
  int64_t steps, arena_bytes, weight_bytes;
} tn_source_made;

/* Writes NAME.h, NAME.c and NAME.weights. TN_EUNSUPPORTED: the message lists the ops that have no text, with
 * their number. Nothing is overwritten, and after a failure nothing is left but the folder. */
tn_status tn_source_export(const tn_source_request *request, tn_source_made *made);
