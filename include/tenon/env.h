/* tenon/env.h: the head of every handle. Each handle that Tenon passes to a callback or to an application
 * begins with a tn_env: the table of host functions, and the error record. Errors need no global, so several
 * contexts live in one process.
 *
 * Errors. A call that fails returns a code and leaves one line of text in the handle that was passed: the
 * problem, its location, the value found, the value expected, and a remedy. Callers prepend context.
 * Recording an error allocates nothing. Threads: a handle is used by one thread at a time. */
#ifndef TENON_ENV_H
#define TENON_ENV_H

#include "tenon/base.h"

TN_BEGIN_C

typedef struct tn_api tn_api;                   /* the table of host functions: tenon/api.h */
typedef struct tn_error_record tn_error_record; /* private: error text, allocator and log of a handle */

typedef struct tn_env {
  const tn_api *api;
  tn_error_record *record;
} tn_env;

enum { TN_LOG_ERROR = 0, TN_LOG_WARN = 1, TN_LOG_INFO = 2, TN_LOG_DEBUG = 3 };

/* Text of the last failure on this handle, one line without newline; "" if there was no failure. Valid until
 * the next call on the handle. `handle` is any Tenon handle. */
TN_EXPORT const char *tn_error_text(const void *handle);

/* Short English name of a code ("invalid", "out of memory"). */
TN_EXPORT const char *tn_status_name(tn_status status);

/* Returns early with the status of a failed call. Use it only where nothing has to be released. */
#define TN_TRY(call)                                                                                         \
  do {                                                                                                       \
    tn_status tn_try_status_ = (call);                                                                       \
    if (tn_try_status_ != TN_OK) return tn_try_status_;                                                      \
  } while (0)

TN_END_C
#endif
