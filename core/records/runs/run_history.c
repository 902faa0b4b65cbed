#include "core/records/runs/run_history.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"

enum { HISTORY_LIMIT = 64 << 20 };

/* The bytes up to the end of the last complete line. */
static tn_status history_complete_bytes(const void *handle, const char *path, size_t *n) {
  char *text = NULL;
  TN_TRY(tn_file_read(handle, path, HISTORY_LIMIT, &text, n));
  while (*n > 0 && text[*n - 1] != '\n') --*n;
  tn_release(handle, text);
  return TN_OK;
}

static tn_status history_write(const void *handle, const char *path, int fd, const tn_text *line) {
  size_t complete = 0;
  TN_TRY(history_complete_bytes(handle, path, &complete));
  if (lseek(fd, 0, SEEK_END) > (off_t)complete && ftruncate(fd, (off_t)complete) != 0)
    return tn_file_fail(handle, path, "cut");
  ssize_t n = tn_file_write(fd, line->v, line->n);
  if (n == (ssize_t)line->n) return fsync(fd) == 0 ? TN_OK : tn_file_fail(handle, path, "written to disk");
  tn_status status = tn_file_fail(handle, path, "written");
  (void)!ftruncate(fd, (off_t)complete); /* a part of the line is no record */
  return status;
}

static tn_status history_add(const void *handle, const char *folder, const json_t *json) {
  char *path = tn_path_join(handle, folder, TN_HISTORY_NAME);
  char *printed = json != NULL ? json_dumps(json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
  tn_text line = tn_text_new(handle);
  tn_open_file file;
  if (printed != NULL) tn_text_addf(&line, "%s\n", printed);
  tn_status status = path != NULL && printed != NULL && !line.failed
                         ? tn_file_open(handle, path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, &file)
                         : tn_failf(handle, TN_ENOMEM, "no memory");
  if (status == TN_OK) {
    status = history_write(handle, path, file.fd, &line);
    close(file.fd);
  }
  tn_text_free(&line);
  free(printed);
  tn_release(handle, path);
  return status;
}

void tn_run_history_add(const void *handle, const char *folder, json_t *line) {
  tn_env env;
  tn_error_record record; /* the failure of the run that the line reports stays recorded */
  tn_error_record_init(&env, &record, handle);
  if (history_add(&env, folder, line) != TN_OK)
    tn_logf(&env, TN_LOG_WARN, "the record of the run is incomplete: %s", tn_error_text(&env));
  json_decref(line);
}
