/* core/exec/loop.c: loops as steps of a program. The body is a program of its own (kernels/loop_kernel.h):
 * its arena and constants lie in the loop's workspace, its inputs and outputs in the operands and results of
 * the loop, at the place of the step. */
#include "core/exec/loop.h"

#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/packing/pack_intervals.h"
#include "core/exec/declines.h"

/* Where an operand or result of a launch lies. */
typedef enum loop_base {
  LOOP_ABSENT,
  LOOP_WORKSPACE,
  LOOP_CONSTANT, /* operand `number` */
  LOOP_SEQUENCE, /* the step's part of operand `number` */
  LOOP_BEFORE,   /* operand `number`, or in front of the step in operand `number` + 1 */
  LOOP_STATE,    /* state `number` in front of the step */
  LOOP_NEXT,     /* and behind it */
  LOOP_OUTPUT    /* the step's part of result `number` */
} loop_base;

typedef struct loop_place {
  loop_base base;
  int32_t number;
  int64_t offset; /* bytes */
  int64_t stride; /* bytes from step to step */
} loop_place;

struct tn_bound_loop {
  const tn_loop_attributes *a;
  const tn_program *body;
  const tn_step *step; /* of the loop */
  tn_device *device;   /* that runs all of it */
  tn_loop_areas areas;
  int64_t *state_buffers; /* per state: offset of the first of its two in the workspace */
  bool later;             /* the device reads launches after they have been enqueued */
  bool moves;             /* the operands have other addresses in every run */
  void **prepared;        /* per step of the body; of a loop, its tn_bound_loop */
  int32_t *uses;          /* per step: the number of its kernel */
  bool *foreign;          /* per step: as in tn_bound_step */
  loop_place *places;     /* of all operands and results, step by step */
  int32_t *first_place;   /* per step */
  int32_t n_places;
};

/* An instance is the launches of one step of the loop, or of all steps one after the other. */
struct tn_loop_run {
  const tn_bound_loop *loop;
  tn_executor *e;
  int64_t n_instances;
  tn_launch_host *launches; /* per instance, then per step of the body, constants included */
  tn_view *views;           /* per instance, then as the places */
  tn_loop_run **inner;      /* per instance and step: of a loop in the body */
  bool placed;              /* the views have addresses */
};

/* ---- places ---- */

static const tn_type *loop_input_type(const tn_bound_loop *loop, int32_t input) {
  return &loop->body->inputs[input].type;
}

/* The binding at an offset. Empty ones share their offset with others; any of them serves. */
static int32_t find_binding(const tn_binding *bindings, int32_t n, int64_t offset) {
  int32_t found = 0;
  for (int32_t i = 0; i < n; i++)
    if (bindings[i].offset <= offset && bindings[i].offset >= bindings[found].offset) found = i;
  return found;
}

static loop_place place_input(const tn_bound_loop *loop, const tn_location *location) {
  const tn_loop_attributes *a = loop->a;
  int32_t at = find_binding(loop->body->inputs, loop->body->n_inputs, location->offset);
  int32_t input = tn_loop_binding_number(&loop->body->inputs[at]), before = input - (int32_t)a->sequences;
  int32_t state = before - (int32_t)a->before;
  loop_place p = {.offset = location->offset - loop->body->inputs[at].offset,
                  .stride = (int64_t)tn_type_bytes(loop_input_type(loop, at))};
  p.base = state >= 0 ? LOOP_STATE : before >= 0 ? LOOP_BEFORE : LOOP_SEQUENCE;
  p.number = state >= 0 ? state : before >= 0 ? (int32_t)a->sequences + 2 * before : input;
  return p;
}

static loop_place place_output(const tn_bound_loop *loop, const tn_location *location) {
  const tn_program *body = loop->body;
  int32_t at = find_binding(body->outputs, body->n_outputs, location->offset);
  const tn_binding *output = &body->outputs[at];
  return (loop_place){.base = output->name[0] == 'y' ? LOOP_OUTPUT : LOOP_NEXT,
                      .number = tn_loop_binding_number(output),
                      .offset = location->offset - output->offset,
                      .stride = (int64_t)tn_type_bytes(&output->type)};
}

/* A constant of the loop has a region of its own. */
static loop_place place_operand(const tn_bound_loop *loop, const tn_location *location) {
  int32_t constant = tn_loop_first_constant(loop->a) + location->region;
  switch (location->base) {
  case TN_BASE_ARENA: return (loop_place){LOOP_WORKSPACE, 0, location->offset, 0};
  case TN_BASE_CONSTANT: return (loop_place){LOOP_WORKSPACE, 0, loop->areas.constants + location->offset, 0};
  case TN_BASE_REGION: return (loop_place){LOOP_CONSTANT, constant, location->offset, 0};
  case TN_BASE_SLOT: return place_input(loop, location);
  case TN_BASE_OUTPUT: return place_output(loop, location);
  default: return (loop_place){0};
  }
}

static void find_places(tn_bound_loop *loop) {
  int32_t n = 0;
  for (int32_t s = 0; s < tn_program_all_steps(loop->body); s++) {
    const tn_step *step = &loop->body->steps[s];
    loop->first_place[s] = n;
    for (int32_t i = 0; i < step->n_in; i++) loop->places[n++] = place_operand(loop, &step->in[i].location);
    for (int32_t i = 0; i < step->n_out; i++) loop->places[n++] = place_operand(loop, &step->out[i].location);
  }
}

/* ---- addresses ---- */

/* A step: its number in the order of the loop, and its index in the sequences. */
typedef struct loop_index {
  int64_t number, at;
} loop_index;

static char *address_in(const tn_view *view, int64_t offset) {
  return view->data == NULL ? NULL : (char *)view->data + offset;
}

static char *state_address(const tn_bound_loop *loop, const tn_launch *l, const loop_place *p, int64_t number,
                           int64_t at) {
  const tn_view *result = &l->out[loop->a->outputs + p->number];
  if (p->number < loop->a->stacked) return address_in(result, at * p->stride + p->offset);
  bool in_place = tn_loop_is_in_place(loop->step->body, loop->a, p->number);
  if (in_place || number == loop->a->steps - 1) return address_in(result, p->offset);
  int64_t buffer = loop->state_buffers[p->number] + number % 2 * tn_interval_aligned(p->stride);
  return (char *)l->workspace + buffer + p->offset;
}

static char *old_state_address(const tn_bound_loop *loop, const tn_launch *l, const loop_place *p,
                               loop_index t) {
  int64_t back = loop->a->reverse ? 1 : -1;
  if (t.number == 0) return address_in(&l->in[tn_loop_first_state(loop->a) + p->number], p->offset);
  return state_address(loop, l, p, t.number - 1, t.at + back);
}

/* The other loop went in the other direction: the step in front of this one there is the next one here. */
static char *before_address(const tn_bound_loop *loop, const tn_launch *l, const loop_place *p,
                            loop_index t) {
  int64_t on = loop->a->reverse ? -1 : 1;
  if (t.number == loop->a->steps - 1) return address_in(&l->in[p->number], p->offset);
  return address_in(&l->in[p->number + 1], (t.at + on) * p->stride + p->offset);
}

static void *place_address(const tn_bound_loop *loop, const tn_launch *l, const loop_place *p, loop_index t) {
  switch (p->base) {
  case LOOP_WORKSPACE: return (char *)l->workspace + p->offset;
  case LOOP_CONSTANT: return address_in(&l->in[p->number], p->offset);
  case LOOP_SEQUENCE: return address_in(&l->in[p->number], t.at * p->stride + p->offset);
  case LOOP_BEFORE: return before_address(loop, l, p, t);
  case LOOP_STATE: return old_state_address(loop, l, p, t);
  case LOOP_NEXT: return state_address(loop, l, p, t.number, t.at);
  case LOOP_OUTPUT: return address_in(&l->out[p->number], t.at * p->stride + p->offset);
  default: return NULL;
  }
}

static loop_index index_of(const tn_bound_loop *loop, int64_t number) {
  return (loop_index){number, loop->a->reverse ? loop->a->steps - 1 - number : number};
}

static int32_t all_steps(const tn_bound_loop *loop) { return tn_program_all_steps(loop->body); }

/* Gives the launches of an instance the addresses of a step. */
static void place_instance(tn_loop_run *run, int64_t instance, const tn_launch *l, int64_t number) {
  const tn_bound_loop *loop = run->loop;
  loop_index t = index_of(loop, number);
  tn_view *views = run->views + instance * loop->n_places;
  for (int32_t i = 0; i < loop->n_places; i++) views[i].data = place_address(loop, l, &loop->places[i], t);
  tn_launch_host *launches = run->launches + instance * all_steps(loop);
  for (int32_t s = 0; s < all_steps(loop); s++) {
    const tn_step *step = &loop->body->steps[s];
    launches[s].pub.workspace = (char *)l->workspace + step->workspace_offset;
    launches[s].pub.folded = (char *)l->workspace + loop->areas.folded + step->folded_offset;
  }
}

static void place_run(tn_loop_run *run, const tn_launch *l) {
  if (run->placed && run->loop->later && !run->loop->moves) return;
  run->placed = true;
  for (int64_t i = 0; i < run->n_instances; i++) place_instance(run, i, l, i);
}

/* ---- launching ---- */

static tn_status launch_inner(tn_loop_run *run, int64_t instance, int32_t s, bool fold) {
  const tn_bound_loop *loop = run->loop;
  const tn_group *g = loop->body->steps[s].group;
  tn_launch *l = &run->launches[instance * all_steps(loop) + s].pub;
  if (tn_kernel_is_loop(g->kernel)) return tn_loop_launch(l);
  tn_status status =
      tn_device_enqueue(loop->device, loop->foreign[s], fold ? g->kernel->fold : g->kernel->launch, l);
  return tn_wrap(l, status, "%s", l->name);
}

/* The launches whose results are the same in all steps. */
static tn_status launch_start(tn_loop_run *run) {
  const tn_program *body = run->loop->body;
  for (int32_t s = 0; s < tn_program_all_steps(body); s++)
    if (body->steps[s].group->choice.folded_bytes > 0) TN_TRY(launch_inner(run, 0, s, true));
  for (int32_t s = body->n_steps; s < tn_program_all_steps(body); s++) TN_TRY(launch_inner(run, 0, s, false));
  return TN_OK;
}

tn_status tn_loop_launch(tn_launch *l) {
  tn_loop_run *run = l->prepared;
  const tn_bound_loop *loop = run->loop;
  bool one = run->n_instances == 1;
  place_run(run, l);
  TN_TRY(launch_start(run));
  for (int64_t i = 0; i < loop->a->steps; i++) {
    if (one && i > 0) place_instance(run, 0, l, i);
    for (int32_t s = 0; s < loop->body->n_steps; s++) TN_TRY(launch_inner(run, one ? 0 : i, s, false));
  }
  return TN_OK;
}

/* ---- runs ---- */

static void fill_views(const tn_bound_loop *loop, tn_view *views) {
  for (int32_t s = 0; s < all_steps(loop); s++) {
    const tn_step *step = &loop->body->steps[s];
    for (int32_t i = 0; i < step->n_in; i++) *views++ = (tn_view){step->in[i].type, step->in[i].layout, NULL};
    for (int32_t i = 0; i < step->n_out; i++)
      *views++ = (tn_view){step->out[i].type, step->out[i].layout, NULL};
  }
}

static tn_status loop_fill_launch(tn_loop_run *run, int64_t instance, int32_t s, void *stream) {
  const tn_bound_loop *loop = run->loop;
  const tn_step *step = &loop->body->steps[s];
  tn_view *views = run->views + instance * loop->n_places + loop->first_place[s];
  int64_t at = instance * all_steps(loop) + s;
  run->launches[at] = tn_step_launch(loop->device, step, views, loop->prepared[s], stream);
  if (!tn_kernel_is_loop(step->group->kernel)) return TN_OK;
  TN_TRY(tn_loop_run_create(run->e, loop->prepared[s], stream, &run->inner[at]));
  run->launches[at].pub.prepared = run->inner[at];
  return TN_OK;
}

static tn_status fill_run(tn_loop_run *run, void *stream) {
  const tn_bound_loop *loop = run->loop;
  for (int64_t i = 0; i < run->n_instances; i++) {
    fill_views(loop, run->views + i * loop->n_places);
    for (int32_t s = 0; s < all_steps(loop); s++) TN_TRY(loop_fill_launch(run, i, s, stream));
  }
  return TN_OK;
}

tn_status tn_loop_run_create(tn_executor *e, const tn_bound_loop *loop, void *stream, tn_loop_run **out) {
  tn_loop_run *run = *out = tn_alloc(e->env, sizeof *run);
  if (run == NULL) return TN_ENOMEM;
  run->loop = loop;
  run->e = e;
  run->n_instances = loop->later ? loop->a->steps : 1;
  size_t n = tn_size_mul((size_t)run->n_instances, (size_t)all_steps(loop));
  size_t n_views = tn_size_mul((size_t)run->n_instances, (size_t)loop->n_places);
  run->launches = tn_alloc(e->env, tn_size_mul(n, sizeof *run->launches));
  run->inner = tn_alloc(e->env, tn_size_mul(n, sizeof(tn_loop_run *)));
  run->views = tn_alloc(e->env, tn_size_mul(n_views, sizeof *run->views));
  bool made = run->launches != NULL && run->inner != NULL && run->views != NULL;
  return made ? fill_run(run, stream) : TN_ENOMEM;
}

void tn_loop_run_destroy(tn_executor *e, tn_loop_run *run) {
  if (run == NULL) return;
  int64_t n = run->inner != NULL ? run->n_instances * all_steps(run->loop) : 0;
  for (int64_t i = 0; i < n; i++) tn_loop_run_destroy(e, run->inner[i]);
  tn_release(e->env, run->launches);
  tn_release(e->env, run->inner);
  tn_release(e->env, run->views);
  tn_release(e->env, run);
}

/* ---- preparing ---- */

static tn_status prepare_kernel(tn_device *device, const tn_step *step, int32_t use, void **prepared) {
  const tn_group *g = step->group;
  const tn_choice *choice = &g->choice;
  tn_status status = tn_device_prepare(device, g->kernel, g->match, choice, choice->in_layout,
                                       choice->out_layout, use, prepared);
  if (status == TN_EUNSUPPORTED) tn_decline_note(device, TN_LOG_WARN, step->name, g->entry, choice, g->key);
  return tn_wrap(&device->env, status, "%s", step->name);
}

static tn_status prepare_body(tn_executor *e, tn_bound_loop *loop, int32_t *use) {
  for (int32_t i = 0; i < all_steps(loop); i++) {
    const tn_step *step = &loop->body->steps[i];
    loop->foreign[i] = tn_device_is_foreign(loop->device, step->group->family);
    if (!tn_kernel_is_loop(step->group->kernel)) {
      loop->uses[i] = (*use)++;
      TN_TRY(prepare_kernel(loop->device, step, loop->uses[i], &loop->prepared[i]));
      continue;
    }
    tn_bound_loop *inner = NULL;
    tn_status status = tn_loop_prepare(e, loop->device, step, use, &inner);
    loop->prepared[i] = inner;
    TN_TRY(status);
  }
  return TN_OK;
}

static void place_states(tn_bound_loop *loop) {
  int64_t end = loop->areas.states;
  int32_t first = tn_loop_first_state(loop->a);
  for (int64_t i = loop->a->stacked; i < loop->a->states; i++) {
    if (tn_loop_is_in_place(loop->step->body, loop->a, i)) continue;
    loop->state_buffers[i] = end;
    end += 2 * tn_interval_aligned((int64_t)tn_type_bytes(&loop->step->in[first + i].type));
  }
}

static tn_status find_areas(const tn_executor *e, tn_bound_loop *loop) {
  const tn_type **types = tn_alloc(e->env, (size_t)loop->step->n_in * sizeof *types);
  if (types == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < loop->step->n_in; i++) types[i] = &loop->step->in[i].type;
  loop->areas = tn_loop_areas_of(loop->step->body, loop->a, types);
  tn_release(e->env, types);
  return TN_OK;
}

static tn_status fill_loop(tn_executor *e, tn_bound_loop *loop, int32_t *use) {
  size_t steps = (size_t)all_steps(loop);
  for (size_t s = 0; s < steps; s++) loop->n_places += loop->body->steps[s].n_in + loop->body->steps[s].n_out;
  loop->prepared = tn_alloc(e->env, steps * sizeof(void *));
  loop->uses = tn_alloc(e->env, steps * sizeof *loop->uses);
  loop->foreign = tn_alloc(e->env, steps);
  loop->first_place = tn_alloc(e->env, steps * sizeof *loop->first_place);
  loop->places = tn_alloc(e->env, (size_t)loop->n_places * sizeof *loop->places);
  loop->state_buffers = tn_alloc(e->env, tn_size_mul((size_t)loop->a->states, sizeof *loop->state_buffers));
  if (loop->prepared == NULL || loop->uses == NULL || loop->foreign == NULL || loop->first_place == NULL ||
      loop->places == NULL || loop->state_buffers == NULL)
    return TN_ENOMEM;
  TN_TRY(find_areas(e, loop));
  place_states(loop);
  find_places(loop);
  return prepare_body(e, loop, use);
}

tn_status tn_loop_prepare(tn_executor *e, tn_device *device, const tn_step *step, int32_t *use,
                          tn_bound_loop **out) {
  tn_bound_loop *loop = *out = tn_alloc(e->env, sizeof *loop);
  if (loop == NULL) return TN_ENOMEM;
  loop->a = step->group->match->nodes[0].node->attributes;
  loop->body = step->body->program;
  loop->step = step;
  loop->device = device;
  loop->later = device->backend->enqueue != NULL || !device->target.properties.host_addressable;
  loop->moves = e->caller_memory;
  return fill_loop(e, loop, use);
}

static void release_kernel(tn_executor *e, const tn_bound_loop *loop, int32_t i) {
  tn_device *device = loop->device;
  const tn_kernel *kernel = loop->body->steps[i].group->kernel;
  void *prepared = loop->prepared[i];
  if (tn_kernel_is_loop(kernel))
    tn_loop_release(e, prepared);
  else if (prepared != NULL && kernel->release != NULL && tn_device_check_process(device) == TN_OK)
    kernel->release(&device->env, prepared);
}

bool tn_loop_note_decline(tn_executor *e, tn_bound_loop *loop, int32_t use) {
  bool noted = false;
  for (int32_t i = 0; i < all_steps(loop) && !noted; i++) {
    const tn_step *step = &loop->body->steps[i];
    const tn_group *g = step->group;
    if (loop->prepared[i] == NULL) continue;
    if (tn_kernel_is_loop(g->kernel)) {
      noted = tn_loop_note_decline(e, loop->prepared[i], use);
    } else if (loop->uses[i] == use) {
      noted = tn_decline_note(loop->device, TN_LOG_WARN, step->name, g->entry, &g->choice, g->key);
      release_kernel(e, loop, i);
      loop->prepared[i] = NULL;
    }
  }
  return noted;
}

void tn_loop_release(tn_executor *e, tn_bound_loop *loop) {
  if (loop == NULL) return;
  for (int32_t i = 0; loop->prepared != NULL && i < all_steps(loop); i++) release_kernel(e, loop, i);
  tn_release(e->env, loop->prepared);
  tn_release(e->env, loop->uses);
  tn_release(e->env, loop->foreign);
  tn_release(e->env, loop->first_place);
  tn_release(e->env, loop->places);
  tn_release(e->env, loop->state_buffers);
  tn_release(e->env, loop);
}
