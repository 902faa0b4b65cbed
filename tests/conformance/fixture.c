#include "fixture.h"

#include "core/ops/ops.h"
#include "core/plugin/handles.h"

tn_status fixture_open(fixture *f) {
  *f = (fixture){0};
  tn_error_record_init_root(&f->env, &f->record, &tn_host_api);
  TN_TRY(tn_registry_create(&f->env, "", &f->registry));
  TN_TRY(tn_registry_add(f->registry, &f->env, tn_core_ops(), ""));
  return tn_op_table_create(&f->env, f->registry, &f->ops);
}

void fixture_close(fixture *f) {
  if (f->ops != NULL) tn_op_table_destroy(f->ops);
  if (f->registry != NULL) tn_registry_destroy(f->registry);
}

tn_status fixture_device(fixture *f, const char *backend, const char *file, tn_device **device) {
  const tn_device_request request = {.names = &backend, .n_names = 1, .threads = 2};
  TN_TRY(tn_registry_load(f->registry, &f->env, file));
  return tn_device_create(&f->env, f->registry, &request, device);
}
