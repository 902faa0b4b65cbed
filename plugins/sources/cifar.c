/* plugins/sources/cifar.c: the binary files of CIFAR-10 and CIFAR-100 (cs.toronto.edu/~kriz/cifar.html). A
 * record is one label, or a coarse and a fine one, and a picture of 3 x 32 x 32 bytes. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/sources/sources.h"

typedef struct cifar_options {
  const char *folder;
  int32_t labels;
} cifar_options;

enum { LABELS_FINE = 0, LABELS_COARSE = 1 };

static const tn_option options[] = {
    TN_OPT(cifar_options, folder, TN_OPT_PATH, NULL, NULL,
           "folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin, or of train.bin and test.bin"),
    TN_OPT(cifar_options, labels, TN_OPT_ENUM, "fine", "fine|coarse",
           "of CIFAR-100: the 100 classes, or the 20 groups of them"),
    TN_OPT_END};

enum { CIFAR_SIDE = 32, CIFAR_BYTES = 3 * CIFAR_SIDE * CIFAR_SIDE, CIFAR_PARTS = 5, CIFAR_CLASSES = 100 };
/* Of one file; those of the data have 30 and 150 MB. */
static const size_t cifar_largest = (size_t)1 << 31;

/* One file of records. */
typedef struct cifar_part {
  uint8_t *bytes;
  int64_t count;
} cifar_part;

typedef struct cifar {
  tn_env env; /* that of open, for messages */
  char root[PATH_MAX];
  cifar_part part[CIFAR_PARTS];
  int n_parts;
  int64_t count, record, label; /* bytes of a record, and the place of its label */
  int64_t classes;
  uint8_t *text; /* the names, one in a line */
  const char *names[CIFAR_CLASSES];
  tn_field fields[2];
} cifar;

static int cifar_has(const char *folder, const char *name, char path[PATH_MAX]) {
  int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
  return n > 0 && n < PATH_MAX && access(path, F_OK) == 0;
}

static tn_status cifar_check_labels(const cifar *x, const char *path, const cifar_part *p) {
  for (int64_t i = 0; i < p->count; i++) {
    int label = p->bytes[i * x->record + x->label];
    if (label >= x->classes)
      return tn_fail(&x->env, TN_EINVAL, "folder",
                     "%s: label %d of picture %lld is out of range, expected 0 to %lld", path, label,
                     (long long)i, (long long)x->classes - 1);
  }
  return TN_OK;
}

static tn_status cifar_read_part(cifar *x, const char *path) {
  cifar_part *p = &x->part[x->n_parts];
  size_t count = 0;
  TN_TRY(source_read_file(&x->env, path, cifar_largest, &p->bytes, &count));
  x->n_parts++;
  p->count = (int64_t)count / x->record;
  x->count += p->count;
  if (count > 0 && count % (size_t)x->record == 0) return cifar_check_labels(x, path, p);
  return tn_fail(&x->env, TN_EINVAL, "folder",
                 "%s: has %zu bytes, expected a multiple of %lld, the bytes of a record", path, count,
                 (long long)x->record);
}

/* Names of the classes, where their file is beside the data. */
static tn_status cifar_read_names(cifar *x, const char *file) {
  char path[PATH_MAX];
  size_t count;
  int64_t n = 0;
  if (!cifar_has(x->root, file, path)) return TN_OK;
  uint8_t *bytes = NULL;
  TN_TRY(source_read_file(&x->env, path, 1 << 16, &bytes, &count));
  x->text = tn_new(&x->env, count + 1);
  if (x->text != NULL) memcpy(x->text, bytes, count);
  tn_delete(&x->env, bytes);
  if (x->text == NULL) return TN_ENOMEM;
  char *rest = (char *)x->text, *line;
  while (n < x->classes && (line = strsep(&rest, "\r\n")) != NULL)
    if (line[0] != '\0') x->names[n++] = line;
  if (n == x->classes) x->fields[1].class_names = x->names;
  return TN_OK;
}

static tn_status cifar_open_100(cifar *x, const cifar_options *o, const char *path) {
  x->record = CIFAR_BYTES + 2;
  x->label = o->labels == LABELS_FINE;
  x->classes = o->labels == LABELS_FINE ? 100 : 20;
  TN_TRY(cifar_read_part(x, path));
  return cifar_read_names(x, o->labels == LABELS_FINE ? "fine_label_names.txt" : "coarse_label_names.txt");
}

static tn_status cifar_open_10(cifar *x, const cifar_options *o, int32_t split) {
  char path[PATH_MAX], name[32];
  if (o->labels == LABELS_COARSE)
    return tn_fail(&x->env, TN_EINVAL, "labels", "%s: has the files of CIFAR-10, which has no coarse labels",
                   x->root);
  x->record = CIFAR_BYTES + 1;
  x->classes = 10;
  for (int i = 1; i <= CIFAR_PARTS; i++) {
    snprintf(name, sizeof name, split == TN_SPLIT_VALID ? "test_batch.bin" : "data_batch_%d.bin", i);
    if (cifar_has(x->root, name, path)) TN_TRY(cifar_read_part(x, path));
    if (split == TN_SPLIT_VALID) break;
  }
  return cifar_read_names(x, "batches.meta.txt");
}

static tn_status cifar_open_files(cifar *x, const cifar_options *o, int32_t split) {
  char path[PATH_MAX];
  x->fields[1] = (tn_field){sizeof(tn_field), "label", {TN_I32, 0, {0}}, TN_FIELD_TARGET, 0, NULL};
  if (cifar_has(x->root, split == TN_SPLIT_VALID ? "test.bin" : "train.bin", path))
    TN_TRY(cifar_open_100(x, o, path));
  else
    TN_TRY(cifar_open_10(x, o, split));
  const tn_type image = {TN_U8, 3, {3, CIFAR_SIDE, CIFAR_SIDE}};
  x->fields[0] = (tn_field){sizeof(tn_field), "image", image, TN_FIELD_INPUT, 0, NULL};
  x->fields[1].classes = x->classes;
  if (x->n_parts > 0) return TN_OK;
  return tn_fail(&x->env, TN_EUNAVAILABLE, "folder", "%s: has neither %s (CIFAR-10) nor %s (CIFAR-100)",
                 x->root, split == TN_SPLIT_VALID ? "test_batch.bin" : "data_batch_1.bin",
                 split == TN_SPLIT_VALID ? "test.bin" : "train.bin");
}

static void cifar_close(tn_env *env, void *source) {
  cifar *x = source;
  for (int i = 0; i < CIFAR_PARTS; i++) tn_delete(env, x->part[i].bytes);
  tn_delete(env, x->text);
  tn_delete(env, x);
}

static tn_status cifar_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  const cifar_options *o = opts;
  cifar *x = tn_new(env, sizeof *x);
  if (x == NULL) return TN_ENOMEM;
  x->env = *env;
  snprintf(x->root, sizeof x->root, "%s", o->folder);
  tn_status status = cifar_open_files(x, o, split);
  if (status == TN_OK)
    *source = x;
  else
    cifar_close(env, x);
  return status;
}

static tn_status cifar_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  const cifar *x = source;
  description->count = x->count;
  description->n_fields = 2;
  description->fields = x->fields;
  return TN_OK;
}

static const uint8_t *cifar_record(const cifar *x, int64_t index) {
  const cifar_part *p = x->part;
  for (; index >= p->count; p++) index -= p->count;
  return p->bytes + index * x->record;
}

static tn_status cifar_read(tn_sample *s, void *source) {
  const cifar *x = source;
  uint8_t *image = tn_sample_field(s, 0, NULL);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  const uint8_t *record = cifar_record(x, s->index);
  *label = record[x->label];
  memcpy(image, record + x->record - CIFAR_BYTES, CIFAR_BYTES);
  return TN_OK;
}

static tn_status cifar_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  (void)env;
  const cifar *x = source;
  *number = cifar_record(x, index)[x->label];
  return TN_OK;
}

const tn_source cifar_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "cifar", "the binary files of CIFAR-10 and CIFAR-100",
                    cifar_options, options),
    .types = "image: u8[3, 32, 32], label: i32[]",
    .example = "source = cifar\nfolder = cifar-10-batches-bin",
    .open = cifar_open,
    .close = cifar_close,
    .describe = cifar_describe,
    .read = cifar_read,
    .class_of = cifar_class_of,
};
