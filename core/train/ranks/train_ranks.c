/* core/train/ranks/train_ranks.c: one rank for each device of this process. */
#include "core/train/ranks/train_ranks.h"

#include <math.h>

#include "core/base/text/text.h"
#include "core/records/runs/run_folder.h"
#include "core/step/checks/mistakes.h"
#include "core/train/ranks/places.h"
#include "core/distributed/ranks/compare_settings.h"
#include "core/distributed/ranks/devices.h"

/* ---- the processes ---- */

/* [distributed] processes = 1 says that it is meant. */
static void train_warn_alone(tn_run *run, const tn_process_place *place) {
  if (place->tasks <= 1 || !tn_text_equal(run->settings.distributed.processes, "auto")) return;
  tn_logf(&run->env, TN_LOG_WARN,
          "this process trains alone, in a Slurm allocation of %d tasks; start one process in each by `srun "
          "tenon train %s`, or set [distributed] processes = 1",
          (int)place->tasks, run->ini.path);
}

/* Only the process with rank 0 reads and writes run folders. */
static tn_status train_read_place(tn_train_ranks *all) {
  tn_run *run = all->run;
  TN_TRY(tn_run_find_place(run, &all->place));
  train_warn_alone(run, &all->place);
  if (all->place.process == 0) return tn_run_folder_claim(run);
  run->resume = NULL;
  run->resume_asked = false;
  return TN_OK;
}

/* ---- the ranks ---- */

static tn_status train_create_ranks(tn_train_ranks *all, tn_device *first) {
  tn_env *env = &all->run->env;
  size_t n = (size_t)all->run->locals;
  all->trainings = tn_alloc(env, tn_size_mul(n, sizeof *all->trainings));
  all->other_runs = tn_alloc(env, tn_size_mul(n, sizeof *all->other_runs));
  all->outcomes = tn_alloc(env, tn_size_mul(n, sizeof *all->outcomes));
  if (all->trainings == NULL || all->other_runs == NULL || all->outcomes == NULL) {
    tn_device_destroy(first);
    return TN_ENOMEM;
  }
  all->n = (int32_t)n;
  for (int32_t r = 1; r < all->n; r++) tn_run_copy_for_rank(all->run, r, &all->other_runs[r - 1]);
  for (int32_t r = 0; r < all->n; r++)
    all->trainings[r] = (tn_training){.run = r == 0 ? all->run : &all->other_runs[r - 1],
                                      .progress = {.best = NAN, .score = NAN, .improved = NAN, .ended = true},
                                      .started_s = all->started_s};
  all->trainings[0].device = first;
  TN_TRY(tn_ranks_create(env, all->n, all->link, &all->ranks));
  for (int32_t r = 0; r < all->n; r++) all->trainings[r].ranks = all->ranks;
  return TN_OK;
}

static tn_status train_open_first(tn_train_ranks *all, tn_device **first) {
  tn_run *run = all->run;
  tn_status status = tn_run_open_device(run, first);
  if (status == TN_OK) run->backend = tn_device_name(*first);
  if (status == TN_OK) status = tn_devices_count(run, *first);
  if (status == TN_OK) status = tn_run_join(run, &all->place, &all->link);
  if (status == TN_OK && run->ranks > 1)
    status = tn_devices_communicator(run, *first, &all->communicator, &all->options);
  if (status == TN_OK) return TN_OK;
  tn_device_destroy(*first);
  *first = NULL;
  return tn_run_tell_mistakes(run, status);
}

/* ---- compiling ---- */

static tn_status train_hear_choices(tn_train_ranks *all) {
  tn_run *run = all->run;
  TN_TRY(tn_run_hear_choices(run, all->ranks));
  for (int32_t r = 1; r < all->n; r++) {
    all->other_runs[r - 1].recorded_choices = run->recorded_choices;
    all->other_runs[r - 1].compared = true;
  }
  return TN_OK;
}

static tn_status train_prepare_rank(tn_train_ranks *all, int32_t r) {
  tn_training *t = &all->trainings[r];
  if (r > 0) TN_TRY(tn_devices_open(t->run, all->trainings[0].device, &t->device));
  t->device->target.communicator = all->communicator;
  t->device->comm_options = all->options;
  tn_devices_connect(t->run, t->device);
  t->run->cuts = all->run->cuts; /* of the first rank */
  TN_TRY(tn_training_prepare(t));
  TN_TRY(tn_training_check_prune(t));
  TN_TRY(tn_training_open_samples(t));
  if (r > 0 || t->run->rank > 0 || all->link == NULL) return TN_OK;
  return tn_run_tell_choices(t->run, all->ranks, t->device, &t->set, t->slots);
}

/* Ranks are prepared one after the other, since they share the registry. */
static tn_status train_prepare_all(tn_train_ranks *all) {
  if (all->link != NULL) TN_TRY(tn_ranks_compare_settings(all->ranks, all->run));
  if (all->run->rank > 0) TN_TRY(train_hear_choices(all));
  for (int32_t r = 0; r < all->n; r++) {
    const tn_run *own = all->trainings[r].run;
    tn_status status = train_prepare_rank(all, r);
    if (status == TN_OK) continue;
    return r > 0 ? tn_wrap(&all->run->env, tn_error_move(all->run, own), "rank %d", (int)own->rank) : status;
  }
  return TN_OK;
}

tn_status tn_train_ranks_prepare(tn_train_ranks *all) {
  tn_device *first = NULL;
  all->run->rank = all->run->local = 0;
  TN_TRY(train_read_place(all));
  TN_TRY(train_open_first(all, &first));
  tn_status status = train_create_ranks(all, first);
  if (status == TN_OK) status = train_prepare_all(all);
  if (status == TN_OK || all->ranks == NULL || all->link == NULL) return status;
  tn_ranks_fail(all->ranks, all->run->rank, &all->run->env, status);
  return tn_ranks_failure(all->ranks, &all->run->env); /* an exchange fails for the reason of another rank */
}

static tn_comm *train_comm(const void *trainings, int32_t local) {
  return atomic_load(&((const tn_training *)trainings)[local].comm);
}

static tn_rank_comms train_comms(const tn_train_ranks *all) {
  return (tn_rank_comms){.run = all->run, .of = train_comm, .ranks = all->trainings, .n = all->n};
}

/* A process that dies or is stopped here, behind its last step, may have saved nothing. The communicators of
 * the others would wait for it. Process 0 of a run that was stopped says where it has saved. */
static tn_status train_leave(tn_train_ranks *all, tn_status status) {
  if (all->ranks == NULL || all->link == NULL || tn_ranks_have_failed(all->ranks)) return status;
  bool says_place = status != TN_OK && all->place.process == 0;
  tn_status left = says_place ? tn_link_leave(all->link) : tn_ranks_leave(all->ranks, &all->run->env);
  tn_rank_comms comms = train_comms(all);
  if (left != TN_OK) tn_rank_comms_abort(&comms);
  return left != TN_OK && !says_place ? left : status;
}

/* A run of which a thread has been left keeps everything that the thread may use, which is all. */
tn_status tn_train_ranks_release(tn_train_ranks *all, tn_status status) {
  tn_run *run = all->run;
  bool in_order = status == TN_OK || status == TN_ESTOPPED || status == TN_ENONFINITE;
  run->place = NULL;
  if (run->hung) return status;
  if (in_order) status = train_leave(all, status);
  tn_trainings_release(all->trainings, all->n);
  for (int32_t r = 1; r < all->n; r++) tn_run_free_copy(&all->other_runs[r - 1]);
  tn_ranks_destroy(all->ranks);
  tn_link_close(all->link, in_order);
  tn_release(&run->env, all->trainings);
  tn_release(&run->env, all->other_runs);
  tn_release(&run->env, all->outcomes);
  tn_release(&run->env, all);
  run->ranks = run->locals = 0;
  run->cuts = NULL;
  run->rank = 0;
  run->backend = NULL;
  return status;
}

/* ---- training ---- */

static tn_status train_open_communicator(tn_train_ranks *all, tn_training *t) {
  const tn_comm_opening opening = {.run = t->run,
                                   .device = t->device,
                                   .place = &all->place,
                                   .link = all->link,
                                   .ranks = all->ranks,
                                   .kind = all->communicator,
                                   .options = all->options};
  return all->communicator != NULL ? tn_run_open_comm(&opening, &t->comm) : TN_OK;
}

/* Repeats steps with a check of each op. */
static tn_status train_find_nonfinite(tn_training *t) {
  tn_flight *flight = t->device->flight;
  tn_flight_wait before = tn_flight_begin_wait(flight, TN_FLIGHT_HOST, "an op whose result is not finite");
  tn_status status = tn_training_find_nonfinite(t);
  tn_flight_end_wait(flight, &before);
  return status;
}

static tn_status train_rank(tn_train_ranks *all, tn_training *t) {
  TN_TRY(train_open_communicator(all, t));
  TN_TRY(tn_training_start(t));
  tn_ranks_begin_steps(all->ranks);
  tn_status status = tn_training_run(t);
  return status == TN_ENONFINITE ? train_find_nonfinite(t) : status;
}

bool tn_train_is_nonfinite(const tn_training *t, tn_status status) {
  return status == TN_ENONFINITE && t->failed_step > 0;
}

/* All ranks see a loss that is not finite at the same step; other failures are passed on to the other ranks.
 * After those the rank waits for its device here: one that never ends holds this thread, which can be left,
 * and not the thread that frees the memory. */
static tn_status train_run_rank(void *context, int32_t local) {
  tn_train_ranks *all = context;
  tn_training *t = &all->trainings[local];
  tn_status status = train_rank(all, t);
  all->outcomes[local] = status;
  if (status == TN_OK || tn_train_is_nonfinite(t, status)) return status;
  tn_ranks_fail(all->ranks, t->run->rank, &t->run->env, status);
  tn_executor_drain(t->executor);
  return status;
}

/* ---- the watch ---- */

static void train_stop(void *context) {
  const tn_rank_comms *comms = context;
  atomic_store(&comms->run->stop, 1);
}

tn_status tn_train_ranks_run(tn_train_ranks *all) {
  tn_rank_comms comms = train_comms(all);
  tn_rank_watch watch = tn_rank_comms_watch(&comms);
  watch.stop = train_stop;
  tn_ranks_watch(all->ranks, &watch);
  return tn_ranks_run(all->ranks, &all->run->env, train_run_rank, all);
}
