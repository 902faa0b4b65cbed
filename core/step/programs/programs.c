/* core/step/programs/programs.c: the graphs of all programs of a run, compiled over one state map. */
#include "core/compile/output/fused_minimum.h"
#include "core/step/graphs/low_precision_copies.h"
#include "core/step/graphs/streamed_states.h"
#include "core/step/programs/mapped_states.h"
#include "core/step/programs/program_graph.h"
#include "core/step/programs/program_kinds.h"
#include "core/step/update/averages.h"
#include "core/step/update/pruning.h"

#include <string.h>

/* The graphs of the requested programs, before compilation. */
typedef struct tn_program_graphs {
  tn_graph *v[TN_PROGRAMS];
} tn_program_graphs;

/* Gives the states that no update has placed their locations. */
static tn_status programs_place_rest(tn_run *run, const tn_program_request *request, int32_t which,
                                     tn_program_set *set, tn_graph **graph) {
  if (*graph == NULL) return TN_OK; /* a mistake is noted */
  if (!tn_program_is_training(which) && tn_settings_average(&run->settings))
    TN_TRY(tn_read_averages(set->map, graph));
  if (request->stream) TN_TRY(tn_streamed_states_place(set->map, *graph, request->kept_bytes, NULL));
  TN_TRY(tn_read_gathered(set->map, graph));
  TN_TRY(tn_mapped_states_place(request->mapped, set->map, *graph));
  TN_TRY(tn_state_map_add_rest(set->map, *graph));
  return tn_low_precision_allocate(set->map, *graph);
}

/* It may add states: the number of epochs in a mean. */
static tn_status programs_build_mean(tn_run *run, tn_program_set *set, tn_graph **graph) {
  TN_TRY(tn_mean_graph(&run->env, run->ops, &run->settings, set->map, graph));
  return *graph != NULL ? tn_state_map_add_rest(set->map, *graph) : TN_OK;
}

static tn_status programs_build_prune(tn_run *run, tn_program_set *set, tn_graph **graph) {
  TN_TRY(tn_prune_graph(&run->env, run->ops, &run->settings, set->map, graph));
  return *graph != NULL ? tn_state_map_add_rest(set->map, *graph) : TN_OK;
}

/* Running statistics that are frozen are equal on all ranks, and stay so. */
static tn_status programs_build_averages(tn_run *run, tn_program_set *set, tn_program_graphs *graphs) {
  bool turns = run->settings.n_turns > 0; /* all of them have one program for that */
  int32_t phases = graphs->v[TN_PROGRAM_STEP] && !turns                       ? run->settings.n_phases
                   : graphs->v[TN_PROGRAM_STEP] || graphs->v[TN_PROGRAM_EVAL] ? 1
                                                                              : 0;
  for (int32_t phase = 0; phase < phases; phase++) {
    int32_t which = tn_phase_program(TN_PROGRAM_AVERAGE, phase);
    TN_TRY(tn_average_statistics_graph(&run->env, run->ops, tn_run_ranks(run), set->map,
                                       &run->settings.freeze, tn_program_epoch(run, which),
                                       &graphs->v[which]));
  }
  return TN_OK;
}

/* The last step comes first. A state that one phase trains is read by others, so all updates place their
 * parameters before other states get locations. */
static tn_status programs_build_steps(tn_run *run, const tn_program_request *request, tn_program_set *set,
                                      tn_program_graphs *graphs) {
  const int32_t last = run->settings.n_phases - 1;
  for (int32_t phase = last; phase >= 0; phase--) {
    int32_t which = tn_phase_program(TN_PROGRAM_STEP, phase);
    if (tn_program_batch(run, request, which) > 0)
      TN_TRY(tn_program_build_graph(run, request, which, set, &graphs->v[which]));
  }
  for (int32_t phase = last; phase >= 0; phase--) {
    int32_t which = tn_phase_program(TN_PROGRAM_STEP, phase);
    TN_TRY(programs_place_rest(run, request, which, set, &graphs->v[which]));
  }
  return TN_OK;
}

static tn_status programs_build_graphs(tn_run *run, const tn_program_request *request, tn_program_set *set,
                                       tn_program_graphs *graphs) {
  TN_TRY(tn_ini_note(&run->env, &run->ini, tn_programs_check_lengths(run, request)));
  TN_TRY(programs_build_steps(run, request, set, graphs));
  for (int32_t which = TN_PROGRAM_STEP; which < TN_PROGRAMS; which++)
    if ((tn_program_kind(which) != TN_PROGRAM_STEP || which >= TN_PROGRAM_SHORTER) &&
        tn_program_batch(run, request, which) > 0) {
      TN_TRY(tn_program_build_graph(run, request, which, set, &graphs->v[which]));
      TN_TRY(programs_place_rest(run, request, which, set, &graphs->v[which]));
    }
  TN_TRY(tn_ini_tell(&run->env, &run->ini));
  if (graphs->v[TN_PROGRAM_STEP]) TN_TRY(programs_build_mean(run, set, &graphs->v[TN_PROGRAM_MEAN]));
  if (graphs->v[TN_PROGRAM_STEP]) TN_TRY(programs_build_prune(run, set, &graphs->v[TN_PROGRAM_PRUNE]));
  for (int32_t which = TN_PROGRAM_STEP; which < TN_PROGRAMS; which++) {
    if (graphs->v[which] == NULL) continue;
    TN_TRY(tn_low_precision_commit(set->map, graphs->v[which]));
    const char *name = tn_program_name(run, set, which);
    if (name == NULL) return TN_ENOMEM;
    TN_TRY(tn_program_dump_graph(tn_program_dump_options(run, request, which), name, "derive",
                                 graphs->v[which]));
  }
  TN_TRY(tn_refresh_graph(&run->env, run->ops, set->map, &graphs->v[TN_PROGRAM_REFRESH]));
  TN_TRY(programs_build_averages(run, set, graphs));
  return tn_init_graph(&run->env, run->ops, (uint64_t)run->settings.run.seed, set->map,
                       &graphs->v[TN_PROGRAM_INIT]);
}

/* The others run once, or once an epoch. */
static bool programs_runs_often(int32_t which) {
  return tn_program_is_training(which) || tn_program_kind(which) == TN_PROGRAM_EVAL ||
         tn_program_is_inference(which);
}

/* Of a program of a [phase NAME], the one of the next phase, which runs after it on the same slot. */
static const tn_program *programs_next_turn(const tn_run *run, int32_t which, const tn_program_set *set) {
  int32_t next = tn_program_phase(which) + 1;
  if (tn_program_turn(run, which) == NULL || next == run->settings.n_turns) return NULL;
  return set->programs[tn_phase_program(tn_program_kind(which), next)];
}

/* The program whose input slots this one shares; NULL: it has slots of its own. */
static const tn_program *programs_slot_like(const tn_run *run, int32_t which, const tn_program_set *set) {
  if (which == tn_program_leader(run) || !tn_program_is_training(which)) return NULL;
  if (tn_program_kind(which) == TN_PROGRAM_WATCH)
    return set->programs[tn_phase_program(TN_PROGRAM_STEP, tn_program_phase(which))];
  if (tn_program_kind(which) == TN_PROGRAM_STEP && run->settings.n_turns > 0)
    return programs_next_turn(run, which, set);
  return set->programs[tn_input_program(&run->settings)];
}

/* The step of the last phase chooses the layouts of the parameters; the other programs use them. */
static tn_status programs_compile_one(tn_run *run, const tn_target *target, const tn_program_request *request,
                                      int32_t which, tn_program_set *set, tn_program_graphs *graphs) {
  const tn_compile_options *dump = tn_program_dump_options(run, request, which);
  int32_t leader = tn_program_leader(run);
  const char *name = tn_program_name(run, set, which);
  if (name == NULL) return TN_ENOMEM;
  tn_compile_options options = dump ? *dump : (tn_compile_options){.dump = NULL};
  options.arena_limit = request->arena_limit;
  options.offload = run->settings.run.offload == TN_OFFLOAD_AUTO;
  options.keep_constants = programs_runs_often(which);
  options.layout_map = which == leader ? set->map : NULL;
  options.slot_like = programs_slot_like(run, which, set);
  options.outputs_behind = programs_next_turn(run, which, set);
  if (which >= TN_PROGRAM_SHORTER && tn_program_kind(which) == TN_PROGRAM_EVAL)
    options.slot_like = set->programs[TN_PROGRAM_EVAL];
  if (which == tn_program_shown(request)) TN_TRY(tn_fused_minimum(graphs->v[which], &set->fused_bytes));
  tn_status status = tn_compile(&run->env, name, run->registry, target, graphs->v[which], set->map, &options,
                                &set->programs[which]);
  if (status != TN_OK) return tn_wrap(&run->env, status, "%s program", name);
  tn_graph_destroy(graphs->v[which]);
  graphs->v[which] = NULL;
  return TN_OK;
}

/* The phases of a step from the last to the first, each of which has the inputs of those after it. */
static tn_status programs_compile_turns(tn_run *run, const tn_target *target,
                                        const tn_program_request *request, tn_program_set *set,
                                        tn_program_graphs *graphs) {
  static const int32_t kinds[] = {TN_PROGRAM_STEP, TN_PROGRAM_MICRO, TN_PROGRAM_WATCH};
  for (int32_t k = 0; k < 3; k++)
    for (int32_t phase = run->settings.n_turns - 1; phase >= 0; phase--) {
      int32_t which = tn_phase_program(kinds[k], phase);
      if (graphs->v[which] != NULL) TN_TRY(programs_compile_one(run, target, request, which, set, graphs));
    }
  return TN_OK;
}

static tn_status programs_compile_all(tn_run *run, const tn_target *device, const tn_program_request *request,
                                      tn_program_set *set, tn_program_graphs *graphs) {
  tn_target target = *device;
  int32_t leader = tn_program_leader(run);
  target.constant_state = graphs->v[leader] == NULL;
  if (graphs->v[leader]) TN_TRY(programs_compile_one(run, &target, request, leader, set, graphs));
  TN_TRY(programs_compile_turns(run, &target, request, set, graphs));
  for (int32_t which = 0; which < TN_PROGRAMS; which++) {
    if (graphs->v[which]) TN_TRY(programs_compile_one(run, &target, request, which, set, graphs));
    if (set->programs[which] == NULL) continue;
    set->index[which] = set->n;
    set->list[set->n++] = set->programs[which];
  }
  return TN_OK;
}

tn_status tn_programs_compile(tn_run *run, const tn_target *target, const tn_program_request *request,
                              tn_program_set *set) {
  tn_program_graphs graphs = {{NULL}};
  memset(set, 0, sizeof *set);
  set->arena = tn_arena_new(&run->env);
  set->freeze = &run->settings.freeze;
  memcpy(set->loaders, request->loaders, sizeof set->loaders);
  set->samples = request->batch[tn_program_shown(request)];
  if (request->batch[TN_PROGRAM_STEP] > 0) TN_TRY(tn_programs_check_place(run, target));
  set->host_optimizer = tn_programs_can_place(run, target) &&
                        (run->settings.optimizer.place == TN_OPTIMIZER_ON_HOST || request->host_optimizer);
  set->either_place =
      tn_programs_can_place(run, target) && run->settings.optimizer.place == TN_OPTIMIZER_PLACE_AUTO;
  for (int32_t i = 0; i < TN_PROGRAMS; i++) set->index[i] = -1;
  tn_status status = tn_state_map_create(&run->env, &set->map);
  if (status == TN_OK) set->map->rank = run->rank;
  if (status == TN_OK) status = programs_build_graphs(run, request, set, &graphs);
  if (status == TN_OK ||
      (status == TN_EINVAL && run->ini.mistakes.n > 0)) /* tells those of sections as well */
    status = tn_settings_check_sections(&run->env, run->registry, &run->ini);
  if (status == TN_OK) status = programs_compile_all(run, target, request, set, &graphs);
  for (int32_t i = 0; i < TN_PROGRAMS; i++) tn_graph_destroy(graphs.v[i]);
  if (status != TN_OK) tn_programs_free(run, set);
  return status;
}

tn_status tn_programs_refresh(const tn_program_set *set, tn_executor *executor) {
  int32_t index = set->index[TN_PROGRAM_REFRESH];
  if (index < 0) return TN_OK;
  TN_TRY(tn_executor_run(executor, index, 0));
  return tn_executor_slot_wait(executor, 0);
}

tn_status tn_programs_average(const tn_program_set *set, tn_executor *executor, int32_t phase) {
  int32_t index = set->index[tn_phase_program(TN_PROGRAM_AVERAGE, phase)];
  if (index < 0) return TN_OK;
  TN_TRY(tn_executor_run(executor, index, 0));
  return tn_executor_slot_wait(executor, 0);
}

tn_status tn_programs_update_mean(const tn_program_set *set, tn_executor *executor, int64_t moments) {
  int32_t index = set->index[TN_PROGRAM_MEAN];
  if (index < 0) return TN_OK;
  if (tn_state_map_find(set->map, TN_AVERAGE_GOAL) != NULL)
    TN_TRY(tn_executor_write(executor, TN_AVERAGE_GOAL, &moments, sizeof moments));
  TN_TRY(tn_executor_run(executor, index, 0));
  return tn_executor_slot_wait(executor, 0);
}

tn_status tn_programs_prune(const tn_program_set *set, tn_executor *executor, float sparsity) {
  TN_TRY(tn_executor_write(executor, TN_PRUNE_GOAL, &sparsity, sizeof sparsity));
  TN_TRY(tn_executor_run(executor, set->index[TN_PROGRAM_PRUNE], 0));
  return tn_executor_slot_wait(executor, 0);
}

void tn_programs_free(tn_run *run, tn_program_set *set) {
  (void)run;
  for (int32_t i = 0; i < TN_PROGRAMS; i++) tn_program_destroy(set->programs[i]);
  tn_state_map_destroy(set->map);
  tn_arena_free(&set->arena);
  memset(set, 0, sizeof *set);
}

static bool programs_has_frozen(const tn_program_set *set, const tn_placement *state, int64_t epoch) {
  return set->programs[TN_PROGRAM_STEP] != NULL && tn_is_frozen(set->freeze, state->path, epoch);
}

static int64_t programs_count_parameters(const tn_program_set *set, int64_t epoch, bool frozen) {
  int64_t count = 0;
  for (size_t i = 0; i < set->map->states.n; i++) {
    const tn_placement *state = &set->map->states.v[i];
    if (state->what == TN_STATE_PARAM && state->path[0] != '@' &&
        programs_has_frozen(set, state, epoch) == frozen)
      count += tn_type_count(&state->type);
  }
  return count;
}

int64_t tn_programs_parameters(const tn_program_set *set, int64_t epoch) {
  return programs_count_parameters(set, epoch, false);
}

int64_t tn_programs_frozen(const tn_program_set *set, int64_t epoch) {
  return programs_count_parameters(set, epoch, true);
}

int32_t tn_run_input_slots(const tn_run *run, int32_t steps_per_launch) {
  const tn_data_setting *data = &run->settings.data[TN_SPLIT_TRAIN];
  int32_t prefetch = (int32_t)data->section.prefetch, k = steps_per_launch;
  if (!data->given) return k > 1 ? 2 * k : 1;
  return k > 1 ? k * (2 + (prefetch + k - 1) / k) : prefetch + (int32_t)run->settings.optimizer.accumulate;
}

int32_t tn_run_steps_per_launch(const tn_run *run) {
  return run->settings.steps_per_launch > 0 ? run->settings.steps_per_launch : 1;
}

int32_t tn_run_most_input_slots(const tn_run *run) {
  int32_t asked = run->settings.steps_per_launch, one = tn_run_input_slots(run, 1),
          several = tn_run_input_slots(run, asked > 0 ? asked : TN_MAX_STEPS_PER_LAUNCH);
  return one > several ? one : several;
}

uint64_t tn_programs_hash(const tn_program_set *set) {
  uint64_t hash = TN_HASH_START;
  for (int32_t i = 0; i < set->n; i++)
    hash = tn_hash_bytes(hash, &set->list[i]->hash, sizeof set->list[i]->hash);
  return hash;
}
