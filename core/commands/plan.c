/* core/commands/plan.c: tn_run_plan and tn_run_memory: compile and report the programs that training would
 * run. */

#include "core/records/runs/plan_file.h"
#include "core/step/checks/mistakes.h"
#include "core/distributed/ranks/devices.h"
#include "core/train/feed/feeder.h"
#include "core/train/feed/find_batch_run.h"
#include "core/step/programs/memory_report.h"
#include "core/step/programs/other_policy.h"
#include "core/step/programs/plan_report.h"
#include "core/run/result.h"

enum { TN_MOST_PLANNED_RANKS = 65536 };

/* The plan of several devices depends on what their communicator says of itself. One for devices of a file
 * may be missing here: then no collective is captured. */
static tn_status plan_command_communicator(tn_run *run, tn_device *device) {
  const void *options = NULL;
  if (run->ranks == 1) return TN_OK;
  tn_status status = tn_devices_communicator(run, device, &device->target.communicator, &options);
  if (status != TN_EUNAVAILABLE || run->device_file == NULL) return status;
  tn_logf(&run->env, TN_LOG_WARN, "the plan captures no collective: %s", tn_error_text(&run->env));
  tn_error_clear(&run->env);
  return TN_OK;
}

/* The devices of [distributed], or as many as the caller asks about, be they there or not. */
static tn_status plan_command_count(tn_run *run, const tn_device *device, int32_t ranks) {
  if (ranks == 0) return tn_devices_count(run, device);
  if (ranks < 0 || ranks > TN_MOST_PLANNED_RANKS)
    return tn_failf(&run->env, TN_EINVAL, "a plan for %d ranks, expected 1 to %d", (int)ranks,
                    TN_MOST_PLANNED_RANKS);
  run->locals = run->ranks = ranks;
  return TN_OK;
}

static bool plan_command_has_loss(const tn_run *run) {
  tn_section *model = tn_ini_section(&run->ini, "model");
  return run->settings.n_turns > 0 || (model && tn_section_key(model, "loss") != NULL);
}

/* The batches of [data], or 1 for a configuration without data; of a prediction the caller's, or 1. */
static tn_status plan_command_batches(tn_run *run, tn_device *device, const tn_plan_options *wanted,
                                      tn_program_request *request) {
  const tn_data_setting *data = run->settings.data;
  bool trains = wanted->mode == TN_BENCH_TRAIN && plan_command_has_loss(run);
  request->batch[trains ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT] =
      trains || wanted->batch == 0 ? 1 : wanted->batch;
  request->watched = request->all_lengths = true;
  if (!trains) return TN_OK;
  TN_TRY(plan_command_count(run, device, wanted->ranks));
  TN_TRY(plan_command_communicator(run, device));
  tn_devices_connect(run, device);
  TN_TRY(tn_run_find_batch(run, device));
  if (data[TN_SPLIT_TRAIN].given)
    TN_TRY(tn_run_rank_batch(run, TN_SPLIT_TRAIN, &request->batch[TN_PROGRAM_STEP]));
  if (data[TN_SPLIT_VALID].given)
    TN_TRY(tn_run_rank_batch(run, TN_SPLIT_VALID, &request->batch[TN_PROGRAM_EVAL]));
  return TN_OK;
}

/* Reports on the programs as JSON. */
typedef tn_status (*plan_command_report)(tn_run *run, const tn_device *device,
                                         const tn_program_request *request, const tn_program_set *set,
                                         json_t **json);

/* Where a pass is dumped, the programs are not planned under another policy. */
static tn_status plan_command_whole(tn_run *run, const tn_device *device, const tn_program_request *request,
                                    const tn_program_set *set, json_t **json) {
  int32_t slots = tn_run_input_slots(run, tn_run_steps_per_launch(run));
  TN_TRY(tn_plan_report(run, device, set, slots, json));
  return request->dump != NULL ? TN_OK : tn_other_policy_report(run, device, request, set, slots, *json);
}

static tn_status plan_command_memory(tn_run *run, const tn_device *device, const tn_program_request *request,
                                     const tn_program_set *set, json_t **json) {
  (void)request;
  int32_t slots = tn_run_input_slots(run, tn_run_steps_per_launch(run));
  *json = json_object();
  return tn_memory_report_add(set, slots, device->target.properties.host_addressable != 0, NULL, *json);
}

/* `name` must be a pass, "" or NULL. */
static tn_status plan_command_check_pass(tn_run *run, const char *name) {
  const char *const *const lists[] = {tn_graph_passes, tn_compile_passes};
  tn_text names = tn_text_new(&run->env);
  bool known = name == NULL || !*name;
  for (int l = 0; l < 2; l++)
    for (int32_t i = 0; lists[l][i]; i++) {
      known = known || tn_text_equal(name, lists[l][i]);
      tn_text_addf(&names, "%s%s", names.n ? ", " : "", lists[l][i]);
    }
  tn_status status = known ? TN_OK
                           : tn_failf(&run->env, TN_EINVAL, "no pass is called '%s'; there are %s", name,
                                      names.v ? names.v : "none");
  tn_text_free(&names);
  return status;
}

static tn_status plan_command_check(tn_run *run, const tn_plan_options *wanted) {
  if (wanted->mode != TN_BENCH_TRAIN && wanted->mode != TN_BENCH_INFER)
    return tn_failf(&run->env, TN_EINVAL,
                    "a plan of mode %d, expected %d (TN_BENCH_TRAIN) or %d (TN_BENCH_INFER)",
                    (int)wanted->mode, TN_BENCH_TRAIN, TN_BENCH_INFER);
  if (wanted->batch < 0)
    return tn_failf(&run->env, TN_EINVAL, "a plan of a prediction of %lld samples, expected 1 or more",
                    (long long)wanted->batch);
  return TN_OK;
}

/* Compiles the programs and reports on them. `dump` may be NULL. */
static tn_status plan_command(tn_run *run, const tn_plan_options *wanted, plan_command_report report,
                              json_t **json, char **dump) {
  tn_text text = tn_text_new(&run->env);
  tn_compile_options options = {.dump_after = wanted->dump_after, .dump = &text};
  tn_program_request request = {.dump = dump ? &options : NULL};
  tn_program_set set = {.map = NULL};
  tn_device *device = NULL;
  tn_loader *loaders[2] = {NULL, NULL};
  TN_TRY(plan_command_check(run, wanted));
  run->planning = true;
  run->absent = NULL;
  run->device_file = wanted->device;
  tn_status status = tn_run_open_device(run, &device);
  if (status == TN_OK) status = plan_command_batches(run, device, wanted, &request);
  status = tn_run_tell_mistakes(run, status);
  if (status == TN_OK && request.batch[TN_PROGRAM_STEP] > 0)
    status = tn_plan_file_read(run, device, &request.choices);
  for (int32_t split = 0; status == TN_OK && split < 2 && request.batch[TN_PROGRAM_STEP] > 0; split++) {
    status =
        tn_feeder_open_loader(run, split, &device->target, tn_run_most_input_slots(run), &loaders[split]);
    status = tn_ini_note(&run->env, &run->ini, status);
    request.loaders[split] = loaders[split];
  }
  if (status == TN_OK) status = tn_programs_build(run, &device->target, &request, &set);
  if (status == TN_OK) status = report(run, device, &request, &set, json);
  if (status == TN_OK && dump) {
    *dump = tn_text_take(&text);
    if (*dump == NULL) status = TN_ENOMEM;
  }
  tn_text_free(&text);
  tn_programs_free(run, &set);
  for (int32_t split = 0; split < 2; split++) tn_loader_destroy(loaders[split]);
  tn_device_destroy(device);
  run->ranks = 0;
  run->cuts = NULL;
  run->planning = false;
  run->device_file = NULL;
  return status;
}

tn_status tn_run_plan(tn_run *run, const tn_plan_options *given, char **json, char **dump) {
  tn_plan_options wanted;
  json_t *report = NULL;
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  if (dump) *dump = NULL;
  TN_TRY(TN_READ_STRUCT(run, tn_plan_options, dump_after, given, &wanted));
  TN_TRY(plan_command_check_pass(run, wanted.dump_after));
  tn_status status = plan_command(run, &wanted, plan_command_whole, &report, dump);
  if (status == TN_OK) return tn_json_take(run, report, json);
  json_decref(report);
  return status;
}

/* The lines of the table as one text. NULL: no memory. */
static char *plan_command_text(tn_run *run, const json_t *lines) {
  tn_text text = tn_text_new(&run->env);
  for (size_t i = 0; i < json_array_size(lines); i++)
    tn_text_addf(&text, "%s\n", json_string_value(json_array_get(lines, i)));
  return tn_text_take(&text);
}

tn_status tn_run_memory(tn_run *run, const tn_plan_options *given, char **json, char **text) {
  tn_plan_options wanted;
  json_t *report = NULL;
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  if (text) *text = NULL;
  TN_TRY(TN_READ_STRUCT(run, tn_plan_options, dump_after, given, &wanted));
  tn_status status = plan_command(run, &wanted, plan_command_memory, &report, NULL);
  json_t *table = json_object_get(report, "memory_table");
  if (status == TN_OK && text != NULL) {
    *text = plan_command_text(run, json_object_get(table, "lines"));
    if (*text == NULL) status = TN_ENOMEM;
  }
  if (status == TN_OK) status = tn_json_take(run, json_incref(table), json);
  json_decref(report);
  if (status == TN_OK || text == NULL) return status;
  tn_release(&run->env, *text);
  *text = NULL;
  return status;
}
