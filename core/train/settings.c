/* core/train/settings.c: reading the host's sections. */
#include "core/train/settings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const tn_option run_rows[] = {
    TN_OPT(tn_run_section, name, TN_OPT_TEXT, "run", NULL, "name of the run and of its folder"),
    TN_OPT(tn_run_section, seed, TN_OPT_INT, "0", ">= 0", "key of all randomness"),
    TN_OPT(tn_run_section, epochs, TN_OPT_INT, "1", ">= 0", "passes over the training data"),
    TN_OPT(tn_run_section, max_steps, TN_OPT_INT, "0", ">= 0", "stop after so many steps; 0: no limit"),
    TN_OPT(tn_run_section, max_time, TN_OPT_DURATION, "0", ">= 0",
           "stop after so long (90s, 2h); 0: no limit"),
    TN_OPT(tn_run_section, fast_dev_run, TN_OPT_FLAG, "no", NULL,
           "one training and one validation step, nothing saved"),
    TN_OPT(tn_run_section, threads, TN_OPT_INT, "0", ">= 0",
           "threads for kernels on the host; 0: one per processor"),
    TN_OPT(tn_run_section, output, TN_OPT_TEXT, "runs", NULL,
           "folder for run folders; empty: nothing is written"),
    TN_OPT(tn_run_section, observers, TN_OPT_TEXT, "", NULL,
           "observers beside or instead of the usual ones: jsonl, -progress"),
    TN_OPT(tn_run_section, save_every, TN_OPT_INT, "0", ">= 0", "save a checkpoint every so many steps, too"),
    TN_OPT(tn_run_section, best, TN_OPT_TEXT, "", NULL,
           "metric that chooses the best checkpoint; empty: the first metric, or the loss"),
    TN_OPT_END};
static const tn_option backend_rows[] = {
    TN_OPT(tn_backend_section, use, TN_OPT_TEXT, TN_DEFAULT_BACKEND, NULL,
           "backends in order of preference; the first that can be used is"),
    TN_OPT(tn_backend_section, fallback, TN_OPT_ENUM, "warn", "error|warn|allow",
           "what to do with ops that the device lacks"),
    TN_OPT_END};
static const tn_option data_rows[] = {
    TN_OPT(tn_data_section, source, TN_OPT_TEXT, NULL, NULL, "where samples come from"),
    TN_OPT(tn_data_section, batch, TN_OPT_INT, "32", ">= 1", "samples in a step"),
    TN_OPT(tn_data_section, workers, TN_OPT_INT, "2", "[0, 256]", "threads that read and transform; 0: none"),
    TN_OPT(tn_data_section, prefetch, TN_OPT_INT, "2", "[1, 64]", "batches read ahead"),
    TN_OPT(tn_data_section, epoch, TN_OPT_INT, "0", ">= 0", "samples in an epoch; 0: all there are"),
    TN_OPT(tn_data_section, transforms, TN_OPT_TEXT, "", NULL,
           "what happens to a sample before it joins the batch"),
    TN_OPT(tn_data_section, shuffle, TN_OPT_FLAG, "yes", NULL, "another order in every epoch (training)"),
    TN_OPT(tn_data_section, last, TN_OPT_ENUM, "drop", "drop|pad",
           "the short last batch of training: leave it out, or fill it up with samples of weight 0"),
    TN_OPT_END};
static const tn_option optimizer_rows[] = {
    TN_OPT(tn_optimizer_section, type, TN_OPT_TEXT, TN_DEFAULT_OPTIMIZER, NULL, "which optimizer"),
    TN_OPT(tn_optimizer_section, clip, TN_OPT_FLOAT, "0", ">= 0",
           "greatest norm of the whole gradient; 0: no limit"),
    TN_OPT_END};
static const tn_option schedule_rows[] = {
    TN_OPT(tn_schedule_section, type, TN_OPT_TEXT, TN_DEFAULT_SCHEDULE, NULL, "which schedule"),
    TN_OPT(tn_schedule_section, warmup, TN_OPT_INT, "0", ">= 0", "steps of linear warm-up"), TN_OPT_END};
static const tn_option weights_rows[] = {
    TN_OPT(tn_weights_section, file, TN_OPT_PATH, "", NULL, "safetensors file to start from"),
    TN_OPT(tn_weights_section, prefix, TN_OPT_TEXT, "", NULL,
           "what stands in front of every name in the file"),
    TN_OPT(tn_weights_section, ignore, TN_OPT_TEXT, "*.num_batches_tracked", NULL,
           "patterns of names that may be missing or left over"),
    TN_OPT_END};
typedef struct tn_policy_section {
  const char *policy;
} tn_policy_section;
static const tn_option precision_rows[] = {
    TN_OPT(tn_policy_section, policy, TN_OPT_TEXT, TN_DEFAULT_POLICY, NULL, "in which types ops work"),
    TN_OPT_END};
typedef struct tn_plugins_section {
  const char *load;
} tn_plugins_section;
static const tn_option plugins_rows[] = {
    TN_OPT(tn_plugins_section, load, TN_OPT_TEXT, "", NULL,
           "plugin files, relative to this one; `?` behind a name: may be absent"),
    TN_OPT_END};
typedef struct tn_model_section {
  const char *inputs, *targets, *layers, *loss, *metrics;
} tn_model_section;
static const tn_option model_rows[] = {
    TN_OPT(tn_model_section, inputs, TN_OPT_TEXT, NULL, NULL,
           "fields that the model takes: image: f32[3, 224, 224]"),
    TN_OPT(tn_model_section, targets, TN_OPT_TEXT, "label: i32[]", NULL,
           "fields that losses and metrics take"),
    TN_OPT(tn_model_section, layers, TN_OPT_TEXT, NULL, NULL, "the model, a layer a line"),
    TN_OPT(tn_model_section, loss, TN_OPT_TEXT, "", NULL,
           "what training minimizes; weight=FACTOR scales one of several"),
    TN_OPT(tn_model_section, metrics, TN_OPT_TEXT, "", NULL, "what is reported beside the loss"),
    TN_OPT_END};
typedef struct tn_block_section {
  const char *args, *inputs, *layers, *outputs;
} tn_block_section;
static const tn_option block_rows[] = {
    TN_OPT(tn_block_section, args, TN_OPT_TEXT, "", NULL, "names that a use gives values, or NAME=default"),
    TN_OPT(tn_block_section, inputs, TN_OPT_TEXT, "", NULL, "names of several inputs; one is called `in`"),
    TN_OPT(tn_block_section, layers, TN_OPT_TEXT, NULL, NULL, "the block, a layer a line"),
    TN_OPT(tn_block_section, outputs, TN_OPT_TEXT, "", NULL,
           "names of the results; empty: the last line's value"),
    TN_OPT_END};
typedef struct tn_match_section {
  const char *match;
} tn_match_section;
static const tn_option match_rows[] = {
    TN_OPT(tn_match_section, match, TN_OPT_TEXT, NULL, NULL, "patterns of parameter names"), TN_OPT_END};

#define TABLE(name, S, rows, doc)                                                                            \
  static const tn_item name##_table = {                                                                      \
      (uint32_t)sizeof(tn_item), 0, #name, doc, rows, (uint32_t)sizeof(tn_option), (uint32_t)sizeof(S)}
TABLE(run, tn_run_section, run_rows, "the run as a whole");
TABLE(backend, tn_backend_section, backend_rows, "where it runs");
TABLE(data, tn_data_section, data_rows, "samples; [data.train] and [data.valid] override");
TABLE(optimizer, tn_optimizer_section, optimizer_rows,
      "how parameters move, with the optimizer's own options");
TABLE(schedule, tn_schedule_section, schedule_rows,
      "the learning rate over time, with the schedule's own options");
TABLE(weights, tn_weights_section, weights_rows, "parameters to start from");
TABLE(precision, tn_policy_section, precision_rows, "element types, with the policy's own options");
TABLE(plugins, tn_plugins_section, plugins_rows, "plugins beside those that are installed");
TABLE(model, tn_model_section, model_rows, "the network, its losses and metrics");
TABLE(block, tn_block_section, block_rows, "[block NAME]: lines that a model uses as it uses a layer");
TABLE(group, tn_match_section, match_rows, "[group.NAME]: options of the optimizer for some parameters");
const tn_item *const tn_settings_tables[] = {
    &run_table,      &model_table,     &block_table,   &data_table,    &optimizer_table, &group_table,
    &schedule_table, &precision_table, &backend_table, &weights_table, &plugins_table,   NULL};

/* ---- filling structs from sections ---- */

static tn_status start(tn_env *env, tn_ini *ini, const tn_item *item, tn_options *options) {
  return tn_options_start(env, &ini->arena, item, options);
}

/* A section that is described by one table alone. */
static tn_status read_plain(tn_env *env, tn_ini *ini, const tn_item *table, void *into) {
  tn_options options;
  tn_section *section = tn_ini_section(ini, table->name);
  TN_TRY(start(env, ini, table, &options));
  TN_TRY(tn_schema_fill(env, ini, section, (tn_options *[]){&options}, 1));
  TN_TRY(tn_schema_finish(env, ini, section, table->name, &options));
  memcpy(into, options.data, table->options_bytes);
  return TN_OK;
}

/* The word that chooses an item: its key in the section, or the default of the table. */
static const char *chosen(tn_section *section, const tn_item *table, const char *key) {
  tn_key *found = section ? tn_section_key(section, key) : NULL;
  return found ? found->value : tn_options_find(table, key)->fallback;
}

tn_status tn_settings_find(tn_env *env, tn_registry *registry, uint32_t kind, const char *name,
                           const tn_item **item) {
  const tn_entry *entry = NULL;
  tn_status status = tn_registry_find(registry, env, kind, name, &entry);
  if (status == TN_EUNAVAILABLE && !tn_registry_has(registry, kind, name))
    return tn_failf(env, TN_EINVAL, "%s", tn_error_text(env));
  if (status == TN_OK) *item = entry->item;
  return status;
}

static tn_status find_item(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                           const char *key, uint32_t kind, const char *name, const tn_item **item) {
  tn_key *at = section ? tn_section_key(section, key) : NULL;
  tn_status status = tn_settings_find(env, registry, kind, name, item);
  if (status != TN_OK && at)
    return tn_wrap(env, status, "%s: [%s] %s", tn_key_where(ini, section, at), section->name, key);
  return status;
}

/* A section that chooses an item with `key` and holds the options of both. */
typedef struct tn_choosing {
  const tn_item *table;
  const char *key;
  uint32_t kind;
  void *into;          /* table->options_bytes */
  const tn_item *item; /* out */
  const void *options; /* out */
} tn_choosing;

static tn_status read_choosing(tn_env *env, tn_registry *registry, tn_ini *ini, tn_choosing *c) {
  tn_options host, item;
  tn_section *section = tn_ini_section(ini, c->table->name);
  TN_TRY(
      find_item(env, registry, ini, section, c->key, c->kind, chosen(section, c->table, c->key), &c->item));
  TN_TRY(start(env, ini, c->table, &host));
  TN_TRY(start(env, ini, c->item, &item));
  TN_TRY(tn_schema_fill(env, ini, section, (tn_options *[]){&host, &item}, 2));
  TN_TRY(tn_schema_finish(env, ini, section, c->table->name, &host));
  TN_TRY(tn_schema_finish(env, ini, section, c->table->name, &item));
  memcpy(c->into, host.data, c->table->options_bytes);
  c->options = item.data;
  return TN_OK;
}

/* ---- groups ---- */

/* The optimizer's options with the keys of the group and, behind those, of [optimizer]. */
static tn_status read_group(tn_env *env, tn_ini *ini, tn_section *section, const tn_settings *s,
                            tn_group_setting *group) {
  tn_options match, skipped, options;
  tn_section *base = tn_ini_section(ini, "optimizer");
  TN_TRY(start(env, ini, &group_table, &match));
  TN_TRY(start(env, ini, &optimizer_table, &skipped));
  TN_TRY(start(env, ini, &s->optimizer_kind->item, &options));
  TN_TRY(tn_schema_fill(env, ini, section, (tn_options *[]){&match, &options}, 2));
  TN_TRY(tn_schema_fill(env, ini, base, (tn_options *[]){&skipped, &options}, 2));
  TN_TRY(tn_schema_finish(env, ini, section, section->name, &match));
  group->where = tn_key_where(ini, section, tn_section_key(section, "match"));
  group->name = section->name + strlen("group.");
  group->match = ((const tn_match_section *)match.data)->match;
  group->options = options.data;
  return tn_words_split(&ini->arena, group->match, &group->patterns);
}

static tn_status read_groups(tn_env *env, tn_ini *ini, tn_settings *s) {
  s->groups = tn_arena_alloc(&ini->arena, tn_size_mul((size_t)ini->n_sections + 1, sizeof *s->groups));
  if (!s->groups) return TN_ENOMEM;
  for (int32_t i = 0; i < ini->n_sections; i++)
    if (tn_text_starts(ini->sections[i].name, "group."))
      TN_TRY(read_group(env, ini, &ini->sections[i], s, &s->groups[s->n_groups++]));
  return TN_OK;
}

/* ---- data ---- */

static const char *line_where(tn_ini *ini, const tn_line *line) {
  return line->line > 0 ? tn_arena_printf(&ini->arena, "%s:%d", line->file, line->line) : line->file;
}

/* The names after `<-` of a transform line, in the ini's arena. */
static tn_status read_transform(tn_env *env, tn_registry *registry, tn_ini *ini, const tn_line *line,
                                const tn_item_call *call, tn_transform_use *use) {
  static const tn_scope nothing;
  const tn_item *item = NULL;
  tn_options options;
  if (!call->layer || call->repeat || line->condition || line->n_names > 0)
    return tn_failf(env, TN_EINVAL, "expected a transform, as in `random_flip(0.5) <- image`");
  TN_TRY(tn_settings_find(env, registry, TN_TRANSFORM, call->layer, &item));
  TN_TRY(start(env, ini, item, &options));
  for (int32_t i = 0; i < call->n_args; i++) {
    tn_value value;
    const tn_option *option = tn_options_at(item, i);
    const char *name = call->args[i].name ? call->args[i].name : option ? option->name : NULL;
    if (!name) return tn_failf(env, TN_EINVAL, "%s: argument %d is one too many", call->layer, i + 1);
    TN_TRY(tn_expr_evaluate(env, &ini->arena, call->args[i].value, &nothing, &value));
    const char *text = tn_value_text(&ini->arena, &value);
    tn_status status = text ? tn_options_set_text(env, &options, name, text) : TN_ENOMEM;
    if (status != TN_OK) return tn_wrap(env, status, "%s", call->layer);
  }
  tn_status status = tn_options_finish(env, &options);
  if (status != TN_OK) return tn_wrap(env, status, "%s", call->layer);
  *use = (tn_transform_use){(const tn_transform *)item, options.data, line->n_refs ? line->refs : NULL,
                            line->n_refs, line_where(ini, line)};
  return use->where ? TN_OK : TN_ENOMEM;
}

static tn_status read_transforms(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                 tn_key *key, tn_data_setting *data) {
  tn_line *lines;
  int32_t n, items = 0;
  if (!key || *key->value == '\0') return TN_OK;
  TN_TRY(tn_syntax_lines(env, &ini->arena, key, &lines, &n));
  for (int32_t i = 0; i < n; i++) items += lines[i].n_items;
  data->transforms = tn_arena_alloc(&ini->arena, tn_size_mul((size_t)items + 1, sizeof *data->transforms));
  if (!data->transforms) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < lines[i].n_items; k++) {
      tn_status status = read_transform(env, registry, ini, &lines[i], &lines[i].items[k],
                                        &data->transforms[data->n_transforms++]);
      if (status != TN_OK)
        return tn_wrap(env, status, "%s: [%s] transforms", line_where(ini, &lines[i]), section->name);
    }
  return TN_OK;
}

/* A key of a split: from [data.SPLIT], else from [data]. */
static tn_key *split_key(tn_section *base, tn_section *own, const char *name, tn_section **section) {
  tn_key *key = own ? tn_section_key(own, name) : NULL;
  *section = own;
  if (key || !base) return key;
  *section = base;
  return tn_section_key(base, name);
}

static tn_status read_split(tn_env *env, tn_registry *registry, tn_ini *ini, const char *name,
                            tn_data_setting *data) {
  tn_section *base = tn_ini_section(ini, "data"), *own = tn_ini_section(ini, name), *section = NULL;
  tn_options host, source;
  const tn_item *item = NULL;
  tn_key *key = split_key(base, own, "source", &section);
  if (!key) return TN_OK;
  TN_TRY(find_item(env, registry, ini, section, "source", TN_SOURCE, key->value, &item));
  data->where = tn_key_where(ini, section, key);
  TN_TRY(start(env, ini, &data_table, &host));
  TN_TRY(start(env, ini, item, &source));
  tn_options *into[] = {&host, &source};
  TN_TRY(tn_schema_fill(env, ini, own, into, 2));
  TN_TRY(tn_schema_fill(env, ini, base, into, 2));
  TN_TRY(tn_schema_finish(env, ini, section, name, &host));
  TN_TRY(tn_schema_finish(env, ini, section, name, &source));
  data->given = true;
  data->section = *(const tn_data_section *)host.data;
  if (tn_text_equal(name, "data.valid") && !(own && tn_section_key(own, "epoch"))) data->section.epoch = 0;
  data->source = (const tn_source *)item;
  data->options = source.data;
  key = split_key(base, own, "transforms", &section);
  return read_transforms(env, registry, ini, section, key, data);
}

/* ---- the whole ---- */

tn_status tn_settings_item(tn_env *env, tn_ini *ini, const char *kind, const tn_item *item,
                           const void **data) {
  tn_options options;
  const char *name = tn_arena_printf(&ini->arena, "%s.%s", kind, item->name);
  if (!name) return TN_ENOMEM;
  tn_section *section = tn_ini_section(ini, name);
  TN_TRY(start(env, ini, item, &options));
  TN_TRY(tn_schema_fill(env, ini, section, (tn_options *[]){&options}, 1));
  *data = options.data;
  return tn_schema_finish(env, ini, section, name, &options);
}

/* The word as tn_registry_load takes it: a bare name as it is, a path absolute. */
static char *plugin_path(tn_env *env, tn_ini *ini, const tn_key *key, const char *word) {
  char whole[PATH_MAX];
  if (!tn_registry_is_path(word)) return tn_strdup(env, word);
  char *path = tn_path_join(env, key->line > 0 ? ini->folder : ".", word);
  if (!path || !realpath(path, whole)) return path;
  tn_release(env, path);
  return tn_strdup(env, whole);
}

/* Loads one word of [plugins] load and adds what it stands for to `kept`. */
static tn_status load_plugin(tn_env *env, tn_registry *registry, tn_ini *ini, const tn_key *key, char *word,
                             tn_text *kept) {
  size_t length = strlen(word);
  bool optional = word[length - 1] == '?';
  if (optional) word[length - 1] = '\0';
  char *path = plugin_path(env, ini, key, word);
  if (!path) return TN_ENOMEM;
  bool there = tn_registry_is_path(path) ? tn_file_exists(path) : tn_registry_holds(registry, path);
  tn_text_addf(kept, "%s%s%s", kept->n > 0 ? ", " : "", path, optional ? "?" : "");
  tn_status status = there || !optional ? tn_registry_load(registry, env, path) : TN_OK;
  tn_release(env, path);
  return status;
}

tn_status tn_settings_load_plugins(tn_env *env, tn_registry *registry, tn_ini *ini) {
  tn_plugins_section plugins;
  tn_words words;
  tn_section *section = tn_ini_section(ini, "plugins");
  tn_key *key = section ? tn_section_key(section, "load") : NULL;
  TN_TRY(read_plain(env, ini, &plugins_table, &plugins));
  if (!key) return TN_OK;
  tn_text kept = tn_text_new(env);
  tn_status status = tn_words_split(&ini->arena, plugins.load, &words);
  for (int32_t i = 0; status == TN_OK && i < words.n; i++)
    status = load_plugin(env, registry, ini, key, (char *)(uintptr_t)words.v[i], &kept);
  if (status == TN_OK && words.n > 0) {
    key->value = kept.failed ? NULL : tn_arena_strdup(&ini->arena, kept.v);
    key->n_value_lines = 1;
    if (!key->value) status = TN_ENOMEM;
  }
  tn_text_free(&kept);
  if (status != TN_OK) return tn_wrap(env, status, "%s: [plugins] load", tn_key_where(ini, section, key));
  return TN_OK;
}

tn_status tn_settings_read(tn_env *env, tn_registry *registry, tn_ini *ini, tn_settings *s) {
  tn_policy_section policy;
  tn_choosing optimizer = {&optimizer_table, "type", TN_OPTIMIZER, &s->optimizer, NULL, NULL};
  tn_choosing schedule = {&schedule_table, "type", TN_SCHEDULE, &s->schedule, NULL, NULL};
  tn_choosing precision = {&precision_table, "policy", TN_PRECISION, &policy, NULL, NULL};
  memset(s, 0, sizeof *s);
  tn_section *model = tn_ini_section(ini, "model");
  s->model_where = model ? tn_key_where(ini, model, tn_section_key(model, "loss")) : ini->path;
  TN_TRY(read_plain(env, ini, &run_table, &s->run));
  TN_TRY(read_plain(env, ini, &backend_table, &s->backend));
  TN_TRY(read_plain(env, ini, &weights_table, &s->weights));
  TN_TRY(read_choosing(env, registry, ini, &optimizer));
  TN_TRY(read_choosing(env, registry, ini, &schedule));
  TN_TRY(read_choosing(env, registry, ini, &precision));
  s->optimizer_kind = (const tn_optimizer *)optimizer.item;
  s->optimizer_options = optimizer.options;
  s->schedule_kind = (const tn_schedule *)schedule.item;
  s->schedule_options = schedule.options;
  s->precision = (const tn_precision *)precision.item;
  s->precision_options = precision.options;
  TN_TRY(read_groups(env, ini, s));
  TN_TRY(read_split(env, registry, ini, "data.train", &s->data[TN_SPLIT_TRAIN]));
  return read_split(env, registry, ini, "data.valid", &s->data[TN_SPLIT_VALID]);
}

/* Whether [plugins] names a plugin that may be absent, and is. */
static bool lacks_plugin(tn_ini *ini) {
  const tn_section *section = tn_ini_section(ini, "plugins");
  const tn_key *key = section ? tn_section_key(section, "load") : NULL;
  tn_words words;
  if (!key || tn_words_split(&ini->arena, key->value, &words) != TN_OK) return false;
  for (int32_t i = 0; i < words.n; i++) {
    char *name = (char *)(uintptr_t)words.v[i];
    size_t length = strlen(name);
    if (name[length - 1] != '?') continue;
    name[length - 1] = '\0';
    if (!tn_file_exists(name)) return true;
  }
  return false;
}

static void mark_used(tn_section *section) {
  section->used = true;
  for (int32_t k = 0; k < section->n_keys; k++) section->keys[k].used = true;
}

/* [observer.NAME] and [backend.NAME] of an item that this run does not open: it must exist, and take
 * these options, all the same. */
static tn_status check_item_section(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                    const char *kind, uint32_t number) {
  const tn_item *item = NULL;
  const void *options;
  const char *where = tn_key_where(ini, section, NULL);
  tn_status status = tn_settings_find(env, registry, number, section->name + strlen(kind) + 1, &item);
  if (status == TN_OK) return tn_settings_item(env, ini, kind, item, &options);
  if (status != TN_EINVAL || !lacks_plugin(ini))
    return tn_wrap(env, status, "%s: [%s]", where, section->name);
  tn_logf(env, TN_LOG_WARN, "%s: [%s] is not read: a plugin that may be absent is", where, section->name);
  mark_used(section);
  return TN_OK;
}

/* An unused block is a loose end, not a mistake. */
static tn_status look_at_unused(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section) {
  if (tn_text_starts(section->name, "backend."))
    return check_item_section(env, registry, ini, section, "backend", TN_BACKEND);
  if (tn_text_starts(section->name, "observer."))
    return check_item_section(env, registry, ini, section, "observer", TN_OBSERVER);
  if (!tn_text_starts(section->name, "block ")) return TN_OK;
  tn_logf(env, TN_LOG_WARN, "%s: [%s] is not used", tn_key_where(ini, section, NULL), section->name);
  mark_used(section);
  return TN_OK;
}

tn_status tn_settings_check_sections(tn_env *env, tn_registry *registry, tn_ini *ini) {
  const tn_schema_section known[] = {
#define KNOWN(pattern, table)                                                                                \
  {                                                                                                          \
    pattern, (const tn_item *const[]) { &table, NULL }                                                       \
  }
      KNOWN("run", run_table),
      KNOWN("backend", backend_table),
      KNOWN("data", data_table),
      KNOWN("data.train", data_table),
      KNOWN("data.valid", data_table),
      KNOWN("optimizer", optimizer_table),
      KNOWN("schedule", schedule_table),
      KNOWN("weights", weights_table),
      KNOWN("precision", precision_table),
      KNOWN("plugins", plugins_table),
      KNOWN("group.*", group_table),
      KNOWN("model", model_table),
      KNOWN("block *", block_table),
      {"backend.*", NULL},
      {"observer.*", NULL}};
#undef KNOWN
  for (int32_t i = 0; i < ini->n_sections; i++)
    if (!ini->sections[i].used) TN_TRY(look_at_unused(env, registry, ini, &ini->sections[i]));
  return tn_schema_check(env, ini, known, sizeof known / sizeof *known);
}
