/* core/step/programs/programs.c: builds the graphs of all programs of a run, and compiles them over one
 * state map. */
#include "core/compile/output/fused_minimum.h"
#include "core/graph/uses.h"
#include "core/step/checks/check_model.h"
#include "core/step/checks/check_sizes.h"
#include "core/step/graphs/device_transforms.h"
#include "core/step/graphs/incremental.h"
#include "core/step/graphs/low_precision_copies.h"
#include "core/step/graphs/sample_outputs.h"
#include "core/step/programs/mapped_states.h"
#include "core/step/programs/program_kinds.h"
#include "core/step/update/averages.h"
#include "core/step/update/pruning.h"

#include <stdio.h>
#include <string.h>

/* The graphs of the requested programs, before compilation. */
typedef struct tn_program_graphs {
  tn_graph *v[TN_PROGRAMS];
} tn_program_graphs;

static tn_status programs_copy_measures(tn_program_set *set, const tn_model *model) {
  set->n_measures = model->n_measures;
  set->measures =
      tn_arena_alloc(&set->arena, tn_size_mul((size_t)model->n_measures + 1, sizeof *set->measures));
  if (set->measures == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < model->n_measures; i++) {
    set->measures[i] = model->measures[i];
    const char *phase = model->measures[i].phase;
    set->measures[i].name = tn_arena_strdup(&set->arena, model->measures[i].name);
    set->measures[i].phase = phase != NULL ? tn_arena_strdup(&set->arena, phase) : NULL;
    if (set->measures[i].name == NULL || (phase != NULL && set->measures[i].phase == NULL)) return TN_ENOMEM;
  }
  return TN_OK;
}

const char *const tn_graph_passes[] = {"model", "gradients", "precision", "chunk", "update", "derive", NULL};

/* Dumps and reports show the training step, or the model if the step is not requested. */
static int32_t programs_shown(const tn_program_request *request) {
  return request->batch[TN_PROGRAM_STEP] > 0 ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT;
}

static const tn_compile_options *programs_dump_options(const tn_run *run, const tn_program_request *request,
                                                       int32_t which) {
  int32_t shown = programs_shown(request);
  bool in_turn = tn_program_turn(run, which) != NULL && tn_program_kind(which) == shown;
  return which == shown || in_turn ? request->dump : NULL;
}

static tn_status programs_dump_graph(const tn_compile_options *dump, const char *name, const char *pass,
                                     const tn_graph *graph) {
  if (dump == NULL || dump->dump_after == NULL) return TN_OK;
  if (*dump->dump_after && !tn_text_equal(dump->dump_after, pass)) return TN_OK;
  tn_text_addf(dump->dump, "# program %s after %s\n", name, pass);
  return tn_graph_print(graph, dump->dump);
}

/* [distributed] shard divides vectors of all parameters, whose elements are updated independently. */
static tn_status programs_check_shard(tn_run *run) {
  const tn_optimizer *kind = run->settings.optimizer_kind;
  bool shared = tn_settings_shards(&run->settings, tn_run_ranks(run)) > 1;
  if (!shared || kind->granularity == TN_UPDATE_ELEMENTWISE) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: [distributed] shard = optimizer: optimizer '%s' updates a whole parameter at a time, "
                  "which cannot be divided among devices; expected one that updates each element by itself, "
                  "such as sgd or adamw, or shard = no",
                  tn_settings_where(&run->ini, "distributed", "shard"), kind->item.name);
}

/* Where the update of a step tells its scheduled options. */
static tn_update_info *programs_update_info(const tn_run *run, int32_t which, tn_program_set *set,
                                            tn_update_info *unused) {
  if (tn_program_kind(which) == TN_PROGRAM_WATCH) return unused;
  if (tn_program_turn(run, which) != NULL) return &set->turns[tn_program_phase(which)];
  return which == tn_program_leader(run) ? &set->update : unused;
}

const tn_update_info *tn_phase_update(const tn_program_set *set, const tn_settings *settings, int32_t phase) {
  return settings->n_turns > 0 ? &set->turns[phase] : &set->update;
}

/* Appends gradients and update to the model. */
static tn_status programs_emit_update(tn_run *run, int32_t which, tn_program_set *set, tn_model *model,
                                      const tn_compile_options *dump) {
  tn_update_info unused, *update = programs_update_info(run, which, set, &unused);
  const tn_settings settings = tn_settings_of_turn(&run->settings, tn_program_phase(which));
  const char *name = tn_program_name(run, set, which);
  bool watches = tn_program_kind(which) == TN_PROGRAM_WATCH;
  tn_training_graph t = {.env = &run->env,
                         .arena = &set->arena,
                         .settings = &settings,
                         .cuts = run->cuts,
                         .epoch = tn_program_epoch(run, which),
                         .host = set->host_optimizer,
                         .seed = (uint64_t)run->settings.run.seed,
                         .model = model,
                         .map = set->map,
                         .watched = watches ? &set->watched[tn_program_phase(which)] : NULL};
  if (name == NULL) return TN_ENOMEM;
  TN_TRY(programs_check_shard(run));
  tn_drop_commits_of_others(&t);
  TN_TRY(tn_gradients_emit(&t));
  TN_TRY(programs_dump_graph(dump, name, "gradients", model->graph));
  TN_TRY(tn_training_precision(&t));
  TN_TRY(programs_dump_graph(dump, name, "precision", model->graph));
  TN_TRY(tn_training_chunk(&t));
  TN_TRY(programs_dump_graph(dump, name, "chunk", model->graph));
  TN_TRY(tn_program_updates(which) ? tn_update_emit(&t, update) : tn_accumulate_emit(&t));
  return programs_dump_graph(dump, name, "update", model->graph);
}

/* A program without an update. The sums of WEIGH are not part of the model, so the policy does not see them.
 */
static tn_status programs_emit_forward(tn_run *run, int32_t which, tn_model *model,
                                       const tn_compile_options *dump) {
  tn_val end = (tn_val)model->graph->values.n; /* of the model */
  const char *name = tn_program_kind_name(which);
  if (which == TN_PROGRAM_WEIGH) TN_TRY(tn_model_weigh(&run->env, model));
  TN_TRY(programs_dump_graph(dump, name, "gradients", model->graph));
  TN_TRY(tn_pass_precision(&run->env, &run->settings, model->first_value, end, &model->graph));
  TN_TRY(programs_dump_graph(dump, name, "precision", model->graph));
  TN_TRY(tn_pass_chunk(&run->env, &run->settings, false, &model->graph));
  TN_TRY(programs_dump_graph(dump, name, "chunk", model->graph));
  return programs_dump_graph(dump, name, "update", model->graph);
}

/* The batch of a program; 0: it is not requested. */
static int64_t programs_batch(const tn_run *run, const tn_program_request *request, int32_t which) {
  int32_t kind = tn_program_kind(which);
  if (tn_program_phase(which) >= run->settings.n_phases) return 0;
  int32_t shorter = tn_program_shorter(which);
  if (shorter >= 0 && (!request->all_lengths || shorter >= run->settings.n_lengths - 1 ||
                       run->ini.mistakes.n > 0 /* the program of the longest length has noted them */))
    return 0;
  if (shorter >= 0 && kind == TN_PROGRAM_EVAL && run->settings.sizes) return 0; /* it has the largest */
  if (kind == TN_PROGRAM_WATCH)
    return request->watched && run->settings.run.watch > 0 ? request->batch[TN_PROGRAM_STEP] : 0;
  if (kind == TN_PROGRAM_SAMPLES)
    return request->watched && request->batch[TN_PROGRAM_EVAL] > 0 ? run->settings.run.samples : 0;
  if (kind != TN_PROGRAM_WEIGH && kind != TN_PROGRAM_MICRO) return request->batch[kind];
  return run->settings.optimizer.accumulate > 1 ? request->batch[TN_PROGRAM_STEP] : 0;
}

/* Turns the model's graph into a graph that can be compiled. */
static tn_status programs_complete_graph(tn_run *run, const tn_program_request *request, int32_t which,
                                         tn_program_set *set, tn_model *model) {
  const tn_compile_options *dump = programs_dump_options(run, request, which);
  int32_t kind = tn_program_kind(which);
  const char *name = tn_program_name(run, set, which);
  if (name == NULL) return TN_ENOMEM;
  TN_TRY(programs_dump_graph(dump, name, "model", model->graph));
  if (tn_program_updates(which) || kind == TN_PROGRAM_EVAL) TN_TRY(programs_copy_measures(set, model));
  TN_TRY(tn_program_updates(which) || kind == TN_PROGRAM_MICRO
             ? programs_emit_update(run, which, set, model, dump)
             : programs_emit_forward(run, which, model, dump));
  if (tn_program_is_incremental(which))
    TN_TRY(tn_incremental_graph(programs_batch(run, request, which), &model->graph, &set->window));
  if (kind == TN_PROGRAM_SAMPLES) TN_TRY(tn_sample_outputs(run, model->graph));
  return TN_OK;
}

/* Gives the states that no update has placed their locations. */
static tn_status programs_place_rest(tn_run *run, const tn_program_request *request, int32_t which,
                                     tn_program_set *set, tn_graph **graph) {
  if (*graph == NULL) return TN_OK; /* a mistake is noted */
  if (!tn_program_is_training(which) && tn_settings_average(&run->settings))
    TN_TRY(tn_read_averages(set->map, graph));
  TN_TRY(tn_read_gathered(set->map, graph));
  TN_TRY(tn_mapped_states_place(request->mapped, set->map, *graph));
  TN_TRY(tn_state_map_add_rest(set->map, *graph));
  return tn_low_precision_allocate(set->map, *graph);
}

/* The inputs that the program prepares on the device; n is 0 if there are none. PREDICT reads inputs of the
 * model, not samples of a source. */
static tn_status programs_prepare_inputs(tn_run *run, const tn_program_request *request, int32_t which,
                                         tn_program_set *set, tn_prepared_inputs *inputs) {
  int32_t split = tn_program_is_training(which) ? TN_SPLIT_TRAIN : TN_SPLIT_VALID;
  *inputs = (tn_prepared_inputs){.n = 0};
  if (tn_program_is_inference(which) || request->loaders[split] == NULL) return TN_OK;
  return tn_device_transforms_prepare(&set->arena, tn_loader_chain(request->loaders[split]),
                                      run->settings.data[split].where, inputs);
}

/* The schedules of options of the model. */
static tn_status programs_list_moved(const tn_run *run, tn_arena *arena, tn_moved_option **moved,
                                     int32_t *n) {
  const tn_settings *s = &run->settings;
  *moved = tn_arena_alloc(arena, tn_size_mul((size_t)s->n_schedules + 1, sizeof **moved));
  if (*moved == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < s->n_schedules; i++) {
    const tn_schedule_setting *schedule = &s->schedules[i];
    if (schedule->target != TN_SCHEDULES_LAYER && schedule->target != TN_SCHEDULES_LOSS) continue;
    const char *input = tn_arena_printf(arena, "control.%s", schedule->name + strlen("schedule."));
    const char *item = schedule->item != NULL ? schedule->item->name : NULL;
    if (input == NULL) return TN_ENOMEM;
    (*moved)[(*n)++] = (tn_moved_option){item, schedule->option, schedule->section.toward, input};
  }
  return TN_OK;
}

static tn_status programs_build_model(tn_run *run, const tn_program_request *request, int32_t which,
                                      tn_program_set *set, tn_model *model) {
  /* without a training step, adapters are merged into the weights that are loaded */
  bool training = tn_program_is_training(which), trains = request->batch[TN_PROGRAM_STEP] > 0;
  int64_t batch = tn_program_is_incremental(which) ? 1 : programs_batch(run, request, which);
  tn_prepared_inputs prepared;
  tn_moved_option *moved = NULL;
  int32_t n_moved = 0;
  TN_TRY(programs_prepare_inputs(run, request, which, set, &prepared));
  TN_TRY(programs_list_moved(run, &set->arena, &moved, &n_moved));
  const tn_model_request wanted = {.ini = &run->ini,
                                   .registry = run->registry,
                                   .ops = run->ops,
                                   .batch = batch,
                                   .length = tn_program_length(run, request, which),
                                   .ranks = tn_run_ranks(run),
                                   .micro_batches =
                                       training ? (int32_t)run->settings.optimizer.accumulate : 1,
                                   .accumulates = tn_program_kind(which) == TN_PROGRAM_MICRO,
                                   .seed = (uint64_t)run->settings.run.seed,
                                   .moved = moved,
                                   .n_moved = n_moved,
                                   .freeze = &run->settings.freeze,
                                   .epoch = tn_program_epoch(run, which),
                                   .quantize = &run->settings.quantize,
                                   .adapters = trains ? &run->settings.adapters : NULL,
                                   .training = training,
                                   .measured = !tn_program_is_inference(which),
                                   .phase = tn_program_turn(run, which),
                                   .prepared = prepared.n > 0 ? &prepared : NULL,
                                   .emit = run->emit,
                                   .user = run->emit_user};
  return tn_model_build(&run->env, &wanted, model);
}

static bool programs_is_measure(const tn_model *model, const char *output) {
  static const char *const parts[] = {"sum", "weight", "sums", "rows"};
  char name[256];
  for (int32_t i = 0; i < 4 * model->n_measures; i++) {
    snprintf(name, sizeof name, "%s.%s", model->measures[i / 4].name, parts[i % 4]);
    if (tn_text_equal(name, output)) return true;
  }
  return tn_text_equal(output, "loss");
}

/* Removes the outputs of a measured model that are no measures: the scores of a language model are larger
 * than everything else that a step copies. A value that nothing else reads stays, so that no node is in vain.
 */
static tn_status programs_drop_model_outputs(const tn_run *run, const tn_program_request *request,
                                             int32_t which, tn_model *model) {
  tn_graph *graph = model->graph;
  tn_uses uses;
  size_t n = 0;
  bool in_turn = tn_program_turn(run, which) != NULL; /* one phase has no use for what others read */
  if (request->model_outputs || model->n_measures == 0) return TN_OK;
  TN_TRY(tn_uses_create(&model->arena, graph, &uses));
  for (size_t i = 0; i < graph->outputs.n; i++) {
    const tn_goutput *output = &graph->outputs.v[i];
    bool read = uses.start[output->value + 1] > uses.start[output->value];
    if ((!read && !in_turn) || programs_is_measure(model, output->name)) graph->outputs.v[n++] = *output;
  }
  graph->outputs.n = n;
  return TN_OK;
}

/* Notes the mistakes between the model and other sections; of a model that is wrong itself, `built` NULL,
 * those that can be told without it. */
static tn_status programs_check_model(tn_run *run, const tn_program_request *request, int32_t which,
                                      const tn_model *built) {
  int32_t split = which == TN_PROGRAM_EVAL ? TN_SPLIT_VALID : TN_SPLIT_TRAIN;
  if (which != tn_program_leader(run) && which != TN_PROGRAM_EVAL) return TN_OK;
  if (built == NULL) return tn_fields_check_signature(run, split, request->loaders[split]);
  TN_TRY(tn_model_check(run, built, which != TN_PROGRAM_EVAL));
  if (tn_program_is_training(which)) TN_TRY(tn_schedules_check(run, built->graph));
  return tn_fields_check_graph(run, split, request->loaders[split], built->graph);
}

/* Where a mistake is noted, *graph stays NULL. */
static tn_status programs_build_graph(tn_run *run, const tn_program_request *request, int32_t which,
                                      tn_program_set *set, tn_graph **graph) {
  tn_model model;
  TN_TRY(tn_check_stop(&run->env));
  tn_status status = programs_build_model(run, request, which, set, &model);
  if (status == TN_EINVAL && run->emit == NULL)
    return tn_program_shorter(which) >= 0 ? tn_sizes_name_failure(run, tn_program_length(run, request, which))
                                          : programs_check_model(run, request, which, NULL);
  if (status != TN_OK) return status;
  status = programs_check_model(run, request, which, &model);
  if (status == TN_OK && tn_program_shorter(which) >= 0)
    status = tn_sizes_check_states(run, set->map, model.graph, tn_program_length(run, request, which));
  if (status == TN_OK && run->ini.mistakes.n == 0) {
    status = programs_drop_model_outputs(run, request, which, &model);
    if (status == TN_OK) status = programs_complete_graph(run, request, which, set, &model);
    if (status == TN_OK) {
      *graph = model.graph;
      model.graph = NULL;
    }
  }
  tn_model_free(&model);
  return status;
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
    if (programs_batch(run, request, which) > 0)
      TN_TRY(programs_build_graph(run, request, which, set, &graphs->v[which]));
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
        programs_batch(run, request, which) > 0) {
      TN_TRY(programs_build_graph(run, request, which, set, &graphs->v[which]));
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
    TN_TRY(programs_dump_graph(programs_dump_options(run, request, which), name, "derive", graphs->v[which]));
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
  const tn_compile_options *dump = programs_dump_options(run, request, which);
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
  if (which == programs_shown(request)) TN_TRY(tn_fused_minimum(graphs->v[which], &set->fused_bytes));
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
  set->samples = request->batch[programs_shown(request)];
  if (request->batch[TN_PROGRAM_STEP] > 0) TN_TRY(tn_programs_check_place(run, target));
  set->host_optimizer = tn_programs_can_place(run, target) &&
                        (run->settings.optimizer.place == TN_OPTIMIZER_ON_HOST || request->host_optimizer);
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
