/* core/records/runs/run_differences.c: compares a resumed run with the one before: settings, backend,
 * versions. */
#include "core/records/runs/run_differences.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tn_comparison {
  tn_run *run;
  const tn_device *device;
  const char *folder;
  tn_ini then; /* config.ini */
  bool same;
} tn_comparison;

tn_status tn_run_remark(tn_run *run, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  tn_text_make_plain(line); /* the files of a run folder may be another person's */
  const char *before = run->remarks != NULL ? run->remarks : "";
  if (strstr(before, line) != NULL) return TN_OK; /* of an earlier training of this run */
  run->remarks = tn_arena_printf(&run->arena, "%s%s%s", before, *before ? "\n" : "", line);
  return run->remarks != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- settings ---- */

/* Sections and keys that do not reach the compiler, beside the scheduled options of the optimizer. A section
 * alone stands for all its keys. */
static const char *const harmless[][2] = {
    {"run", "name"},        {"run", "epochs"},      {"run", "max_steps"},   {"run", "max_time"},
    {"run", "seed"},        {"run", "threads"},     {"run", "pin"},         {"run", "output"},
    {"run", "observers"},   {"run", "report"},      {"run", "save_every"},  {"run", "fast_dev_run"},
    {"run", "best"},        {"run", "best_mode"},   {"run", "patience"},    {"run", "min_delta"},
    {"run", "limit_train"}, {"run", "limit_valid"}, {"run", "profile"},     {"data", "workers"},
    {"data", "epoch"},      {"data", "cache"},      {"data", "shuffle"},    {"data", "balance"},
    {"data", "last"},       {"schedule", NULL},     {"weights", NULL},      {"plugins", NULL},
    {"observer.*", NULL},   {"sweep", NULL},        {"run", "pause_after"}, {"run", "valid_every"},
    {"run", "keep_last"},   {"run", "keep_best"},   {"run", "keep_every"},  {"run", "target"},
    {"data", "fold"},
};

/* "data" for "data.valid", too. */
static bool differences_is_section(const char *section, const char *pattern) {
  const tn_words one = {&pattern, 1};
  return tn_words_match(&one, section) ||
         (tn_text_equal(pattern, "data") && tn_text_starts(section, "data."));
}

static bool differences_is_scheduled(const tn_run *run, const char *section, const char *key) {
  if (!tn_text_equal(section, "optimizer") && !tn_text_starts(section, "group.")) return false;
  const tn_option *option = tn_options_find(&run->settings.optimizer_kind->item, key);
  return option != NULL && (option->flags & TN_OPT_SCHEDULED);
}

static bool differences_is_harmless(const tn_run *run, const char *section, const char *key) {
  for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
    if (differences_is_section(section, harmless[i][0]) &&
        (harmless[i][1] == NULL || tn_text_equal(harmless[i][1], key)))
      return true;
  return differences_is_scheduled(run, section, key);
}

/* The default of a key of the host's own tables; NULL: it has none, or belongs to a plugin's item. */
static const char *differences_default(const char *section, const char *key) {
  size_t n = strcspn(section, ".");
  for (int32_t i = 0; tn_settings_tables[i]; i++) {
    const tn_item *table = tn_settings_tables[i];
    if (strlen(table->name) != n || strncmp(table->name, section, n) != 0) continue;
    const tn_option *option = tn_options_find(table, key);
    return option ? option->default_text : NULL;
  }
  return NULL;
}

static const char *differences_shown(const char *value, const char *fallback) {
  const char *text = value ? value : fallback ? fallback : "its default";
  return *text ? text : "(empty)";
}

/* Values of several lines, such as the layers, are not shown. */
static tn_status differences_add_setting(tn_comparison *c, const char *section, const char *key,
                                         const char *then, const char *now) {
  enum { SHOWN = 100 };
  const char *fallback = differences_default(section, key);
  const char *old = differences_shown(then, fallback), *new = differences_shown(now, fallback);
  if (tn_text_equal(old, new)) return TN_OK;
  c->same = c->same && differences_is_harmless(c->run, section, key);
  bool shown = strlen(old) < SHOWN && strlen(new) < SHOWN && !strchr(old, '\n') && !strchr(new, '\n');
  const char *note = tn_text_equal(section, "weights") && tn_text_equal(key, "file")
                         ? ": not read, the run goes on with the weights of its checkpoint"
                         : "";
  return shown ? tn_run_remark(c->run, "[%s] %s = %s -> %s%s", section, key, old, new, note)
               : tn_run_remark(c->run, "[%s] %s is another one now", section, key);
}

static const char *differences_value(const tn_ini *ini, const char *section, const char *key) {
  const tn_section *found = tn_ini_section(ini, section);
  const tn_key *at = found ? tn_section_key(found, key) : NULL;
  return at ? at->value : NULL;
}

static tn_status differences_compare_settings(tn_comparison *c) {
  const tn_ini *now = &c->run->ini;
  for (int32_t i = 0; i < now->n_sections; i++)
    for (int32_t k = 0; k < now->sections[i].n_keys; k++) {
      const char *section = now->sections[i].name;
      const tn_key *key = &now->sections[i].keys[k];
      const char *then = differences_value(&c->then, section, key->name);
      if (!tn_text_equal(then, key->value))
        TN_TRY(differences_add_setting(c, section, key->name, then, key->value));
    }
  for (int32_t i = 0; i < c->then.n_sections; i++)
    for (int32_t k = 0; k < c->then.sections[i].n_keys; k++) {
      const char *section = c->then.sections[i].name;
      const tn_key *key = &c->then.sections[i].keys[k];
      if (differences_value(now, section, key->name) == NULL)
        TN_TRY(differences_add_setting(c, section, key->name, key->value, NULL));
    }
  return TN_OK;
}

/* ---- refused ---- */

static tn_status differences_refuse(tn_comparison *c, const char *key, const char *then, const char *now) {
  return tn_failf(
      &c->run->env, TN_EINVAL,
      "%s: [optimizer] %s = %s, but %s was trained with %s, and its checkpoint holds the state of "
      "that; resume with the same %s, or begin a new run from its weights: --weights "
      "%s/checkpoints/last/model.safetensors without --resume",
      tn_settings_where(&c->run->ini, "optimizer", key), key, *now ? now : "(empty)", c->folder,
      *then ? then : "(empty)", key, c->folder);
}

/* The last epoch in which a group is frozen; 0 without one. */
static int64_t differences_until(const tn_ini *ini, const char *section) {
  const char *freeze = differences_value(ini, section, "freeze");
  int64_t until = 0;
  bool valid = tn_text_starts(section, "group.") && freeze && tn_settings_frozen_until(freeze, &until);
  return valid ? until : 0;
}

/* "conv1.*, bn1.*": what the groups with freeze = yes match; NULL: no memory. */
static const char *differences_frozen(tn_comparison *c, const tn_ini *ini) {
  const char *all = "";
  for (int32_t i = 0; all != NULL && i < ini->n_sections; i++) {
    const char *name = ini->sections[i].name, *match = differences_value(ini, name, "match");
    if (differences_until(ini, name) != TN_FROZEN_FOREVER || match == NULL) continue;
    all = tn_arena_printf(&c->run->arena, "%s%s%s", all, *all ? ", " : "", match);
  }
  return all;
}

static tn_status differences_check_frozen(tn_comparison *c) {
  const char *then = differences_frozen(c, &c->then), *now = differences_frozen(c, &c->run->ini);
  if (then == NULL || now == NULL) return TN_ENOMEM;
  if (tn_text_equal(then, now)) return TN_OK;
  return tn_failf(
      &c->run->env, TN_EINVAL,
      "%s: groups with freeze = yes match %s, but in %s they matched %s, and its checkpoint holds the "
      "optimizer state of the others; resume with the same, or begin a new run from its weights: "
      "--weights %s/checkpoints/last/model.safetensors without --resume",
      c->run->ini.path, *now ? now : "nothing", c->folder, *then ? then : "nothing", c->folder);
}

static tn_status differences_refuse_thaw(tn_comparison *c, const char *section) {
  const tn_ini *inis[] = {&c->run->ini, &c->then};
  const char *texts[4];
  for (int i = 0; i < 4; i++) {
    texts[i] = differences_value(inis[i / 2], section, i % 2 ? "match" : "freeze");
    if (texts[i] == NULL) texts[i] = i % 2 ? "nothing" : "no";
  }
  return tn_failf(
      &c->run->env, TN_EINVAL,
      "%s: [%s] freeze = %s with match = %s, but in %s it was freeze = %s with match = %s, and its "
      "checkpoint holds the optimizer state of that; resume with the same, or begin a new run from "
      "its weights: --weights %s/checkpoints/last/model.safetensors without --resume",
      tn_settings_where(&c->run->ini, section, "freeze"), section, texts[0], texts[1], c->folder, texts[2],
      texts[3], c->folder);
}

/* A group may thaw at another epoch while it is frozen both ways, which tn_run_check_thaw decides. */
static tn_status differences_check_thaw(tn_comparison *c, const char *section) {
  int64_t now = differences_until(&c->run->ini, section), then = differences_until(&c->then, section);
  bool always = now == TN_FROZEN_FOREVER || then == TN_FROZEN_FOREVER; /* differences_check_frozen */
  if (always || (now == 0 && then == 0)) return TN_OK;
  if (now == 0 || then == 0 ||
      !tn_text_equal(differences_value(&c->run->ini, section, "match"),
                     differences_value(&c->then, section, "match")))
    return differences_refuse_thaw(c, section);
  int64_t until = now < then ? now : then;
  if (now == then || (c->run->thaw != NULL && c->run->thaw_until <= until)) return TN_OK;
  c->run->thaw = tn_arena_printf(&c->run->arena, "%s: [%s] freeze = %lld, but in %s it was %lld",
                                 tn_settings_where(&c->run->ini, section, "freeze"), section, (long long)now,
                                 c->folder, (long long)then);
  c->run->thaw_until = until;
  return c->run->thaw != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status differences_check_thaws(tn_comparison *c) {
  const tn_ini *inis[] = {&c->run->ini, &c->then};
  for (int i = 0; i < 2; i++)
    for (int32_t k = 0; k < inis[i]->n_sections; k++)
      TN_TRY(differences_check_thaw(c, inis[i]->sections[k].name));
  return TN_OK;
}

tn_status tn_run_check_thaw(tn_run *run, const char *folder, int64_t epoch) {
  if (run->thaw == NULL || epoch <= run->thaw_until) return TN_OK;
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s, which can be changed until epoch %lld, and the run has trained in epoch %lld; resume with the "
      "same, or begin a new run from its weights: --weights %s/checkpoints/last/model.safetensors without "
      "--resume",
      run->thaw, (long long)run->thaw_until, (long long)epoch, folder);
}

/* Whether a checkpoint of the run lacks state of this one. Another decay keeps the same average. */
static bool differences_have_other_state(const char *key, const char *then, const char *now) {
  if (tn_text_equal(key, "ema")) return (strtod(then, NULL) > 0) != (strtod(now, NULL) > 0);
  return !tn_text_equal(then, now);
}

static tn_status differences_check_optimizer(tn_comparison *c) {
  static const char *const keys[] = {"type", "ema", "swa_from"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const char *fallback = differences_default("optimizer", keys[i]),
               *then = differences_value(&c->then, "optimizer", keys[i]),
               *now = differences_value(&c->run->ini, "optimizer", keys[i]);
    then = then ? then : fallback;
    now = now ? now : fallback;
    if (differences_have_other_state(keys[i], then, now)) return differences_refuse(c, keys[i], then, now);
  }
  return TN_OK;
}

/* --weights beside --resume is a way to start a run or go on with it, by one command: the weights are those
 * that the run began with, or the command is refused. */
static tn_status differences_check_weights(tn_comparison *c) {
  const tn_section *section = tn_ini_section(&c->run->ini, "weights");
  const tn_key *key = section ? tn_section_key(section, "file") : NULL;
  if (key == NULL || !tn_text_equal(key->file, "--weights")) return TN_OK;
  const char *then = differences_value(&c->then, "weights", "file");
  if (tn_text_equal(then, key->value))
    return tn_run_remark(c->run, "--weights %s: not read, the run goes on with the weights of its checkpoint",
                         key->value);
  return tn_failf(&c->run->env, TN_EINVAL,
                  "--weights %s beside --resume: %s began with %s and goes on with the weights of its "
                  "checkpoint; leave out --weights to resume it, or --resume to begin a new run",
                  key->value, c->folder, then && *then ? then : "other weights");
}

/* ---- backend and versions ---- */

static const char *differences_text(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

json_t *tn_run_made_for(const tn_device *d) {
  return json_pack("{s:s, s:s, s:s}", "backend", tn_device_name(d), "libraries", tn_device_libraries(d),
                   "device", d->target.properties.name);
}

/* Another device of the same backend repeats the plan. */
static tn_status differences_compare_backend(tn_comparison *c, const json_t *plan) {
  static const char *const names[] = {"backend", "libraries", "device"};
  json_t *now = tn_run_made_for(c->device), *then = json_object_get(plan, "made_for");
  tn_status status = now ? TN_OK : TN_ENOMEM;
  for (int i = 0; status == TN_OK && i < 3; i++) {
    const char *old = differences_text(then, names[i]), *new = differences_text(now, names[i]);
    if (tn_text_equal(old, new)) continue;
    c->same = c->same && i == 2;
    status = tn_run_remark(c->run, "%s %s -> %s", names[i], *old ? old : "unknown", *new ? new : "none");
  }
  json_decref(now);
  return status;
}

/* The version of a plugin that has kernels of a family; NULL: no such plugin. */
static const char *differences_version_in(tn_comparison *c, const char *family, const char *plugin) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  if (tn_registry_kernels(c->run->registry, &c->run->env, family, &entries, &n) != TN_OK) return NULL;
  for (int32_t i = 0; i < n; i++)
    if (tn_text_equal(entries[i].plugin, plugin)) return entries[i].version;
  return NULL;
}

/* The host's own kernels are of plugin "tenon". */
static const char *differences_version(tn_comparison *c, const char *plugin, const char *then) {
  const tn_device *d = c->device;
  if (tn_text_equal(plugin, "tenon")) return then;
  const char *version = differences_version_in(c, d->backend->item.name, plugin);
  if (version == NULL && d->extension) version = differences_version_in(c, d->extension->item.name, plugin);
  if (version == NULL && d->fallback)
    version = differences_version_in(c, d->fallback->backend->item.name, plugin);
  return version;
}

static tn_status differences_compare_versions(tn_comparison *c, const json_t *plan) {
  const json_t *kernels = json_object_get(plan, "kernels");
  const char *last = "";
  for (size_t i = 0; i < json_array_size(kernels); i++) {
    const json_t *kernel = json_array_get(kernels, i);
    const char *plugin = differences_text(kernel, "plugin"), *then = differences_text(kernel, "version");
    if (tn_text_equal(plugin, last)) continue;
    last = plugin;
    bool seen = false;
    for (size_t k = 0; k < i && !seen; k++)
      seen = tn_text_equal(differences_text(json_array_get(kernels, k), "plugin"), plugin);
    const char *now = seen ? then : differences_version(c, plugin, then);
    if (tn_text_equal(then, now)) continue;
    c->same = false;
    TN_TRY(tn_run_remark(c->run, "plugin %s %s -> %s", plugin, *then ? then : "unknown",
                         now ? now : "not installed"));
  }
  return TN_OK;
}

/* ---- all ---- */

static tn_status differences_read_config(tn_comparison *c, bool *read) {
  char *path = tn_path_join(&c->run->env, c->folder, "config.ini");
  if (path == NULL) return TN_ENOMEM;
  tn_status status = tn_ini_read(&c->run->env, path, &c->then);
  tn_release(&c->run->env, path);
  *read = status == TN_OK;
  if (status == TN_OK || status == TN_ENOMEM) return status;
  status =
      tn_run_remark(c->run, "other settings than before cannot be named: %s", tn_error_text(&c->run->env));
  tn_error_clear(&c->run->env);
  return status;
}

static tn_status differences_compare_all(tn_comparison *c, const json_t *plan) {
  bool read = false;
  TN_TRY(differences_read_config(c, &read));
  if (read) TN_TRY(differences_check_optimizer(c));
  if (read) TN_TRY(differences_check_frozen(c));
  if (read) TN_TRY(differences_check_thaws(c));
  if (read) TN_TRY(differences_check_weights(c));
  if (plan) TN_TRY(differences_compare_backend(c, plan));
  if (plan && c->same) TN_TRY(differences_compare_versions(c, plan));
  return read ? differences_compare_settings(c) : TN_OK;
}

tn_status tn_run_compare(tn_run *run, const tn_device *device, const char *folder, const json_t *plan,
                         bool *same) {
  tn_comparison c = {.run = run, .device = device, .folder = folder, .same = true};
  tn_status status = differences_compare_all(&c, plan);
  if (c.then.sections != NULL) tn_ini_free(&c.then);
  *same = c.same && plan != NULL;
  return status;
}
