/* core/compile/pipeline.h: the compiler: all passes from a graph to a program. */
#pragma once

#include "core/compile/program.h"

/* The names of the passes in their order, ended by NULL. */
extern const char *const tn_compile_passes[];

typedef struct tn_compile_options {
  const char
      *dump_after; /* the pass after which the text form is added to `dump`; "": every pass; NULL: none */
  tn_text *dump;
  const tn_program *slot_like; /* inputs get the offsets that they have in this program, so that one filled
                                  slot serves both; NULL: offsets of their own */
  /* Several programs run one after the other on a slot, this one before `outputs_behind`: it has all of its
   * inputs, and its outputs lie behind, so that those of all of them can be read at the end. NULL: none. */
  const tn_program *outputs_behind;
  int64_t arena_limit; /* bytes that the arena should not exceed: values are rematerialized or offloaded. 0:
                          no limit */
  bool offload;        /* under the limit values may be kept in memory of the host */
  bool keep_constants; /* the program runs often: values that depend on nothing are computed once and kept */
  bool fixed_states;   /* with keep_constants: values that depend on states alone are constants, too */
  tn_state_map *layout_map; /* `map`, if the program may choose the layouts of parameters in it; else NULL */
} tn_compile_options;

/* Reads the graph, which stays the caller's. */
tn_status tn_compile(tn_env *env, const char *name, tn_registry *registry, const tn_target *target,
                     const tn_graph *graph, const tn_state_map *map, const tn_compile_options *options,
                     tn_program **program);
