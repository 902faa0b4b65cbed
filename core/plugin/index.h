/* core/plugin/index.h: the files of a plugin folder, and the index, which lists their items so that lookup
 * loads only the files that it needs.
 *
 * A plugin folder holds shared objects (*.so), itself or in folders of its own, one level deep; in a
 * build tree each plugin has one. The index, `tenon.index`, lies in the folder:
 *
 *     tenon.index 1
 *     interface 0.2 ptr64 le asan=0
 *     file 1760000000123456789 81234 layers/tenon-layers.so
 *     layer linear
 *     kernel matmul_blocked cpu
 *
 * `file` has the time of the file's last change in nanoseconds, its size, and its path in the folder; a line
 * for each of its items follows: kind, name, and the family of a kernel. A file whose time or size differs is
 * loaded instead. A path that the scan of the folder has not found is ignored, so an index cannot lead out of
 * the folder. Refused files are not indexed, so a repaired file works without a new index. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/arena.h"
#include "core/base/text/text.h"
#include "core/base/vec.h"

#define TN_INDEX_NAME "tenon.index"

typedef struct tn_index_item {
  uint32_t kind;
  const char *name, *family; /* family "" unless it is a kernel */
} tn_index_item;

enum { TN_FILE_CLOSED = 0, TN_FILE_OPEN = 1, TN_FILE_REFUSED = 2 };

typedef struct tn_plugin_file {
  const char *path;     /* absolute */
  const char *relative; /* to its plugin folder; "" for a file that the user named */
  dev_t device;         /* with inode: the file's identity, however it is named */
  ino_t inode;
  int64_t changed_ns, bytes;
  bool indexed; /* items are known from the index */
  const tn_index_item *items;
  int32_t n_items;
  int32_t state;
  size_t first_entry, n_entries; /* OPEN: its part of the registry's entries */
  tn_status code;                /* REFUSED: code and text of the refusal */
  const char *refusal;
} tn_plugin_file;

typedef TN_VEC(tn_plugin_file) tn_plugin_files;

/* Appends the plugin files of a folder, sorted by relative path. Strings go to the arena. */
tn_status tn_folder_scan(const void *handle, tn_arena *arena, const char *folder, tn_plugin_files *files);

/* Sets device, inode, changed_ns and bytes by stat. */
tn_status tn_plugin_file_stat(const void *handle, tn_plugin_file *file);

/* Reads the folder's index and sets the items of those files from `first` on that are unchanged since. A
 * missing index is no error; a damaged one is a warning in the log. */
tn_status tn_index_read(const void *handle, tn_arena *arena, const char *folder, tn_plugin_files *files,
                        size_t first);

/* The index's head, and the block of one file. */
void tn_index_print_head(tn_text *text);
void tn_index_print_file(tn_text *text, const tn_plugin_file *file, const tn_index_item *items, int32_t n);
