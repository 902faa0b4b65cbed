/* plugins/sources/arrays/arrays.c: samples whose fields are the rows of arrays in files, one for each field.
 */
#include <stdio.h>
#include <string.h>

#include "plugins/sources/arrays/array_set.h"
#include "plugins/sources/arrays/row_split.h"

typedef struct arrays_options {
  const char *folder, *inputs, *targets, *valid;
  double split;
  int32_t split_at; /* ROW_SPLIT_... */
} arrays_options;

static const tn_option options[] = {
    TN_OPT(arrays_options, folder, TN_OPT_PATH, "", NULL, "the folder where paths of files begin"),
    TN_OPT(arrays_options, inputs, TN_OPT_TEXT, NULL, NULL,
           "fields that are inputs, NAME: FILE, separated by commas or lines: image: photos.npy, depth: "
           "all.npz/depth, id: all.safetensors/id, raw: pixels.bin u8[28, 28] +16 (rows behind 16 bytes). "
           "Behind it `as f32[784]` says as what a row is read"),
    TN_OPT(
        arrays_options, targets, TN_OPT_TEXT, "", NULL,
        "fields that are targets, as inputs: mask: masks.npy, label: y.npy 0..9. Whole numbers become i32; "
        "the range says how many classes there are, and for one number a row is found where it is not said"),
    TN_OPT(arrays_options, valid, TN_OPT_TEXT, "", NULL,
           "the files of validation: every field again, with its file there"),
    TN_OPT(arrays_options, split, TN_OPT_FLOAT, "0", "[0, 1)",
           "part of the rows that is for validation, in place of valid; 0: none"),
    TN_OPT(arrays_options, split_at, TN_OPT_ENUM, "drawn", "drawn|end",
           "which rows: one drawn from each stretch of 1/split rows, the same in every run; or those at the "
           "end, as for time series"),
    TN_OPT_END};

typedef struct arrays {
  array_set set;
  row_split rows;
  tn_field described[ARRAY_FIELDS];
} arrays;

static void arrays_close(tn_env *env, void *source) {
  arrays *s = source;
  array_set_close(env, &s->set);
  tn_delete(env, s);
}

/* The numbers of classes are those of both sets, so that training and validation have the same. */
static tn_status arrays_open_sets(tn_env *env, const arrays_options *o, int32_t split, arrays *s) {
  array_set other = {.n = 0};
  TN_TRY(array_set_open(env, o->folder, o->inputs, o->targets, &s->set));
  if (o->valid[0] == '\0') return TN_OK;
  tn_status status = array_set_open_same(env, o->folder, o->valid, &s->set, &other);
  if (status == TN_OK) status = array_set_join_classes(env, &s->set, &other);
  if (status == TN_OK && split == TN_SPLIT_VALID) {
    array_set kept = s->set;
    s->set = other;
    other = kept;
  }
  array_set_close(env, &other);
  return status;
}

static tn_status arrays_split(tn_env *env, const arrays_options *o, int32_t split, arrays *s) {
  int64_t rows = s->set.rows;
  s->rows = row_split_whole(rows);
  if (o->valid[0] != '\0' && o->split > 0)
    return tn_fail(env, TN_EINVAL, "split", "split = %g has no effect beside valid; leave one of them out",
                   o->split);
  if (o->valid[0] != '\0' || (o->split == 0 && split == TN_SPLIT_TRAIN)) return TN_OK;
  if (o->split == 0)
    return tn_fail(env, TN_EUNAVAILABLE, "split",
                   "no rows are for validation; set split = 0.1 to take a part, or valid to other files");
  if (!row_split_part(rows, o->split, o->split_at, split == TN_SPLIT_VALID, &s->rows))
    return tn_fail(env, TN_EINVAL, "split",
                   "split = %g of %lld rows leaves none for training or validation, expected some for both",
                   o->split, (long long)rows);
  return TN_OK;
}

static tn_status arrays_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  arrays *s = tn_new(env, sizeof(*s));
  if (s == NULL) return TN_ENOMEM;
  tn_status status = arrays_open_sets(env, opts, split, s);
  if (status == TN_OK) status = arrays_split(env, opts, split, s);
  if (status != TN_OK) {
    arrays_close(env, s);
    return status;
  }
  for (int32_t i = 0; i < s->set.n; i++) {
    const array_field *f = &s->set.fields[i];
    s->described[i] = (tn_field){sizeof(tn_field), f->name, f->type, f->role, f->classes, NULL};
  }
  *source = s;
  return TN_OK;
}

static tn_status arrays_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  arrays *s = source;
  description->count = s->rows.count;
  description->n_fields = s->set.n;
  description->fields = s->described;
  return TN_OK;
}

static tn_status arrays_read(tn_sample *sample, void *source) {
  const arrays *s = source;
  int64_t row = row_split_at(&s->rows, sample->index);
  for (int32_t i = 0; i < s->set.n; i++) {
    void *to = tn_sample_field(sample, i, NULL);
    if (to == NULL) return TN_ENOMEM;
    TN_TRY(array_field_sample(sample, &s->set.fields[i], row, to));
  }
  return TN_OK;
}

static tn_status arrays_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  (void)env;
  snprintf(text, size, "row %lld", (long long)row_split_at(&((const arrays *)source)->rows, index));
  return TN_OK;
}

static tn_status arrays_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  const arrays *s = source;
  const array_field *f = NULL;
  for (int32_t i = s->set.n - 1; i >= 0; i--)
    if (s->set.fields[i].role == TN_FIELD_TARGET && s->set.fields[i].classes > 0) f = &s->set.fields[i];
  if (f == NULL || f->type.rank > 0)
    return tn_fail(
        env, TN_EINVAL, "targets",
        "the first target with classes has no class number a row, expected one, as in label: y.npy");
  return array_field_number(env, f, row_split_at(&s->rows, index), number);
}

const tn_source arrays_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "arrays",
                    "rows of arrays in files: .npy, .npz, .safetensors or without a header", arrays_options,
                    options),
    .types = "fields of any name and type: a row of the array",
    .example = "source = arrays\nfolder = .\ninputs = image: images.npy\ntargets = label: labels.npy\n"
               "split = 0.1",
    .open = arrays_open,
    .close = arrays_close,
    .describe = arrays_describe,
    .read = arrays_read,
    .name = arrays_name,
    .class_of = arrays_class_of,
};
