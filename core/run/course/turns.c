/* core/run/course/turns.c: [phase NAME], the parts of a model that are trained in turn in every step. */
#include <ctype.h>

#include "core/run/section_tables.h"

#define PREFIX "phase "

tn_settings tn_settings_of_turn(const tn_settings *settings, int32_t phase) {
  tn_settings own = *settings;
  if (settings->n_turns == 0) return own;
  own.turn = &settings->turns[phase];
  own.model_where = own.turn->where;
  own.optimizer_kind = own.turn->optimizer_kind;
  own.optimizer_options = own.turn->optimizer_options;
  own.optimizer = own.turn->optimizer;
  return own;
}

int32_t tn_settings_find_turn(const tn_settings *s, const char *path) {
  for (int32_t i = 0; i < s->n_turns; i++)
    if (tn_words_match(&s->turns[i].patterns, path)) return i;
  return -1;
}

/* ---- one section ---- */

/* The name is a part of the paths of states. */
static tn_status turns_check_name(tn_env *env, tn_ini *ini, const tn_section *section) {
  const char *name = section->name + strlen(PREFIX);
  bool word = isalpha((unsigned char)*name) || *name == '_';
  for (const char *c = name; *c != '\0'; c++) word = word && (isalnum((unsigned char)*c) || *c == '_');
  if (word) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: [%s]: the name is '%s', expected a word such as generator",
                  tn_key_where(ini, section, NULL), section->name, name);
}

/* Keys of [optimizer] that are those of the whole step. */
static tn_status turns_check_keys(tn_env *env, tn_ini *ini, tn_section *section) {
  static const char *const of_step[] = {"accumulate", "check_finite", "ema", "swa_from"};
  const tn_key *type = tn_section_key(section, "type");
  if (type != NULL)
    return tn_failf(env, TN_EINVAL, "%s: [%s] type = %s; write optimizer = %s",
                    tn_key_where(ini, section, type), section->name, type->value, type->value);
  for (size_t i = 0; i < sizeof of_step / sizeof *of_step; i++) {
    const tn_key *key = tn_section_key(section, of_step[i]);
    if (key == NULL) continue;
    return tn_failf(env, TN_EINVAL, "%s: [%s] %s: it is the same for all phases; write it into [optimizer]",
                    tn_key_where(ini, section, key), section->name, key->name);
  }
  return TN_OK;
}

/* The optimizer that the section names, or that of [optimizer]. */
static tn_status turns_find_optimizer(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                      const tn_optimizer *common, const tn_optimizer **kind) {
  const tn_key *key = tn_section_key(section, "optimizer");
  const tn_item *item = NULL;
  *kind = common;
  if (key == NULL || *key->value == '\0') return TN_OK;
  tn_status status = tn_settings_find_item(env, registry, TN_OPTIMIZER, key->value, &item);
  if (status != TN_OK)
    return tn_wrap(env, status, "%s: [%s] optimizer", tn_key_where(ini, section, key), section->name);
  *kind = (const tn_optimizer *)item;
  return tn_settings_remove_replaced(env, registry, ini, section, "optimizer", TN_OPTIMIZER, &tn_table_phase,
                                     item);
}

/* Keys of the section first, then those of [optimizer]: its options count where it is the same optimizer. */
static tn_status turns_read_section(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                    const tn_settings *s, tn_turn_setting *turn) {
  tn_options own, common, options, other;
  const tn_optimizer *kind;
  TN_TRY(turns_check_name(env, ini, section));
  TN_TRY(turns_check_keys(env, ini, section));
  TN_TRY(turns_find_optimizer(env, registry, ini, section, s->optimizer_kind, &kind));
  TN_TRY(tn_options_start(env, &ini->arena, &tn_table_phase, &own));
  TN_TRY(tn_options_start(env, &ini->arena, &tn_table_optimizer, &common));
  TN_TRY(tn_options_start(env, &ini->arena, &kind->item, &options));
  TN_TRY(tn_options_start(env, &ini->arena, &s->optimizer_kind->item, &other));
  tn_options *base[] = {&common, kind == s->optimizer_kind ? &options : &other};
  TN_TRY(tn_section_fill(env, ini, section, (tn_options *[]){&own, &common, &options}, 3));
  TN_TRY(tn_section_fill(env, ini, tn_ini_section(ini, "optimizer"), base, 2));
  TN_TRY(tn_section_finish(env, ini, section, section->name, &own));
  TN_TRY(tn_section_finish(env, ini, section, section->name, &common));
  TN_TRY(tn_section_finish(env, ini, section, section->name, &options));
  const tn_phase_section *p = (const tn_phase_section *)own.data;
  *turn = (tn_turn_setting){.name = section->name + strlen(PREFIX),
                            .where = tn_key_where(ini, section, tn_section_key(section, "match")),
                            .match = p->match,
                            .every = p->every,
                            .optimizer = *(const tn_optimizer_section *)common.data,
                            .optimizer_kind = kind,
                            .optimizer_options = options.data};
  return p->match != NULL ? tn_words_split(&ini->arena, p->match, &turn->patterns) : TN_OK;
}

/* ---- keys that phases exclude ---- */

static tn_status turns_refuse(tn_env *env, tn_ini *ini, const tn_settings *s, const char *section,
                              const char *key, const char *why) {
  return tn_failf(env, TN_EINVAL, "%s: [%s]%s%s beside [phase %s]: %s", tn_settings_where(ini, section, key),
                  section, key != NULL ? " " : "", key != NULL ? key : "", s->turns[0].name, why);
}

static tn_status turns_check(tn_env *env, tn_ini *ini, const tn_settings *s) {
  tn_section *model = tn_ini_section(ini, "model");
  if (model != NULL && tn_section_key(model, "loss") != NULL)
    return turns_refuse(env, ini, s, "model", "loss",
                        "each phase has losses of its own; move these into the phase that minimizes them");
  if (s->n_groups > 0)
    return tn_failf(env, TN_EINVAL,
                    "%s: [group.%s] beside [phase %s]: the options of an optimizer stand in the phase; "
                    "only a group with freeze = yes goes with phases",
                    s->groups[0].where, s->groups[0].name, s->turns[0].name);
  if (s->n_lengths > 1)
    return turns_refuse(env, ini, s, "model", tn_settings_lengths_key(s),
                        s->sizes ? "phases take samples of one size; give the largest size alone"
                                 : "phases take batches of one length; give the longest length alone");
  if (s->steps_per_launch > 1)
    return turns_refuse(env, ini, s, "run", "steps_per_launch",
                        "the phases of a step are launched one by one, expected auto or 1");
  if (s->distributed.shard != TN_SHARD_NO)
    return turns_refuse(env, ini, s, "distributed", "shard",
                        "the state of several optimizers is not divided, expected no");
  return TN_OK;
}

static tn_status turns_add(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                           tn_settings *s) {
  if (s->n_turns == TN_MAX_PHASES)
    return tn_failf(env, TN_EINVAL, "%s: [%s] is phase number %d, and a step has at most %d",
                    tn_key_where(ini, section, NULL), section->name, s->n_turns + 1, TN_MAX_PHASES);
  TN_TRY(turns_read_section(env, registry, ini, section, s, &s->turns[s->n_turns]));
  s->n_turns++;
  return TN_OK;
}

tn_status tn_settings_read_turns(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *s) {
  s->turns = tn_arena_alloc(&ini->arena, TN_MAX_PHASES * sizeof *s->turns);
  if (s->turns == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < ini->n_sections; i++) {
    tn_section *section = &ini->sections[i];
    if (!tn_text_starts(section->name, PREFIX)) continue;
    tn_status status = TN_OK;
    if (s->optimizer_kind == NULL) /* its keys are options of an optimizer that does not exist */
      tn_section_mark_used(section);
    else
      status = turns_add(env, registry, ini, section, s);
    if (status == TN_EINVAL) tn_section_mark_used(section);
    s->turns_wrong = s->turns_wrong || status == TN_EINVAL || section->mistaken;
    TN_TRY(tn_ini_note(env, ini, status));
  }
  if (s->n_turns == 0) return TN_OK;
  TN_TRY(tn_ini_note(env, ini, turns_check(env, ini, s)));
  for (int32_t i = 0; i < s->n_turns; i++) s->phases[i] = 1;
  s->n_phases = s->n_turns;
  return TN_OK;
}
