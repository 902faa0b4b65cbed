/* core/conformance/results/filter.c: reads the filter and the list of unsupported ops. */
#include <stdlib.h>
#include <string.h>

#include "core/conformance/results/results.h"

/* ---- the filter ---- */

static tn_status wrong_filter(tn_suite *suite, const char *part) {
  return tn_failf(suite->env, TN_EINVAL,
                  "'%s' in '%s': expected OP, OP/DTYPE, OP/DTYPE/DRAW or OP/DTYPE/DRAW/gradient, as in "
                  "matmul/f32/3",
                  part, suite->options->only);
}

static bool filter_read_dtype(tn_suite *suite, const char *word) {
  for (int32_t dtype = TN_U8; dtype < TN_DTYPES; dtype++)
    if (strcmp(word, tn_dtype_name(dtype)) == 0) {
      suite->filter.dtype = dtype;
      return true;
    }
  return false;
}

/* A case of the device, "device/copy", or a check of an item, "source:rings/workers". */
static bool filter_read_check(tn_suite_filter *f, const char *word) {
  size_t n = strlen(f->op);
  if (strcmp(f->op, "device") != 0 && strchr(f->op, ':') == NULL) return false;
  if (n + strlen(word) + 2 > sizeof f->op) return false;
  f->op[n] = '/';
  memcpy(f->op + n + 1, word, strlen(word) + 1);
  return true;
}

static tn_status filter_read_draw(tn_suite *suite, const char *word) {
  char *end;
  long long draw = strtoll(word, &end, 10);
  if (*word == '\0' || *end != '\0' || draw < 0) return wrong_filter(suite, word);
  suite->filter.draw = draw;
  suite->filter.gradient = 0;
  return TN_OK;
}

static tn_status filter_read_part(tn_suite *suite, int32_t position, const char *word) {
  tn_suite_filter *f = &suite->filter;
  if (position == 0 && *word != '\0' && strlen(word) < sizeof f->op) {
    memcpy(f->op, word, strlen(word) + 1);
    return TN_OK;
  }
  if (position == 1 && (filter_read_dtype(suite, word) || filter_read_check(f, word))) return TN_OK;
  if (position == 2) return filter_read_draw(suite, word);
  if (position == 3 && strcmp(word, "gradient") == 0) {
    f->gradient = 1;
    return TN_OK;
  }
  return wrong_filter(suite, word);
}

tn_status tn_suite_read_filter(tn_suite *suite) {
  suite->filter = (tn_suite_filter){"", TN_ANY, -1, -1};
  if (suite->options->only == NULL) return TN_OK;
  char *rest = tn_arena_strdup(&suite->arena, suite->options->only);
  int32_t position = 0;
  if (rest == NULL) return TN_ENOMEM;
  for (char *word; (word = strsep(&rest, "/")) != NULL; position++)
    TN_TRY(filter_read_part(suite, position, word));
  return TN_OK;
}

bool tn_suite_selects(const tn_suite *suite, const tn_trial *t) {
  const tn_suite_filter *f = &suite->filter;
  if (f->op[0] != '\0' && strcmp(f->op, t->c->op) != 0) return false;
  if (f->dtype != TN_ANY && f->dtype != t->dtype) return false;
  return f->gradient < 0 || (f->gradient == 1) == t->gradient;
}

bool tn_suite_selects_check(const tn_suite *suite, const char *item, const char *name) {
  const tn_suite_filter *f = &suite->filter;
  if (f->dtype != TN_ANY) return false;
  return f->op[0] == '\0' || strcmp(f->op, item) == 0 || strcmp(f->op, name) == 0;
}

bool tn_suite_is_partial(const tn_suite *suite) {
  return suite->filter.op[0] != '\0' || suite->options->after != NULL || suite->options->quick != 0;
}

/* ---- the list of unsupported ops ---- */

/* "matmul/f64: no double precision" */
static tn_status read_known_line(tn_suite *suite, char *line, int32_t number) {
  tn_suite_known known = {.line = tn_arena_strdup(&suite->arena, line)};
  char *colon = strchr(line, ':'), *slash = strchr(line, '/');
  if (known.line == NULL) return TN_ENOMEM;
  if (colon == NULL || slash == NULL || slash > colon || *tn_text_trim(colon + 1) == '\0')
    return tn_failf(suite->env, TN_EINVAL, "line %d of the unsupported ops, '%s': expected OP/DTYPE: reason",
                    number, line);
  *colon = *slash = '\0';
  known.op = tn_text_trim(line);
  known.dtype = tn_text_trim(slash + 1);
  return tn_vec_push(suite->env, &suite->known, known);
}

tn_status tn_suite_read_known(tn_suite *suite) {
  if (suite->options->unsupported == NULL) return TN_OK;
  char *rest = tn_arena_strdup(&suite->arena, suite->options->unsupported);
  int32_t number = 1;
  if (rest == NULL) return TN_ENOMEM;
  for (char *line; (line = strsep(&rest, "\n")) != NULL; number++) {
    line[strcspn(line, "#\r")] = '\0';
    line = tn_text_trim(line);
    if (*line != '\0') TN_TRY(read_known_line(suite, line, number));
  }
  return TN_OK;
}
