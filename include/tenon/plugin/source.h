/* tenon/plugin/source.h: where samples come from.
 *
 * Life cycle: open (main thread) -> describe -> read, from any number of worker threads at once
 * -> close (main thread, after all reads returned). An indexed source must give the same sample for
 * the same (index, key) always: order and augmentation depend on seed and epoch only. */
#ifndef TENON_PLUGIN_SOURCE_H
#define TENON_PLUGIN_SOURCE_H

#include "tenon/plugin/plugin.h"
#include "tenon/random.h"

TN_BEGIN_C

enum { TN_FIELD_INPUT = 0, TN_FIELD_TARGET = 1 };
/* Which part of the data is asked for. */
enum { TN_SPLIT_TRAIN = 0, TN_SPLIT_VALID = 1 };

/* A field of every sample. Images are u8 (C, H, W). Strings and lists stay the source's. */
typedef struct tn_field {
  uint32_t struct_size;
  const char *name;
  tn_type type; /* one sample, without batch; a dimension of -1 varies */
  int32_t role;
  int64_t classes;                /* targets: number of classes; 0: not a class number */
  const char *const *class_names; /* NULL, or `classes` of them */
} tn_field;

typedef struct tn_description {
  uint32_t struct_size;
  int64_t count; /* samples in an epoch; -1: endless */
  int32_t n_fields;
  const tn_field *fields;
  int64_t epoch; /* endless: samples in an epoch unless the configuration says; 0: it must */
  /* 1: reading takes work (a file to decode), and a sample follows from its index alone, not from the key.
   * The host may then keep samples in memory and never read them again. */
  int32_t keep;
} tn_description;

/* Field `i` of a description. The array's stride is the source's own sizeof(tn_field), fields[0].struct_size.
 */
static inline const tn_field *tn_description_field(const tn_description *d, int32_t i) {
  return (const tn_field *)(const void *)((const char *)d->fields + (size_t)i * d->fields[0].struct_size);
}

/* Memory that a worker keeps from sample to sample; the host frees it. */
typedef struct tn_scratch {
  void *memory;
  size_t size;
} tn_scratch;

/* At least `bytes`, more than 0: zero where it is new, else as the last taker has left it, one piece at a
 * time. NULL: an error has been recorded. */
static inline void *tn_scratch_take(const void *handle, tn_scratch *s, size_t bytes) {
  if (bytes <= s->size) return s->memory;
  tn_delete(handle, s->memory);
  s->memory = tn_new(handle, bytes);
  s->size = s->memory != NULL ? bytes : 0;
  return s->memory;
}

/* One sample being read or transformed, on a worker thread. */
struct tn_sample {
  tn_env env;
  uint32_t struct_size;
  int64_t index; /* which sample */
  uint64_t key;  /* random key of (seed, epoch, index): tn_rng_at(key, use) */
  tn_scratch *scratch;
};

/* Where field `i` of this sample goes: host memory for a value of `type`, row-major, owned by the
 * host, contents undefined. Fixed fields: type may be NULL. Write it fully before returning. NULL:
 * an error has been recorded; return its code with tn_fail or simply TN_ENOMEM. */
static inline void *tn_sample_field(tn_sample *s, int32_t i, const tn_type *type) {
  return s->env.api->field(s, i, type);
}

/* tn_scratch_take for this source: a sample may not depend on what one before has left. */
static inline void *tn_sample_scratch(tn_sample *s, size_t bytes) {
  return tn_scratch_take(s, s->scratch, bytes);
}

typedef struct tn_source {
  tn_item item;
  /* `split` chooses the part; a source without that part fails with TN_EUNAVAILABLE. seed is the
   * run's. Paths among the options are absolute. */
  tn_status (*open)(tn_env *env, const void *options, int32_t split, uint64_t seed, void **source);
  void (*close)(tn_env *env, void *source);
  /* Borrowed until close. */
  tn_status (*describe)(tn_env *env, void *source, tn_description *description);
  /* Writes every field of sample s->index; any index >= 0 when endless, else below count. */
  tn_status (*read)(tn_sample *s, void *source);
  /* Streaming sources, which cannot be indexed, give these three instead of read (one thread at a
   * time): next yields TN_EOF at the end. tell and seek make resuming exact; a position is the number
   * of samples before it. */
  tn_status (*next)(tn_sample *s, void *source);
  tn_status (*tell)(tn_env *env, void *source, int64_t *position);
  tn_status (*seek)(tn_env *env, void *source, int64_t position);
} tn_source;

TN_END_C
#endif
