/* core/run/items/calls.c: items with their options as calls, `color_jitter(0.4)`: the list of [data]
 * transforms, and lists of transforms and schedules that others have among their options. */
#include <string.h>

#include "core/config/language/syntax.h"
#include "core/run/section_tables.h"

/* The two kinds of lists. */
static uint32_t calls_kind_of(const tn_option *option) {
  return option == NULL                      ? TN_OPT_NONE
         : option->type == TN_OPT_TRANSFORMS ? TN_TRANSFORM
         : option->type == TN_OPT_SCHEDULES  ? TN_SCHEDULE
                                             : TN_OPT_NONE;
}

static tn_status calls_refuse_entry(const tn_env *env, uint32_t kind, int32_t entry) {
  bool transforms = kind == TN_TRANSFORM;
  return tn_failf(env, TN_EINVAL, "entry %d is no %s, expected a list such as %s", (int)entry,
                  transforms ? "transform" : "schedule",
                  transforms ? "[random_flip, color_jitter(0.4)]" : "[linear(0.1, 1), cosine]");
}

static tn_status calls_set_transforms(const tn_call_reading *r, tn_options *options, const char *name,
                                      const tn_item_use *uses, int32_t n) {
  tn_transform_part *parts = tn_arena_alloc(&r->ini->arena, tn_size_mul((size_t)n + 1, sizeof *parts));
  if (parts == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++)
    parts[i] = (tn_transform_part){(const tn_transform *)uses[i].item, uses[i].options};
  return tn_options_set_transforms(r->env, options, name, &(tn_transforms){n, parts});
}

static tn_status calls_set_schedules(const tn_call_reading *r, tn_options *options, const char *name,
                                     const tn_item_use *uses, int32_t n) {
  tn_schedule_part *parts = tn_arena_alloc(&r->ini->arena, tn_size_mul((size_t)n + 1, sizeof *parts));
  if (parts == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++)
    parts[i] = (tn_schedule_part){(const tn_schedule *)uses[i].item, uses[i].options};
  return tn_options_set_schedules(r->env, options, name, &(tn_schedules){n, parts});
}

static tn_status calls_set_list(const tn_call_reading *r, uint32_t kind, tn_options *options,
                                const char *name, const tn_item_use *uses, int32_t n) {
  return kind == TN_TRANSFORM ? calls_set_transforms(r, options, name, uses, n)
                              : calls_set_schedules(r, options, name, uses, n);
}

/* "[random_flip, color_jitter(0.4)]", or one of them without the bracket. */
static tn_status calls_read_list(const tn_call_reading *r, uint32_t kind, tn_options *options,
                                 const char *name, tn_expr *expr) {
  bool list = expr->kind == TN_EXPR_LIST;
  int32_t n = list ? expr->n_items : 1;
  tn_item_use *uses = tn_arena_alloc(&r->ini->arena, tn_size_mul((size_t)n + 1, sizeof *uses));
  if (uses == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    const tn_expr *item = list ? expr->items[i] : expr;
    if (item->kind != TN_EXPR_WORD && item->kind != TN_EXPR_CALL)
      return tn_wrap(r->env, calls_refuse_entry(r->env, kind, i + 1), "%s", name);
    TN_TRY(tn_settings_read_call(r, kind, item->word, item->args, item->n_args, &uses[i]));
  }
  return calls_set_list(r, kind, options, name, uses, n);
}

static tn_status calls_read_argument(const tn_call_reading *r, tn_options *options, const tn_option *option,
                                     const char *name, tn_expr *expr) {
  static const tn_scope nothing;
  tn_value value;
  uint32_t kind = calls_kind_of(option);
  if (kind != TN_OPT_NONE) return calls_read_list(r, kind, options, name, expr);
  TN_TRY(tn_expr_evaluate(r->env, &r->ini->arena, expr, r->names != NULL ? r->names : &nothing, &value));
  const char *text = tn_value_text(&r->ini->arena, &value);
  return text != NULL ? tn_options_set_text(r->env, options, name, text) : TN_ENOMEM;
}

tn_status tn_settings_read_call(const tn_call_reading *r, uint32_t kind, const char *name,
                                const tn_call_arg *args, int32_t n_args, tn_item_use *use) {
  const tn_item *item = NULL;
  tn_options options;
  TN_TRY(tn_settings_find_item(r->env, r->registry, kind, name, &item));
  TN_TRY(tn_options_start(r->env, &r->ini->arena, item, &options));
  for (int32_t i = 0; i < n_args; i++) {
    const tn_option *option =
        args[i].name != NULL ? tn_options_find(item, args[i].name) : tn_options_at(item, i);
    const char *key = args[i].name != NULL ? args[i].name : option != NULL ? option->name : NULL;
    if (key == NULL) return tn_failf(r->env, TN_EINVAL, "%s: argument %d is one too many", name, i + 1);
    tn_status status = calls_read_argument(r, &options, option, key, args[i].value);
    if (status != TN_OK) return tn_wrap(r->env, status, "%s", name);
  }
  *use = (tn_item_use){item, options.data};
  return tn_wrap(r->env, tn_options_finish(r->env, &options), "%s", name);
}

/* The options of the item, some of them lists. */
static tn_status calls_read_key(const tn_call_reading *r, const tn_section *section, tn_key *key,
                                tn_options *options) {
  const tn_option *option = tn_options_find(options->item, key->name);
  uint32_t kind = calls_kind_of(option);
  tn_expr *expr;
  if (kind == TN_OPT_NONE) return TN_OK;
  key->used = true;
  tn_status status = tn_syntax_expr(r->env, &r->ini->arena, key->value, &expr);
  if (status == TN_OK) status = calls_read_list(r, kind, options, key->name, expr);
  if (status == TN_EINVAL) calls_set_list(r, kind, options, key->name, NULL, 0); /* given, though wrong */
  const char *where = tn_key_where(r->ini, section, key);
  bool names = status != TN_OK && tn_text_starts(tn_error_text(r->env), key->name);
  return tn_wrap(r->env, status, "%s: [%s]%s%s", where, section->name, names ? "" : " ",
                 names ? "" : key->name);
}

tn_status tn_settings_read_lists(const tn_call_reading *r, tn_section *section, tn_options *options) {
  for (int32_t i = 0; section != NULL && i < section->n_keys; i++) {
    tn_status status = calls_read_key(r, section, &section->keys[i], options);
    section->mistaken = section->mistaken || status == TN_EINVAL;
    TN_TRY(tn_ini_note(r->env, r->ini, status));
  }
  return TN_OK;
}

/* ---- [data] transforms ---- */

static const char *calls_line_where(tn_ini *ini, const tn_line *line) {
  return line->line > 0 ? tn_arena_printf(&ini->arena, "%s:%d", line->file, line->line) : line->file;
}

/* A transform of a line, with the names after `<-`, in the ini's arena. */
static tn_status calls_read_transform(const tn_call_reading *r, const tn_line *line, const tn_item_call *call,
                                      tn_transform_use *use) {
  tn_item_use part;
  if (call->layer == NULL || call->repeat || line->condition || line->n_names > 0)
    return tn_failf(r->env, TN_EINVAL, "expected a transform, as in `random_flip(0.5) <- image`");
  TN_TRY(tn_settings_read_call(r, TN_TRANSFORM, call->layer, call->args, call->n_args, &part));
  *use = (tn_transform_use){(const tn_transform *)part.item, part.options, line->n_refs ? line->refs : NULL,
                            line->n_refs, calls_line_where(r->ini, line)};
  return use->where ? TN_OK : TN_ENOMEM;
}

/* The transforms of all lines. Mistakes are noted. */
static tn_status calls_read_lines(const tn_call_reading *r, const tn_section *section, const tn_line *lines,
                                  int32_t n, tn_transform_use *uses) {
  int32_t count = 0;
  for (int32_t i = 0; i < n; i++) {
    if (lines[i].value != NULL)
      TN_TRY(tn_ini_note(r->env, r->ini,
                         tn_failf(r->env, TN_EINVAL,
                                  "%s: [%s] transforms: '=' stands behind '%s', expected a transform, as in "
                                  "`random_flip(0.5) <- image`",
                                  calls_line_where(r->ini, &lines[i]), section->name, lines[i].names[0])));
    for (int32_t k = 0; k < lines[i].n_items; k++) {
      tn_status status = calls_read_transform(r, &lines[i], &lines[i].items[k], &uses[count++]);
      if (status != TN_OK)
        tn_wrap(r->env, status, "%s: [%s] transforms", calls_line_where(r->ini, &lines[i]), section->name);
      TN_TRY(tn_ini_note(r->env, r->ini, status));
    }
  }
  return TN_OK;
}

/* Reads the calls with `size` as a name, whose value is one of [model] sizes; 0 without that key. */
static tn_status calls_read_sized(tn_call_reading r, const tn_section *section, const tn_line *lines,
                                  int32_t n, int64_t size, tn_transform_use *uses) {
  static const char *const name = "size";
  const tn_value value = {.kind = TN_VALUE_NUMBER, .number = (double)size, .is_integer = true};
  const tn_scope names = {.names = &name, .values = &value, .n = 1};
  if (size > 0) r.names = &names;
  return calls_read_lines(&r, section, lines, n, uses);
}

/* The largest size comes first: a mistake is told once, and then the others are left out. */
tn_status tn_settings_read_transforms(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                      tn_key *key, const tn_settings *s, tn_data_setting *data) {
  const tn_call_reading reading = {env, registry, ini, NULL};
  tn_line *lines;
  int32_t n, items = 0, sizes = s->sizes ? s->n_lengths : 0;
  if (key == NULL || *key->value == '\0') return TN_OK;
  TN_TRY(tn_syntax_lines(env, &ini->arena, key, ini, &lines, &n));
  for (int32_t i = 0; i < n; i++) items += lines[i].n_items;
  data->n_transforms = items;
  for (int32_t k = sizes > 0 ? sizes - 1 : 0, before = ini->mistakes.n; k >= 0 && ini->mistakes.n == before;
       k--) {
    tn_transform_use *uses = tn_arena_alloc(&ini->arena, tn_size_mul((size_t)items + 1, sizeof *uses));
    if (uses == NULL) return TN_ENOMEM;
    TN_TRY(calls_read_sized(reading, section, lines, n, sizes > 0 ? s->lengths[k] : 0, uses));
    if (k >= sizes - 1)
      data->transforms = uses;
    else
      data->sized[k] = uses;
  }
  return TN_OK;
}
