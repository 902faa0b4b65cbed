/* core/bench/bench.c: tn_run_bench: time per step on random inputs. The fields of the result are
 * those of the scripts that measure other frameworks. */
#include "core/bench/bench.h"

#include "core/compile/output/report.h"
#include "core/step/programs/memory_report.h"

static json_t *bench_result(const tn_bench *b) {
  const tn_device *device = b->device;
  const tn_backend *backend = device->extension ? device->extension : device->backend;
  json_t *ms = tn_bench_spread(b->round_ms, b->options.rounds);
  double median = json_number_value(json_array_get(ms, 1));
  int64_t planned = tn_executor_planned_bytes(b->set.map, b->set.list, b->set.n, tn_bench_slots(b),
                                              device->target.properties.host_addressable != 0);
  int64_t batch = b->batch * tn_run_ranks(b->run);
  double samples = (double)batch * b->micro_batches;
  json_t *result =
      json_pack("{s:s, s:i, s:s, s:I, s:s, s:o, s:f, s:f, s:f, s:f, s:f}", "backend", backend->item.name,
                "threads", device->target.properties.threads, "mode",
                b->which == TN_PROGRAM_STEP ? "train" : "infer", "batch", (json_int_t)batch, "dtype",
                b->run->settings.precision->item.name, "ms", ms, "per_s", samples / median * 1e3,
                "first_step_s", b->first_step_s, "peak_rss_mib", tn_peak_rss_mib(), "planned_peak_mib",
                (double)planned / 1048576.0, "measured_peak_mib", (double)device->peak_bytes / 1048576.0);
  tn_bench_parts_report(b, result);
  json_object_set_new(result, "declined", tn_declines_report(&device->target));
  tn_json_add_memory(b->device, result);
  if (result != NULL)
    tn_memory_report_add(&b->set, tn_bench_slots(b), device->target.properties.host_addressable != 0,
                         b->device, result);
  if (b->micro_batches > 1) json_object_set_new(result, "accumulate", json_integer(b->micro_batches));
  return result;
}

static void bench_set_options(tn_bench_options *o) {
  if (o->steps < 1) o->steps = 3;
  if (o->rounds < 1) o->rounds = 5;
  if (o->warmup < 1) o->warmup = 1;
}

static tn_status bench_run_step(void *context) { return tn_bench_step(context); }

static tn_status bench_report(const tn_bench_ranks *all, char **json) {
  tn_bench *b = &all->benches[0];
  const tn_profiled what = {.run = b->run, .set = &b->set, .executor = b->executor};
  json_t *result = bench_result(b);
  const tn_program *program = b->set.programs[b->which];
  if (result) tn_bench_overlap_report(all, result);
  tn_status status =
      result ? tn_program_report_captures(program, tn_device_captures(b->device), result) : TN_OK;
  if (status == TN_OK && result && b->options.launches) status = tn_bench_launches(b, result);
  if (status == TN_OK && result) status = tn_bench_trace(&what, bench_run_step, b, result);
  if (status == TN_OK) return tn_json_take(b->run, result, json);
  json_decref(result);
  return status;
}

tn_status tn_run_bench(tn_run *run, const tn_bench_options *given, char **json) {
  tn_bench_options options;
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_TRY(TN_READ_STRUCT(run, tn_bench_options, mode, given, &options));
  if (run->trace != NULL) TN_TRY(tn_profile_check_path(&run->env, run->trace));
  if (options.mode == TN_BENCH_LOAD) return tn_bench_load(run, &options, json);
  if (run->hung)
    return tn_failf(&run->env, TN_ECOMM, "a thread of an earlier call of this run has not ended");
  tn_bench_ranks *all = tn_alloc(&run->env, sizeof *all);
  if (all == NULL) return TN_ENOMEM;
  bench_set_options(&options);
  all->run = run;
  all->options = options;
  tn_status status = tn_bench_ranks_open(all);
  if (status == TN_OK) status = tn_bench_ranks_run(all);
  if (status == TN_OK && run->rank == 0) status = bench_report(all, json);
  status = tn_bench_ranks_close(all, status);
  if (status == TN_OK) return TN_OK;
  tn_release(&run->env, *json);
  *json = NULL;
  return status;
}
