/* core/compile/pipeline.c: runs the passes from a graph to a program. */
#include "core/compile/pipeline.h"

#include "core/compile/constant_groups.h"
#include "core/compile/join/join.h"
#include "core/compile/layout/assign_layouts.h"
#include "core/compile/memory/memory_plan.h"
#include "core/compile/output/print.h"
#include "core/compile/rematerialization/memory_limit.h"
#include "core/compile/rematerialization/recompute.h"
#include "core/compile/select/select.h"

const char *const tn_compile_passes[] = {"assign", "select",        "layout",   "recompute", "constants",
                                         "join",   "rematerialize", "schedule", "memory",    NULL};

/* The arguments of tn_compile. */
typedef struct compilation {
  tn_env *env;
  const char *name;
  tn_registry *registry;
  const tn_target *target;
  const tn_state_map *map;
  tn_compile_options options;
} compilation;

/* ---- text after passes ---- */

static bool starts_dump(const compilation *c, const char *pass) {
  const tn_compile_options *o = &c->options;
  if (o->dump_after == NULL || o->dump == NULL) return false;
  if (o->dump_after[0] != '\0' && !tn_text_equal(o->dump_after, pass)) return false;
  tn_text_addf(o->dump, "# program %s after %s\n", c->name, pass);
  return true;
}

static tn_status dump_assignment(const compilation *c, const tn_assignment *assignment) {
  return starts_dump(c, "assign") ? tn_assignment_print(assignment, c->options.dump) : TN_OK;
}

static tn_status dump_cover(const compilation *c, const char *pass, const tn_cover *cover) {
  return starts_dump(c, pass) ? tn_cover_print(cover, c->options.dump) : TN_OK;
}

/* The end of a pass. */
static tn_status end_pass(const compilation *c, const char *pass, const tn_cover *cover) {
  TN_TRY(tn_check_stop(c->env));
  return dump_cover(c, pass, cover);
}

static tn_status dump_program(const compilation *c, const tn_program *program) {
  if (starts_dump(c, "schedule")) TN_TRY(tn_program_print(program, false, c->options.dump));
  if (starts_dump(c, "memory")) TN_TRY(tn_program_print(program, true, c->options.dump));
  return TN_OK;
}

/* ---- passes ---- */

/* Passes `assign` and `select`. */
static tn_status make_graph_cover(const compilation *c, const tn_graph *graph, tn_cover **cover) {
  tn_assignment assignment;
  tn_target target = *c->target; /* catalogs copy it; kernels are chosen from the first round on */
  target.program = c->name;
  TN_TRY(tn_pass_assign(c->env, c->registry, &target, graph, &assignment));
  tn_status status = dump_assignment(c, &assignment);
  if (status == TN_OK) status = tn_pass_select(&assignment, cover);
  if (status != TN_OK) tn_assignment_free(&assignment);
  return status;
}

/* The passes from `layout` on. The program owns the cover on success. */
static tn_status make_cover_program(const compilation *c, tn_cover *cover, tn_program **program) {
  const tn_program *like = c->options.slot_like;
  const tn_slot_layout slot =
      like == NULL ? (tn_slot_layout){0} : (tn_slot_layout){like->inputs, like->n_inputs, like->slot_bytes};
  TN_TRY(end_pass(c, "select", cover));
  TN_TRY(tn_pass_layout(c->target, cover, c->map, c->options.layout_map));
  TN_TRY(end_pass(c, "layout", cover));
  TN_TRY(tn_pass_recompute(cover));
  TN_TRY(end_pass(c, "recompute", cover));
  if (c->options.keep_constants) TN_TRY(tn_pass_constants(cover));
  TN_TRY(end_pass(c, "constants", cover));
  TN_TRY(tn_pass_join(cover));
  TN_TRY(end_pass(c, "join", cover));
  if (c->options.arena_limit > 0) TN_TRY(tn_pass_memory_limit(cover, c->map, &slot, c->options.arena_limit));
  TN_TRY(end_pass(c, "rematerialize", cover));
  return tn_program_create(c->env, c->name, c->target, cover, c->map, &slot, program);
}

tn_status tn_compile(tn_env *env, const char *name, tn_registry *registry, const tn_target *target,
                     const tn_graph *graph, const tn_state_map *map, const tn_compile_options *options,
                     tn_program **program) {
  const tn_compile_options defaults = {0};
  const compilation c = {env, name, registry, target, map, options != NULL ? *options : defaults};
  tn_cover *cover = NULL;
  tn_program *made = NULL;
  *program = NULL;
  TN_TRY(make_graph_cover(&c, graph, &cover));
  tn_status status = make_cover_program(&c, cover, &made);
  if (status != TN_OK) {
    tn_cover_destroy(cover);
    return status;
  }
  status = dump_program(&c, made);
  if (status != TN_OK) {
    tn_program_destroy(made);
    return status;
  }
  tn_error_clear(env); /* the texts of kernels that declined; groups keep them as rejections */
  *program = made;
  return TN_OK;
}
