/* plugins/sources/tokens/token_files.c: see token_files.h. nanoGPT writes tokens of 16 bits alone; llm.c
 * writes 256 words of 32 bits in front of them: a magic number, a version, the number of tokens. */
#include "plugins/sources/tokens/token_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "plugins/sources/paths.h"

enum { TOKEN_HEADER = 1024, TOKEN_STOP_EVERY = 1 << 24 };

typedef struct token_format {
  uint32_t magic, version;
  size_t size;
} token_format;

/* llm.c, dev/data/data_common.py: GPT-2's and Llama 3's. */
static const token_format token_formats[] = {{20240520, 1, 2}, {20240801, 7, 4}};

static const token_format *token_format_of(const mapped_file *file) {
  for (size_t i = 0; file->count >= TOKEN_HEADER && i < sizeof token_formats / sizeof *token_formats; i++)
    if (bytes_u32(file->bytes) == token_formats[i].magic) return &token_formats[i];
  return NULL;
}

/* Tokens behind a header of llm.c. */
static tn_status token_file_headed(tn_env *env, token_file *f, const token_format *format, size_t *size) {
  uint32_t version = bytes_u32(f->file.bytes + 4), told = bytes_u32(f->file.bytes + 8);
  uint64_t rest = f->file.count - TOKEN_HEADER;
  if (version != format->version)
    return tn_fail(env, TN_EINVAL, NULL, "%s: has magic %u of llm.c and version %u, expected version %u",
                   f->path, format->magic, version, format->version);
  if (rest / format->size != told || rest % format->size != 0)
    return tn_fail(
        env, TN_EINVAL, NULL,
        "%s: has %llu bytes of tokens, but its header says %u tokens of %zu bytes: it is cut off or "
        "damaged",
        f->path, (unsigned long long)rest, told, format->size);
  f->tokens = f->file.bytes + TOKEN_HEADER;
  f->count = told;
  *size = format->size;
  return TN_OK;
}

static tn_status token_file_npy(tn_env *env, token_file *f, size_t *size) {
  array a = {.file = f->file};
  TN_TRY(npy_find(env, f->path, f->file.bytes, f->file.count, &a));
  if (a.rank != 1 || a.element.kind != ELEMENT_UNSIGNED || a.element.size < 2 || a.element.size > 4 ||
      a.element.swapped)
    return tn_fail(env, TN_EINVAL, NULL, "%s: has %d dimensions of %s, expected one of u16 or u32", f->path,
                   (int)a.rank, element_name(&a.element));
  f->tokens = a.data;
  f->count = a.dims[0];
  *size = a.element.size;
  return TN_OK;
}

static tn_status token_file_plain(tn_env *env, token_file *f, int32_t type, size_t *size) {
  *size = type == TOKEN_TYPE_U32 ? 4 : 2;
  f->tokens = f->file.bytes;
  f->count = (int64_t)(f->file.count / *size);
  if (f->file.count % *size == 0) return TN_OK;
  return tn_fail(env, TN_EINVAL, "type", "%s: has %zu bytes, expected a multiple of %zu, the size of a token",
                 f->path, f->file.count, *size);
}

static tn_status token_file_find(tn_env *env, token_file *f, int32_t type, size_t *size) {
  const token_format *format = token_format_of(&f->file);
  size_t n = strlen(f->path);
  if (n > 4 && strcmp(f->path + n - 4, ".npy") == 0) {
    TN_TRY(token_file_npy(env, f, size));
  } else if (format != NULL) {
    TN_TRY(token_file_headed(env, f, format, size));
  } else {
    return token_file_plain(env, f, type, size);
  }
  size_t wanted = type == TOKEN_TYPE_U32 ? 4 : 2;
  if (type == TOKEN_TYPE_AUTO || *size == wanted) return TN_OK;
  return tn_fail(env, TN_EINVAL, "type", "%s: its header says tokens of %zu bytes, expected type = u%zu",
                 f->path, *size, 8 * *size);
}

static tn_status token_files_add(tn_env *env, const char *path, int32_t type, token_files *files) {
  token_file *f = &files->v[files->n++];
  size_t n = strlen(path) + 1, size = 0;
  *f = (token_file){.path = tn_new(env, n)};
  if (f->path == NULL) return TN_ENOMEM;
  memcpy(f->path, path, n);
  TN_TRY(mapped_open(env, path, &f->file));
  TN_TRY(token_file_find(env, f, type, &size));
  if (files->size != 0 && files->size != size)
    return tn_fail(env, TN_EINVAL, NULL, "%s: has tokens of %zu bytes, but %s of %zu, expected one size",
                   path, size, files->v[0].path, files->size);
  files->size = size;
  files->tokens += f->count;
  return TN_OK;
}

/* ---- the list ---- */

static tn_status token_files_join(tn_env *env, const char *option, const char *folder, const char *word,
                                  size_t n, char path[PATH_MAX]) {
  int32_t given = *word == '/';
  if (!given && !source_has_path(folder))
    return tn_fail(
        env, TN_EINVAL, option,
        "%s: %.*s is relative, and folder is not set, expected the folder where paths begin: folder = .",
        option, (int)n, word);
  int written = snprintf(path, PATH_MAX, "%s%s%.*s", given ? "" : folder, given ? "" : "/", (int)n, word);
  if (written >= 0 && written < PATH_MAX) return TN_OK;
  return tn_fail(env, TN_EINVAL, option, "%s: the path %.*s is too long", option, (int)n, word);
}

/* The length of a list's first entry; commas between braces belong to it. */
static size_t token_files_entry(const char *list) {
  size_t n = 0;
  for (int32_t braces = 0; list[n] != '\0' && list[n] != '\n' && (list[n] != ',' || braces > 0); n++)
    braces += list[n] == '{' ? 1 : list[n] == '}' ? -1 : 0;
  while (n > 0 && (list[n - 1] == ' ' || list[n - 1] == '\t')) n--;
  return n;
}

static tn_status token_files_list(tn_env *env, const char *option, const char *folder, const char *list,
                                  source_paths *paths) {
  for (const char *at = list + strspn(list, " \t\n,"); *at != '\0'; at += strspn(at, " \t\n,")) {
    char path[PATH_MAX];
    size_t n = token_files_entry(at);
    TN_TRY(token_files_join(env, option, folder, at, n, path));
    TN_TRY(source_paths_find(env, option, path, paths));
    at += n;
  }
  if (paths->n > 0) return TN_OK;
  return tn_fail(env, TN_EINVAL, option, "%s names no file, expected one, or a pattern such as train_*.bin",
                 option);
}

tn_status token_files_open(tn_env *env, const char *option, const char *folder, const char *list,
                           int32_t type, token_files *files) {
  source_paths paths = {.n = 0};
  tn_status status = token_files_list(env, option, folder, list, &paths);
  if (status == TN_OK) {
    files->v = tn_new(env, (size_t)paths.n * sizeof *files->v);
    if (files->v == NULL) status = TN_ENOMEM;
  }
  for (int64_t i = 0; status == TN_OK && i < paths.n; i++)
    status = token_files_add(env, paths.v[i], type, files);
  source_paths_free(env, &paths);
  return status;
}

void token_files_close(const void *handle, token_files *files) {
  for (int64_t i = 0; i < files->n; i++) {
    mapped_close(&files->v[i].file);
    tn_delete(handle, files->v[i].path);
  }
  tn_delete(handle, files->v);
  *files = (token_files){.n = 0};
}

tn_status token_files_greatest(tn_env *env, const token_files *files, int64_t *greatest) {
  for (int64_t k = 0; k < files->n; k++) {
    const token_file *f = &files->v[k];
    for (int64_t at = 0; at < f->count; at += TOKEN_STOP_EVERY) {
      int64_t end = f->count - at < TOKEN_STOP_EVERY ? f->count : at + TOKEN_STOP_EVERY, most = 0;
      if (tn_env_stopping(env))
        return tn_fail(env, TN_ESTOPPED, NULL, "%s: stopped while it was read", f->path);
      for (int64_t i = at; i < end; i++) {
        int64_t token = token_at(f->tokens, files->size, i);
        most = token > most ? token : most;
      }
      if (most > *greatest) *greatest = most;
    }
  }
  return TN_OK;
}
