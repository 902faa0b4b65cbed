/* core/run/settings/settings.c: reads the sections that Tenon itself defines. */
#include "core/run/settings/settings.h"

#include <stdlib.h>
#include <string.h>

#include "core/run/section_tables.h"

/* ---- data ---- */

/* A key of a split: from [data.SPLIT], or else from [data]. */
static tn_key *settings_split_key(tn_section *base, tn_section *own, const char *name, tn_section **section) {
  tn_key *key = own ? tn_section_key(own, name) : NULL;
  *section = own;
  if (key || base == NULL) return key;
  *section = base;
  return tn_section_key(base, name);
}

/* "auto", "off" or a size; `where` is the location of the key. */
static tn_status settings_read_cache(tn_env *env, const char *text, const char *where, int64_t *bytes) {
  *bytes = tn_text_equal(text, "auto") ? TN_CACHE_AUTO : 0;
  if (*bytes != 0 || tn_text_equal(text, "off")) return TN_OK;
  if (tn_parse_size(env, text, bytes) == TN_OK) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: cache = %s, expected auto, off, or a size such as 2GiB", where, text);
}

/* "auto", "no" or a number; `where` is the location of the key. */
static tn_status settings_read_device_transforms(tn_env *env, const char *text, const char *where,
                                                 int32_t *n) {
  char *end = NULL;
  long value = strtol(text, &end, 10);
  *n = tn_text_equal(text, "auto") ? TN_DEVICE_TRANSFORMS_AUTO : 0;
  if (*n != 0 || tn_text_equal(text, "no")) return TN_OK;
  *n = (int32_t)value;
  if (end != text && *end == '\0' && value >= 0 && value <= INT32_MAX) return TN_OK;
  return tn_failf(env, TN_EINVAL, "%s: device_transforms = %s, expected auto, no, or a number from 0 on",
                  where, text);
}

/* `batch = auto` is read as the default, and stays in the configuration. */
static tn_status settings_fill_data(tn_env *env, tn_ini *ini, tn_section *base, tn_section *own,
                                    tn_options *into[2], tn_data_setting *data) {
  tn_section *section = NULL;
  tn_key *key = settings_split_key(base, own, "batch", &section);
  const char *given = key != NULL ? key->value : "";
  data->batch_auto = tn_text_equal(given, "auto");
  if (data->batch_auto && tn_text_equal(section->name, "data.valid")) {
    tn_section_mark_used(own);
    return tn_failf(
        env, TN_EINVAL,
        "%s: [data.valid] batch = auto, expected a number; without it validation takes the batch of "
        "[data]",
        tn_key_where(ini, section, key));
  }
  if (data->batch_auto) key->value = tn_options_find(&tn_table_data, "batch")->default_text;
  tn_status status = tn_section_fill(env, ini, own, into, 2);
  if (status == TN_OK) status = tn_section_fill(env, ini, base, into, 2);
  if (data->batch_auto) key->value = given;
  return status;
}

static tn_status settings_read_split(tn_env *env, tn_registry *registry, tn_ini *ini, const char *name,
                                     const tn_settings *s, tn_data_setting *data) {
  tn_section *base = tn_ini_section(ini, "data"), *own = tn_ini_section(ini, name), *section = NULL;
  tn_options host, source;
  const tn_item *item = NULL;
  bool validation = tn_text_equal(name, "data.valid");
  tn_key *key = settings_split_key(base, own, "source", &section);
  if (key == NULL) return TN_OK;
  tn_status status = TN_OK;
  if (validation) status = tn_settings_check_validation_keys(env, ini, own);
  if (status == TN_OK)
    status = tn_settings_find_chosen(env, registry, ini, section, "source", TN_SOURCE, key->value, &item);
  if (status == TN_EINVAL) tn_section_mark_used(own);
  if (status != TN_OK) return tn_settings_note(env, ini, "data", status);
  data->where = tn_key_where(ini, section, key);
  TN_TRY(tn_settings_remove_replaced(env, registry, ini, section, "source", TN_SOURCE, &tn_table_data, item));
  TN_TRY(tn_options_start(env, &ini->arena, &tn_table_data, &host));
  TN_TRY(tn_options_start(env, &ini->arena, item, &source));
  tn_options *into[] = {&host, &source};
  TN_TRY(settings_fill_data(env, ini, base, own, into, data));
  TN_TRY(tn_section_finish(env, ini, section, name, &host));
  TN_TRY(tn_section_finish(env, ini, section, name, &source));
  data->given = true;
  data->section = *(const tn_data_section *)host.data;
  if (validation && !(own && tn_section_key(own, "epoch"))) data->section.epoch = 0;
  data->source = (const tn_source *)item;
  data->options = source.data;
  key = settings_split_key(base, own, "cache", &section);
  status =
      settings_read_cache(env, data->section.cache, key ? tn_key_where(ini, section, key) : "", &data->cache);
  TN_TRY(tn_ini_note(env, ini, status));
  key = settings_split_key(base, own, "device_transforms", &section);
  status =
      settings_read_device_transforms(env, data->section.device_transforms,
                                      key ? tn_key_where(ini, section, key) : "", &data->device_transforms);
  TN_TRY(tn_ini_note(env, ini, status));
  key = settings_split_key(base, own, "transforms", &section);
  TN_TRY(tn_settings_read_transforms(env, registry, ini, section, key, s, data));
  if (!validation) TN_TRY(tn_ini_note(env, ini, tn_settings_check_balance(env, ini, base, own, data)));
  return validation && section == own ? tn_settings_check_validation_transforms(env, own, data) : TN_OK;
}

/* ---- the whole ---- */

static tn_status settings_read_pin(tn_env *env, tn_ini *ini, tn_settings *s) {
  if (s->run.pin == NULL) return TN_OK; /* [run] could not be read */
  tn_status status = tn_pin_read(env, &ini->arena, s->run.pin, &s->pin);
  return status == TN_OK ? TN_OK
                         : tn_wrap(env, status, "%s: [run] pin", tn_settings_where(ini, "run", "pin"));
}

/* "auto", or a number. */
static tn_status settings_read_steps_per_launch(tn_env *env, tn_ini *ini, tn_settings *s) {
  const char *text = s->run.steps_per_launch, *where = tn_settings_where(ini, "run", "steps_per_launch");
  char *end;
  if (text == NULL || tn_text_equal(text, "auto")) return TN_OK;
  long n = strtol(text, &end, 10);
  if (end == text || *end != '\0' || n < 1 || n > TN_MAX_STEPS_PER_LAUNCH)
    return tn_failf(env, TN_EINVAL, "%s: [run] steps_per_launch = %s, expected auto or a number from 1 to %d",
                    where, text, TN_MAX_STEPS_PER_LAUNCH);
  if (n > 1 && s->optimizer.accumulate > 1)
    return tn_failf(
        env, TN_EINVAL,
        "%s: [run] steps_per_launch = %s with [optimizer] accumulate = %lld: an update of several batches "
        "is launched by itself, expected auto or 1",
        where, text, (long long)s->optimizer.accumulate);
  s->steps_per_launch = (int32_t)n;
  return TN_OK;
}

/* "auto", "yes", "no", or a number. */
static tn_status settings_read_chunk_logits(tn_env *env, tn_ini *ini, tn_settings *s) {
  const char *text = s->run.chunk_logits;
  char *end;
  s->chunk_logits = TN_CHUNK_LOGITS_AUTO;
  s->chunk_logits_where = tn_settings_where(ini, "run", "chunk_logits");
  if (text == NULL || tn_text_equal(text, "auto")) return TN_OK;
  s->chunk_logits = tn_text_equal(text, "yes") ? TN_CHUNK_LOGITS_YES : TN_CHUNK_LOGITS_NO;
  if (tn_text_equal(text, "yes") || tn_text_equal(text, "no")) return TN_OK;
  s->chunk_logits = strtol(text, &end, 10);
  if (end != text && *end == '\0' && s->chunk_logits >= 1) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [run] chunk_logits = %s, expected auto, yes, no, or a number of rows from 1 on",
                  tn_settings_where(ini, "run", "chunk_logits"), text);
}

/* Every word of [run] observers is an observer's name, or '-' and such a name. */
static tn_status settings_check_observers(tn_env *env, tn_registry *registry, tn_ini *ini,
                                          const tn_words *words) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  if (words->n == 0) return TN_OK;
  TN_TRY(tn_registry_list(registry, env, TN_OBSERVER, &entries, &n));
  const char **names = tn_arena_alloc(&ini->arena, tn_size_mul((size_t)n + 1, sizeof *names));
  if (names == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) names[i] = entries[i].item->name;
  const tn_words known = {names, n};
  for (int32_t i = 0; i < words->n; i++) {
    const char *word = words->v[i] + (*words->v[i] == '-');
    if (tn_words_contain(&known, word)) continue;
    const char *nearest = tn_text_nearest(word, names, (size_t)n);
    tn_status status = tn_failf(env, TN_EINVAL, "%s: [run] observers: there is no observer '%s'%s%s%s",
                                tn_settings_where(ini, "run", "observers"), word,
                                nearest ? ", did you mean '" : "; `tenon inspect` lists them",
                                nearest ? nearest : "", nearest ? "'?" : "");
    TN_TRY(tn_ini_note(env, ini, status));
  }
  return TN_OK;
}

static tn_status settings_read_observers(tn_env *env, tn_registry *registry, tn_ini *ini,
                                         const tn_settings *s) {
  tn_words words;
  if (s->run.observers == NULL) return TN_OK; /* [run] could not be read */
  TN_TRY(tn_words_split(&ini->arena, s->run.observers, &words));
  return settings_check_observers(env, registry, ini, &words);
}

static tn_status settings_read_watch(tn_ini *ini, tn_settings *s) {
  const char *text = s->run.watch_groups;
  if (text == NULL || tn_text_equal(text, "blocks") || tn_text_equal(text, "parameters")) return TN_OK;
  return tn_words_split(&ini->arena, text, &s->watch_patterns);
}

/* Both would be the weights that validation reads. */
static tn_status settings_check_averages(tn_env *env, tn_ini *ini, const tn_settings *s) {
  const char *key = s->optimizer.ema > 0         ? "ema"
                    : s->optimizer.swa_from > 0  ? "swa_from"
                    : s->optimizer.lookahead > 0 ? "lookahead"
                                                 : NULL;
  if (key != NULL && tn_optimizer_has_average(s->optimizer_kind))
    return tn_failf(
        env, TN_EINVAL,
        "%s: [optimizer] %s beside type = %s, which has an average of its own: validation reads one average; "
        "leave out %s",
        tn_settings_where(ini, "optimizer", key), key, s->optimizer_kind->item.name, key);
  if (s->optimizer.ema == 0 || s->optimizer.swa_from == 0) return TN_OK;
  return tn_failf(
      env, TN_EINVAL,
      "%s: [optimizer] swa_from = %lld beside ema = %g: validation reads one average, expected one "
      "of the two keys",
      tn_settings_where(ini, "optimizer", "swa_from"), (long long)s->optimizer.swa_from, s->optimizer.ema);
}

/* The perturbation follows the gradient of all micro-batches, which is known when the last of them is gone.
 */
static tn_status settings_check_sharpness(tn_env *env, tn_ini *ini, const tn_settings *s) {
  bool sharp = s->optimizer.sharpness > 0;
  for (int32_t i = 0; i < s->n_turns; i++) sharp = sharp || s->turns[i].optimizer.sharpness > 0;
  if (sharp && s->optimizer.accumulate > 1)
    return tn_failf(env, TN_EINVAL,
                    "%s: [optimizer] accumulate = %lld with sharpness, whose second pass takes the batches "
                    "again at parameters that the gradient of all of them perturbs; expected a larger [data] "
                    "batch, or sharpness = 0",
                    tn_settings_where(ini, "optimizer", "accumulate"), (long long)s->optimizer.accumulate);
  if (sharp || !s->optimizer.sharpness_adaptive) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [optimizer] sharpness_adaptive = yes without sharpness, the size of the perturbation; "
                  "expected one such as sharpness = 0.5, or sharpness_adaptive = no",
                  tn_settings_where(ini, "optimizer", "sharpness_adaptive"));
}

tn_status tn_settings_read(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *s) {
  tn_policy_section policy;
  tn_item_choice optimizer = {&tn_table_optimizer, "optimizer", "type", TN_OPTIMIZER, &s->optimizer, 0, 0};
  tn_item_choice precision = {&tn_table_precision, "precision", "policy", TN_PRECISION, &policy, 0, 0};
  memset(s, 0, sizeof *s);
  ini->homes = tn_settings_tables;
  tn_section *model = tn_ini_section(ini, "model");
  s->model_where = model ? tn_key_where(ini, model, tn_section_key(model, "loss")) : ini->path;
  const struct {
    const tn_item *table;
    void *into;
  } sections[] = {{&tn_table_run, &s->run},
                  {&tn_table_backend, &s->backend},
                  {&tn_table_distributed, &s->distributed},
                  {&tn_table_weights, &s->weights}};
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
    TN_TRY(tn_settings_note(env, ini, sections[i].table->name,
                            tn_settings_read_section(env, ini, sections[i].table, sections[i].into)));
  TN_TRY(tn_ini_note(env, ini, settings_read_pin(env, ini, s)));
  TN_TRY(settings_read_observers(env, registry, ini, s));
  tn_item_choice *const choices[] = {&optimizer, &precision};
  for (size_t i = 0; i < 2; i++)
    TN_TRY(tn_settings_note(env, ini, choices[i]->table->name,
                            tn_settings_read_choice(env, registry, ini, choices[i])));
  s->optimizer_kind = (const tn_optimizer *)optimizer.item;
  s->optimizer_options = optimizer.options;
  TN_TRY(tn_ini_note(env, ini, settings_check_averages(env, ini, s)));
  TN_TRY(tn_ini_note(env, ini, settings_read_steps_per_launch(env, ini, s)));
  TN_TRY(tn_ini_note(env, ini, settings_read_chunk_logits(env, ini, s)));
  TN_TRY(settings_read_watch(ini, s));
  TN_TRY(tn_settings_read_limits(env, ini, s));
  TN_TRY(tn_settings_read_keep(env, ini, s));
  TN_TRY(tn_settings_read_lengths(env, ini, s));
  TN_TRY(tn_settings_read_links(env, ini, s));
  s->precision = (const tn_precision *)precision.item;
  s->precision_options = precision.options;
  TN_TRY(tn_settings_read_groups(env, ini, s));
  TN_TRY(tn_settings_note(env, ini, "prune", tn_settings_read_prune(env, ini, s)));
  TN_TRY(tn_settings_read_adapters(env, ini, s));
  TN_TRY(tn_settings_note(env, ini, "quantize", tn_settings_read_quantize(env, ini, s)));
  TN_TRY(tn_settings_read_schedules(env, registry, ini, s));
  TN_TRY(tn_settings_read_turns(env, registry, ini, s));
  TN_TRY(tn_ini_note(env, ini, settings_check_sharpness(env, ini, s)));
  TN_TRY(tn_ini_note(env, ini, tn_settings_check_lr_rule(env, ini, s)));
  TN_TRY(tn_settings_read_parts(env, registry, ini, s));
  TN_TRY(tn_settings_note(
      env, ini, "data", settings_read_split(env, registry, ini, "data.train", s, &s->data[TN_SPLIT_TRAIN])));
  TN_TRY(tn_settings_note(
      env, ini, "data", settings_read_split(env, registry, ini, "data.valid", s, &s->data[TN_SPLIT_VALID])));
  TN_TRY(tn_settings_find_moved(env, ini, s));
  TN_TRY(tn_settings_note(env, ini, "sweep", tn_settings_read_sweep(env, ini, s)));
  return tn_ini_note(env, ini, tn_settings_read_fold(env, ini, s));
}
