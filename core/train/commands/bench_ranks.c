/* core/train/commands/bench_ranks.c: the ranks of a benchmark: a device and a thread each, in one process. */
#include "core/train/commands/bench.h"

#include "core/train/distributed/devices.h"

/* ---- opening ---- */

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

static tn_status bench_ranks_allocate(tn_bench_ranks *all) {
  tn_env *env = &all->run->env;
  size_t n = (size_t)all->run->ranks;
  all->benches = tn_alloc(env, tn_size_mul(n, sizeof *all->benches));
  all->runs = tn_alloc(env, tn_size_mul(n, sizeof *all->runs));
  if (all->benches == NULL || all->runs == NULL) return TN_ENOMEM;
  all->n = (int32_t)n;
  return tn_ranks_create(env, all->n, NULL, &all->ranks);
}

/* The other ranks have messages and memory of their own. */
static tn_run *bench_ranks_run(tn_bench_ranks *all, int32_t r) {
  tn_run *run = &all->runs[r];
  if (r == 0) return all->run;
  *run = *all->run;
  tn_error_record_init(&run->env, &run->record, &all->run->env);
  run->record.sink.level = TN_LOG_ERROR;
  run->arena = tn_arena_new(&run->env);
  run->ini.arena = tn_arena_new(&run->env);
  run->rank = run->local = r;
  return run;
}

static tn_status bench_ranks_add(tn_bench_ranks *all, int32_t r, tn_device *first) {
  tn_bench *b = &all->benches[r];
  b->run = bench_ranks_run(all, r);
  b->all = all;
  b->device = first;
  b->options = all->options;
  b->which = all->options.mode == TN_BENCH_TRAIN ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT;
  if (r > 0) TN_TRY(tn_devices_open(b->run, all->benches[0].device, &b->device));
  b->device->target.communicator = all->communicator;
  b->device->comm_options = all->comm_options;
  tn_devices_connect(b->run, b->device);
  return tn_bench_prepare(b);
}

tn_status tn_bench_ranks_open(tn_bench_ranks *all) {
  tn_run *run = all->run;
  tn_device *first = NULL;
  run->rank = run->local = 0;
  run->device_file = all->options.device;
  tn_status status = tn_run_open_device(run, &first);
  if (status == TN_OK) status = bench_ranks_count(all, first);
  if (status == TN_OK && run->ranks > 1)
    status = tn_devices_communicator(run, first, &all->communicator, &all->comm_options);
  if (status == TN_OK) status = bench_ranks_allocate(all);
  if (status != TN_OK) {
    tn_device_destroy(first);
    return status;
  }
  for (int32_t r = 0; r < all->n && status == TN_OK; r++) {
    status = bench_ranks_add(all, r, first);
    if (status != TN_OK && r > 0)
      status = tn_wrap(&run->env, tn_error_move(run, all->benches[r].run), "rank %d", (int)r);
  }
  return status;
}

/* ---- running ---- */

static tn_status bench_ranks_join(tn_bench_ranks *all, tn_bench *b) {
  const tn_communicator *kind = all->communicator;
  tn_env *env = &b->run->env;
  if (kind == NULL) return TN_OK;
  const tn_comm_place place = {.struct_size = sizeof place,
                               .rank = b->run->rank,
                               .ranks = all->n,
                               .processes = 1,
                               .address = "",
                               .timeout_s = b->run->settings.distributed.timeout};
  void *identity = tn_arena_alloc(&b->run->arena, (size_t)kind->identity_bytes + 1);
  tn_status status = identity != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && b->run->rank == 0 && kind->identify != NULL)
    status = kind->identify(env, all->comm_options, &place, identity);
  if (status != TN_OK) return tn_wrap(env, status, "communicator '%s'", kind->item.name);
  TN_TRY(tn_ranks_broadcast(all->ranks, env, b->run->rank, "identity of the communicator", identity,
                            kind->identity_bytes));
  tn_comm_request request = {
      .kind = kind, .options = all->comm_options, .identity = identity, .place = place};
  tn_comm *comm = NULL;
  status = tn_comm_open(env, b->device, &request, &comm);
  atomic_store(&b->comm, comm); /* from now on, another rank that fails may abort it */
  return status;
}

static tn_status bench_ranks_body(void *context, int32_t local) {
  tn_bench_ranks *all = context;
  tn_bench *b = &all->benches[local];
  tn_status status = bench_ranks_join(all, b);
  if (status == TN_OK) status = tn_bench_measure(b);
  if (status == TN_OK) return TN_OK;
  tn_ranks_fail(all->ranks, local, &b->run->env, status);
  tn_executor_drain(b->executor);
  return status;
}

static void bench_ranks_abort(void *context) {
  tn_bench_ranks *all = context;
  for (int32_t r = 0; r < all->n; r++) tn_comm_abort(atomic_load(&all->benches[r].comm));
}

tn_status tn_bench_ranks_run(tn_bench_ranks *all) {
  tn_run *run = all->run;
  if (all->n == 1) return tn_bench_measure(&all->benches[0]);
  const tn_rank_watch watch = {
      .timeout_s = run->settings.distributed.timeout, .abort = bench_ranks_abort, .context = all};
  tn_ranks_watch(all->ranks, &watch);
  tn_status status = tn_ranks_run(all->ranks, &run->env, bench_ranks_body, all);
  run->hung = tn_ranks_hung(all->ranks) >= 0;
  tn_status failure = tn_ranks_failure(all->ranks, &run->env);
  return failure != TN_OK ? failure : status;
}

/* A thread that was left may use all of it. */
void tn_bench_ranks_close(tn_bench_ranks *all) {
  tn_run *run = all->run;
  if (run->hung) return;
  for (int32_t r = 0; r < all->n; r++) {
    tn_bench *b = &all->benches[r];
    if (b->run == NULL) continue;
    tn_executor_destroy(b->executor);
    tn_comm_close(atomic_load(&b->comm));
    tn_programs_free(b->run, &b->set);
    tn_device_destroy(b->device);
    tn_release(&b->run->env, b->round_ms);
    if (r == 0) continue;
    tn_arena_free(&b->run->ini.arena);
    tn_arena_free(&b->run->arena);
  }
  tn_ranks_destroy(all->ranks);
  tn_release(&run->env, all->benches);
  tn_release(&run->env, all->runs);
  run->ranks = run->locals = 0;
  run->device_file = NULL;
  run->cuts = NULL;
}
