/* core/records/tensors/average_tensors.c: tn_average_tensors: the mean of several weights, tensor by tensor
 * ("model soups": Wortsman et al., ICML 2022). */
#include <string.h>

#include "core/base/element.h"
#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/records/tensors/tensor_files.h"
#include "core/run/result.h"
#include "tenon/folders.h"

typedef struct average_inputs {
  const void *handle;
  tn_tensor_files *files;
  int32_t n;
  tn_arena arena;
  const tn_stored_tensor **kept; /* of the first, without those of the optimizer */
  int32_t n_kept;
  uint64_t bytes;
  bool statistics; /* some are running statistics */
} average_inputs;

/* ---- the tensors that all have ---- */

static tn_status average_check(const average_inputs *in, const tn_stored_tensor *t, int32_t i) {
  const tn_stored_tensor *other = tn_tensor_files_find(&in->files[i], false, t->name);
  if (other == NULL)
    return tn_failf(in->handle, TN_EINVAL, "%s: lacks '%s', which %s has; expected weights of one model",
                    in->files[i].path, t->name, in->files[0].path);
  if (tn_type_equal(&other->type, &t->type)) return TN_OK;
  return tn_failf(in->handle, TN_EINVAL,
                  "%s: '%s' has another shape or type than in %s; expected weights of one model",
                  in->files[i].path, t->name, in->files[0].path);
}

static tn_status average_choose(average_inputs *in) {
  in->kept = tn_arena_alloc(&in->arena, tn_size_mul((size_t)in->files[0].n + 1, sizeof *in->kept));
  if (in->kept == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < in->files[0].n; k++) {
    const tn_stored_tensor *t = &in->files[0].tensors[k];
    if (t->optimizer) continue;
    for (int32_t i = 1; i < in->n; i++) TN_TRY(average_check(in, t, i));
    in->kept[in->n_kept++] = t;
    in->bytes += tn_type_bytes(&t->type);
    in->statistics = in->statistics || tn_text_ends(t->name, "running_var");
  }
  for (int32_t i = 1; i < in->n; i++) {
    int32_t n = 0;
    for (int32_t k = 0; k < in->files[i].n; k++) n += !in->files[i].tensors[k].optimizer;
    if (n != in->n_kept)
      return tn_failf(in->handle, TN_EINVAL, "%s: has %d tensors, and %s %d; expected weights of one model",
                      in->files[i].path, n, in->files[0].path, in->n_kept);
  }
  return TN_OK;
}

/* ---- one tensor ---- */

static tn_status average_add(const average_inputs *in, const tn_stored_tensor *t, double *sums) {
  int64_t count = tn_type_count(&t->type);
  for (int32_t i = 0; i < in->n; i++) {
    void *data = NULL;
    TN_TRY(tn_stored_tensor_read(in->handle, tn_tensor_files_find(&in->files[i], false, t->name), &data));
    for (int64_t k = 0; k < count; k++) sums[k] += tn_element_load(t->type.dtype, data, k);
    tn_release(in->handle, data);
  }
  return TN_OK;
}

/* Sums are f64. Numbers that are not floats, such as counters, are those of the first. */
static tn_status average_tensor(const average_inputs *in, const tn_stored_tensor *t, void **data) {
  int64_t count = tn_type_count(&t->type);
  TN_TRY(tn_stored_tensor_read(in->handle, t, data));
  if (!tn_dtype_is_float(t->type.dtype)) return TN_OK;
  double *sums = tn_alloc(in->handle, tn_size_mul((size_t)count + 1, sizeof *sums));
  tn_status status = sums != NULL ? average_add(in, t, sums) : TN_ENOMEM;
  for (int64_t k = 0; status == TN_OK && k < count; k++)
    tn_element_store(t->type.dtype, *data, k, sums[k] / in->n);
  tn_release(in->handle, sums);
  return status;
}

/* ---- the file ---- */

static tn_status average_append(const average_inputs *in, tn_safetensors_writer *writer) {
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < in->n_kept; k++) {
    void *data = NULL;
    status = average_tensor(in, in->kept[k], &data);
    if (status == TN_OK) status = tn_safetensors_append(writer, data, tn_type_bytes(&in->kept[k]->type));
    tn_release(in->handle, data);
  }
  return status;
}

/* Its notes, as the names of classes, are those of the first. */
static tn_status average_write(average_inputs *in, const char *to) {
  static const tn_safetensor_note ours = {"format", "tenon"};
  tn_safetensors_writer *writer = NULL;
  int32_t n_notes = 0;
  const tn_safetensor_note *notes =
      in->files[0].files[0] ? tn_safetensors_notes(in->files[0].files[0], &n_notes) : NULL;
  tn_safetensor_named *named = tn_arena_alloc(&in->arena, tn_size_mul((size_t)in->n_kept + 1, sizeof *named));
  if (named == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < in->n_kept; k++)
    named[k] = (tn_safetensor_named){in->kept[k]->name, in->kept[k]->type};
  TN_TRY(tn_safetensors_begin(in->handle, to, named, in->n_kept, n_notes ? notes : &ours,
                              n_notes ? n_notes : 1, &writer));
  tn_status status = average_append(in, writer);
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}

static tn_status average_check_target(tn_context *context, const char *to) {
  if (!tn_text_ends(to, ".safetensors"))
    return tn_failf(context, TN_EINVAL, "%s: expected the name of a new file that ends in .safetensors", to);
  if (!tn_file_exists(to)) return TN_OK;
  return tn_failf(context, TN_EINVAL, "%s: exists, and is not overwritten; remove it, or name another", to);
}

static json_t *average_result(const average_inputs *in, const char *to) {
  json_t *from = json_array();
  for (int32_t i = 0; i < in->n; i++) json_array_append_new(from, tn_json_text(in->files[i].path));
  return json_pack("{s:o, s:o, s:i, s:I, s:b}", "from", from, "to", tn_json_text(to), "tensors",
                   (int)in->n_kept, "bytes", (json_int_t)in->bytes, "statistics", (int)in->statistics);
}

tn_status tn_average_tensors(tn_context *context, const char *const *paths, int32_t n, const char *to,
                             char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, paths, "paths");
  TN_NEED(context, to, "to");
  if (n < 1) return tn_failf(context, TN_EINVAL, "%d weights, expected 1 or more", (int)n);
  for (int32_t i = 0; i < n; i++)
    if (paths[i] == NULL) return tn_failf(context, TN_EINVAL, "path %d is NULL", (int)i);
  TN_TRY(average_check_target(context, to));
  average_inputs in = {.handle = context, .arena = tn_arena_new(context)};
  in.files = tn_arena_alloc(&in.arena, tn_size_mul((size_t)n, sizeof *in.files));
  tn_status status = in.files != NULL ? TN_OK : TN_ENOMEM;
  while (status == TN_OK && in.n < n) {
    status = tn_tensor_files_open(context, paths[in.n], true, &in.files[in.n]);
    in.n++;
  }
  if (status == TN_OK) status = average_choose(&in);
  if (status == TN_OK) status = average_write(&in, to);
  if (status == TN_OK) status = tn_json_take(context, average_result(&in, to), json);
  for (int32_t i = 0; i < in.n; i++) tn_tensor_files_close(&in.files[i]);
  tn_arena_free(&in.arena);
  return status;
}
