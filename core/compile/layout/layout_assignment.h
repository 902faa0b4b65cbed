/* core/compile/layout/layout_assignment.h: the state of pass `layout`, and its parts: the layouts that
 * readers other than kernels require, and the insertion of reorders. */
#pragma once

#include "core/compile/select/cover.h"
#include "core/compile/state_map.h"

/* A copy of a value in another layout, made by a reorder. */
typedef struct tn_reordered {
  tn_val value, copy;
  tn_layout layout; /* of the copy */
} tn_reordered;

typedef struct tn_layout_assignment {
  tn_cover *cover;
  const tn_device_properties *device;
  const tn_state_map *map; /* the layouts of states; NULL: row-major */
  tn_layout *required;  /* per value: the layout that a reader other than a kernel requires; unset: it has no
                           such  reader */
  tn_layout *requested; /* per value: the layout that its first reader with a preference requests; unset: no
                           reader has one */
  bool *only_rows; /* per value: its readers other than kernels are views of the same rows (view_rows.c) */
  size_t n_nodes;  /* of the graph before reorders were added */
  TN_VEC(tn_group) groups; /* of the new cover */
  TN_VEC(tn_reordered) reordered;
} tn_layout_assignment;

/* ---- required_layouts.c ---- */

/* Gives the values of states their layouts; returns whether one of them is not row-major. */
bool tn_layout_set_states(const tn_layout_assignment *a);
/* Fills `required`. If several readers require layouts, the first one decides. */
tn_status tn_layout_find_required(tn_layout_assignment *a);
/* Whether a node that is not computed by a kernel reads its operands in memory, as views and packs do. */
bool tn_layout_reads_memory(const tn_gnode *node);
/* Whether such a node is a view with the same rows as its operand, which may be padded. */
bool tn_layout_views_rows(const tn_graph *graph, const tn_gnode *node);
/* The layout in which such a node must find an operand. */
tn_layout tn_layout_of_operand(const tn_layout_assignment *a, const tn_gnode *node, int32_t operand);
/* The layout of a state. */
tn_layout tn_layout_of_state(const tn_layout_assignment *a, const char *path, int32_t rank);

/* ---- view_rows.c: views that keep the innermost dimension, so that padded rows pass through them ---- */

/* Fills `only_rows`. */
tn_status tn_layout_find_row_views(tn_layout_assignment *a);
/* In the sweep against the order, for a result of a group: if readers of such views of it request padded
 * rows, the views require padded rows of it. */
void tn_layout_request_rows(tn_layout_assignment *a, tn_val v);
/* Such views of a value get its layout where it has padded rows. */
void tn_layout_set_row_views(const tn_layout_assignment *a, tn_val v);

/* ---- insert_reorders.c ---- */

/* The copy of a value in a layout; 0: there is no such copy yet. */
tn_val tn_reorder_find(const tn_layout_assignment *a, tn_val value, const tn_layout *layout);
/* *operand becomes the value in the layout that its reader requires, by a reorder before the reader if need
 * be. */
tn_status tn_reorder_operand(tn_layout_assignment *a, tn_val *operand, const tn_layout *layout);
/* Gives a result the layout in which its kernel makes it. If readers other than kernels require another one
 * (a view of rows that may be padded also takes row-major ones), *result becomes a new value, of which
 * `reorder`, a group that the caller adds behind the kernel's, makes the old. Else reorder->kernel is NULL.
 */
tn_status tn_reorder_result(tn_layout_assignment *a, tn_val *result, const tn_layout *layout,
                            tn_group *reorder);
/* Adds a reorder group between two values, which are one tensor in two layouts. */
tn_status tn_reorder_add(tn_layout_assignment *a, tn_group *reorder, tn_val from, tn_val to);
/* Inserts reorders for the readers other than kernels that still find a value in another layout than they
 * require: of values that no kernel makes, such as a parameter that a view reads, and of values with several
 * such readers. */
tn_status tn_reorder_remaining(tn_layout_assignment *a);
