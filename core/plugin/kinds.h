/* core/plugin/kinds.h: what the host demands of an item of each kind, as data. */
#ifndef TN_CORE_PLUGIN_KINDS_H
#define TN_CORE_PLUGIN_KINDS_H

#include "core/base/env.h"
#include "tenon/plugin/plugin.h"

/* A member that must not be NULL: a callback or a text. */
typedef struct tn_member {
  const char *name; /* NULL ends a list */
  size_t offset;
} tn_member;

typedef struct tn_kind {
  const char *name;
  size_t bytes;    /* the host's struct: what a normalized item has */
  size_t required; /* what every plugin of this major version has: up to the last member of version 0.1 */
  const tn_member *members;
  /* Rules that a list of members cannot say; NULL: none. Returns what is wrong, or NULL. */
  const char *(*check)(const tn_item *item);
} tn_kind;

/* NULL for a number that is no kind. */
const tn_kind *tn_kind_find(uint32_t kind);

/* The first member that a normalized item of a known kind must have and has not; NULL: none. */
const char *tn_item_missing(const tn_item *item);

/* "" for items of all kinds but kernels, whose names are unique per family only. */
const char *tn_item_family(const tn_item *item);

#endif
