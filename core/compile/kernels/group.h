/* core/compile/kernels/group.h: a group: nodes of the graph that one kernel computes in one launch. */
#pragma once

#include "core/graph/graph.h"
#include "tenon/plugin/kernel.h"

/* A kernel that was considered for a group and not chosen. */
typedef struct tn_rejection {
  const char *kernel, *reason;
} tn_rejection;

/* A variant that a kernel offers for a group. Lives in the cover's arena. */
typedef struct tn_choice {
  int32_t id; /* the kernel's own number for the variant */
  const char *name;
  const tn_operand_layout *in_rule, *out_rule; /* per operand and result; NULL: row-major */
  tn_layout *in_layout, *out_layout; /* per operand and result: the final layouts, set by `layout` */
  int64_t workspace_bytes;           /* scratch memory during a launch */
  int64_t prepared_bytes;            /* memory of the prepared kernel */
  int64_t folded_bytes;              /* memory for folded constants, kept from run to run */
  int32_t n_inplace;
  const int32_t (*inplace)[2]; /* pairs {operand, result}: the result may overwrite the operand */
  double cost_s;               /* estimated or measured time of a launch */
  double estimate_s;           /* the kernel's own estimate; 0: it gave none */
  bool measured;               /* cost_s is a measurement */
  bool faulted;                /* the device has failed while an earlier process measured it */
  bool deterministic;          /* equal operands give equal bits */
  bool capturable;             /* a launch may be captured into a device graph */
  bool plain_sums;             /* variances come from sums of x and of x squared */
} tn_choice;

/* Identifies a match (answers.h). */
typedef struct tn_match_key {
  uint64_t low, high;
} tn_match_key;

typedef struct tn_group {
  const tn_entry *entry;   /* the kernel's entry in the registry */
  const tn_kernel *kernel; /* entry->item */
  const char *family;
  const uint32_t *nodes; /* indices into the graph's nodes, in the order in which the kernel sees them */
  const bool *shared; /* per node: it is recomputed here, and also a node of another group or of none; NULL:
                         no node is */
  int32_t n_nodes, n_in, n_out;
  const tn_val *in;          /* operands; 0 where an optional one is absent */
  const tn_val *out;         /* results that other groups, commits or outputs read */
  const tn_match *match;     /* the group as its kernel sees it */
  tn_match_key key;          /* of the match */
  tn_choice choice;          /* the chosen variant */
  const tn_choice *variants; /* all variants that the kernel offered; `layout` decides between them */
  int32_t n_variants;
  tn_rejection *rejected;
  int32_t n_rejected;
  tn_cost cost;
  int32_t role;         /* TN_STREAM_COMPUTE, or TN_STREAM_COMM for collectives */
  const char *fallback; /* NULL: the group runs on the device. Otherwise it runs on the fallback, and this
                           says why no kernel of the device computes it */
  bool placed;   /* on the fallback beside the device, since its states are in memory of the host; or a copy
                    between the device and such a group */
  int32_t after; /* 1 + the index of the group after which the schedule should launch this one; 0: any time */
} tn_group;

static inline bool tn_group_has_node(const tn_group *group, uint32_t node) {
  for (int32_t i = 0; i < group->n_nodes; i++)
    if (group->nodes[i] == node) return true;
  return false;
}

/* Whether a node is only recomputed by the group. */
static inline bool tn_group_shares(const tn_group *group, int32_t node) {
  return group->shared != NULL && group->shared[node];
}

/* The node that names the group: the first of its own that is not pointwise, or else the first of its own. */
static inline uint32_t tn_group_lead(const tn_group *group, const tn_graph *graph) {
  int32_t first = 0;
  while (tn_group_shares(group, first)) first++;
  for (int32_t i = first; i < group->n_nodes; i++)
    if (!tn_group_shares(group, i) && graph->nodes.v[group->nodes[i]].op->op_class != TN_CLASS_POINTWISE)
      return group->nodes[i];
  return group->nodes[first];
}

/* Operands and results in one numbering: operands first. */
static inline tn_val tn_group_value(const tn_group *group, int32_t index) {
  return index < group->n_in ? group->in[index] : group->out[index - group->n_in];
}

/* The layout rule of a variant for an operand or result of that numbering; NULL: row-major. */
static inline const tn_operand_layout *tn_group_layout_rule(const tn_group *group, const tn_choice *variant,
                                                            int32_t index) {
  bool in = index < group->n_in;
  const tn_operand_layout *rules = in ? variant->in_rule : variant->out_rule;
  return rules == NULL ? NULL : &rules[in ? index : index - group->n_in];
}

/* Whether the chosen variant may write a result over an operand. */
static inline bool tn_group_is_inplace_pair(const tn_group *group, int32_t operand, int32_t result) {
  for (int32_t i = 0; i < group->choice.n_inplace; i++)
    if (group->choice.inplace[i][0] == operand && group->choice.inplace[i][1] == result) return true;
  return false;
}
