#include "core/records/folders/read_history.h"

#include "core/base/text/text.h"
#include "core/records/folders/run_lines.h"
#include "core/records/runs/run_history.h"

static void history_take_line(void *context, const tn_text *text) {
  json_t *list = context, *line = json_loadb(text->v, text->n, 0, NULL);
  const char *event = json_string_value(json_object_get(line, "event"));
  json_t *last = json_array_get(list, json_array_size(list) - 1);
  if (tn_text_equal(event, "start")) {
    json_object_set_new(line, "end", json_null());
    json_array_append(list, line);
  } else if (tn_text_equal(event, "end") && last != NULL) {
    json_object_set(last, "end", line);
  }
  json_decref(line);
}

tn_status tn_history_read(const void *handle, const char *folder, json_t **trainings) {
  *trainings = json_array();
  if (*trainings == NULL) return tn_failf(handle, TN_ENOMEM, "no memory for the history of %s", folder);
  return tn_run_lines_scan(handle, folder, TN_HISTORY_NAME, history_take_line, *trainings);
}
