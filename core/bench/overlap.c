/* core/bench/overlap.c: the communication that a step exposes, measured beside the prediction.
 *
 * Some steps run under a profile, whose marks stand on the device's streams where it has a clock: the exposed
 * time is that in which the compute stream waits for collectives. bench_rank.c has it without such a clock.
 */
#include "core/bench/bench.h"

#include "core/compile/output/overlap.h"

static const int32_t compute_track = TN_TRACK_STREAM + TN_STREAM_COMPUTE,
                     comm_track = TN_TRACK_STREAM + TN_STREAM_COMM;

/* Adds the spans of one step. */
static void bench_overlap_add(tn_overlap *sum, const tn_span *spans, size_t n) {
  double first = 0, last = 0;
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    const tn_span *s = &spans[i];
    double took = s->end_s - s->start_s;
    if (s->kind != TN_SPAN_LAUNCH && s->kind != TN_SPAN_AWAIT) continue;
    if (!any || s->start_s < first) first = s->start_s;
    if (!any || s->end_s > last) last = s->end_s;
    any = true;
    if (s->kind == TN_SPAN_AWAIT) sum->exposed_s += took;
    if (s->kind == TN_SPAN_LAUNCH && s->track == compute_track) sum->compute_s += took;
    if (s->kind == TN_SPAN_LAUNCH && s->track == comm_track) sum->communication_s += took;
  }
  sum->step_s += last - first;
}

static tn_status bench_overlap_step(tn_bench *b, tn_timeline *timeline, tn_overlap *sum) {
  size_t n = 0;
  int64_t lost = 0;
  tn_timeline_open(timeline, true);
  TN_TRY(tn_bench_step(b));
  TN_TRY(tn_executor_profile_read(b->executor));
  tn_timeline_open(timeline, false);
  const tn_span *spans = tn_timeline_spans(timeline, &n, &lost);
  bench_overlap_add(sum, spans, n);
  tn_timeline_clear(timeline);
  return TN_OK;
}

static void bench_overlap_divide(tn_overlap *sum, int32_t steps) {
  sum->step_s /= steps;
  sum->compute_s /= steps;
  sum->communication_s /= steps;
  sum->exposed_s /= steps;
}

tn_status tn_bench_overlap(tn_bench *b, int32_t steps, tn_overlap *mean) {
  tn_timeline *timeline = tn_timeline_new(&b->run->env);
  *mean = (tn_overlap){0};
  if (timeline == NULL) return TN_ENOMEM;
  tn_status status = tn_executor_profile(b->executor, timeline);
  for (int32_t i = 0; i < steps && status == TN_OK; i++) status = bench_overlap_step(b, timeline, mean);
  bench_overlap_divide(mean, steps);
  tn_executor_profile(b->executor, NULL);
  tn_timeline_free(timeline);
  return status;
}

/* ---- the result ---- */

static json_t *bench_overlap_json(const tn_overlap *o) {
  return json_pack("{s:f, s:f, s:f, s:f, s:f}", "step_ms", o->step_s * 1e3, "compute_ms", o->compute_s * 1e3,
                   "communication_ms", o->communication_s * 1e3, "exposed_ms", o->exposed_s * 1e3,
                   "exposed_percent", o->step_s > 0 ? 100 * o->exposed_s / o->step_s : 0.0);
}

/* All programs of a step, one after another. */
static tn_overlap bench_overlap_predicted(const tn_bench *b) {
  tn_overlap sum = {0};
  for (int32_t i = 0; i < b->n_passes; i++) {
    tn_overlap one = tn_overlap_predict(b->set.programs[b->passes[i].which], NULL);
    sum.step_s += one.step_s;
    sum.compute_s += one.compute_s;
    sum.communication_s += one.communication_s;
    sum.exposed_s += one.exposed_s;
  }
  return sum;
}

/* Of the rank whose compute stream waits longest. */
static const tn_overlap *bench_overlap_worst(const tn_bench_ranks *all) {
  const tn_overlap *worst = &all->measured[0];
  for (int32_t r = 1; r < tn_run_ranks(all->run); r++)
    if (all->measured[r].exposed_s > worst->exposed_s) worst = &all->measured[r];
  return worst;
}

static void bench_overlap_add_ranks(const tn_bench_ranks *all, json_t *result) {
  tn_overlap predicted = bench_overlap_predicted(&all->benches[0]);
  json_object_set_new(result, "ranks", json_integer(tn_run_ranks(all->run)));
  json_object_set_new(result, "processes", json_integer(all->place.processes));
  json_object_set_new(result, "communicator", json_string(all->communicator->item.name));
  json_object_set_new(result, "overlap",
                      json_pack("{s:o, s:o, s:o}", "predicted", bench_overlap_json(&predicted), "measured",
                                bench_overlap_json(&all->measured[0]), "worst",
                                bench_overlap_json(bench_overlap_worst(all))));
}

void tn_bench_overlap_report(const tn_bench_ranks *all, json_t *result) {
  const tn_device *device = all->benches[0].device;
  json_object_set_new(result, "devices", json_integer(tn_run_ranks(all->run)));
  if (device->rehearsed != NULL)
    json_object_set_new(result, "rehearsed", json_string(device->target.properties.name));
  if (all->measured != NULL) bench_overlap_add_ranks(all, result);
}
