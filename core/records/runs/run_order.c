#include "core/records/runs/run_order.h"

#include <dirent.h>
#include <string.h>
#include <time.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/records/runs/run_history.h"

enum { ORDER_HISTORY_BYTES = 64 << 20 };

/* Behind the year 9999: such a number is damaged. */
static const int64_t order_most = 1000000000000000;

bool tn_run_order_is_named(const char *file, const char *name) {
  size_t n = strlen(name);
  int64_t number;
  if (strncmp(file, name, n) != 0) return false;
  return file[n] == '\0' || (file[n] == '-' && tn_text_to_int(file + n + 1, &number) && number > 1);
}

/* ---- one run ---- */

int64_t tn_run_order_of_time(const char *text) {
  struct tm parts = {.tm_year = 0};
  const char *end = text != NULL ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts) : NULL;
  return end != NULL && *end == '\0' ? (int64_t)timegm(&parts) * 1000 : 0;
}

static int64_t order_of_line(const char *text, size_t n) {
  json_t *line = json_loadb(text, n, 0, NULL), *order = json_object_get(line, "order");
  int64_t number = json_is_integer(order)
                       ? (int64_t)json_integer_value(order)
                       : tn_run_order_of_time(json_string_value(json_object_get(line, "time")));
  json_decref(line);
  return number < order_most ? number : 0;
}

int64_t tn_run_order_read(const void *handle, const char *folder) {
  tn_env env;
  tn_error_record record; /* a record that cannot be read counts for nothing: the run goes on */
  char *text = NULL, *path = tn_path_join(handle, folder, TN_HISTORY_NAME);
  size_t n = 0;
  int64_t greatest = 0;
  tn_error_record_init(&env, &record, handle);
  if (path != NULL && tn_file_exists(path)) (void)tn_file_read(&env, path, ORDER_HISTORY_BYTES, &text, &n);
  for (const char *at = text, *end; text != NULL && (end = strchr(at, '\n')) != NULL; at = end + 1) {
    int64_t number = order_of_line(at, (size_t)(end - at));
    if (number > greatest) greatest = number;
  }
  tn_release(handle, text);
  tn_release(handle, path);
  return greatest;
}

/* ---- the runs of a name ---- */

static int64_t order_of_run(const void *handle, const char *parent, const char *name) {
  char *folder = tn_path_join(handle, parent, name);
  int64_t order = folder != NULL ? tn_run_order_read(handle, folder) : 0;
  tn_release(handle, folder);
  return order;
}

int64_t tn_run_order_next(const void *handle, const char *folder, const char *parent, const char *name) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t next = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, own = tn_run_order_read(handle, folder);
  if (next <= own) next = own + 1;
  DIR *list = opendir(parent);
  for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
    int64_t other =
        tn_run_order_is_named(entry->d_name, name) ? order_of_run(handle, parent, entry->d_name) : 0;
    if (next <= other) next = other + 1;
  }
  if (list != NULL) closedir(list);
  return next;
}
