/* core/step/programs/plan_report.c: the JSON report of a set of programs: launches, memory, states,
 * collectives. */
#include "core/step/programs/plan_report.h"

#include "core/compile/output/overlap.h"
#include "core/compile/output/report.h"
#include "core/compile/kernels/collective_kernel.h"
#include "core/data/transform_chain.h"
#include "core/step/programs/memory_report.h"

/* The memory of the run. bound_bytes is a lower bound for any plan: everything but the arena, and the bytes
 * that are alive at once. */
static void plan_report_add_memory(const tn_program_set *set, int32_t slots, bool direct, json_t *json) {
  int64_t arena = 0, bound = 0, peak = tn_executor_planned_bytes(set->map, set->list, set->n, slots, direct);
  for (int32_t i = 0; i < set->n; i++) {
    if (set->list[i]->arena_bytes > arena) arena = set->list[i]->arena_bytes;
    if (set->list[i]->bound_bytes > bound) bound = set->list[i]->bound_bytes;
  }
  json_object_set_new(json, "peak_bytes", json_integer(peak));
  json_object_set_new(json, "bound_bytes", json_integer(peak - arena + bound));
  json_object_set_new(json, "arena_bytes", json_integer(arena));
  json_object_set_new(json, "arena_bound_bytes", json_integer(bound));
  json_object_set_new(json, "state_bytes", json_integer(tn_state_map_bytes(set->map)));
}

static const char *plan_report_state_kind(int32_t what) {
  static const char *const kinds[] = {"", "param", "buffer", "slot", "derived", "host", "scratch"};
  return kinds[what];
}

/* The layout of a state, unless it is row-major. */
static void plan_report_add_layout(const tn_placement *state, tn_env *env, json_t *json) {
  tn_text text = tn_text_new(env);
  if (!state->layout.set || tn_layout_is_row_major(&state->layout, state->type.rank)) return;
  tn_layout_print(&state->layout, state->type.rank, &text);
  if (!text.failed) json_object_set_new(json, "layout", json_string(text.v));
  tn_text_free(&text);
}

/* Every state with its path in checkpoints and its logical shape, without regions ("@param.f32"). */
static json_t *plan_report_states(const tn_state_map *map) {
  json_t *states = json_array();
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *state = &map->states.v[i];
    if (state->path[0] == '@') continue;
    json_t *shape = json_array();
    for (int32_t d = 0; d < state->type.rank; d++)
      json_array_append_new(shape, json_integer(state->type.dims[d]));
    json_t *one =
        json_pack("{s:s, s:s, s:s, s:o}", "path", state->path, "kind", plan_report_state_kind(state->what),
                  "dtype", tn_dtype_name(state->type.dtype), "shape", shape);
    plan_report_add_layout(state, map->env, one);
    json_array_append_new(states, one);
  }
  return states;
}

/* The metric that [run] best names, or the first one that is no loss, or the loss; and which way it is
 * better. */
static void plan_report_add_best(const tn_run *run, const tn_program_set *set, json_t *json) {
  const char *best = run->settings.run.best, *name = *best ? best : "loss";
  int32_t mode = run->settings.run.best_mode;
  bool falls = true;
  for (int32_t i = set->n_measures - 1; i >= 0; i--) {
    const tn_measure *m = &set->measures[i];
    if (*best ? !tn_text_equal(m->name, best) : m->is_loss) continue;
    name = m->name;
    falls = m->falls;
  }
  if (mode != TN_BEST_AUTO) falls = mode == TN_BEST_MIN;
  json_object_set_new(json, "best", json_string(name));
  json_object_set_new(json, "best_falls", json_boolean(falls));
}

/* The blocks with rematerialized values; [run] memory_limit. */
static void plan_report_add_rematerialized(const tn_cover *cover, json_t *json) {
  json_t *list = json_array();
  double flops = 0;
  for (int32_t i = 0; i < cover->n_rematerialized; i++) {
    const tn_rematerialized_block *r = &cover->rematerialized[i];
    flops += r->flops;
    json_array_append_new(list, json_pack("{s:s, s:I, s:f}", "block", r->block, "bytes", (json_int_t)r->bytes,
                                          "flops", r->flops));
  }
  json_object_set_new(json, "recomputed", list);
  json_object_set_new(json, "recomputed_flops", json_real(flops));
  json_object_set_new(json, "recomputed_ms", json_real(cover->rematerialized_s * 1e3));
}

/* The values and states that wait on the host, and the predicted cost. */
static tn_status plan_report_add_offloaded(const tn_program_set *set, const tn_program *program,
                                           json_t *json) {
  int64_t host = tn_state_map_host_bytes(set->map), streamed = tn_state_map_streamed_bytes(set->map);
  json_t *report = NULL;
  TN_TRY(tn_offload_report(program, &report));
  json_object_set_new(json, "offload", report);
  json_object_set_new(json, "offloaded_bytes", json_integer(program->offload_bytes + host));
  json_object_set_new(json, "placed_bytes", json_integer(host - streamed));
  json_object_set_new(json, "streamed_bytes", json_integer(streamed));
  return TN_OK;
}

/* ---- collectives ---- */

/* The number of collectives in an update, and the bytes that they take from each rank. */
typedef struct traffic_sum {
  int64_t collectives, bytes;
} traffic_sum;

static void plan_report_add_traffic(const tn_program *program, int64_t times, traffic_sum *traffic) {
  for (int32_t i = 0; program && i < program->n_steps; i++) {
    if (!tn_kernel_is_collective(program->steps[i].group->kernel)) continue;
    traffic->collectives += times;
    traffic->bytes += times * (int64_t)tn_type_bytes(&program->steps[i].in[0].type);
  }
}

static traffic_sum plan_report_traffic(const tn_run *run, const tn_program_set *set) {
  traffic_sum traffic = {0, 0};
  int64_t micro_batches = run->settings.optimizer.accumulate;
  plan_report_add_traffic(set->programs[TN_PROGRAM_WEIGH], micro_batches, &traffic);
  plan_report_add_traffic(set->programs[TN_PROGRAM_MICRO], micro_batches - 1, &traffic);
  plan_report_add_traffic(set->programs[TN_PROGRAM_STEP], 1, &traffic);
  return traffic;
}

static json_t *plan_report_link(const tn_link_rate *link) {
  return json_pack("{s:f, s:f}", "bytes_per_s", link->bytes_per_s, "latency_s", link->latency_s);
}

/* The schedule of a step on several devices: when each collective is ready, begins and ends, and for how long
 * the step waits. */
static tn_status plan_report_add_overlap(const tn_device *device, const tn_program *step, json_t *json) {
  const tn_interconnect *c = &device->target.interconnect;
  json_t *report = NULL;
  if (c->ranks < 2) return TN_OK;
  TN_TRY(tn_overlap_report(step, &report));
  json_object_set_new(report, "host_ranks",
                      json_integer(c->host_ranks < c->ranks ? c->host_ranks : c->ranks));
  json_object_set_new(report, "link", plan_report_link(&c->inside));
  json_object_set_new(report, "host_link", plan_report_link(&c->between));
  json_object_set_new(json, "overlap", report);
  return TN_OK;
}

/* The parameters with which the buckets begin, where the run has chosen them. */
static json_t *plan_report_buckets(const tn_bucket_cuts *cuts) {
  json_t *list = json_array();
  for (int32_t i = 0; cuts != NULL && i < cuts->n; i++)
    json_array_append_new(list, json_string(cuts->first[i]));
  return list;
}

/* The optimizer's state and the parameters that it updates, where they are divided among ranks: the bytes of
 * all of them, and those of one rank. */
static void plan_report_add_shards(const tn_program_set *set, json_t *json) {
  int64_t all = 0, held = 0;
  for (size_t i = 0; i < set->map->regions.n; i++) {
    const tn_region *region = &set->map->regions.v[i];
    if (region->shards == 1) continue;
    held += (int64_t)tn_region_bytes(region);
    all += (int64_t)tn_region_bytes(region) * region->shards;
  }
  json_object_set_new(json, "divided_bytes", json_integer(all));
  json_object_set_new(json, "held_bytes", json_integer(held));
}

/* ---- transforms ---- */

/* Why the last transform on the host is not on the device; "" if it is another one, or the host was asked
 * for. */
static const char *plan_report_obstacle(const tn_transform_chain *chain, int32_t position) {
  if (chain == NULL || chain->n_stages == 0 || chain->stages[chain->n_stages - 1].position != position)
    return "";
  return chain->not_on_device;
}

/* The transforms of a split in their order, and whether the host or the device applies them. */
static void plan_report_add_transforms(const tn_run *run, const tn_program_set *set, int32_t split,
                                       json_t *list) {
  const tn_data_setting *data = &run->settings.data[split];
  const tn_transform_chain *chain = set->loaders[split] ? tn_loader_chain(set->loaders[split]) : NULL;
  for (int32_t i = 0; i < data->n_transforms; i++) {
    const tn_transform *transform = data->transforms[i].transform;
    if (transform->training_only && split != TN_SPLIT_TRAIN) continue;
    const char *on = chain != NULL && tn_transform_chain_on_device(chain, i) ? "device" : "host";
    json_t *one = json_pack("{s:s, s:s, s:s}", "data", split == TN_SPLIT_TRAIN ? "train" : "valid", "name",
                            transform->item.name, "on", on);
    const char *obstacle = plan_report_obstacle(chain, i);
    if (*obstacle != '\0') json_object_set_new(one, "reason", json_string(obstacle));
    json_array_append_new(list, one);
  }
}

static json_t *plan_report_transforms(const tn_run *run, const tn_program_set *set) {
  json_t *list = json_array();
  for (int32_t split = 0; split < 2; split++) plan_report_add_transforms(run, set, split, list);
  return list;
}

/* The bytes of a batch, which a device with memory of its own copies to itself before each step. */
static int64_t plan_report_batch_bytes(const tn_program *program) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < program->n_inputs; i++) bytes += (int64_t)tn_type_bytes(&program->inputs[i].type);
  return bytes;
}

/* ---- all ---- */

double tn_plan_cost_ms(const tn_program *program) { return tn_overlap_predict(program, NULL).step_s * 1e3; }

/* The members of a [phase NAME]. */
static void plan_report_turn(const tn_settings *s, const tn_program_set *set, int32_t phase, json_t *json) {
  const tn_turn_setting *turn = &s->turns[phase];
  int64_t trained = 0;
  for (size_t i = 0; i < set->map->states.n; i++) {
    const tn_placement *state = &set->map->states.v[i];
    if (state->what == TN_STATE_PARAM && state->path[0] != '@' &&
        !tn_is_frozen(set->freeze, state->path, 1) && tn_settings_find_turn(s, state->path) == phase)
      trained += tn_type_count(&state->type);
  }
  json_object_set_new(json, "phase", json_string(turn->name));
  json_object_set_new(json, "every", json_integer(turn->every));
  json_object_set_new(json, "optimizer", json_string(turn->optimizer_kind->item.name));
  json_object_set_new(json, "parameters", json_integer(trained));
}

/* The step of a phase; [group.NAME] freeze = N, or [phase NAME]. */
static tn_status plan_report_phase(const tn_run *run, const tn_program_set *set, int32_t phase,
                                   json_t **json) {
  const tn_settings *s = &run->settings;
  const tn_program *step = set->programs[tn_phase_program(TN_PROGRAM_STEP, phase)];
  int64_t first = s->phases[phase];
  json_t *report = NULL;
  TN_TRY(tn_program_report(step, &report));
  *json = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:O, s:f, s:I}", "program", step->name, "first_epoch",
                    (json_int_t)first, "last_epoch", (json_int_t)tn_settings_phase_end(s, phase),
                    "parameters", (json_int_t)tn_programs_parameters(set, first), "frozen",
                    (json_int_t)tn_programs_frozen(set, first), "launches", (json_int_t)step->n_steps,
                    "bytes", json_object_get(report, "bytes"), "cost_ms", tn_plan_cost_ms(step),
                    "arena_bytes", (json_int_t)step->arena_bytes);
  json_decref(report);
  if (*json != NULL && s->n_turns > 0) plan_report_turn(s, set, phase, *json);
  return *json != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status plan_report_add_phases(const tn_run *run, const tn_program_set *set, json_t *json) {
  json_t *phases = json_array();
  json_object_set_new(json, "phases", phases);
  for (int32_t phase = 0; phase < run->settings.n_phases; phase++) {
    json_t *one = NULL;
    TN_TRY(plan_report_phase(run, set, phase, &one));
    json_array_append_new(phases, one);
  }
  return TN_OK;
}

tn_status tn_plan_report(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                         json_t **json) {
  bool trains = set->programs[TN_PROGRAM_STEP] != NULL;
  const tn_program *program = set->programs[trains ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT];
  traffic_sum traffic = plan_report_traffic(run, set);
  TN_TRY(tn_program_report(program, json));
  TN_TRY(tn_program_report_captures(program, tn_device_captures(device), *json));
  plan_report_add_rematerialized(program->cover, *json);
  TN_TRY(plan_report_add_offloaded(set, program, *json));
  bool direct = device->target.properties.host_addressable != 0;
  plan_report_add_memory(set, slots, direct, *json);
  TN_TRY(tn_memory_report_add(set, slots, direct, NULL, *json));
  json_object_set_new(*json, "parameters", json_integer(tn_programs_parameters(set, 1)));
  json_object_set_new(*json, "frozen", json_integer(tn_programs_frozen(set, 1)));
  json_object_set_new(*json, "states", plan_report_states(set->map));
  plan_report_add_best(run, set, *json);
  json_object_set_new(*json, "host_memory", json_boolean(direct));
  json_object_set_new(*json, "backend", json_string(device->backend->item.name));
  json_object_set_new(*json, "device", json_string(device->target.properties.name));
  json_object_set_new(*json, "fused_bytes", json_integer((json_int_t)set->fused_bytes));
  json_object_set_new(*json, "samples", json_integer(set->samples));
  json_object_set_new(*json, "precision", json_string(run->settings.precision->item.name));
  json_object_set_new(*json, "cost_ms", json_real(tn_plan_cost_ms(program)));
  json_object_set_new(*json, "devices", json_integer(tn_run_ranks(run)));
  json_object_set_new(*json, "transforms", plan_report_transforms(run, set));
  json_object_set_new(*json, "batch_bytes", json_integer(plan_report_batch_bytes(program)));
  if (trains && run->settings.n_phases > 1) TN_TRY(plan_report_add_phases(run, set, *json));
  json_object_set_new(*json, "collectives", json_integer(traffic.collectives));
  json_object_set_new(*json, "collective_bytes", json_integer(traffic.bytes));
  plan_report_add_shards(set, *json);
  json_object_set_new(*json, "buckets", plan_report_buckets(run->cuts));
  return trains ? plan_report_add_overlap(device, program, *json) : TN_OK;
}
