/* core/compare/report.c: the result of a comparison as JSON. */
#include "core/compare/report.h"

#include <math.h>

#include "core/base/json_list.h"
#include "core/compile/output/report.h"
#include "core/run/result.h"

static const char *const verdicts[] = {[TN_JUDGED_SAME] = "agrees",
                                       [TN_JUDGED_ROUNDING] = "rounding",
                                       [TN_JUDGED_DEPARTS] = "departs",
                                       [TN_JUDGED_REFERENCE] = "reference departs"};

const char tn_unsteady_verdict[] = "unsteady";

/* The index along each dimension. */
static json_t *report_index(const tn_type *type, int64_t at) {
  json_t *list = json_array();
  for (int32_t i = type->rank; at >= 0 && i-- > 0; at /= type->dims[i])
    json_array_insert_new(list, 0, json_integer((json_int_t)(at % type->dims[i])));
  return list;
}

json_t *tn_compared_judgement(const tn_judgement *j) {
  const tn_difference *d = &j->difference;
  json_t *json = json_pack(
      "{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "verdict", verdicts[j->verdict], "dtype",
      tn_dtype_name(j->type.dtype), "result", (int)j->result, "largest", tn_json_real(d->largest), "ulp",
      tn_json_real(d->ulp), "tolerance", tn_json_real(j->tolerance), "share", tn_json_real(j->share), "at",
      report_index(&j->type, d->at), "expected", tn_json_real(d->expected), "found", tn_json_real(d->found));
  if (json == NULL || !j->in_f64) return json;
  json_object_set_new(json, "reference_share_of_f64", tn_json_real(j->reference_off));
  json_object_set_new(json, "tested_share_of_f64", tn_json_real(j->tested_off));
  return json;
}

/* Adds the finding to the description of the launch, which `tenon plan` has too. */
static void report_add_finding(const tn_compared_launch *one, json_t *op) {
  const tn_group *group = one->program->steps[one->index].group;
  const tn_graph *graph = one->program->cover->graph;
  const tn_gnode *lead = &graph->nodes.v[tn_group_lead(group, graph)];
  static const char *const unused[] = {"rejected", "cost_ms", "measured", "flops", "bytes", "deterministic"};
  for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) json_object_del(op, unused[i]);
  json_object_set_new(op, "program", json_string(one->program->name));
  json_object_set_new(op, "launch", json_integer(one->index));
  json_object_set_new(op, "plugin", json_string(group->entry->plugin ? group->entry->plugin : ""));
  json_object_set_new(op, "variant", json_string(group->choice.name));
  json_object_set_new(op, "where", json_string(lead->where ? lead->where : ""));
  if (one->skipped[0] != '\0') {
    json_object_set_new(op, "skipped", json_string(one->skipped));
    return;
  }
  json_object_set_new(op, "at_step", json_integer((json_int_t)one->at_step));
  json_object_set_new(op, "repetition", json_integer(one->repetition));
  json_object_set_new(op, "unsteady", json_boolean(one->unsteady));
  json_t *judged = tn_compared_judgement(&one->judged);
  json_object_update(op, judged);
  if (one->unsteady && one->judged.verdict < TN_JUDGED_DEPARTS)
    json_object_set_new(op, "verdict", json_string(tn_unsteady_verdict));
  json_decref(judged);
}

/* A launch of a run, or one of a constant. */
static json_t *report_description(const json_t *report, size_t index) {
  const json_t *ops = json_object_get(report, "ops");
  size_t n = json_array_size(ops);
  return index < n ? json_array_get(ops, index)
                   : json_array_get(json_object_get(report, "constants"), index - n);
}

/* The description of one launch; the caller's. */
static json_t *report_launch(const tn_compared_launch *one) {
  json_t *report = NULL;
  if (tn_program_report(one->program, &report) != TN_OK) return NULL;
  json_t *op = json_incref(report_description(report, (size_t)one->index));
  json_decref(report);
  if (op != NULL) report_add_finding(one, op);
  return op;
}

static json_t *report_losses(const tn_compared *c) {
  json_t *list = json_array();
  for (int32_t i = 0; i < c->steps; i++) {
    double a = c->losses[i].reference, b = c->losses[i].tested;
    json_array_append_new(list, json_pack("{s:i, s:o, s:o, s:o}", "at_step", (int)i + 1, "reference",
                                          tn_json_real(a), "tested", tn_json_real(b), "difference",
                                          tn_json_real(fabs(a - b))));
  }
  return list;
}

/* One backend has a number where the other has none. */
static bool report_losses_part(const tn_compared *c) {
  for (int32_t i = 0; i < c->steps; i++)
    if (isfinite(c->losses[i].reference) != isfinite(c->losses[i].tested)) return true;
  return false;
}

static json_t *report_all_launches(const tn_compared_launches *all, int *skipped, int *departing) {
  json_t *list = json_array();
  for (size_t i = 0; i < all->list.n; i++) {
    const tn_compared_launch *one = &all->list.v[i];
    *skipped += one->skipped[0] != '\0';
    *departing += tn_compared_departs(one);
    tn_json_list_add(&list, report_launch(one));
  }
  return list;
}

json_t *tn_compared_report(const tn_compared *c) {
  const tn_compared_launches *all = c->launches;
  int skipped = 0, departing = 0;
  json_t *launches = report_all_launches(all, &skipped, &departing), *losses = report_losses(c), *first;
  if (launches == NULL || losses == NULL) {
    json_decref(launches);
    json_decref(losses);
    return NULL;
  }
  first = all->departed ? report_launch(&all->first) : json_null();
  return json_pack("{s:b, s:[s, s], s:i, s:i, s:i, s:i, s:f, s:o, s:o, s:o, s:o}", "agree",
                   departing == 0 && !report_losses_part(c), "backends", c->reference, c->tested, "steps",
                   (int)c->steps, "compared", (int)all->list.n - skipped, "skipped", skipped, "departing",
                   departing, "host_mib", (double)c->host_bytes / 1048576.0, "first", first, "file",
                   all->written ? json_string(all->file) : json_null(), "losses", losses, "launches",
                   launches);
}
