/* core/plugin/index.c: writes and reads the index of a plugin folder. */
#include "core/plugin/index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/plugin/kinds.h"

#define INDEX_MAGIC "tenon.index 1"

enum { LARGEST_INDEX = 16 << 20 };

/* ---- writing ------------------------------------------------------------------------------------ */

static void index_print_interface(tn_text *text) {
  tn_text_addf(text, "interface %d.%d %s", TN_ABI_MAJOR, TN_ABI_MINOR, TN_BUILD_TEXT);
}

void tn_index_print_head(tn_text *text) {
  tn_text_add(text, INDEX_MAGIC "\n");
  index_print_interface(text);
  tn_text_add(text, "\n");
}

/* A path with a newline cannot be indexed; such a file is loaded every time. */
void tn_index_print_file(tn_text *text, const tn_plugin_file *file, const tn_index_item *items, int32_t n) {
  if (strchr(file->relative, '\n') != NULL) return;
  tn_text_addf(text, "file %" PRId64 " %" PRId64 " %s\n", file->changed_ns, file->bytes, file->relative);
  for (int32_t i = 0; i < n; i++)
    tn_text_addf(text, "%s %s%s%s\n", tn_kind_name(items[i].kind), items[i].name,
                 items[i].family[0] != '\0' ? " " : "", items[i].family);
}

/* ---- reading ------------------------------------------------------------------------------------ */

typedef TN_VEC(tn_index_item) item_list;

typedef struct reader {
  const void *handle;
  tn_arena *arena;
  tn_plugin_files *files;
  size_t first;
  tn_plugin_file *file; /* whose items are being read; NULL: a file that has changed since, or is gone */
  bool in_file;         /* a `file` line has been seen */
  item_list items;      /* of `file` */
} reader;

/* Cuts the next line off the text; NULL at its end. */
static char *index_next_line(char **text) {
  if (**text == '\0') return NULL;
  char *line = *text, *end = strchr(line, '\n');
  *text = end != NULL ? end + 1 : line + strlen(line);
  if (end != NULL) *end = '\0';
  return line;
}

/* Cuts the next word off a line; "" at its end. */
static char *index_next_word(char **line) {
  char *word = *line, *end = strchr(word, ' ');
  *line = end != NULL ? end + 1 : word + strlen(word);
  if (end != NULL) *end = '\0';
  return word;
}

static uint32_t index_kind(const char *word) {
  for (uint32_t kind = 1; kind < TN_KINDS; kind++)
    if (tn_text_equal(word, tn_kind_name(kind))) return kind;
  return 0;
}

/* Packages truncate times to seconds, so a time on a full second equals any time within it. */
static bool index_same_time(int64_t actual_ns, int64_t indexed_ns) {
  if (actual_ns == indexed_ns) return true;
  return actual_ns % 1000000000 == 0 && actual_ns / 1000000000 == indexed_ns / 1000000000;
}

static bool index_read_number(const char *word, int64_t *number) {
  char *end;
  *number = strtoll(word, &end, 10);
  return word[0] != '\0' && *end == '\0';
}

/* Hands the items read so far to their file. */
static tn_status index_finish_file(reader *r) {
  if (r->file != NULL) {
    r->file->items = tn_arena_copy(r->arena, r->items.v, r->items.n * sizeof(*r->items.v));
    if (r->file->items == NULL)
      return tn_failf(r->handle, TN_ENOMEM, "out of memory while the plugin index was read");
    r->file->n_items = (int32_t)r->items.n;
    r->file->indexed = true;
  }
  r->file = NULL;
  r->items.n = 0;
  return TN_OK;
}

/* "file TIME SIZE PATH"; the path may hold blanks. */
static tn_status index_start_file(reader *r, char *line) {
  int64_t changed_ns, bytes;
  TN_TRY(index_finish_file(r));
  if (!index_read_number(index_next_word(&line), &changed_ns) ||
      !index_read_number(index_next_word(&line), &bytes))
    return TN_EINVAL;
  r->in_file = true;
  for (size_t i = r->first; i < r->files->n; i++) {
    tn_plugin_file *file = &r->files->v[i];
    if (tn_text_equal(file->relative, line) && file->bytes == bytes &&
        index_same_time(file->changed_ns, changed_ns))
      r->file = file;
  }
  return TN_OK;
}

static tn_status index_read_item(reader *r, const char *kind, char *line) {
  tn_index_item item = {.kind = index_kind(kind)};
  const char *name = index_next_word(&line), *family = index_next_word(&line);
  bool is_kernel = item.kind == TN_KERNEL;
  if (item.kind == 0 || !r->in_file || name[0] == '\0' || (family[0] != '\0') != is_kernel || line[0] != '\0')
    return TN_EINVAL;
  if (r->file == NULL) return TN_OK;
  item.name = tn_arena_strdup(r->arena, name);
  item.family = tn_arena_strdup(r->arena, family);
  if (item.name == NULL || item.family == NULL)
    return tn_failf(r->handle, TN_ENOMEM, "out of memory while the plugin index was read");
  return tn_vec_push(r->handle, &r->items, item);
}

static tn_status index_read_line(reader *r, char *line) {
  const char *word = index_next_word(&line);
  return tn_text_equal(word, "file") ? index_start_file(r, line) : index_read_item(r, word, line);
}

/* The head must be this host's: a host with another interface may refuse other files. */
static bool index_read_head(const reader *r, char **text) {
  tn_text own = tn_text_new(r->handle);
  index_print_interface(&own);
  const char *magic = index_next_line(text), *interface = index_next_line(text);
  bool same = tn_text_equal(magic, INDEX_MAGIC) && !own.failed && tn_text_equal(interface, own.v);
  tn_text_free(&own);
  return same;
}

/* TN_EINVAL, with *number the line, where the text is damaged. */
static tn_status index_read_text(reader *r, char *text, int *number) {
  *number = 3;
  for (char *line = index_next_line(&text); line != NULL; line = index_next_line(&text), ++*number)
    TN_TRY(index_read_line(r, line));
  return index_finish_file(r);
}

/* After a damaged line no file counts as indexed. */
static void index_forget(reader *r) {
  for (size_t i = r->first; i < r->files->n; i++) {
    r->files->v[i].indexed = false;
    r->files->v[i].n_items = 0;
  }
}

static tn_status index_parse(reader *r, const char *path, char *text) {
  int number;
  if (!index_read_head(r, &text)) {
    tn_logf(r->handle, TN_LOG_INFO, "%s: written for another interface, so every plugin is opened", path);
    return TN_OK;
  }
  tn_status status = index_read_text(r, text, &number);
  tn_vec_free(r->handle, &r->items);
  if (status != TN_EINVAL) return status;
  index_forget(r);
  tn_logf(r->handle, TN_LOG_WARN, "%s:%d: damaged, so every plugin is opened; delete it or write it anew",
          path, number);
  return TN_OK;
}

/* A world-writable index is ignored. */
static bool index_is_usable(const void *handle, const char *path) {
  struct stat st;
  if (stat(path, &st) != 0) return false;
  if ((st.st_mode & S_IWOTH) == 0) return true;
  tn_logf(handle, TN_LOG_WARN, "%s: ignored, since everybody may write it; run: chmod o-w '%s'", path, path);
  return false;
}

tn_status tn_index_read(const void *handle, tn_arena *arena, const char *folder, tn_plugin_files *files,
                        size_t first) {
  const char *path = tn_arena_printf(arena, "%s/%s", folder, TN_INDEX_NAME);
  char *text;
  size_t n;
  if (path == NULL) return tn_failf(handle, TN_ENOMEM, "out of memory while the plugin index was read");
  if (!index_is_usable(handle, path)) return TN_OK;
  tn_status status = tn_file_read(handle, path, LARGEST_INDEX, &text, &n);
  if (status == TN_ENOMEM) return status;
  if (status != TN_OK) {
    tn_logf(handle, TN_LOG_WARN, "%s, so every plugin is opened", tn_error_text(handle));
    tn_error_clear(handle);
    return TN_OK;
  }
  reader r = {.handle = handle, .arena = arena, .files = files, .first = first};
  status = index_parse(&r, path, text);
  tn_release(handle, text);
  return status;
}
