/* core/train/commands/train.c: tn_run_train: runs one rank per device, and reports the result. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/base/system.h"
#include "core/plugin/context.h"
#include "core/train/checkpoints/run_folder.h"
#include "core/train/commands/mistakes.h"
#include "core/train/distributed/devices.h"
#include "core/train/loop/live_report.h"
#include "core/train/loop/training.h"
#include "core/train/result.h"

/* All ranks of a run. */
typedef struct tn_train_ranks {
  tn_run *run;        /* of rank 0, the caller's */
  tn_run *other_runs; /* of the ranks from 1 on */
  tn_rank_set *ranks;
  tn_training *trainings;
  tn_status *outcomes; /* per rank */
  int32_t n;
  const tn_communicator *communicator; /* NULL: there is one rank */
  const void *options;
  double started_s;
} tn_train_ranks;

/* ---- the ranks ---- */

/* A copy of the run with its own messages and memory; the configuration as read so far is shared. Rank 0
 * alone logs warnings about the configuration. */
static void train_init_rank(tn_train_ranks *all, int32_t rank) {
  tn_run *run = &all->other_runs[rank - 1];
  *run = *all->run;
  tn_error_record_init(&run->env, &run->record, &all->run->env);
  run->record.sink.level = TN_LOG_ERROR;
  run->arena = tn_arena_new(&run->env);
  run->ini.arena = tn_arena_new(&run->env);
  run->rank = rank;
}

static void train_free_rank(tn_run *run) {
  tn_arena_free(&run->ini.arena);
  tn_arena_free(&run->arena);
}

static tn_status train_create_ranks(tn_train_ranks *all, tn_device *first) {
  tn_env *env = &all->run->env;
  size_t n = (size_t)all->run->ranks;
  all->trainings = tn_alloc(env, tn_size_mul(n, sizeof *all->trainings));
  all->other_runs = tn_alloc(env, tn_size_mul(n, sizeof *all->other_runs));
  all->outcomes = tn_alloc(env, tn_size_mul(n, sizeof *all->outcomes));
  if (all->trainings == NULL || all->other_runs == NULL || all->outcomes == NULL) {
    tn_device_destroy(first);
    return TN_ENOMEM;
  }
  all->n = (int32_t)n;
  for (int32_t r = 1; r < all->n; r++) train_init_rank(all, r);
  for (int32_t r = 0; r < all->n; r++)
    all->trainings[r] = (tn_training){.run = r == 0 ? all->run : &all->other_runs[r - 1],
                                      .progress = {.best = NAN, .improved = NAN, .ended = true},
                                      .started_s = all->started_s};
  all->trainings[0].device = first;
  TN_TRY(tn_ranks_create(env, all->n, &all->ranks));
  for (int32_t r = 0; r < all->n; r++) all->trainings[r].ranks = all->ranks;
  return TN_OK;
}

/* Ranks are prepared one after the other, since they share the registry. */
static tn_status train_prepare(tn_train_ranks *all) {
  tn_device *first = NULL;
  all->run->rank = 0;
  TN_TRY(tn_run_folder_claim(all->run));
  tn_status status = tn_run_open_device(all->run, &first);
  if (status == TN_OK) all->run->backend = tn_device_name(first);
  if (status == TN_OK) status = tn_devices_count(all->run, first);
  if (status == TN_OK && all->run->ranks > 1)
    status = tn_devices_communicator(all->run, first, &all->communicator, &all->options);
  if (status != TN_OK) {
    tn_device_destroy(first);
    return tn_run_tell_mistakes(all->run, status);
  }
  TN_TRY(train_create_ranks(all, first));
  for (int32_t r = 0; r < all->n; r++) {
    tn_training *t = &all->trainings[r];
    status = r > 0 ? tn_devices_open(t->run, first, &t->device) : TN_OK;
    if (status == TN_OK) t->device->target.communicator = all->communicator;
    if (status == TN_OK) status = tn_training_prepare(t);
    if (status == TN_OK) continue;
    return r > 0 ? tn_wrap(&all->run->env, tn_error_move(all->run, t->run), "rank %d", (int)r) : status;
  }
  return TN_OK;
}

/* A run of which a thread has been left keeps everything that the thread may use, which is all. */
static void train_release(tn_train_ranks *all) {
  tn_run *run = all->run;
  if (run->hung) return;
  for (int32_t r = 0; r < all->n; r++) tn_training_release(&all->trainings[r]);
  for (int32_t r = 1; r < all->n; r++) train_free_rank(&all->other_runs[r - 1]);
  tn_ranks_destroy(all->ranks);
  tn_release(&run->env, all->trainings);
  tn_release(&run->env, all->other_runs);
  tn_release(&run->env, all->outcomes);
  tn_release(&run->env, all);
  run->ranks = 0;
  run->backend = NULL;
}

/* ---- training ---- */

/* Rank 0 makes the identity of the communicator; all ranks open it. */
static tn_status train_open_communicator(tn_train_ranks *all, tn_training *t) {
  const tn_communicator *kind = all->communicator;
  tn_env *env = &t->run->env;
  if (kind == NULL) return TN_OK;
  const tn_comm_place place = {.struct_size = sizeof place,
                               .rank = t->run->rank,
                               .ranks = all->n,
                               .processes = 1,
                               .address = "",
                               .timeout_s = t->run->settings.distributed.timeout};
  void *identity = tn_arena_alloc(&t->run->arena, (size_t)kind->identity_bytes + 1);
  tn_status status = identity ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && t->run->rank == 0 && kind->identify)
    status = tn_wrap(env, kind->identify(env, all->options, &place, identity), "communicator '%s'",
                     kind->item.name);
  if (status != TN_OK) return status;
  TN_TRY(tn_ranks_broadcast(all->ranks, env, t->run->rank, identity, kind->identity_bytes));
  tn_comm_request request = {.kind = kind, .options = all->options, .identity = identity, .place = place};
  tn_comm *comm = NULL;
  status = tn_comm_open(env, t->device, &request, &comm);
  atomic_store(&t->comm, comm); /* from now on, another rank that fails may abort it */
  return status;
}

static tn_status train_rank(tn_train_ranks *all, tn_training *t) {
  TN_TRY(train_open_communicator(all, t));
  TN_TRY(tn_training_start(t));
  tn_status status = tn_training_run(t);
  return status == TN_ENONFINITE ? tn_training_find_nonfinite(t) : status;
}

/* A failure of training. Before the first step only rank 0 reads weights, so that the other ranks must be
 * told. */
static bool train_is_nonfinite(const tn_training *t, tn_status status) {
  return status == TN_ENONFINITE && t->failed_step > 0;
}

/* All ranks see a loss that is not finite at the same step; other failures are passed on to the other ranks.
 * After those the rank waits for its device here: one that never ends holds this thread, which can be left,
 * and not the thread that frees the memory. */
static tn_status train_run_rank(void *context, int32_t rank) {
  tn_train_ranks *all = context;
  tn_training *t = &all->trainings[rank];
  tn_status status = train_rank(all, t);
  all->outcomes[rank] = status;
  if (status == TN_OK || train_is_nonfinite(t, status)) return status;
  tn_ranks_fail(all->ranks, rank, &t->run->env, status);
  tn_executor_drain(t->executor);
  return status;
}

/* ---- the watch ---- */

static void train_abort_communicators(void *context) {
  tn_train_ranks *all = context;
  for (int32_t r = 0; r < all->n; r++) tn_comm_abort(atomic_load(&all->trainings[r].comm));
}

/* A rank's host asks in its own waits too. Elsewhere, as in a launch for which its device has no room, it
 * cannot.
 */
static tn_status train_ask_communicator(void *context, tn_env *env, int32_t rank) {
  tn_train_ranks *all = context;
  return tn_comm_status(env, atomic_load(&all->trainings[rank].comm));
}

static void train_watch_ranks(tn_train_ranks *all) {
  const tn_rank_watch watch = {.timeout_s = all->run->settings.distributed.timeout,
                               .status = train_ask_communicator,
                               .abort = train_abort_communicators,
                               .context = all};
  tn_ranks_watch(all->ranks, &watch);
}

/* ---- the result ---- */

static json_t *train_metrics_json(tn_metric_sums *sums) {
  return tn_json_metrics(tn_metric_sums_means(sums), sums->steps > 0 ? sums->n + 1 : 0);
}

static void train_add_profile(const tn_training *t, json_t *result) {
  const tn_profiling *p = &t->profiling;
  if (p->report_path != NULL) json_object_set_new(result, "profile", json_string(p->report_path));
  if (p->trace_path != NULL) json_object_set_new(result, "trace", json_string(p->trace_path));
}

static json_t *train_result(tn_training *t) {
  double seconds = tn_clock_s() - t->started_s;
  int64_t planned = tn_training_planned_bytes(t), measured = t->device->peak_bytes;
  json_t *result = json_pack(
      "{s:s, s:s, s:I, s:I, s:f, s:f, s:s, s:s, s:i, s:o, s:o, s:f, s:f, s:I, s:I, s:f, s:f, s:o}", "status",
      t->end_reason, "reason", t->end_text, "epochs", (json_int_t)t->progress.epoch, "steps",
      (json_int_t)t->progress.step, "seconds", seconds, "first_step_s", t->first_step_s, "run",
      t->folder ? t->folder : "", "backend", tn_device_name(t->device), "devices", (int)tn_run_ranks(t->run),
      "train", train_metrics_json(&t->epoch_sums), "valid", train_metrics_json(&t->valid_sums),
      "planned_peak_mib", (double)planned / 1048576.0, "measured_peak_mib", (double)measured / 1048576.0,
      "planned_peak_bytes", (json_int_t)planned, "measured_peak_bytes", (json_int_t)measured, "stall_s",
      tn_loader_stall_s(tn_feeder_loader(t->train)), "cache_mib",
      (double)tn_loader_cache(tn_feeder_loader(t->train)).bytes / 1048576.0, "remarks",
      tn_json_lines(t->run->remarks));
  tn_json_add_memory(t->device, result);
  train_add_profile(t, result);
  return result;
}

/* "; lr 1000 at step 9, [optimizer] clip 0 (none), precision f32": the settings that a diverging run is most
 * often mended by. */
static const char *train_diverged_settings(tn_training *t) {
  const tn_settings *s = &t->run->settings;
  if (t->step_block.lr < 0) return ""; /* the optimizer has no lr */
  double factor =
      tn_learning_rate_factor(s, t->failed_step - 1, t->steps, t->steps_per_epoch, t->progress.schedule);
  const char *text =
      tn_arena_printf(&t->run->arena, "; lr %g at step %lld, [optimizer] clip %g%s, precision %s",
                      t->step_block.base_lr * factor, (long long)t->failed_step, s->optimizer.clip,
                      s->optimizer.clip > 0 ? "" : " (none)", s->precision->item.name);
  return text != NULL ? text : "";
}

/* The status of a finished run, with its message. */
static tn_status train_conclude(tn_training *t, tn_status status) {
  const char *folder = t->folder ? t->folder : "";
  if (t->end_reason == tn_end_stopped)
    return t->folder ? tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld; go on with --resume %s",
                                (long long)t->progress.step, folder)
                     : tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld; nothing was saved",
                                (long long)t->progress.step);
  if (!train_is_nonfinite(t, status)) return status;
  t->end_reason = tn_end_nonfinite;
  const char *advice = t->explained ? "" : "; a lower lr or [optimizer] clip may help",
             *settings = train_diverged_settings(t);
  if (t->folder == NULL || !t->saved)
    return tn_failf(&t->run->env, status, "%s%s%s; no checkpoint had been written",
                    tn_error_text(&t->run->env), advice, settings);
  return tn_failf(&t->run->env, status, "%s%s%s; %s/checkpoints/last is the last good one",
                  tn_error_text(&t->run->env), advice, settings, folder);
}

/* Runs the ranks. The first failure of any rank is the failure of the run. If the thread of rank 0 is left,
 * its observers and numbers are still its own. */
static tn_status train_run_ranks(tn_train_ranks *all, char **json) {
  tn_training *t = &all->trainings[0];
  tn_env *env = &all->run->env;
  train_watch_ranks(all);
  tn_status status = tn_ranks_run(all->ranks, env, train_run_rank, all);
  tn_status failure = tn_ranks_failure(all->ranks, env);
  all->run->hung = all->run->context->kept = tn_ranks_hung(all->ranks) >= 0;
  if (tn_ranks_hung(all->ranks) == 0) return failure;
  if (failure != TN_OK) {
    status = failure;
    t->end_reason = NULL;
  }
  if (t->observers || status == TN_OK || train_is_nonfinite(t, status)) status = train_conclude(t, status);
  tn_training_explain_end(t);
  tn_training_post(t, TN_EVENT_RUN_END, t->end_reason ? t->end_reason : tn_end_failed);
  tn_observers_stop(t->observers);
  t->observers = NULL;
  tn_training_record_end(t);
  if (t->folder != NULL && all->run->settings.run.report)
    all->run->report = tn_arena_strdup(&all->run->arena, t->folder);
  if (t->end_reason == NULL) return status;
  tn_status printed = tn_json_take(all->run, train_result(t), json);
  return printed == TN_OK ? status : printed;
}

tn_status tn_run_train(tn_run *run, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  if (run->hung)
    return tn_failf(&run->env, TN_ECOMM, "a thread of an earlier training of this run has not ended");
  if (run->trace != NULL) TN_TRY(tn_profile_check_path(&run->env, run->trace));
  tn_train_ranks *all = tn_alloc(&run->env, sizeof *all);
  if (all == NULL) return TN_ENOMEM;
  all->run = run;
  run->report = NULL;
  all->started_s = tn_clock_s();
  tn_status status = train_prepare(all);
  if (status == TN_OK) status = train_run_ranks(all, json);
  train_release(all);
  if (run->hung) return status; /* a thread that was left may still write there */
  tn_run_folder_leave(run);
  if (run->report != NULL) tn_live_report_finish(&run->env, run->report);
  return status;
}
