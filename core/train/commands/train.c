/* core/train/commands/train.c: tn_run_train: a rank for each device, and what came of it as the result. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/base/thread.h"
#include "core/train/loop/training.h"
#include "core/train/result.h"

const char tn_why_finished[] = "finished", tn_why_stopped[] = "stopped", tn_why_out_of_time[] = "max_time",
           tn_why_nonfinite[] = "non-finite";

/* All ranks of a run. */
typedef struct tn_team {
  tn_run *run;    /* rank 0's, the caller's */
  tn_run *others; /* of the ranks from 1 on */
  tn_rank_set *ranks;
  tn_fit *fits;
  tn_status *outcomes; /* of each rank's part */
  int32_t n;
  const tn_communicator *communicator; /* NULL: there is one rank */
  const void *options;
  double started_s;
} tn_team;

/* ---- the ranks ---- */

/* The same configuration, with messages and memory of its own. What all of them have to say about it, rank 0
 * says. */
static void init_other(tn_team *team, int32_t rank) {
  tn_run *run = &team->others[rank - 1];
  *run = *team->run;
  tn_error_record_init(&run->env, &run->record, &team->run->env);
  run->record.sink.level = TN_LOG_ERROR;
  run->arena = tn_arena_new(&run->env);
  run->rank = rank;
}

static tn_status make_ranks(tn_team *team, tn_device *first) {
  tn_env *env = &team->run->env;
  size_t n = (size_t)team->run->ranks;
  team->fits = tn_alloc(env, tn_size_mul(n, sizeof *team->fits));
  team->others = tn_alloc(env, tn_size_mul(n, sizeof *team->others));
  team->outcomes = tn_alloc(env, tn_size_mul(n, sizeof *team->outcomes));
  if (!team->fits || !team->others || !team->outcomes) {
    tn_device_destroy(first);
    return TN_ENOMEM;
  }
  team->n = (int32_t)n;
  for (int32_t r = 1; r < team->n; r++) init_other(team, r);
  for (int32_t r = 0; r < team->n; r++)
    team->fits[r] = (tn_fit){.run = r == 0 ? team->run : &team->others[r - 1],
                             .progress = {.best = NAN, .ended = true},
                             .started_s = team->started_s};
  team->fits[0].device = first;
  TN_TRY(tn_ranks_create(env, team->n, &team->ranks));
  for (int32_t r = 0; r < team->n; r++) team->fits[r].ranks = team->ranks;
  return TN_OK;
}

/* One after the other: what ranks make by themselves asks the plugins, whose registry is one. */
static tn_status set_up(tn_team *team) {
  tn_device *first = NULL;
  team->run->rank = 0;
  TN_TRY(tn_run_device(team->run, &first));
  tn_status status = tn_devices_count(team->run, first);
  if (status == TN_OK && team->run->ranks > 1)
    status = tn_devices_communicator(team->run, first, &team->communicator, &team->options);
  if (status != TN_OK) {
    tn_device_destroy(first);
    return status;
  }
  TN_TRY(make_ranks(team, first));
  for (int32_t r = 0; r < team->n; r++) {
    tn_fit *t = &team->fits[r];
    status = r > 0 ? tn_devices_open(t->run, first, &t->device) : TN_OK;
    if (status == TN_OK) status = tn_fit_set_up(t);
    if (status == TN_OK) continue;
    return r > 0 ? tn_wrap(&team->run->env, tn_error_move(team->run, t->run), "rank %d", (int)r) : status;
  }
  return TN_OK;
}

static void tear_down(tn_team *team) {
  for (int32_t r = 0; r < team->n; r++) tn_fit_tear_down(&team->fits[r]);
  for (int32_t r = 1; r < team->n; r++) tn_arena_free(&team->others[r - 1].arena);
  tn_ranks_destroy(team->ranks);
  tn_release(&team->run->env, team->fits);
  tn_release(&team->run->env, team->others);
  tn_release(&team->run->env, team->outcomes);
}

/* ---- training ---- */

/* Rank 0 makes the identity of the communicator, and all open it. */
static tn_status join(tn_team *team, tn_fit *t) {
  const tn_communicator *kind = team->communicator;
  tn_env *env = &t->run->env;
  if (!kind) return TN_OK;
  void *identity = tn_arena_alloc(&t->run->arena, (size_t)kind->identity_bytes + 1);
  tn_status status = identity ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && t->run->rank == 0 && kind->identify)
    status = tn_wrap(env, kind->identify(env, team->options, identity), "communicator '%s'", kind->item.name);
  if (status != TN_OK) return status;
  TN_TRY(tn_ranks_share(team->ranks, env, t->run->rank, identity, kind->identity_bytes));
  tn_comm_request request = {.kind = kind,
                             .options = team->options,
                             .identity = identity,
                             .rank = t->run->rank,
                             .ranks = team->n,
                             .timeout_s = t->run->settings.distributed.timeout};
  tn_comm *comm = NULL;
  status = tn_comm_open(env, t->device, &request, &comm);
  atomic_store(&t->comm, comm); /* another rank may fail, and abort it, from now on */
  return status;
}

static tn_status train(tn_team *team, tn_fit *t) {
  TN_TRY(join(team, t));
  TN_TRY(tn_fit_start(t));
  tn_status status = tn_fit_train(t);
  return status == TN_ENONFINITE ? tn_fit_explain(t) : status;
}

/* While training: only rank 0 reads weights. */
static bool is_nonfinite(const tn_fit *t, tn_status status) {
  return status == TN_ENONFINITE && t->failed_step > 0;
}

/* A loss that is not finite is seen by all ranks at the same step, so none of them has to be told. */
static tn_status run_rank(void *context, int32_t rank) {
  tn_team *team = context;
  tn_fit *t = &team->fits[rank];
  tn_status status = train(team, t);
  team->outcomes[rank] = status;
  if (status != TN_OK && !is_nonfinite(t, status)) tn_ranks_fail(team->ranks, rank, &t->run->env, status);
  return status;
}

static void abort_all(void *context) {
  tn_team *team = context;
  for (int32_t r = 0; r < team->n; r++) tn_comm_abort(atomic_load(&team->fits[r].comm));
}

/* ---- the result ---- */

static json_t *metrics_json(tn_tally *tally) {
  return tn_metrics_json(tn_tally_means(tally), tally->steps > 0 ? tally->n + 1 : 0);
}

static json_t *result_of(tn_fit *t) {
  double seconds = tn_clock_s() - t->started_s;
  bool direct = t->device->target.properties.host_addressable != 0;
  int64_t planned = tn_executor_planned_bytes(t->set.map, t->set.list, t->set.n, t->slots, direct),
          measured = t->device->peak_bytes;
  return json_pack("{s:s, s:I, s:I, s:f, s:f, s:s, s:i, s:o, s:o, s:f, s:f, s:I, s:I, s:f, s:f}", "status",
                   t->why, "epochs", (json_int_t)t->progress.epoch, "steps", (json_int_t)t->progress.step,
                   "seconds", seconds, "first_step_s", t->first_step_s, "run", t->folder ? t->folder : "",
                   "devices", (int)tn_run_ranks(t->run), "train", metrics_json(&t->epoch_tally), "valid",
                   metrics_json(&t->valid_tally), "planned_peak_mib", (double)planned / 1048576.0,
                   "measured_peak_mib", (double)measured / 1048576.0, "planned_peak_bytes",
                   (json_int_t)planned, "measured_peak_bytes", (json_int_t)measured, "stall_s",
                   tn_loader_stall_s(tn_feeder_loader(t->train)), "cache_mib",
                   (double)tn_loader_kept(tn_feeder_loader(t->train)).bytes / 1048576.0);
}

/* The status of a run whose loop has ended, with its explanation. */
static tn_status conclude(tn_fit *t, tn_status status) {
  const char *folder = t->folder ? t->folder : "";
  if (t->why == tn_why_stopped)
    return t->folder ? tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld; go on with --resume %s",
                                (long long)t->progress.step, folder)
                     : tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld; nothing was saved",
                                (long long)t->progress.step);
  if (!is_nonfinite(t, status)) return status;
  t->why = tn_why_nonfinite;
  const char *advice = t->explained ? "" : "; a lower lr or [optimizer] clip may help";
  if (!t->folder || !t->saved)
    return tn_failf(&t->run->env, status, "%s%s; no checkpoint had been written", tn_error_text(&t->run->env),
                    advice);
  return tn_failf(&t->run->env, status, "%s%s; %s/checkpoints/last is the last good one",
                  tn_error_text(&t->run->env), advice, folder);
}

/* Runs the ranks; what failed first on any of them is the run's failure. */
static tn_status run_all(tn_team *team, char **json) {
  tn_fit *t = &team->fits[0];
  tn_env *env = &team->run->env;
  tn_ranks_on_failure(team->ranks, abort_all, team);
  tn_status status = tn_ranks_run(team->ranks, env, run_rank, team);
  tn_status failure = tn_ranks_failure(team->ranks, env);
  if (failure != TN_OK) {
    status = failure;
    t->why = NULL;
  }
  if (t->watch || status == TN_OK || is_nonfinite(t, status)) status = conclude(t, status);
  tn_fit_post(t, TN_EVENT_RUN_END, t->why ? t->why : "failed");
  tn_watch_stop(t->watch);
  t->watch = NULL;
  if (!t->why) return status;
  tn_status printed = tn_json_take(team->run, result_of(t), json);
  return printed == TN_OK ? status : printed;
}

tn_status tn_run_train(tn_run *run, char **json) {
  tn_team team = {.run = run, .started_s = tn_clock_s()};
  *json = NULL;
  tn_status status = set_up(&team);
  if (status == TN_OK) status = run_all(&team, json);
  tear_down(&team);
  run->ranks = 0;
  return status;
}
