/* plugins/sources/image/image_folder.c: pictures in class folders, FOLDER/train/CLASS/FILE.jpg. The classes
 * are numbered in the order of their names, as by torchvision's ImageFolder. Photos are turned as their EXIF
 * data say; colour profiles are not applied. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "plugins/sources/image/image.h"
#include "plugins/sources/image/file_list.h"
#include "tenon/file_names.h"

typedef struct folder_options {
  const char *folder, *subfolder;
  tn_ints size;
  int64_t max_pixels, at_least;
  double split;
  int32_t nested;
  int32_t orientation; /* ORIENTATION_... */
} folder_options;

enum { ORIENTATION_EXIF = 0, ORIENTATION_IGNORE = 1, FOLDER_MOST_PIXELS = 100000000 };

static const tn_option options[] = {
    TN_OPT(folder_options, folder, TN_OPT_PATH, NULL, NULL,
           "folder of train/ and one of valid/, val/, test/"),
    TN_OPT(folder_options, subfolder, TN_OPT_TEXT, "", NULL,
           "another folder in it instead of these; . is the folder itself"),
    TN_OPT(folder_options, nested, TN_OPT_FLAG, "no", NULL,
           "class folders may be in other folders; the class of cats/black/1.jpg is cats/black"),
    TN_OPT(folder_options, split, TN_OPT_FLOAT, "0", "[0, 1)",
           "part of the pictures of each class that is for validation, where no folder is; 0: none"),
    TN_OPT(folder_options, size, TN_OPT_INTS, "[]", ">= 0",
           "height and width of every decoded picture; 0: they differ; []: read from the first picture of "
           "each class"),
    TN_OPT(folder_options, max_pixels, TN_OPT_INT, "100000000", ">= 1",
           "the largest number of pixels of a picture"),
    TN_OPT(folder_options, at_least, TN_OPT_INT, "0", ">= 0",
           "decode a JPEG at 1/2, 1/4 or 1/8 of its size while both sides keep so many pixels; 0: at full "
           "size"),
    TN_OPT(folder_options, orientation, TN_OPT_ENUM, "exif", "exif|ignore",
           "turn a picture as its EXIF data say, so that it is learnt as people see it; or take it as it is "
           "stored, as "
           "torchvision does"),
    TN_OPT_END};

/* No file with an allowed number of pixels is larger. */
static const size_t LARGEST_FILE = (size_t)1 << 30;

typedef struct folder_source {
  tn_env env; /* that of open, for messages */
  folder_options options;
  image_list list;
  name_list given; /* paths that the user named, in place of `list` */
  int n_fields;
  const char *field; /* of the picture */
  int32_t channels;  /* 3, or 1: grey */
  const char **class_names;
  int64_t height, width; /* of every picture; -1: they differ */
  tn_field fields[2];
} folder_source;

static int folder_exists(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static tn_status image_folder_join(const tn_env *env, const char *folder, const char *name,
                                   char path[PATH_MAX]) {
  int itself = strcmp(name, ".") == 0;
  int n = snprintf(path, PATH_MAX, "%s%s%s", folder, itself ? "" : "/", itself ? "" : name);
  if (n >= 0 && n < PATH_MAX) return TN_OK;
  return tn_fail(env, TN_EINVAL, "folder", "%s/%s: the path is too long", folder, name);
}

/* The first folder of a part that exists; root is "" where there is none. */
static tn_status image_folder_find_named(const tn_env *env, const folder_options *o, int32_t split,
                                         char root[PATH_MAX]) {
  static const char *const names[2][4] = {{"train", NULL}, {"valid", "val", "test", NULL}};
  for (const char *const *name = names[split == TN_SPLIT_VALID]; *name != NULL; name++) {
    tn_status status = image_folder_join(env, o->folder, *name, root);
    if (status != TN_OK || folder_exists(root)) return status;
  }
  root[0] = '\0';
  return TN_OK;
}

static tn_status image_folder_fail_part(const tn_env *env, const folder_options *o, int32_t split) {
  if (!folder_exists(o->folder))
    return tn_fail(env, TN_EIO, "folder", "%s: there is no such folder", o->folder);
  return tn_fail(env, TN_EUNAVAILABLE, "folder",
                 "%s: has no %s; set subfolder to another folder, or to . for the folder itself%s", o->folder,
                 split == TN_SPLIT_VALID ? "valid/, val/ or test/" : "train/",
                 split == TN_SPLIT_VALID ? ", or split = 0.1 to take a part of train/" : "");
}

/* With `split`, both parts lie in the folder of training. */
static tn_status image_folder_find_split(const tn_env *env, const folder_options *o, char root[PATH_MAX]) {
  char valid[PATH_MAX];
  tn_status status = image_folder_find_named(env, o, TN_SPLIT_VALID, valid);
  if (status == TN_OK && valid[0] != '\0')
    return tn_fail(env, TN_EINVAL, "split", "split = %g has no effect beside %s; leave one of them out",
                   o->split, valid);
  if (status == TN_OK) status = image_folder_find_named(env, o, TN_SPLIT_TRAIN, root);
  return status == TN_OK && root[0] == '\0' ? image_folder_fail_part(env, o, TN_SPLIT_TRAIN) : status;
}

/* Finds the folder of the part (root) and the folder whose classes define the numbering (reference). */
static tn_status image_folder_find_part(const tn_env *env, const folder_options *o, int32_t split,
                                        char root[PATH_MAX], char reference[PATH_MAX]) {
  tn_status status;
  reference[0] = '\0';
  if (o->subfolder[0] != '\0')
    status = image_folder_join(env, o->folder, o->subfolder, root);
  else if (o->split > 0)
    status = image_folder_find_split(env, o, root);
  else
    status = image_folder_find_named(env, o, split, root);
  if (status == TN_OK && root[0] == '\0') return image_folder_fail_part(env, o, split);
  if (status == TN_OK && o->subfolder[0] == '\0')
    status = image_folder_find_named(env, o, TN_SPLIT_TRAIN, reference);
  if (status == TN_OK && reference[0] == '\0') memcpy(reference, root, PATH_MAX);
  return status;
}

static tn_status image_folder_path(const void *handle, const folder_source *f, int64_t file,
                                   char path[PATH_MAX]) {
  if (f->given.count == 0) return image_list_path(handle, &f->list, file, PATH_MAX, path);
  int n = snprintf(path, PATH_MAX, "%s", name_at(&f->given, file));
  return n < PATH_MAX ? TN_OK : tn_fail(handle, TN_EINVAL, NULL, "%s: the path is too long", path);
}

static tn_status image_folder_decode(const folder_source *f, const void *handle, tn_scratch *scratch,
                                     int64_t file, image_sink *sink) {
  char path[PATH_MAX];
  const uint8_t *bytes;
  size_t count;
  TN_TRY(image_folder_path(handle, f, file, path));
  TN_TRY(source_scan_file(handle, path, LARGEST_FILE, scratch, &bytes, &count));
  sink->handle = handle;
  sink->path = path;
  sink->most_pixels = f->options.max_pixels;
  sink->at_least = f->options.at_least;
  sink->ignores_orientation = f->options.orientation == ORIENTATION_IGNORE;
  return image_decode(sink, bytes, count);
}

/* Compares the size of a picture with those before it. One that is damaged is named when it is read. */
static tn_status image_folder_compare_size(folder_source *f, tn_scratch *scratch, int64_t file,
                                           tn_status *damage) {
  image_sink sink = {0};
  tn_status status = image_folder_decode(f, &f->env, scratch, file, &sink);
  if (status == TN_EINVAL) *damage = status;
  if (status != TN_OK) return status == TN_EINVAL ? TN_OK : status;
  if (f->height == 0) f->height = sink.height, f->width = sink.width;
  if (f->height != sink.height || f->width != sink.width) f->height = f->width = -1;
  return TN_OK;
}

/* If the first pictures of all classes, or all pictures that the user named, have one size, it is the size of
 * every picture, and the data need no transform that resizes them. A picture with another size is then an
 * error. So is damage of all of them. */
static tn_status image_folder_compare_sizes(folder_source *f) {
  tn_scratch scratch = {NULL, 0};
  tn_status status = TN_OK, damage = TN_OK;
  for (int64_t i = 0; status == TN_OK && i < f->given.count && f->height >= 0; i++)
    status = image_folder_compare_size(f, &scratch, i, &damage);
  for (int64_t k = 0; status == TN_OK && k < f->list.classes.count && f->height >= 0; k++)
    if (f->list.first[k] < f->list.first[k + 1])
      status = image_folder_compare_size(f, &scratch, f->list.first[k], &damage);
  tn_delete(&f->env, scratch.memory);
  return status == TN_OK && f->height == 0 ? damage : status;
}

static tn_status image_folder_find_size(folder_source *f) {
  const tn_ints *size = &f->options.size;
  if (size->n == 0) return image_folder_compare_sizes(f);
  if (size->n > 2)
    return tn_fail(&f->env, TN_EINVAL, "size", "size has %lld numbers, expected height and width",
                   (long long)size->n);
  f->height = size->v[0] > 0 ? size->v[0] : -1;
  f->width = size->v[size->n - 1] > 0 ? size->v[size->n - 1] : -1;
  return TN_OK;
}

static tn_status image_folder_make_fields(folder_source *f) {
  int64_t classes = f->list.classes.count;
  f->n_fields = f->given.count > 0 ? 1 : 2; /* files that the user named have no class */
  f->class_names = tn_new(&f->env, (size_t)(classes + 1) * sizeof(char *));
  if (f->class_names == NULL) return TN_ENOMEM;
  for (int64_t k = 0; k < classes; k++) f->class_names[k] = name_at(&f->list.classes, k);
  tn_type image = {TN_U8, 3, {f->channels, f->height, f->width}};
  f->fields[0] = (tn_field){sizeof(tn_field), f->field, image, TN_FIELD_INPUT, 0, NULL};
  f->fields[1] =
      (tn_field){sizeof(tn_field), "label", {TN_I32, 0, {0}}, TN_FIELD_TARGET, classes, f->class_names};
  return TN_OK;
}

static void folder_close(tn_env *env, void *source) {
  folder_source *f = source;
  image_list_free(env, &f->list);
  image_names_free(env, &f->given);
  tn_delete(env, f->class_names);
  tn_delete(env, f);
}

static folder_source *folder_new(tn_env *env, const void *opts) {
  folder_source *f = tn_new(env, sizeof(*f));
  if (f == NULL) return NULL;
  f->env = *env;
  f->options = *(const folder_options *)opts;
  f->field = "image";
  f->channels = 3;
  return f;
}

/* The size of the pictures and the fields; closes the source after a failure. */
static tn_status folder_finish_open(tn_env *env, folder_source *f, tn_status status, void **source) {
  if (status == TN_OK) status = image_folder_find_size(f);
  if (status == TN_OK) status = image_folder_make_fields(f);
  if (status == TN_OK)
    *source = f;
  else
    folder_close(env, f);
  return status;
}

/* Of a folder that is split, training has warned already. */
static void folder_warn_others(const folder_source *f, int32_t split) {
  const other_entries *others = &f->list.others;
  if (others->of_system > 0)
    tn_env_log(&f->env, TN_LOG_INFO, "%s: %lld hidden files and files of the system are skipped, such as %s",
               f->list.root, (long long)others->of_system, others->system_name);
  if (others->count == 0 || (f->options.split > 0 && split == TN_SPLIT_VALID)) return;
  const char *class = name_at(&f->list.classes, others->class);
  if (others->count == 1)
    tn_env_log(&f->env, TN_LOG_WARN, "%s/%s/%s: is no " TN_PICTURE_ENDINGS " file and is skipped",
               f->list.root, class, others->name);
  else
    tn_env_log(&f->env, TN_LOG_WARN,
               "%s: %lld entries of class folders are no " TN_PICTURE_ENDINGS
               " files and are skipped, such as "
               "%s/%s",
               f->list.root, (long long)others->count, class, others->name);
}

static tn_status folder_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  char root[PATH_MAX], reference[PATH_MAX];
  folder_source *f = folder_new(env, opts);
  if (f == NULL) return TN_ENOMEM;
  tn_status status = image_folder_find_part(&f->env, &f->options, split, root, reference);
  if (status == TN_OK) status = image_list_read(&f->env, root, reference, f->options.nested, &f->list);
  if (status == TN_OK) folder_warn_others(f, split);
  if (status == TN_OK && f->options.split > 0)
    image_list_keep_part(&f->list, f->options.split, split == TN_SPLIT_VALID);
  return folder_finish_open(env, f, status, source);
}

static tn_status folder_finish_files(tn_env *env, folder_source *f, const char *const *paths, int32_t n,
                                     void **source) {
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < n; i++)
    status = image_names_add(&f->env, 0, paths[i], &f->given);
  return folder_finish_open(env, f, status, source);
}

static tn_status folder_open_files(tn_env *env, const void *opts, const char *const *paths, int32_t n,
                                   void **source) {
  folder_source *f = folder_new(env, opts);
  return f != NULL ? folder_finish_files(env, f, paths, n, source) : TN_ENOMEM;
}

static tn_status folder_open_pictures(tn_env *env, const char *field, int32_t channels,
                                      const char *const *paths, int32_t n, void **source) {
  static const folder_options defaults = {.max_pixels = FOLDER_MOST_PIXELS};
  folder_source *f = folder_new(env, &defaults);
  if (f == NULL) return TN_ENOMEM;
  f->field = field;
  f->channels = channels;
  return folder_finish_files(env, f, paths, n, source);
}

static tn_status folder_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  char path[PATH_MAX];
  tn_status status = image_folder_path(env, source, index, path);
  if (status == TN_OK) snprintf(text, size, "%s", path);
  return status;
}

static tn_status folder_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  folder_source *f = source;
  description->count = f->given.count > 0 ? f->given.count : f->list.files.count;
  description->keep = 1;
  description->n_fields = f->n_fields;
  description->fields = f->fields;
  return TN_OK;
}

static tn_status folder_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  (void)env;
  *number = image_list_class(&((const folder_source *)source)->list, index);
  return TN_OK;
}

typedef struct target {
  const folder_source *source;
  tn_sample *sample;
  tn_type type;
  uint8_t *planes; /* of a picture that becomes grey; NULL: it is decoded into the field */
} target;

static tn_status image_folder_planes(image_sink *sink) {
  target *t = sink->context;
  const tn_type *described = &t->source->fields[0].type;
  tn_type type = {TN_U8, 3, {t->source->channels, sink->height, sink->width}};
  for (int d = 1; d < 3; d++) {
    if (described->dims[d] < 0 || described->dims[d] == type.dims[d]) continue;
    return tn_fail(
        t->sample, TN_EINVAL, "size",
        "%s: has %lld x %lld pixels, expected %lld x %lld like the others; set size = 0, and begin the "
        "transforms with resize([%lld, %lld])",
        sink->path, (long long)sink->width, (long long)sink->height, (long long)described->dims[2],
        (long long)described->dims[1], (long long)described->dims[1], (long long)described->dims[2]);
  }
  t->type = type;
  if (t->source->channels == 3)
    sink->to = tn_sample_field(t->sample, 0, &type);
  else
    sink->to = t->planes = tn_new(t->sample, 3 * (size_t)sink->height * (size_t)sink->width);
  return sink->to != NULL ? TN_OK : TN_ENOMEM;
}

/* The brightness of a color by ITU-R BT.601, in the whole numbers of Pillow's convert("L"). */
static tn_status image_folder_make_grey(const target *t) {
  size_t n = (size_t)t->type.dims[1] * (size_t)t->type.dims[2];
  const uint8_t *red = t->planes, *green = red + n, *blue = green + n;
  uint8_t *to = tn_sample_field(t->sample, 0, &t->type);
  if (to == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++)
    to[i] = (uint8_t)((19595u * red[i] + 38470u * green[i] + 7471u * blue[i] + 32768u) >> 16);
  return TN_OK;
}

static int image_folder_stopping(const image_sink *sink) {
  const target *t = sink->context;
  return tn_sample_stopping(t->sample);
}

static tn_status folder_read(tn_sample *s, void *source) {
  const folder_source *f = source;
  target t = {.source = f, .sample = s};
  image_sink sink = {.planes = image_folder_planes, .stopping = image_folder_stopping, .context = &t};
  int32_t *label = f->n_fields > 1 ? tn_sample_field(s, 1, NULL) : NULL;
  if (f->n_fields > 1 && label == NULL) return TN_ENOMEM;
  if (label != NULL) *label = (int32_t)image_list_class(&f->list, s->index);
  tn_status status = image_folder_decode(f, s, s->scratch, s->index, &sink);
  if (status == TN_OK && t.planes != NULL) status = image_folder_make_grey(&t);
  tn_delete(s, t.planes);
  return status;
}

const tn_source image_folder_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "image_folder",
                    "JPEG, PNG, WebP, TIFF and AVIF files in class folders", folder_options, options),
    .types = "image: u8[3, height, width], label: i32[]",
    .example = "source = image_folder\nfolder = photos",
    .open = folder_open,
    .close = folder_close,
    .describe = folder_describe,
    .read = folder_read,
    .open_files = folder_open_files,
    .open_pictures = folder_open_pictures,
    .name = folder_name,
    .class_of = folder_class_of,
};
