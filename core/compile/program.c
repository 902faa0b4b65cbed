/* core/compile/program.c: a plan becomes a program: places are written into steps, scratch is freed. */
#include "core/compile/program.h"

#include <string.h>

#include "core/compile/plan.h"

/* ---- the plan ---- */

void tn_plan_free(tn_plan *plan) {
  tn_vec_free(plan->env, &plan->buffer_of);
  tn_vec_free(plan->env, &plan->buffers);
  tn_vec_free(plan->env, &plan->commits);
  tn_vec_free(plan->env, &plan->key);
  tn_vec_free(plan->env, &plan->order);
  tn_vec_free(plan->env, &plan->inputs);
  tn_vec_free(plan->env, &plan->outputs);
  tn_arena_free(&plan->arena);
}

tn_status tn_plan_make(tn_plan *plan) {
  TN_TRY(tn_plan_place(plan));
  TN_TRY(tn_plan_schedule(plan));
  TN_TRY(tn_plan_settle(plan));
  TN_TRY(tn_plan_share(plan));
  return tn_plan_arena(plan);
}

/* ---- steps ---- */

static tn_operand operand_of(const tn_plan *plan, tn_val v, const tn_layout *layout) {
  if (v == 0) return (tn_operand){0};
  return (tn_operand){plan->cover->graph->values.v[v].type, *layout, tn_plan_place_of(plan, v)};
}

/* The first op and its layer; ops of nobody's layer go by their names alone. */
static const char *name_of(tn_program *p, const tn_group *g) {
  const tn_gnode *node = &p->cover->graph->nodes.v[g->nodes[0]];
  bool layer = node->layer != NULL && node->layer[0] != '\0';
  return tn_arena_printf(&p->memory, "%s%s%s", node->op->item.name, layer ? " of " : "",
                         layer ? node->layer : "");
}

static tn_status fill_step(tn_program *p, const tn_plan *plan, size_t index) {
  const tn_group *g = &p->cover->groups.v[plan->order.v[index]];
  tn_step *step = &p->steps[index];
  *step =
      (tn_step){.group = g, .n_in = g->n_in, .n_out = g->n_out, .workspace_offset = plan->workspace[index]};
  step->in = tn_arena_alloc(&p->memory, (size_t)g->n_in * sizeof *step->in);
  step->out = tn_arena_alloc(&p->memory, (size_t)g->n_out * sizeof *step->out);
  step->name = name_of(p, g);
  if (step->in == NULL || step->out == NULL || step->name == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < g->n_in; i++) step->in[i] = operand_of(plan, g->in[i], &g->choice.in_layout[i]);
  for (int32_t i = 0; i < g->n_out; i++) step->out[i] = operand_of(plan, g->out[i], &g->choice.out_layout[i]);
  p->keep_bytes += g->choice.keep_bytes;
  return TN_OK;
}

static tn_status fill_steps(tn_program *p, const tn_plan *plan) {
  p->n_steps = (int32_t)plan->order.n;
  p->steps = tn_arena_alloc(&p->memory, plan->order.n * sizeof *p->steps);
  if (p->steps == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < plan->order.n; i++) TN_TRY(fill_step(p, plan, i));
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

static uint64_t hash_operand(uint64_t hash, const tn_operand *o) {
  hash = tn_hash_bytes(hash, &o->layout, sizeof o->layout);
  hash = tn_hash_bytes(hash, &o->place.base, sizeof o->place.base);
  hash = tn_hash_bytes(hash, &o->place.region, sizeof o->place.region);
  return tn_hash_bytes(hash, &o->place.offset, sizeof o->place.offset);
}

/* Which kernel of which plugin, and where it reads and writes. */
static uint64_t hash_step(uint64_t hash, const tn_step *step) {
  const tn_group *g = step->group;
  const char *texts[] = {g->entry->item->name, g->entry->plugin, g->entry->version, g->choice.name};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (texts[i] != NULL) hash = tn_hash_text(hash, texts[i]);
  hash = tn_hash_bytes(hash, &g->choice.id, sizeof g->choice.id);
  hash = tn_hash_bytes(hash, g->nodes, (size_t)g->n_nodes * sizeof *g->nodes);
  for (int32_t i = 0; i < step->n_in; i++) hash = hash_operand(hash, &step->in[i]);
  for (int32_t i = 0; i < step->n_out; i++) hash = hash_operand(hash, &step->out[i]);
  return tn_hash_bytes(hash, &step->workspace_offset, sizeof step->workspace_offset);
}

static tn_status hash_program(tn_program *p) {
  uint64_t hash = 0;
  TN_TRY(tn_graph_hash(p->cover->graph, &hash));
  hash = tn_hash_text(hash, p->name);
  for (int32_t i = 0; i < p->n_steps; i++) hash = hash_step(hash, &p->steps[i]);
  p->hash = hash;
  return TN_OK;
}

/* ---- the program ---- */

static tn_status fill_program(tn_program *p, const char *name, const tn_plan *plan) {
  p->name = tn_arena_strdup(&p->memory, name);
  if (p->name == NULL) return TN_ENOMEM;
  p->arena_bytes = plan->arena_bytes;
  p->bound_bytes = plan->bound_bytes;
  p->slot_bytes = plan->slot_bytes;
  p->output_bytes = plan->output_bytes;
  TN_TRY(copy_bindings(p, plan->inputs.v, plan->inputs.n, &p->inputs, &p->n_inputs));
  TN_TRY(copy_bindings(p, plan->outputs.v, plan->outputs.n, &p->outputs, &p->n_outputs));
  TN_TRY(copy_regions(p, plan->map));
  TN_TRY(fill_steps(p, plan));
  return hash_program(p);
}

tn_status tn_program_create(tn_env *env, const char *name, tn_registry *registry, const tn_target *target,
                            tn_cover *take_cover, const tn_state_map *map, tn_program **program) {
  tn_plan plan = {.env = env, .cover = take_cover, .map = map, .arena = tn_arena_new(env)};
  tn_program *p = tn_alloc(env, sizeof *p);
  (void)registry; /* the cover's catalog has what was found in them */
  (void)target;
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
