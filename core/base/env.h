/* core/base/env.h: errors, memory and log of a handle, as the core uses them. Public view: tenon/env.h. */
#pragma once

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/thread_state.h"
#include "tenon/api.h"
#include "tenon/env.h"

/* The application's allocation functions; context is passed through, so there is no global allocator.
 * realloc(NULL) allocates, bytes 0 frees and returns NULL. */
typedef struct tn_allocator {
  void *context;
  void *(*realloc)(void *context, void *block, size_t bytes);
} tn_allocator;

typedef struct tn_log_sink {
  void *context;
  void (*write)(void *context, int32_t level, const char *line);
  int32_t level; /* lines above this level are dropped */
} tn_log_sink;

/* The error, allocator and log sink of an env. One thread at a time uses a record; several records may
 * share allocator and sink. */
enum { TN_ERROR_TEXT = 6144 };
struct tn_error_record {
  tn_allocator allocator;
  tn_log_sink sink;
  const atomic_int *stop; /* becomes other than 0 when the work is to end; NULL: never */
  const char *learnt;     /* for tn_env_learnt, or NULL; tn_error_record_init does not copy it */
  int32_t shards;         /* for tn_env_shards; tn_error_record_init does not copy it; 0: one */
  const struct tn_part_settings *parts; /* of sources that join others (core/plugin/parts.h); NULL: none */
  int32_t parts_open;                   /* how deep tn_part_open calls itself */
  tn_status code;
  char option[64];          /* the option that a plugin named, or "" */
  char text[TN_ERROR_TEXT]; /* of one line, or of several by tn_fail_lines */
};

/* Initializes *env and *record with the function table, allocator, log sink, request to stop and parts of
 * `like`; the table, the sink's context, the request and the parts must outlive them. */
void tn_error_record_init(tn_env *env, tn_error_record *record, const tn_env *like);
/* Initializes the first env: `api` is its table of host functions (NULL: the env is not passed to
 * plugins), memory comes from malloc, and log lines are dropped. */
void tn_error_record_init_root(tn_env *env, tn_error_record *record, const tn_api *api);

/* Records code and text and returns code. `handle` points to any struct that begins with a tn_env.
 * tn_failf is for the core; plugins use tn_fail of tenon/api.h, which calls tn_failv. */
tn_status tn_failf(const void *handle, tn_status code, const char *format, ...) TN_PRINTF(3, 4);
tn_status tn_failv(const void *handle, tn_status code, const char *option, const char *format, va_list args);

/* Records several texts, separated by line ends, and returns code: the first `most` of them that have room,
 * and the number of the others. */
tn_status tn_fail_lines(const void *handle, tn_status code, const char *const *lines, int32_t n,
                        int32_t most);

/* Puts "context: " in front of the text and returns status, so that `return tn_wrap(...)` works. */
tn_status tn_wrap(const void *handle, tn_status status, const char *format, ...) TN_PRINTF(3, 4);

/* Moves code, option and text from one handle's record to another's. Returns the code. */
tn_status tn_error_move(const void *to, const void *from);

void tn_error_clear(const void *handle);
/* Puts "OPTION: " in front of a plugin's text that does not name the option that it blames. */
void tn_error_name_option(const void *handle);
/* "failed without a message: invalid": the text of a failure whose callback gave none. Static. */
const char *tn_status_unsaid(tn_status status);

/* Whether the work of a handle was asked to end, as by tn_run_stop. Everything that waits or works for longer
 * than a moment before the first step looks at it, at least every half second; behind that, the loop of the
 * training does, which saves. Any thread. */
bool tn_stop_asked(const void *handle);
/* TN_ESTOPPED where it was. */
tn_status tn_check_stop(const void *handle);

void tn_logf(const void *handle, int32_t level, const char *format, ...) TN_PRINTF(3, 4);

/* tn_alloc returns zeroed memory, or NULL with TN_ENOMEM recorded. tn_resize keeps the old block on
 * failure and does not zero added memory. tn_release accepts NULL. */
void *tn_alloc(const void *handle, size_t bytes);
void *tn_resize(const void *handle, void *block, size_t bytes);
void tn_release(const void *handle, void *block);
char *tn_strdup(const void *handle, const char *text);
char *tn_strndup(const void *handle, const char *text, size_t length);

/* a*b and a+b in size_t; on overflow SIZE_MAX, which no allocator grants. */
size_t tn_size_mul(size_t a, size_t b);
size_t tn_size_add(size_t a, size_t b);

/* Reads a struct of options that begins with struct_size and that an application compiled with an older
 * header may have made shorter: *full, of `size` bytes, gets zeros for the members that it lacks. `given`
 * NULL: all are zero. TN_EINVAL: struct_size does not hold `least` bytes, the end of the first member, so it
 * was not set. */
tn_status tn_read_struct(const void *handle, const char *name, const void *given, size_t least, void *full,
                         size_t size);
#define TN_READ_STRUCT(handle, type, first, given, full)                                                     \
  tn_read_struct(handle, #type, given, offsetof(type, first) + sizeof((full)->first), full, sizeof *(full))

/* The beginning of a public function: without a handle there is nowhere to say more than TN_EINVAL. An
 * earlier error of the handle is over. To its end the thread has the default state. */
#define TN_ENTER(handle)                                                                                     \
  if ((handle) == NULL) return TN_EINVAL;                                                                    \
  tn_error_clear(handle);                                                                                    \
  TN_THREAD_STATE
/* TN_EINVAL for a pointer that a public function needs; `name` is that of the header. */
#define TN_NEED(handle, pointer, name)                                                                       \
  do {                                                                                                       \
    if ((pointer) == NULL) return tn_failf(handle, TN_EINVAL, "%s: %s is NULL", __func__, name);             \
  } while (0)
