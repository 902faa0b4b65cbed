/* tenon/plugin/transform.h: a transform of fields between source and batch.
 *
 * `transforms = random_crop(32, padding=4), flip <- image, to_float` is a list. Each transform replaces the
 * fields named after `<-`, by default the first input field.
 *
 * Life cycle: infer (main thread) determines types; where the size of a result varies, it is called again for
 * each sample, on the worker thread. apply and draw run on worker threads, concurrently. All are pure
 * functions of their arguments. A transform with build can run on the device, as part of the compiled
 * programs: the host moves some of the last transforms of the list there ([data] device_transforms). */
#ifndef TENON_PLUGIN_TRANSFORM_H
#define TENON_PLUGIN_TRANSFORM_H

#include "tenon/ops.h"
#include "tenon/plugin/source.h"

TN_BEGIN_C

enum { TN_PER_SAMPLE = 0, TN_PER_BATCH = 1 };

/* Handle of apply and draw: one sample, or one batch. Valid during the call. */
typedef struct tn_transform_call {
  tn_env env;
  uint32_t struct_size;
  int32_t n;               /* fields */
  const tn_type *in_type;  /* actual types; without batch, unless the granularity is TN_PER_BATCH */
  const tn_type *out_type; /* of infer for these */
  const void *const *in;   /* row-major */
  void *const *out;        /* row-major, contents undefined, apart from in */
  int64_t index;           /* number of the sample */
  uint64_t key;            /* for tn_rng_at(key, use); differs for each transform of the list */
  tn_scratch *scratch;     /* for tn_transform_scratch */
} tn_transform_call;

/* tn_scratch_take for this transform of the list. It may keep tables from sample to sample; a result must not
 * depend on earlier samples. */
static inline void *tn_transform_scratch(tn_transform_call *c, size_t bytes) {
  return tn_scratch_take(c, c->scratch, bytes);
}

typedef struct tn_transform {
  tn_item item;
  uint32_t granularity;  /* TN_PER_SAMPLE; TN_PER_BATCH: types have the batch as first dimension */
  int32_t training_only; /* 1: not applied in validation, as augmentation */
  /* Types of the n results from those of the n fields. A dimension of -1 varies from sample to sample; a
   * result may have one only where a field has one. `out` is a copy of `in` at first. */
  tn_status (*infer)(tn_env *env, const void *options, int32_t n, const tn_type *in, tn_type *out);
  tn_status (*apply)(tn_transform_call *c, const void *options);
  /* Optional: emits the transform of a batch: tn_build_in(b, i) to tn_build_yield(b, i, value), for the n
   * fields, with the batch as first dimension. Sizes are known. Results have the types of infer, and the
   * values of apply. Errors as in build.h. */
  tn_status (*build)(tn_build *b, const void *options);
  /* 1: a transform of one field, where each element of the result depends on the element at the same index
   * and on its index in the first dimension only; neither on index nor on key. The host replaces such
   * transforms of u8, together with those after them, by a table lookup. */
  int32_t pointwise;
  /* Random choices of build: `draw` writes `draws` numbers for one sample, those that apply makes for the
   * same c->key. build gets them for the batch as value tn_build_in(b, n), i32[batch, draws]. With build and
   * TN_PER_SAMPLE only; both or neither. c->in and c->out are NULL in draw, which runs on worker threads. */
  int32_t draws;
  tn_status (*draw)(tn_transform_call *c, const void *options, int32_t *values);
  /* For `tenon inspect` and the reference. types: the fields that it takes and gives, in one line. example:
   * lines of [data]. NULL: none. */
  const char *types, *example;
} tn_transform;

TN_END_C
#endif
