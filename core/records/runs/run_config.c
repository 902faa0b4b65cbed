/* core/records/runs/run_config.c: config.ini of a run folder: the configuration that ran last,
 * resolved.ini, the same with all defaults, and, under numbers, those of the processes before. */
#include <string.h>

#include "core/records/runs/run_folder.h"

enum { TN_CONFIG_LIMIT = 64 * 1024 * 1024, TN_CONFIG_TRIES = 100000 };

/* A file of the configuration: its name without the end, its text now, and what the folder has. */
typedef struct run_config_file {
  const char *name;
  tn_text now;
  char *path, *then; /* then: may be NULL */
  size_t n;
} run_config_file;

static bool run_config_differs(const run_config_file *f) {
  return f->then == NULL || f->n != f->now.n || memcmp(f->then, f->now.v, f->n) != 0;
}

static bool run_config_taken(tn_run *run, const char *folder, const char *name, int32_t i) {
  tn_text path = tn_text_new(&run->env);
  tn_text_addf(&path, "%s/%s-%d.ini", folder, name, (int)i);
  bool taken = path.failed || tn_file_exists(path.v);
  tn_text_free(&path);
  return taken;
}

/* Copies the text to NAME-N.ini. NAME.ini stays until it is replaced, so that the folder has one at every
 * moment. */
static tn_status run_config_copy(tn_run *run, const char *folder, const run_config_file *f, int32_t i) {
  tn_text path = tn_text_new(&run->env);
  tn_text_addf(&path, "%s/%s-%d.ini", folder, f->name, (int)i);
  tn_status status = path.failed ? TN_ENOMEM : TN_OK;
  if (status == TN_OK && f->then != NULL) status = tn_file_write_atomic(&run->env, path.v, f->then, f->n);
  tn_text_free(&path);
  return status;
}

/* Both files of an earlier process get the first number that is free. */
static tn_status run_config_number(tn_run *run, const char *folder, const run_config_file *files) {
  int32_t i = 1;
  while (i <= TN_CONFIG_TRIES &&
         (run_config_taken(run, folder, files[0].name, i) || run_config_taken(run, folder, files[1].name, i)))
    i++;
  if (i > TN_CONFIG_TRIES) return tn_failf(&run->env, TN_EIO, "%s: too many earlier configurations", folder);
  for (int k = 0; k < 2; k++) TN_TRY(run_config_copy(run, folder, &files[k], i));
  return TN_OK;
}

static tn_status run_config_read(tn_run *run, const char *folder, run_config_file *f) {
  tn_text path = tn_text_new(&run->env);
  tn_text_addf(&path, "%s/%s.ini", folder, f->name);
  if ((f->path = tn_text_take(&path)) == NULL || f->now.failed) return TN_ENOMEM;
  return tn_file_exists(f->path) ? tn_file_read(&run->env, f->path, TN_CONFIG_LIMIT, &f->then, &f->n) : TN_OK;
}

static tn_status run_config_replace(tn_run *run, const char *folder, run_config_file *files) {
  bool differs[2];
  for (int k = 0; k < 2; k++) TN_TRY(run_config_read(run, folder, &files[k]));
  for (int k = 0; k < 2; k++) differs[k] = run_config_differs(&files[k]);
  if ((files[0].then != NULL && differs[0]) || (files[1].then != NULL && differs[1]))
    TN_TRY(run_config_number(run, folder, files));
  for (int k = 0; k < 2; k++) /* config.ini first: a folder that has it is a run's */
    if (differs[k]) TN_TRY(tn_file_write_atomic(&run->env, files[k].path, files[k].now.v, files[k].now.n));
  return TN_OK;
}

tn_status tn_run_config_keep(tn_run *run, const char *folder) {
  run_config_file files[2] = {{.name = "config", .now = tn_text_new(&run->env)},
                              {.name = "resolved", .now = tn_text_new(&run->env)}};
  for (int k = 0; k < 2; k++) tn_text_add(&files[k].now, ""); /* a configuration may be empty */
  tn_status status = tn_ini_print(&run->env, &run->ini, &files[0].now);
  if (status == TN_OK)
    status = tn_settings_print_resolved(&run->env, run->registry, &run->ini, &run->settings, run->backend,
                                        &files[1].now);
  if (status == TN_OK) status = run_config_replace(run, folder, files);
  for (int k = 0; k < 2; k++) {
    tn_text_free(&files[k].now);
    tn_release(&run->env, files[k].path);
    tn_release(&run->env, files[k].then);
  }
  return status;
}
