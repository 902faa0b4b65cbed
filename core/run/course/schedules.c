/* core/run/course/schedules.c: [schedule], [schedule.OPTION] and [schedule.OPTION.GROUP], with the reasons
 * in docs/decisions/0105-schedules-of-any-option.md. */
#include <stdlib.h>
#include <string.h>

#include "core/run/section_tables.h"

static const char PREFIX[] = "schedule.";

/* ---- one section ---- */

static tn_status schedules_check_metric(tn_env *env, tn_ini *ini, const tn_schedule_setting *s) {
  const tn_schedule_section *section = &s->section;
  const char *idle = *section->metric != '\0'                 ? "metric"
                     : section->metric_mode != TN_METRIC_AUTO ? "metric_mode"
                                                              : NULL;
  if (idle == NULL || s->kind->epoch != NULL) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: [%s] %s has no effect: %s does not follow a metric",
                  tn_settings_where(ini, s->name, idle), s->name, idle, s->kind->item.name);
}

/* "auto", or a factor. */
static tn_status schedules_read_warmup_start(const tn_env *env, tn_ini *ini, tn_schedule_setting *s) {
  const char *text = s->section.warmup_start, *where = tn_settings_where(ini, s->name, "warmup_start");
  char *end;
  s->warmup_start = -1;
  if (tn_text_equal(text, "auto")) return TN_OK;
  double start = strtod(text, &end);
  bool grows = s->section.warmup_shape == TN_WARMUP_EXPONENTIAL;
  if (end == text || *end != '\0' || !(start >= 0 && start <= 1e9) || (grows && start == 0))
    return tn_failf(env, TN_EINVAL, "%s: [%s] warmup_start = %s, expected auto, or a factor %s such as 0.01",
                    where, s->name, text, grows ? "above 0 for warmup_shape = exponential," : "from 0 on,");
  s->warmup_start = start;
  return TN_OK;
}

/* Keys that shape a warm-up which is not there. */
static tn_status schedules_check_warmup(const tn_env *env, tn_ini *ini, const tn_schedule_setting *s) {
  static const char *const keys[] = {"warmup_unit", "warmup_shape", "warmup_start"};
  const tn_section *section = tn_ini_section(ini, s->name);
  for (size_t i = 0; s->section.warmup == 0 && i < sizeof keys / sizeof *keys; i++) {
    const tn_key *key = section != NULL ? tn_section_key((tn_section *)(uintptr_t)section, keys[i]) : NULL;
    const tn_option *option = tn_options_find(&tn_table_schedule, keys[i]);
    if (key == NULL || tn_text_equal(key->value, option->default_text)) continue;
    return tn_failf(env, TN_EINVAL, "%s: [%s] %s has no effect without warmup, expected warmup = N as well",
                    tn_key_where(ini, section, key), s->name, keys[i]);
  }
  if (s->section.warmup > 0 && s->section.warmup_shape == TN_WARMUP_CONSTANT && s->warmup_start < 0)
    return tn_failf(env, TN_EINVAL,
                    "%s: [%s] warmup_shape = constant needs warmup_start, expected a factor such as 0.1",
                    tn_settings_where(ini, s->name, "warmup_shape"), s->name);
  return TN_OK;
}

static tn_status schedules_check(tn_env *env, tn_ini *ini, tn_schedule_setting *s) {
  const tn_section *section = tn_ini_section(ini, s->name);
  if (s->kind == NULL || s->section.metric == NULL) return TN_OK; /* it could not be read */
  if (section != NULL && section->mistaken) return TN_OK;
  TN_TRY(schedules_check_metric(env, ini, s));
  TN_TRY(schedules_read_warmup_start(env, ini, s));
  TN_TRY(schedules_check_warmup(env, ini, s));
  if (s->kind->check == NULL) return TN_OK;
  tn_status status = s->kind->check(env, s->options);
  return tn_wrap(env, status, "%s: [%s]", tn_settings_where(ini, s->name, env->record->option), s->name);
}

static tn_status schedules_read(tn_env *env, tn_registry *registry, tn_ini *ini, const char *name,
                                tn_schedule_setting *s) {
  tn_item_choice choice = {&tn_table_schedule, name, "type", TN_SCHEDULE, &s->section, NULL, NULL};
  s->name = name;
  TN_TRY(tn_settings_note(env, ini, name, tn_settings_read_choice(env, registry, ini, &choice)));
  s->kind = (const tn_schedule *)choice.item;
  s->options = choice.options;
  return tn_ini_note(env, ini, schedules_check(env, ini, s));
}

/* ---- what it is for ---- */

static const char *schedules_where(tn_ini *ini, const tn_schedule_setting *s) {
  return tn_key_where(ini, tn_ini_section(ini, s->name), NULL);
}

static bool schedules_may_change(const tn_option *option) {
  return option != NULL && (option->flags & (TN_OPT_SCHEDULED | TN_OPT_SCHEDULABLE)) != 0;
}

static tn_status schedules_refuse_option(const tn_env *env, const char *where, const char *name,
                                         const tn_item *optimizer, const char *option) {
  tn_text names = tn_text_new(env);
  for (int64_t i = 0; tn_options_at(optimizer, i) != NULL; i++)
    if (schedules_may_change(tn_options_at(optimizer, i)))
      tn_text_addf(&names, "%s%s", names.n > 0 ? ", " : "", tn_options_at(optimizer, i)->name);
  tn_status status =
      tn_failf(env, TN_EINVAL, "%s: [%s]: %s has no option '%s' that a schedule changes, expected one of %s",
               where, name, optimizer->name, option, names.v != NULL ? names.v : "none");
  tn_text_free(&names);
  return status;
}

static tn_status schedules_check_group(const tn_env *env, const char *where, const char *name,
                                       const tn_settings *s, const char *group) {
  for (int32_t i = 0; i < s->n_groups; i++)
    if (tn_text_equal(s->groups[i].name, group)) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: [%s]: there is no section [group.%s] of parameters that are trained",
                  where, name, group);
}

/* [schedule.OPTION] and [schedule.OPTION.GROUP] */
static tn_status schedules_of_optimizer(const tn_env *env, tn_ini *ini, const tn_settings *settings,
                                        tn_schedule_setting *s) {
  const char *where = schedules_where(ini, s);
  if (s->group != NULL) return schedules_check_group(env, where, s->name, settings, s->group);
  if (!tn_text_equal(s->option, "lr")) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: [%s]: the schedule of lr for all parameters is [schedule]", where,
                  s->name);
}

/* [schedule.ema] */
static tn_status schedules_of_ema(const tn_env *env, tn_ini *ini, const tn_settings *settings,
                                  tn_schedule_setting *s) {
  s->target = TN_SCHEDULES_EMA;
  if (settings->optimizer.ema > 0) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: [%s]: there is no average, expected [optimizer] ema above 0 as well",
                  schedules_where(ini, s), s->name);
}

static bool schedules_find_item(tn_env *env, tn_registry *registry, const char *name,
                                tn_schedule_setting *s) {
  static const struct {
    uint32_t kind;
    tn_schedule_target target;
  } kinds[] = {{TN_LAYER, TN_SCHEDULES_LAYER}, {TN_TRANSFORM, TN_SCHEDULES_TRANSFORM}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    s->target = kinds[i].target;
    if (tn_registry_has(registry, kinds[i].kind, name) &&
        tn_settings_find_item(env, registry, kinds[i].kind, name, &s->item) == TN_OK)
      return true;
  }
  return false;
}

/* [schedule.ITEM.OPTION]: `word` is the item, s->group the option behind it. */
static tn_status schedules_of_item(tn_env *env, tn_registry *registry, tn_ini *ini,
                                   const tn_settings *settings, tn_schedule_setting *s) {
  const char *word = s->option, *where = schedules_where(ini, s);
  if (s->group == NULL || !schedules_find_item(env, registry, word, s))
    return schedules_refuse_option(env, where, s->name, &settings->optimizer_kind->item, word);
  s->option = s->group;
  s->group = NULL;
  if (schedules_may_change(tn_options_find(s->item, s->option))) return TN_OK;
  return schedules_refuse_option(env, where, s->name, s->item, s->option);
}

/* Reads the name of a section. */
static tn_status schedules_read_target(tn_env *env, tn_registry *registry, tn_ini *ini,
                                       const tn_settings *settings, tn_schedule_setting *s) {
  char *words = tn_arena_strdup(&ini->arena, s->name + strlen(PREFIX));
  if (words == NULL) return TN_ENOMEM;
  char *dot = strchr(words, '.');
  if (dot != NULL) *dot = '\0';
  s->option = words;
  s->group = dot != NULL ? dot + 1 : NULL;
  if (schedules_may_change(tn_options_find(&settings->optimizer_kind->item, words)))
    return schedules_of_optimizer(env, ini, settings, s);
  if (dot == NULL && tn_text_equal(words, "ema")) return schedules_of_ema(env, ini, settings, s);
  if (dot == NULL && tn_text_equal(words, "accumulate"))
    return tn_settings_schedule_accumulate(env, ini, settings, s);
  if (dot == NULL && tn_text_equal(words, "size")) return tn_settings_schedule_size(env, ini, settings, s);
  if (dot == NULL || !tn_text_equal(words, "loss")) return schedules_of_item(env, registry, ini, settings, s);
  s->target = TN_SCHEDULES_LOSS;
  s->option = s->group;
  s->group = NULL;
  return TN_OK;
}

/* The option must take the value `toward`, unless it is the default. */
static tn_status schedules_check_toward(tn_env *env, tn_ini *ini, const tn_schedule_setting *s) {
  tn_options options;
  const tn_section *section = tn_ini_section(ini, s->name);
  const tn_key *key = tn_section_key((tn_section *)(uintptr_t)section, "toward");
  if (key == NULL || s->item == NULL || s->kind == NULL) return TN_OK;
  TN_TRY(tn_options_start(env, &ini->arena, s->item, &options));
  tn_status status = tn_options_set_text(env, &options, s->option, key->value);
  return tn_wrap(env, status, "%s: [%s] toward", tn_key_where(ini, section, key), s->name);
}

/* Checkpoints hold the state of one schedule. */
static tn_status schedules_refuse_state(const tn_env *env, tn_ini *ini, const tn_schedule_setting *s) {
  if (s->kind == NULL || s->kind->epoch == NULL) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [%s] type = %s follows a metric, which [schedule] alone may do; expected another type",
                  tn_settings_where(ini, s->name, "type"), s->name, s->kind->item.name);
}

static tn_status schedules_read_other(tn_env *env, tn_registry *registry, tn_ini *ini, const char *name,
                                      tn_settings *settings) {
  tn_schedule_setting *s = &settings->schedules[settings->n_schedules];
  *s = (tn_schedule_setting){.name = name};
  TN_TRY(schedules_read_target(env, registry, ini, settings, s));
  TN_TRY(schedules_read(env, registry, ini, name, s));
  TN_TRY(schedules_refuse_state(env, ini, s));
  TN_TRY(schedules_check_toward(env, ini, s));
  TN_TRY(tn_settings_check_accumulate(env, ini, settings, s));
  if (s->kind != NULL && s->section.metric != NULL) settings->n_schedules++;
  return TN_OK;
}

tn_status tn_settings_read_schedules(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *s) {
  s->schedules = tn_arena_alloc(&ini->arena, tn_size_mul((size_t)ini->n_sections + 1, sizeof *s->schedules));
  if (s->schedules == NULL) return TN_ENOMEM;
  s->schedule = tn_arena_alloc(&ini->arena, sizeof *s->schedule);
  if (s->schedule == NULL) return TN_ENOMEM;
  *s->schedule = (tn_schedule_setting){.option = "lr"};
  TN_TRY(schedules_read(env, registry, ini, "schedule", s->schedule));
  for (int32_t i = 0; i < ini->n_sections; i++) {
    const char *name = ini->sections[i].name;
    if (!tn_text_starts(name, PREFIX)) continue;
    if (s->optimizer_kind == NULL)
      tn_section_mark_used(&ini->sections[i]); /* an option of an optimizer that does not exist */
    else
      TN_TRY(tn_settings_note(env, ini, name, schedules_read_other(env, registry, ini, name, s)));
  }
  return TN_OK;
}

const tn_schedule_setting *tn_settings_schedule(const tn_settings *settings, const char *option,
                                                const char *group) {
  const tn_schedule_setting *found = tn_text_equal(option, "lr") ? settings->schedule : NULL;
  for (int32_t i = 0; i < settings->n_schedules; i++) {
    const tn_schedule_setting *s = &settings->schedules[i];
    if (s->target != TN_SCHEDULES_OPTIMIZER || !tn_text_equal(s->option, option)) continue;
    if (s->group != NULL && tn_text_equal(s->group, group)) return s;
    if (s->group == NULL) found = s;
  }
  return found;
}

const tn_schedule_setting *tn_settings_schedule_of(const tn_settings *settings, tn_schedule_target target) {
  for (int32_t i = 0; i < settings->n_schedules; i++)
    if (settings->schedules[i].target == target) return &settings->schedules[i];
  return NULL;
}

/* ---- transforms ---- */

static double schedules_configured(const tn_option *option, const void *options) {
  const char *field = (const char *)options + option->offset;
  return option->type == TN_OPT_INT ? (double)*(const int64_t *)(const void *)field
                                    : *(const double *)(const void *)field;
}

static void schedules_add_fields(const tn_transform_use *uses, int32_t n, tn_schedule_setting *s) {
  for (int32_t i = 0; uses != NULL && i < n; i++) {
    const tn_transform_use *use = &uses[i];
    if (use->transform == NULL || &use->transform->item != s->item) continue;
    tn_moved_field *field = &s->fields[s->n_fields++];
    field->option = tn_options_find(s->item, s->option);
    field->options = (void *)(uintptr_t)use->options; /* of this run's arena */
    field->value = schedules_configured(field->option, use->options);
  }
}

/* In the transforms of all sizes. */
static tn_status schedules_find_fields(tn_env *env, tn_ini *ini, const tn_data_setting *data,
                                       tn_schedule_setting *s) {
  size_t most = tn_size_mul((size_t)data->n_transforms + 1, TN_MAX_LENGTHS);
  s->fields = tn_arena_alloc(&ini->arena, tn_size_mul(most, sizeof *s->fields));
  if (s->fields == NULL) return TN_ENOMEM;
  schedules_add_fields(data->transforms, data->n_transforms, s);
  for (int32_t k = 0; k < TN_MAX_LENGTHS; k++) schedules_add_fields(data->sized[k], data->n_transforms, s);
  if (s->n_fields > 0) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: [%s]: there is no %s in [data] transforms that it could change",
                  schedules_where(ini, s), s->name, s->item->name);
}

tn_status tn_settings_find_moved(tn_env *env, tn_ini *ini, tn_settings *s) {
  const tn_data_setting *data = &s->data[TN_SPLIT_TRAIN];
  for (int32_t i = 0; i < s->n_schedules && data->given; i++)
    if (s->schedules[i].target == TN_SCHEDULES_TRANSFORM)
      TN_TRY(tn_ini_note(env, ini, schedules_find_fields(env, ini, data, &s->schedules[i])));
  return TN_OK;
}
