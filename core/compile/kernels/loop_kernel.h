/* core/compile/kernels/loop_kernel.h: the kernel of loops (core/graph/loop), which is part of the host and
 * not of a backend. Every catalog contains it, as a kernel of the device's family. It compiles the body to a
 * program, whose launches the executor repeats for each step (core/exec/loop.c): constants of the body are
 * states of that program, its other operands are inputs. */
#pragma once

#include "core/base/vec.h"
#include "core/compile/kernels/target.h"
#include "core/compile/memory/location.h"
#include "core/graph/loop/loop.h"
#include "core/plugin/registry.h"
#include "tenon/plugin/kernel.h"

extern const tn_kernel tn_loop_kernel;
extern const tn_entry tn_loop_entry;

static inline bool tn_kernel_is_loop(const tn_kernel *kernel) { return kernel == &tn_loop_kernel; }

/* A compiled body. */
typedef struct tn_loop_body {
  const char *text, *family; /* the body, and the first family of its target */
  struct tn_program *program;
  struct tn_state_map *constants; /* a region for each of them, in their order */
  int64_t arena_bytes, constant_bytes, folded_bytes, prepared_bytes;
  int32_t launches;                 /* of a step */
  int32_t n_inplace, (*inplace)[2]; /* as of a variant */
  double step_s;                    /* predicted */
  double start_s;                   /* of the launches in front of the first step */
  bool deterministic, capturable;
  const bool *in_place; /* per state: its next value is written over it */
} tn_loop_body;

/* The bodies of a cover's loops, each compiled when it is first asked for. */
typedef struct tn_loop_bodies {
  tn_env *env;
  tn_arena arena;
  tn_registry *registry;
  struct tn_op_table *ops;
  tn_target fallback; /* of the cover's target, if it has one: with these bodies */
  TN_VEC(tn_loop_body *) list;
  tn_status (*compile)(struct tn_loop_bodies *bodies, const tn_target *target, const tn_loop_attributes *a,
                       tn_loop_body *body);
  void (*free)(tn_loop_body *body); /* what `compile` has made */
} tn_loop_bodies;

void tn_loop_bodies_destroy(tn_loop_bodies *bodies); /* accepts NULL */

/* The body for a target, whose `loops` has it. */
tn_status tn_loop_bodies_find(const tn_target *target, const tn_loop_attributes *attributes,
                              const tn_loop_body **body);

/* Whether a state of a loop has no memory but that of its result. */
static inline bool tn_loop_is_in_place(const tn_loop_body *body, const tn_loop_attributes *attributes,
                                       int64_t state) {
  return state >= attributes->stacked && body->in_place[state];
}

/* loop_in_place.c */
/* The number of an input or output of a body, which its name ends in: "x3", "next0". */
int32_t tn_loop_binding_number(const tn_binding *binding);
/* Whether the launches of the body may write the next value of a state over the value before the step. */
bool tn_loop_state_is_in_place(const struct tn_program *program, const tn_loop_attributes *attributes,
                               int64_t state);

/* The workspace of a loop: the arena, the constants and the folded values of the body's program, and two
 * buffers for each state that is neither stacked nor in place. */
typedef struct tn_loop_areas {
  int64_t constants, folded, states; /* offsets; the arena has 0 */
  int64_t bytes;
} tn_loop_areas;
tn_loop_areas tn_loop_areas_of(const tn_loop_body *body, const tn_loop_attributes *attributes,
                               const tn_type *const *operands);
