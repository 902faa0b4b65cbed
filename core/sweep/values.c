/* core/sweep/values.c: reads the values of a key, and draws from ranges. */
#include "core/sweep/values.h"

#include <math.h>
#include <string.h>

/* ---- lists ---- */

/* The length of the first value of a list: up to a comma or line end outside of brackets and quotes. */
static size_t values_length(const char *text) {
  int depth = 0;
  bool quoted = false;
  size_t n = 0;
  for (; text[n] != '\0'; n++) {
    char c = text[n];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (depth <= 0 && (c == ',' || c == '\n')) break;
  }
  return n;
}

/* Without blanks and quotes around it. */
static const char *values_word(tn_arena *arena, const char *text, size_t n) {
  char *word = tn_arena_printf(arena, "%.*s", (int)n, text);
  if (word == NULL) return NULL;
  word = tn_text_trim(word);
  size_t length = strlen(word);
  if (length < 2 || word[0] != '"' || strchr(word + 1, '"') != word + length - 1) return word;
  word[length - 1] = '\0';
  return word + 1;
}

static tn_status values_split(tn_arena *arena, const char *text, tn_words *list) {
  *list = (tn_words){0};
  for (size_t n; *text != '\0'; text += n + (text[n] != '\0')) {
    n = values_length(text);
    const char *word = values_word(arena, text, n);
    const char **grown = tn_arena_grow(arena, list->v, (size_t)list->n, sizeof *grown);
    if (word == NULL || grown == NULL) return TN_ENOMEM;
    list->v = grown;
    bool quoted = memchr(text, '"', n) != NULL; /* "" is an empty value */
    if (*word != '\0' || quoted) list->v[list->n++] = word;
  }
  return TN_OK;
}

/* ---- ranges ---- */

static const char LOG[] = "log ";

/* "A..B" with numbers on both sides. */
static bool values_parse_range(tn_arena *arena, const char *word, tn_sweep_values *v) {
  int64_t whole;
  v->log = tn_text_starts(word, LOG);
  if (v->log) word += strlen(LOG);
  const char *dots = strstr(word, "..");
  char *low = dots != NULL ? tn_arena_printf(arena, "%.*s", (int)(dots - word), word) : NULL,
       *high = dots != NULL ? tn_arena_strdup(arena, dots + 2) : NULL;
  if (low == NULL || high == NULL) return false;
  low = tn_text_trim(low);
  high = tn_text_trim(high);
  v->whole = tn_text_to_int(low, &whole) && tn_text_to_int(high, &whole);
  return tn_text_to_float(low, &v->low) && tn_text_to_float(high, &v->high);
}

static tn_status values_fail(tn_arena *arena, const tn_sweep_values *v, const char *word, const char *what) {
  return tn_failf(arena->handle, TN_EINVAL, "%s: %s = %s: %s", v->where, v->key, word, what);
}

static tn_status values_check_range(tn_arena *arena, const char *word, tn_sweep_values *v) {
  if (!isfinite(v->low) || !isfinite(v->high) || v->low >= v->high)
    return values_fail(arena, v, word, "expected a range LOW..HIGH with LOW below HIGH");
  if (v->log && v->low <= 0)
    return values_fail(arena, v, word, "expected a range above 0, since log draws from its logarithms");
  return TN_OK;
}

tn_status tn_sweep_values_read(tn_arena *arena, const char *where, const char *key, const char *text,
                               tn_sweep_values *v) {
  *v = (tn_sweep_values){.key = key, .where = where};
  TN_TRY(values_split(arena, text, &v->list));
  if (v->list.n == 0)
    return values_fail(arena, v, text, "expected a list of values, or a range such as log 1e-5..1e-2");
  for (int32_t i = 0; i < v->list.n; i++) {
    const char *word = v->list.v[i];
    if (!values_parse_range(arena, word, v)) {
      if (v->log) return values_fail(arena, v, word, "expected two numbers behind log, as log 1e-5..1e-2");
      continue;
    }
    if (v->list.n > 1)
      return values_fail(arena, v, word, "a range stands alone; give it, or a list of values");
    TN_TRY(values_check_range(arena, word, v));
    v->list.n = 0;
    return TN_OK;
  }
  return TN_OK;
}

const char *tn_sweep_values_at(const tn_sweep_values *v, int64_t i) { return v->list.v[i]; }

const char *tn_sweep_values_draw(tn_arena *arena, const tn_sweep_values *v, double u) {
  double high = v->whole ? v->high + 1 : v->high; /* HIGH itself is one of the whole numbers */
  double x = v->log ? v->low * pow(high / v->low, u) : v->low + (high - v->low) * u;
  if (v->whole) return tn_arena_printf(arena, "%.0f", fmin(floor(x), v->high));
  return tn_arena_printf(arena, "%.4g", x);
}
