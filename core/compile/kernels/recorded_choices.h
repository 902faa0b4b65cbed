/* core/compile/kernels/recorded_choices.h: choices of an earlier compilation, to be repeated.
 *
 * Selection is a function of the graph, of the installed kernels and of their answers. A compilation that
 * queries only the recorded kernels and keeps each to its recorded variant therefore makes the same plan:
 * newly installed kernels, other estimates and other measurements change nothing: also the order of launches
 * beside collectives, which depends on their costs, is that of the recorded costs. */
#pragma once

#include "core/graph/graph.h"
#include "core/plugin/registry.h"

/* A kernel that could be chosen. */
typedef struct tn_recorded_kernel {
  const char *kernel, *plugin;
} tn_recorded_kernel;

/* The choice for a group. The same nodes may have other choices in another program, where other nodes are
 * beside them. */
typedef struct tn_recorded_choice {
  uint64_t key; /* tn_recorded_key of the group's nodes */
  const char *kernel;
  int32_t variant;
  const char *program; /* its name; NULL: any */
  double cost_s;       /* as it was estimated or measured; 0: unknown */
} tn_recorded_choice;

/* A state whose layout was not row-major; the layout as tn_layout_print writes it. */
typedef struct tn_recorded_state {
  const char *path, *layout;
} tn_recorded_state;

typedef struct tn_recorded_choices {
  tn_recorded_kernel *kernels; /* all kernels, chosen or not */
  tn_recorded_choice *choices; /* sorted by tn_recorded_sort */
  tn_recorded_state *states;
  int32_t n_kernels, n_choices, n_states;
  const char **buckets; /* the parameters with which buckets of gradients begin */
  int32_t n_buckets;
} tn_recorded_choices;

void tn_recorded_sort(tn_recorded_choices *replay);
bool tn_recorded_has_kernel(const tn_recorded_choices *replay, const tn_entry *entry);
/* NULL: there is no recorded choice for the nodes in the program. */
const tn_recorded_choice *tn_recorded_find(const tn_recorded_choices *replay, const char *program,
                                           uint64_t key);

/* NULL: the state was row-major or did not exist. */
const char *tn_recorded_layout(const tn_recorded_choices *replay, const char *path);

/* Identifies nodes by ops, layers and types, independent of their position in the graph. Never 0. */
uint64_t tn_recorded_key(const tn_graph *graph, const uint32_t *nodes, int32_t n);
