/* plugins/sources/joined/zip.c: sample i of several sources is one sample, with the fields of each. */
#include "plugins/sources/joined/joined.h"

static const tn_option options[] = {
    TN_OPT(joined_options, sources, TN_OPT_TEXT, NULL, NULL,
           "names of the sources, whose keys are those of the sections [source NAME]; they have equally many "
           "samples"),
    TN_OPT(joined_options, inputs, TN_OPT_TEXT, "", NULL,
           "fields that are inputs: NAME, NAME: FIELD or NAME: SOURCE.FIELD, as in left: a.image, right: "
           "b.image; "
           "empty: all inputs under their own names"),
    TN_OPT(joined_options, targets, TN_OPT_TEXT, "", NULL,
           "fields that are targets, as inputs: mask: masks.image; empty: all targets under their own names"),
    TN_OPT_END};

/* All have one number of samples; endless ones have any. */
static tn_status zip_check_counts(const joined *j) {
  const joined_part *first = NULL;
  for (int32_t i = 0; i < j->n_parts; i++) {
    const joined_part *p = &j->parts[i];
    if (p->description.count < 0) continue;
    if (first == NULL) first = p;
    if (p->description.count != first->description.count)
      return tn_fail(&j->env, TN_EINVAL, "sources",
                     "sources: '%s' has %lld samples and '%s' %lld, expected equally many", first->name,
                     (long long)first->description.count, p->name, (long long)p->description.count);
  }
  return TN_OK;
}

static tn_status zip_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  joined *j;
  tn_status status = joined_new(env, opts, &j);
  int32_t parts = status == TN_OK ? j->n_parts : 0;
  for (int32_t i = 0; i < parts && status == TN_OK; i++) status = joined_open_part(j, i, split, seed);
  if (status == TN_OK) status = joined_find_fields(j, opts, 0);
  if (status == TN_OK) status = zip_check_counts(j);
  return joined_take(status, j, source);
}

/* Files are read by the source that has the inputs. */
static tn_status zip_find_reader(const joined *j, const joined_options *o, int32_t *part) {
  int32_t found = 0;
  for (int32_t i = 0; i < j->n_parts; i++) {
    if (!joined_list_names(o->inputs, j->parts[i].name)) continue;
    if (found++ == 0) *part = i;
  }
  if (found == 1) return TN_OK;
  return tn_fail(
      &j->env, TN_EUNSUPPORTED, "inputs",
      "inputs: files are read by the source that all inputs come from, expected one, as in inputs = image: "
      "photos.image; give a .npy file for each input");
}

static tn_status zip_open_files(tn_env *env, const void *opts, const char *const *paths, int32_t n,
                                void **source) {
  joined *j;
  int32_t part = 0;
  tn_status status = joined_new(env, opts, &j);
  if (status == TN_OK) status = zip_find_reader(j, opts, &part);
  if (status == TN_OK) status = joined_open_files(j, part, paths, n);
  if (status == TN_OK) status = joined_find_fields(j, opts, 0);
  return joined_take(status, j, source);
}

static tn_status zip_describe(tn_env *env, void *source, tn_description *description) {
  const joined *j = source;
  (void)env;
  description->count = -1;
  description->keep = 1;
  for (int32_t i = 0; i < j->n_parts; i++) {
    const tn_description *d = &j->parts[i].description;
    if (d->count >= 0) description->count = d->count;
    if (d->epoch > 0 && (description->epoch == 0 || d->epoch < description->epoch))
      description->epoch = d->epoch;
    description->keep = description->keep && d->keep;
  }
  description->n_fields = j->n_fields;
  description->fields = j->fields;
  return TN_OK;
}

/* Each part has random numbers of its own. */
static tn_status zip_read(tn_sample *s, void *source) {
  const joined *j = source;
  for (int32_t i = 0; i < j->n_parts; i++) {
    uint64_t key = i == 0 ? s->key : tn_hash_mix(s->key, (uint64_t)i);
    TN_TRY(joined_read_part(s, &j->parts[i], s->index, key));
  }
  return TN_OK;
}

static tn_status zip_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  return joined_name_of(env, &((const joined *)source)->parts[0], index, text, size);
}

static tn_status zip_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  const joined *j = source;
  int32_t field = joined_class_field(j);
  for (int32_t i = 0; i < j->n_parts && field >= 0; i++)
    for (int32_t k = 0; k < j->parts[i].description.n_fields; k++)
      if (j->parts[i].to[k] == field) return joined_class_of(env, j, field, &j->parts[i], index, number);
  return tn_fail(env, TN_EUNSUPPORTED, "sources", "no target has classes");
}

/* Those of the first source that has some. */
static tn_status zip_weight_of(tn_env *env, void *source, int64_t index, double *weight) {
  const joined *j = source;
  for (int32_t i = 0; i < j->n_parts; i++)
    if (j->parts[i].is_weighted) return joined_weight_of(env, &j->parts[i], index, weight);
  return tn_fail(env, TN_EUNAVAILABLE, "sources", "there are no weights");
}

const tn_source zip_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "zip",
                    "several sources side by side: sample i of each is one sample", joined_options, options),
    .types = "the fields of all of the sources",
    .example = "source = zip\nsources = photos, masks\ntargets = mask: masks.image",
    .open = zip_open,
    .close = joined_close,
    .describe = zip_describe,
    .read = zip_read,
    .open_files = zip_open_files,
    .name = zip_name,
    .class_of = zip_class_of,
    .learnt = joined_learnt,
    .weight_of = zip_weight_of,
};
