/* The fixture of the tests of core/compile: a context with the core's ops and test kernels of a family "t"
 * (kernels.c), and an allocator that counts and can fail. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/compile/pipeline.h"

typedef struct fixture {
  tn_env env;
  tn_error_record record;
  int64_t blocks; /* in use */
  int64_t left;   /* allocations that will succeed; -1: all */
  tn_registry *registry;
  struct tn_op_table *ops;
  tn_state_map *map;
  tn_target target;
} fixture;

/* `kernels`: of kernels.h or the test, ended by NULL. */
void fixture_open(fixture *f, const tn_item *const *kernels);
void fixture_close(fixture *f);
/* The same with the kernels as arguments. */
#define FIXTURE_OPEN(f, ...)                                                                                 \
  do {                                                                                                       \
    static const tn_item *const kernels_[] = {__VA_ARGS__, NULL};                                            \
    fixture_open(f, kernels_);                                                                               \
  } while (0)

/* The families of the target, best first; at most four. */
void fixture_families(fixture *f, const char *const *families, int32_t n);

tn_graph *fixture_graph(fixture *f, const char *text);
/* The cover of a graph after pass `select`. A failure fails the test. */
tn_cover *fixture_cover(fixture *f, const char *text);

/* The text form after a pass, which the caller frees. A failed compilation fails the test. KEPT is the pass
 * `constants` of a program that runs often; for the others the program runs once. */
typedef enum pass {
  ASSIGNED,
  SELECTED,
  LAID_OUT,
  RECOMPUTED,
  KEPT,
  JOINED,
  REMATERIALIZED,
  SCHEDULED,
  PLANNED
} pass;
char *fixture_text(fixture *f, const char *graph, pass after);
/* Compiles a graph. Its states are added to the map. */
tn_program *fixture_program(fixture *f, const char *graph);
/* The same for a program that runs often. */
tn_program *fixture_repeated_program(fixture *f, const char *graph);
/* The error text of a compilation that must fail with `status`. */
const char *fixture_failure(fixture *f, const char *graph, tn_status status);

#define assert_after(after, f, graph, expected)                                                              \
  do {                                                                                                       \
    char *text_ = fixture_text(f, graph, after);                                                             \
    assert_string_equal(text_, expected);                                                                    \
    tn_release(&(f)->env, text_);                                                                            \
  } while (0)

/* Why a kernel was not taken for a group; NULL: it was not rejected. */
const char *fixture_reason(const tn_group *group, const char *kernel);

/* The product of a row and a matrix. */
#define AXW                                                                                                  \
  "a: f32[4, 8] = input(name=a)\n"                                                                           \
  "w: f32[8, 8] = input(name=w)\n"
