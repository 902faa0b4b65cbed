/* core/train/loop/open_training.c: everything that a training run needs is made, on one rank. */
#include "core/train/loop/training.h"

#include <math.h>
#include <string.h>

#include "core/train/programs/plan_file.h"

/* ---- what a rank makes alone ---- */

static int64_t planned_steps(const tn_fit *t) {
  const tn_run_section *run = &t->run->settings.run;
  int64_t steps = t->steps_per_epoch > 0 && run->epochs > INT64_MAX / t->steps_per_epoch
                      ? INT64_MAX
                      : run->epochs * t->steps_per_epoch;
  if (run->max_steps > 0 && run->max_steps < steps) steps = run->max_steps;
  return run->fast_dev_run && steps > 1 ? 1 : steps;
}

static tn_status build_programs(tn_fit *t) {
  tn_run *run = t->run;
  const tn_data_setting *data = run->settings.data;
  tn_program_request request = {{0}};
  if (!data[TN_SPLIT_TRAIN].given)
    return tn_failf(&run->env, TN_EINVAL, "%s: no [data] source, expected one, for example source = digits",
                    run->ini.path);
  TN_TRY(tn_run_share(run, TN_SPLIT_TRAIN, &request.batch[TN_PROGRAM_STEP]));
  if (data[TN_SPLIT_VALID].given) TN_TRY(tn_run_share(run, TN_SPLIT_VALID, &request.batch[TN_PROGRAM_EVAL]));
  TN_TRY(tn_programs_build(run, &t->device->target, &request, &t->set));
  t->slots = tn_run_slots(run);
  t->micro_batches = (int32_t)run->settings.optimizer.accumulate;
  /* a device with memory of its own computes while the host goes on; elsewhere there is nothing to gain */
  bool late = !t->device->target.properties.host_addressable;
  t->most_ahead = late && t->slots > 2 * t->micro_batches ? TN_MOST_AHEAD : 0;
  return tn_executor_create(&run->env, t->device, t->set.map, t->set.list, t->set.n, t->slots, &t->executor);
}

static tn_status make_feeders(tn_fit *t) {
  tn_run *run = t->run;
  tn_status status = tn_feeder_create(run, TN_SPLIT_TRAIN, t->executor, t->set.index[TN_PROGRAM_STEP],
                                      t->set.programs[TN_PROGRAM_STEP], t->slots, &t->train);
  TN_TRY(tn_feeder_required(run, status));
  t->steps_per_epoch = tn_feeder_updates(t->train);
  t->steps = planned_steps(t);
  if (!t->set.programs[TN_PROGRAM_EVAL]) return TN_OK;
  status = tn_feeder_create(run, TN_SPLIT_VALID, t->executor, t->set.index[TN_PROGRAM_EVAL],
                            t->set.programs[TN_PROGRAM_EVAL], t->slots, &t->valid);
  /* a source without validation data is fine unless [data.valid] asked for it */
  if (status == TN_EUNAVAILABLE && !tn_ini_section(&run->ini, "data.valid")) {
    tn_logf(&run->env, TN_LOG_INFO, "no validation: %s", tn_error_text(&run->env));
    return TN_OK;
  }
  return tn_feeder_required(run, status);
}

/* Likewise for all micro-batches but the last. */
static tn_status bind_micro_batches(tn_fit *t) {
  tn_arena *arena = &t->set.arena;
  int32_t weigh = t->set.index[TN_PROGRAM_WEIGH], micro = t->set.index[TN_PROGRAM_MICRO];
  for (int32_t i = 0; i <= TN_MOST_AHEAD; i++) {
    t->ahead[i].slots = tn_arena_alloc(arena, (size_t)t->micro_batches * sizeof *t->ahead[i].slots);
    if (!t->ahead[i].slots) return TN_ENOMEM;
  }
  if (t->micro_batches == 1) return TN_OK;
  TN_TRY(tn_controls_bind(arena, t->executor, weigh, t->slots, &t->set.plan, &t->weigh_controls));
  TN_TRY(tn_controls_bind(arena, t->executor, micro, t->slots, &t->set.plan, &t->micro_controls));
  return tn_readings_bind(arena, t->executor, micro, t->slots, &t->set, &t->micro_readings);
}

/* What the steps read and write in each slot, found before the first of them. */
static tn_status bind_slots(tn_fit *t) {
  tn_arena *arena = &t->set.arena;
  int32_t step = t->set.index[TN_PROGRAM_STEP], eval = t->set.index[TN_PROGRAM_EVAL];
  TN_TRY(tn_controls_bind(arena, t->executor, step, t->slots, &t->set.plan, &t->step_controls));
  TN_TRY(tn_readings_bind(arena, t->executor, step, t->slots, &t->set, &t->step_readings));
  TN_TRY(bind_micro_batches(t));
  TN_TRY(tn_tally_init(arena, &t->set, &t->epoch_tally));
  TN_TRY(tn_tally_init(arena, &t->set, &t->step_tally));
  TN_TRY(tn_tally_init(arena, &t->set, &t->valid_tally));
  if (!t->valid) return TN_OK;
  TN_TRY(tn_controls_bind(arena, t->executor, eval, t->slots, &t->set.plan, &t->eval_controls));
  return tn_readings_bind(arena, t->executor, eval, t->slots, &t->set, &t->eval_readings);
}

tn_status tn_fit_set_up(tn_fit *t) {
  TN_TRY(build_programs(t));
  TN_TRY(make_feeders(t));
  return bind_slots(t);
}

void tn_fit_tear_down(tn_fit *t) {
  tn_watch_stop(t->watch);
  tn_feeder_destroy(t->train);
  tn_feeder_destroy(t->valid);
  tn_executor_destroy(t->executor);
  tn_comm_close(t->comm);
  tn_programs_free(t->run, &t->set);
  tn_device_destroy(t->device);
  tn_release(&t->run->env, t->folder);
}

/* ---- the state to start from ---- */

static tn_status resume(tn_fit *t) {
  t->saved = true;
  TN_TRY(tn_checkpoint_resume(t->run, t->executor, &t->set, t->folder, &t->progress));
  tn_tally_restore(&t->epoch_tally, &t->progress.tally);
  tn_tally_restore(&t->epoch_tally, &t->progress.tally);
  if (!t->run->settings.run.fast_dev_run)
    return tn_plan_keep(t->run, t->device, &t->set, t->slots, t->folder);
  tn_release(&t->run->env, t->folder); /* which writes nothing */
  t->folder = NULL;
  return TN_OK;
}

/* What only rank 0 does. */
static tn_status open_folder(tn_fit *t) {
  tn_run *run = t->run;
  if (run->resume) TN_TRY(tn_run_folder_resume(run, &t->folder));
  if (t->folder) return resume(t);
  TN_TRY(tn_weights_load_configured(run, t->executor, t->set.map));
  TN_TRY(tn_run_folder_make(run, &t->folder));
  return t->folder ? tn_plan_keep(run, t->device, &t->set, t->slots, t->folder) : TN_OK;
}

/* A region of rank 0's becomes everybody's. */
static tn_status share_region(tn_fit *t, const tn_region *region) {
  tn_env *env = &t->run->env;
  size_t bytes = tn_size_mul((size_t)region->count, tn_dtype_size(region->dtype));
  char *path = tn_arena_printf(&t->set.arena, "@%s", region->name);
  void *values = tn_alloc(env, bytes + 1);
  bool first = t->run->rank == 0;
  tn_status status = path && values ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && first) status = tn_executor_read(t->executor, path, values, bytes);
  if (status == TN_OK) status = tn_ranks_share(t->ranks, env, t->run->rank, values, bytes);
  if (status == TN_OK && !first) status = tn_executor_write(t->executor, path, values, bytes);
  tn_release(env, values);
  return status;
}

/* What rank 0 tells the others of where it starts from. */
typedef struct tn_beginning {
  tn_progress progress; /* but for the tally, whose numbers are sent by themselves */
  int64_t steps, samples;
  bool loaded, writes;
} tn_beginning;

static tn_status share_progress(tn_fit *t, tn_beginning *begin) {
  tn_run *run = t->run;
  tn_tally *tally = &t->epoch_tally;
  size_t bytes = (size_t)tally->n * sizeof(double);
  *begin = (tn_beginning){.progress = t->progress,
                          .steps = tally->steps,
                          .samples = tally->samples,
                          .loaded = t->saved || *run->settings.weights.file,
                          .writes = t->folder != NULL};
  begin->progress.tally = (tn_tally){.n = 0};
  TN_TRY(tn_ranks_share(t->ranks, &run->env, run->rank, begin, sizeof *begin));
  TN_TRY(tn_ranks_share(t->ranks, &run->env, run->rank, tally->sum, bytes));
  TN_TRY(tn_ranks_share(t->ranks, &run->env, run->rank, tally->weight, bytes));
  t->progress = begin->progress;
  t->averaged_at = t->progress.step; /* all ranks start from the same */
  t->writes = begin->writes;
  tally->steps = begin->steps;
  tally->samples = begin->samples;
  return TN_OK;
}

/* Initial values are the same everywhere by themselves; what was loaded comes from rank 0, who alone has
 * read it. */
static tn_status share_state(tn_fit *t) {
  tn_run *run = t->run;
  tn_beginning begin;
  TN_TRY(share_progress(t, &begin));
  for (size_t r = 0; begin.loaded && tn_run_ranks(run) > 1 && r < t->set.map->regions.n; r++)
    TN_TRY(share_region(t, &t->set.map->regions.v[r]));
  return TN_OK;
}

static tn_status start_watch(tn_fit *t) {
  tn_run *run = t->run;
  tn_run_info info = {.struct_size = sizeof info,
                      .name = run->settings.run.name,
                      .folder = t->folder ? t->folder : "",
                      .epochs = run->settings.run.epochs,
                      .steps = t->steps,
                      .steps_per_epoch = t->steps_per_epoch,
                      .batch = run->settings.data[TN_SPLIT_TRAIN].section.batch,
                      .terminal = run->terminal_columns > 0,
                      .terminal_columns = run->terminal_columns,
                      .first_step = t->progress.step,
                      .epoch_ended = t->progress.ended};
  return tn_watch_start(run, &info, &t->watch);
}

tn_status tn_fit_start(tn_fit *t) {
  tn_run *run = t->run;
  TN_TRY(tn_devices_compare_plans(t->ranks, &run->env, run->rank, tn_devices_plan_hash(&t->set)));
  TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(t->executor, 0));
  if (run->rank == 0) TN_TRY(open_folder(t));
  TN_TRY(share_state(t));
  TN_TRY(tn_programs_refresh(&t->set, t->executor));
  return run->rank == 0 ? start_watch(t) : TN_OK;
}

tn_status tn_fit_rewind(tn_fit *t) {
  tn_run *run = t->run;
  tn_status status = TN_OK;
  TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(t->executor, 0));
  t->progress = (tn_progress){.best = NAN, .ended = true};
  if (run->rank == 0)
    status = t->folder && t->saved ? tn_checkpoint_resume(run, t->executor, &t->set, t->folder, &t->progress)
                                   : tn_weights_load_configured(run, t->executor, t->set.map);
  if (status != TN_OK) return status;
  TN_TRY(share_state(t));
  return tn_programs_refresh(&t->set, t->executor);
}
