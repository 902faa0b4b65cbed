#include "tests/unit/plugins/sources/table_probe.h"

char *table_folder;

int table_start(void **state) {
  (void)state;
  table_folder = make_folder();
  return 0;
}

int table_stop(void **state) {
  (void)state;
  remove_folder(table_folder);
  return 0;
}

tn_status table_open_part(probe *p, int32_t split, const char *text, const char *inputs, const char *targets,
                          const char *const *more) {
  const char *pairs[32] = {"file", in_folder(table_folder, "t.csv"), "inputs", inputs, "targets", targets};
  int n = 6;
  for (int i = 0; more != NULL && more[i] != NULL; i++) pairs[n++] = more[i];
  pairs[n] = NULL;
  write_file(in_folder(table_folder, "t.csv"), text, strlen(text));
  return probe_open(p, &table_source, pairs, split);
}

void table_open(probe *p, const char *text, const char *inputs, const char *targets) {
  if (table_open_part(p, TN_SPLIT_TRAIN, text, inputs, targets, NULL) != TN_OK)
    fail_msg("%s", probe_error(p));
}

float table_number_at(probe *p, int64_t row, int field, int64_t element) {
  assert_int_equal(probe_read(p, row, 0), TN_OK);
  return ((const float *)p->value[field])[element];
}

int32_t table_class_at(probe *p, int64_t row, int field) {
  assert_int_equal(probe_read(p, row, 0), TN_OK);
  return *(const int32_t *)p->value[field];
}
