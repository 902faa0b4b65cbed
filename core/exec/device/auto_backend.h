/* core/exec/device/auto_backend.h: the backends that [backend] use names, with those that `auto` stands for.
 */
#pragma once

#include "core/base/text/word_list.h"
#include "core/plugin/registry.h"

typedef struct tn_backend_names {
  tn_words words;
  bool automatic; /* `auto` is among the words of `use` */
} tn_backend_names;

/* Splits `use` and replaces the word `auto` by all backends with a preference, the highest first, except for
 * those that `use` names before it. The words live in the arena or as long as the registry. TN_EUNAVAILABLE:
 * `use` is `auto`, and no backend has a preference. */
tn_status tn_backend_names_read(tn_env *env, tn_registry *registry, tn_arena *arena, const char *use,
                                tn_backend_names *names);
