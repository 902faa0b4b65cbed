/* core/records/tensors/convert_tensors.c: tn_convert_tensors. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/base/element.h"
#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/formats/npy.h"
#include "core/records/tensors/tensor_files.h"
#include "core/run/result.h"
#include "tenon/folders.h"

typedef struct conversion {
  const void *handle;
  tn_tensor_files from;
  const char *to;
  int32_t dtype; /* TN_ANY: as they are */
  tn_stored_tensor **kept;
  int32_t n;
  uint64_t bytes; /* of the new tensors */
} conversion;

/* ---- elements ---- */

static tn_type convert_type(const conversion *c, const tn_stored_tensor *t) {
  tn_type type = t->type;
  if (c->dtype != TN_ANY && tn_dtype_is_float(type.dtype)) type.dtype = c->dtype;
  return type;
}

static tn_status convert_fail_range(const conversion *c, const tn_stored_tensor *t, int64_t i, double v) {
  return tn_failf(
      c->handle, TN_EINVAL,
      "%s: element %lld of '%s' is %g, which is too large for %s; convert to a dtype with more range",
      t->path, (long long)i, t->name, v, tn_dtype_name(c->dtype));
}

/* Into `to`, of the new type. */
static tn_status convert_elements(const conversion *c, const tn_stored_tensor *t, const void *from,
                                  void *to) {
  int64_t n = tn_type_count(&t->type);
  for (int64_t i = 0; i < n; i++) {
    double v = tn_element_load(t->type.dtype, from, i);
    tn_element_store(c->dtype, to, i, v);
    if (isfinite(v) && !isfinite(tn_element_load(c->dtype, to, i))) return convert_fail_range(c, t, i, v);
  }
  return TN_OK;
}

/* Reads a tensor in the new type; *data is the caller's (tn_release). */
static tn_status convert_tensor(const conversion *c, const tn_stored_tensor *t, void **data) {
  tn_type type = convert_type(c, t);
  void *old = NULL;
  if (t->type.dtype == type.dtype) return tn_stored_tensor_read(c->handle, t, data);
  TN_TRY(tn_stored_tensor_read(c->handle, t, &old));
  *data = tn_alloc(c->handle, tn_size_add(tn_type_bytes(&type), 1));
  tn_status status = *data ? convert_elements(c, t, old, *data) : TN_ENOMEM;
  tn_release(c->handle, old);
  return status;
}

/* ---- a safetensors file ---- */

static tn_status convert_append_all(const conversion *c, tn_safetensors_writer *writer) {
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < c->n; i++) {
    tn_type type = convert_type(c, c->kept[i]);
    void *data = NULL;
    status = convert_tensor(c, c->kept[i], &data);
    if (status == TN_OK) status = tn_safetensors_append(writer, data, tn_type_bytes(&type));
    tn_release(c->handle, data);
  }
  return status;
}

static tn_status convert_to_file(conversion *c) {
  tn_safetensors_writer *writer = NULL;
  static const tn_safetensor_note ours = {"format", "tenon"};
  int32_t n_notes = 0;
  const tn_safetensor_note *notes =
      c->from.files[0] ? tn_safetensors_notes(c->from.files[0], &n_notes) : NULL;
  tn_safetensor_named *named = tn_arena_alloc(&c->from.arena, tn_size_mul((size_t)c->n + 1, sizeof *named));
  if (named == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < c->n; i++)
    named[i] = (tn_safetensor_named){c->kept[i]->name, convert_type(c, c->kept[i])};
  TN_TRY(tn_safetensors_begin(c->handle, c->to, named, c->n, n_notes ? notes : &ours, n_notes ? n_notes : 1,
                              &writer));
  tn_status status = convert_append_all(c, writer);
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}

/* ---- a folder of .npy files ---- */

/* A name with a slash would be a file of another folder. */
static tn_status convert_check_names(const conversion *c) {
  for (int32_t i = 0; i < c->n; i++)
    if (strchr(c->kept[i]->name, '/') != NULL || c->kept[i]->name[0] == '.')
      return tn_failf(c->handle, TN_EINVAL,
                      "%s: '%s' cannot be the name of a .npy file; convert to a file .safetensors",
                      c->kept[i]->path, c->kept[i]->name);
  return TN_OK;
}

static tn_status convert_to_array(const conversion *c, const tn_stored_tensor *t, const char *path) {
  tn_type type = convert_type(c, t);
  void *data = NULL;
  tn_status status = convert_tensor(c, t, &data);
  if (status == TN_OK) status = tn_npy_write(c->handle, path, &type, data);
  tn_release(c->handle, data);
  return status;
}

/* The folder is new, so that it holds nothing but files of this call. */
static void convert_remove_folder(const conversion *c, const char *const *paths, int32_t n) {
  for (int32_t i = 0; i < n; i++) (void)unlink(paths[i]);
  (void)rmdir(c->to);
}

static tn_status convert_to_folder(conversion *c) {
  const char **paths = tn_arena_alloc(&c->from.arena, tn_size_mul((size_t)c->n + 1, sizeof *paths));
  if (paths == NULL) return TN_ENOMEM;
  TN_TRY(convert_check_names(c));
  TN_TRY(tn_folder_make(c->handle, c->to));
  tn_status status = TN_OK;
  int32_t n = 0;
  for (; status == TN_OK && n < c->n; n++) {
    paths[n] = tn_arena_printf(&c->from.arena, "%s/%s.npy", c->to, c->kept[n]->name);
    status = paths[n] ? convert_to_array(c, c->kept[n], paths[n]) : TN_ENOMEM;
  }
  if (status != TN_OK) convert_remove_folder(c, paths, paths[n - 1] ? n : n - 1);
  return status;
}

/* ---- the call ---- */

static tn_status convert_choose(conversion *c, bool optimizer) {
  c->kept = tn_arena_alloc(&c->from.arena, tn_size_mul((size_t)c->from.n + 1, sizeof *c->kept));
  if (c->kept == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < c->from.n; i++) {
    tn_stored_tensor *t = &c->from.tensors[i];
    if (t->optimizer && !optimizer) continue;
    c->kept[c->n++] = t;
    tn_type type = convert_type(c, t);
    c->bytes += tn_type_bytes(&type);
  }
  return TN_OK;
}

static tn_status convert_write(conversion *c) {
  bool file = tn_text_ends(c->to, ".safetensors");
  if (tn_file_exists(c->to))
    return tn_failf(c->handle, TN_EINVAL, "%s: exists, and is not overwritten; remove it, or name another",
                    c->to);
  return file ? convert_to_file(c) : convert_to_folder(c);
}

static tn_status convert_check_options(tn_context *context, const tn_convert_options *o) {
  if (o->dtype == TN_ANY || tn_dtype_is_float(o->dtype)) return TN_OK;
  return tn_failf(context, TN_EINVAL, "dtype: %d is no dtype of floats; expected f16, bf16, f32 or f64",
                  o->dtype);
}

tn_status tn_convert_tensors(tn_context *context, const char *from, const char *to,
                             const tn_convert_options *options, char **json) {
  TN_ENTER(context);
  TN_NEED(context, json, "json");
  *json = NULL;
  TN_NEED(context, from, "from");
  TN_NEED(context, to, "to");
  tn_convert_options o;
  TN_TRY(TN_READ_STRUCT(context, tn_convert_options, dtype, options, &o));
  TN_TRY(convert_check_options(context, &o));
  conversion c = {.handle = context, .to = to, .dtype = o.dtype};
  tn_status status = tn_tensor_files_open(context, from, true, &c.from);
  if (status == TN_OK) status = convert_choose(&c, o.optimizer != 0);
  if (status == TN_OK) status = convert_write(&c);
  if (status == TN_OK)
    status = tn_json_take(context,
                          json_pack("{s:o, s:o, s:i, s:I}", "from", tn_json_text(c.from.path), "to",
                                    tn_json_text(to), "tensors", (int)c.n, "bytes", (json_int_t)c.bytes),
                          json);
  tn_tensor_files_close(&c.from);
  return status;
}
