/* core/compile/output/report.c: the report on a program as a JSON object. */
#include "core/compile/output/report.h"

#include "core/base/json_list.h"
#include "core/compile/capture_parts.h"
#include "core/compile/kernels/answers.h"

#include <inttypes.h>
#include <stdio.h>

/* The most ops that the name of a group lists. */
enum { NAMED_OPS = 6 };

/* The leading op first. */
static void add_group_ops(const tn_program *p, const tn_group *g, tn_text *text) {
  const tn_graph *graph = p->cover->graph;
  uint32_t lead = tn_group_lead(g, graph);
  int32_t named = 1;
  tn_text_add(text, graph->nodes.v[lead].op->item.name);
  for (int32_t i = 0; i < g->n_nodes && named < NAMED_OPS; i++) {
    if (g->nodes[i] == lead) continue;
    tn_text_addf(text, "+%s", graph->nodes.v[g->nodes[i]].op->item.name);
    named++;
  }
  if (g->n_nodes > NAMED_OPS) tn_text_addf(text, "+%" PRId32 " more", g->n_nodes - NAMED_OPS);
}

/* The layer of the group's last node or of its leading one, or else its first result. */
static void add_group_name(const tn_program *p, const tn_group *g, tn_text *text) {
  const tn_gnode *nodes = p->cover->graph->nodes.v;
  const char *last = nodes[g->nodes[g->n_nodes - 1]].layer,
             *lead = nodes[tn_group_lead(g, p->cover->graph)].layer;
  const char *value = p->cover->graph->values.v[g->out[0]].name;
  if (last[0] != '\0')
    tn_text_add(text, last);
  else if (lead != NULL && lead[0] != '\0')
    tn_text_add(text, lead);
  else if (value != NULL)
    tn_text_add(text, value);
  else
    tn_text_addf(text, "%%%" PRIu32, g->out[0]);
}

static json_t *describe_rejections(const tn_group *g) {
  json_t *list = json_array();
  for (int32_t i = 0; i < g->n_rejected; i++)
    tn_json_list_add(
        &list, json_pack("{s:s, s:s}", "kernel", g->rejected[i].kernel, "reason", g->rejected[i].reason));
  return list;
}

/* json_pack releases the rejections also if it fails. NULL: out of memory. */
static json_t *describe_step(const tn_program *p, const tn_step *step) {
  const tn_group *g = step->group;
  tn_text name = tn_text_new(p->env), ops = tn_text_new(p->env), layout = tn_text_new(p->env);
  json_t *op = NULL;
  add_group_name(p, g, &name);
  add_group_ops(p, g, &ops);
  tn_layout_print(&step->out[0].layout, step->out[0].type.rank, &layout);
  if (!name.failed && !ops.failed && !layout.failed)
    op =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:f, s:f, s:f, s:b, s:b, s:o}", "name", name.v,
                  "op", ops.v, "kernel", g->entry->item->name, "variant", g->choice.name, "workspace",
                  (json_int_t)g->choice.workspace_bytes, "backend", g->family, "dtype",
                  tn_dtype_name(step->out[0].type.dtype), "layout", layout.v, "flops", g->cost.flops, "bytes",
                  g->cost.bytes, "cost_ms", g->choice.cost_s * 1e3, "measured", (int)g->choice.measured,
                  "deterministic", (int)g->choice.deterministic, "rejected", describe_rejections(g));
  tn_text_free(&name);
  tn_text_free(&ops);
  tn_text_free(&layout);
  return op;
}

static json_t *describe_steps(const tn_program *p, int32_t first, int32_t end) {
  json_t *ops = json_array();
  for (int32_t i = first; i < end; i++) tn_json_list_add(&ops, describe_step(p, &p->steps[i]));
  return ops;
}

/* ---- fallbacks ---- */

static int64_t transferred_bytes(const tn_transfer *transfers, int32_t n, int32_t step) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < n; i++)
    if (transfers[i].step == step) bytes += transfers[i].bytes;
  return bytes;
}

tn_fallback tn_program_fallback(const tn_program *p, const tn_segment *cut, int32_t step) {
  const tn_group *g = p->steps[step].group;
  const tn_gnode *node = &p->cover->graph->nodes.v[g->nodes[g->n_nodes - 1]];
  return (tn_fallback){.op = p->steps[step].name,
                       .layer = node->layer != NULL ? node->layer : "",
                       .where = node->where != NULL ? node->where : "",
                       .family = g->family,
                       .reason = g->fallback,
                       .bytes = transferred_bytes(cut->out, cut->n_out, step) +
                                transferred_bytes(cut->in, cut->n_in, step)};
}

/* The number of cuts: how often a run of the program waits for the device, but for its states on the host. */
static int32_t count_cuts(const tn_program *p) {
  int32_t cuts = 0;
  for (int32_t i = 0; i < p->n_segments; i++) cuts += p->segments[i].fallback && !p->segments[i].placed;
  return cuts;
}

/* NULL: out of memory. */
static json_t *describe_fallback(const tn_program *p, const tn_segment *cut, int32_t step) {
  tn_fallback f = tn_program_fallback(p, cut, step);
  tn_text ops = tn_text_new(p->env);
  json_t *json = NULL;
  add_group_ops(p, p->steps[step].group, &ops);
  if (!ops.failed)
    json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:i}", "op", ops.v, "layer", f.layer, "where", f.where,
                  "backend", f.family, "reason", f.reason, "bytes", (json_int_t)f.bytes, "launch", (int)step);
  tn_text_free(&ops);
  return json;
}

static json_t *describe_fallbacks(const tn_program *p) {
  json_t *list = json_array();
  for (int32_t i = 0; i < p->n_segments; i++) {
    const tn_segment *s = &p->segments[i];
    for (int32_t k = s->first; s->fallback && !s->placed && k < s->first + s->n; k++)
      tn_json_list_add(&list, describe_fallback(p, s, k));
  }
  return list;
}

/* Operands and results of all launches. */
static int64_t count_bytes(const tn_program *p) {
  double bytes = 0;
  for (int32_t i = 0; i < p->n_steps; i++) bytes += p->steps[i].group->cost.bytes;
  return (int64_t)bytes;
}

tn_status tn_program_report(const tn_program *p, json_t **report) {
  char hash[17];
  snprintf(hash, sizeof hash, "%016" PRIx64, p->hash);
  json_t *ops = describe_steps(p, 0, p->n_steps), *fallbacks = describe_fallbacks(p);
  json_t *constants = describe_steps(p, p->n_steps, tn_program_all_steps(p));
  int64_t kept = p->constant_bytes + p->host_bytes;
  *report = NULL;
  if (ops != NULL && constants != NULL && fallbacks != NULL)
    *report = json_pack("{s:s, s:O, s:O, s:I, s:O, s:i, s:i, s:I, s:I, s:I}", "hash", hash, "ops", ops,
                        "constants", constants, "constant_bytes", (json_int_t)p->constant_bytes, "fallbacks",
                        fallbacks, "cuts", (int)count_cuts(p), "launches", (int)p->n_steps, "bytes",
                        (json_int_t)count_bytes(p), "peak_bytes", (json_int_t)(p->arena_bytes + kept),
                        "bound_bytes", (json_int_t)(p->bound_bytes + kept));
  json_decref(ops);
  json_decref(constants);
  json_decref(fallbacks);
  return *report != NULL
             ? TN_OK
             : tn_failf(p->env, TN_ENOMEM, "out of memory while reporting on program %s", p->name);
}

double tn_step_moved_bytes(const tn_step *step) {
  double bytes = 0.0;
  for (int32_t i = 0; i < step->n_in; i++) bytes += (double)tn_type_bytes(&step->in[i].type);
  for (int32_t i = 0; i < step->n_out; i++) bytes += (double)tn_type_bytes(&step->out[i].type);
  return bytes;
}

/* ---- captures ---- */

/* false: out of memory. */
static bool add_uncaptured_launch(const tn_program *p, int32_t step, json_t *list) {
  tn_text reason = tn_text_new(p->env);
  tn_capture_part_reason(&p->steps[step], &reason);
  json_t *one = reason.failed ? NULL
                              : json_pack("{s:s, s:i, s:s}", "op", p->steps[step].name, "launch", (int)step,
                                          "reason", reason.v);
  tn_text_free(&reason);
  return one != NULL && json_array_append_new(list, one) == 0;
}

/* Fills a list of launches, and counts the captured parts. */
static bool describe_captures(const tn_program *p, const tn_capture_part *parts, int32_t n, json_t *list,
                              int32_t *captured) {
  bool ok = list != NULL;
  for (int32_t i = 0; i < n; i++) {
    *captured += parts[i].captured;
    for (int32_t k = parts[i].first; ok && k < parts[i].first + parts[i].n; k++)
      if (tn_capture_part_lacks(p, &parts[i], k)) ok = add_uncaptured_launch(p, k, list);
  }
  return ok;
}

tn_status tn_program_report_captures(const tn_program *p, bool captures, json_t *report) {
  size_t most = tn_size_mul(tn_capture_parts_most(p), sizeof(tn_capture_part));
  tn_capture_part *parts = tn_alloc(p->env, most);
  json_t *list = json_array();
  int32_t captured = 0, n = parts != NULL && captures ? tn_capture_parts_list(p, true, parts) : 0;
  bool ok = parts != NULL && describe_captures(p, parts, n, list, &captured);
  tn_release(p->env, parts);
  if (ok) ok = json_object_set_new(report, "captured_parts", json_integer(captured)) == 0;
  if (ok && json_object_set(report, "uncaptured", list) != 0) ok = false;
  json_decref(list);
  return ok ? TN_OK : tn_failf(p->env, TN_ENOMEM, "out of memory while reporting on program %s", p->name);
}

/* ---- declines ---- */

static json_t *find_declined(const json_t *list, const char *kernel) {
  json_t *one;
  size_t i;
  json_array_foreach(
      list, i, one) if (tn_text_equal(json_string_value(json_object_get(one, "kernel")), kernel)) return one;
  return NULL;
}

static void count_declined(json_t *list, const tn_prepare_decline *decline) {
  const char *name = decline->kernel->item.name;
  json_t *one = find_declined(list, name);
  if (one == NULL)
    json_array_append_new(
        list, json_pack("{s:s, s:i, s:s}", "kernel", name, "matches", 1, "reason", decline->reason));
  else
    json_object_set_new(one, "matches",
                        json_integer(json_integer_value(json_object_get(one, "matches")) + 1));
}

json_t *tn_declines_report(const tn_target *target) {
  json_t *list = json_array();
  for (const tn_target *one = target; list != NULL && one != NULL; one = one->fallback)
    for (size_t i = 0; one->answers != NULL && i < one->answers->declines.n; i++)
      if (tn_answers_is_lost(one->answers, i)) count_declined(list, &one->answers->declines.v[i]);
  return list;
}
