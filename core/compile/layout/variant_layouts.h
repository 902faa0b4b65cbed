/* core/compile/layout/variant_layouts.h: the layouts that a variant of a kernel requires for its operands and
 * results. Operands and results have one numbering, operands first (tn_group_value). */
#pragma once

#include "core/compile/kernels/group.h"

/* The layout for operands and results with the rule TN_LAYOUT_ANY: that of the first such operand that is not
 * row-major, provided that all of them have the same dims; otherwise unset. */
tn_layout tn_variant_any_layout(const tn_graph *graph, const tn_group *group);

/* The layout that the chosen variant requires at `index`; `any` is that for TN_LAYOUT_ANY, and unset means
 * row-major. For a rule that is only a preference it is the value's present layout. */
tn_layout tn_variant_layout(const tn_graph *graph, const tn_group *group, const tn_layout *any,
                            int32_t index);

/* The time of the copies that the kernel makes by itself where a value does not have the preferred layout. */
double tn_variant_copies_s(const tn_device_properties *device, const tn_graph *graph, const tn_group *group);

/* Chooses the cheapest variant that requires the present layouts of all operands and results; false if there
 * is no such variant. */
bool tn_layout_choose_variant(const tn_graph *graph, tn_group *group);

/* Stores the present layouts of operands and results in the group's choice. */
void tn_variant_store_layouts(const tn_graph *graph, tn_group *group);
