/* core/compile/output/overlap.c: the predicted times of a program with collectives and offloaded values. */
#include "core/compile/output/overlap.h"

#include "core/base/json_list.h"
#include "core/compile/kernels/collective_kernel.h"

/* The streams so far. */
typedef struct predict_clock {
  double now_s[TN_STREAMS];
  double host_s; /* the end of the steps on the host so far */
  tn_overlap sum;
} predict_clock;

/* A stream waits for a step on another one. */
static void predict_await(predict_clock *c, tn_step_times *times, int32_t stream, int32_t role,
                          int32_t awaited) {
  double wait_s = awaited < 0 ? 0 : times[awaited].end_s - c->now_s[stream];
  if (!(wait_s > 0)) return;
  c->now_s[stream] += wait_s;
  if (stream != TN_STREAM_COMPUTE) return;
  *(role == TN_STREAM_COMM ? &c->sum.exposed_s : &c->sum.copy_exposed_s) += wait_s;
  times[awaited].exposed_s += wait_s;
}

static void predict_await_all(predict_clock *c, tn_step_times *times, int32_t stream,
                              const tn_awaits *awaits) {
  for (int32_t role = TN_STREAM_COMPUTE + 1; role < TN_STREAMS; role++)
    predict_await(c, times, stream, role, awaits->of[role]);
}

/* A step on another stream follows the compute steps before it, or one of them and those on the host. */
static double predict_ready(const predict_clock *c, const tn_step *step, const tn_step_times *times) {
  if (step->follows == 0) return c->now_s[TN_STREAM_COMPUTE];
  double end_s = times[step->follows - 1].end_s;
  return end_s > c->host_s ? end_s : c->host_s;
}

static void predict_concurrent(predict_clock *c, int32_t role, double cost_s, double ready_s,
                               tn_step_times *t) {
  t->ready_s = ready_s;
  t->begin_s = ready_s > c->now_s[role] ? ready_s : c->now_s[role];
  t->end_s = c->now_s[role] = t->begin_s + cost_s;
  *(role == TN_STREAM_COMM ? &c->sum.communication_s : &c->sum.copy_s) += cost_s;
}

static void predict_step(predict_clock *c, double cost_s, tn_step_times *t) {
  t->ready_s = t->begin_s = c->now_s[TN_STREAM_COMPUTE];
  t->end_s = c->now_s[TN_STREAM_COMPUTE] += cost_s;
  c->sum.compute_s += cost_s;
}

/* Steps that are placed on the host run beside the device, after the last copy that they read. */
static void predict_placed(const tn_program *p, const tn_segment *segment, predict_clock *c,
                           tn_step_times *times) {
  double ready_s = segment->reads >= 0 ? times[segment->reads].end_s : 0;
  for (int32_t i = segment->first; i < segment->first + segment->n; i++) {
    double cost_s = p->steps[i].group->choice.cost_s, begin_s = ready_s > c->host_s ? ready_s : c->host_s;
    c->host_s = begin_s + cost_s;
    c->sum.host_s += cost_s;
    times[i] = (tn_step_times){.ready_s = ready_s, .begin_s = begin_s, .end_s = c->host_s};
  }
}

/* The host enqueues nothing while it computes, so later steps begin after it. */
static void predict_host(predict_clock *c) {
  double wait_s = c->host_s - c->now_s[TN_STREAM_COMPUTE];
  if (!(wait_s > 0)) return;
  c->now_s[TN_STREAM_COMPUTE] += wait_s;
  c->sum.host_exposed_s += wait_s;
}

static void predict_segment(const tn_program *p, const tn_segment *segment, predict_clock *c,
                            tn_step_times *times) {
  if (segment->placed) {
    predict_placed(p, segment, c, times);
    return;
  }
  predict_host(c);
  for (int32_t i = segment->first; i < segment->first + segment->n; i++) {
    const tn_step *step = &p->steps[i];
    double cost_s = step->group->choice.cost_s;
    int32_t role = step->group->role;
    times[i] = (tn_step_times){0};
    predict_await_all(c, times, role, &step->awaits);
    if (role == TN_STREAM_COMPUTE)
      predict_step(c, cost_s, &times[i]);
    else
      predict_concurrent(c, role, cost_s, predict_ready(c, step, times), &times[i]);
  }
  predict_await_all(c, times, TN_STREAM_COMPUTE, &segment->awaits);
}

static tn_overlap predict_follow(const tn_program *p, tn_step_times *times) {
  predict_clock c = {0};
  for (int32_t i = 0; i < p->n_segments; i++) predict_segment(p, &p->segments[i], &c, times);
  predict_host(&c);
  c.sum.step_s = c.now_s[TN_STREAM_COMPUTE];
  return c.sum;
}

/* Without other streams, and without memory for the times of all steps, one is enough. */
static tn_overlap predict_sum(const tn_program *p) {
  predict_clock c = {0};
  tn_step_times one;
  for (int32_t i = 0; i < p->n_steps; i++) predict_step(&c, p->steps[i].group->choice.cost_s, &one);
  c.sum.step_s = c.now_s[TN_STREAM_COMPUTE];
  return c.sum;
}

tn_overlap tn_overlap_predict(const tn_program *program, tn_step_times *times) {
  if (times != NULL) return predict_follow(program, times);
  tn_step_times *own = tn_alloc(program->env, tn_size_mul((size_t)program->n_steps + 1, sizeof *own));
  if (own == NULL) return predict_sum(program);
  tn_overlap overlap = predict_follow(program, own);
  tn_release(program->env, own);
  return overlap;
}

/* ---- the report ---- */

/* The gradients that a value packs: it is a `pack`, or made of one by casts and sums. */
static int32_t predict_count_gradients(const tn_graph *graph, tn_val value, int32_t depth) {
  const tn_gnode *node = tn_graph_maker(graph, value);
  int32_t most = 0;
  if (node == NULL || depth == 0) return 0;
  if (tn_text_equal(node->op->item.name, "pack")) return node->n_in;
  for (int32_t i = 0; i < node->n_in && node->op->op_class == TN_CLASS_POINTWISE; i++) {
    int32_t n = node->in[i] != 0 ? predict_count_gradients(graph, node->in[i], depth - 1) : 0;
    if (n > most) most = n;
  }
  return most;
}

static json_t *predict_describe(const tn_program *p, const tn_step *step, const tn_step_times *t) {
  double in = (double)tn_type_bytes(&step->in[0].type), out = (double)tn_type_bytes(&step->out[0].type);
  bool gathers = tn_kernel_collective(step->group->kernel) == TN_ALL_GATHER;
  int32_t n = gathers ? 0 : predict_count_gradients(p->cover->graph, step->group->in[0], 4);
  return json_pack("{s:s, s:f, s:i, s:f, s:f, s:f, s:f}", "name", step->name, "bytes", in > out ? in : out,
                   "gradients", (int)n, "ready_ms", t->ready_s * 1e3, "begin_ms", t->begin_s * 1e3, "end_ms",
                   t->end_s * 1e3, "exposed_ms", t->exposed_s * 1e3);
}

static json_t *predict_describe_all(const tn_program *p, const tn_step_times *times) {
  json_t *list = json_array();
  for (int32_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].group->role == TN_STREAM_COMM)
      tn_json_list_add(&list, predict_describe(p, &p->steps[i], &times[i]));
  return list;
}

tn_status tn_overlap_report(const tn_program *p, json_t **report) {
  tn_step_times *times = tn_alloc(p->env, tn_size_mul((size_t)p->n_steps + 1, sizeof *times));
  *report = NULL;
  if (times == NULL) return TN_ENOMEM;
  tn_overlap o = tn_overlap_predict(p, times);
  json_t *list = predict_describe_all(p, times);
  tn_release(p->env, times);
  if (list != NULL)
    *report = json_pack("{s:f, s:f, s:f, s:f, s:f, s:o}", "step_ms", o.step_s * 1e3, "compute_ms",
                        o.compute_s * 1e3, "communication_ms", o.communication_s * 1e3, "exposed_ms",
                        o.exposed_s * 1e3, "exposed_percent",
                        o.step_s > 0 ? 100 * o.exposed_s / o.step_s : 0.0, "collectives", list);
  return *report != NULL
             ? TN_OK
             : tn_failf(p->env, TN_ENOMEM, "out of memory while reporting on program %s", p->name);
}
