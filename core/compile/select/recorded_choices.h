/* core/compile/select/recorded_choices.h: choices of an earlier compilation, to be made again.
 *
 * Selection is a function of the graph, of the kernels that there are and of what they say. So the same plan
 * comes out again where only the kernels of then are asked, and each is held to the variant that it had: a
 * kernel that was installed since, or another estimate or measurement, changes nothing. */
#ifndef TN_CORE_COMPILE_SELECT_RECORDED_CHOICES_H
#define TN_CORE_COMPILE_SELECT_RECORDED_CHOICES_H

#include <jansson.h>

#include "core/compile/program.h"

typedef struct tn_replay_kernel {
  const char *kernel, *plugin;
} tn_replay_kernel;

typedef struct tn_replay_choice {
  uint64_t key; /* tn_replay_key of its nodes */
  const char *kernel;
  int32_t variant;
} tn_replay_choice;

/* A state that was not row-major, as tn_layout_print says it. */
typedef struct tn_replay_state {
  const char *path, *layout;
} tn_replay_state;

typedef struct tn_replay {
  tn_replay_kernel *kernels; /* all that there were, chosen or not */
  tn_replay_choice *choices; /* sorted by tn_replay_sort */
  tn_replay_state *states;
  int32_t n_kernels, n_choices, n_states;
} tn_replay;

void tn_replay_sort(tn_replay *replay);
bool tn_replay_has_kernel(const tn_replay *replay, const tn_entry *entry);
/* NULL: nothing was chosen for such nodes. */
const tn_replay_choice *tn_replay_find(const tn_replay *replay, uint64_t key);

/* NULL: the state was row-major, or not there. */
const char *tn_replay_layout(const tn_replay *replay, const char *path);

/* What nodes are, wherever they stand: ops, layers and types. Never 0. */
uint64_t tn_replay_key(const tn_graph *graph, const uint32_t *nodes, int32_t n);

/* record.c: a program for plan.json: {name, hash, arena_bytes, inputs, launches: [{op, layer, kernel, plugin,
 * version, variant, id, key, reads, writes, workspace}]}. */
tn_status tn_program_record(const tn_program *program, json_t **record);
/* The kernels that were there to choose from: [{kernel, plugin, version}]. */
tn_status tn_program_record_kernels(const tn_program *program, json_t **kernels);

#endif
