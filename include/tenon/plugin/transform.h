/* tenon/plugin/transform.h: what happens to a field between source and batch.
 *
 * `transforms = random_crop(32, padding=4), flip <- image, to_float` is a list. Each takes the
 * fields named after `<-`, or the first input field, and replaces them.
 *
 * Life cycle: infer (main thread, once) fixes types; apply runs on worker threads, concurrently, a
 * pure function of its arguments. A transform that gives build can run on the device instead, as
 * part of the graph; such transforms must be a suffix of the list. */
#ifndef TENON_PLUGIN_TRANSFORM_H
#define TENON_PLUGIN_TRANSFORM_H

#include "tenon/ops.h"
#include "tenon/plugin/source.h"

TN_BEGIN_C

enum { TN_PER_SAMPLE = 0, TN_PER_BATCH = 1 };

typedef struct tn_transform_call {
  tn_env env;
  int32_t n;                /* fields */
  const tn_type *in_type;   /* actual types, without batch */
  const tn_type *out_type;  /* what infer said, with varying dimensions filled in by the host's rule:
                               a transform must turn them into fixed ones, or keep them as they are */
  const void *const *in;
  void *const *out;         /* never aliases in */
  int64_t index;
  uint64_t key;             /* tn_rng_at(key, use); differs for every place in the list */
} tn_transform_call;

typedef struct tn_transform {
  tn_item item;
  uint32_t granularity;     /* TN_PER_SAMPLE; TN_PER_BATCH sees types with the batch in front */
  int32_t training_only;    /* left out of validation: augmentation */
  /* From the field's types (-1: varies) to the result's. */
  tn_status (*infer)(tn_env *env, const void *options, int32_t n, const tn_type *in, tn_type *out);
  tn_status (*apply)(tn_transform_call *c, const void *options);
  tn_status (*build)(tn_build *b, const void *options); /* optional: tn_in -> tn_yield, batched */
} tn_transform;

TN_END_C
#endif
