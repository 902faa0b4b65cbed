/* core/commands/export.c: tn_run_export_onnx: a trained model as a file of ONNX. */
#include "tenon/export.h"

#include <string.h>

#include "core/base/file/file.h"
#include "core/export/onnx/onnx.h"
#include "core/export/trained_model.h"
#include "core/onnx/onnx.h"
#include "core/records/learnt/target_units.h"
#include "core/run/result.h"

enum { DEFAULT_OPSET = 17 };

static tn_status export_check(tn_run *run, const char *path, const tn_export_options *o) {
  if (o->opset != 0 && (o->opset < TN_ONNX_FIRST_OPSET || o->opset > TN_ONNX_LAST_OPSET))
    return tn_failf(run, TN_EINVAL, "opset %d, expected %d to %d", (int)o->opset, TN_ONNX_FIRST_OPSET,
                    TN_ONNX_LAST_OPSET);
  if (o->precision != 0 && o->precision != TN_F32 && o->precision != TN_F16 && o->precision != TN_BF16)
    return tn_failf(run, TN_EINVAL, "precision %s, expected f32, f16 or bf16", tn_dtype_name(o->precision));
  if (o->preprocess != TN_PREPROCESS_METADATA && o->preprocess != TN_PREPROCESS_NODES)
    return tn_failf(run, TN_EINVAL, "preprocess %d, expected TN_PREPROCESS_METADATA or TN_PREPROCESS_NODES",
                    (int)o->preprocess);
  if (tn_file_exists(path))
    return tn_failf(run, TN_EINVAL, "%s: exists, and is not overwritten; remove it, or name another output",
                    path);
  return tn_file_check_new(run, path);
}

/* A key as the configuration has it; NULL: it is not given. */
static const char *export_key(const tn_run *run, const char *section, const char *name) {
  const tn_section *of = tn_ini_section(&run->ini, section);
  const tn_key *key = of != NULL ? tn_section_key(of, name) : NULL;
  return key != NULL && *key->value != '\0' ? key->value : NULL;
}

/* The transforms of validation. */
static const char *export_transforms(const tn_run *run) {
  const char *own = export_key(run, "data.valid", "transforms");
  return own != NULL ? own : export_key(run, "data", "transforms");
}

/* The source of validation. */
static const char *export_source(const tn_run *run) {
  const tn_data_setting *data = &run->settings.data[TN_SPLIT_VALID];
  return data->given ? data->source->item.name : NULL;
}

/* One loss of the model's output, without names of lines, which the file does not keep. */
static const char *export_loss(const tn_run *run) {
  const char *loss = export_key(run, "model", "loss");
  return loss != NULL && strpbrk(loss, "<\n") == NULL ? loss : NULL;
}

static json_t *export_result(const char *path, const tn_onnx_exported *made) {
  return json_pack("{s:o, s:I, s:I, s:I, s:b}", "file", tn_json_text(path), "nodes", (json_int_t)made->nodes,
                   "weights", (json_int_t)made->weights, "bytes", (json_int_t)made->bytes, "external",
                   (int)made->external);
}

static tn_status export_write(tn_trained_model *m, const char *path, const tn_export_options *o,
                              char **json) {
  tn_run *run = m->run;
  bool nodes = o->preprocess == TN_PREPROCESS_NODES;
  const char *loss = export_loss(run);
  const tn_onnx_note notes[] = {{TN_ONNX_CLASSES, run->class_names},
                                {TN_TARGET_UNITS_NOTE, run->target_units},
                                {TN_ONNX_LOSS, loss},
                                {TN_ONNX_TARGETS, loss != NULL ? export_key(run, "model", "targets") : NULL},
                                {TN_ONNX_SOURCE, nodes ? NULL : export_source(run)},
                                {TN_ONNX_TRANSFORMS, nodes ? NULL : export_transforms(run)}};
  const tn_onnx_export_request request = {.env = &run->env,
                                          .graph = m->graph,
                                          .batch = m->batch,
                                          .path = path,
                                          .opset = o->opset != 0 ? o->opset : DEFAULT_OPSET,
                                          .precision = o->precision != 0 ? o->precision : TN_F32,
                                          .fold = o->fold != 0,
                                          .external = o->external != 0,
                                          .notes = notes,
                                          .n_notes = sizeof notes / sizeof *notes,
                                          .read = tn_trained_model_read,
                                          .context = m};
  tn_onnx_exported made;
  m->graph = NULL;
  TN_TRY(tn_onnx_export(&request, &made));
  return tn_json_take(run, export_result(path, &made), json);
}

tn_status tn_run_export_onnx(tn_run *run, const char *path, const tn_export_options *given, char **json) {
  tn_export_options options;
  tn_trained_model model;
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_NEED(run, path, "path");
  TN_TRY(TN_READ_STRUCT(run, tn_export_options, opset, given, &options));
  TN_TRY(export_check(run, path, &options));
  tn_status status =
      tn_trained_model_open(run, 0, options.preprocess == TN_PREPROCESS_NODES, "export", &model);
  if (status == TN_OK) status = export_write(&model, path, &options, json);
  tn_trained_model_close(&model);
  return status == TN_EUNSUPPORTED ? tn_wrap(run, status, "%s", run->ini.path) : status;
}
