/* core/records/tensors/tensor_files.c: finds and opens the files of weights. */
#include "core/records/tensors/tensor_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/formats/npy.h"
#include "core/records/checkpoints/checkpoint_files.h"
#include "core/records/checkpoints/weights_folder.h"

static bool tensor_files_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static tn_stored_tensor *tensor_files_add(tn_tensor_files *f) {
  tn_stored_tensor *grown = tn_arena_grow(&f->arena, f->tensors, (size_t)f->n, sizeof *grown);
  if (grown == NULL) return NULL;
  f->tensors = grown;
  return &grown[f->n++];
}

/* ---- safetensors ---- */

static tn_status tensor_files_add_file(const void *handle, tn_tensor_files *f, const char *path, int part) {
  if (f->check) TN_TRY(tn_checkpoint_file_check(handle, path));
  TN_TRY(tn_safetensors_open(handle, path, &f->files[part]));
  for (int32_t i = 0; i < tn_safetensors_count(f->files[part]); i++) {
    const tn_safetensor *t = tn_safetensors_at(f->files[part], i);
    tn_stored_tensor *one = tensor_files_add(f);
    if (one == NULL) return TN_ENOMEM;
    *one = (tn_stored_tensor){t->name,        t->stored, t->type, t->bytes, part == TN_CHECKPOINT_OPTIMIZER,
                              f->files[part], t,         path};
  }
  return TN_OK;
}

static void tensor_files_close_all(tn_tensor_files *f) {
  for (int i = 0; i < 2; i++) tn_safetensors_close(f->files[i]);
  f->files[0] = f->files[1] = NULL;
  f->tensors = NULL;
  f->n = 0;
}

typedef struct tensor_files_opening {
  const void *handle;
  tn_tensor_files *files;
} tensor_files_opening;

static tn_status tensor_files_use_file(void *context, const char *path) {
  tensor_files_opening *o = context;
  tensor_files_close_all(o->files);
  const char *kept = tn_arena_strdup(&o->files->arena, path);
  return kept != NULL ? tensor_files_add_file(o->handle, o->files, kept, TN_CHECKPOINT_MODEL) : TN_ENOMEM;
}

/* The optimizer's file beside that of the model, where there is one: others write folders without. */
static tn_status tensor_files_use_checkpoint(void *context, const char *model) {
  tensor_files_opening *o = context;
  tn_tensor_files *f = o->files;
  const char *name = tn_checkpoint_files[TN_CHECKPOINT_OPTIMIZER];
  TN_TRY(tensor_files_use_file(context, model));
  int length = (int)(strlen(model) - strlen(tn_checkpoint_files[TN_CHECKPOINT_MODEL]));
  const char *path = tn_arena_printf(&f->arena, "%.*s%s", length, model, name);
  if (path == NULL) return TN_ENOMEM;
  return tn_file_exists(path) ? tensor_files_add_file(o->handle, f, path, TN_CHECKPOINT_OPTIMIZER) : TN_OK;
}

/* ---- a folder of .npy files ---- */

static tn_status tensor_files_add_array(const void *handle, tn_tensor_files *f, const char *file) {
  void *data = NULL;
  tn_stored_tensor *one = tensor_files_add(f);
  if (one == NULL) return TN_ENOMEM;
  one->path = tn_arena_printf(&f->arena, "%s/%s", f->path, file);
  char *name = tn_arena_strdup(&f->arena, file);
  if (one->path == NULL || name == NULL) return TN_ENOMEM;
  name[strlen(name) - strlen(".npy")] = '\0';
  one->name = name;
  TN_TRY(tn_npy_read(handle, one->path, &one->type, &data));
  tn_release(handle, data);
  one->stored = tn_dtype_name(one->type.dtype);
  one->bytes = tn_type_bytes(&one->type);
  return TN_OK;
}

static bool tensor_files_is_array(const char *file) { return file[0] != '.' && tn_text_ends(file, ".npy"); }

/* By part, then by name. */
static int tensor_files_compare(const void *x, const void *y) {
  const tn_stored_tensor *a = x, *b = y;
  return a->optimizer != b->optimizer ? (int)a->optimizer - (int)b->optimizer : strcmp(a->name, b->name);
}

static tn_status tensor_files_add_arrays(const void *handle, tn_tensor_files *f) {
  DIR *folder = opendir(f->path);
  if (folder == NULL) return tn_file_fail(handle, f->path, "opened");
  f->kind = TN_TENSORS_NPY;
  tn_status status = TN_OK;
  for (struct dirent *entry; status == TN_OK && (entry = readdir(folder));)
    if (tensor_files_is_array(entry->d_name)) status = tensor_files_add_array(handle, f, entry->d_name);
  closedir(folder);
  if (status == TN_OK && f->n > 1) qsort(f->tensors, (size_t)f->n, sizeof *f->tensors, tensor_files_compare);
  if (status != TN_OK || f->n > 0) return status;
  return tn_failf(
      handle, TN_EINVAL,
      "%s: holds no weights; expected a file .safetensors, a checkpoint's folder, a run folder, or a "
      "folder of .npy files",
      f->path);
}

/* ---- any of them ---- */

static tn_status tensor_files_open_folder(const void *handle, tn_tensor_files *f) {
  tensor_files_opening opening = {handle, f};
  char *model, *folder;
  TN_TRY(tn_weights_use_folder(handle, f->path, tensor_files_use_checkpoint, &opening, &model));
  if (model == NULL) return tensor_files_add_arrays(handle, f);
  f->kind = TN_TENSORS_CHECKPOINT;
  folder = tn_path_folder(handle, model);
  f->path = folder != NULL ? tn_arena_strdup(&f->arena, folder) : NULL;
  tn_release(handle, folder);
  tn_release(handle, model);
  return f->path != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_tensor_files_open(const void *handle, const char *path, bool check, tn_tensor_files *f) {
  *f = (tn_tensor_files){.arena = tn_arena_new(handle), .check = check};
  tensor_files_opening opening = {handle, f};
  f->path = tn_arena_strdup(&f->arena, path);
  if (f->path == NULL) return TN_ENOMEM;
  if (tensor_files_is_folder(path)) return tensor_files_open_folder(handle, f);
  return tn_weights_use_file(handle, path, tensor_files_use_file, &opening);
}

void tn_tensor_files_close(tn_tensor_files *f) {
  tensor_files_close_all(f);
  tn_arena_free(&f->arena);
}

tn_status tn_stored_tensor_read(const void *handle, const tn_stored_tensor *t, void **data) {
  tn_type type;
  if (t->file == NULL) return tn_npy_read(handle, t->path, &type, data);
  *data = tn_alloc(handle, t->bytes > 0 ? (size_t)t->bytes : 1);
  if (*data == NULL) return TN_ENOMEM;
  tn_status status = tn_safetensors_read(t->file, handle, t->tensor, *data, (size_t)t->bytes);
  if (status == TN_OK) return TN_OK;
  tn_release(handle, *data);
  *data = NULL;
  return status;
}

const tn_stored_tensor *tn_tensor_files_find(const tn_tensor_files *f, bool optimizer, const char *name) {
  tn_stored_tensor wanted = {.name = name, .optimizer = optimizer};
  return f->n > 0 ? bsearch(&wanted, f->tensors, (size_t)f->n, sizeof wanted, tensor_files_compare) : NULL;
}

const char *tn_stored_tensor_dtype(const tn_stored_tensor *t) {
  return t->type.dtype == TN_ANY ? t->stored : tn_dtype_name(t->type.dtype);
}
