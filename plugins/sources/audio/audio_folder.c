/* plugins/sources/audio/audio_folder.c: sounds in class folders, FOLDER/CLASS/FILE.flac, as for keyword
 * spotting. The classes are numbered in the order of their names. */
#include <limits.h>
#include <stdio.h>
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

typedef struct audio_source {
  tn_env env; /* that of open, for messages */
  audio_options options;
  image_list list;
  const char **class_names;
  clip_form form;
  tn_field fields[2];
} audio_source;

static void audio_close(tn_env *env, void *source) {
  audio_source *a = source;
  image_list_free(env, &a->list);
  tn_delete(env, a->class_names);
  tn_delete(env, a);
}

/* That of the first sound which is not damaged. */
static tn_status audio_find_rate(audio_source *a) {
  char path[PATH_MAX];
  tn_scratch scratch = {NULL, 0};
  int64_t rate = a->options.rate;
  tn_status status = rate > 0 ? TN_OK : TN_EINVAL;
  for (int64_t i = 0; status == TN_EINVAL && i < a->list.files.count; i++) {
    status = image_list_path(&a->env, &a->list, i, PATH_MAX, path);
    if (status == TN_OK) status = clip_rate(&a->env, path, &scratch, &rate);
  }
  tn_delete(&a->env, scratch.memory);
  return status == TN_OK ? clip_form_make(&a->env, rate, a->options.seconds, &a->form) : status;
}

static tn_status audio_make_fields(audio_source *a) {
  int64_t classes = a->list.classes.count;
  a->class_names = tn_new(&a->env, (size_t)classes * sizeof(char *));
  if (a->class_names == NULL) return TN_ENOMEM;
  for (int64_t k = 0; k < classes; k++) a->class_names[k] = name_at(&a->list.classes, k);
  tn_type type = {TN_F32, 1, {a->form.samples}};
  a->fields[0] = (tn_field){sizeof(tn_field), "sound", type, TN_FIELD_INPUT, 0, NULL};
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

static int audio_is_sound(const char *parent, const struct dirent *entry) {
  return sound_has_ending(entry->d_name) && !file_list_is_folder(parent, entry);
}

static tn_status audio_list(audio_source *a, int32_t split) {
  const audio_options *o = &a->options;
  const char *root = split == TN_SPLIT_VALID && source_has_path(o->valid) ? o->valid : o->folder;
  TN_TRY(audio_check_part(a, split));
  a->list.is_sound = audio_is_sound;
  TN_TRY(image_list_read(&a->env, root, o->folder, 0, &a->list));
  audio_warn_others(a, split);
  if (o->split > 0) image_list_keep_part(&a->list, o->split, split == TN_SPLIT_VALID);
  return TN_OK;
}

static tn_status audio_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  audio_source *a = tn_new(env, sizeof *a);
  if (a == NULL) return TN_ENOMEM;
  a->env = *env;
  a->options = *(const audio_options *)opts;
  tn_status status = audio_list(a, split);
  if (status == TN_OK) status = audio_find_rate(a);
  if (status == TN_OK) status = audio_make_fields(a);
  if (status == TN_OK)
    *source = a;
  else
    audio_close(env, a);
  return status;
}

static tn_status audio_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  audio_source *a = source;
  description->count = a->list.files.count;
  description->keep = 1;
  description->n_fields = 2;
  description->fields = a->fields;
  return TN_OK;
}

static tn_status audio_read(tn_sample *s, void *source) {
  const audio_source *a = source;
  char path[PATH_MAX];
  TN_TRY(image_list_path(s, &a->list, s->index, PATH_MAX, path));
  TN_TRY(clip_read(s, 0, path, path, &a->form));
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (label == NULL) return TN_ENOMEM;
  *label = (int32_t)image_list_class(&a->list, s->index);
  return TN_OK;
}

static tn_status audio_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  char path[PATH_MAX];
  tn_status status = image_list_path(env, &((const audio_source *)source)->list, index, sizeof path, path);
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
    .name = audio_name,
    .class_of = audio_class_of,
};
