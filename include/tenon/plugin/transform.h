/* tenon/plugin/transform.h: what happens to a field between source and batch.
 *
 * `transforms = random_crop(32, padding=4), flip <- image, to_float` is a list. Each takes the
 * fields named after `<-`, or the first input field, and replaces them.
 *
 * Life cycle: infer (main thread) fixes types; where a result's size varies with the sample, it is
 * asked again for each sample, on the worker thread. apply runs on worker threads, concurrently. Both
 * are pure functions of their arguments. A transform that gives build can run on the device instead, as
 * part of the graph; such transforms must be a suffix of the list. */
#ifndef TENON_PLUGIN_TRANSFORM_H
#define TENON_PLUGIN_TRANSFORM_H

#include "tenon/ops.h"
#include "tenon/plugin/source.h"

TN_BEGIN_C

enum { TN_PER_SAMPLE = 0, TN_PER_BATCH = 1 };

typedef struct tn_transform_call {
  tn_env env;
  uint32_t struct_size;
  int32_t n;               /* fields */
  const tn_type *in_type;  /* actual types, without batch */
  const tn_type *out_type; /* what infer says for these */
  const void *const *in;
  void *const *out; /* never aliases in */
  int64_t index;
  uint64_t key; /* tn_rng_at(key, use); differs for every place in the list */
  tn_scratch *scratch;
} tn_transform_call;

/* tn_scratch_take for this place in the list: tables may be made once, but no result may depend on what a
 * sample before has left. */
static inline void *tn_transform_scratch(tn_transform_call *c, size_t bytes) {
  return tn_scratch_take(c, c->scratch, bytes);
}

typedef struct tn_transform {
  tn_item item;
  uint32_t granularity;  /* TN_PER_SAMPLE; TN_PER_BATCH sees types with the batch in front */
  int32_t training_only; /* left out of validation: augmentation */
  /* From the fields' types to the results'. A dimension of -1 varies from sample to sample; only
   * where an operand varies may a result. Called with actual types it must leave nothing open. out
   * starts as a copy of in. */
  tn_status (*infer)(tn_env *env, const void *options, int32_t n, const tn_type *in, tn_type *out);
  tn_status (*apply)(tn_transform_call *c, const void *options);
  tn_status (*build)(tn_build *b, const void *options); /* optional: tn_build_in -> tn_build_yield, batched */
  /* 1: of one field, and each element of the result follows from the element in its place and from its index
   * in the first dimension, and from nothing else: not from other dimensions, index or key. Such transforms
   * of bytes become a table, together with those behind them. */
  int32_t pointwise;
} tn_transform;

TN_END_C
#endif
