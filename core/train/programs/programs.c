/* core/train/programs/programs.c: all programs of a run, compiled before step 1 over one map of the state. */
#include "core/exec/tune/measure.h"
#include "core/train/graphs/low_precision_copies.h"
#include "core/train/run.h"

#include <string.h>

static const char *const program_names[TN_PROGRAMS] = {
    [TN_PROGRAM_INIT] = "init",       [TN_PROGRAM_STEP] = "step",      [TN_PROGRAM_EVAL] = "eval",
    [TN_PROGRAM_PREDICT] = "predict", [TN_PROGRAM_WEIGH] = "weigh",    [TN_PROGRAM_MICRO] = "micro",
    [TN_PROGRAM_AVERAGE] = "average", [TN_PROGRAM_REFRESH] = "refresh"};

/* The graphs of the wanted programs, before compilation. */
typedef struct tn_graphs {
  tn_graph *v[TN_PROGRAMS];
} tn_graphs;

static tn_status keep_measures(tn_program_set *set, const tn_model *model) {
  set->n_measures = model->n_measures;
  set->measures =
      tn_arena_alloc(&set->arena, tn_size_mul((size_t)model->n_measures + 1, sizeof *set->measures));
  if (!set->measures) return TN_ENOMEM;
  for (int32_t i = 0; i < model->n_measures; i++) {
    set->measures[i] = model->measures[i];
    set->measures[i].name = tn_arena_strdup(&set->arena, model->measures[i].name);
    if (!set->measures[i].name) return TN_ENOMEM;
  }
  return TN_OK;
}

const char *const tn_graph_passes[] = {"model", "update", "precision", "derive", NULL};

/* What a pass makes of the training step is what people ask for; without one, of the model. */
static const tn_compile_options *dump_of(const tn_program_request *request, int32_t which) {
  int32_t shown = request->batch[TN_PROGRAM_STEP] > 0 ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT;
  return which == shown ? request->dump : NULL;
}

static tn_status dump_graph(const tn_compile_options *dump, int32_t which, const char *pass,
                            const tn_graph *graph) {
  if (!dump || !dump->dump_after) return TN_OK;
  if (*dump->dump_after && !tn_text_equal(dump->dump_after, pass)) return TN_OK;
  tn_text_addf(dump->dump, "# program %s after %s\n", program_names[which], pass);
  return tn_graph_print(graph, dump->dump);
}

static bool is_training(int32_t which) {
  return which == TN_PROGRAM_STEP || which == TN_PROGRAM_WEIGH || which == TN_PROGRAM_MICRO;
}

/* What training adds to a model. */
static tn_status emit_training(tn_run *run, int32_t which, tn_program_set *set, tn_model *model,
                               tn_update_plan *plan) {
  const tn_settings *s = &run->settings;
  uint64_t seed = (uint64_t)s->run.seed;
  if (which == TN_PROGRAM_STEP) return tn_update_emit(&run->env, &set->arena, s, seed, model, set->map, plan);
  if (which == TN_PROGRAM_MICRO)
    return tn_gather_emit(&run->env, &set->arena, s, seed, model, set->map, plan);
  plan->first_node = model->graph->nodes.n;
  return which == TN_PROGRAM_WEIGH ? tn_model_weigh(&run->env, model) : TN_OK;
}

/* From the model's graph to one that can be compiled. */
static tn_status complete_graph(tn_run *run, const tn_program_request *request, int32_t which,
                                tn_program_set *set, tn_model *model) {
  const tn_compile_options *dump = dump_of(request, which);
  tn_update_plan own, *plan = which == TN_PROGRAM_STEP ? &set->plan : &own;
  TN_TRY(dump_graph(dump, which, "model", model->graph));
  if (which == TN_PROGRAM_STEP || which == TN_PROGRAM_EVAL) TN_TRY(keep_measures(set, model));
  TN_TRY(emit_training(run, which, set, model, plan));
  TN_TRY(dump_graph(dump, which, "update", model->graph));
  size_t end = is_training(which) ? plan->first_node : SIZE_MAX;
  TN_TRY(tn_pass_precision(&run->env, &run->settings, end, &model->graph));
  TN_TRY(dump_graph(dump, which, "precision", model->graph));
  TN_TRY(tn_state_map_add_rest(set->map, model->graph));
  return tn_derived_place(set->map, model->graph);
}

/* 0: the program is not wanted. */
static int64_t batch_of(const tn_run *run, const tn_program_request *request, int32_t which) {
  if (which != TN_PROGRAM_WEIGH && which != TN_PROGRAM_MICRO) return request->batch[which];
  return run->settings.optimizer.accumulate > 1 ? request->batch[TN_PROGRAM_STEP] : 0;
}

static tn_status build_graph(tn_run *run, const tn_program_request *request, int32_t which,
                             tn_program_set *set, tn_graph **graph) {
  bool training = is_training(which), measured = which != TN_PROGRAM_PREDICT;
  tn_model_request wanted = {.ini = &run->ini,
                             .registry = run->registry,
                             .ops = run->ops,
                             .batch = batch_of(run, request, which),
                             .ranks = tn_run_ranks(run),
                             .micro_batches = training ? (int32_t)run->settings.optimizer.accumulate : 1,
                             .seed = (uint64_t)run->settings.run.seed,
                             .training = training,
                             .measured = measured,
                             .emit = run->emit,
                             .user = run->emit_user};
  tn_model model;
  TN_TRY(tn_model_build(&run->env, &wanted, &model));
  tn_status status = complete_graph(run, request, which, set, &model);
  if (status == TN_OK) {
    *graph = model.graph;
    model.graph = NULL;
  }
  tn_model_free(&model);
  return status;
}

/* [run] best must be what an epoch can be judged by. */
static tn_status check_best(tn_run *run, const tn_program_set *set) {
  const char *best = run->settings.run.best;
  if (!*best || !set->measures || tn_text_equal(best, "loss")) return TN_OK;
  tn_text names = tn_text_new(&run->env);
  for (int32_t i = 0; i < set->n_measures; i++) {
    if (tn_text_equal(set->measures[i].name, best)) {
      tn_text_free(&names);
      return TN_OK;
    }
    tn_text_addf(&names, ", %s", set->measures[i].name);
  }
  tn_section *section = tn_ini_section(&run->ini, "run");
  tn_status status = tn_failf(
      &run->env, TN_EINVAL, "%s: [run] best: there is no loss or metric '%s', expected one of loss%s",
      tn_key_where(&run->ini, section, tn_section_key(section, "best")), best, names.v ? names.v : "");
  tn_text_free(&names);
  return status;
}

static tn_status build_graphs(tn_run *run, const tn_program_request *request, tn_program_set *set,
                              tn_graphs *graphs) {
  /* the step first: it decides where the parameters lie */
  for (int32_t which = TN_PROGRAM_STEP; which < TN_PROGRAMS; which++)
    if (batch_of(run, request, which) > 0) TN_TRY(build_graph(run, request, which, set, &graphs->v[which]));
  for (int32_t which = TN_PROGRAM_STEP; which < TN_PROGRAMS; which++) {
    if (!graphs->v[which]) continue;
    TN_TRY(tn_derived_commit(set->map, graphs->v[which]));
    TN_TRY(dump_graph(dump_of(request, which), which, "derive", graphs->v[which]));
  }
  TN_TRY(tn_refresh_graph(&run->env, run->ops, set->map, &graphs->v[TN_PROGRAM_REFRESH]));
  if (graphs->v[TN_PROGRAM_STEP] || graphs->v[TN_PROGRAM_EVAL])
    TN_TRY(
        tn_average_graph(&run->env, run->ops, tn_run_ranks(run), set->map, &graphs->v[TN_PROGRAM_AVERAGE]));
  return tn_init_graph(&run->env, run->ops, (uint64_t)run->settings.run.seed, set->map,
                       &graphs->v[TN_PROGRAM_INIT]);
}

/* The step decides how parameters lie, the others take it as it is. */
static tn_status compile_one(tn_run *run, const tn_target *target, const tn_program_request *request,
                             int32_t which, tn_program_set *set, tn_graphs *graphs) {
  const tn_compile_options *dump = dump_of(request, which);
  tn_compile_options options = dump ? *dump : (tn_compile_options){.dump = NULL};
  options.arena_limit = request->arena_limit;
  options.lay = which == TN_PROGRAM_STEP ? set->map : NULL;
  options.slot_like = which != TN_PROGRAM_STEP && is_training(which) ? set->programs[TN_PROGRAM_STEP] : NULL;
  tn_status status = tn_compile(&run->env, program_names[which], run->registry, target, graphs->v[which],
                                set->map, &options, &set->programs[which]);
  if (status != TN_OK) return tn_wrap(&run->env, status, "%s program", program_names[which]);
  graphs->v[which] = NULL; /* the program's now */
  return TN_OK;
}

static tn_status compile_all(tn_run *run, const tn_target *device, const tn_program_request *request,
                             tn_program_set *set, tn_graphs *graphs) {
  tn_target target = *device;
  target.constant_state = graphs->v[TN_PROGRAM_STEP] == NULL;
  if (graphs->v[TN_PROGRAM_STEP]) TN_TRY(compile_one(run, &target, request, TN_PROGRAM_STEP, set, graphs));
  for (int32_t which = 0; which < TN_PROGRAMS; which++) {
    if (graphs->v[which]) TN_TRY(compile_one(run, &target, request, which, set, graphs));
    if (!set->programs[which]) continue;
    set->index[which] = set->n;
    set->list[set->n++] = set->programs[which];
  }
  return TN_OK;
}

tn_status tn_programs_compile(tn_run *run, const tn_target *target, const tn_program_request *request,
                              tn_program_set *set) {
  tn_graphs graphs = {{NULL}};
  memset(set, 0, sizeof *set);
  set->arena = tn_arena_new(&run->env);
  for (int32_t i = 0; i < TN_PROGRAMS; i++) set->index[i] = -1;
  tn_status status = tn_state_map_create(&run->env, &set->map);
  if (status == TN_OK) status = build_graphs(run, request, set, &graphs);
  if (status == TN_OK) status = check_best(run, set);
  if (status == TN_OK) status = tn_settings_check_sections(&run->env, run->registry, &run->ini);
  if (status == TN_OK) status = compile_all(run, target, request, set, &graphs);
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

tn_status tn_programs_average(const tn_program_set *set, tn_executor *executor) {
  int32_t index = set->index[TN_PROGRAM_AVERAGE];
  if (index < 0) return TN_OK;
  TN_TRY(tn_executor_run(executor, index, 0));
  return tn_executor_slot_wait(executor, 0);
}

void tn_programs_free(tn_run *run, tn_program_set *set) {
  (void)run;
  for (int32_t i = 0; i < TN_PROGRAMS; i++) tn_program_destroy(set->programs[i]);
  tn_state_map_destroy(set->map);
  tn_arena_free(&set->arena);
  memset(set, 0, sizeof *set);
}

int64_t tn_programs_parameters(const tn_program_set *set) {
  int64_t count = 0;
  for (size_t i = 0; i < set->map->states.n; i++)
    if (set->map->states.v[i].what == TN_STATE_PARAM) count += tn_type_count(&set->map->states.v[i].type);
  return count;
}

int32_t tn_run_slots(const tn_run *run) {
  const tn_data_setting *data = &run->settings.data[TN_SPLIT_TRAIN];
  return data->given ? (int32_t)(data->section.prefetch + run->settings.optimizer.accumulate) : 1;
}

/* [backend.NAME] */
static tn_status configure_backend(tn_env *env, void *context, tn_options *options) {
  tn_run *run = context;
  const char *name = tn_arena_printf(&run->arena, "backend.%s", options->item->name);
  if (!name) return TN_ENOMEM;
  return tn_schema_fill(env, &run->ini, tn_ini_section(&run->ini, name), &options, 1);
}

/* What stands in [backend.NAME] of the backends to try is wrong or right before any is opened. */
static tn_status check_backend_sections(tn_run *run, const tn_words *names) {
  for (int32_t i = 0; i < names->n; i++) {
    const tn_item *item = NULL;
    const void *options;
    const char *section = tn_arena_printf(&run->arena, "backend.%s", names->v[i]);
    if (!section) return TN_ENOMEM;
    if (!tn_ini_section(&run->ini, section) || !tn_registry_has(run->registry, TN_BACKEND, names->v[i]))
      continue;
    TN_TRY(tn_settings_find(&run->env, run->registry, TN_BACKEND, names->v[i], &item));
    TN_TRY(tn_settings_item(&run->env, &run->ini, "backend", item, &options));
  }
  return TN_OK;
}

/* A plan is made of what was measured before: nothing runs. */
static tn_status open_tuner(tn_run *run, tn_device *device) {
  const tn_backend_section *s = &run->settings.backend;
  if (s->autotune == TN_AUTOTUNE_NO) return TN_OK;
  char *usual = *s->tune_folder == '\0' ? tn_tune_folder(&run->env) : NULL;
  bool measure = s->autotune == TN_AUTOTUNE_YES && !run->planning;
  tn_status status = tn_tune_open(device, usual != NULL ? usual : s->tune_folder, measure);
  tn_release(&run->env, usual);
  return status;
}

/* A device without the tuner that it should have is none. */
static tn_status give_tuner(tn_run *run, tn_device **device) {
  tn_status status = open_tuner(run, *device);
  if (status == TN_OK) return TN_OK;
  tn_error_move(&run->env, &(*device)->env);
  tn_device_destroy(*device);
  *device = NULL;
  return status;
}

/* Before the backends are opened: a library of theirs may bind the thread that brings it in. */
static tn_status resolve_pin(tn_run *run, int64_t *threads, tn_ints *processors) {
  const tn_settings *s = &run->settings;
  *threads = s->run.threads;
  tn_status status = tn_pin_resolve(&run->env, &run->arena, &s->pin, threads, processors);
  return tn_wrap(&run->env, status, "%s: [run] pin", tn_settings_where(&run->ini, "run", "pin"));
}

static tn_status wrap_key(tn_run *run, tn_status status, const char *section, const char *key) {
  return tn_wrap(&run->env, status, "%s: [%s] %s", tn_settings_where(&run->ini, section, key), section, key);
}

static bool has_key(tn_run *run, const char *name, const char *key) {
  tn_section *section = tn_ini_section(&run->ini, name);
  return section != NULL && tn_section_key(section, key) != NULL;
}

/* What a backend blames for its failure stands in its own section or in [run]; else its name is to blame. */
static tn_status place_failure(tn_run *run, const tn_words *names, tn_status status) {
  const char *blamed = tn_arena_strdup(&run->arena, run->record.option);
  for (int32_t i = 0; blamed != NULL && *blamed != '\0' && i < names->n; i++) {
    const char *section = tn_arena_printf(&run->arena, "backend.%s", names->v[i]);
    if (section != NULL && has_key(run, section, blamed)) return wrap_key(run, status, section, blamed);
  }
  if (blamed != NULL && *blamed != '\0' && has_key(run, "run", blamed))
    return wrap_key(run, status, "run", blamed);
  return has_key(run, "backend", "use") ? wrap_key(run, status, "backend", "use") : status;
}

tn_status tn_run_device(tn_run *run, tn_device **device) {
  tn_words names;
  int64_t threads = 0;
  tn_ints pin;
  TN_TRY(resolve_pin(run, &threads, &pin));
  TN_TRY(tn_words_split(&run->arena, run->settings.backend.use, &names));
  TN_TRY(check_backend_sections(run, &names));
  tn_device_request request = {.names = names.v,
                               .n_names = names.n,
                               .index = run->rank,
                               .threads = (int32_t)threads,
                               .pin = pin,
                               .configure = configure_backend,
                               .context = run,
                               .uncaptured = !run->settings.backend.capture,
                               .fallback = run->settings.backend.fallback + 1,
                               .reserve = TN_DEFAULT_BACKEND};
  tn_status status = tn_device_create(&run->env, run->registry, &request, device);
  if (status == TN_OK) status = give_tuner(run, device);
  return status == TN_OK ? TN_OK : place_failure(run, &names, status);
}
