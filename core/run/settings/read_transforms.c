/* core/run/settings/read_transforms.c: the list of [data] transforms. A transform may have others among its
 * options, which are read by the same functions. */
#include <string.h>

#include "core/config/language/syntax.h"
#include "core/config/options/options.h"
#include "core/run/settings/settings.h"

static const char *settings_line_where(tn_ini *ini, const tn_line *line) {
  return line->line > 0 ? tn_arena_printf(&ini->arena, "%s:%d", line->file, line->line) : line->file;
}

/* The items and the file that arguments of a transform are read with. */
typedef struct transform_reading {
  tn_env *env;
  tn_registry *registry;
  tn_ini *ini;
} transform_reading;

static tn_status settings_read_call(const transform_reading *r, const char *name, const tn_call_arg *args,
                                    int32_t n_args, tn_transform_part *part);

/* "[random_flip, color_jitter(0.4)]", or one of them without the bracket. */
static tn_status settings_read_parts(const transform_reading *r, tn_options *options, const char *name,
                                     tn_expr *expr) {
  bool list = expr->kind == TN_EXPR_LIST;
  int32_t n = list ? expr->n_items : 1;
  tn_transform_part *parts = tn_arena_alloc(&r->ini->arena, tn_size_mul((size_t)n + 1, sizeof *parts));
  if (parts == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    const tn_expr *item = list ? expr->items[i] : expr;
    if (item->kind != TN_EXPR_WORD && item->kind != TN_EXPR_CALL)
      return tn_failf(
          r->env, TN_EINVAL,
          "%s: entry %d is no transform, expected a list such as [random_flip, color_jitter(0.4)]", name,
          (int)i + 1);
    TN_TRY(settings_read_call(r, item->word, item->args, item->n_args, &parts[i]));
  }
  return tn_options_set_transforms(r->env, options, name, &(tn_transforms){n, parts});
}

static tn_status settings_read_argument(const transform_reading *r, tn_options *options,
                                        const tn_option *option, const char *name, tn_expr *expr) {
  static const tn_scope nothing;
  tn_value value;
  if (option != NULL && option->type == TN_OPT_TRANSFORMS) return settings_read_parts(r, options, name, expr);
  TN_TRY(tn_expr_evaluate(r->env, &r->ini->arena, expr, &nothing, &value));
  const char *text = tn_value_text(&r->ini->arena, &value);
  return text != NULL ? tn_options_set_text(r->env, options, name, text) : TN_ENOMEM;
}

/* `color_jitter(0.4)`: the transform and its options. */
static tn_status settings_read_call(const transform_reading *r, const char *name, const tn_call_arg *args,
                                    int32_t n_args, tn_transform_part *part) {
  const tn_item *item = NULL;
  tn_options options;
  TN_TRY(tn_settings_find_item(r->env, r->registry, TN_TRANSFORM, name, &item));
  TN_TRY(tn_options_start(r->env, &r->ini->arena, item, &options));
  for (int32_t i = 0; i < n_args; i++) {
    const tn_option *option =
        args[i].name != NULL ? tn_options_find(item, args[i].name) : tn_options_at(item, i);
    const char *key = args[i].name != NULL ? args[i].name : option != NULL ? option->name : NULL;
    if (key == NULL) return tn_failf(r->env, TN_EINVAL, "%s: argument %d is one too many", name, i + 1);
    tn_status status = settings_read_argument(r, &options, option, key, args[i].value);
    if (status != TN_OK) return tn_wrap(r->env, status, "%s", name);
  }
  *part = (tn_transform_part){(const tn_transform *)item, options.data};
  return tn_wrap(r->env, tn_options_finish(r->env, &options), "%s", name);
}

/* A transform of a line, with the names after `<-`, in the ini's arena. */
static tn_status settings_read_transform(const transform_reading *r, const tn_line *line,
                                         const tn_item_call *call, tn_transform_use *use) {
  tn_transform_part part;
  if (call->layer == NULL || call->repeat || line->condition || line->n_names > 0)
    return tn_failf(r->env, TN_EINVAL, "expected a transform, as in `random_flip(0.5) <- image`");
  TN_TRY(settings_read_call(r, call->layer, call->args, call->n_args, &part));
  *use = (tn_transform_use){part.transform, part.options, line->n_refs ? line->refs : NULL, line->n_refs,
                            settings_line_where(r->ini, line)};
  return use->where ? TN_OK : TN_ENOMEM;
}

tn_status tn_settings_read_transforms(tn_env *env, tn_registry *registry, tn_ini *ini, tn_section *section,
                                      tn_key *key, tn_data_setting *data) {
  const transform_reading reading = {env, registry, ini};
  tn_line *lines;
  int32_t n, items = 0;
  if (key == NULL || *key->value == '\0') return TN_OK;
  TN_TRY(tn_syntax_lines(env, &ini->arena, key, ini, &lines, &n));
  for (int32_t i = 0; i < n; i++) items += lines[i].n_items;
  data->transforms = tn_arena_alloc(&ini->arena, tn_size_mul((size_t)items + 1, sizeof *data->transforms));
  if (data->transforms == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    if (lines[i].value != NULL)
      TN_TRY(tn_ini_note(env, ini,
                         tn_failf(env, TN_EINVAL,
                                  "%s: [%s] transforms: '=' stands behind '%s', expected a transform, as in "
                                  "`random_flip(0.5) <- image`",
                                  settings_line_where(ini, &lines[i]), section->name, lines[i].names[0])));
    for (int32_t k = 0; k < lines[i].n_items; k++) {
      tn_status status = settings_read_transform(&reading, &lines[i], &lines[i].items[k],
                                                 &data->transforms[data->n_transforms++]);
      if (status != TN_OK)
        tn_wrap(env, status, "%s: [%s] transforms", settings_line_where(ini, &lines[i]), section->name);
      TN_TRY(tn_ini_note(env, ini, status));
    }
  }
  return TN_OK;
}
