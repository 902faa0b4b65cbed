/* plugins/sources/table/kinds/array.c: an array in a .npy file for each row. */
#include <string.h>

#include "plugins/sources/arrays/array.h"
#include "plugins/sources/table/kinds/kinds.h"

static tn_status cell_array_open(const table *t, const table_field *f, const void *handle, int64_t row,
                                 array *a) {
  char path[PATH_MAX];
  TN_TRY(kind_path(t, f, handle, row, path));
  const array_place place = {.path = path, .member = "", .preferred = f->name};
  return array_open(handle, &place, a);
}

typedef struct array_types {
  table *t;
  const table_field *f;
  int64_t n;    /* arrays so far */
  tn_type type; /* of them; sizes that differ vary */
} array_types;

static tn_status cell_array_probe(void *context, int64_t row) {
  array_types *types = context;
  tn_type *type = &types->type;
  array a;
  TN_TRY(cell_array_open(types->t, types->f, &types->t->env, row, &a));
  bool first = types->n++ == 0;
  if (first) *type = (tn_type){element_dtype(&a.element, types->f->role), a.rank, {0}};
  for (int32_t d = 0; d < type->rank; d++) {
    int64_t size = d < a.rank ? a.dims[d] : -1;
    type->dims[d] = first || type->dims[d] == size ? size : -1;
  }
  array_close(&types->t->env, &a);
  return TN_OK;
}

static tn_status cell_array_describe(table *t, table_field *f, tn_field *described) {
  array_types types = {.t = t, .f = f};
  TN_TRY(kind_check_paths(t, f));
  TN_TRY(kind_probe(t, cell_array_probe, &types));
  *described = kind_field(f, types.type);
  return TN_OK;
}

static tn_status cell_array_fail(const table *t, const table_field *f, const tn_sample *s, const char *what) {
  table_word cell = f->column[0]->texts[s->index];
  return table_fail_cell(t, s, f->names[0], s->index, cell.text, cell.n, "%s", what);
}

static tn_status cell_array_copy(const table *t, const table_field *f, tn_sample *s, int32_t field,
                                 const array *a) {
  tn_type type = t->described[field].type;
  double value;
  bool fits = a->rank == type.rank && element_converts(&a->element, type.dtype);
  for (int32_t d = 0; fits && d < type.rank; d++) {
    fits = type.dims[d] < 0 || type.dims[d] == a->dims[d];
    type.dims[d] = a->dims[d];
  }
  if (!fits)
    return cell_array_fail(t, f, s, "has another shape or element type than the array of the first row");
  void *to = tn_sample_field(s, field, &type);
  if (to == NULL) return TN_ENOMEM;
  if (element_read(&a->element, a->data, type.dtype, to, tn_type_count(&type), &value) < 0) return TN_OK;
  return cell_array_fail(t, f, s, "has a number that the dtype of the first row's array cannot hold");
}

static tn_status cell_array_read(const table *t, const table_field *f, tn_sample *s, int32_t field) {
  array a;
  TN_TRY(cell_array_open(t, f, s, s->index, &a));
  tn_status status = cell_array_copy(t, f, s, field, &a);
  array_close(s, &a);
  return status;
}

const table_kind kind_array = {.name = "array",
                               .types = "as the .npy file",
                               .doc = "the path of a .npy file",
                               .form = TABLE_TEXTS,
                               .files = true,
                               .describe = cell_array_describe,
                               .read = cell_array_read};
