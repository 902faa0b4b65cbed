/* core/base/freeze.h: which parameters and buffers keep their values, and until when: [group.NAME] freeze. */
#pragma once

#include "core/base/text/word_list.h"

#define TN_FROZEN_FOREVER INT64_MAX

/* A name belongs to the first pattern that it matches. */
typedef struct tn_freeze {
  const char **patterns;
  int64_t *until; /* the last epoch, counted from 1, in which its names are frozen; 0: they are trained */
  int32_t n;
} tn_freeze;

/* Appends patterns, whose texts are borrowed; the arena owns the lists. */
tn_status tn_freeze_add(tn_arena *arena, tn_freeze *freeze, const tn_words *patterns, int64_t until);

/* The last epoch in which a name is frozen; 0: it is trained, or no pattern matches it. */
int64_t tn_frozen_until(const tn_freeze *freeze, const char *name);

/* Whether a name is frozen in an epoch, counted from 1. */
static inline bool tn_is_frozen(const tn_freeze *freeze, const char *name, int64_t epoch) {
  int64_t until = tn_frozen_until(freeze, name);
  return until > 0 && until >= epoch;
}
