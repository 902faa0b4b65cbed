/* tenon/plugin/source.h: a source of samples.
 *
 * Life cycle: open (main thread) -> describe -> read, from any number of worker threads at once -> close
 * (main thread, after all reads have returned). An indexed source gives the same sample for the same (index,
 * key) every time, so order and augmentation depend on seed and epoch only. */
#ifndef TENON_PLUGIN_SOURCE_H
#define TENON_PLUGIN_SOURCE_H

#include "tenon/plugin/plugin.h"
#include "tenon/random.h"

TN_BEGIN_C

enum { TN_FIELD_INPUT = 0, TN_FIELD_TARGET = 1 };
/* Parts of the data. */
enum { TN_SPLIT_TRAIN = 0, TN_SPLIT_VALID = 1 };

/* A field of every sample. Images are u8 (C, H, W). The source owns texts and lists; they are valid until
 * close. */
typedef struct tn_field {
  uint32_t struct_size;
  const char *name;
  tn_type type;    /* of one sample, without batch; a dimension of -1 varies from sample to sample */
  int32_t role;    /* TN_FIELD_... */
  int64_t classes; /* targets: number of classes; 0: the field is no class number */
  const char *const
      *class_names; /* NULL, or `classes` of them; of a target f32[n] of labels, n (classes 0) */
  /* Targets of numbers: the value in the units of the data is value * scale + shift, so that predictions can
   * be told in them. As many as the elements of a sample; NULL: the values are in those units. */
  const double *scale, *shift;
} tn_field;

typedef struct tn_description {
  uint32_t struct_size;
  int64_t count; /* samples in an epoch; -1: endless */
  int32_t n_fields;
  const tn_field *fields; /* valid until close */
  int64_t epoch; /* endless sources: default of samples in an epoch; 0: the configuration must set it */
  /* 1: reading is expensive (a file to decode) and a sample depends on its index only, not on the key. The
   * host may keep samples in memory and read each once. */
  int32_t keep;
} tn_description;

/* Field `i` of a description. The array's stride is the source's own sizeof(tn_field), fields[0].struct_size.
 */
static inline const tn_field *tn_description_field(const tn_description *d, int32_t i) {
  return (const tn_field *)(const void *)((const char *)d->fields + (size_t)i * d->fields[0].struct_size);
}

/* Memory that a worker keeps from one sample to the next. The host frees it. Frozen. */
typedef struct tn_scratch {
  void *memory;
  size_t size;
} tn_scratch;

/* The worker's memory, grown to at least `bytes` (more than 0). New memory is zero; memory that was large
 * enough keeps its contents. One block at a time: a later call may move it. NULL: TN_ENOMEM is in the handle.
 */
static inline void *tn_scratch_take(const void *handle, tn_scratch *s, size_t bytes) {
  if (bytes <= s->size) return s->memory;
  tn_delete(handle, s->memory);
  s->memory = tn_new(handle, bytes);
  s->size = s->memory != NULL ? bytes : 0;
  return s->memory;
}

/* Handle of read and next: one sample, on a worker thread. */
struct tn_sample {
  tn_env env;
  uint32_t struct_size;
  int64_t index;       /* number of the sample */
  uint64_t key;        /* random key of (seed, epoch, index), for tn_rng_at(key, use) */
  tn_scratch *scratch; /* for tn_sample_scratch */
  /* Whether the host waits for this call only to stop: the run ends, or the batch is no longer needed. Any
   * thread, at any time during read or next. For tn_sample_stopping. */
  int32_t (*stopping)(const tn_sample *s);
};

/* Memory of the host for field `i` of this sample: a value of `type`, row-major, contents undefined. The
 * source writes all of it before it returns. `type` may be NULL where no dimension of the field varies. NULL:
 * an error is in the handle; the callback returns TN_ENOMEM. */
static inline void *tn_sample_field(tn_sample *s, int32_t i, const tn_type *type) {
  return s->env.api->field(s, i, type);
}

/* tn_scratch_take for this source. A sample must not depend on contents that an earlier one has left. */
static inline void *tn_sample_scratch(tn_sample *s, size_t bytes) {
  return tn_scratch_take(s, s->scratch, bytes);
}

/* Whether read or next may give up, with a message and TN_ESTOPPED, because the host does not need the sample
 * any more. A source that works on one sample for long asks now and then. */
static inline int32_t tn_sample_stopping(const tn_sample *s) {
  return TN_HAS(s, stopping) && s->stopping != NULL && s->stopping(s);
}

typedef struct tn_source {
  tn_item item;
  /* `split` is TN_SPLIT_...; TN_EUNAVAILABLE: the source has no such part. `seed` is the run's. Paths among
   * the options are absolute. `options` is valid until close. */
  tn_status (*open)(tn_env *env, const void *options, int32_t split, uint64_t seed, void **source);
  void (*close)(tn_env *env, void *source);
  /* Fills the description; the host has set struct_size and zeroed the rest. */
  tn_status (*describe)(tn_env *env, void *source, tn_description *description);
  /* Writes every field of sample s->index: 0 <= index < count, or any index >= 0 of an endless source. */
  tn_status (*read)(tn_sample *s, void *source);
  /* Streaming sources, which have no index, have these three instead of read; calls come from one thread at a
   * time. next reads the next sample, TN_EOF at the end. tell and seek, for exact resuming: a position is the
   * number of samples before it. */
  tn_status (*next)(tn_sample *s, void *source);
  tn_status (*tell)(tn_env *env, void *source, int64_t *position);
  tn_status (*seek)(tn_env *env, void *source, int64_t position);
  /* Optional, for `tenon predict`: opens n files and folders that the user names, in place of the configured
   * data. `options` are those of open; `paths` are valid during the call. The source describes fields of role
   * TN_FIELD_INPUT only. */
  tn_status (*open_files)(tn_env *env, const void *options, const char *const *paths, int32_t n,
                          void **source);
  /* Optional: writes a name of sample `index` for people, such as the path of its file, NUL-terminated and
   * cut at `size` bytes. Any thread, until close. */
  tn_status (*name)(tn_env *env, void *source, int64_t index, char *text, size_t size);
  /* Optional, for [data] balance: the class of sample `index` of a finite source, as the first target with
   * classes has it, without the work of reading the sample; where another sample takes the place of a damaged
   * one, the class of the damaged one. Any thread, until close. */
  tn_status (*class_of)(tn_env *env, void *source, int64_t index, int64_t *number);
  /* For `tenon inspect` and the reference. types: the fields, "image: u8[3, height, width], label: i32[]".
   * example: lines of [data]. NULL: none. */
  const char *types, *example;
  /* Optional: the state that the source has learnt from the training part, such as vocabularies and means, as
   * a JSON object; valid until close. The host keeps it with the weights and gives it back by
   * tn_env_learnt. NULL in *text: nothing. */
  tn_status (*learnt)(tn_env *env, void *source, const char **text);
  /* Optional: the weight of sample `index` of a finite source, 0 or more and finite: a shuffled epoch of
   * training draws samples in proportion to them, with replacement. TN_EUNAVAILABLE for sample 0: these data
   * have no weights. Any thread, until close. */
  tn_status (*weight_of)(tn_env *env, void *source, int64_t index, double *weight);
  /* Optional, for `tenon predict` of a model whose data are of another form, such as arrays: opens n
   * pictures, and folders of them, that the user names. The only field is an input of this name, u8
   * [channels, height, width], of 1 or 3 channels. `field` is valid until close, `paths` during the call. */
  tn_status (*open_pictures)(tn_env *env, const char *field, int32_t channels, const char *const *paths,
                             int32_t n, void **source);
  /* Optional: n samples that are read next on this thread, so that a source whose samples are in memory can
   * prefetch them into the processor's cache. Any thread, until close; it neither waits nor fails. */
  void (*ahead)(void *source, const int64_t *indices, int32_t n);
} tn_source;

/* ---- sources that join others ---- */

/* A source that is open inside of another one: a section [source NAME] of the configuration. The source that
 * opened it calls its callbacks, and `close` at the end. */
typedef struct tn_part {
  uint32_t struct_size;
  const tn_source *source;
  void *self;
} tn_part;

/* How a part is opened. */
typedef struct tn_part_use {
  uint32_t struct_size;
  int32_t split; /* TN_SPLIT_... */
  uint64_t seed;
  const char *learnt; /* what this part has learnt from the training part (tn_env_learnt); NULL: nothing */
  const char *const *paths; /* files for open_files; NULL: the part's own data (open) */
  int32_t n_paths;
} tn_part_use;

/* Opens the source that the section [source NAME] of the configuration describes, with `env` that open or
 * open_files was given. TN_EINVAL: there is no such section, or it joins itself; TN_EUNSUPPORTED: there are
 * paths, and it reads none that a user names; otherwise as the callback. Messages name the section. */
static inline tn_status tn_part_open(tn_env *env, const char *name, const tn_part_use *use, tn_part *part) {
  return env->api->part_open(env, name, use, part);
}

TN_END_C
#endif
