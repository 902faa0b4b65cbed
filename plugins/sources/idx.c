/* plugins/sources/idx.c: the IDX files of MNIST and similar data. The format (yann.lecun.com/exdb/mnist):
 * two zero bytes, a code of the element type, the number of dimensions, each dimension as a big-endian
 * 32-bit number, then the elements. Files may be gzipped. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "plugins/sources/sources.h"

typedef struct idx_options {
  const char *folder, *images, *labels;
  int64_t classes;
} idx_options;

static const tn_option options[] = {
    TN_OPT(
        idx_options, folder, TN_OPT_PATH, "", NULL,
        "folder of train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- pair, or these with .gz"),
    TN_OPT(idx_options, images, TN_OPT_PATH, "", NULL, "file of images; replaces that of folder"),
    TN_OPT(idx_options, labels, TN_OPT_PATH, "", NULL, "file of labels; replaces that of folder"),
    TN_OPT(idx_options, classes, TN_OPT_INT, "0", "[0, 2147483647]",
           "number of classes; 0: the greatest label + 1"),
    TN_OPT_END};

enum { IDX_U8 = 0x08, IDX_I32 = 0x0C, MAX_DIMS = 4 };
/* Deflate compresses at most 1032 bytes into one (zlib's technical notes), which bounds the size that the
 * header of a small file may declare. */
enum { MAX_DEFLATE_RATIO = 1032 };

/* The content of a file. */
typedef struct idx_array {
  int type, rank;
  int64_t dims[MAX_DIMS];
  uint8_t *bytes;
} idx_array;

typedef struct idx {
  tn_env env; /* that of open, for messages */
  idx_array images, labels;
  int64_t image_bytes;
  tn_field fields[2];
} idx;

static tn_status gz_error(const tn_env *env, const char *path, gzFile file) {
  int code;
  const char *text = gzerror(file, &code);
  if (code == Z_ERRNO) return tn_fail(env, TN_EIO, NULL, "%s: cannot read: %s", path, strerror(errno));
  if (code == Z_MEM_ERROR) return tn_fail(env, TN_ENOMEM, NULL, "%s: out of memory while unpacking", path);
  return tn_fail(env, TN_EINVAL, NULL, "%s: damaged gzip data: %s", path, text);
}

/* Reads exactly `count` bytes; `what` names them in the message of a file that is too short. */
static tn_status read_exactly(const tn_env *env, const char *path, gzFile file, void *to, uint64_t count,
                              const char *what) {
  for (uint64_t done = 0; done < count;) {
    uint64_t left = count - done;
    int n = gzread(file, (uint8_t *)to + done, left > INT_MAX ? INT_MAX : (unsigned)left);
    if (n < 0) return gz_error(env, path, file);
    if (n == 0)
      return tn_fail(env, TN_EINVAL, NULL, "%s: ends after %llu of %llu bytes of %s", path,
                     (unsigned long long)done, (unsigned long long)count, what);
    done += (uint64_t)n;
  }
  return TN_OK;
}

static tn_status idx_read_header(const tn_env *env, const char *path, gzFile file, idx_array *a) {
  uint8_t head[4], size[4];
  tn_status status = read_exactly(env, path, file, head, sizeof(head), "the header");
  if (status != TN_OK) return status;
  if (head[0] != 0 || head[1] != 0)
    return tn_fail(env, TN_EINVAL, NULL, "%s: begins with %02x %02x, expected 00 00: not an IDX file", path,
                   head[0], head[1]);
  if (head[2] != IDX_U8 && head[2] != IDX_I32)
    return tn_fail(env, TN_EINVAL, NULL, "%s: has elements of type 0x%02x, expected 0x08 (u8) or 0x0c (i32)",
                   path, head[2]);
  if (head[3] < 1 || head[3] > MAX_DIMS)
    return tn_fail(env, TN_EINVAL, NULL, "%s: has %d dimensions, expected 1 to %d", path, head[3], MAX_DIMS);
  a->type = head[2];
  a->rank = head[3];
  for (int d = 0; d < a->rank; d++) {
    status = read_exactly(env, path, file, size, sizeof(size), "the header");
    if (status != TN_OK) return status;
    a->dims[d] = (int64_t)size[0] << 24 | (int64_t)size[1] << 16 | (int64_t)size[2] << 8 | size[3];
  }
  return TN_OK;
}

static tn_status read_elements(const tn_env *env, const char *path, gzFile file, idx_array *a) {
  struct stat info;
  uint64_t bytes = a->type == IDX_I32 ? 4 : 1;
  if (stat(path, &info) != 0)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot examine: %s", path, strerror(errno));
  for (int d = 0; d < a->rank; d++)
    if (__builtin_mul_overflow(bytes, (uint64_t)a->dims[d], &bytes) ||
        bytes / MAX_DEFLATE_RATIO > (uint64_t)info.st_size)
      return tn_fail(env, TN_EINVAL, NULL,
                     "%s: its header declares more elements than a file of %lld bytes can hold", path,
                     (long long)info.st_size);
  a->bytes = tn_new(env, (size_t)bytes);
  if (a->bytes == NULL) return TN_ENOMEM;
  tn_status status = read_exactly(env, path, file, a->bytes, bytes, "elements");
  uint8_t more;
  if (status == TN_OK && gzread(file, &more, 1) == 1)
    return tn_fail(env, TN_EINVAL, NULL, "%s: has more than the %llu bytes that its header declares", path,
                   (unsigned long long)bytes);
  return status;
}

/* zlib reads uncompressed files, too. */
static tn_status read_array(const tn_env *env, const char *path, idx_array *a) {
  int fd;
  tn_status opened = source_open_file(env, path, &fd);
  if (opened != TN_OK) return opened;
  gzFile file = gzdopen(fd, "rb");
  if (file == NULL) {
    close(fd);
    return TN_ENOMEM;
  }
  gzbuffer(file, 1 << 17);
  tn_status status = idx_read_header(env, path, file, a);
  if (status == TN_OK) status = read_elements(env, path, file, a);
  gzclose(file);
  return status;
}

/* The file of the option, or the first usual name that exists in the folder. */
static tn_status find_file(const tn_env *env, const char *option, const char *given, const char *folder,
                           int32_t split, const char *what, char path[PATH_MAX]) {
  const char *part = split == TN_SPLIT_TRAIN ? "train" : "t10k";
  if (source_has_path(given)) return snprintf(path, PATH_MAX, "%s", given), TN_OK;
  if (!source_has_path(folder))
    return tn_fail(env, TN_EINVAL, option,
                   "%s: neither %s nor folder is set, expected the file or the folder of the %s", option,
                   option, option);
  /* Some copies of MNIST have a dot instead of a hyphen: train-images.idx3-ubyte. */
  for (int form = 0; form < 4; form++) {
    snprintf(path, PATH_MAX, "%s/%s-%s%c%s-ubyte%s", folder, part, option, form < 2 ? '-' : '.', what,
             form & 1 ? ".gz" : "");
    if (access(path, F_OK) == 0) return TN_OK;
  }
  return tn_fail(env, TN_EUNAVAILABLE, "folder", "%s: has no %s-%s-%s-ubyte, with or without .gz", folder,
                 part, option, what);
}

static tn_status read_both(idx *x, const idx_options *o, int32_t split) {
  char path[PATH_MAX];
  if (source_has_path(o->folder) && source_has_path(o->images) && source_has_path(o->labels))
    return tn_fail(&x->env, TN_EINVAL, "folder",
                   "folder has no effect beside images and labels; leave it out");
  tn_status status = find_file(&x->env, "images", o->images, o->folder, split, "idx3", path);
  if (status == TN_OK) status = read_array(&x->env, path, &x->images);
  if (status != TN_OK) return status;
  if (x->images.type != IDX_U8 || x->images.rank < 3)
    return tn_fail(&x->env, TN_EINVAL, "images",
                   "%s: is not a file of images, expected u8 elements in 3 or 4 dimensions", path);
  status = find_file(&x->env, "labels", o->labels, o->folder, split, "idx1", path);
  if (status == TN_OK) status = read_array(&x->env, path, &x->labels);
  if (status != TN_OK) return status;
  if (x->labels.rank != 1)
    return tn_fail(&x->env, TN_EINVAL, "labels", "%s: is not a file of labels, expected 1 dimension", path);
  if (x->labels.dims[0] != x->images.dims[0])
    return tn_fail(&x->env, TN_EINVAL, "labels", "%s: has %lld labels for %lld images", path,
                   (long long)x->labels.dims[0], (long long)x->images.dims[0]);
  return TN_OK;
}

static int32_t label_at(const idx *x, int64_t i) {
  const uint8_t *b = x->labels.bytes;
  if (x->labels.type == IDX_U8) return b[i];
  b += 4 * i;
  return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
}

static tn_status count_classes(idx *x, int64_t given, int64_t *classes) {
  *classes = given;
  for (int64_t i = 0; i < x->labels.dims[0]; i++) {
    int32_t label = label_at(x, i);
    if (label < 0 || (given > 0 && label >= given))
      return tn_fail(&x->env, TN_EINVAL, "classes",
                     "label %d of image %lld is out of range, expected 0 to %lld", label, (long long)i,
                     (long long)(given > 0 ? given - 1 : INT32_MAX));
    if (given == 0 && label >= *classes) *classes = (int64_t)label + 1;
  }
  return TN_OK;
}

static void idx_make_fields(idx *x, int64_t classes) {
  const idx_array *a = &x->images;
  tn_type image = {TN_U8, 3, {1, a->dims[1], a->dims[2]}};
  if (a->rank == 4) image = (tn_type){TN_U8, 3, {a->dims[1], a->dims[2], a->dims[3]}};
  x->image_bytes = tn_type_count(&image);
  x->fields[0] = (tn_field){sizeof(tn_field), "image", image, TN_FIELD_INPUT, 0, NULL};
  x->fields[1] = (tn_field){sizeof(tn_field), "label", {TN_I32, 0, {0}}, TN_FIELD_TARGET, classes, NULL};
}

static void idx_close(tn_env *env, void *source) {
  idx *x = source;
  tn_delete(env, x->images.bytes);
  tn_delete(env, x->labels.bytes);
  tn_delete(env, x);
}

static tn_status idx_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  const idx_options *o = opts;
  int64_t classes = 0;
  idx *x = tn_new(env, sizeof(*x));
  if (x == NULL) return TN_ENOMEM;
  x->env = *env;
  tn_status status = read_both(x, o, split);
  if (status == TN_OK) status = count_classes(x, o->classes, &classes);
  if (status == TN_OK) {
    idx_make_fields(x, classes);
    *source = x;
  } else {
    idx_close(env, x);
  }
  return status;
}

static tn_status idx_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  idx *x = source;
  description->count = x->images.dims[0];
  description->n_fields = 2;
  description->fields = x->fields;
  return TN_OK;
}

static tn_status idx_read(tn_sample *s, void *source) {
  const idx *x = source;
  uint8_t *image = tn_sample_field(s, 0, NULL);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  memcpy(image, x->images.bytes + s->index * x->image_bytes, (size_t)x->image_bytes);
  *label = label_at(x, s->index);
  return TN_OK;
}

static tn_status idx_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  (void)env;
  *number = label_at(source, index);
  return TN_OK;
}

const tn_source idx_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "idx", "files in the format of MNIST, gzipped or not", idx_options,
                    options),
    .types = "image: u8[1, height, width], label: i32[]",
    .example = "source = idx\nfolder = mnist",
    .open = idx_open,
    .close = idx_close,
    .describe = idx_describe,
    .read = idx_read,
    .class_of = idx_class_of,
};
