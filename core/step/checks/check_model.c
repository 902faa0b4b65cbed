/* core/step/checks/check_model.c: names in other sections that the model has not. */
#include "core/step/checks/check_model.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/input_state.h"
#include "core/step/graphs/training_graph.h"

/* A key that names a metric holds "loss", the name of a measure, or nothing. */
static tn_status check_model_metric(tn_run *run, const tn_model *model, const char *section, const char *key,
                                    const char *value) {
  if (value == NULL || *value == '\0' || tn_text_equal(value, "loss")) return TN_OK;
  tn_text names = tn_text_new(&run->env);
  for (int32_t i = 0; i < model->n_measures; i++) {
    if (tn_text_equal(model->measures[i].name, value)) {
      tn_text_free(&names);
      return TN_OK;
    }
    tn_text_addf(&names, ", %s", model->measures[i].name);
  }
  tn_status status =
      tn_failf(&run->env, TN_EINVAL, "%s: [%s] %s: there is no loss or metric '%s', expected one of loss%s",
               tn_settings_where(&run->ini, section, key), section, key, value, names.v ? names.v : "");
  tn_text_free(&names);
  return tn_ini_note(&run->env, &run->ini, status);
}

static bool check_model_has_input(const tn_graph *graph, const char *name) {
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    if (node->op != &tn_op_input) continue;
    if (tn_text_equal(((const tn_input_attributes *)node->attributes)->name, name)) return true;
  }
  return false;
}

tn_status tn_schedules_check(tn_run *run, const tn_graph *graph) {
  const tn_settings *s = &run->settings;
  for (int32_t i = 0; i < s->n_schedules; i++) {
    const tn_schedule_setting *schedule = &s->schedules[i];
    bool of_layer = schedule->target == TN_SCHEDULES_LAYER;
    char input[256];
    snprintf(input, sizeof input, "control.%s", schedule->name + strlen("schedule."));
    bool of_loss =
        schedule->target == TN_SCHEDULES_LOSS && s->n_turns == 0; /* a graph has those of a phase */
    if ((!of_layer && !of_loss) || check_model_has_input(graph, input)) continue;
    tn_status status = tn_failf(&run->env, TN_EINVAL, "%s: [%s]: the model has no %s%s that it could change",
                                tn_settings_where(&run->ini, schedule->name, "type"), schedule->name,
                                of_layer ? schedule->item->name : "loss ", of_layer ? "" : schedule->option);
    TN_TRY(tn_ini_note(&run->env, &run->ini, status));
  }
  return TN_OK;
}

tn_status tn_model_check(tn_run *run, const tn_model *model, bool trains) {
  const tn_settings *s = &run->settings;
  if (trains) TN_TRY(tn_patterns_check(&run->env, &run->ini, s, model->graph));
  TN_TRY(check_model_metric(run, model, "run", "best", s->run.best));
  TN_TRY(check_model_metric(run, model, "run", "target", s->target_metric));
  return check_model_metric(run, model, "schedule", "metric",
                            s->schedule != NULL ? s->schedule->section.metric : NULL);
}
