/* core/compile/program.h: a compiled program: launches in order, and where everything lies. It is
 * immutable, knows no addresses, and needs no device; the executor (core/exec) binds it. */
#ifndef TN_CORE_COMPILE_PROGRAM_H
#define TN_CORE_COMPILE_PROGRAM_H

#include "core/compile/cover.h"
#include "core/compile/state_map.h"

/* What an operand's address is relative to. */
enum {
  TN_BASE_NONE = 0,
  TN_BASE_ARENA = 1,
  TN_BASE_REGION = 2,
  TN_BASE_SLOT = 3, /* the host's end of the slot for a step that falls back, else the device's */
  TN_BASE_OUTPUT = 4,
  TN_BASE_HOST = 5 /* host memory of what falls back */
};
typedef struct tn_place {
  int32_t base, region; /* region: which, for TN_BASE_REGION */
  int64_t offset;       /* bytes */
} tn_place;

typedef struct tn_operand {
  tn_type type;
  tn_layout layout;
  tn_place place;
} tn_operand;

/* One launch. Commits that are not in place end as launches of the copy kernel. Collectives are on the
 * communication stream, each behind all before it; other steps go on beside them. */
typedef struct tn_step {
  const tn_group *group;
  const char *name; /* "conv2d of layer1.0.conv1" */
  tn_operand *in, *out;
  int32_t n_in, n_out;
  int32_t awaits;           /* the step, a collective, that must have ended before this one; -1: none */
  int64_t workspace_offset; /* in the arena; for a step that falls back in the host memory */
  int64_t folded_offset;    /* in the program's folded memory */
} tn_step;

/* A value that crosses the bus, as it lies. */
typedef struct tn_transfer {
  tn_val value;
  int32_t step; /* that reads or makes it on the host */
  tn_place device;
  int64_t host, bytes; /* offset in the host memory */
} tn_transfer;

/* Steps in a row that are all done on one side. A fallback is a cut: what its steps read is copied out
 * of the device, the launching thread waits once for that and all before it, the steps run on the host,
 * and what the device needs of their results is copied in. Between two cuts nothing waits. */
typedef struct tn_segment {
  int32_t first, n; /* steps */
  bool fallback;
  int32_t awaits;        /* the step, a collective, that nobody in the segment awaits; -1: none */
  tn_transfer *out, *in; /* copied out of the device before, and in after */
  int32_t n_out, n_in;
} tn_segment;

typedef struct tn_binding { /* a program input in the slot, or an output in the output buffer */
  const char *name;
  tn_type type;
  int64_t offset;
} tn_binding;

typedef struct tn_program {
  tn_env *env;
  tn_arena memory;  /* of everything here */
  const char *name; /* "step", "eval" */
  tn_cover *cover;  /* owned */
  tn_step *steps;
  int32_t n_steps;
  tn_segment *segments; /* all steps */
  int32_t n_segments;
  tn_binding *inputs, *outputs;
  int32_t n_inputs, n_outputs;
  int64_t arena_bytes, bound_bytes; /* planned arena, and its lower bound from liveness */
  int64_t slot_bytes, output_bytes, prepared_bytes;
  int64_t folded_bytes;       /* what kernels fold of state, from run to run */
  int64_t host_bytes;         /* operands, results and workspaces of what falls back */
  const char *const *regions; /* names of the map's regions, for the text form */
  uint64_t hash;
} tn_program;

/* Passes `schedule` and `memory`: launch order, in-place pairs, views, packs, fixed offsets. The
 * value of a commit is written in place where every reader of the old value comes before; otherwise
 * a copy is added. Takes the cover on success. */
tn_status tn_program_create(tn_env *env, const char *name, tn_registry *registry, const tn_target *target,
                            tn_cover *take_cover, const tn_state_map *map, tn_program **program);
/* Accepts NULL. */
void tn_program_destroy(tn_program *program);

/* Inputs, outputs and one line a step: kernel, variant, results and operands. With places it is the
 * text after pass `memory`, without it that after `schedule`. */
tn_status tn_program_print(const tn_program *program, bool places, tn_text *text);

/* The passes of tn_compile in order, ended by NULL. */
extern const char *const tn_compile_passes[];

/* The whole way from a graph. Takes the graph on success. */
typedef struct tn_compile_options {
  const char *dump_after; /* pass after which the text form is added to `dump`; "": each; NULL: none */
  tn_text *dump;
  /* A program whose inputs lie in the slot as this one's shall, so that a filled slot serves both. NULL:
   * none. */
  const tn_program *slot_like;
  int64_t arena_limit; /* bytes that the arena should not exceed: values are made again for it; 0: none */
  tn_state_map *lay;   /* the map, which the program may give layouts for its states; NULL: they are given */
} tn_compile_options;
tn_status tn_compile(tn_env *env, const char *name, tn_registry *registry, const tn_target *target,
                     tn_graph *take_graph, const tn_state_map *map, const tn_compile_options *options,
                     tn_program **program);

#endif
