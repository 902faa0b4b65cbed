/* core/commands/eval.c: tn_run_eval: losses and metrics of given weights over the validation data. */
#include "core/run/result.h"

#include <math.h>

#include "core/step/checks/mistakes.h"
#include "core/distributed/ranks/devices.h"
#include "core/train/feed/validation_pass.h"
#include "core/infer/prediction/load_trained.h"
#include "core/records/runs/weights_file.h"

typedef struct tn_eval_command {
  tn_run *run;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  tn_loader *loader; /* opened, and not taken by the feeder yet */
  tn_feeder *feeder;
  tn_metric_sums sums;
} tn_eval_command;

static tn_status eval_run(tn_eval_command *e) {
  const tn_settings *s = &e->run->settings;
  tn_program_request request = {{0}};
  if (!s->data[TN_SPLIT_VALID].given)
    return tn_failf(&e->run->env, TN_EINVAL, "%s: no [data] source, expected one to evaluate on",
                    e->run->ini.path);
  int32_t slots = (int32_t)s->data[TN_SPLIT_VALID].section.prefetch + 1;
  tn_validation_program programs[TN_MAX_LENGTHS];
  request.all_lengths = true;
  request.batch[TN_PROGRAM_EVAL] = s->data[TN_SPLIT_VALID].section.batch;
  TN_TRY(tn_run_tell_mistakes(e->run, tn_run_open_device(e->run, &e->device)));
  TN_TRY(tn_weights_read_learnt(e->run, NULL));
  tn_status opened = tn_feeder_open_loader(e->run, TN_SPLIT_VALID, &e->device->target, slots, &e->loader);
  TN_TRY(tn_ini_note(&e->run->env, &e->run->ini, opened));
  request.loaders[TN_SPLIT_VALID] = e->loader;
  request.slots = slots;
  TN_TRY(tn_programs_open(e->run, &e->run->env, e->device, &request, &e->set, &e->executor));
  int32_t index = e->set.index[TN_PROGRAM_EVAL];
  TN_TRY(tn_load_trained(e->run, &e->set, e->executor, "evaluate"));
  tn_status status = tn_feeder_create(e->run, TN_SPLIT_VALID, &e->loader, e->executor, index,
                                      e->set.programs[TN_PROGRAM_EVAL], slots, &e->feeder);
  TN_TRY(tn_feeder_require(e->run, status));
  TN_TRY(tn_metric_sums_init(&e->set.arena, &e->set, &e->sums));
  TN_TRY(tn_validation_bind(e->run, &e->set, e->executor, slots, programs));
  tn_validation pass = {.executor = e->executor,
                        .programs = programs,
                        .feeder = e->feeder,
                        .max_batches = s->run.fast_dev_run ? 1 : 0};
  return tn_validation_run(e->run, &pass, &e->sums);
}

static tn_status eval_judge(tn_run *run, const tn_metric *means, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    if (isfinite(means[i].value)) continue;
    return tn_failf(
        &run->env, TN_ENONFINITE,
        "%s%s over the validation data is %g; `tenon predict` names the samples whose outputs are "
        "not finite",
        i == 0 ? "the " : "", means[i].name, means[i].value);
  }
  return TN_OK;
}

tn_status tn_run_eval(tn_run *run, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  tn_eval_command e = {.run = run};
  *json = NULL;
  run->evaluating = true;
  tn_status status = eval_run(&e);
  run->evaluating = false;
  if (status == TN_OK) {
    const tn_metric *means = tn_metric_sums_means(&e.sums);
    json_t *result = tn_json_metrics(means, e.sums.n_means);
    json_object_set_new(result, "samples", json_integer(e.sums.samples));
    status = tn_json_take(run, result, json);
    if (status == TN_OK) status = eval_judge(run, means, e.sums.n_means);
  }
  tn_feeder_destroy(e.feeder);
  tn_loader_destroy(e.loader);
  tn_executor_destroy(e.executor);
  tn_programs_free(run, &e.set);
  tn_device_destroy(e.device);
  return status;
}
