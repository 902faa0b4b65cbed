/* core/train/commands/eval.c: tn_run_eval: the validation data once, with given weights. */
#include "core/train/result.h"

#include "core/base/thread.h"

typedef struct tn_eval {
  tn_run *run;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  tn_feeder *feeder;
  tn_tally tally;
} tn_eval;

static tn_status evaluate(tn_eval *e) {
  const tn_settings *s = &e->run->settings;
  tn_program_request request = {{0}};
  if (!s->data[TN_SPLIT_VALID].given)
    return tn_failf(&e->run->env, TN_EINVAL, "%s: no [data] source, expected one to evaluate on",
                    e->run->ini.path);
  int32_t slots = (int32_t)s->data[TN_SPLIT_VALID].section.prefetch + 1;
  tn_controls controls;
  tn_readings readings;
  request.batch[TN_PROGRAM_EVAL] = s->data[TN_SPLIT_VALID].section.batch;
  TN_TRY(tn_run_device(e->run, &e->device));
  TN_TRY(tn_programs_build(e->run, &e->device->target, &request, &e->set));
  int32_t index = e->set.index[TN_PROGRAM_EVAL];
  TN_TRY(tn_executor_create(&e->run->env, e->device, e->set.map, e->set.list, e->set.n, slots, &e->executor));
  TN_TRY(tn_executor_run(e->executor, e->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(e->executor, 0));
  TN_TRY(tn_weights_load_required(e->run, e->executor, e->set.map, "evaluate"));
  TN_TRY(tn_programs_refresh(&e->set, e->executor));
  tn_status status = tn_feeder_create(e->run, TN_SPLIT_VALID, e->executor, index,
                                      e->set.programs[TN_PROGRAM_EVAL], slots, &e->feeder);
  TN_TRY(tn_feeder_required(e->run, status));
  TN_TRY(tn_tally_init(&e->set.arena, &e->set, &e->tally));
  TN_TRY(tn_controls_bind(&e->set.arena, e->executor, index, slots, &e->set.plan, &controls));
  TN_TRY(tn_readings_bind(&e->set.arena, e->executor, index, slots, &e->set, &readings));
  tn_pass pass = {e->executor, index, e->feeder, &controls, &readings, s->run.fast_dev_run ? 1 : 0, NULL};
  return tn_evaluate(e->run, &pass, &e->tally);
}

tn_status tn_run_eval(tn_run *run, char **json) {
  tn_eval e = {.run = run};
  *json = NULL;
  tn_status status = evaluate(&e);
  if (status == TN_OK) {
    json_t *result = tn_metrics_json(tn_tally_means(&e.tally), e.tally.n + 1);
    json_object_set_new(result, "samples", json_integer(e.tally.samples));
    status = tn_json_take(run, result, json);
  }
  tn_feeder_destroy(e.feeder);
  tn_executor_destroy(e.executor);
  tn_programs_free(run, &e.set);
  tn_device_destroy(e.device);
  return status;
}
