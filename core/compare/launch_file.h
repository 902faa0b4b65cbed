/* core/compare/launch_file.h: one launch in a safetensors file: tensors "in.0" ... are its operands,
 * row-major, and the metadata has its ops as graph text, its kernel and variant, and its layouts. */
#pragma once

#include "core/compile/layout/layout.h"
#include "core/exec/watch/launch_watch.h"

/* A launch as a file holds it; texts, layouts and operands are in `memory`. */
typedef struct tn_launch_file {
  tn_arena memory;
  tn_graph *graph; /* of group_graph.h */
  const char *name, *kernel, *plugin, *variant_name;
  uint64_t key; /* tn_recorded_key of its nodes */
  int64_t variant, launches;
  int32_t n_in, n_out;
  tn_type *in_type; /* rank 0 and dtype 0: absent, or an operand that comes twice */
  void **in;        /* row-major; NULL: absent */
  tn_layout *in_layout, *out_layout;
  int64_t *in_place; /* per result: the operand whose memory it overwrites, or -1 */
} tn_launch_file;

/* launches: to be made when it is repeated. */
tn_status tn_launch_file_write(tn_env *env, const char *path, const tn_graph *graph,
                               const tn_watched_launch *launch, int32_t launches);

/* tn_launch_file_free frees a file whose reading failed, too. TN_EINVAL names path and reason. */
tn_status tn_launch_file_read(tn_env *env, struct tn_op_table *ops, const char *path, tn_launch_file *file);
void tn_launch_file_free(tn_launch_file *file);
