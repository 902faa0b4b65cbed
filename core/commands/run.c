/* core/commands/run.c: opening and closing a run, and the short calls of tenon/run.h. */
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/system/system.h"
#include "core/commands/run_onnx.h"
#include "core/gguf/gguf_model.h"
#include "core/onnx/onnx.h"
#include "core/plugin/context.h"
#include "core/step/checks/mistakes.h"

static char *run_copy_text(tn_run *run, const char *text) {
  return text ? tn_arena_strdup(&run->arena, text) : NULL;
}

/* --weights sets [weights] file, so that config.ini of the run records it. */
static tn_status run_set_weights(tn_run *run, const char *path) {
  tn_text text = tn_text_new(&run->env);
  tn_text_addf(&text, "weights.file=%s", path);
  tn_status status = text.failed ? TN_ENOMEM : tn_ini_set(&run->env, &run->ini, text.v);
  tn_text_free(&text);
  if (status == TN_OK) tn_section_key(tn_ini_section(&run->ini, "weights"), "file")->file = "--weights";
  return status;
}

/* Texts of the options, which the caller may free. */
static tn_status run_copy_words(tn_run *run, const char *name, const char *const *from, int32_t n,
                                tn_words *words) {
  if (n > 0 && from == NULL)
    return tn_failf(&run->env, TN_EINVAL, "tn_run_options.%s is NULL, and n_%s is %d", name, name, (int)n);
  *words =
      (tn_words){tn_arena_alloc(&run->arena, tn_size_mul((size_t)(n > 0 ? n : 0) + 1, sizeof *words->v))};
  if (words->v == NULL) return TN_ENOMEM;
  for (; words->n < n; words->n++) {
    if (from[words->n] == NULL)
      return tn_failf(&run->env, TN_EINVAL, "tn_run_options.%s[%d] is NULL", name, (int)words->n);
    if ((words->v[words->n] = run_copy_text(run, from[words->n])) == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status run_read_options(tn_run *run, const tn_run_options *given) {
  tn_run_options full, *options = &full;
  TN_TRY(TN_READ_STRUCT(&run->env, tn_run_options, set, given, options));
  TN_TRY(run_copy_words(run, "set", options->set, options->n_set, &run->set));
  TN_TRY(run_copy_words(run, "command", options->command, options->n_command, &run->command));
  for (int32_t i = 0; i < run->set.n; i++) TN_TRY(tn_ini_set(&run->env, &run->ini, run->set.v[i]));
  run->output = run_copy_text(run, options->output);
  run->resume = run_copy_text(run, options->resume);
  run->trace = run_copy_text(run, options->trace);
  run->resume_asked = options->resume != NULL;
  run->terminal_columns = options->terminal;
  run->quiet = options->quiet != 0;
  run->progress = options->progress != 0;
  run->ini.untrusted = options->untrusted != 0;
  if ((options->output && run->output == NULL) || (options->resume && run->resume == NULL) ||
      (options->trace && run->trace == NULL))
    return TN_ENOMEM;
  return options->weights ? run_set_weights(run, options->weights) : TN_OK;
}

/* The origin of a run's configuration: a file, also of ONNX, or text beside a function that emits the model.
 */
typedef struct tn_run_origin {
  const char *path;
  const char *settings; /* if path is NULL */
  tn_model_fn emit;
  void *user;
} tn_run_origin;

/* A model of GGUF is its own configuration and its weights, unless others are given. */
static tn_status run_read_gguf(tn_run *run, const char *path) {
  tn_text text = tn_text_new(&run->env);
  char *folder = tn_path_folder(&run->env, path);
  tn_status status = folder != NULL ? tn_gguf_configuration(&run->env, path, &text) : TN_ENOMEM;
  if (status == TN_OK) status = tn_ini_parse(&run->env, text.v, path, folder, &run->ini);
  if (status == TN_OK) status = run_set_weights(run, path);
  tn_release(&run->env, folder);
  tn_text_free(&text);
  return status;
}

static tn_status run_read_file(tn_run *run, const char *path) {
  if (tn_text_ends(path, ".onnx")) return tn_run_read_onnx(run, path);
  return tn_text_ends(path, ".gguf") ? run_read_gguf(run, path) : tn_ini_read(&run->env, path, &run->ini);
}

static tn_status run_read_configuration(tn_run *run, const tn_run_origin *origin,
                                        const tn_run_options *options) {
  TN_TRY(origin->path ? run_read_file(run, origin->path)
                      : tn_ini_parse(&run->env, origin->settings, "settings", ".", &run->ini));
  TN_TRY(run_read_options(run, options));
  TN_TRY(tn_settings_load_plugins(&run->env, run->registry, &run->ini));
  if (origin->emit && tn_ini_section(&run->ini, "model"))
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: [model] beside a function that emits the model, expected one of them",
                    tn_key_where(&run->ini, tn_ini_section(&run->ini, "model"), NULL));
  TN_TRY(tn_settings_read(&run->env, run->registry, &run->ini, &run->settings));
  run->record.parts = &run->settings.parts;
  return tn_run_tell_mistakes(run, tn_ini_tell(&run->env, &run->ini));
}

static tn_status run_open(tn_context *context, const tn_run_origin *origin, const tn_run_options *options,
                          tn_run **out) {
  tn_run *run = tn_alloc(context, sizeof *run);
  if (run == NULL) return TN_ENOMEM;
  run->opened_s = tn_clock_s();
  tn_error_record_init(&run->env, &run->record, (const tn_env *)context);
  run->record.stop = &run->stop;
  run->context = context;
  run->registry = context->registry;
  run->arena = tn_arena_new(&run->env);
  run->emit = origin->emit;
  run->emit_user = origin->user;
  tn_status status = tn_context_ops(context, &run->ops);
  if (status == TN_OK) {
    status = run_read_configuration(run, origin, options);
    if (status != TN_OK) tn_error_move(context, &run->env);
  }
  if (status == TN_OK)
    *out = run;
  else
    tn_run_close(run);
  return status;
}

tn_status tn_run_open(tn_context *context, const char *path, const tn_run_options *options, tn_run **run) {
  TN_ENTER(context);
  TN_NEED(context, run, "run");
  *run = NULL;
  TN_NEED(context, path, "path");
  return run_open(context, &(tn_run_origin){.path = path}, options, run);
}

tn_status tn_run_open_model(tn_context *context, tn_model_fn emit, void *user, const char *settings,
                            const tn_run_options *options, tn_run **run) {
  TN_ENTER(context);
  TN_NEED(context, run, "run");
  *run = NULL;
  TN_NEED(context, emit, "emit");
  const tn_run_origin origin = {.settings = settings ? settings : "", .emit = emit, .user = user};
  return run_open(context, &origin, options, run);
}

void tn_run_close(tn_run *run) {
  if (run == NULL || run->hung) return;
  TN_THREAD_STATE;
  tn_onnx_model_close(run->imported);
  tn_ini_free(&run->ini);
  tn_arena_free(&run->arena);
  tn_release(run->context, run);
}

void tn_run_stop(tn_run *run) {
  if (run != NULL) atomic_store(&run->stop, 1);
}

/* Moves the text to the caller. */
static tn_status run_take_config(tn_status status, tn_text *text, char **ini) {
  if (status == TN_OK) *ini = tn_text_take(text);
  tn_text_free(text);
  return status == TN_OK && *ini == NULL ? TN_ENOMEM : status;
}

tn_status tn_run_config(tn_run *run, char **ini) {
  TN_ENTER(run);
  TN_NEED(run, ini, "ini");
  tn_text text = tn_text_new(&run->env);
  *ini = NULL;
  return run_take_config(tn_ini_print(&run->env, &run->ini, &text), &text, ini);
}

tn_status tn_run_resolved_config(tn_run *run, char **ini) {
  TN_ENTER(run);
  TN_NEED(run, ini, "ini");
  tn_text text = tn_text_new(&run->env);
  *ini = NULL;
  tn_status status =
      tn_settings_print_resolved(&run->env, run->registry, &run->ini, &run->settings, run->backend, &text);
  return run_take_config(status, &text, ini);
}
