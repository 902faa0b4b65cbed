/* tenon/context.h: the root object of an application: allocator, log, plugins. Any number of
 * contexts live side by side; they share nothing. A context is used by one thread at a time. */
#ifndef TENON_CONTEXT_H
#define TENON_CONTEXT_H

#include "tenon/env.h"

TN_BEGIN_C

typedef struct tn_context tn_context; /* begins with a tn_env */

typedef struct tn_context_options {
  uint32_t struct_size;
  /* Memory for everything on the host; NULL: malloc. realloc(NULL) allocates, 0 bytes frees and
   * returns NULL. Called from any thread. */
  void *(*realloc)(void *user, void *block, size_t bytes);
  void *realloc_user;
  /* Log lines up to log_level, without newline; NULL: none. Called from any thread. */
  void (*log)(void *user, int32_t level, const char *line);
  void *log_user;
  int32_t log_level;
  const char *plugin_folder; /* NULL: the installed one, or the build tree's; "": none */
} tn_context_options;

/* options may be NULL. On failure *context is NULL unless memory for it could be had, in which case
 * it holds the explanation and must still be closed. */
TN_EXPORT tn_status tn_context_open(const tn_context_options *options, tn_context **context);
TN_EXPORT void tn_context_close(tn_context *context);

/* Opens a plugin file; what `[plugins] load` and `--plugin` do. */
TN_EXPORT tn_status tn_context_load(tn_context *context, const char *path);

/* Writes the index of a plugin folder, which lets a run open only the files that it needs; for whoever
 * puts plugins there. A file that the index does not describe as it is still works: it is opened. */
TN_EXPORT tn_status tn_context_write_index(tn_context *context, const char *folder);

/* Frees a text that a function of this interface has made (every `char **` result: JSON, INI text, graph
 * text). `handle` is the handle that was given to that function, or any other of its context. Accepts NULL
 * for the text. */
TN_EXPORT void tn_string_free(const void *handle, char *text);

/* The version of the library, "1.2.3". Static. */
TN_EXPORT const char *tn_version(void);

TN_END_C
#endif
