/* core/run/settings/idle_keys.c: refuses keys that would have no effect where they stand. */
#include <stdio.h>

#include "core/run/section_tables.h"

typedef struct idle_key {
  const char *name, *reason;
} idle_key;

/* Keys of [data] that validation does not read. */
static const idle_key idle_in_validation[] = {
    {"shuffle",
     "validation reads its samples in their order; epoch = N takes N of them, spread over the source, "
     "the same in every epoch"},
    {"balance", "validation reads the classes as often as they come; set balance in [data]"},
    {"last", "validation always pads its last batch with samples of weight 0"},
    {"fold",
     "it divides the training source, and validation reads the part that is left out; set fold in [data]"},
    {"prefetch", "validation reads into the memory of training; set prefetch in [data]"},
};

tn_status tn_settings_check_validation_keys(tn_env *env, tn_ini *ini, const tn_section *valid) {
  for (size_t i = 0; valid && i < sizeof idle_in_validation / sizeof *idle_in_validation; i++) {
    const tn_key *key = tn_section_key((tn_section *)(uintptr_t)valid, idle_in_validation[i].name);
    if (key == NULL) continue;
    return tn_failf(env, TN_EINVAL, "%s: [data.valid] %s has no effect: %s", tn_key_where(ini, valid, key),
                    key->name, idle_in_validation[i].reason);
  }
  return TN_OK;
}

tn_status tn_settings_check_validation_transforms(tn_env *env, const tn_section *section,
                                                  const tn_data_setting *data) {
  for (int32_t i = 0; i < data->n_transforms; i++) {
    const tn_transform_use *use = &data->transforms[i];
    if (use->transform == NULL || !use->transform->training_only) continue; /* NULL: a mistake is noted */
    return tn_failf(
        env, TN_EINVAL,
        "%s: [%s] transforms: %s has no effect: it is applied in training alone; leave it out here",
        use->where, section->name, use->transform->item.name);
  }
  return TN_OK;
}

tn_status tn_settings_check_balance(tn_env *env, tn_ini *ini, const tn_section *base, const tn_section *own,
                                    const tn_data_setting *data) {
  const tn_section *section = own != NULL && tn_section_key(own, "balance") != NULL ? own : base;
  if (!data->section.balance || data->section.shuffle) return TN_OK;
  return tn_failf(
      env, TN_EINVAL,
      "%s: [%s] balance = yes with shuffle = no: it draws samples at random; leave one of them out",
      tn_key_where(ini, section, tn_section_key(section, "balance")), section->name);
}

/* "lr, weight_decay" */
static void idle_keys_list_scheduled(const tn_item *item, tn_text *text) {
  for (int64_t i = 0; tn_options_at(item, i) != NULL; i++)
    if (tn_options_at(item, i)->flags & TN_OPT_SCHEDULED)
      tn_text_addf(text, "%s%s", text->n > 0 ? ", " : "", tn_options_at(item, i)->name);
}

tn_status tn_settings_check_group_keys(tn_env *env, tn_ini *ini, const tn_section *group,
                                       const tn_optimizer *optimizer) {
  if (optimizer->granularity != TN_UPDATE_ELEMENTWISE) return TN_OK;
  for (int32_t i = 0; i < group->n_keys; i++) {
    const tn_key *key = &group->keys[i];
    const tn_option *option = tn_options_find(&optimizer->item, key->name);
    if (option == NULL || (option->flags & TN_OPT_SCHEDULED)) continue;
    tn_text names = tn_text_new(env);
    idle_keys_list_scheduled(&optimizer->item, &names);
    tn_status status =
        tn_failf(env, TN_EINVAL,
                 "%s: [%s] %s has no effect: %s updates all parameters at once, and of its options %s may "
                 "differ by group",
                 tn_key_where(ini, group, key), group->name, key->name, optimizer->item.name,
                 names.v ? names.v : "none");
    tn_text_free(&names);
    return status;
  }
  return TN_OK;
}

tn_status tn_settings_check_frozen_keys(tn_env *env, tn_ini *ini, const tn_section *group,
                                        const tn_optimizer *optimizer) {
  for (int32_t i = 0; i < group->n_keys; i++) {
    const tn_key *key = &group->keys[i];
    if (tn_options_find(&optimizer->item, key->name) == NULL) continue;
    return tn_failf(env, TN_EINVAL, "%s: [%s] %s has no effect: the parameters of the group are frozen",
                    tn_key_where(ini, group, key), group->name, key->name);
  }
  return TN_OK;
}

/* "[optimizer] lr_rule", or that of the phase. The default is no choice, and resolved configurations have it.
 */
static tn_status idle_keys_check_lr_rule(tn_env *env, tn_ini *ini, const tn_optimizer_section *o,
                                         const char *section) {
  if (o->lr_rule != TN_LR_SQRT || o->lr_batch > 0) return TN_OK;
  const tn_section *own = tn_ini_section(ini, section);
  if (own == NULL || tn_section_key((tn_section *)(uintptr_t)own, "lr_rule") == NULL) section = "optimizer";
  return tn_failf(env, TN_EINVAL,
                  "%s: [%s] lr_rule = sqrt has no effect without lr_batch, the batch that lr is meant for; "
                  "expected lr_batch = N as well, such as lr_batch = 256",
                  tn_settings_where(ini, section, "lr_rule"), section);
}

tn_status tn_settings_check_lr_rule(tn_env *env, tn_ini *ini, const tn_settings *s) {
  tn_status status = idle_keys_check_lr_rule(env, ini, &s->optimizer, "optimizer");
  for (int32_t i = 0; status == TN_OK && i < s->n_turns; i++) {
    char section[256];
    snprintf(section, sizeof section, "phase %s", s->turns[i].name);
    status = idle_keys_check_lr_rule(env, ini, &s->turns[i].optimizer, section);
  }
  return status;
}
