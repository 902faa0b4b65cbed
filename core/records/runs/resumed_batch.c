/* core/records/runs/resumed_batch.c: see resumed_batch.h. */
#include "core/records/runs/resumed_batch.h"

#include "core/base/file/file.h"
#include "core/records/runs/run_differences.h"
#include "core/step/programs/find_batch.h"

/* [data.train] refines [data]. */
static const char *resumed_batch_text(const tn_ini *ini) {
  static const char *const names[] = {"data.train", "data"};
  for (int32_t i = 0; i < 2; i++) {
    tn_section *section = tn_ini_section(ini, names[i]);
    tn_key *key = section != NULL ? tn_section_key(section, "batch") : NULL;
    if (key != NULL) return key->value;
  }
  return "";
}

tn_status tn_take_resumed_batch(tn_run *run, const char *folder) {
  const tn_data_setting *data = &run->settings.data[TN_SPLIT_TRAIN];
  const char *path = tn_arena_printf(&run->arena, "%s/config.ini", folder);
  tn_ini ini = {0};
  int64_t batch = 0;
  if (path == NULL) return TN_ENOMEM;
  if (!data->given || !data->batch_auto || !tn_file_exists(path)) return TN_OK;
  TN_TRY(tn_ini_read(&run->env, path, &ini));
  bool number = tn_text_to_int(resumed_batch_text(&ini), &batch) && batch > 0;
  tn_ini_free(&ini);
  if (!number) return TN_OK;
  TN_TRY(tn_put_batch(run, batch));
  return tn_run_remark(run, "batch = auto: %lld, as before", (long long)batch);
}
