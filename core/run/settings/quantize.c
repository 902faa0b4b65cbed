/* core/run/settings/quantize.c: [quantize]: layers that train with rounded inputs and weights. */
#include "core/run/section_tables.h"

static tn_status quantize_check(tn_env *env, tn_ini *ini, const tn_settings *s) {
  const tn_quantize *q = &s->quantize;
  tn_section *section = tn_ini_section(ini, "quantize");
  if (q->observer == TN_OBSERVER_MINMAX && tn_section_key(section, "averaging") != NULL)
    return tn_failf(
        env, TN_EINVAL,
        "%s: [quantize] averaging has no effect: observer = minmax has no average; leave one of them "
        "out",
        tn_settings_where(ini, "quantize", "averaging"));
  if (q->match.n == 0)
    return tn_failf(env, TN_EINVAL,
                    "%s: [quantize] match is empty, expected patterns of layers, as in match = conv*, fc",
                    q->where);
  if (s->adapters.n == 0) return TN_OK;
  return tn_failf(
      env, TN_EINVAL,
      "%s: [quantize] beside [%s], whose layers keep weights that are not rounded; expected one of "
      "both: train the adapters first, and go on with [quantize] from the merged weights",
      q->where, s->adapters.v[0].section);
}

tn_status tn_settings_read_quantize(tn_env *env, tn_ini *ini, tn_settings *s) {
  tn_quantize_section o = {0};
  if (tn_ini_section(ini, "quantize") == NULL) return TN_OK;
  TN_TRY(tn_settings_read_section(env, ini, &tn_table_quantize, &o));
  s->quantize = (tn_quantize){.given = true,
                              .where = tn_settings_where(ini, "quantize", "match"),
                              .input_bits = o.input_bits,
                              .weight_bits = o.weight_bits,
                              .observer = o.observer,
                              .averaging = o.averaging,
                              .observe = o.observe};
  TN_TRY(tn_words_split(&ini->arena, o.match, &s->quantize.match));
  return quantize_check(env, ini, s);
}
