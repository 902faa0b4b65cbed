/* core/config/ini/ini.c: reading a file and its includes, merged into one set of sections. */
#include "core/config/ini/ini.h"

#include <string.h>
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/config/ini/parse.h"

enum { INCLUDE_DEPTH = 32 };

/* A file that is being read, linked to the file that includes it. An include of a file in this list is a
 * cycle. */
typedef struct ini_open_file {
  const struct ini_open_file *outer;
  const char *file, *folder;
  dev_t device;
  ino_t inode;
  int32_t depth, line; /* line: of the current include */
} ini_open_file;

static tn_status ini_load_file(const void *handle, tn_ini *ini, const char *path, const ini_open_file *outer);

/* Merges a section; its keys override existing ones. */
static tn_status ini_merge_section(tn_ini *ini, const tn_section *from) {
  tn_section *into = tn_ini_section(ini, from->name);
  if (into == NULL) into = tn_ini_add_section(&ini->arena, &ini->sections, &ini->n_sections);
  if (into == NULL) return TN_ENOMEM;
  into->name = from->name;
  into->file = from->file;
  into->line = from->line;
  for (int32_t i = 0; i < from->n_keys; i++) {
    TN_TRY(tn_ini_put_key(&ini->arena, into, &from->keys[i]));
  }
  return TN_OK;
}

/* The path of an included file, relative to the including file's folder. */
static char *ini_include_path(const void *handle, tn_arena *arena, const char *folder, const char *name) {
  if (strcmp(folder, ".") == 0) return tn_arena_strdup(arena, name);
  char *joined = tn_path_join(handle, folder, name), *kept = NULL;
  if (joined != NULL) kept = tn_arena_strdup(arena, joined);
  tn_release(handle, joined);
  return kept;
}

/* Counts a file before it is read. `from` includes it; NULL: it is the main file. */
static tn_status ini_count_file(const void *handle, tn_ini *ini, const char *path,
                                const ini_open_file *from) {
  const char *file = from != NULL ? from->file : path;
  int32_t line = from != NULL ? from->line : 1;
  struct stat st;
  ini->size.files++;
  if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) ini->size.bytes += st.st_size;
  TN_TRY(tn_ini_check_limit(handle, file, line, ini->size.files, TN_INI_MOST_FILES, "files"));
  return from != NULL ? tn_ini_check_limit(handle, file, line, ini->size.bytes, TN_INI_MOST_BYTES, "bytes")
                      : TN_OK;
}

static tn_status ini_include_one(const void *handle, tn_ini *ini, const ini_open_file *self,
                                 const char *name) {
  if (*name == '\0')
    return tn_failf(handle, TN_EINVAL, "%s:%d: include: an empty file name, expected one such as base.ini",
                    self->file, self->line);
  const char *path = ini_include_path(handle, &ini->arena, self->folder, name);
  return path != NULL ? ini_load_file(handle, ini, path, self) : TN_ENOMEM;
}

/* Reads the included files, separated by commas or line ends; later files override earlier ones. */
static tn_status ini_include_all(const void *handle, tn_ini *ini, ini_open_file *self,
                                 const tn_key *include) {
  char *name = tn_arena_strdup(&ini->arena, include->value);
  int32_t row = 0;
  while (name != NULL) {
    char *next = name + strcspn(name, ",\n");
    char end = *next;
    *next = '\0';
    self->line = include->value_lines[row];
    TN_TRY(ini_include_one(handle, ini, self, tn_text_trim(name)));
    if (end == '\0') return TN_OK;
    if (end == '\n') row++;
    name = next + 1;
  }
  return TN_ENOMEM;
}

static tn_status ini_load_text(const void *handle, tn_ini *ini, ini_open_file *self, const char *text,
                               size_t count) {
  tn_ini_part part;
  TN_TRY(tn_ini_parse_part(handle, &ini->arena, &ini->size, self->file, text, count, &part));
  if (part.include.name != NULL) TN_TRY(ini_include_all(handle, ini, self, &part.include));
  for (int32_t i = 0; i < part.n_sections; i++) TN_TRY(ini_merge_section(ini, &part.sections[i]));
  return TN_OK;
}

static tn_status ini_check_cycle(const void *handle, const ini_open_file *self) {
  const ini_open_file *from = self->outer;
  for (const ini_open_file *outer = from; outer != NULL; outer = outer->outer)
    if (self->device == outer->device && self->inode == outer->inode)
      return tn_failf(handle, TN_EINVAL,
                      "%s:%d: include: %s is being read already, so the includes form a cycle", from->file,
                      from->line, self->file);
  if (self->depth > INCLUDE_DEPTH)
    return tn_failf(handle, TN_EINVAL, "%s:%d: include: %s lies more than %d includes deep", from->file,
                    from->line, self->file, INCLUDE_DEPTH);
  return TN_OK;
}

static const char *ini_folder_of(const void *handle, tn_arena *arena, const char *path) {
  char *folder = tn_path_folder(handle, path), *kept = NULL;
  if (folder != NULL) kept = tn_arena_strdup(arena, folder);
  tn_release(handle, folder);
  return kept;
}

static tn_status ini_load_file(const void *handle, tn_ini *ini, const char *path,
                               const ini_open_file *outer) {
  struct stat st = {0};
  char *text;
  size_t count;
  TN_TRY(ini_count_file(handle, ini, path, outer));
  tn_status status = tn_file_read(handle, path, TN_INI_MOST_BYTES, &text, &count);
  if (status != TN_OK && outer != NULL) tn_wrap(handle, status, "%s:%d: include", outer->file, outer->line);
  if (status != TN_OK) return status;
  ini_open_file self = {.outer = outer, .file = path, .depth = outer != NULL ? outer->depth + 1 : 0};
  self.folder = ini_folder_of(handle, &ini->arena, path);
  if (self.folder == NULL) status = TN_ENOMEM;
  if (status == TN_OK && stat(path, &st) == 0) {
    self.device = st.st_dev;
    self.inode = st.st_ino;
    status = ini_check_cycle(handle, &self);
  }
  if (status == TN_OK) status = ini_load_text(handle, ini, &self, text, count);
  tn_release(handle, text);
  return status;
}

/* Frees the ini on failure. */
static tn_status ini_finish_read(tn_ini *ini, tn_status status) {
  if (status != TN_OK) tn_ini_free(ini);
  return status;
}

tn_status tn_ini_read(const void *handle, const char *path, tn_ini *ini) {
  *ini = (tn_ini){.arena = tn_arena_new(handle)};
  ini->path = tn_arena_strdup(&ini->arena, path);
  ini->folder = ini->path != NULL ? ini_folder_of(handle, &ini->arena, path) : NULL;
  if (ini->folder == NULL) return ini_finish_read(ini, TN_ENOMEM);
  return ini_finish_read(ini, ini_load_file(handle, ini, ini->path, NULL));
}

tn_status tn_ini_parse(const void *handle, const char *text, const char *name, const char *folder,
                       tn_ini *ini) {
  *ini = (tn_ini){.arena = tn_arena_new(handle), .path = ""};
  ini_open_file self = {.file = tn_arena_strdup(&ini->arena, name)};
  ini->folder = tn_arena_strdup(&ini->arena, folder != NULL ? folder : ".");
  self.folder = ini->folder;
  if (self.file == NULL || self.folder == NULL) return ini_finish_read(ini, TN_ENOMEM);
  return ini_finish_read(ini, ini_load_text(handle, ini, &self, text, strlen(text)));
}

tn_status tn_ini_note(const void *handle, tn_ini *ini, tn_status status) {
  return tn_mistakes_note(handle, &ini->arena, &ini->mistakes, status);
}

tn_status tn_ini_tell(const void *handle, const tn_ini *ini) {
  return tn_mistakes_tell(handle, &ini->mistakes);
}

void tn_ini_free(tn_ini *ini) {
  tn_arena_free(&ini->arena);
  *ini = (tn_ini){.arena = ini->arena};
}
