/* core/commands/export_c.c: tn_run_export_c: a trained model as a program in C. */
#include <ctype.h>

#include "core/export/source/program.h"
#include "core/export/trained_model.h"
#include "core/run/result.h"
#include "tenon/export.h"

enum { MOST_NAME = 64 };

/* A word of C. */
static void export_c_name(const tn_run *run, char name[MOST_NAME]) {
  const char *from = run->settings.run.name;
  size_t n = 0;
  if (isdigit((unsigned char)from[0])) name[n++] = '_';
  for (; *from != '\0' && n + 1 < MOST_NAME; from++) name[n++] = isalnum((unsigned char)*from) ? *from : '_';
  name[n] = '\0';
}

static json_t *export_c_result(const char *folder, const char *name, const tn_source_made *made) {
  return json_pack("{s:o, s:s, s:I, s:I, s:I}", "folder", tn_json_text(folder), "name", name, "steps",
                   (json_int_t)made->steps, "arena_bytes", (json_int_t)made->arena_bytes, "weight_bytes",
                   (json_int_t)made->weight_bytes);
}

static tn_status export_c_write(tn_trained_model *m, const char *folder, char **json) {
  char name[MOST_NAME];
  tn_source_made made;
  export_c_name(m->run, name);
  const tn_source_request request = {.env = &m->run->env,
                                     .graph = m->graph,
                                     .folder = folder,
                                     .name = name,
                                     .read = tn_trained_model_read,
                                     .context = m};
  m->graph = NULL;
  TN_TRY(tn_source_export(&request, &made));
  return tn_json_take(m->run, export_c_result(folder, name, &made), json);
}

tn_status tn_run_export_c(tn_run *run, const char *folder, const tn_export_c_options *given, char **json) {
  tn_export_c_options options;
  tn_trained_model model;
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_NEED(run, folder, "folder");
  TN_TRY(TN_READ_STRUCT(run, tn_export_c_options, batch, given, &options));
  if (options.batch < 0)
    return tn_failf(run, TN_EINVAL, "batch %lld, expected 1 or more", (long long)options.batch);
  tn_status status =
      tn_trained_model_open(run, options.batch > 0 ? options.batch : 1, false, "export", &model);
  if (status == TN_OK) status = export_c_write(&model, folder, json);
  tn_trained_model_close(&model);
  return status == TN_EUNSUPPORTED ? tn_wrap(run, status, "%s", run->ini.path) : status;
}
