/* core/commands/import.c: tn_import_onnx. */
#include "tenon/import.h"

#include <string.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/graph/graph.h"
#include "core/onnx/onnx.h"
#include "core/plugin/context.h"
#include "core/run/result.h"

/* "net.safetensors" beside "net.ini". */
static char *import_weights_path(const void *handle, const char *configuration) {
  tn_text path = tn_text_new(handle);
  size_t n = strlen(configuration);
  tn_text_addn(&path, configuration, tn_text_ends(configuration, ".ini") ? n - strlen(".ini") : n);
  tn_text_add(&path, ".safetensors");
  return tn_text_take(&path);
}

static tn_status import_refuse_old(const void *handle, const char *path) {
  if (!tn_file_exists(path)) return TN_OK;
  return tn_failf(handle, TN_EINVAL, "%s: exists, and is not overwritten; remove it, or name another output",
                  path);
}

static tn_status import_run(tn_context *context, const char *configuration, const tn_onnx_request *request,
                            char **json) {
  struct tn_op_table *ops;
  tn_onnx_imported made = {.text = NULL};
  TN_TRY(import_refuse_old(context, configuration));
  TN_TRY(import_refuse_old(context, request->weights_path));
  TN_TRY(tn_context_ops(context, &ops));
  tn_status status = tn_onnx_import(&context->env, tn_context_registry(context), ops, request, &made);
  bool has_weights = tn_file_exists(request->weights_path);
  if (status == TN_OK) status = tn_file_write_atomic(context, configuration, made.text, strlen(made.text));
  if (status == TN_OK)
    status =
        tn_json_take(context,
                     json_pack("{s:o, s:o, s:I, s:I, s:I, s:b}", "configuration", tn_json_text(configuration),
                               "weights", has_weights ? tn_json_text(request->weights_path) : json_null(),
                               "nodes", (json_int_t)made.nodes, "lines", (json_int_t)made.lines, "parameters",
                               (json_int_t)made.parameters, "whole", made.whole),
                     json);
  else
    unlink(request->weights_path);
  tn_release(context, made.text);
  return status;
}

enum { IMPORT_MOST_CONSTANTS = 64 };

/* "NAME=FILE.npy" into a name, which is the caller's, and a path. */
static tn_status import_read_constant(const void *handle, const char *text, tn_onnx_given *given) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text || equals[1] == '\0')
    return tn_failf(handle, TN_EINVAL, "'%.200s' for an input, expected NAME=FILE.npy", text);
  char *name = tn_alloc(handle, (size_t)(equals - text) + 1);
  if (name == NULL) return TN_ENOMEM;
  memcpy(name, text, (size_t)(equals - text));
  *given = (tn_onnx_given){name, equals + 1};
  return TN_OK;
}

static tn_status import_with(tn_context *context, const char *configuration, const tn_import_options *options,
                             tn_onnx_request request, char **json) {
  tn_onnx_given given[IMPORT_MOST_CONSTANTS];
  int32_t all = options != NULL ? options->n_constants : 0;
  tn_status status = TN_OK;
  if (all < 0 || all > IMPORT_MOST_CONSTANTS)
    return tn_failf(context, TN_EINVAL, "%d constants, expected at most %d", all, IMPORT_MOST_CONSTANTS);
  request.given = given;
  request.flat = options != NULL && TN_HAS(options, flat) && options->flat != 0;
  while (status == TN_OK && request.n_given < all) {
    status = import_read_constant(context, options->constants[request.n_given], &given[request.n_given]);
    if (status == TN_OK) request.n_given++;
  }
  if (status == TN_OK) status = import_run(context, configuration, &request, json);
  for (int32_t i = 0; i < request.n_given; i++) tn_release(context, (void *)given[i].name);
  return status;
}

tn_status tn_import_onnx(tn_context *context, const char *path, const char *configuration,
                         const tn_import_options *options, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, path, "path");
  TN_NEED(context, configuration, "configuration");
  char *weights = import_weights_path(context, configuration);
  if (weights == NULL) return TN_ENOMEM;
  const char *slash = strrchr(weights, '/');
  const tn_onnx_request request = {
      .path = path, .weights_path = weights, .weights_name = slash != NULL ? slash + 1 : weights};
  tn_status status = import_with(context, configuration, options, request, json);
  tn_release(context, weights);
  return status;
}
