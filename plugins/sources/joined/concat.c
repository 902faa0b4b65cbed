/* plugins/sources/joined/concat.c: the samples of several sources, one source behind the other. */
#include "plugins/sources/joined/joined.h"

static const tn_option options[] = {
    TN_OPT(joined_options, sources, TN_OPT_TEXT, NULL, NULL,
           "names of the sources, whose keys are those of the sections [source NAME]"),
    TN_OPT(joined_options, weights, TN_OPT_FLOATS, "[]", "> 0",
           "how often each source is drawn in training, in proportion to the others: [0.7, 0.3]; []: every "
           "sample "
           "comes once an epoch"),
    TN_OPT(joined_options, inputs, TN_OPT_TEXT, "", NULL,
           "fields that are inputs, which all sources have: NAME, NAME: FIELD, or NAME: "
           "SOURCE.FIELD|SOURCE.FIELD where "
           "they differ in name; empty: all inputs under their own names"),
    TN_OPT(joined_options, targets, TN_OPT_TEXT, "", NULL, "fields that are targets, as inputs"), TN_OPT_END};

/* The samples of a part. Of an endless one, an epoch of it. */
static tn_status concat_measure(const joined *j, joined_part *p) {
  const tn_description *d = &p->description;
  p->count = d->count >= 0 ? d->count : d->epoch;
  if (p->count > 0) return TN_OK;
  return tn_fail(&j->env, TN_EINVAL, "sources",
                 d->count == 0
                     ? "sources: '%s' has no samples"
                     : "sources: '%s' is endless and does not say how many samples an epoch has, so it "
                       "cannot be joined with others",
                 p->name);
}

/* A part that has no validation data adds none. It is opened still, for its classes. */
static tn_status concat_open_parts(joined *j, int32_t split, uint64_t seed) {
  int32_t found = 0;
  int64_t first = 0;
  tn_status status = TN_OK;
  for (int32_t i = 0; i < j->n_parts; i++) {
    joined_part *p = &j->parts[i];
    status = joined_open_part(j, i, split, seed);
    int32_t lacks = status == TN_EUNAVAILABLE && split == TN_SPLIT_VALID;
    if (lacks) status = joined_open_part(j, i, TN_SPLIT_TRAIN, seed);
    if (status == TN_OK && !lacks) status = concat_measure(j, p);
    TN_TRY(status);
    p->first = first;
    if (__builtin_add_overflow(first, p->count, &first))
      return tn_fail(&j->env, TN_EINVAL, "sources", "sources: they have more samples than can be counted");
    found += !lacks;
  }
  if (found > 0) return TN_OK;
  return tn_fail(&j->env, TN_EUNAVAILABLE, "sources", "sources: none of them has data for validation");
}

static tn_status concat_prepare_fields(joined *j, const joined_options *o) {
  TN_TRY(joined_find_fields(j, o, 1));
  for (int32_t i = 0; i < j->n_fields; i++) TN_TRY(joined_join_classes(j, i));
  return TN_OK;
}

static tn_status concat_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  joined *j;
  tn_status status = joined_new(env, opts, &j);
  if (status == TN_OK) status = concat_open_parts(j, split, seed);
  if (status == TN_OK && split == TN_SPLIT_TRAIN)
    status = joined_set_weights(j, &((const joined_options *)opts)->weights);
  if (status == TN_OK) status = concat_prepare_fields(j, opts);
  return joined_take(status, j, source);
}

/* The first source that reads them. */
static tn_status concat_open_files(tn_env *env, const void *opts, const char *const *paths, int32_t n,
                                   void **source) {
  joined *j;
  tn_status status = joined_new(env, opts, &j), opened = TN_EUNSUPPORTED;
  int32_t parts = status == TN_OK ? j->n_parts : 0;
  for (int32_t i = 0; i < parts && opened == TN_EUNSUPPORTED; i++) opened = joined_open_files(j, i, paths, n);
  if (status == TN_OK) status = opened;
  if (status == TN_OK) status = concat_measure(j, &j->parts[0]);
  if (status == TN_OK) status = concat_prepare_fields(j, opts);
  return joined_take(status, j, source);
}

static tn_status concat_describe(tn_env *env, void *source, tn_description *description) {
  const joined *j = source;
  (void)env;
  description->count = 0;
  description->keep = 1;
  for (int32_t i = 0; i < j->n_parts; i++) {
    description->count += j->parts[i].count;
    description->keep = description->keep && j->parts[i].description.keep;
  }
  description->n_fields = j->n_fields;
  description->fields = j->fields;
  return TN_OK;
}

/* The part that has a sample. */
static const joined_part *concat_find(const joined *j, int64_t index) {
  int32_t low = 0, high = j->n_parts - 1;
  while (low < high) {
    int32_t middle = (low + high + 1) / 2;
    if (j->parts[middle].first <= index)
      low = middle;
    else
      high = middle - 1;
  }
  return &j->parts[low];
}

static tn_status concat_read(tn_sample *s, void *source) {
  const joined_part *p = concat_find(source, s->index);
  return joined_read_part(s, p, s->index - p->first, s->key);
}

static tn_status concat_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  const joined_part *p = concat_find(source, index);
  return joined_name_of(env, p, index - p->first, text, size);
}

static tn_status concat_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  const joined *j = source;
  const joined_part *p = concat_find(j, index);
  int32_t field = joined_class_field(j);
  if (field < 0) return tn_fail(env, TN_EUNSUPPORTED, "sources", "no target has classes");
  return joined_class_of(env, j, field, p, index - p->first, number);
}

static tn_status concat_weight_of(tn_env *env, void *source, int64_t index, double *weight) {
  const joined *j = source;
  const joined_part *p = concat_find(j, index);
  if (!j->is_weighted) return tn_fail(env, TN_EUNAVAILABLE, "weights", "there are no weights");
  TN_TRY(joined_weight_of(env, p, index - p->first, weight));
  *weight *= p->weight;
  return TN_OK;
}

const tn_source concat_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "concat", "the samples of several sources in one epoch",
                    joined_options, options),
    .types = "the fields that all of the sources have",
    .example = "source = concat\nsources = old, new\nweights = [0.3, 0.7]",
    .open = concat_open,
    .close = joined_close,
    .describe = concat_describe,
    .read = concat_read,
    .open_files = concat_open_files,
    .name = concat_name,
    .class_of = concat_class_of,
    .learnt = joined_learnt,
    .weight_of = concat_weight_of,
};
