#include "core/records/checkpoints/weights_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text/word_list.h"

enum { STARS = 8 }; /* the most in a pattern */

typedef struct weights_rule {
  const char *from, *to;
  int32_t used;
} weights_rule;

/* The text that a `*` stands for. */
typedef struct weights_capture {
  const char *start;
  size_t n;
} weights_capture;

/* ---- rules ---- */

static int32_t weights_count_stars(const char *pattern) {
  int32_t n = 0;
  for (; *pattern != '\0'; pattern++) n += *pattern == '*';
  return n;
}

static tn_status weights_read_rule(const void *handle, tn_arena *arena, const char *text,
                                   weights_rule *rule) {
  char *from = tn_arena_strdup(arena, text);
  if (from == NULL) return TN_ENOMEM;
  char *arrow = strstr(from, "->");
  if (arrow == NULL)
    return tn_failf(handle, TN_EINVAL, "[weights] rename: '%s' has no '->', expected OLD -> NEW", text);
  *arrow = '\0';
  *rule = (weights_rule){tn_text_trim(from), tn_text_trim(arrow + 2), 0};
  int32_t stars = weights_count_stars(rule->from);
  if (*rule->from == '\0' || *rule->to == '\0' || stars != weights_count_stars(rule->to))
    return tn_failf(handle, TN_EINVAL, "[weights] rename: '%s': expected two names with as many * in each",
                    text);
  if (stars <= STARS) return TN_OK;
  return tn_failf(handle, TN_EINVAL, "[weights] rename: '%s' has %d *, expected at most %d", text, (int)stars,
                  (int)STARS);
}

static tn_status weights_read_rules(const void *handle, tn_arena *arena, const char *text,
                                    weights_rule **rules, int32_t *n) {
  tn_words words;
  TN_TRY(tn_words_split(arena, text, &words));
  *n = words.n;
  *rules = tn_arena_alloc(arena, tn_size_mul((size_t)words.n + 1, sizeof **rules));
  if (*rules == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < words.n; i++) TN_TRY(weights_read_rule(handle, arena, words.v[i], &(*rules)[i]));
  return TN_OK;
}

/* ---- renaming ---- */

/* Whether the pattern matches the whole name, each `*` as little as possible. */
static bool weights_match(const char *pattern, const char *name, weights_capture *captures) {
  for (; *pattern != '*'; pattern++, name++) {
    if (*pattern != *name) return false;
    if (*pattern == '\0') return true;
  }
  for (captures->start = name, captures->n = 0;; captures->n++) {
    if (weights_match(pattern + 1, name + captures->n, captures + 1)) return true;
    if (name[captures->n] == '\0') return false;
  }
}

static const char *weights_rewrite(const void *handle, tn_arena *arena, const char *to,
                                   const weights_capture *captures) {
  tn_text text = tn_text_new(handle);
  for (; *to != '\0'; to++) {
    if (*to == '*') {
      tn_text_addn(&text, captures->start, captures->n);
      captures++;
    } else {
      tn_text_addn(&text, to, 1);
    }
  }
  const char *name = text.failed || text.v == NULL ? NULL : tn_arena_strdup(arena, text.v);
  tn_text_free(&text);
  return name;
}

/* The name of the model for a name of the file; NULL: out of memory. */
static const char *weights_rename(const void *handle, tn_arena *arena, weights_rule *rules, int32_t n,
                                  const char *name) {
  weights_capture captures[STARS + 1];
  for (int32_t i = 0; i < n; i++) {
    if (!weights_match(rules[i].from, name, captures)) continue;
    rules[i].used++;
    return weights_rewrite(handle, arena, rules[i].to, captures);
  }
  return name;
}

/* ---- the names of a file ---- */

static int weights_compare_names(const void *a, const void *b) {
  return strcmp(((const tn_named_tensor *)a)->name, ((const tn_named_tensor *)b)->name);
}

static tn_status weights_check_names(const void *handle, const char *path, const tn_weights_names *names,
                                     const weights_rule *rules, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (rules[i].used == 0)
      return tn_failf(handle, TN_EINVAL, "[weights] rename: '%s' matches no name of %s", rules[i].from, path);
  for (int32_t i = 1; i < names->n; i++)
    if (strcmp(names->v[i - 1].name, names->v[i].name) == 0)
      return tn_failf(handle, TN_EINVAL, "[weights] rename: '%s' and '%s' of %s both get the name '%s'",
                      names->v[i - 1].tensor->name, names->v[i].tensor->name, path, names->v[i].name);
  return TN_OK;
}

tn_status tn_weights_names_make(const void *handle, tn_arena *arena, const tn_safetensors *file,
                                const char *path, const char *prefix, const char *text,
                                tn_weights_names *names) {
  weights_rule *rules = NULL;
  int32_t n_rules = 0, n = tn_safetensors_count(file);
  TN_TRY(weights_read_rules(handle, arena, text, &rules, &n_rules));
  names->n = 0;
  names->v = tn_arena_alloc(arena, tn_size_mul((size_t)n + 1, sizeof *names->v));
  if (names->v == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    const tn_safetensor *tensor = tn_safetensors_at(file, i);
    if (!tn_text_starts(tensor->name, prefix)) continue;
    const char *name = weights_rename(handle, arena, rules, n_rules, tensor->name + strlen(prefix));
    if (name == NULL) return TN_ENOMEM;
    names->v[names->n++] = (tn_named_tensor){name, tensor};
  }
  qsort(names->v, (size_t)names->n, sizeof *names->v, weights_compare_names);
  return weights_check_names(handle, path, names, rules, n_rules);
}

const tn_safetensor *tn_weights_names_find(const tn_weights_names *names, const char *name) {
  tn_named_tensor key = {name, NULL};
  tn_named_tensor *found = bsearch(&key, names->v, (size_t)names->n, sizeof key, weights_compare_names);
  return found != NULL ? found->tensor : NULL;
}
