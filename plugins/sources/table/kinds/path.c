/* plugins/sources/table/kinds/path.c: cells that name a file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/sources/table/kinds/kinds.h"

tn_status kind_path(const table *t, const table_field *f, const void *handle, int64_t row,
                    char path[PATH_MAX]) {
  table_word cell = f->column[0]->texts[row];
  if (cell.text == NULL)
    return table_fail_cell(t, handle, f->names[0], row, "", 0, "is missing, expected the path of a file");
  bool absolute = cell.text[0] == '/';
  int n = snprintf(path, PATH_MAX, "%s%s", absolute ? "" : table_part_of(t, row)->folder, cell.text);
  if (n >= PATH_MAX)
    return table_fail_cell(t, handle, f->names[0], row, cell.text, cell.n, "is too long for a path");
  if (access(path, R_OK) == 0) return TN_OK;
  return table_fail_cell(t, handle, f->names[0], row, cell.text, cell.n,
                         "cannot open %s: %s; paths are relative to the folder of the table", path,
                         strerror(errno));
}

tn_status kind_check_paths(const table *t, const table_field *f) {
  char path[PATH_MAX];
  for (int64_t i = 0; i < t->rows; i++) TN_TRY(kind_path(t, f, &t->env, i, path));
  return TN_OK;
}

/* The first row from this one on whose file is not damaged. */
static tn_status kind_probe_from(const table *t, int64_t row, kind_probe_call *probe, void *context) {
  tn_status status = TN_EINVAL;
  for (; row < t->rows && status == TN_EINVAL; row++) status = probe(context, row);
  return status;
}

tn_status kind_probe(const table *t, kind_probe_call *probe, void *context) {
  enum { PROBED = 4 };
  TN_TRY(kind_probe_from(t, 0, probe, context));
  for (int64_t i = 1; i < PROBED; i++) {
    tn_status status = kind_probe_from(t, (t->rows - 1) * i / (PROBED - 1), probe, context);
    if (status != TN_OK && status != TN_EINVAL) return status;
  }
  return TN_OK;
}
