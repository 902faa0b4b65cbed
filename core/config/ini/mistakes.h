/* core/config/ini/mistakes.h: the mistakes of a configuration, collected, so that one run names all of them.
 *
 * A reader of independent parts (keys of a section, lines of a model) passes each failure to tn_mistakes_note
 * and goes on with the next part. Parts that depend on a failed one are not checked: each mistake is
 * named once. */
#pragma once

#include "core/base/arena.h"

enum { TN_MISTAKES_TOLD = 20, TN_MISTAKES_KEPT = 200 };

typedef struct tn_mistakes {
  const char **v; /* "net.ini:14: ...", in the order of their lines */
  int32_t n;
  int32_t noted; /* how often tn_mistakes_note kept a text, or dropped one that was kept before */
} tn_mistakes;

/* Keeps the failure that `handle` records and returns TN_OK, if it is a mistake in the configuration
 * (TN_EINVAL); a text that was kept before is dropped. Returns other failures, and fails itself when
 * TN_MISTAKES_KEPT texts are kept. */
tn_status tn_mistakes_note(const void *handle, tn_arena *arena, tn_mistakes *mistakes, tn_status status);

/* Appends `more` to all texts that are kept. */
tn_status tn_mistakes_add(tn_arena *arena, tn_mistakes *mistakes, const char *more);

/* TN_OK without mistakes; otherwise fails with their texts, a line each, TN_MISTAKES_TOLD at most. */
tn_status tn_mistakes_tell(const void *handle, const tn_mistakes *mistakes);
