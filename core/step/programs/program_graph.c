/* core/step/programs/program_graph.c: see program_graph.h. */
#include "core/step/programs/program_graph.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/uses.h"
#include "core/step/checks/check_model.h"
#include "core/step/checks/check_sizes.h"
#include "core/step/graphs/device_transforms.h"
#include "core/step/graphs/incremental.h"
#include "core/step/graphs/sample_outputs.h"
#include "core/step/graphs/streamed_states.h"
#include "core/step/programs/program_kinds.h"

/* ---- dumps ---- */

const char *const tn_graph_passes[] = {"model", "gradients", "precision", "chunk", "update", "derive", NULL};

const tn_compile_options *tn_program_dump_options(const tn_run *run, const tn_program_request *request,
                                                  int32_t which) {
  int32_t shown = tn_program_shown(request);
  bool in_turn = tn_program_turn(run, which) != NULL && tn_program_kind(which) == shown;
  return which == shown || in_turn ? request->dump : NULL;
}

tn_status tn_program_dump_graph(const tn_compile_options *dump, const char *name, const char *pass,
                                const tn_graph *graph) {
  if (dump == NULL || dump->dump_after == NULL) return TN_OK;
  if (*dump->dump_after && !tn_text_equal(dump->dump_after, pass)) return TN_OK;
  tn_text_addf(dump->dump, "# program %s after %s\n", name, pass);
  return tn_graph_print(graph, dump->dump);
}

/* ---- the update ---- */

/* [distributed] shard divides vectors of all parameters, whose elements are updated independently. */
static tn_status program_graph_check_shard(tn_run *run) {
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
static tn_update_info *program_graph_update_info(const tn_run *run, int32_t which, tn_program_set *set,
                                                 tn_update_info *unused) {
  if (tn_program_kind(which) == TN_PROGRAM_WATCH) return unused;
  if (tn_program_turn(run, which) != NULL) return &set->turns[tn_program_phase(which)];
  return which == tn_program_leader(run) ? &set->update : unused;
}

const tn_update_info *tn_phase_update(const tn_program_set *set, const tn_settings *settings, int32_t phase) {
  return settings->n_turns > 0 ? &set->turns[phase] : &set->update;
}

/* Appends gradients and update to the model. */
static tn_status program_graph_emit_update(tn_run *run, const tn_program_request *request, int32_t which,
                                           tn_program_set *set, tn_model *model,
                                           const tn_compile_options *dump) {
  tn_update_info unused, *update = program_graph_update_info(run, which, set, &unused);
  const tn_settings settings = tn_settings_of_turn(&run->settings, tn_program_phase(which));
  const char *name = tn_program_name(run, set, which);
  bool watches = tn_program_kind(which) == TN_PROGRAM_WATCH;
  tn_training_graph t = {.env = &run->env,
                         .arena = &set->arena,
                         .settings = &settings,
                         .cuts = run->cuts,
                         .epoch = tn_program_epoch(run, which),
                         .host = set->host_optimizer,
                         .either_place = set->either_place,
                         .seed = (uint64_t)run->settings.run.seed,
                         .model = model,
                         .map = set->map,
                         .watched = watches ? &set->watched[tn_program_phase(which)] : NULL};
  if (name == NULL) return TN_ENOMEM;
  TN_TRY(program_graph_check_shard(run));
  tn_drop_commits_of_others(&t);
  TN_TRY(tn_gradients_emit(&t));
  TN_TRY(tn_program_dump_graph(dump, name, "gradients", model->graph));
  TN_TRY(tn_training_precision(&t));
  TN_TRY(tn_program_dump_graph(dump, name, "precision", model->graph));
  TN_TRY(tn_training_chunk(&t));
  TN_TRY(tn_program_dump_graph(dump, name, "chunk", model->graph));
  if (request->stream)
    TN_TRY(tn_streamed_states_place(set->map, model->graph, request->kept_bytes, &run->settings.freeze));
  TN_TRY(tn_program_updates(which) ? tn_update_emit(&t, update) : tn_accumulate_emit(&t));
  return tn_program_dump_graph(dump, name, "update", model->graph);
}

/* A program without an update. The sums of WEIGH are not part of the model, so the policy does not see them.
 */
static tn_status program_graph_emit_forward(tn_run *run, int32_t which, tn_model *model,
                                            const tn_compile_options *dump) {
  tn_val end = (tn_val)model->graph->values.n; /* of the model */
  const char *name = tn_program_kind_name(which);
  if (which == TN_PROGRAM_WEIGH) TN_TRY(tn_model_weigh(&run->env, model));
  TN_TRY(tn_program_dump_graph(dump, name, "gradients", model->graph));
  TN_TRY(tn_pass_precision(&run->env, &run->settings, model->first_value, end, &model->graph));
  TN_TRY(tn_program_dump_graph(dump, name, "precision", model->graph));
  TN_TRY(tn_pass_chunk(&run->env, &run->settings, false, &model->graph));
  TN_TRY(tn_program_dump_graph(dump, name, "chunk", model->graph));
  return tn_program_dump_graph(dump, name, "update", model->graph);
}

/* ---- the model ---- */

static tn_status program_graph_copy_measures(tn_program_set *set, const tn_model *model) {
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

/* Turns the model's graph into a graph that can be compiled. */
static tn_status program_graph_complete_graph(tn_run *run, const tn_program_request *request, int32_t which,
                                              tn_program_set *set, tn_model *model) {
  const tn_compile_options *dump = tn_program_dump_options(run, request, which);
  int32_t kind = tn_program_kind(which);
  const char *name = tn_program_name(run, set, which);
  if (name == NULL) return TN_ENOMEM;
  TN_TRY(tn_program_dump_graph(dump, name, "model", model->graph));
  if (tn_program_updates(which) || kind == TN_PROGRAM_EVAL) TN_TRY(program_graph_copy_measures(set, model));
  TN_TRY(tn_program_updates(which) || kind == TN_PROGRAM_MICRO
             ? program_graph_emit_update(run, request, which, set, model, dump)
             : program_graph_emit_forward(run, which, model, dump));
  if (tn_program_is_incremental(which))
    TN_TRY(tn_incremental_graph(tn_program_batch(run, request, which), &model->graph, &set->window));
  if (kind == TN_PROGRAM_SAMPLES) TN_TRY(tn_sample_outputs(run, model->graph));
  return TN_OK;
}

/* The inputs that the program prepares on the device; n may be 0. PREDICT reads inputs of the
 * model, not samples of a source. */
static tn_status program_graph_prepare_inputs(tn_run *run, const tn_program_request *request, int32_t which,
                                              tn_program_set *set, tn_prepared_inputs *inputs) {
  int32_t split = tn_program_is_training(which) ? TN_SPLIT_TRAIN : TN_SPLIT_VALID;
  *inputs = (tn_prepared_inputs){.n = 0};
  if (tn_program_is_inference(which) || request->loaders[split] == NULL) return TN_OK;
  return tn_device_transforms_prepare(&set->arena, tn_loader_chain(request->loaders[split]),
                                      run->settings.data[split].where, inputs);
}

/* The schedules of options of the model. */
static tn_status program_graph_list_moved(const tn_run *run, tn_arena *arena, tn_moved_option **moved,
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

static tn_status program_graph_build_model(tn_run *run, const tn_program_request *request, int32_t which,
                                           tn_program_set *set, tn_model *model) {
  /* without a training step, adapters are merged into the weights that are loaded */
  bool training = tn_program_is_training(which), trains = request->batch[TN_PROGRAM_STEP] > 0;
  int64_t batch = tn_program_is_incremental(which) ? 1 : tn_program_batch(run, request, which);
  tn_prepared_inputs prepared;
  tn_moved_option *moved = NULL;
  int32_t n_moved = 0;
  TN_TRY(program_graph_prepare_inputs(run, request, which, set, &prepared));
  TN_TRY(program_graph_list_moved(run, &set->arena, &moved, &n_moved));
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

static bool program_graph_is_measure(const tn_model *model, const char *output) {
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
static tn_status program_graph_drop_model_outputs(const tn_run *run, const tn_program_request *request,
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
    if ((!read && !in_turn) || program_graph_is_measure(model, output->name)) graph->outputs.v[n++] = *output;
  }
  graph->outputs.n = n;
  return TN_OK;
}

/* Notes the mistakes between the model and other sections; of a model that is wrong itself, `built` NULL,
 * those that can be told without it. */
static tn_status program_graph_check_model(tn_run *run, const tn_program_request *request, int32_t which,
                                           const tn_model *built) {
  int32_t split = which == TN_PROGRAM_EVAL ? TN_SPLIT_VALID : TN_SPLIT_TRAIN;
  if (which != tn_program_leader(run) && which != TN_PROGRAM_EVAL) return TN_OK;
  if (built == NULL) return tn_fields_check_signature(run, split, request->loaders[split]);
  TN_TRY(tn_model_check(run, built, which != TN_PROGRAM_EVAL));
  if (tn_program_is_training(which)) TN_TRY(tn_schedules_check(run, built->graph));
  return tn_fields_check_graph(run, split, request->loaders[split], built->graph);
}

tn_status tn_program_build_graph(tn_run *run, const tn_program_request *request, int32_t which,
                                 tn_program_set *set, tn_graph **graph) {
  tn_model model;
  TN_TRY(tn_check_stop(&run->env));
  tn_status status = program_graph_build_model(run, request, which, set, &model);
  if (status == TN_EINVAL && run->emit == NULL)
    return tn_program_shorter(which) >= 0 ? tn_sizes_name_failure(run, tn_program_length(run, request, which))
                                          : program_graph_check_model(run, request, which, NULL);
  if (status != TN_OK) return status;
  status = program_graph_check_model(run, request, which, &model);
  if (status == TN_OK && tn_program_shorter(which) >= 0)
    status = tn_sizes_check_states(run, set->map, model.graph, tn_program_length(run, request, which));
  if (status == TN_OK && run->ini.mistakes.n == 0) {
    status = program_graph_drop_model_outputs(run, request, which, &model);
    if (status == TN_OK) status = program_graph_complete_graph(run, request, which, set, &model);
    if (status == TN_OK) {
      *graph = model.graph;
      model.graph = NULL;
    }
  }
  tn_model_free(&model);
  return status;
}
