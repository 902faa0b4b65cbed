/* plugins/sources/paths.c: see paths.h. Braces are expanded as bash does. */
#include "plugins/sources/paths.h"

#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE_MOST_PATHS = 1 << 20 };

typedef struct paths_search {
  const tn_env *env;
  const char *option;
  source_paths *paths;
} paths_search;

void source_paths_free(const void *handle, source_paths *paths) {
  for (int64_t i = 0; i < paths->n; i++) tn_delete(handle, paths->v[i]);
  tn_delete(handle, paths->v);
  *paths = (source_paths){0};
}

static tn_status paths_add(const paths_search *s, const char *path) {
  source_paths *p = s->paths;
  size_t bytes = strlen(path) + 1;
  if (p->n == SOURCE_MOST_PATHS)
    return tn_fail(s->env, TN_EINVAL, s->option, "%s: more than %d files, expected at most so many",
                   s->option, SOURCE_MOST_PATHS);
  if (p->n == p->room) {
    int64_t room = 2 * p->room + 64;
    char **larger = tn_new(s->env, (size_t)room * sizeof *larger);
    if (larger == NULL) return TN_ENOMEM;
    if (p->n > 0) memcpy(larger, p->v, (size_t)p->n * sizeof *larger);
    tn_delete(s->env, p->v);
    p->v = larger;
    p->room = room;
  }
  p->v[p->n] = tn_new(s->env, bytes);
  if (p->v[p->n] == NULL) return TN_ENOMEM;
  memcpy(p->v[p->n++], path, bytes);
  return TN_OK;
}

static tn_status paths_match(const paths_search *s, const char *pattern) {
  glob_t found = {0};
  if (strpbrk(pattern, "*?[") == NULL) return paths_add(s, pattern);
  int code = glob(pattern, 0, NULL, &found);
  tn_status status = TN_OK;
  if (code == GLOB_NOSPACE)
    status = tn_fail(s->env, TN_ENOMEM, NULL, "%s: no memory for the files of %s", s->option, pattern);
  else if (code == GLOB_ABORTED)
    status = tn_fail(s->env, TN_EIO, s->option, "%s: a folder of %s cannot be read", s->option, pattern);
  else if (code != 0)
    status = tn_fail(s->env, TN_EINVAL, s->option, "%s: no file is called %s", s->option, pattern);
  for (size_t i = 0; status == TN_OK && code == 0 && i < found.gl_pathc; i++)
    status = paths_add(s, found.gl_pathv[i]);
  globfree(&found);
  return status;
}

static tn_status paths_expand(const paths_search *s, const char *text);

/* Puts `middle` between the text before and behind the braces, and goes on with the braces that are left. */
static tn_status paths_expand_with(const paths_search *s, const char *text, size_t before, const char *middle,
                                   size_t n, const char *behind) {
  char path[PATH_MAX];
  int written = snprintf(path, PATH_MAX, "%.*s%.*s%s", (int)before, text, (int)n, middle, behind);
  if (written >= 0 && written < PATH_MAX) return paths_expand(s, path);
  return tn_fail(s->env, TN_EINVAL, s->option, "%s: the path %.80s is too long", s->option, text);
}

/* "000..146": as many digits as the first number has. */
static tn_status paths_expand_range(const paths_search *s, const char *text, size_t before,
                                    const char *behind, int32_t *is_range) {
  const char *at = text + before + 1;
  char *middle, *end, number[32];
  long long first = strtoll(at, &middle, 10), last;
  *is_range =
      isdigit((unsigned char)*at) && strncmp(middle, "..", 2) == 0 && isdigit((unsigned char)middle[2]);
  if (!*is_range) return TN_OK;
  last = strtoll(middle + 2, &end, 10);
  if (end + 1 != behind || last < first || last - first >= SOURCE_MOST_PATHS || middle - at > 18)
    return tn_fail(s->env, TN_EINVAL, s->option, "%s: the range %.*s of files, expected {FIRST..LAST}",
                   s->option, (int)(behind - text) - (int)before, text + before);
  for (long long i = first; i <= last; i++) {
    int n = snprintf(number, sizeof number, "%0*lld", (int)(middle - at), i);
    TN_TRY(paths_expand_with(s, text, before, number, (size_t)n, behind));
  }
  return TN_OK;
}

static tn_status paths_expand(const paths_search *s, const char *text) {
  const char *open = strchr(text, '{'), *close = open != NULL ? strchr(open, '}') : NULL;
  int32_t is_range;
  if (close == NULL) return paths_match(s, text);
  size_t before = (size_t)(open - text);
  tn_status status = paths_expand_range(s, text, before, close + 1, &is_range);
  if (status != TN_OK || is_range) return status;
  for (const char *at = open + 1; at <= close;) {
    size_t n = strcspn(at, ",}");
    TN_TRY(paths_expand_with(s, text, before, at, n, close + 1));
    at += n + 1;
  }
  return TN_OK;
}

tn_status source_paths_find(const tn_env *env, const char *option, const char *pattern, source_paths *paths) {
  return paths_expand(&(paths_search){env, option, paths}, pattern);
}
