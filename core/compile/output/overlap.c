/* core/compile/output/overlap.c: the predicted times of a program with collectives. */
#include "core/compile/output/overlap.h"

#include "core/compile/kernels/collective_kernel.h"

/* The streams so far. */
typedef struct predict_clock {
  double compute_s, comm_s;
  tn_overlap sum;
} predict_clock;

/* The compute stream waits for a collective. */
static void predict_await(predict_clock *c, tn_step_times *times, int32_t collective) {
  double wait_s = collective < 0 ? 0 : times[collective].end_s - c->compute_s;
  if (!(wait_s > 0)) return;
  c->compute_s += wait_s;
  c->sum.exposed_s += wait_s;
  times[collective].exposed_s += wait_s;
}

static void predict_collective(predict_clock *c, double cost_s, tn_step_times *t) {
  t->ready_s = c->compute_s;
  t->begin_s = c->compute_s > c->comm_s ? c->compute_s : c->comm_s;
  t->end_s = c->comm_s = t->begin_s + cost_s;
  c->sum.communication_s += cost_s;
}

static void predict_step(predict_clock *c, double cost_s, tn_step_times *t) {
  t->ready_s = t->begin_s = c->compute_s;
  t->end_s = c->compute_s += cost_s;
  c->sum.compute_s += cost_s;
}

static void predict_segment(const tn_program *p, const tn_segment *segment, predict_clock *c,
                            tn_step_times *times) {
  for (int32_t i = segment->first; i < segment->first + segment->n; i++) {
    const tn_step *step = &p->steps[i];
    double cost_s = step->group->choice.cost_s;
    times[i] = (tn_step_times){0};
    if (step->group->role == TN_STREAM_COMM) {
      predict_collective(c, cost_s, &times[i]);
      continue;
    }
    predict_await(c, times, step->awaits);
    predict_step(c, cost_s, &times[i]);
  }
  predict_await(c, times, segment->awaits);
}

static tn_overlap predict_follow(const tn_program *p, tn_step_times *times) {
  predict_clock c = {0};
  for (int32_t i = 0; i < p->n_segments; i++) predict_segment(p, &p->segments[i], &c, times);
  c.sum.step_s = c.compute_s;
  return c.sum;
}

/* Without collectives, and without memory for the times of all steps, one is enough. */
static tn_overlap predict_sum(const tn_program *p) {
  predict_clock c = {0};
  tn_step_times one;
  for (int32_t i = 0; i < p->n_steps; i++) predict_step(&c, p->steps[i].group->choice.cost_s, &one);
  c.sum.step_s = c.compute_s;
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
  for (int32_t i = 0; list != NULL && i < p->n_steps; i++)
    if (p->steps[i].group->role == TN_STREAM_COMM &&
        json_array_append_new(list, predict_describe(p, &p->steps[i], &times[i])) != 0) {
      json_decref(list);
      return NULL;
    }
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
