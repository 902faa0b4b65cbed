/* core/compile/pipeline.c: runs the passes from a graph to a program. */
#include "core/compile/pipeline.h"

#include "core/compile/constant_groups.h"
#include "core/compile/join/join.h"
#include "core/compile/loop_pairs.h"
#include "core/compile/kernels/collective_kernel.h"
#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/layout/assign_layouts.h"
#include "core/compile/memory/memory_plan.h"
#include "core/compile/output/print.h"
#include "core/compile/rematerialization/host_copies.h"
#include "core/compile/rematerialization/memory_limit.h"
#include "core/compile/rematerialization/recompute.h"
#include "core/compile/rematerialization/stream_states.h"
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

static tn_status select_kernels(const compilation *c, const tn_target *target, const tn_graph *graph,
                                tn_cover **cover) {
  tn_assignment assignment;
  TN_TRY(tn_pass_assign(c->env, c->registry, target, graph, &assignment));
  tn_status status = dump_assignment(c, &assignment);
  if (status == TN_OK) status = tn_pass_select(&assignment, cover);
  if (status != TN_OK) tn_assignment_free(&assignment);
  return status;
}

static tn_status pipeline_compile_body(tn_loop_bodies *bodies, const tn_target *target,
                                       const tn_loop_attributes *a, tn_loop_body *body);
static void pipeline_free_body(tn_loop_body *body);

/* The bodies of loops, which kernels find by their target. */
static tn_status create_bodies(const compilation *c, const tn_graph *graph, tn_target *target,
                               tn_loop_bodies **bodies) {
  tn_loop_bodies *made = *bodies = tn_alloc(c->env, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  made->env = c->env;
  made->arena = tn_arena_new(c->env);
  made->registry = c->registry;
  made->ops = graph->ops;
  made->compile = pipeline_compile_body;
  made->free = pipeline_free_body;
  target->loops = made;
  if (target->fallback == NULL) return TN_OK;
  made->fallback = *target->fallback;
  made->fallback.loops = made;
  target->fallback = &made->fallback;
  return TN_OK;
}

/* Passes `assign` and `select`. */
static tn_status make_graph_cover(const compilation *c, const tn_graph *graph, tn_cover **cover) {
  tn_target target = *c->target; /* catalogs copy it; kernels are chosen from the first round on */
  tn_loop_bodies *bodies = NULL;
  target.program = c->name;
  target.states = c->map;
  TN_TRY(create_bodies(c, graph, &target, &bodies));
  tn_status status = select_kernels(c, &target, graph, cover);
  if (status == TN_OK)
    (*cover)->loops = bodies;
  else
    tn_loop_bodies_destroy(bodies);
  return status;
}

/* The passes from `layout` on. The program owns the cover on success. */
static tn_status make_cover_program(const compilation *c, tn_cover *cover, tn_program **program) {
  const tn_program *like = c->options.slot_like;
  const tn_program *behind = c->options.outputs_behind;
  tn_slot_layout slot = {.first_output = behind != NULL ? behind->output_bytes : 0, .all = behind != NULL};
  if (like != NULL) {
    slot.inputs = like->inputs;
    slot.n_inputs = like->n_inputs;
    slot.bytes = like->slot_bytes;
  }
  TN_TRY(end_pass(c, "select", cover));
  TN_TRY(tn_pass_layout(c->target, cover, c->map, c->options.layout_map));
  TN_TRY(end_pass(c, "layout", cover));
  TN_TRY(tn_pass_recompute(cover));
  TN_TRY(end_pass(c, "recompute", cover));
  if (c->options.keep_constants) TN_TRY(tn_pass_constants(cover, c->options.fixed_states));
  TN_TRY(end_pass(c, "constants", cover));
  TN_TRY(tn_pass_join(cover));
  TN_TRY(tn_add_host_copies(cover, c->map));
  TN_TRY(tn_fetch_streamed_states(cover, c->map));
  TN_TRY(end_pass(c, "join", cover));
  if (c->options.arena_limit > 0)
    TN_TRY(tn_pass_memory_limit(cover, c->map, &slot, c->options.arena_limit, c->options.offload));
  TN_TRY(end_pass(c, "rematerialize", cover));
  return tn_program_create(c->env, c->name, c->target, cover, c->map, &slot, program);
}

/* ---- the bodies of loops ---- */

/* A region for each constant of a loop, whose address is that of its operand. */
static tn_status place_constants(tn_env *env, const tn_graph *graph, tn_state_map **map) {
  TN_TRY(tn_state_map_create(env, map));
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    int32_t region;
    TN_TRY(tn_state_map_region(*map, state->path, state->type.dtype, &region));
    TN_TRY(tn_state_map_add(*map, state, region, 0));
  }
  return TN_OK;
}

static void describe_body(tn_loop_body *body) {
  const tn_program *p = body->program;
  body->arena_bytes = p->arena_bytes;
  body->constant_bytes = p->constant_bytes;
  body->folded_bytes = p->folded_bytes;
  body->prepared_bytes = p->prepared_bytes;
  body->launches = p->n_steps;
  body->deterministic = body->capturable = true;
  for (int32_t i = 0; i < tn_program_all_steps(p); i++) {
    const tn_choice *choice = &p->steps[i].group->choice;
    double *sum = i < p->n_steps ? &body->step_s : &body->start_s;
    *sum += choice->cost_s;
    body->deterministic = body->deterministic && choice->deterministic;
    body->capturable = body->capturable && choice->capturable;
  }
}

static tn_status find_in_place(tn_loop_bodies *bodies, const tn_loop_attributes *a, tn_loop_body *body) {
  bool *in_place = tn_arena_alloc(&bodies->arena, (size_t)a->states + 1);
  if (in_place == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < a->states; i++) in_place[i] = tn_loop_state_is_in_place(body->program, a, i);
  body->in_place = in_place;
  return TN_OK;
}

static tn_status check_body(const tn_loop_bodies *bodies, const tn_program *p) {
  for (int32_t i = 0; i < p->n_steps; i++)
    if (tn_kernel_is_collective(p->steps[i].group->kernel))
      return tn_failf(bodies->env, TN_EUNSUPPORTED, "%s: a loop has no collectives between ranks",
                      p->steps[i].name);
  return TN_OK;
}

/* A loop runs on one side as a whole: the device, or its fallback. */
static tn_target body_target(const tn_target *target) {
  tn_target own = *target;
  own.fallback = NULL;
  own.fallback_refused = false;
  own.guard_bytes = 0; /* the loop's workspace has the guard */
  own.constant_state = true;
  return own;
}

static tn_status compile_body_graph(tn_loop_bodies *bodies, const tn_target *target, const tn_graph *graph,
                                    const tn_loop_attributes *a, tn_loop_body *body) {
  const tn_target own = body_target(target);
  const tn_compile_options options = {.keep_constants = true, .fixed_states = true};
  const char *of = target->program != NULL ? target->program : "loop";
  const char *name = tn_arena_printf(&bodies->arena, "%s body %zu", of, bodies->list.n + 1);
  if (name == NULL) return TN_ENOMEM;
  TN_TRY(place_constants(bodies->env, graph, &body->constants));
  TN_TRY(tn_compile(bodies->env, name, bodies->registry, &own, graph, body->constants, &options,
                    &body->program));
  TN_TRY(check_body(bodies, body->program));
  describe_body(body);
  return tn_loop_pairs_find(&bodies->arena, a, body);
}

static tn_status pipeline_compile_body(tn_loop_bodies *bodies, const tn_target *target,
                                       const tn_loop_attributes *a, tn_loop_body *body) {
  tn_graph *graph = NULL;
  TN_TRY(tn_loop_parse(bodies->env, bodies->ops, a, &graph));
  tn_status status = compile_body_graph(bodies, target, graph, a, body);
  if (status == TN_OK) status = find_in_place(bodies, a, body);
  tn_graph_destroy(graph);
  return tn_wrap(bodies->env, status, "in the body of the loop");
}

static void pipeline_free_body(tn_loop_body *body) {
  tn_program_destroy(body->program);
  if (body->constants != NULL) tn_state_map_destroy(body->constants);
}

/* ---- all passes ---- */

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
