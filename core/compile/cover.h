/* core/compile/cover.h: what `select` makes of a graph: groups of nodes, each done by one kernel.
 * Nodes that need no kernel (input, state, views, pack) belong to no group: the memory pass gives
 * their results a place. */
#ifndef TN_CORE_COMPILE_COVER_H
#define TN_CORE_COMPILE_COVER_H

#include "core/graph/graph.h"
#include "tenon/plugin/backend.h"
#include "tenon/plugin/kernel.h"

/* A device to compile for: what `query` sees, and which families' kernels run there, best first
 * (extensions before their family, the family before those it accepts). */
typedef struct tn_target {
  tn_device_properties properties;
  const char *const *families;
  void *const *selves; /* what each family's open made, NULL for those that are not open; NULL: none is */
  int32_t n_families;
  int64_t guard_bytes; /* kept free around every buffer of the arena, a multiple of 64: for who looks for
                          writes that belong to nobody. 0: none */
  int32_t n_own;       /* the first so many are the device's own, the others those that it accepts */
  /* Asked by `takes` about the kernels of accepted families; NULL: it takes all of them. */
  const tn_backend *backend;
  void *self;
  /* Where an op runs that has no kernel here; NULL: nowhere. Refused: the run wants an error instead,
   * which then says whether the fallback could have helped. */
  const struct tn_target *fallback;
  bool fallback_refused;
  struct tn_tuner *tuner; /* knows how long variants take (tuner.h); NULL: estimates decide */
  bool constant_state; /* programs are for inference: what they do not commit themselves stays from run to run
                        */
  const struct tn_replay *replay; /* choices to make again (replay.h); NULL: none */
} tn_target;

/* What the open of a family's backend made; NULL where it is not open. */
void *tn_target_self(const tn_target *target, const char *family);

/* A kernel that looked at a group and was not taken. */
typedef struct tn_rejection {
  const char *kernel, *reason;
} tn_rejection;

/* A variant as it was chosen, in the cover's arena. Layouts are the final ones. */
typedef struct tn_choice {
  int32_t id;
  const char *name;
  const tn_operand_layout *in_rule, *out_rule;
  tn_layout *in_layout, *out_layout;
  int64_t workspace_bytes, prepared_bytes, folded_bytes;
  int32_t n_inplace;
  const int32_t (*inplace)[2];
  double cost_s;
  bool measured, deterministic, capturable;
} tn_choice;

typedef struct tn_group {
  const tn_entry *entry; /* kernel's registry entry */
  const tn_kernel *kernel;
  const char *family;
  const uint32_t *nodes; /* of the graph, in order */
  int32_t n_nodes, n_in, n_out;
  const tn_val *in, *out; /* in: 0 where absent */
  const tn_match *match;
  tn_choice choice;
  const tn_choice *variants; /* all that the kernel offered, until `layout` has decided between them */
  int32_t n_variants;
  tn_rejection *rejected;
  int32_t n_rejected;
  tn_cost cost;
  int32_t role; /* TN_STREAM_COMPUTE ... */
  /* Why no kernel of the device does this, so that the fallback does, on the host; NULL: the device. */
  const char *fallback;
  int32_t after; /* 1 + the group before which this one had better not run; 0: none */
} tn_group;

/* A block of the model of which the second half makes something again (limit.h). */
typedef struct tn_recomputed {
  const char *block;
  int64_t bytes; /* that need not be kept */
  double flops;
} tn_recomputed;

typedef struct tn_cover {
  tn_env *env;
  tn_arena arena;              /* of what groups point to */
  struct tn_catalog *catalog;  /* owned: the target's kernels (catalog.h) */
  struct tn_catalog *fallback; /* owned: its fallback's; NULL: it has none */
  tn_graph *graph;             /* owned; composites that no kernel took are decomposed */
  TN_VEC(tn_group) groups;     /* in an order in which operands come first */
  const tn_recomputed *recomputed;
  int32_t n_recomputed;
  /* while compiling: as in tn_compile_options */
  const struct tn_program *slot_like;
  const struct tn_state_map *map; /* how state lies; NULL: row-major */
  struct tn_state_map *lay;
} tn_cover;

/* Accepts NULL. */
void tn_cover_destroy(tn_cover *cover);

/* Passes `assign` and `select`: decomposes, matches patterns (larger matches first, then lower cost),
 * grows regions. Takes the graph over on success. An op that nobody can do: TN_EUNSUPPORTED with every
 * kernel's reason. */
tn_status tn_pass_select(tn_env *env, tn_registry *registry, const tn_target *target, tn_graph *take_graph,
                         tn_cover **cover);

/* Pass `layout`: decides between the variants of each kernel and so gives every value a layout, greedily,
 * with an eye to what its readers want; inserts `reorder` groups where neighbours disagree. */
tn_status tn_pass_layout(tn_env *env, tn_registry *registry, const tn_target *target, tn_cover *cover);

/* Before that, for a cover with `lay`: decides how parameters lie that all of their readers take in any
 * layout, and whose gradients are packed as they lie, by what the readers save; the map keeps it. In a run
 * that is resumed, that is as recorded. */
tn_status tn_layout_states(const tn_target *target, tn_cover *cover);

/* What a kernel's or the host's reorder of a value is taken to cost: a read and a write at the speed of
 * memory, and a launch. */
static inline double tn_reorder_s(const tn_type *type) {
  return 2e-6 + 2 * (double)tn_type_bytes(type) / 1e10;
}

bool tn_layout_same(const tn_layout *a, const tn_layout *b, int32_t rank);
bool tn_layout_is_row_major(const tn_layout *layout, int32_t rank);
/* Whether a layout is one of a type at all. */
bool tn_layout_fits(const tn_layout *layout, const tn_type *type);
/* "row-major", or the order of dimensions and the blocks: "0 2 3 1", "0 1 2 3, 1:16". */
void tn_layout_print(const tn_layout *layout, int32_t rank, tn_text *text);
/* The way back; false: this is no layout of the type. */
bool tn_layout_parse(const char *text, const tn_type *type, tn_layout *layout);

/* Of a group's variants the cheapest that wants its operands and results as they lie; false: there is none.
 */
bool tn_layout_fit(const tn_graph *graph, tn_group *group);

/* Pass `recompute`: lets a region compute again what it would otherwise keep alive. A node that is
 * computed twice belongs to two groups; tn_gnode.group is the first. */
tn_status tn_pass_recompute(tn_env *env, tn_cover *cover);

/* Sets tn_gnode.group of every node anew, after groups were added or moved. */
void tn_cover_number(tn_cover *cover);

/* Bytes that a value takes in memory under a layout, its padding included; INT64_MAX if they cannot
 * be counted. */
int64_t tn_layout_bytes(const tn_type *type, const tn_layout *layout);

/* Graph text with, after each group's last statement, a comment line naming kernel and variant. */
tn_status tn_cover_print(const tn_cover *cover, tn_text *text);

#endif
