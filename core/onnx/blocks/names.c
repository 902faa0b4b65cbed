/* core/onnx/blocks/names.c: see blocks.h. */
#include <ctype.h>
#include <string.h>

#include "core/onnx/blocks/blocks.h"
#include "core/plugin/registry.h"

/* ---- parts of names ---- */

const char *block_below(const char *path, const char *prefix) {
  size_t n = strlen(prefix);
  return n > 0 && block_is_within(path, prefix) && path[n] == '.' ? path + n + 1 : path;
}

/* "add" for "layer1.0.add_12". */
static const char *name_stem(const blocks *b, const char *name) {
  const char *dot = strrchr(name, '.'), *last = dot != NULL ? dot + 1 : name;
  size_t n = strlen(last);
  while (n > 0 && isdigit((unsigned char)last[n - 1])) n--;
  while (n > 0 && last[n - 1] == '_') n--;
  if (n > 7 && strncmp(last + n - 7, "_output", 7) == 0) n -= 7; /* torch.onnx calls values so */
  while (n > 0 && (isdigit((unsigned char)last[n - 1]) || last[n - 1] == '_')) n--;
  size_t from = n > 0 ? strspn(last, "_") : 0;
  char *stem = tn_arena_printf(b->arena, "%.*s", (int)(n - from), last + from);
  for (char *c = stem; c != NULL && *c != '\0'; c++) *c = (char)tolower((unsigned char)*c);
  return stem;
}

/* The name, or with a number behind it, so that the section has it once. Words that lines call are left out
 * where `apart`. */
static const char *name_take(block_context *c, const char *name, bool apart) {
  const blocks *b = c->b;
  const char *own = name;
  size_t n = name != NULL ? strlen(name) : 0;
  const char *link = n > 0 && isdigit((unsigned char)name[n - 1]) ? "_" : "";
  for (int32_t i = 2; own != NULL; i++) {
    bool taken = tn_name_index_find(&c->used, own) != TN_NAME_INDEX_NONE ||
                 (apart && tn_name_index_find(&c->words, own) != TN_NAME_INDEX_NONE);
    if (!taken) return tn_name_index_add(&c->used, own) == TN_OK ? own : NULL;
    own = tn_arena_printf(b->arena, "%s%s%d", name, link, i);
  }
  return NULL;
}

/* ---- blocks ---- */

/* "inverted_residual" of "InvertedResidual". */
static const char *name_snake(const blocks *b, const char *kind) {
  tn_text text = tn_text_new(b->env);
  for (const char *c = kind; *c != '\0'; c++) {
    bool upper = isupper((unsigned char)*c) && c > kind;
    bool starts = upper && (!isupper((unsigned char)c[-1]) || islower((unsigned char)c[1])) && c[-1] != '_';
    char low = (char)tolower((unsigned char)*c);
    tn_text_addf(&text, "%s%c", starts ? "_" : "", isalnum((unsigned char)low) ? low : '_');
  }
  const char *kept = text.v != NULL ? tn_arena_strdup(b->arena, text.v) : NULL;
  tn_text_free(&text);
  return kept;
}

/* The last part of a path that is no number: "layer" of "encoder.layer.0". */
static const char *name_of_path(const blocks *b, const char *path) {
  size_t end = strlen(path);
  while (end > 0) {
    size_t at = end;
    while (at > 0 && path[at - 1] != '.') at--;
    if (!isdigit((unsigned char)path[at])) {
      const char *part = tn_arena_printf(b->arena, "%.*s", (int)(end - at), path + at);
      const char *stem = part != NULL ? name_stem(b, part) : NULL;
      return stem == NULL || stem[0] != '\0' ? stem : "block";
    }
    end = at > 0 ? at - 1 : 0;
  }
  return "block";
}

/* Whether a word means a layer, an op, or another thing of the language. */
static bool name_is_known(const blocks *b, const char *name) {
  tn_registry *registry = b->m->registry;
  return onnx_is_taken(name) || strcmp(name, "scan") == 0 ||
         (registry != NULL &&
          (tn_registry_has(registry, TN_LAYER, name) || tn_registry_has(registry, TN_OP, name)));
}

/* "conv_bn_relu" for a convolution of a list, which has no name of its own; NULL: it is another group. */
static const char *name_of_calls(const blocks *b, const block_group *g) {
  static const char *const shorts[][2] = {
      {"conv1d", "conv"}, {"conv2d", "conv"}, {"conv3d", "conv"}, {"batch_norm", "bn"}, {"layer_norm", "ln"}};
  const char *name = "", *dot = strrchr(g->path, '.');
  if (g->end - g->first > 3 || dot == NULL || !isdigit((unsigned char)dot[1])) return NULL;
  if (!tn_text_starts(b->lines[g->first].line->call, "conv")) return NULL;
  for (int32_t i = g->first; i < g->end && name != NULL; i++) {
    const char *call = b->lines[i].line->call, *own = NULL;
    size_t n = strspn(call, "abcdefghijklmnopqrstuvwxyz0123456789_");
    for (size_t k = 0; k < sizeof shorts / sizeof *shorts; k++)
      if (strlen(shorts[k][0]) == n && strncmp(call, shorts[k][0], n) == 0) own = shorts[k][1];
    if (b->lines[i].line->computes || n == 0 || (call[n] != '\0' && call[n] != '(')) return NULL;
    name = own != NULL
               ? tn_arena_printf(b->arena, "%s%s%s", name, name[0] != '\0' ? "_" : "", own)
               : tn_arena_printf(b->arena, "%s%s%.*s", name, name[0] != '\0' ? "_" : "", (int)n, call);
  }
  return name;
}

static tn_status name_kind(blocks *b, block_kind *kind) {
  const char *path = b->groups.v[kind->group].path, *type = onnx_kind_of(b->m, path);
  bool known = type != NULL && isalpha((unsigned char)type[0]) && strcmp(type, "Sequential") != 0;
  const char *of_calls = known ? NULL : name_of_calls(b, &b->groups.v[kind->group]);
  const char *name = known ? name_snake(b, type) : of_calls != NULL ? of_calls : name_of_path(b, path);
  if (name != NULL && name_is_known(b, name)) name = tn_arena_printf(b->arena, "%s_block", name);
  const char *own = name;
  for (int32_t i = 2; own != NULL && tn_name_index_find(&b->block_names, own) != TN_NAME_INDEX_NONE; i++)
    own = tn_arena_printf(b->arena, "%s_%d", name, i);
  kind->name = own;
  return own != NULL ? tn_name_index_add(&b->block_names, own) : TN_ENOMEM;
}

/* ---- words that lines call ---- */

static tn_status name_add_word(block_context *c, const char *at, size_t n) {
  const char *word = tn_arena_printf(c->b->arena, "%.*s", (int)n, at);
  if (word == NULL) return TN_ENOMEM;
  if (tn_name_index_find(&c->words, word) != TN_NAME_INDEX_NONE) return TN_OK;
  return tn_name_index_add(&c->words, word);
}

/* The words of the section's lines, but for the names of options. */
static tn_status name_find_words(block_context *c) {
  const blocks *b = c->b;
  for (int32_t t = b->lines[c->first].first_token; t < b->lines[c->end - 1].end_token; t++) {
    const block_token *token = &b->tokens.v[t];
    for (int32_t i = 0; token->kind == BLOCK_TEXT && i < token->length;) {
      size_t n = onnx_name_length(token->at + i);
      if (n > 0 && token->at[i + (int32_t)n] != '=') TN_TRY(name_add_word(c, token->at + i, n));
      i += n > 0 ? (int32_t)n : 1;
    }
  }
  for (size_t i = 0; i < b->block_names.names.n; i++)
    TN_TRY(name_add_word(c, b->block_names.names.v[i], strlen(b->block_names.names.v[i])));
  return TN_OK;
}

/* ---- arguments ---- */

static const char *name_of_position(const char *call) {
  static const char *const names[][2] = {
      {"conv", "channels"},   {"linear", "width"},    {"embedding", "rows"},
      {"max_pool", "kernel"}, {"avg_pool", "kernel"}, {"split", "parts"},
      {"reshape", "size"},    {"param", "size"},      {"buffer", "size"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (tn_text_starts(call, names[i][0])) return names[i][1];
  return "n";
}

/* The option that a number is the value of, or is in: "kernel" in "kernel=[3, 5]". */
static const char *name_of_number(const blocks *b, const block_line *line, const block_token *token) {
  const char *start = line->line->call, *at = token->at;
  if (token->operand >= 0 || line->line->computes) return "factor";
  int32_t depth = 0;
  while (!token->hidden && at > start && (depth > 0 || (at[-1] != '=' && at[-1] != '('))) {
    depth += at[-1] == ']' || at[-1] == ')';
    depth -= depth > 0 && (at[-1] == '[' || at[-1] == '(');
    at--;
  }
  if (!token->hidden && (at == start || at[-1] == '(')) return name_of_position(start);
  const char *end = at - 1, *from = end;
  while ((token->hidden || from > start) && (isalnum((unsigned char)from[-1]) || from[-1] == '_')) from--;
  const char *name = tn_arena_printf(b->arena, "%.*s", (int)(end - from), from);
  if (name != NULL && strcmp(name, "dims") == 0) return "size";
  return name != NULL && strcmp(name, "axes") == 0 ? "axis" : name;
}

static tn_status name_args(block_context *c) {
  const blocks *b = c->b;
  for (int32_t a = 0; a < c->kind->n_args; a++) {
    int32_t number = b->lines[c->first].first_number + c->kind->args[a].number, line = c->first;
    while (line + 1 < c->end && b->lines[line + 1].first_number <= number) line++;
    const char *name = name_of_number(b, &b->lines[line], &b->tokens.v[b->numbers.v[number]]);
    c->kind->args[a].name = name_take(c, name != NULL && name[0] != '\0' ? name : "n", true);
    if (c->kind->args[a].name == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status name_inputs(block_context *c) {
  const blocks *b = c->b;
  if (c->group->n_inputs == 1) {
    c->kind->input_names[0] = "in";
    return TN_OK;
  }
  for (int32_t i = 0; i < c->group->n_inputs; i++) {
    int32_t input = c->kind->order[i];
    const char *stem = i == 0 ? "x" : name_stem(b, block_value_name(b, c->group->inputs[input]));
    const char *name = stem != NULL ? onnx_tidy(b->m, stem[0] != '\0' ? stem : "x") : NULL;
    c->kind->input_names[input] = name_take(c, name, true);
    if (c->kind->input_names[input] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* ---- lines ---- */

static const char **name_place(const block_context *c, const block_item *item, int32_t k) {
  return &c->local[block_value(c->b, block_result_of(c, item, k)) - c->b->lines[c->first].first_value];
}

static const char *name_path(const block_context *c, const block_item *item) {
  return item->group >= 0 ? c->b->groups.v[item->group].path : c->b->lines[item->line].names[0];
}

/* The name of a value without parameters of its own. In [model] it keeps that of the file. */
static const char *name_free(const block_context *c, const block_item *item, int32_t k) {
  const blocks *b = c->b;
  block_ref ref = block_result_of(c, item, k);
  const char *whole = item->group >= 0 && k == 0 ? b->groups.v[item->group].path : block_value_name(b, ref);
  if (c->group == NULL) return whole;
  const char *below = block_below(whole, c->group->path), *call = b->lines[ref.line].line->call;
  const char *dot = below != whole ? strrchr(below, '.') : NULL;
  if (dot != NULL && dot[1 + strspn(dot + 1, "0123456789")] == '\0') return below; /* of a list of modules */
  const char *stem = name_stem(b, below);
  if (stem != NULL && (stem[0] == '\0' || below == whole))
    stem =
        tn_arena_printf(b->arena, "%.*s", (int)strspn(call, "abcdefghijklmnopqrstuvwxyz0123456789_"), call);
  return stem != NULL ? onnx_tidy(b->m, stem[0] != '\0' ? stem : "y") : NULL;
}

static tn_status name_items(block_context *c, bool of_weights) {
  const char *prefix = c->group != NULL ? c->group->path : "";
  for (size_t i = 0; i < c->items.n; i++) {
    const block_item *item = &c->items.v[i];
    bool has = block_has_weights(c, item);
    for (int32_t k = 0; k < block_results_of(c, item); k++) {
      bool fixed = has && k == 0;
      if (fixed != of_weights) continue;
      const char *name =
          name_take(c, fixed ? block_below(name_path(c, item), prefix) : name_free(c, item, k), false);
      if (name == NULL) return TN_ENOMEM;
      *name_place(c, item, k) = name;
    }
  }
  return TN_OK;
}

tn_status block_name_section(block_context *c) {
  const onnx_import *m = c->b->m;
  for (size_t i = 0; c->group == NULL && i < m->inputs.n; i++)
    TN_TRY(tn_name_index_add(&c->used, m->inputs.v[i].name));
  TN_TRY(name_items(c, true));
  if (c->group != NULL) {
    TN_TRY(name_find_words(c));
    TN_TRY(name_inputs(c));
    TN_TRY(name_args(c));
  }
  return name_items(c, false);
}

tn_status block_name_kinds(blocks *b) {
  for (size_t i = 0; i < b->groups.n; i++) {
    int32_t kind = b->groups.v[i].kind;
    if (kind < 0 || !b->kinds.v[kind].chosen || b->kinds.v[kind].group != (int32_t)i) continue;
    TN_TRY(name_kind(b, &b->kinds.v[kind]));
  }
  return TN_OK;
}
