/* core/bench/ranks.c: the ranks of a benchmark: a device and a thread each, in this process
 * and in the others that a launcher has started. */
#include <string.h>

#include "core/base/text/text.h"
#include "core/plugin/context.h"
#include "core/bench/bench.h"
#include "core/train/ranks/places.h"
#include "core/distributed/ranks/compare_settings.h"
#include "core/distributed/ranks/devices.h"
#include "core/distributed/ranks/release.h"

/* ---- opening ---- */

/* Without a launcher there is one process; [distributed] processes is not read then. A rehearsal is alone. */
static tn_status bench_ranks_find_place(tn_bench_ranks *all) {
  tn_run *run = all->run;
  int32_t asked = all->options.ranks;
  all->place = (tn_process_place){.processes = 1, .locals = 1};
  if (all->options.mode != TN_BENCH_TRAIN || all->options.device != NULL) return TN_OK;
  TN_TRY(tn_process_place_read(&run->env, NULL, NULL, &all->place));
  if (all->place.launcher == NULL) return TN_OK;
  TN_TRY(tn_run_find_place(run, &all->place));
  if (run->place == NULL || asked == 0) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "a benchmark of %d ranks in this process, but %s has started %d processes; [distributed] "
                  "devices has the number of ranks in each",
                  (int)asked, all->place.launcher, (int)all->place.processes);
}

/* [distributed] devices, or as many as the caller asks for. */
static tn_status bench_ranks_count(tn_bench_ranks *all, const tn_device *first) {
  tn_run *run = all->run;
  int32_t asked = all->options.ranks;
  run->locals = run->ranks = 1;
  if (all->options.mode != TN_BENCH_TRAIN) return TN_OK;
  if (asked == 0) return tn_devices_count(run, first);
  if (asked < 0 || asked > first->count)
    return tn_failf(&run->env, TN_EUNAVAILABLE, "a benchmark of %d ranks, but backend '%s' has %d device%s",
                    (int)asked, first->backend->item.name, (int)first->count, first->count == 1 ? "" : "s");
  run->locals = run->ranks = asked;
  return TN_OK;
}

/* Launches and traces are repeated on one rank, which alone would wait for the others for ever. */
static tn_status bench_ranks_check(const tn_bench_ranks *all) {
  tn_run *run = all->run;
  bool several = run->locals > 1 || run->place != NULL;
  if (!several || (!all->options.launches && run->trace == NULL)) return TN_OK;
  return tn_failf(&run->env, TN_EUNSUPPORTED,
                  "a benchmark of several devices reports neither launches nor a trace; [run] profile = N of "
                  "a training has both");
}

/* `--ranks 1` with a communicator that the configuration names: the one rank exchanges gradients with itself,
 * so that the cost of the calls can be measured on a machine with one device. */
static tn_status bench_ranks_connect(tn_bench_ranks *all, const tn_device *first) {
  tn_run *run = all->run;
  run->settings.reduces_alone = all->options.mode == TN_BENCH_TRAIN && all->options.ranks == 1 &&
                                *run->settings.distributed.communicator != '\0';
  if (run->ranks == 1 && !run->settings.reduces_alone) return TN_OK;
  return tn_devices_communicator(run, first, &all->communicator, &all->comm_options);
}

static tn_status bench_ranks_open_first(tn_bench_ranks *all, tn_device **first) {
  tn_run *run = all->run;
  TN_TRY(bench_ranks_find_place(all));
  TN_TRY(tn_run_open_device(run, first));
  TN_TRY(bench_ranks_count(all, *first));
  TN_TRY(bench_ranks_check(all));
  TN_TRY(tn_run_join(run, &all->place, &all->link));
  return bench_ranks_connect(all, *first);
}

/* The first rank gets `first`. */
static tn_status bench_ranks_allocate(tn_bench_ranks *all, tn_device *first) {
  tn_run *run = all->run;
  tn_env *env = &run->env;
  size_t n = (size_t)run->locals, every = (size_t)run->ranks;
  all->benches = tn_alloc(env, tn_size_mul(n, sizeof *all->benches));
  all->runs = tn_alloc(env, tn_size_mul(n, sizeof *all->runs));
  if (all->benches == NULL || all->runs == NULL) return TN_ENOMEM;
  if (all->communicator != NULL && run->rank == 0) {
    all->measured = tn_alloc(env, tn_size_mul(every, sizeof *all->measured));
    if (all->measured == NULL) return TN_ENOMEM;
  }
  TN_TRY(tn_ranks_create(env, (int32_t)n, all->link, &all->ranks));
  all->n = (int32_t)n;
  all->benches[0] = (tn_bench){.run = run, .device = first};
  return TN_OK;
}

static tn_run *bench_ranks_run(tn_bench_ranks *all, int32_t r) {
  if (r == 0) return all->run;
  tn_run_copy_for_rank(all->run, r, &all->runs[r]);
  return &all->runs[r];
}

static tn_status bench_ranks_add(tn_bench_ranks *all, int32_t r) {
  tn_bench *b = &all->benches[r];
  b->run = bench_ranks_run(all, r);
  b->all = all;
  b->options = all->options;
  b->which = all->options.mode == TN_BENCH_TRAIN ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT;
  if (r > 0) TN_TRY(tn_devices_open(b->run, all->benches[0].device, &b->device));
  b->device->target.communicator = all->communicator;
  b->device->comm_options = all->comm_options;
  tn_devices_connect(b->run, b->device);
  TN_TRY(tn_bench_prepare(b));
  if (r > 0 || b->run->rank > 0 || all->link == NULL) return TN_OK;
  return tn_run_tell_choices(b->run, all->ranks, b->device, &b->set, tn_bench_slots(b));
}

/* Processes with different numbers of steps would wait for each other for ever. */
static tn_status bench_ranks_compare_options(tn_bench_ranks *all) {
  const tn_bench_options *o = &all->options;
  tn_run *run = all->run;
  char *own = tn_arena_printf(&run->arena, "batch %lld, %d steps in each of %d rounds after %d",
                              (long long)o->batch, (int)o->steps, (int)o->rounds, (int)o->warmup),
       *text = own;
  if (own == NULL) return TN_ENOMEM;
  tn_status status = tn_ranks_tell_text(all->ranks, &run->env, "options of the benchmark", &text);
  if (status == TN_OK && !tn_text_equal(own, text))
    status = tn_failf(&run->env, TN_EINVAL,
                      "the benchmark is one of %s here, and of %s for process 0; all processes must have the "
                      "same options",
                      own, text);
  if (text != own) tn_release(&run->env, text);
  return status;
}

/* Ranks are prepared one after the other, since they share the registry. */
static tn_status bench_ranks_prepare(tn_bench_ranks *all) {
  tn_run *run = all->run;
  if (all->link != NULL) TN_TRY(tn_ranks_compare_settings(all->ranks, run));
  if (all->link != NULL) TN_TRY(bench_ranks_compare_options(all));
  if (run->rank > 0) TN_TRY(tn_run_hear_choices(run, all->ranks));
  for (int32_t r = 0; r < all->n; r++) {
    tn_status status = bench_ranks_add(all, r);
    if (status == TN_OK) continue;
    tn_run *own = all->benches[r].run;
    return r > 0 ? tn_wrap(&run->env, tn_error_move(run, own), "rank %d", (int)own->rank) : status;
  }
  return TN_OK;
}

tn_status tn_bench_ranks_open(tn_bench_ranks *all) {
  tn_run *run = all->run;
  tn_device *first = NULL;
  run->rank = run->local = 0;
  run->device_file = all->options.device;
  tn_status status = bench_ranks_open_first(all, &first);
  if (status == TN_OK) status = bench_ranks_allocate(all, first);
  if (all->n == 0) tn_device_destroy(first);
  if (status == TN_OK) status = bench_ranks_prepare(all);
  if (status == TN_OK || all->ranks == NULL || all->link == NULL) return status;
  tn_ranks_fail(all->ranks, run->rank, &run->env, status);
  return tn_ranks_failure(all->ranks, &run->env); /* an exchange fails for the reason of another rank */
}

/* ---- running ---- */

static tn_status bench_ranks_measure(tn_bench_ranks *all, tn_bench *b) {
  tn_env *env = &b->run->env;
  const tn_comm_opening opening = {.run = b->run,
                                   .device = b->device,
                                   .place = &all->place,
                                   .link = all->link,
                                   .ranks = all->ranks,
                                   .kind = all->communicator,
                                   .options = all->comm_options};
  TN_TRY(tn_ranks_compare_plans(all->ranks, env, b->run->rank, tn_programs_hash(&b->set)));
  if (all->communicator != NULL) TN_TRY(tn_run_open_comm(&opening, &b->comm));
  TN_TRY(tn_bench_measure(b));
  return tn_ranks_gather(all->ranks, env, b->run->rank, "measured times", &b->measured, sizeof b->measured,
                         all->measured);
}

static tn_status bench_ranks_body(void *context, int32_t local) {
  tn_bench_ranks *all = context;
  tn_bench *b = &all->benches[local];
  tn_status status = bench_ranks_measure(all, b);
  if (status == TN_OK) return TN_OK;
  tn_ranks_fail(all->ranks, b->run->rank, &b->run->env, status);
  tn_executor_drain(b->executor);
  return status;
}

static tn_comm *bench_ranks_comm(const void *benches, int32_t local) {
  return atomic_load(&((const tn_bench *)benches)[local].comm);
}

static tn_rank_comms bench_ranks_comms(const tn_bench_ranks *all) {
  return (tn_rank_comms){.run = all->run, .of = bench_ranks_comm, .ranks = all->benches, .n = all->n};
}

tn_status tn_bench_ranks_run(tn_bench_ranks *all) {
  tn_run *run = all->run;
  if (all->communicator == NULL) return tn_bench_measure(&all->benches[0]);
  tn_rank_comms comms = bench_ranks_comms(all);
  tn_rank_watch watch = tn_rank_comms_watch(&comms);
  tn_ranks_watch(all->ranks, &watch);
  tn_status status = tn_ranks_run(all->ranks, &run->env, bench_ranks_body, all);
  run->hung = run->context->kept = tn_ranks_hung(all->ranks) >= 0;
  tn_status failure = tn_ranks_failure(all->ranks, &run->env);
  return failure != TN_OK ? failure : status;
}

/* ---- closing ---- */

/* The communicators of the others would wait for a process that dies here. */
static tn_status bench_ranks_leave(tn_bench_ranks *all) {
  if (all->link == NULL) return TN_OK;
  tn_status status = tn_ranks_leave(all->ranks, &all->run->env);
  tn_rank_comms comms = bench_ranks_comms(all);
  if (status != TN_OK) tn_rank_comms_abort(&comms);
  return status;
}

static tn_rank_handles bench_ranks_handles(const void *context, int32_t local) {
  const tn_bench *b = (const tn_bench *)context + local;
  return (tn_rank_handles){.executor = b->executor, .comm = atomic_load(&b->comm), .device = b->device};
}

/* Behind the release of the devices. */
static void bench_ranks_free(tn_bench *b) {
  if (b->run == NULL) return;
  tn_programs_free(b->run, &b->set);
  tn_release(&b->run->env, b->round_ms);
  if (b->run->local > 0) tn_run_free_copy(b->run);
}

/* A thread that was left may use all of it. */
tn_status tn_bench_ranks_close(tn_bench_ranks *all, tn_status status) {
  tn_run *run = all->run;
  bool in_order = status == TN_OK;
  run->place = NULL;
  if (run->hung) return status;
  if (in_order) status = bench_ranks_leave(all);
  tn_ranks_release_devices(bench_ranks_handles, all->benches, all->n);
  for (int32_t r = 0; r < all->n; r++) bench_ranks_free(&all->benches[r]);
  tn_ranks_destroy(all->ranks);
  tn_link_close(all->link, in_order);
  tn_release(&run->env, all->measured);
  tn_release(&run->env, all->benches);
  tn_release(&run->env, all->runs);
  tn_release(&run->env, all);
  run->ranks = run->locals = 0;
  run->rank = 0;
  run->settings.reduces_alone = false;
  run->device_file = NULL;
  run->cuts = NULL;
  return status;
}
