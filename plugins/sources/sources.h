/* plugins/sources/sources.h: the sources of this plugin, and functions that read files. */
#pragma once

#include "tenon/plugin/source.h"

/* Opens a file for reading; of folders, FIFOs and devices it fails. The caller closes *fd. Messages name the
 * path. */
tn_status source_open_file(const void *handle, const char *path, int *fd);
/* Reads a file of at most `limit` bytes. The caller frees *bytes with tn_delete. Messages name the path. */
tn_status source_read_file(const void *handle, const char *path, size_t limit, uint8_t **bytes,
                           size_t *count);
/* The same into scratch memory, which is valid until its next use. */
tn_status source_scan_file(const void *handle, const char *path, size_t limit, tn_scratch *scratch,
                           const uint8_t **bytes, size_t *count);

/* Whether an optional path is set. */
static inline int source_has_path(const char *path) { return path != NULL && path[0] != '\0'; }
