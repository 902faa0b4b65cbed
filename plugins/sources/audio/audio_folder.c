/* plugins/sources/audio/audio_folder.c: sounds in class folders, FOLDER/CLASS/FILE.flac, as for keyword
 * spotting. The classes are numbered in the order of their names. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/audio/clip.h"
#include "plugins/sources/image/file_list.h"

typedef struct audio_options {
  const char *folder, *valid;
  double split, seconds;
  int64_t rate;
} audio_options;

static const tn_option options[] = {
    TN_OPT(audio_options, folder, TN_OPT_PATH, NULL, NULL,
           "folder of class folders of sounds: WAV, and FLAC, Ogg, MP3 and AIFF where libsndfile is at hand"),
    TN_OPT(audio_options, valid, TN_OPT_PATH, "", NULL, "folder of the same class folders, for validation"),
    TN_OPT(audio_options, split, TN_OPT_FLOAT, "0", "[0, 1)",
           "part of the sounds of each class that is for validation, in place of valid; 0: none"),
    TN_OPT(audio_options, seconds, TN_OPT_FLOAT, "0", "[0, 1e6]",
           "length of every sound: longer ones are cut at the end, shorter ones filled up with zeros; 0: "
           "they differ"),
    TN_OPT(audio_options, rate, TN_OPT_INT, "0", "[0, 10000000]",
           "samples a second, to which sounds of another rate are converted; 0: those of the first sound"),
    TN_OPT_END};

enum { AUDIO_MOST_RATE = 10000000 };

typedef struct audio_source {
  tn_env env; /* that of open, for messages */
  audio_options options;
  image_list list;
  name_list given; /* paths that the user named, in place of `list` */
  const char **class_names;
  clip_form form;
  int32_t n_fields;
  tn_field fields[2];
  char learnt[48]; /* {"rate": 16000} */
} audio_source;

static void audio_close(tn_env *env, void *source) {
  audio_source *a = source;
  image_list_free(env, &a->list);
  image_names_free(env, &a->given);
  tn_delete(env, a->class_names);
  tn_delete(env, a);
}

static int64_t audio_count(const audio_source *a) {
  return a->given.count > 0 ? a->given.count : a->list.files.count;
}

static tn_status audio_path(const void *handle, const audio_source *a, int64_t file, char path[PATH_MAX]) {
  if (a->given.count == 0) return image_list_path(handle, &a->list, file, PATH_MAX, path);
  int n = snprintf(path, PATH_MAX, "%s", name_at(&a->given, file));
  return n < PATH_MAX ? TN_OK : tn_fail(handle, TN_EINVAL, NULL, "%s: the path is too long", path);
}

/* The rate that the weights know, or 0. */
static int64_t audio_known_rate(const audio_source *a) {
  static const char member[] = "\"rate\":";
  const char *text = tn_env_learnt(&a->env), *at = text != NULL ? strstr(text, member) : NULL;
  long long rate = at != NULL ? strtoll(at + sizeof member - 1, NULL, 10) : 0;
  return rate > 0 && rate <= AUDIO_MOST_RATE ? rate : 0;
}

/* That of the option, or of training, or of the first sound which is not damaged. */
static tn_status audio_find_rate(audio_source *a) {
  char path[PATH_MAX];
  tn_scratch scratch = {NULL, 0};
  int64_t rate = a->options.rate > 0 ? a->options.rate : audio_known_rate(a);
  tn_status status = rate > 0 ? TN_OK : TN_EINVAL;
  for (int64_t i = 0; status == TN_EINVAL && i < audio_count(a); i++) {
    status = audio_path(&a->env, a, i, path);
    if (status == TN_OK) status = clip_rate(&a->env, path, &scratch, &rate);
  }
  tn_delete(&a->env, scratch.memory);
  snprintf(a->learnt, sizeof a->learnt, "{\"rate\": %lld}", (long long)rate);
  return status == TN_OK ? clip_form_make(&a->env, rate, a->options.seconds, &a->form) : status;
}

static tn_status audio_make_fields(audio_source *a) {
  int64_t classes = a->list.classes.count;
  tn_type type = {TN_F32, 1, {a->form.samples}};
  a->fields[0] = (tn_field){sizeof(tn_field), "sound", type, TN_FIELD_INPUT, 0, NULL};
  a->n_fields = a->given.count > 0 ? 1 : 2;
  if (a->n_fields == 1) return TN_OK;
  a->class_names = tn_new(&a->env, (size_t)classes * sizeof(char *));
  if (a->class_names == NULL) return TN_ENOMEM;
  for (int64_t k = 0; k < classes; k++) a->class_names[k] = name_at(&a->list.classes, k);
  a->fields[1] =
      (tn_field){sizeof(tn_field), "label", {TN_I32, 0, {0}}, TN_FIELD_TARGET, classes, a->class_names};
  return TN_OK;
}

static tn_status audio_check_part(const audio_source *a, int32_t split) {
  const audio_options *o = &a->options;
  if (source_has_path(o->valid) && o->split > 0)
    return tn_fail(&a->env, TN_EINVAL, "split",
                   "split = %g has no effect beside valid; leave one of them out", o->split);
  if (split == TN_SPLIT_TRAIN || source_has_path(o->valid) || o->split > 0) return TN_OK;
  return tn_fail(&a->env, TN_EUNAVAILABLE, "valid",
                 "no sounds are for validation; set valid to another folder, or split = 0.1 to take a part");
}

/* Of a folder that is split, training has warned already. */
static void audio_warn_others(const audio_source *a, int32_t split) {
  const other_entries *others = &a->list.others;
  if (others->count == 0 || (a->options.split > 0 && split == TN_SPLIT_VALID)) return;
  tn_env_log(&a->env, TN_LOG_WARN,
             "%s: %lld entries of class folders are no sounds and are skipped, such as %s/%s", a->list.root,
             (long long)others->count, name_at(&a->list.classes, others->class), others->name);
}

static tn_status audio_list(audio_source *a, int32_t split) {
  const audio_options *o = &a->options;
  const char *root = split == TN_SPLIT_VALID && source_has_path(o->valid) ? o->valid : o->folder;
  TN_TRY(audio_check_part(a, split));
  a->list.is_of_sounds = 1;
  TN_TRY(image_list_read(&a->env, root, o->folder, 0, &a->list));
  audio_warn_others(a, split);
  if (o->split > 0) image_list_keep_part(&a->list, o->split, split == TN_SPLIT_VALID);
  return TN_OK;
}

static audio_source *audio_new(tn_env *env, const void *opts) {
  audio_source *a = tn_new(env, sizeof *a);
  if (a == NULL) return NULL;
  a->env = *env;
  a->options = *(const audio_options *)opts;
  return a;
}

/* Behind the list of files. */
static tn_status audio_finish_open(tn_env *env, audio_source *a, tn_status status, void **source) {
  if (status == TN_OK) status = audio_find_rate(a);
  if (status == TN_OK) status = audio_make_fields(a);
  if (status == TN_OK)
    *source = a;
  else
    audio_close(env, a);
  return status;
}

static tn_status audio_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  audio_source *a = audio_new(env, opts);
  return a != NULL ? audio_finish_open(env, a, audio_list(a, split), source) : TN_ENOMEM;
}

static tn_status audio_open_files(tn_env *env, const void *opts, const char *const *paths, int32_t n,
                                  void **source) {
  audio_source *a = audio_new(env, opts);
  if (a == NULL) return TN_ENOMEM;
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = image_names_add(&a->env, 1, paths[i], &a->given);
  return audio_finish_open(env, a, status, source);
}

static tn_status audio_tell_learnt(tn_env *env, void *source, const char **text) {
  (void)env;
  *text = ((const audio_source *)source)->learnt;
  return TN_OK;
}

static tn_status audio_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  audio_source *a = source;
  description->count = audio_count(a);
  description->keep = 1;
  description->n_fields = a->n_fields;
  description->fields = a->fields;
  return TN_OK;
}

static tn_status audio_read(tn_sample *s, void *source) {
  const audio_source *a = source;
  char path[PATH_MAX];
  TN_TRY(audio_path(s, a, s->index, path));
  TN_TRY(clip_read(s, 0, path, path, &a->form));
  if (a->n_fields == 1) return TN_OK;
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (label == NULL) return TN_ENOMEM;
  *label = (int32_t)image_list_class(&a->list, s->index);
  return TN_OK;
}

static tn_status audio_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  char path[PATH_MAX];
  tn_status status = audio_path(env, source, index, path);
  if (status == TN_OK) snprintf(text, size, "%s", path);
  return status;
}

static tn_status audio_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  (void)env;
  *number = image_list_class(&((const audio_source *)source)->list, index);
  return TN_OK;
}

const tn_source audio_folder_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "audio_folder", "sounds in class folders", audio_options, options),
    .types = "sound: f32[samples], label: i32[]",
    .example =
        "source = audio_folder\nfolder = words\nseconds = 1\nsplit = 0.1\ntransforms = mel(40, log=db)",
    .open = audio_open,
    .close = audio_close,
    .describe = audio_describe,
    .read = audio_read,
    .open_files = audio_open_files,
    .name = audio_name,
    .class_of = audio_class_of,
    .learnt = audio_tell_learnt,
};
