/* core/compile/program.c: makes a program of a memory plan: steps and segments with the locations of their
 * operands. */
#include "core/compile/program.h"

#include "core/compile/kernels/catalog.h"
#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/memory/memory_plan.h"

/* ---- steps ---- */

static tn_operand plan_operand(const tn_plan *plan, const tn_group *g, tn_val v, const tn_layout *layout) {
  if (v == 0) return (tn_operand){0};
  return (tn_operand){plan->cover->graph->values.v[v].type, *layout,
                      g->fallback != NULL ? tn_plan_host_location(plan, v) : tn_plan_location(plan, v)};
}

/* The leading op, and its layer if it has one. */
static const char *step_name(tn_program *p, const tn_group *g) {
  const tn_gnode *node = &p->cover->graph->nodes.v[tn_group_lead(g, p->cover->graph)];
  bool layer = node->layer != NULL && node->layer[0] != '\0';
  const char *what = tn_kernel_is_transfer(g->kernel) ? g->kernel->item.name : node->op->item.name;
  return tn_arena_printf(&p->memory, "%s%s%s", what, layer ? " of " : "", layer ? node->layer : "");
}

static const tn_loop_attributes *loop_attributes(const tn_program *p, const tn_group *g) {
  return p->cover->graph->nodes.v[g->nodes[0]].attributes;
}

static tn_status find_step_body(const tn_program *p, const tn_group *g, tn_step *step) {
  const tn_catalog *catalog = g->fallback != NULL ? p->cover->fallback : p->cover->catalog;
  if (!tn_kernel_is_loop(g->kernel)) return TN_OK;
  return tn_loop_bodies_find(&catalog->target, loop_attributes(p, g), &step->body);
}

static tn_status fill_program_step(tn_program *p, const tn_plan *plan, const tn_group *g, tn_step *step) {
  *step = (tn_step){.group = g, .n_in = g->n_in, .n_out = g->n_out, .awaits = TN_AWAITS_NONE};
  step->in = tn_arena_alloc(&p->memory, (size_t)g->n_in * sizeof *step->in);
  step->out = tn_arena_alloc(&p->memory, (size_t)g->n_out * sizeof *step->out);
  step->name = step_name(p, g);
  if (step->in == NULL || step->out == NULL || step->name == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < g->n_in; i++)
    step->in[i] = plan_operand(plan, g, g->in[i], &g->choice.in_layout[i]);
  for (int32_t i = 0; i < g->n_out; i++)
    step->out[i] = plan_operand(plan, g, g->out[i], &g->choice.out_layout[i]);
  TN_TRY(find_step_body(p, g, step));
  p->prepared_bytes += g->choice.prepared_bytes;
  step->folded_offset = p->folded_bytes;
  p->folded_bytes += tn_interval_aligned(g->choice.folded_bytes);
  return TN_OK;
}

/* Constants are launched before a run, when nothing is in the arena: their workspaces begin at offset 0. */
static tn_status fill_constant_steps(tn_program *p, const tn_plan *plan) {
  for (int32_t i = 0; i < p->n_constants; i++) {
    const tn_group *g = &p->cover->constants.v[i];
    TN_TRY(fill_program_step(p, plan, g, &p->steps[p->n_steps + i]));
    if (g->choice.workspace_bytes > p->arena_bytes)
      p->arena_bytes = tn_interval_aligned(g->choice.workspace_bytes);
  }
  return TN_OK;
}

static bool operand_has_bytes(const tn_operand *o, const tn_location *location, int64_t bytes) {
  const tn_location *l = &o->location;
  return l->base == location->base && l->region == location->region && l->offset < location->offset + bytes &&
         location->offset < l->offset + tn_layout_bytes(&o->type, &o->layout);
}

static bool step_uses(const tn_step *step, const tn_location *location, int64_t bytes) {
  for (int32_t i = 0; i < step->n_in; i++)
    if (operand_has_bytes(&step->in[i], location, bytes)) return true;
  for (int32_t i = 0; i < step->n_out; i++)
    if (operand_has_bytes(&step->out[i], location, bytes)) return true;
  return false;
}

/* Copies that a placed group's results have to states of the device. Memory of the arena has had other uses.
 */
static void find_followed_steps(tn_program *p) {
  for (int32_t i = 0; i < p->n_steps; i++) {
    tn_step *step = &p->steps[i];
    if (!tn_plan_is_placed_transfer(step->group, TN_TRANSFER_FETCH)) continue;
    if (step->out[0].location.base != TN_BASE_REGION) continue;
    int64_t bytes = tn_layout_bytes(&step->out[0].type, &step->out[0].layout);
    int32_t last = i - 1;
    while (last >= 0 && !step_uses(&p->steps[last], &step->out[0].location, bytes)) last--;
    if (last >= 0 && p->steps[last].group->role == TN_STREAM_COMPUTE) step->follows = last + 1;
  }
}

static tn_status fill_program_steps(tn_program *p, const tn_plan *plan) {
  p->n_steps = (int32_t)plan->order.n;
  p->n_constants = (int32_t)p->cover->constants.n;
  p->steps = tn_arena_alloc(&p->memory, (size_t)tn_program_all_steps(p) * sizeof *p->steps);
  if (p->steps == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < p->n_steps; i++) {
    TN_TRY(fill_program_step(p, plan, tn_plan_group_at(plan, i), &p->steps[i]));
    p->steps[i].awaits = plan->awaits[i];
    p->steps[i].workspace_offset = plan->workspace[i];
  }
  find_followed_steps(p);
  return fill_constant_steps(p, plan);
}

/* ---- segments ---- */

static tn_status copy_transfers(tn_program *p, const tn_plan *plan, const tn_plan_transfer *from, int32_t n,
                                tn_transfer **to) {
  *to = tn_arena_alloc(&p->memory, (size_t)n * sizeof **to);
  if (*to == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++)
    (*to)[i] = (tn_transfer){.value = from[i].value,
                             .step = from[i].step,
                             .device = tn_plan_location(plan, from[i].value),
                             .host = tn_plan_host_location(plan, from[i].value).offset,
                             .bytes = plan->buffers.v[plan->buffer_of.v[from[i].value]].bytes};
  return TN_OK;
}

static tn_status fill_program_segments(tn_program *p, const tn_plan *plan) {
  p->n_segments = (int32_t)plan->segments.n;
  p->segments = tn_arena_alloc(&p->memory, plan->segments.n * sizeof *p->segments);
  if (p->segments == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->segments.n; i++) {
    const tn_plan_segment *s = &plan->segments.v[i];
    tn_segment *segment = &p->segments[i];
    *segment = (tn_segment){.first = s->first,
                            .n = s->n,
                            .fallback = s->fallback,
                            .placed = s->placed,
                            .reads = s->reads,
                            .awaits = s->awaits,
                            .n_out = s->n_out,
                            .n_in = s->n_in};
    TN_TRY(copy_transfers(p, plan, plan->out.v + s->first_out, s->n_out, &segment->out));
    TN_TRY(copy_transfers(p, plan, plan->in.v + s->first_in, s->n_in, &segment->in));
  }
  return TN_OK;
}

static tn_status copy_bindings(tn_program *p, const tn_binding *from, size_t n, tn_binding **to,
                               int32_t *count) {
  *to = tn_arena_copy(&p->memory, from, n * sizeof *from);
  if (*to == NULL) return TN_ENOMEM;
  *count = (int32_t)n;
  for (size_t i = 0; i < n; i++) {
    (*to)[i].name = tn_arena_strdup(&p->memory, from[i].name);
    if ((*to)[i].name == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status copy_regions(tn_program *p, const tn_state_map *map) {
  const char **names = tn_arena_alloc(&p->memory, map->regions.n * sizeof *names);
  if (names == NULL) return TN_ENOMEM;
  p->regions = names;
  for (size_t i = 0; i < map->regions.n; i++) {
    names[i] = tn_arena_strdup(&p->memory, map->regions.v[i].name);
    if (names[i] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* ---- hash ---- */

static uint64_t hash_location(uint64_t hash, const tn_location *location) {
  hash = tn_hash_bytes(hash, &location->base, sizeof location->base);
  hash = tn_hash_bytes(hash, &location->region, sizeof location->region);
  return tn_hash_bytes(hash, &location->offset, sizeof location->offset);
}

static uint64_t hash_operand(uint64_t hash, const tn_operand *o) {
  hash = tn_hash_bytes(hash, &o->layout, sizeof o->layout);
  return hash_location(hash, &o->location);
}

static uint64_t hash_transfers(uint64_t hash, const tn_transfer *transfers, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    hash = hash_location(hash, &transfers[i].device);
    hash = tn_hash_bytes(hash, &transfers[i].host, sizeof transfers[i].host);
  }
  return hash;
}

/* The kernel, its plugin and variant, and the locations that it reads and writes. */
static uint64_t hash_step(uint64_t hash, const tn_step *step) {
  const tn_group *g = step->group;
  const char *texts[] = {g->entry->item->name, g->entry->plugin, g->entry->version, g->choice.name};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (texts[i] != NULL) hash = tn_hash_text(hash, texts[i]);
  hash = tn_hash_bytes(hash, &g->choice.id, sizeof g->choice.id);
  hash = tn_hash_bytes(hash, g->nodes, (size_t)g->n_nodes * sizeof *g->nodes);
  for (int32_t i = 0; i < step->n_in; i++) hash = hash_operand(hash, &step->in[i]);
  for (int32_t i = 0; i < step->n_out; i++) hash = hash_operand(hash, &step->out[i]);
  if (step->body != NULL) hash = tn_hash_bytes(hash, &step->body->program->hash, sizeof(uint64_t));
  return tn_hash_bytes(hash, &step->workspace_offset, sizeof step->workspace_offset);
}

static tn_status hash_program(tn_program *p) {
  uint64_t hash = 0;
  TN_TRY(tn_graph_hash(p->cover->graph, &hash));
  hash = tn_hash_text(hash, p->name);
  for (int32_t i = 0; i < tn_program_all_steps(p); i++) hash = hash_step(hash, &p->steps[i]);
  for (int32_t i = 0; i < p->n_segments; i++) {
    hash = hash_transfers(hash, p->segments[i].out, p->segments[i].n_out);
    hash = hash_transfers(hash, p->segments[i].in, p->segments[i].n_in);
  }
  p->hash = hash;
  return TN_OK;
}

/* ---- the program ---- */

static tn_status fill_program(tn_program *p, const char *name, const tn_plan *plan) {
  p->name = tn_arena_strdup(&p->memory, name);
  if (p->name == NULL) return TN_ENOMEM;
  p->arena_bytes = plan->arena_bytes;
  p->constant_bytes = plan->constant_bytes;
  p->bound_bytes = plan->bound_bytes;
  p->slot_bytes = plan->slot_bytes;
  p->output_bytes = plan->output_bytes;
  p->host_bytes = plan->host_bytes;
  p->offload_bytes = plan->offload_bytes;
  TN_TRY(copy_bindings(p, plan->inputs.v, plan->inputs.n, &p->inputs, &p->n_inputs));
  TN_TRY(copy_bindings(p, plan->outputs.v, plan->outputs.n, &p->outputs, &p->n_outputs));
  TN_TRY(copy_regions(p, plan->map));
  TN_TRY(tn_live_memory_list(plan, &p->memory, &p->live));
  TN_TRY(fill_program_steps(p, plan));
  TN_TRY(fill_program_segments(p, plan));
  return hash_program(p);
}

tn_status tn_program_create(tn_env *env, const char *name, const tn_target *target, tn_cover *take_cover,
                            const tn_state_map *map, const tn_slot_layout *slot, tn_program **program) {
  int64_t limit = take_cover->arena_limit;
  tn_plan plan = {.env = env,
                  .cover = take_cover,
                  .map = map,
                  .slot = slot,
                  .keeps_packs = take_cover->keeps_constants,
                  .guard = target->guard_bytes,
                  .packing = {limit > 0 ? TN_PACK_MANY : TN_PACK_FEW, limit, false},
                  .arena = tn_arena_new(env)};
  tn_program *p = tn_alloc(env, sizeof *p);
  *program = NULL;
  if (p == NULL) return TN_ENOMEM;
  p->env = env;
  p->memory = tn_arena_new(env);
  p->cover = take_cover;
  tn_status status = tn_plan_make(&plan);
  if (status == TN_OK) status = fill_program(p, name, &plan);
  tn_plan_free(&plan);
  if (status == TN_OK) {
    *program = p;
  } else {
    p->cover = NULL;
    tn_program_destroy(p);
  }
  return tn_wrap(env, status, "program %s", name);
}

void tn_program_destroy(tn_program *program) {
  if (program == NULL) return;
  tn_cover_destroy(program->cover);
  tn_arena_free(&program->memory);
  tn_release(program->env, program);
}
