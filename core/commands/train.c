/* core/commands/train.c: tn_run_train: trains on all ranks of this process, and reports the result. */
#include <jansson.h>
#include <string.h>

#include "core/base/system/system.h"
#include "core/plugin/context.h"
#include "core/records/runs/run_folder.h"
#include "core/train/ranks/train_ranks.h"
#include "core/train/observers/live_report.h"
#include "core/run/result.h"
#include "core/step/programs/memory_report.h"

/* ---- the result ---- */

static json_t *train_metrics_json(tn_metric_sums *sums) {
  const tn_metric *means = tn_metric_sums_means(sums);
  return tn_json_metrics(means, sums->steps > 0 ? sums->n_means : 0);
}

static void train_add_profile(const tn_training *t, json_t *result) {
  const tn_profiling *p = &t->profiling;
  if (p->report_path != NULL) json_object_set_new(result, "profile", tn_json_text(p->report_path));
  if (p->trace_path != NULL) json_object_set_new(result, "trace", tn_json_text(p->trace_path));
}

static json_t *train_result(tn_training *t) {
  double seconds = tn_clock_s() - t->started_s;
  int64_t planned = tn_training_planned_bytes(t), measured = t->device->peak_bytes;
  json_t *result = json_pack(
      "{s:s, s:o, s:I, s:I, s:f, s:f, s:o, s:s, s:i, s:o, s:o, s:f, s:f, s:I, s:I, s:f, s:f, s:o}", "status",
      t->end_reason, "reason", tn_json_text(t->end_text), "epochs", (json_int_t)t->progress.epoch, "steps",
      (json_int_t)t->progress.step, "seconds", seconds, "first_step_s", t->first_step_s, "run",
      tn_json_text(t->folder), "backend", tn_device_name(t->device), "devices", (int)tn_run_ranks(t->run),
      "train", train_metrics_json(&t->epoch_sums), "valid", train_metrics_json(&t->valid_sums),
      "planned_peak_mib", (double)planned / 1048576.0, "measured_peak_mib", (double)measured / 1048576.0,
      "planned_peak_bytes", (json_int_t)planned, "measured_peak_bytes", (json_int_t)measured, "stall_s",
      tn_loader_stall_s(tn_feeder_loader(t->train)), "cache_mib",
      (double)tn_loader_cache(tn_feeder_loader(t->train)).bytes / 1048576.0, "remarks",
      tn_json_lines(t->run->remarks));
  tn_json_add_memory(t->device, result);
  if (result != NULL)
    tn_memory_report_add(&t->set, t->slots, t->device->target.properties.host_addressable != 0, t->device,
                         result);
  train_add_profile(t, result);
  return result;
}

/* "; lr 1000 at step 9, [optimizer] clip 0 (none), precision f32": the settings that a diverging run is most
 * often mended by. */
static const char *train_diverged_settings(tn_training *t) {
  const tn_settings *s = &t->run->settings;
  if (t->step_block.lr < 0) return ""; /* the optimizer has no lr */
  const tn_step_position at = tn_training_at(t, t->failed_step - 1);
  const char *text =
      tn_arena_printf(&t->run->arena, "; lr %g at step %lld, [optimizer] clip %g%s, precision %s",
                      tn_control_block_lr(&t->step_block, &at), (long long)t->failed_step, s->optimizer.clip,
                      s->optimizer.clip > 0 ? "" : " (none)", s->precision->item.name);
  return text != NULL ? text : "";
}

/* The status of a finished run, with its message. */
static tn_status train_conclude(tn_training *t, tn_status status) {
  const char *folder = t->folder ? t->folder : "";
  if (t->end_reason == tn_end_stopped && t->run->rank > 0) /* the process with rank 0 names the checkpoint */
    return tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld", (long long)t->progress.step);
  if (t->end_reason == tn_end_stopped)
    return t->folder ? tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld; go on with --resume %s",
                                (long long)t->progress.step, folder)
                     : tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld; nothing was saved",
                                (long long)t->progress.step);
  if (!tn_train_is_nonfinite(t, status)) return status;
  t->end_reason = tn_end_nonfinite;
  const char *advice = t->explained ? "" : "; a lower lr or [optimizer] clip may help",
             *settings = train_diverged_settings(t);
  if (t->run->rank > 0) return status;
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
  tn_status status = tn_train_ranks_run(all);
  tn_status failure = tn_ranks_failure(all->ranks, env);
  all->run->hung = all->run->context->kept = tn_ranks_hung(all->ranks) >= 0;
  if (tn_ranks_hung(all->ranks) == 0) return failure;
  if (failure != TN_OK) {
    status = failure;
    t->end_reason = NULL;
  }
  if (t->observers || status == TN_OK || tn_train_is_nonfinite(t, status)) status = train_conclude(t, status);
  tn_training_explain_end(t);
  tn_training_post(t, TN_EVENT_RUN_END, t->end_reason ? t->end_reason : tn_end_failed);
  tn_observers_stop(t->observers);
  t->observers = NULL;
  tn_training_record_end(t);
  if (t->folder != NULL && all->run->settings.run.report)
    all->run->report = tn_arena_strdup(&all->run->arena, t->folder);
  if (t->end_reason == NULL || all->run->rank > 0) return status;
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
  tn_status status = tn_train_ranks_prepare(all);
  if (status == TN_OK) status = train_run_ranks(all, json);
  status = tn_train_ranks_release(all, status);
  if (run->hung) return status; /* a thread that was left may still write there */
  tn_run_folder_leave(run);
  if (run->report != NULL) tn_live_report_finish(&run->env, run->report);
  return status;
}
