/* tests/unit/graph/rig.h: a context with small ops, an empty graph and a builder; an allocator that counts
 * and can be made to fail. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/graph/graph.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

typedef struct rig {
  tn_env env;
  tn_error_record record;
  long blocks; /* allocated and not released */
  long left;   /* requests that still succeed; -1: all */
  tn_registry *registry;
  struct tn_op_table *ops;
  tn_graph *graph;
  tn_builder *builder;
  tn_build *b;
} rig;

void rig_init(rig *r);   /* asserts */
void rig_finish(rig *r); /* also asserts that all memory is released */

/* The same without assertions, for allocators that fail. */
void rig_start(rig *r, long left);
tn_status rig_open(rig *r);
void rig_close(rig *r);

/* From "f64[2, 3]". */
tn_type type_of(int32_t dtype, int32_t rank, const int64_t *dims);
#define TYPE(dtype, ...)                                                                                     \
  type_of(dtype, (int32_t)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1,                       \
          (const int64_t[]){0, __VA_ARGS__} + 1)
tn_type scalar_of(int32_t dtype);

/* A parameter; outside of frames its path is its name. */
tn_val param(rig *r, const char *name, tn_type type);

void assert_ok(const rig *r, tn_status status);
void assert_error(const rig *r, tn_status status, tn_status want, const char *text);
void assert_stuck(rig *r, const char *text); /* the builder's exact error */
void assert_verified(const rig *r, const tn_graph *graph);
void assert_prints(const rig *r, const tn_graph *graph, const char *text);
tn_graph *parsed(rig *r, const char *text); /* the caller's */

/* ---- ops that only tests have ----
 *   sincos (x:T) -> (s:T, c:T)        two results
 *   square (x:T) -> (y:T)             composite without a rule
 *   fourth (x:T) -> (y:T)             composite of composites
 *   parabola (x:T; a) -> (y:T)        a formula, a x^2 + x
 *   products (x:T, y:T, z:T) -> (q:T, r:T)  a formula with a gradient, x y and x y z
 *   endless (x:T) -> (y:T)            decomposes into itself
 *   halves (x:T) -> (y:T, sum:f64)    types by decomposition; refuses 6 elements, yields no sum of 8
 *   bottomless (x:T) -> (y:T)         types by a decomposition into itself
 *   opaque (x:T) -> (y:T)             neither rule nor decomposition
 *   crooked (x:T; fault) -> (y:T)     a wrong decomposition, and a wrong gradient
 *   fuse (x:T, w?:T, y:T) -> (z:T)    an optional operand in the middle
 *   total (xs*:T) -> (y:T)            any number of operands
 *   noise (iteration:i64; dims, stream) -> (y:f64)
 *   report (x) -> ()                  an effect
 *   tagged (x:T; ...) -> (y:T)        an attribute of every type */
typedef struct tagged_attributes {
  int32_t flag, mode, kind;
  int64_t whole, size;
  double real, time;
  const char *text, *init;
  tn_ints ints;
  tn_floats floats;
} tagged_attributes;

extern const tn_plugin rig_plugin;
