/* core/run/settings/adapters.c: [adapt] and [adapt.NAME]: layers with adapters of low rank, beside which the
 * weights of the model are frozen. */
#include <math.h>

#include "core/run/section_tables.h"

static bool adapters_is_section(const char *name) {
  return tn_text_equal(name, "adapt") || tn_text_starts(name, "adapt.");
}

/* PEFT's configuration has one type for all. */
static tn_status adapters_check_type(tn_env *env, tn_ini *ini, tn_section *section, const tn_settings *s) {
  static const char *const names[] = {"lora", "dora"};
  const tn_adapter *first = &s->adapters.v[0], *last = &s->adapters.v[s->adapters.n - 1];
  if (first->type == last->type) return TN_OK;
  const tn_key *key = tn_section_key(section, "type");
  return tn_failf(env, TN_EINVAL,
                  "%s: [%s] type = %s beside [%s] type = %s, expected the same, as in the files of PEFT",
                  key != NULL ? tn_key_where(ini, section, key) : last->where, last->section,
                  names[last->type], first->section, names[first->type]);
}

static tn_status adapters_read_section(tn_env *env, tn_ini *ini, tn_section *section, tn_settings *s,
                                       tn_freeze *trained) {
  tn_options options;
  tn_words train;
  TN_TRY(tn_options_start(env, &ini->arena, &tn_table_adapt, &options));
  TN_TRY(tn_section_fill(env, ini, section, (tn_options *[]){&options}, 1));
  TN_TRY(tn_section_finish(env, ini, section, section->name, &options));
  const tn_adapt_section *o = (const tn_adapt_section *)options.data;
  if (section->mistaken) return TN_OK;
  double rank = (double)o->rank;
  tn_adapter adapter = {.section = section->name,
                        .where = tn_key_where(ini, section, tn_section_key(section, "match")),
                        .rank = o->rank,
                        .alpha = o->alpha,
                        .dropout = o->dropout,
                        .scale = o->alpha / (o->rslora ? sqrt(rank) : rank),
                        .rslora = o->rslora,
                        .type = o->type};
  TN_TRY(tn_words_split(&ini->arena, o->match, &adapter.match));
  TN_TRY(tn_words_split(&ini->arena, o->train, &train));
  TN_TRY(tn_freeze_add(&ini->arena, trained, &train, 0));
  s->adapters.v[s->adapters.n++] = adapter;
  return adapters_check_type(env, ini, section, s);
}

/* The frozen parameters cannot thaw: the optimizer has no state for them. */
static tn_status adapters_check_groups(tn_env *env, tn_ini *ini, const tn_settings *s) {
  for (int32_t i = 0; i < s->n_frozen; i++)
    if (s->frozen[i].until != TN_FROZEN_FOREVER)
      TN_TRY(
          tn_ini_note(env, ini,
                      tn_failf(env, TN_EINVAL,
                               "%s: [group.%s] freeze = %s beside [adapt], which freezes all weights of the "
                               "model in all epochs; expected yes or no",
                               s->frozen[i].where, s->frozen[i].name, s->frozen[i].freeze)));
  return TN_OK;
}

/* Groups with freeze = yes take their names first, then the adapters and the names of `train` are trained,
 * and everything else is frozen. */
static tn_status adapters_freeze_others(tn_ini *ini, tn_settings *s, const tn_freeze *trained) {
  static const char *const own[] = {"*." TN_ADAPTER_DOWN, "*." TN_ADAPTER_UP, "*." TN_ADAPTER_EMBEDDING_DOWN,
                                    "*." TN_ADAPTER_EMBEDDING_UP, "*." TN_ADAPTER_MAGNITUDE},
                           *const all[] = {"*"};
  const tn_words adapters = {(const char **)(uintptr_t)own, sizeof own / sizeof *own},
                 given = {trained->patterns, trained->n}, others = {(const char **)(uintptr_t)all, 1};
  s->freeze = (tn_freeze){.n = 0};
  for (int32_t i = 0; i < s->n_frozen; i++)
    TN_TRY(tn_freeze_add(&ini->arena, &s->freeze, &s->frozen[i].patterns, TN_FROZEN_FOREVER));
  TN_TRY(tn_freeze_add(&ini->arena, &s->freeze, &given, 0));
  TN_TRY(tn_freeze_add(&ini->arena, &s->freeze, &adapters, 0));
  s->adapters.train = given;
  return tn_freeze_add(&ini->arena, &s->freeze, &others, TN_FROZEN_FOREVER);
}

tn_status tn_settings_read_adapters(tn_env *env, tn_ini *ini, tn_settings *s) {
  tn_freeze trained = {.n = 0};
  s->adapters.v =
      tn_arena_alloc(&ini->arena, tn_size_mul((size_t)ini->n_sections + 1, sizeof *s->adapters.v));
  if (s->adapters.v == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < ini->n_sections; i++) {
    tn_section *section = &ini->sections[i];
    if (!adapters_is_section(section->name)) continue;
    tn_status status = adapters_read_section(env, ini, section, s, &trained);
    if (status == TN_EINVAL) tn_section_mark_used(section);
    TN_TRY(tn_ini_note(env, ini, status));
  }
  if (s->adapters.n == 0) return TN_OK;
  TN_TRY(adapters_check_groups(env, ini, s));
  return adapters_freeze_others(ini, s, &trained);
}
