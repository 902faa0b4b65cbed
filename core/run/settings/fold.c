/* core/run/settings/fold.c: [data] fold, the part of the training source that validation reads. A source with
 * an option of this name, such as `table`, divides its samples itself. */
#include <stdlib.h>

#include "core/config/options/options.h"
#include "core/run/section_tables.h"

enum { MOST_PARTS = 100000 };

/* "2/5" */
static bool fold_parse(const char *text, tn_data_fold *fold) {
  char *end;
  long part = strtol(text, &end, 10);
  if (end == text || *end != '/') return false;
  const char *of = end + 1;
  long parts = strtol(of, &end, 10);
  *fold = (tn_data_fold){.part = (int32_t)part, .parts = (int32_t)parts};
  return end != of && *end == '\0' && parts >= 2 && parts <= MOST_PARTS && part >= 1 && part <= parts;
}

tn_status tn_settings_read_fold(tn_env *env, tn_ini *ini, tn_settings *s) {
  tn_data_setting *train = &s->data[TN_SPLIT_TRAIN];
  const char *text = train->section.fold;
  if (!train->given || text == NULL || *text == '\0') return TN_OK;
  if (tn_options_find(&train->source->item, "fold") != NULL || fold_parse(text, &train->fold)) return TN_OK;
  train->fold = (tn_data_fold){0};
  bool own = tn_ini_section(ini, "data.train") != NULL &&
             tn_section_key(tn_ini_section(ini, "data.train"), "fold") != NULL;
  return tn_failf(env, TN_EINVAL,
                  "%s: [data] fold = %s, expected a part and the number of parts, from 2 on, such as 2/5",
                  tn_settings_where(ini, own ? "data.train" : "data", "fold"), text);
}
