/* core/distributed/ranks/compare_settings.c: checks that all processes have the same configuration. Keys
 * that may differ between hosts are not compared: places of data, plugins and folders, and threads. */
#include "core/distributed/ranks/compare_settings.h"

#include <string.h>

#include "core/base/text/text.h"

/* A pattern of "section.key". */
static bool settings_may_differ(tn_run *run, const char *section, const char *key) {
  static const char *const patterns[] = {
      "data*.folder",        "data*.file",   "data*.images", "data*.labels", "data*.workers",
      "run.output",          "run.threads",  "run.pin",      "run.name",     "plugins.load",
      "backend.tune_folder", "weights.file", "backend.*.*",  "run.report",   "communicator.*.address"};
  const char *name = tn_arena_printf(&run->arena, "%s.%s", section, key);
  for (size_t i = 0; name != NULL && i < sizeof patterns / sizeof *patterns; i++)
    if (tn_text_glob(patterns[i], name)) return true;
  return false;
}

static const char *settings_value(const tn_ini *ini, const char *section, const char *key) {
  const tn_section *found = tn_ini_section(ini, section);
  const tn_key *value = found != NULL ? tn_section_key(found, key) : NULL;
  return value != NULL ? value->value : NULL;
}

static tn_status settings_fail(tn_run *run, const char *section, const char *key, const char *own,
                               const char *theirs) {
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: [%s] %s is %s here, and %s for process 0; all processes must have the same configuration",
      run->ini.path, section, key, own != NULL ? own : "not given", theirs != NULL ? theirs : "not given");
}

/* The keys that `from` has, one of the two. */
static tn_status settings_compare(tn_run *run, const tn_ini *from, const tn_ini *own, const tn_ini *theirs) {
  for (int32_t s = 0; s < from->n_sections; s++) {
    const tn_section *section = &from->sections[s];
    for (int32_t k = 0; k < section->n_keys; k++) {
      const char *key = section->keys[k].name, *here = settings_value(own, section->name, key),
                 *there = settings_value(theirs, section->name, key);
      if (!tn_text_equal(here, there) && !settings_may_differ(run, section->name, key))
        return settings_fail(run, section->name, key, here, there);
    }
  }
  return TN_OK;
}

static tn_status settings_print(tn_run *run, const tn_ini *ini, char **text) {
  tn_text all = tn_text_new(&run->env);
  tn_text_add(&all, "");
  tn_status status = tn_ini_print(&run->env, ini, &all);
  if (status == TN_OK) *text = tn_text_take(&all);
  if (status != TN_OK) tn_text_free(&all);
  return status == TN_OK && *text == NULL ? TN_ENOMEM : status;
}

/* Both sides are texts that were printed, so that they are formatted alike. */
tn_status tn_settings_judge(tn_run *run, const char *own_text, const char *their_text) {
  tn_ini own, theirs;
  TN_TRY(tn_ini_parse(&run->env, own_text, run->ini.path, run->ini.folder, &own));
  tn_status status = tn_ini_parse(&run->env, their_text, "process 0", run->ini.folder, &theirs);
  if (status == TN_OK) {
    status = settings_compare(run, &own, &own, &theirs);
    if (status == TN_OK) status = settings_compare(run, &theirs, &own, &theirs);
    tn_ini_free(&theirs);
  }
  tn_ini_free(&own);
  return status;
}

tn_status tn_ranks_compare_settings(tn_rank_set *ranks, tn_run *run) {
  char *own = NULL, *text = NULL;
  TN_TRY(settings_print(run, &run->ini, &own));
  if (run->rank == 0) text = own;
  tn_status status = tn_ranks_tell_text(ranks, &run->env, "configuration", &text);
  if (status == TN_OK && run->rank > 0) status = tn_settings_judge(run, own, text);
  if (text != own) tn_release(&run->env, text);
  tn_release(&run->env, own);
  return status;
}
