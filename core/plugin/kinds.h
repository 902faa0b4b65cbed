/* core/plugin/kinds.h: the requirements of each kind of item, as data. */
#pragma once

#include "core/base/env.h"
#include "tenon/plugin/plugin.h"

/* A member that must not be NULL: a callback or a text. */
typedef struct tn_member {
  const char *name; /* NULL ends a list */
  size_t offset;
} tn_member;

typedef struct tn_kind {
  const char *name;
  size_t bytes;    /* size of the host's struct, which every negotiated item has */
  size_t required; /* least size of a plugin's struct: up to the last member of version 0.1 */
  const tn_member *members;
  /* Further rules; NULL: no further rule. Returns the text of the violation, or NULL. */
  const char *(*check)(const tn_item *item);
} tn_kind;

/* "layer", "optimizer" ... for TN_LAYER ... */
const char *tn_kind_name(uint32_t kind);

/* NULL: there is no kind of this number. */
const tn_kind *tn_kind_find(uint32_t kind);

/* The first required member that is NULL in a negotiated item of a known kind; NULL: the item is complete. */
const char *tn_item_missing(const tn_item *item);

/* "" for items of all kinds but kernels, whose names are unique per family only. */
const char *tn_item_family(const tn_item *item);
