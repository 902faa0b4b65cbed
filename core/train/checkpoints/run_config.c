/* core/train/checkpoints/run_config.c: config.ini of a run folder: the configuration that ran last, and,
 * under numbers, those of the processes before. */
#include <string.h>

#include "core/train/checkpoints/run_folder.h"

enum { TN_CONFIG_LIMIT = 64 * 1024 * 1024, TN_CONFIG_TRIES = 100000 };

/* Copies the text to the first free config-N.ini. config.ini keeps its name until it is replaced, so that the
 * folder has one at every moment. */
static tn_status run_config_number(tn_run *run, const char *folder, const char *text, size_t n) {
  for (int32_t i = 1; i <= TN_CONFIG_TRIES; i++) {
    tn_text path = tn_text_new(&run->env);
    tn_text_addf(&path, "%s/config-%d.ini", folder, (int)i);
    bool there = !path.failed && tn_file_exists(path.v);
    tn_status status = path.failed ? TN_ENOMEM : TN_OK;
    if (status == TN_OK && !there) status = tn_file_write_atomic(&run->env, path.v, text, n);
    tn_text_free(&path);
    if (status != TN_OK || !there) return status;
  }
  return tn_failf(&run->env, TN_EIO, "%s: too many earlier configurations", folder);
}

static tn_status run_config_replace(tn_run *run, const char *folder, const char *path, const tn_text *now) {
  char *then = NULL;
  size_t n = 0;
  tn_status status = tn_file_exists(path) ? tn_file_read(&run->env, path, TN_CONFIG_LIMIT, &then, &n) : TN_OK;
  bool same = then != NULL && n == now->n && memcmp(then, now->v, n) == 0;
  if (status == TN_OK && then != NULL && !same) status = run_config_number(run, folder, then, n);
  tn_release(&run->env, then);
  return status == TN_OK && !same ? tn_file_write_atomic(&run->env, path, now->v, now->n) : status;
}

tn_status tn_run_config_keep(tn_run *run, const char *folder) {
  tn_text text = tn_text_new(&run->env);
  char *path = tn_path_join(&run->env, folder, "config.ini");
  tn_text_add(&text, ""); /* a configuration may be empty */
  tn_status status = path ? tn_ini_print(&run->env, &run->ini, &text) : TN_ENOMEM;
  if (status == TN_OK) status = text.failed ? TN_ENOMEM : run_config_replace(run, folder, path, &text);
  tn_text_free(&text);
  tn_release(&run->env, path);
  return status;
}
