/* core/compile/pipeline.c: the passes from a graph to a program. */
#include "core/compile/select/assign.h"
#include "core/compile/rematerialization/memory_limit.h"
#include "core/compile/program.h"

const char *const tn_compile_passes[] = {"assign",   "select", "layout", "recompute",
                                         "schedule", "memory", NULL};

static bool wants_dump(const tn_compile_options *options, const char *pass) {
  if (options == NULL || options->dump_after == NULL || options->dump == NULL) return false;
  return options->dump_after[0] == '\0' || tn_text_equal(options->dump_after, pass);
}

static void start_dump(const tn_compile_options *options, const char *program, const char *pass) {
  tn_text_addf(options->dump, "# program %s after %s\n", program, pass);
}

static tn_status dump_assignment(const tn_compile_options *options, const char *name,
                                 const tn_assignment *assignment) {
  if (!wants_dump(options, "assign")) return TN_OK;
  start_dump(options, name, "assign");
  return tn_assignment_print(assignment, options->dump);
}

static tn_status dump_cover(const tn_compile_options *options, const char *name, const char *pass,
                            const tn_cover *cover) {
  if (!wants_dump(options, pass)) return TN_OK;
  start_dump(options, name, pass);
  return tn_cover_print(cover, options->dump);
}

static tn_status dump_program(const tn_compile_options *options, const char *pass, bool places,
                              const tn_program *program) {
  if (!wants_dump(options, pass)) return TN_OK;
  start_dump(options, program->name, pass);
  return tn_program_print(program, places, options->dump);
}

/* Passes `assign` and `select`. */
static tn_status start(tn_env *env, const char *name, tn_registry *registry, const tn_target *target,
                       const tn_graph *graph, const tn_compile_options *options, tn_cover **cover) {
  tn_assignment assignment;
  TN_TRY(tn_pass_assign(env, registry, target, graph, &assignment));
  tn_status status = dump_assignment(options, name, &assignment);
  if (status == TN_OK) status = tn_select_assigned(&assignment, cover);
  if (status != TN_OK) tn_assignment_free(&assignment);
  return status;
}

/* From select's cover, which stays the caller's on failure, to a program. */
static tn_status finish(tn_env *env, const char *name, tn_registry *registry, const tn_target *target,
                        tn_cover *cover, const tn_state_map *map, const tn_compile_options *options,
                        tn_program **program) {
  cover->slot_like = options != NULL ? options->slot_like : NULL;
  cover->map = map;
  cover->lay = options != NULL ? options->lay : NULL;
  TN_TRY(dump_cover(options, name, "select", cover));
  TN_TRY(tn_pass_layout(env, registry, target, cover));
  TN_TRY(dump_cover(options, name, "layout", cover));
  TN_TRY(tn_pass_recompute(env, cover));
  if (options != NULL && options->arena_limit > 0)
    TN_TRY(tn_pass_limit(env, cover, map, options->arena_limit));
  TN_TRY(dump_cover(options, name, "recompute", cover));
  tn_status status = tn_program_create(env, name, registry, target, cover, map, program);
  cover->slot_like = NULL;
  cover->map = cover->lay = NULL;
  return status;
}

static tn_status dump_plan(const tn_compile_options *options, const tn_program *program) {
  TN_TRY(dump_program(options, "schedule", false, program));
  return dump_program(options, "memory", true, program);
}

tn_status tn_compile(tn_env *env, const char *name, tn_registry *registry, const tn_target *target,
                     tn_graph *take_graph, const tn_state_map *map, const tn_compile_options *options,
                     tn_program **program) {
  tn_cover *cover = NULL;
  tn_program *made = NULL;
  *program = NULL;
  TN_TRY(start(env, name, registry, target, take_graph, options, &cover));
  tn_status status = finish(env, name, registry, target, cover, map, options, &made);
  if (status != TN_OK) {
    tn_cover_destroy(cover);
    return status;
  }
  status = dump_plan(options, made);
  if (status != TN_OK) {
    tn_program_destroy(made);
    return status;
  }
  tn_graph_destroy(take_graph);
  tn_error_clear(env); /* why kernels declined is kept with what was chosen instead */
  *program = made;
  return TN_OK;
}
