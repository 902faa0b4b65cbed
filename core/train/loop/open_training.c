/* core/train/loop/open_training.c: prepares a training run on one rank: programs, loaders, initial state. */
#include "core/train/loop/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"

#include "core/records/checkpoints/check_place.h"
#include "core/records/runs/plan_file.h"
#include "core/records/runs/run_differences.h"
#include "core/records/runs/run_folder.h"
#include "core/records/runs/weights_file.h"
#include "core/distributed/ranks/devices.h"
#include "core/distributed/ranks/release.h"
#include "core/train/feed/find_batch_run.h"
#include "core/train/loop/steps_per_launch.h"

/* ---- what a rank makes alone ---- */

/* Launches of several steps depend on the time of the compiled step. */
static int32_t training_count_slots(void *context) {
  tn_training *t = context;
  t->steps_per_launch = tn_steps_per_launch(t->run, t->device, &t->set);
  t->slots = tn_run_input_slots(t->run, t->steps_per_launch);
  return t->slots;
}

/* The batch and the loader of a split. A mistake is noted, and told with those of the model, which is then
 * built for its mistakes alone. */
static tn_status training_open_split(tn_training *t, int32_t split, int32_t which,
                                     tn_program_request *request) {
  tn_run *run = t->run;
  if (!run->settings.data[split].given) return TN_OK;
  tn_status status = tn_run_rank_batch(run, split, &request->batch[which]);
  TN_TRY(tn_ini_note(&run->env, &run->ini, status));
  if (request->batch[which] == 0) request->batch[which] = 1; /* fewer samples than devices: noted above */
  status =
      tn_feeder_open_loader(run, split, &t->device->target, tn_run_most_input_slots(run), &t->loaders[split]);
  request->loaders[split] = t->loaders[split];
  return tn_ini_note(&run->env, &run->ini, status);
}

static tn_status training_build_programs(tn_training *t) {
  tn_run *run = t->run;
  tn_program_request request = {
      .watched = true, .all_lengths = true, .count_slots = training_count_slots, .context = t};
  TN_TRY(tn_plan_file_read(run, t->device, &request.choices));
  TN_TRY(tn_run_find_batch(run, t->device));
  run->learnt = NULL;
  if (run->resume != NULL) TN_TRY(tn_weights_read_learnt(run, run->resume));
  if (!run->settings.data[TN_SPLIT_TRAIN].given) {
    tn_status status =
        tn_failf(&run->env, TN_EINVAL, "%s: no [data] source, expected one, for example source = digits",
                 run->ini.path);
    TN_TRY(tn_ini_note(&run->env, &run->ini, status));
    request.batch[TN_PROGRAM_STEP] = 1;
  }
  TN_TRY(training_open_split(t, TN_SPLIT_TRAIN, TN_PROGRAM_STEP, &request));
  TN_TRY(training_open_split(t, TN_SPLIT_VALID, TN_PROGRAM_EVAL, &request));
  t->micro_batches = (int32_t)run->settings.optimizer.accumulate;
  TN_TRY(tn_programs_open(run, &run->env, t->device, &request, &t->set, &t->executor));
  if (t->steps_per_launch > 1)
    tn_logf(&run->env, TN_LOG_INFO, "%d steps are launched at once", (int)t->steps_per_launch);
  /* a device with its own memory computes while the host prepares the next step */
  bool late = !t->device->target.properties.host_addressable;
  t->max_ahead = late && t->slots > 2 * t->micro_batches ? t->steps_per_launch : 0;
  return TN_OK;
}

/* A file whose epochs were reduced for a short try is a frequent case. */
static void training_warn_warmup(const tn_training *t) {
  const tn_run *run = t->run;
  const tn_step_position start = tn_training_at(t, 0);
  int64_t warmup = tn_schedule_warmup_steps(run->settings.schedule, &start);
  tn_section *section = tn_ini_section((tn_ini *)&run->ini, "schedule");
  const tn_key *key = section != NULL ? tn_section_key(section, "warmup") : NULL;
  if (run->rank != 0 || run->settings.run.fast_dev_run || warmup < t->steps || key == NULL) return;
  if (t->steps < 2 || warmup == 0) return;
  tn_logf(&run->env, TN_LOG_WARN,
          "%s: warmup = %lld, but the run has %lld steps: the learning rate only rises",
          tn_key_where((tn_ini *)&run->ini, section, key), (long long)warmup, (long long)t->steps);
}

static tn_status training_create_feeders(tn_training *t) {
  tn_run *run = t->run;
  int32_t step = tn_input_program(&run->settings);
  tn_status status = tn_feeder_create(run, TN_SPLIT_TRAIN, &t->loaders[TN_SPLIT_TRAIN], t->executor,
                                      t->set.index[step], t->set.programs[step], t->slots, &t->train);
  TN_TRY(tn_feeder_require(run, status));
  t->size = run->settings.n_lengths - 1;
  TN_TRY(tn_training_plan_steps(t));
  training_warn_warmup(t);
  if (t->set.programs[TN_PROGRAM_EVAL] == NULL) return TN_OK;
  status =
      tn_feeder_create(run, TN_SPLIT_VALID, &t->loaders[TN_SPLIT_VALID], t->executor,
                       t->set.index[TN_PROGRAM_EVAL], t->set.programs[TN_PROGRAM_EVAL], t->slots, &t->valid);
  /* missing validation data is an error only if [data.valid] exists */
  if (status == TN_EUNAVAILABLE && tn_ini_section(&run->ini, "data.valid") == NULL) {
    tn_logf(&run->env, TN_LOG_INFO, "no validation: %s", tn_error_text(&run->env));
    return TN_OK;
  }
  return tn_feeder_require(run, status);
}

/* The control blocks and outputs of all micro-batches but the last. */
static tn_status training_bind_micro_batches(tn_training *t) {
  tn_arena *arena = &t->set.arena;
  int32_t weigh = t->set.index[TN_PROGRAM_WEIGH];
  for (int32_t i = 0; i < TN_MAX_STEPS_AHEAD; i++) {
    t->ahead[i].slots = tn_arena_alloc(arena, (size_t)t->micro_batches * sizeof *t->ahead[i].slots);
    if (t->ahead[i].slots == NULL) return TN_ENOMEM;
  }
  if (t->micro_batches == 1) return TN_OK;
  return tn_control_block_bind(arena, t->executor, weigh, t->slots, &t->set.update, &t->weigh_block);
}

static tn_status training_bind_programs(tn_training *t, int32_t step, int32_t micro,
                                        const tn_update_info *update, tn_phase_slots *p) {
  tn_arena *arena = &t->set.arena;
  TN_TRY(tn_control_block_bind(arena, t->executor, step, t->slots, update, &p->step_block));
  TN_TRY(tn_measure_outputs_bind(arena, t->executor, step, t->slots, &t->set, &p->step_outputs));
  if (t->micro_batches == 1) return TN_OK;
  TN_TRY(tn_control_block_bind(arena, t->executor, micro, t->slots, update, &p->micro_block));
  return tn_measure_outputs_bind(arena, t->executor, micro, t->slots, &t->set, &p->micro_outputs);
}

static tn_status training_bind_phase(tn_training *t, int32_t phase) {
  return training_bind_programs(t, t->set.index[tn_phase_program(TN_PROGRAM_STEP, phase)],
                                t->set.index[tn_phase_program(TN_PROGRAM_MICRO, phase)],
                                tn_phase_update(&t->set, &t->run->settings, phase), &t->phases[phase]);
}

static tn_status training_bind_watch(tn_training *t, int32_t phase) {
  tn_watch_slots *w = &t->watch[phase];
  const tn_update_info *update = tn_phase_update(&t->set, &t->run->settings, phase);
  int32_t index = t->set.index[tn_phase_program(TN_PROGRAM_WATCH, phase)];
  if (index < 0) return TN_OK;
  TN_TRY(tn_control_block_bind(&t->set.arena, t->executor, index, t->slots, update, &w->slots.step_block));
  TN_TRY(
      tn_measure_outputs_bind(&t->set.arena, t->executor, index, t->slots, &t->set, &w->slots.step_outputs));
  return tn_watch_values_bind(t->run, &t->set, t->executor, phase, t->slots, &w->values);
}

static tn_status training_bind_length(tn_training *t, int32_t k) {
  const tn_settings *s = &t->run->settings;
  return training_bind_programs(t, t->set.index[tn_length_program(s, TN_PROGRAM_STEP, k)],
                                t->set.index[tn_length_program(s, TN_PROGRAM_MICRO, k)], &t->set.update,
                                &t->shorter[k]);
}

/* Binds the control blocks and outputs of all slots, so that a step looks up no names. */
static tn_status training_bind_slots(tn_training *t) {
  tn_arena *arena = &t->set.arena;
  TN_TRY(training_bind_micro_batches(t));
  for (int32_t phase = 0; phase < t->run->settings.n_phases; phase++) TN_TRY(training_bind_phase(t, phase));
  for (int32_t phase = 0; phase < t->run->settings.n_phases; phase++) TN_TRY(training_bind_watch(t, phase));
  for (int32_t k = 0; k < t->run->settings.n_lengths - 1; k++) TN_TRY(training_bind_length(t, k));
  tn_training_enter_phase(t, 1);
  TN_TRY(tn_metric_sums_init(arena, &t->set, &t->epoch_sums));
  TN_TRY(tn_metric_sums_init(arena, &t->set, &t->step_sums));
  TN_TRY(tn_metric_sums_init(arena, &t->set, &t->valid_sums));
  if (t->valid == NULL) return TN_OK;
  return tn_validation_bind(t->run, &t->set, t->executor, t->slots, t->eval);
}

tn_status tn_training_prepare(tn_training *t) {
  TN_TRY(training_build_programs(t));
  TN_TRY(training_create_feeders(t));
  TN_TRY(tn_training_open_profile(t));
  return training_bind_slots(t);
}

tn_validation tn_training_validation(const tn_training *t) {
  return (tn_validation){.executor = t->executor,
                         .programs = t->eval,
                         .feeder = t->valid,
                         .max_batches = t->run->settings.run.fast_dev_run ? 1 : 0,
                         .ranks = t->ranks};
}

static void training_stop(tn_training *t) {
  tn_observers_stop(t->observers);
  tn_samples_close(t->samples);
  tn_feeder_destroy(t->train);
  tn_feeder_destroy(t->valid);
  for (int32_t split = 0; split < 2; split++) tn_loader_destroy(t->loaders[split]);
}

static tn_rank_handles training_handles(const void *context, int32_t local) {
  const tn_training *t = (const tn_training *)context + local;
  return (tn_rank_handles){.executor = t->executor, .comm = atomic_load(&t->comm), .device = t->device};
}

void tn_trainings_release(tn_training *trainings, int32_t n) {
  for (int32_t r = 0; r < n; r++) training_stop(&trainings[r]);
  tn_ranks_release_devices(training_handles, trainings, n);
  for (int32_t r = 0; r < n; r++) {
    tn_training *t = &trainings[r];
    tn_training_release_profile(t);
    tn_programs_free(t->run, &t->set);
    tn_update_sizes_free(&t->run->env, &t->sizes);
    tn_release(&t->run->env, t->folder);
  }
}

/* ---- the state to start from ---- */

static tn_status training_resume(tn_training *t) {
  t->saved = t->resumed = true;
  if (!t->run->settings.run.fast_dev_run) TN_TRY(tn_checkpoint_check_place(t->run, &t->set, t->folder));
  TN_TRY(tn_checkpoint_resume(t->run, t->executor, &t->set, t->folder, &t->progress));
  TN_TRY(tn_run_check_thaw(t->run, t->folder, t->progress.epoch + (t->progress.batch > 0)));
  tn_metric_sums_copy(&t->epoch_sums, &t->progress.sums);
  TN_TRY(tn_training_move_position(t, true));
  if (!t->run->settings.run.fast_dev_run) {
    TN_TRY(tn_run_config_keep(t->run, t->folder));
    return tn_plan_file_keep(t->run, t->device, &t->set, t->slots, t->folder);
  }
  tn_release(&t->run->env, t->folder); /* fast_dev_run writes nothing */
  t->folder = NULL;
  return TN_OK;
}

/* The run folder and loaded state, on rank 0 only. */
static tn_status training_open_folder(void *context) {
  tn_training *t = context;
  tn_run *run = t->run;
  if (run->resume) TN_TRY(tn_run_folder_find(run, &t->folder));
  if (t->folder) return training_resume(t);
  if (run->resume_asked)
    TN_TRY(tn_run_remark(run, "there is no run '%s' with a checkpoint to resume: a new one begins",
                         run->settings.run.name));
  TN_TRY(tn_weights_load_configured(run, t->executor, t->set.map));
  TN_TRY(tn_run_folder_create(run, &t->folder));
  if (t->folder == NULL) return TN_OK;
  TN_TRY(tn_checkpoint_check_place(run, &t->set, t->folder));
  return tn_plan_file_keep(run, t->device, &t->set, t->slots, t->folder);
}

/* Copies a region of rank 0 to all ranks through their hosts. */
static tn_status training_broadcast_by_hosts(tn_training *t, const tn_region *region) {
  tn_env *env = &t->run->env;
  size_t bytes = tn_region_bytes(region);
  char *path = tn_arena_printf(&t->set.arena, "@%s", region->name);
  void *values = tn_alloc(env, bytes + 1);
  bool first = t->run->rank == 0;
  tn_status status = path && values ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && first) status = tn_executor_read(t->executor, path, values, bytes);
  if (status == TN_OK) status = tn_ranks_broadcast(t->ranks, env, t->run->rank, "the state", values, bytes);
  if (status == TN_OK && !first) status = tn_executor_write(t->executor, path, values, bytes);
  tn_release(env, values);
  return status;
}

/* Copies a region of rank 0 to all ranks. The links between devices are faster than those between hosts. */
static tn_status training_broadcast_region(tn_training *t, int32_t region) {
  tn_status status = tn_executor_broadcast_region(t->executor, region);
  return status == TN_EUNSUPPORTED ? training_broadcast_by_hosts(t, &t->set.map->regions.v[region]) : status;
}

/* The starting position that rank 0 sends to the other ranks. */
typedef struct tn_beginning {
  tn_progress progress; /* without the metric sums, which are sent separately */
  int64_t steps, samples;
  bool loaded, writes;
} tn_beginning;

static tn_status training_broadcast_progress(tn_training *t, tn_beginning *begin) {
  tn_run *run = t->run;
  tn_metric_sums *sums = &t->epoch_sums;
  size_t bytes = (size_t)sums->n * sizeof(double);
  *begin = (tn_beginning){.progress = t->progress,
                          .steps = sums->steps,
                          .samples = sums->samples,
                          .loaded = t->saved || *run->settings.weights.file,
                          .writes = t->folder != NULL};
  begin->progress.sums = (tn_metric_sums){.n = 0};
  TN_TRY(tn_ranks_broadcast(t->ranks, &run->env, run->rank, "the position", begin, sizeof *begin));
  TN_TRY(tn_ranks_broadcast(t->ranks, &run->env, run->rank, "metrics of the epoch", sums->sum, bytes));
  TN_TRY(tn_ranks_broadcast(t->ranks, &run->env, run->rank, "metrics of the epoch", sums->weight, bytes));
  TN_TRY(tn_ranks_broadcast(t->ranks, &run->env, run->rank, "metrics of the epoch", sums->statistics,
                            (size_t)sums->n_statistics * sizeof *sums->statistics));
  t->progress = begin->progress;
  TN_TRY(tn_training_plan_steps(t));
  t->averaged_at = t->progress.step; /* the ranks start with equal statistics */
  t->writes = begin->writes;
  sums->steps = begin->steps;
  sums->samples = begin->samples;
  return TN_OK;
}

tn_divided_access tn_training_divided(const tn_training *t) {
  return (tn_divided_access){.ranks = t->ranks,
                             .env = &t->run->env,
                             .rank = t->run->rank,
                             .executor = t->executor,
                             .map = t->set.map};
}

/* Whether a region is divided among ranks, or has copies of one, which are gathered anew. */
static bool training_is_divided(const tn_state_map *map, int32_t region) {
  const tn_region *r = &map->regions.v[region];
  return r->shards > 1 || (r->like >= 0 && map->regions.v[r->like].shards > 1);
}

/* Initial values are equal on all ranks. Loaded state is sent by rank 0, which alone reads files; regions
 * that are divided among ranks were sent when it was read. */
static tn_status training_broadcast_state(tn_training *t) {
  tn_run *run = t->run;
  const tn_state_map *map = t->set.map;
  tn_beginning begin;
  TN_TRY(training_broadcast_progress(t, &begin));
  for (int32_t r = 0; begin.loaded && tn_run_ranks(run) > 1 && r < (int32_t)map->regions.n; r++)
    if (!training_is_divided(map, r)) TN_TRY(training_broadcast_region(t, r));
  return TN_OK;
}

/* Averages begin as copies; those of a checkpoint were loaded. */
static tn_status training_start_averages(const tn_training *t) {
  return t->progress.step == 0 ? tn_programs_update_mean(&t->set, t->executor, 0) : TN_OK;
}

/* A sharded optimizer needs collectives that a communicator may lack. */
static tn_status training_wrap_shard(tn_training *t, tn_status status) {
  tn_run *run = t->run;
  const tn_comm *comm = atomic_load(&t->comm);
  if (status != TN_EUNSUPPORTED || comm == NULL || run->settings.distributed.shard == TN_SHARD_NO)
    return status;
  return tn_wrap(&run->env, status, "%s: [distributed] shard = optimizer with communicator '%s'",
                 tn_settings_where(&run->ini, "distributed", "shard"), comm->kind->item.name);
}

/* The recorders' entries of a failure go to RUN/failure, RUN/failure-2 ...: the first that does not exist. */
static void training_name_failure_folder(tn_training *t, char *path, size_t size) {
  char *folder = t->folder != NULL ? realpath(t->folder, NULL) : NULL;
  int n = 1, length = folder != NULL ? snprintf(path, size, "%s/failure", folder) : 0;
  while (length > 0 && (size_t)length < size && tn_file_exists(path))
    length = snprintf(path, size, "%s/failure-%d", folder, ++n);
  if (length <= 0 || (size_t)length >= size) path[0] = '\0';
  free(folder);
}

/* All ranks learn it before it is needed: rank 0 may be the one that is lost. */
static tn_status training_tell_failure_folder(tn_training *t) {
  char path[4096] = "";
  tn_run *run = t->run;
  if (tn_run_ranks(run) == 1) return TN_OK;
  if (run->rank == 0) training_name_failure_folder(t, path, sizeof path);
  TN_TRY(tn_ranks_broadcast(t->ranks, &run->env, run->rank, "the run folder", path, sizeof path));
  return run->local == 0 ? tn_ranks_set_failure_folder(t->ranks, &run->env, path) : TN_OK;
}

static tn_status training_initialize(tn_training *t) {
  TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_INIT], 0));
  return tn_executor_slot_wait(t->executor, 0);
}

tn_status tn_training_start(tn_training *t) {
  tn_run *run = t->run;
  tn_divided_access divided = tn_training_divided(t);
  TN_TRY(tn_ranks_compare_plans(t->ranks, &run->env, run->rank, tn_programs_hash(&t->set)));
  TN_TRY(training_wrap_shard(t, training_initialize(t)));
  tn_flight_wait before =
      tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "weights that it reads, and its run folder");
  tn_status opened = tn_divided_run(&divided, training_open_folder, t);
  tn_flight_end_wait(t->device->flight, &before);
  if (opened != TN_OK) return opened;
  TN_TRY(training_tell_failure_folder(t));
  TN_TRY(training_broadcast_state(t));
  TN_TRY(training_start_averages(t));
  TN_TRY(training_wrap_shard(t, tn_programs_refresh(&t->set, t->executor)));
  if (run->rank != 0) return TN_OK;
  tn_training_record_start(t);
  return tn_training_start_observers(t);
}

/* The init program leaves state without an initializer alone, which is zero in a new run: optimizer state,
 * and the scratch state that passes values between the programs of an update. */
static tn_status training_clear_region(tn_training *t, const tn_region *region) {
  size_t bytes = tn_region_bytes(region);
  char *path = tn_arena_printf(&t->set.arena, "@%s", region->name);
  void *zeros = tn_alloc(&t->run->env, bytes + 1);
  tn_status status = path && zeros ? tn_executor_write(t->executor, path, zeros, bytes) : TN_ENOMEM;
  tn_release(&t->run->env, zeros);
  return status;
}

/* On rank 0. */
static tn_status training_load_again(void *context) {
  tn_training *t = context;
  TN_TRY(t->folder && t->saved ? tn_checkpoint_resume(t->run, t->executor, &t->set, t->folder, &t->progress)
                               : tn_weights_load_configured(t->run, t->executor, t->set.map));
  return tn_training_move_position(t, false);
}

tn_status tn_training_rewind(tn_training *t) {
  tn_divided_access divided = tn_training_divided(t);
  for (size_t r = 0; r < t->set.map->regions.n; r++)
    TN_TRY(training_clear_region(t, &t->set.map->regions.v[r]));
  TN_TRY(training_initialize(t));
  t->progress = (tn_progress){.best = NAN, .score = NAN, .improved = NAN, .ended = true};
  TN_TRY(tn_divided_run(&divided, training_load_again, t));
  TN_TRY(training_broadcast_state(t));
  TN_TRY(training_start_averages(t));
  return tn_programs_refresh(&t->set, t->executor);
}
