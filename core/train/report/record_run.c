/* core/train/report/record_run.c: the lines of history.jsonl: what began in the run folder, and why it ended.
 */
#include <unistd.h>

#include "core/base/system/host.h"
#include "core/base/system/system.h"
#include "core/records/runs/run_folder.h"
#include "core/records/runs/run_history.h"
#include "core/train/loop/training.h"
#include "core/run/result.h"

/* ---- the start ---- */

static json_t *record_words(const tn_words *words) {
  json_t *list = json_array();
  for (int32_t i = 0; i < words->n; i++) json_array_append_new(list, tn_json_text(words->v[i]));
  return list;
}

static void record_host_text(json_t *line, const char *key, void (*read)(char text[TN_HOST_TEXT])) {
  char text[TN_HOST_TEXT];
  read(text);
  json_object_set_new(line, key, tn_json_text(text));
}

static void record_command(const tn_run *run, json_t *line) {
  char folder[4096];
  json_object_set_new(line, "command", record_words(&run->command));
  json_object_set_new(line, "folder", tn_json_text(getcwd(folder, sizeof folder)));
  json_object_set_new(line, "file", tn_json_text(run->ini.path));
  json_object_set_new(line, "set", record_words(&run->set));
}

static void record_machine(json_t *line) {
  char text[TN_HOST_TEXT];
  record_host_text(line, "host", tn_host_name);
  json_object_set_new(line, "process", json_integer(getpid()));
  record_host_text(line, "system", tn_host_system);
  record_host_text(line, "processor", tn_host_processor);
  tn_host_instructions(TN_CPUINFO, text);
  json_object_set_new(line, "instructions", tn_json_text(text));
  json_object_set_new(line, "processors", json_integer(tn_cpu_count()));
  json_object_set_new(line, "memory_mib", json_real((double)tn_memory_total() / 1048576.0));
}

static json_t *record_libraries(tn_device *device) {
  json_t *list = json_array();
  tn_backend_library l;
  for (int32_t i = 0; tn_device_library_at(device, i, &l); i++)
    json_array_append_new(list, tn_json_library(&l));
  return list;
}

static json_t *record_plugins(const tn_run *run) {
  json_t *list = json_array();
  const tn_entry *entry;
  for (int32_t i = 0; (entry = tn_registry_plugin(run->registry, i)) != NULL; i++)
    json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "name", tn_json_text(entry->plugin), "version",
                                          tn_json_text(entry->version), "file", tn_json_text(entry->file)));
  return list;
}

static void record_versions(tn_training *t, json_t *line) {
  json_object_set_new(line, "tenon", tn_json_text(tn_version()));
  json_object_set_new(line, "commit", tn_json_text(tn_commit_text));
  json_object_set_new(line, "compiler", tn_json_text(tn_compiler_text));
  json_object_set_new(line, "libraries", record_libraries(t->device));
  json_object_set_new(line, "plugins", record_plugins(t->run));
}

static void record_devices(const tn_training *t, json_t *line) {
  const tn_settings *s = &t->run->settings;
  json_object_set_new(line, "backend", tn_json_text(tn_device_name(t->device)));
  json_object_set_new(line, "device", tn_json_text(t->device->target.properties.name));
  json_object_set_new(line, "devices", json_integer(tn_run_ranks(t->run)));
  json_object_set_new(line, "threads", json_integer(t->device->target.properties.threads));
  json_object_set_new(line, "precision", tn_json_text(s->precision->item.name));
  json_object_set_new(line, "seed", json_integer(s->run.seed));
}

/* null for a new run */
static json_t *record_resumed(const tn_training *t) {
  if (!t->resumed) return json_null();
  return json_pack("{s:I, s:I}", "step", (json_int_t)t->progress.step, "epoch",
                   (json_int_t)t->progress.epoch);
}

void tn_training_record_start(tn_training *t) {
  json_t *line = json_object();
  if (t->folder == NULL || line == NULL) {
    json_decref(line);
    return;
  }
  json_object_set_new(line, "event", tn_json_text("start"));
  record_host_text(line, "time", tn_host_time);
  json_object_set_new(line, "order", json_integer(tn_run_folder_order(t->run, t->folder)));
  record_command(t->run, line);
  json_object_set_new(line, "resumed", record_resumed(t));
  json_object_set_new(line, "remarks", tn_json_lines(t->run->remarks));
  record_devices(t, line);
  record_versions(t, line);
  record_machine(line);
  tn_run_history_add(&t->run->env, t->folder, line);
  t->recorded = true;
}

/* ---- the end ---- */

/* "[run] max_steps = 25", as it was written. */
static const char *record_key(const tn_training *t, const char *key) {
  const tn_section *section = tn_ini_section(&t->run->ini, "run");
  const tn_key *found = section != NULL ? tn_section_key(section, key) : NULL;
  return tn_arena_printf(&t->run->arena, "[run] %s = %s", key, found != NULL ? found->value : "?");
}

static const char *record_finished(const tn_training *t) {
  const tn_run_section *run = &t->run->settings.run;
  if (run->fast_dev_run) return "[run] fast_dev_run = yes";
  if (run->max_steps > 0 && t->progress.epoch < run->epochs) return record_key(t, "max_steps");
  return run->epochs == 1 ? "1 epoch"
                          : tn_arena_printf(&t->run->arena, "all %lld epochs", (long long)run->epochs);
}

static const char *record_asked(const tn_training *t) {
  const char *asked = tn_observers_stop_reason(t->observers);
  return asked != NULL ? tn_arena_strdup(&t->run->arena, asked) : "an observer";
}

void tn_training_explain_end(tn_training *t) {
  const char *end = t->end_reason;
  if (end == tn_end_finished)
    t->end_text = record_finished(t);
  else if (end == tn_end_early)
    t->end_text = record_key(t, "patience");
  else if (end == tn_end_out_of_time)
    t->end_text = record_key(t, "max_time");
  else if (end == tn_end_paused)
    t->end_text = record_key(t, "pause_after");
  else if (end == tn_end_target)
    t->end_text = record_key(t, "target");
  else if (end == tn_end_observer)
    t->end_text = record_asked(t);
  else if (end == tn_end_stopped)
    t->end_text =
        t->stop_file ? "the file " TN_STOP_NAME " in the run folder" : "a signal, or a call of tn_run_stop";
  else
    t->end_text = tn_arena_strdup(&t->run->arena, tn_error_text(&t->run->env));
  if (t->end_text == NULL) t->end_text = "";
}

void tn_training_record_end(tn_training *t) {
  json_t *line = t->recorded ? json_object() : NULL;
  if (line == NULL) return;
  json_object_set_new(line, "event", tn_json_text("end"));
  record_host_text(line, "time", tn_host_time);
  json_object_set_new(line, "status", tn_json_text(t->end_reason != NULL ? t->end_reason : tn_end_failed));
  json_object_set_new(line, "reason", tn_json_text(t->end_text));
  json_object_set_new(line, "epochs", json_integer(t->progress.epoch));
  json_object_set_new(line, "steps", json_integer(t->progress.step));
  json_object_set_new(line, "seconds", json_real(tn_clock_s() - t->started_s));
  tn_run_history_add(&t->run->env, t->folder, line);
  t->recorded = false;
}
