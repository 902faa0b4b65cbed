/* What the tests of core/compile stand on: a context with the core's ops and made-up kernels of a
 * family "t" (kernels.c), and an allocator that counts and can fail. */
#ifndef TN_TESTS_COMPILE_FIXTURE_H
#define TN_TESTS_COMPILE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/compile/program.h"

typedef struct fixture {
  tn_env env;
  tn_error_record record;
  int64_t blocks; /* in use */
  int64_t left;   /* allocations that still succeed; -1: all */
  tn_registry *registry;
  struct tn_op_table *ops;
  tn_state_map *map;
  tn_target target;
} fixture;

/* With the kernels of kernels.h that are in `kernels`, NULL-ended. */
void fixture_open(fixture *f, const tn_item *const *kernels);
void fixture_close(fixture *f);

/* The families of the target, best first; at most four. */
void fixture_families(fixture *f, const char *const *families, int32_t n);

tn_graph *fixture_graph(fixture *f, const char *text);

/* The text after passes; the caller frees it. Failing is a failure of the test. */
typedef enum pass { ASSIGNED, SELECTED, LAID, RECOMPUTED, SCHEDULED, PLANNED } pass;
char *fixture_text(fixture *f, const char *graph, pass after);
/* The program of a graph; states that are not in the map yet are added. */
tn_program *fixture_program(fixture *f, const char *graph);
/* The error's text when compiling fails with `status`. */
const char *fixture_failure(fixture *f, const char *graph, tn_status status);

#define assert_after(after, f, graph, expected)                                                              \
  do {                                                                                                       \
    char *text_ = fixture_text(f, graph, after);                                                             \
    assert_string_equal(text_, expected);                                                                    \
    tn_release(&(f)->env, text_);                                                                            \
  } while (0)

#endif
