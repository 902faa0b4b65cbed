/* core/data/fold.c: a source whose callbacks translate the numbers of samples. */
#include "core/data/fold.h"

#include "core/base/env.h"
#include "core/data/shuffle.h"

/* The key of the division. */
static const uint64_t FOLDS = 0x666F6C6473; /* "folds" */

/* Samples that a thread may be told of at once (tn_source.ahead). */
enum { FOLD_AHEAD = 32 };

static int64_t fold_sample(const tn_folded_source *f, int64_t index) {
  int64_t place = f->held_out ? f->begin + index : index < f->begin ? index : index + f->size;
  return tn_permute(FOLDS, f->count, place);
}

static tn_status fold_read_sample(tn_sample *sample, void *source) {
  const tn_folded_source *f = source;
  int64_t index = sample->index;
  sample->index = fold_sample(f, index);
  tn_status status = f->whole->read(sample, f->self);
  sample->index = index;
  return status;
}

static void fold_close(tn_env *env, void *source) {
  const tn_folded_source *f = source;
  f->whole->close(env, f->self);
}

static tn_status fold_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  const tn_folded_source *f = source;
  return f->whole->name(env, f->self, fold_sample(f, index), text, size);
}

static tn_status fold_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  const tn_folded_source *f = source;
  return f->whole->class_of(env, f->self, fold_sample(f, index), number);
}

static tn_status fold_learnt(tn_env *env, void *source, const char **text) {
  const tn_folded_source *f = source;
  return f->whole->learnt(env, f->self, text);
}

static tn_status fold_weight_of(tn_env *env, void *source, int64_t index, double *weight) {
  const tn_folded_source *f = source;
  return f->whole->weight_of(env, f->self, fold_sample(f, index), weight);
}

static void fold_ahead(void *source, const int64_t *indices, int32_t n) {
  const tn_folded_source *f = source;
  int64_t samples[FOLD_AHEAD];
  if (n > FOLD_AHEAD) n = FOLD_AHEAD; /* the others are read without */
  for (int32_t i = 0; i < n; i++) samples[i] = fold_sample(f, indices[i]);
  f->whole->ahead(f->self, samples, n);
}

/* The callbacks that the whole has. */
static void fold_fill_callbacks(tn_folded_source *f) {
  const tn_source *whole = f->whole;
  f->source = (tn_source){.item = whole->item, .close = fold_close, .read = fold_read_sample};
  if (whole->name != NULL) f->source.name = fold_name;
  if (whole->class_of != NULL) f->source.class_of = fold_class_of;
  if (whole->learnt != NULL) f->source.learnt = fold_learnt;
  if (whole->weight_of != NULL) f->source.weight_of = fold_weight_of;
  if (whole->ahead != NULL) f->source.ahead = fold_ahead;
}

/* The beginning of part i of n. */
static int64_t fold_begin(int64_t count, int64_t i, int64_t n) {
  return count / n * i + (i < count % n ? i : count % n);
}

tn_status tn_fold_source(tn_env *env, const tn_source *whole, void *self, const tn_data_fold *fold,
                         tn_description *description, tn_folded_source *f) {
  int64_t count = description->count;
  if (whole->next != NULL || count < 0)
    return tn_failf(env, TN_EINVAL, "fold = %d/%d: it is %s, so its samples cannot be divided into parts",
                    fold->part, fold->parts, whole->next != NULL ? "a stream" : "endless");
  if (count < fold->parts)
    return tn_failf(env, TN_EINVAL, "fold = %d/%d: it has %lld samples, fewer than parts", fold->part,
                    fold->parts, (long long)count);
  *f = (tn_folded_source){.whole = whole, .self = self, .count = count, .held_out = fold->held_out};
  f->begin = fold_begin(count, fold->part - 1, fold->parts);
  f->size = fold_begin(count, fold->part, fold->parts) - f->begin;
  fold_fill_callbacks(f);
  description->count = fold->held_out ? f->size : count - f->size;
  return TN_OK;
}
