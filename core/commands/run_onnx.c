/* core/commands/run_onnx.c: see run_onnx.h. */
#include "core/commands/run_onnx.h"

#include <string.h>

#include "core/base/file/file.h"
#include "core/onnx/onnx.h"
#include "core/plugin/registry.h"

/* A note that is one value in one line; NULL: there is no such note. */
static const char *run_onnx_note(const tn_run *run, const char *key) {
  const char *value = tn_onnx_model_note(run->imported, key);
  return value != NULL && *value != '\0' && strpbrk(value, "\n\r#$") == NULL ? value : NULL;
}

/* Folders and files that the source requires are not read where the caller names files and arrays. False: it
 * requires something else. */
static bool run_onnx_add_options(const tn_item *source, tn_text *text) {
  for (const tn_option *o = source->options; o != NULL && o->name != NULL; o++) {
    if (o->default_text != NULL) continue;
    if (o->type != TN_OPT_PATH) return false;
    tn_text_addf(text, "%s = .\n", o->name);
  }
  return true;
}

static tn_status run_onnx_add_data(const tn_run *run, tn_text *text) {
  const char *name = run_onnx_note(run, TN_ONNX_SOURCE), *transforms = run_onnx_note(run, TN_ONNX_TRANSFORMS);
  const tn_entry *source = NULL;
  tn_text data = tn_text_new(&run->env);
  if (name == NULL || transforms == NULL) return TN_OK;
  if (tn_registry_find(run->registry, &run->env, TN_SOURCE, name, &source) != TN_OK) {
    tn_error_clear(&run->env);
    return TN_OK;
  }
  tn_text_addf(&data, "\n[data.valid]\nsource = %s\ntransforms = %s\n", name, transforms);
  if (run_onnx_add_options(source->item, &data) && !data.failed) tn_text_add(text, data.v);
  tn_text_free(&data);
  return TN_OK;
}

static tn_status run_onnx_parse(tn_run *run, const char *path, const char *folder, tn_text *text) {
  tn_text_add(text, tn_onnx_model_text(run->imported));
  TN_TRY(run_onnx_add_data(run, text));
  if (text->failed) return TN_ENOMEM;
  TN_TRY(tn_ini_parse(&run->env, text->v, path, folder, &run->ini));
  run->ini.path = tn_arena_strdup(&run->ini.arena, path);
  return run->ini.path != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_run_read_onnx(tn_run *run, const char *path) {
  TN_TRY(tn_onnx_model_open(&run->env, run->registry, run->ops, path, &run->imported));
  const char *classes = tn_onnx_model_note(run->imported, TN_ONNX_CLASSES);
  if (classes != NULL) run->class_names = tn_arena_strdup(&run->arena, classes);
  if (classes != NULL && run->class_names == NULL) return TN_ENOMEM;
  char *folder = tn_path_folder(&run->env, path);
  if (folder == NULL) return TN_ENOMEM;
  tn_text text = tn_text_new(&run->env);
  tn_status status = run_onnx_parse(run, path, folder, &text);
  tn_text_free(&text);
  tn_release(&run->env, folder);
  return status;
}
