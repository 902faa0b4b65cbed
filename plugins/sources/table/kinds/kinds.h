/* plugins/sources/table/kinds/kinds.h: the kinds of fields. A new kind has a row of its own in one of the
 * files beside this, and a line in kinds.c. */
#pragma once

#include "plugins/sources/table/table.h"

extern const table_kind kind_number, kind_numbers, kind_time;
extern const table_kind kind_category, kind_categories;
extern const table_kind kind_sequence, kind_boxes, kind_text, kind_tokens;
extern const table_kind kind_image, kind_mask, kind_audio, kind_array;

/* path.c: the file that a cell names, relative to the folder of the table; it has to be there. */
tn_status kind_path(const table *t, const table_field *f, const void *handle, int64_t row,
                    char path[PATH_MAX]);
/* All files are there: a run does not end in its last epoch because one is not. */
tn_status kind_check_paths(const table *t, const table_field *f);

/* Looks at a few rows spread over the table, where a row whose file is damaged (TN_EINVAL) gives its place to
 * the next one. Fails if none can be read. */
typedef tn_status kind_probe_call(void *context, int64_t row);
tn_status kind_probe(const table *t, kind_probe_call *probe, void *context);

static inline tn_field kind_field(const table_field *f, tn_type type) {
  return (tn_field){.struct_size = sizeof(tn_field), .name = f->name, .type = type, .role = f->role};
}
