/* core/infer/prediction/predict_outputs.c: one output as a .npy file, or all of them, by name, as a
 * .safetensors file. */
#include "core/infer/prediction/predict_outputs.h"

#include <string.h>
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/base/rows.h"
#include "core/formats/npy.h"
#include "core/formats/safetensors.h"

/* ---- the file that the user names ---- */

/* The length of NAME in "NAME=PATH", or 0. */
static size_t output_name_length(const char *text) {
  size_t n =
      strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"); /* names lack dots */
  return text[n] == '=' ? n : 0;
}

static bool output_is_folder(const char *path) {
  struct stat info;
  return tn_text_ends(path, "/") || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

tn_status tn_predict_outputs_name(tn_run *run, const char *given, tn_predict_outputs *o) {
  size_t n = given != NULL ? output_name_length(given) : 0;
  *o = (tn_predict_outputs){.path = given, .only = -1};
  if (given == NULL) return TN_OK;
  if (output_is_folder(given)) {
    o->folder = given;
    return TN_OK;
  }
  if (tn_text_ends(given, ".json"))
    o->json = given;
  else
    o->given = given;
  if (n > 0 && o->given != NULL) {
    o->name = tn_arena_printf(&run->arena, "%.*s", (int)n, given);
    o->path = given + n + 1;
    if (o->name == NULL) return TN_ENOMEM;
  }
  return tn_file_check_new(&run->env, o->path);
}

/* "mean, deviation" */
static tn_status output_add_names(const tn_forward *f, tn_text *names) {
  for (int32_t k = 0; k < f->n_outputs; k++)
    tn_text_addf(names, "%s%s", k > 0 ? ", " : "", f->outputs[k].name);
  return names->failed ? TN_ENOMEM : TN_OK;
}

static tn_status output_refuse(const tn_predict_outputs *o) {
  const tn_forward *f = o->forward;
  tn_text names = tn_text_new(&f->run->env);
  tn_status status = output_add_names(f, &names);
  if (status == TN_OK && o->name != NULL)
    status = tn_failf(&f->run->env, TN_EINVAL, "%s: the model has no output '%s', expected one of: %s",
                      o->given, o->name, names.v);
  else if (status == TN_OK)
    status =
        tn_failf(&f->run->env, TN_EINVAL,
                 "%s: the model has %d outputs, %s; name a FILE.safetensors for all of them, or one as in "
                 "%s=%s",
                 o->given, f->n_outputs, names.v, f->outputs[0].name, o->given);
  tn_text_free(&names);
  return status;
}

tn_status tn_predict_outputs_find(tn_predict_outputs *o, const tn_forward *f) {
  o->forward = f;
  if (o->given == NULL) return TN_OK;
  for (int32_t k = 0; k < f->n_outputs && o->name != NULL; k++)
    if (tn_text_equal(f->outputs[k].name, o->name)) o->only = k;
  bool takes_all = tn_text_ends(o->path, ".safetensors") || tn_text_ends(o->path, ".csv");
  if (o->name == NULL && f->n_outputs == 1) o->only = 0;
  if (o->only >= 0 || (o->name == NULL && takes_all)) return TN_OK;
  return output_refuse(o);
}

/* ---- rows ---- */

tn_status tn_predict_outputs_start(tn_predict_outputs *o) {
  const tn_forward *f = o->forward;
  o->rows = tn_alloc(&f->run->env, tn_size_mul((size_t)f->n_outputs, sizeof *o->rows));
  o->units = tn_arena_alloc(&f->run->arena, tn_size_mul((size_t)f->n_outputs, sizeof *o->units));
  if (o->rows == NULL || o->units == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < f->n_outputs; k++) {
    TN_TRY(tn_output_units_find(f, k, &o->units[k]));
    size_t bytes = tn_size_mul((size_t)(o->given != NULL ? f->count : f->batch), f->outputs[k].row_bytes);
    o->rows[k] = tn_alloc(&f->run->env, tn_size_add(bytes, 1));
    if (o->rows[k] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

void tn_predict_outputs_free(tn_predict_outputs *o) {
  for (int32_t k = 0; o->rows != NULL && k < o->forward->n_outputs; k++)
    tn_release(&o->forward->run->env, o->rows[k]);
  if (o->rows != NULL) tn_release(&o->forward->run->env, o->rows);
  o->rows = NULL;
}

void tn_predict_outputs_take(tn_predict_outputs *o, int32_t slot, int64_t first, int64_t n) {
  const tn_forward *f = o->forward;
  o->base = o->given != NULL ? 0 : first;
  for (int32_t k = 0; k < f->n_outputs; k++) {
    size_t bytes = f->outputs[k].row_bytes;
    char *to = o->rows[k] + (size_t)(first - o->base) * bytes;
    memcpy(to, tn_forward_output(f, slot, k), (size_t)n * bytes);
    tn_output_units_apply(&o->units[k], &f->outputs[k], to, n);
  }
}

const void *tn_predict_outputs_row(const tn_predict_outputs *o, int32_t k, int64_t i) {
  return o->rows[k] + (size_t)(i - o->base) * o->forward->outputs[k].row_bytes;
}

/* ---- files ---- */

static tn_status output_write_safetensors(const tn_predict_outputs *o, int32_t first, int32_t n) {
  const tn_env *env = &o->forward->run->env;
  const tn_output_rows *outputs = o->forward->outputs + first;
  tn_safetensors_writer *writer = NULL;
  tn_safetensor_named *named = tn_arena_alloc(&o->forward->run->arena, tn_size_mul((size_t)n, sizeof *named));
  if (named == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < n; k++)
    named[k] = (tn_safetensor_named){outputs[k].name, tn_type_batched(&outputs[k].row, o->forward->count)};
  tn_status status = tn_safetensors_begin(env, o->path, named, n, NULL, 0, &writer);
  for (int32_t k = 0; k < n && status == TN_OK; k++)
    status = tn_safetensors_append(writer, o->rows[first + k], tn_type_bytes(&named[k].type));
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}

tn_status tn_predict_outputs_write(const tn_predict_outputs *o) {
  if (o->given == NULL) return TN_OK;
  int32_t first = o->only >= 0 ? o->only : 0, n = o->only >= 0 ? 1 : o->forward->n_outputs;
  if (tn_text_ends(o->path, ".safetensors")) return output_write_safetensors(o, first, n);
  tn_type type = tn_type_batched(&o->forward->outputs[first].row, o->forward->count);
  return tn_npy_write(&o->forward->run->env, o->path, &type, o->rows[first]);
}

json_t *tn_predict_outputs_list(const tn_predict_outputs *o) {
  json_t *list = json_array();
  for (int32_t k = 0; k < o->forward->n_outputs; k++) {
    char type[TN_TYPE_TEXT];
    const tn_output_rows *output = &o->forward->outputs[k];
    json_array_append_new(
        list, json_pack("{s:s, s:s}", "name", output->name, "row", tn_type_format(&output->row, type)));
  }
  return list;
}
