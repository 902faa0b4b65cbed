/* plugins/sources/shards/shards.c: samples in tar archives, as WebDataset writes them: photos/0001.jpg and
 * photos/0001.cls are one sample. The headers of all members are read when the source is opened, so any
 * sample can be read by its number. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/sources/shards/shard_index.h"
#include "plugins/sources/shards/shard_stream.h"

typedef struct shards_options {
  const char *files, *valid, *inputs, *targets;
  double split;
  tn_ints classes, size;
  const char *tokenizer;
  int64_t max_pixels, at_least, length, pad, shuffle_buffer;
  int32_t orientation; /* SHARDS_... */
} shards_options;

enum { SHARDS_EXIF = 0, SHARDS_IGNORE = 1 };

static const tn_option options[] = {
    TN_OPT(shards_options, files, TN_OPT_PATH, NULL, "-",
           "the archives: a path, which may have ranges {000..146}, choices {a,b} and the patterns * ? [..]; "
           "packed by gzip "
           "or zstd they are read in order; -: standard input, which is read in order, too"),
    TN_OPT(shards_options, inputs, TN_OPT_TEXT, "image: jpg|jpeg|png", NULL,
           "fields that are inputs, NAME: ENDING|ENDING, separated by commas or lines: image: jpg|png, x: "
           "npy, text: txt (its bytes), text: tokens(txt), size: json(KEY) (a number or lists of numbers), "
           "caption: "
           "text(json(KEY))"),
    TN_OPT(shards_options, targets, TN_OPT_TEXT, "label: cls", NULL,
           "fields that are targets, as inputs: label: cls (a whole number as text), kind: class(json(KEY))"),
    TN_OPT(shards_options, valid, TN_OPT_PATH, "", NULL, "the archives of validation, as files"),
    TN_OPT(shards_options, split, TN_OPT_FLOAT, "0", "[0, 1)",
           "part of the samples that is for validation, in place of valid; 0: none"),
    TN_OPT(shards_options, shuffle_buffer, TN_OPT_INT, "-1", "[-1, 16777216]",
           "samples from which training draws the next one, where archives are read in order: 1: their "
           "order; -1: 1000. More "
           "than 0 also reads archives in order that are not packed"),
    TN_OPT(shards_options, classes, TN_OPT_INTS, "[]", ">= 0",
           "number of classes of each field of classes; 0, []: the greatest class in files and valid + 1"),
    TN_OPT(shards_options, size, TN_OPT_INTS, "[]", ">= 0",
           "height and width of every decoded picture; 0: they differ; []: read from the first picture of "
           "each archive"),
    TN_OPT(shards_options, tokenizer, TN_OPT_PATH, "", "bytes",
           "the tokenizer.json of fields tokens(...), or bytes; it travels with the weights"),
    TN_OPT(shards_options, length, TN_OPT_INT, "0", "[0, 1048576]",
           "length of every text: longer ones are cut at the end, shorter ones filled up with pad; 0: they "
           "differ"),
    TN_OPT(shards_options, pad, TN_OPT_INT, "0", "[0, 2147483647]",
           "the number behind the end of short texts"),
    TN_OPT(shards_options, max_pixels, TN_OPT_INT, "100000000", ">= 1",
           "the largest number of pixels of a picture"),
    TN_OPT(shards_options, at_least, TN_OPT_INT, "0", ">= 0",
           "decode a JPEG at 1/2, 1/4 or 1/8 of its size while both sides keep so many pixels; 0: at full "
           "size"),
    TN_OPT(shards_options, orientation, TN_OPT_ENUM, "exif", "exif|ignore",
           "turn a JPEG as its EXIF data say; or take it as it is stored"),
    TN_OPT_END};

typedef struct shards {
  tn_env env; /* that of open, for messages */
  shards_options options;
  shard_fields fields;
  shard_index index;
  tn_field described[SHARD_FIELDS];
  int32_t reads_files;  /* open_files */
  shard_stream *stream; /* of archives that are read in order; NULL: they are read by the index */
} shards;

static void shards_close(tn_env *env, void *source) {
  shards *s = source;
  shard_index_free(&s->index);
  shard_stream_close(env, s->stream);
  tn_tokenizer_close(env, s->fields.tokenizer);
  tn_delete(env, s);
}

/* The tokenizer of the weights, if there are any, is that of their training. */
static tn_status shards_open_tokenizer(shards *s) {
  const char *learnt = tn_env_learnt(&s->env), *name = s->options.tokenizer;
  const shard_field *f = NULL;
  for (int32_t i = 0; i < s->fields.n && f == NULL; i++)
    if (s->fields.v[i].kind == SHARD_TOKENS) f = &s->fields.v[i];
  if (f == NULL) return TN_OK;
  if (learnt != NULL)
    return tn_tokenizer_open_text(&s->env, "the tokenizer of the weights", learnt, strlen(learnt),
                                  &s->fields.tokenizer);
  if (name[0] == '\0')
    return tn_fail(&s->env, TN_EINVAL, "tokenizer",
                   "field '%s': expected tokenizer = FILE, a tokenizer.json, or tokenizer = bytes", f->name);
  return tn_tokenizer_open(&s->env, name, &s->fields.tokenizer);
}

static tn_status shards_read_fields(shards *s) {
  const shards_options *o = &s->options;
  s->fields.length = o->length;
  s->fields.pad = o->pad;
  s->fields.most_pixels = o->max_pixels;
  s->fields.at_least = o->at_least;
  s->fields.ignores_orientation = o->orientation == SHARDS_IGNORE;
  TN_TRY(shard_fields_add(&s->env, "inputs", o->inputs, TN_FIELD_INPUT, &s->fields));
  int32_t n_inputs = s->fields.n;
  if (!s->reads_files) TN_TRY(shard_fields_add(&s->env, "targets", o->targets, TN_FIELD_TARGET, &s->fields));
  TN_TRY(shards_open_tokenizer(s));
  return n_inputs > 0 ? TN_OK
                      : tn_fail(&s->env, TN_EINVAL, "inputs", "inputs: names no field, expected image: jpg");
}

/* ---- the parts ---- */

static tn_status shards_check_part(const shards *s, int32_t split) {
  const shards_options *o = &s->options;
  int32_t has_valid = source_has_path(o->valid);
  if (has_valid && o->split > 0)
    return tn_fail(&s->env, TN_EINVAL, "split",
                   "split = %g has no effect beside valid; leave one of them out", o->split);
  if (split == TN_SPLIT_TRAIN || has_valid || o->split > 0) return TN_OK;
  return tn_fail(&s->env, TN_EUNAVAILABLE, "valid",
                 "no samples are for validation; set valid to other archives, or split = 0.1 to take a part");
}

/* Of both parts, so that they have the same classes. */
static void shards_join_classes(shard_index *index, const shard_index *other) {
  for (int32_t i = 0; i < SHARD_FIELDS; i++)
    if (other->most_class[i] > index->most_class[i]) index->most_class[i] = other->most_class[i];
}

static int64_t shards_told_classes(const shards *s, int32_t field) {
  int32_t place = 0;
  for (int32_t i = 0; i < field; i++) place += s->fields.v[i].kind == SHARD_CLASS;
  return place < s->options.classes.n ? s->options.classes.v[place] : 0;
}

static int32_t shards_counts_classes(const shards *s) {
  for (int32_t i = 0; i < s->fields.n; i++)
    if (s->fields.v[i].kind == SHARD_CLASS && shards_told_classes(s, i) == 0) return 1;
  return 0;
}

/* ---- archives that are read in order ---- */

static int32_t shards_is_input(const char *pattern) { return strcmp(pattern, "-") == 0; }

/* Other ranks would read what this one lacks. */
static tn_status shards_check_input(const shards *s, const char *option) {
  int32_t ranks = tn_env_shards(&s->env);
  if (ranks == 1) return TN_OK;
  return tn_fail(
      &s->env, TN_EINVAL, option,
      "%s = -: standard input passes once, so that one rank reads it, and here are %d; run one rank, or "
      "name files",
      option, (int)ranks);
}

/* *why gets the first archive that has to be read in order, or is NULL. *paths gets all of them, and is the
 * caller's. */
static tn_status shards_find_order(const shards *s, const char *option, const char *pattern,
                                   source_paths *paths, const char **why) {
  *why = shards_is_input(pattern) ? "standard input" : NULL;
  if (*why != NULL) return shards_check_input(s, option);
  TN_TRY(source_paths_find(&s->env, option, pattern, paths));
  for (int64_t i = 0; i < paths->n && *why == NULL; i++) {
    int32_t is_packed;
    TN_TRY(shard_file_is_packed(&s->env, paths->v[i], &is_packed));
    if (is_packed) *why = paths->v[i];
  }
  return TN_OK;
}

/* Refuses keys that need an index. */
static tn_status shards_check_stream(const shards *s, const char *why) {
  const shards_options *o = &s->options;
  if (o->split > 0)
    return tn_fail(&s->env, TN_EINVAL, "split",
                   "split = %g: %s is read in order and cannot be divided; set valid to other archives",
                   o->split, why);
  if (!shards_counts_classes(s)) return TN_OK;
  return tn_fail(&s->env, TN_EINVAL, "classes",
                 "%s is read in order, so that classes are not counted; set classes to their number", why);
}

static tn_status shards_open_stream(shards *s, int32_t split, uint64_t seed, const char *why,
                                    source_paths *paths) {
  int64_t buffer = s->options.shuffle_buffer < 0 ? 1000 : s->options.shuffle_buffer;
  TN_TRY(shards_check_stream(s, why));
  if (split == TN_SPLIT_VALID || buffer < 1) buffer = 1;
  return shard_stream_open(&s->env, &s->fields, paths, buffer, seed, &s->stream);
}

/* Opens a stream, if the archives of this part are read in order. */
static tn_status shards_try_stream(shards *s, int32_t split, uint64_t seed) {
  const shards_options *o = &s->options;
  source_paths paths = {0};
  const char *why;
  int32_t is_valid = split == TN_SPLIT_VALID && source_has_path(o->valid);
  tn_status status =
      shards_find_order(s, is_valid ? "valid" : "files", is_valid ? o->valid : o->files, &paths, &why);
  if (why == NULL && split == TN_SPLIT_TRAIN && o->shuffle_buffer > 0) why = o->files;
  if (status == TN_OK && why != NULL) status = shards_open_stream(s, split, seed, why, &paths);
  source_paths_free(&s->env, &paths);
  return status;
}

/* ---- the index ---- */

/* Classes are counted in both parts. */
static tn_status shards_check_index(const shards *s, const char *option, const char *pattern) {
  source_paths paths = {0};
  const char *why;
  tn_status status = shards_find_order(s, option, pattern, &paths, &why);
  if (status == TN_OK && why != NULL) status = shards_check_stream(s, why);
  source_paths_free(&s->env, &paths);
  return status;
}

static tn_status shards_scan(shards *s, int32_t split) {
  const shards_options *o = &s->options;
  int32_t is_valid = split == TN_SPLIT_VALID, apart = source_has_path(o->valid);
  const char *option = is_valid && apart ? "valid" : "files", *other = is_valid ? "files" : "valid";
  const char *const own = is_valid && apart ? o->valid : o->files, *const others =
                                                                       is_valid ? o->files : o->valid;
  TN_TRY(shard_index_scan(&s->env, option, &own, 1, &s->fields, &s->index));
  if (apart && shards_counts_classes(s)) {
    shard_index both = {0};
    tn_status status = shards_check_index(s, other, others);
    if (status == TN_OK) status = shard_index_scan(&s->env, other, &others, 1, &s->fields, &both);
    if (status == TN_OK) shards_join_classes(&s->index, &both);
    shard_index_free(&both);
    TN_TRY(status);
  }
  if (o->split > 0) shard_index_keep_part(&s->index, o->split, is_valid);
  return TN_OK;
}

static tn_status shards_set_classes(shards *s) {
  for (int32_t i = 0; i < s->fields.n; i++) {
    shard_field *f = &s->fields.v[i];
    if (f->kind != SHARD_CLASS) continue;
    int64_t told = shards_told_classes(s, i);
    if (told == 0 && s->index.most_class[i] < 0)
      return tn_fail(&s->env, TN_EINVAL, "classes",
                     "field '%s': no member .%s is a class number, expected whole numbers", f->name,
                     f->endings);
    f->classes = told > 0 ? told : s->index.most_class[i] + 1;
  }
  return TN_OK;
}

/* ---- types ---- */

static tn_status shards_measure_sample(const shards *s, int64_t sample, int32_t i, tn_scratch *scratch,
                                       tn_type *type) {
  char where[PATH_MAX];
  shard_bytes member;
  int fd;
  TN_TRY(shard_index_open(&s->env, &s->index, sample, &fd));
  tn_status status =
      shard_index_read(&s->env, &s->index, sample, i, fd, scratch, where, sizeof where, &member);
  if (status == TN_OK) status = shard_field_measure(&s->env, &s->fields, i, &member, type);
  close(fd);
  return status;
}

/* Sizes that differ vary. */
static tn_status shards_join_type(const shards *s, int32_t i, tn_type *type, const tn_type *other) {
  if (type->rank != other->rank)
    return tn_fail(&s->env, TN_EINVAL, NULL,
                   "%s: field '%s' has %d dimensions in one sample and %d in another, expected "
                   "as many",
                   s->options.files, s->fields.v[i].name, (int)type->rank, (int)other->rank);
  for (int32_t d = 0; d < type->rank; d++)
    if (type->dims[d] != other->dims[d]) type->dims[d] = -1;
  return TN_OK;
}

/* The type of the first sample of each archive, or of the first one behind it that is not damaged. */
static tn_status shards_measure_field(const shards *s, int32_t i, tn_scratch *scratch, tn_type *type) {
  int32_t found = 0, file = -1;
  if (s->stream != NULL) {
    TN_TRY(shard_stream_measure(&s->env, s->stream, i, type));
    found = 1;
  }
  for (int64_t k = 0; k < s->index.count; k++) {
    tn_type one;
    if (s->index.samples[k].file == file) continue;
    tn_status status = shards_measure_sample(s, k, i, scratch, &one);
    if (status != TN_OK && status != TN_EINVAL) return status;
    if (status != TN_OK) continue;
    file = s->index.samples[k].file;
    if (found) TN_TRY(shards_join_type(s, i, type, &one));
    if (!found++) *type = one;
  }
  if (found && s->fields.v[i].is_list && type->rank > 0) type->dims[0] = -1;
  if (found) return TN_OK;
  return tn_fail(&s->env, TN_EINVAL, NULL, "%s: no sample has a readable member .%s, as field '%s' has it",
                 s->options.files, s->fields.v[i].endings, s->fields.v[i].name);
}

static tn_status shards_find_type(const shards *s, int32_t i, tn_scratch *scratch, tn_type *type) {
  const tn_ints *size = &s->options.size;
  int32_t kind = s->fields.v[i].kind;
  if (kind == SHARD_IMAGE && size->n > 2)
    return tn_fail(&s->env, TN_EINVAL, "size", "size has %lld numbers, expected height and width",
                   (long long)size->n);
  if (shard_field_is_measured(&s->fields.v[i]) && (kind != SHARD_IMAGE || size->n == 0))
    return shards_measure_field(s, i, scratch, type);
  *type = kind == SHARD_IMAGE ? (tn_type){TN_U8, 3, {3, size->v[0], size->v[size->n - 1]}}
                              : (tn_type){TN_I32, kind != SHARD_CLASS, {s->options.length}};
  for (int32_t d = 0; d < type->rank; d++)
    if (type->dims[d] == 0) type->dims[d] = -1;
  return TN_OK;
}

static tn_status shards_describe_fields(shards *s) {
  tn_scratch scratch = {NULL, 0};
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < s->fields.n; i++) {
    shard_field *f = &s->fields.v[i];
    status = shards_find_type(s, i, &scratch, &f->type);
    s->described[i] = (tn_field){sizeof(tn_field), f->name, f->type, f->role, f->classes, NULL};
  }
  tn_delete(&s->env, scratch.memory);
  return status;
}

static tn_status shards_prepare(shards *s, int32_t split, uint64_t seed) {
  TN_TRY(shards_check_part(s, split));
  TN_TRY(shards_read_fields(s));
  TN_TRY(shards_try_stream(s, split, seed));
  if (s->stream == NULL) TN_TRY(shards_scan(s, split));
  TN_TRY(shards_set_classes(s));
  return shards_describe_fields(s);
}

/* Predictions are as many as there are samples, which only an index tells. */
static tn_status shards_check_unpacked(const shards *s, const char *pattern) {
  source_paths paths = {0};
  const char *why;
  tn_status status = shards_find_order(s, "files", pattern, &paths, &why);
  if (status == TN_OK && why != NULL)
    status = tn_fail(&s->env, TN_EINVAL, NULL, "%s: is packed, expected a tar archive that is not; unpack it",
                     why);
  source_paths_free(&s->env, &paths);
  return status;
}

static tn_status shards_prepare_files(shards *s, const char *const *paths, int32_t n) {
  s->reads_files = 1;
  for (int32_t i = 0; i < n; i++) TN_TRY(shards_check_unpacked(s, paths[i]));
  TN_TRY(shards_read_fields(s));
  TN_TRY(shard_index_scan(&s->env, "files", paths, n, &s->fields, &s->index));
  TN_TRY(shards_set_classes(s));
  return shards_describe_fields(s);
}

static shards *shards_new(tn_env *env, const void *opts) {
  shards *s = tn_new(env, sizeof *s);
  if (s == NULL) return NULL;
  s->env = *env;
  s->options = *(const shards_options *)opts;
  return s;
}

static tn_status shards_take(tn_env *env, tn_status status, shards *s, void **source) {
  if (status == TN_OK)
    *source = s;
  else
    shards_close(env, s);
  return status;
}

static tn_status shards_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  shards *s = shards_new(env, opts);
  return s != NULL ? shards_take(env, shards_prepare(s, split, seed), s, source) : TN_ENOMEM;
}

static tn_status shards_open_files(tn_env *env, const void *opts, const char *const *paths, int32_t n,
                                   void **source) {
  shards *s = shards_new(env, opts);
  return s != NULL ? shards_take(env, shards_prepare_files(s, paths, n), s, source) : TN_ENOMEM;
}

/* The tokenizer travels with the weights. */
static tn_status shards_learnt(tn_env *env, void *source, const char **json) {
  const shards *s = source;
  *json = s->fields.tokenizer != NULL ? tn_tokenizer_json(env, s->fields.tokenizer) : NULL;
  return TN_OK;
}

static tn_status shards_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  shards *s = source;
  description->count = s->stream != NULL ? -1 : s->index.count;
  description->keep = s->stream == NULL;
  description->n_fields = s->fields.n;
  description->fields = s->described;
  return TN_OK;
}

static tn_status shards_read(tn_sample *sample, void *source) {
  const shards *s = source;
  char where[PATH_MAX];
  int fd;
  if (s->stream != NULL) return shard_stream_read(sample, s->stream);
  TN_TRY(shard_index_open(sample, &s->index, sample->index, &fd));
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < s->fields.n; i++) {
    shard_bytes member;
    status = shard_index_read(sample, &s->index, sample->index, i, fd, sample->scratch, where, sizeof where,
                              &member);
    if (status == TN_OK) status = shard_field_read(sample, &s->fields, i, &member);
  }
  close(fd);
  return status;
}

static tn_status shards_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  const shards *s = source;
  (void)env;
  if (s->stream != NULL)
    shard_stream_name(s->stream, index, text, size);
  else
    shard_index_name(&s->index, index, text, size);
  return TN_OK;
}

static tn_status shards_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  const shards *s = source;
  char name[PATH_MAX];
  if (s->stream != NULL)
    return tn_fail(env, TN_EUNSUPPORTED, "files", "archives that are read in order do not tell classes");
  *number = s->index.samples[index].class;
  if (*number >= 0) return TN_OK;
  shard_index_name(&s->index, index, name, sizeof name);
  return tn_fail(env, TN_EINVAL, NULL, "%s: has no class number, which balance = yes draws by", name);
}

const tn_source shards_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "shards", "samples in tar archives, as WebDataset writes them",
                    shards_options, options),
    .types = "image: u8[3, height, width], label: i32[], or as inputs and targets say",
    .example = "source = shards\nfiles = data/train-{000..146}.tar\nvalid = data/val-*.tar",
    .open = shards_open,
    .close = shards_close,
    .describe = shards_describe,
    .read = shards_read,
    .name = shards_name,
    .open_files = shards_open_files,
    .class_of = shards_class_of,
    .learnt = shards_learnt,
};
