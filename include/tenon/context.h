/* tenon/context.h: the root object of an application: allocator, log, plugins. A process may have several
 * contexts, which share nothing. A context is used by one thread at a time.
 *
 * After fork() the child may use the contexts and runs of the parent, but no device or session that the
 * parent has opened: their threads are not in the child. Calls about them fail with TN_EUNAVAILABLE, and
 * closing them frees no memory of the device. The child opens its own. Fork while no other thread is in a
 * call of Tenon. */
#ifndef TENON_CONTEXT_H
#define TENON_CONTEXT_H

#include "tenon/env.h"

TN_BEGIN_C

typedef struct tn_context tn_context; /* begins with a tn_env */

typedef struct tn_context_options {
  uint32_t struct_size;
  /* Allocator of all host memory; NULL: malloc. realloc(user, NULL, n) allocates; n = 0 frees `block` and
   * returns NULL. Called from any thread. */
  void *(*realloc)(void *user, void *block, size_t bytes);
  void *realloc_user;
  /* Called with each log line up to log_level (TN_LOG_...), without newline; NULL: lines are dropped. Called
   * from any thread. */
  void (*log)(void *user, int32_t level, const char *line);
  void *log_user;
  int32_t log_level;
  const char *plugin_folder; /* NULL: that of the installation or build tree of this library; "": no folder */
} tn_context_options;

/* options may be NULL. On failure *context holds the text of the failure, and the caller closes it; it is
 * NULL where there was no memory for it. */
TN_EXPORT tn_status tn_context_open(const tn_context_options *options, tn_context **context);

/* After the close of every run, session and device of the context; accepts NULL. Returns 0, or 1 where a
 * thread of a failed run may never end (tn_run_train): then the context stays allocated, and the program has
 * to end by _exit, since exit handlers of libraries, such as CUDA's and NCCL's, must not run beside that
 * thread. */
TN_EXPORT int32_t tn_context_close(tn_context *context);

/* Loads a plugin file, as `[plugins] load` and `--plugin` do: a path, or the name of a file in a plugin
 * folder ("cuda" for tenon-cuda.so). A file that is loaded already changes nothing. TN_EUNAVAILABLE: no such
 * file, or it lacks a library; TN_EABI: built for another interface. The file stays loaded for the life of
 * the process. */
TN_EXPORT tn_status tn_context_load(tn_context *context, const char *path);

/* Writes the index of a plugin folder, for installers. With an index, a run loads only the files that it
 * needs. A file that is newer than the index, or missing from it, is loaded whenever items are looked up. */
TN_EXPORT tn_status tn_context_write_index(tn_context *context, const char *folder);

/* Frees a text that a function of this interface has made (every `char **` result: JSON, INI text, graph
 * text). `handle` is the handle that was given to that function, or any other of its context. Accepts NULL
 * for the text. */
TN_EXPORT void tn_string_free(const void *handle, char *text);

/* The version of the library, "1.2.3". Static. */
TN_EXPORT const char *tn_version(void);

/* Makes a text safe to show on a terminal, in place and with the same length: names of files, tensors and
 * classes in results may be another person's. Control characters become blanks. Those of UTF-8 that terminals
 * act on (U+0080 to U+009F, and those that set the direction of the text) become question marks, and bytes
 * that are not UTF-8. Any thread. Accepts NULL. */
TN_EXPORT void tn_text_make_plain(char *text);

TN_END_C
#endif
