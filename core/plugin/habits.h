/* core/plugin/habits.h: items by the names that users of other frameworks write. A plugin folder may have a
 * file habits.txt with lines "KIND NAME ITEM TEXT"; the core knows no item by name. Ops, which are layers,
 * too, have such names as aliases. They serve messages alone. */
#pragma once

#include "core/base/text/text.h"
#include "core/plugin/registry.h"

/* Appends the TEXT for "nn.BatchNorm2d", "BatchNorm2d" or "batch_norm_2d" and returns true, if the folders
 * know the name among a kind of item, and the item is one of n names (n 0: any). */
bool tn_habits_add(const tn_registry *registry, const char *kind, const char *name, const char *const *items,
                   size_t n, tn_text *text);
