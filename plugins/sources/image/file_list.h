/* plugins/sources/image/file_list.h: lists the files of a folder of class folders. */
#pragma once

#include <limits.h>

#include "plugins/sources/sources.h"

/* Names in one block, which saves memory for folders of millions of files. */
typedef struct name_list {
  char *bytes; /* NUL-terminated names, contiguous */
  size_t used, size;
  size_t *start; /* the offset of each name in `bytes` */
  int64_t count, room;
} name_list;

static inline const char *name_at(const name_list *list, int64_t i) { return list->bytes + list->start[i]; }

/* Entries of folders that are not wanted. */
typedef struct other_entries {
  int64_t count;
  char name[NAME_MAX + 1]; /* of one of them */
  int64_t class;           /* and its class */
  int64_t of_system;       /* hidden files and those that systems leave in folders */
  char system_name[NAME_MAX + 1];
} other_entries;

typedef struct image_list {
  int32_t is_of_sounds; /* set in front of image_list_read: files are sounds, not pictures */
  char *root;           /* the folder of class folders */
  name_list classes;    /* sorted */
  name_list files;      /* class by class, sorted within each */
  int64_t *first;       /* by class: its first file; classes + 1 entries */
  other_entries others; /* of class folders */
} image_list;

/* Lists the folder `root`. The classes are the folders in `reference`: root itself, or the training part,
 * whose numbering validation shares; with `nested` all folders in it that have pictures, by their paths.
 * *list must be zero before, apart from is_of_sounds. The caller calls image_list_free, also after a failure.
 */
tn_status image_list_read(const tn_env *env, const char *root, const char *reference, int nested,
                          image_list *list);
void image_list_free(const tn_env *env, image_list *list);

/* Keeps a part of the files of each class, spread evenly over their order: `share` of them, at least one of
 * two or more, with `chosen`, and the others without. */
void image_list_keep_part(image_list *list, double share, int chosen);

/* Adds the path of a picture (or sound), or those of the pictures in a folder and the folders in it, sorted.
 * *list must be zero before the first call. The caller calls image_names_free, also after a failure. */
tn_status image_names_add(const tn_env *env, int32_t sounds, const char *path, name_list *list);
void image_names_free(const tn_env *env, name_list *list);

/* The class of a file. */
int64_t image_list_class(const image_list *list, int64_t file);
/* Writes ROOT/CLASS/FILE. */
tn_status image_list_path(const void *handle, const image_list *list, int64_t file, size_t size, char *path);
