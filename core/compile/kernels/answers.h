/* core/compile/kernels/answers.h: the answers of kernels to queries, remembered for as long as a device is
 * open.
 *
 * The rounds of covering ask about the same matches again, and so do other programs of a run and further
 * attempts at a memory limit. An answer depends on the kernel, the match and the device alone, so a target
 * remembers it. It also remembers the variants whose `prepare` has declined a match: no query offers them
 * again. One thread uses the answers of a target at a time. */
#pragma once

#include "core/base/vec.h"
#include "core/compile/kernels/candidate.h"
#include "core/graph/hash_index.h"

/* The variants that a kernel offered for a match, or its reason against it. */
typedef struct tn_answer {
  const tn_kernel *kernel;
  tn_match_key key;
  const tn_choice *variants; /* without layouts */
  int32_t n_variants;
  const char *reason; /* why the kernel declined; NULL: it accepted */
} tn_answer;

typedef struct tn_prepare_decline {
  const tn_kernel *kernel;
  tn_match_key key;
  int32_t variant;
  const char *reason;
  bool warned; /* the log has a warning with this reason */
} tn_prepare_decline;

typedef struct tn_answers {
  tn_env *env;
  tn_arena arena;
  tn_hash_index index; /* of `list`, by key */
  TN_VEC(tn_answer) list;
  TN_VEC(tn_prepare_decline) declines;
  int64_t asked, remembered; /* queries that kernels answered, and that this table answered */
} tn_answers;

/* `env` is used for memory until tn_answers_destroy. */
tn_status tn_answers_create(tn_env *env, tn_answers **answers);
void tn_answers_destroy(tn_answers *answers); /* accepts NULL */

/* Identifies a match by ops, attributes, types, structure and constants. */
tn_match_key tn_match_key_of(const tn_graph *graph, const tn_candidate *candidate, const tn_match *match);

/* NULL: the kernel has not been asked. Valid until the next tn_answers_add. */
const tn_answer *tn_answers_find(tn_answers *answers, const tn_kernel *kernel, tn_match_key key);
/* Remembers a copy of an answer for this match. Without memory, or with very many answers, it is not
 * remembered. */
void tn_answers_add(tn_answers *answers, const tn_match *match, const tn_answer *answer);

/* Notes that a variant's `prepare` has declined the match. `warned`: the log has a warning with the reason.
 */
tn_status tn_answers_decline(tn_answers *answers, const tn_kernel *kernel, tn_match_key key, int32_t variant,
                             const char *reason, bool warned);
/* The reason if `prepare` has declined; NULL: it has not. `answers` may be NULL. */
const char *tn_answers_declined(const tn_answers *answers, const tn_kernel *kernel, tn_match_key key,
                                int32_t variant);
/* Notes the declines of another device of the same kernels, and of its fallback: a launch whose measurement
 * is known from there is not prepared again to find out. */
tn_status tn_answers_copy_declines(const tn_target *to, const tn_target *from);
/* Whether the log has a warning with this reason. */
bool tn_answers_has_warned(const tn_answers *answers, const char *reason);
/* Whether `variant` is the only one that the kernel offered for the match and that has not declined: without
 * it the kernel is lost for the match. */
bool tn_answers_is_last(const tn_answers *answers, const tn_kernel *kernel, tn_match_key key,
                        int32_t variant);
/* For the decline at this index: whether the kernel has no variant left for its match. True once for a match.
 */
bool tn_answers_is_lost(const tn_answers *answers, size_t decline);
/* The declines by `prepare` on a target and its fallback so far. */
size_t tn_answers_declines(const tn_target *target);
