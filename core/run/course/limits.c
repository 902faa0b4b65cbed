/* core/run/course/limits.c: the epochs that [run] limit_train, limit_valid and overfit shorten. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/section_tables.h"

/* A number without a point counts batches, any other is a part. */
static bool limit_parse(const char *text, tn_epoch_limit *limit) {
  char *end;
  *limit = (tn_epoch_limit){0, 0};
  if (*text == '\0' || text[strspn(text, "0123456789.eE+-")] != '\0') return false;
  errno = 0;
  if (text[strspn(text, "0123456789")] == '\0') {
    limit->batches = strtoll(text, &end, 10);
    return errno == 0 && limit->batches >= 1;
  }
  limit->part = strtod(text, &end);
  return errno == 0 && *end == '\0' && limit->part > 0 && limit->part <= 1;
}

static tn_status limit_read(tn_env *env, tn_ini *ini, const char *key, const char *text,
                            tn_epoch_limit *limit) {
  if (text == NULL || limit_parse(text, limit)) return TN_OK; /* NULL: [run] could not be read */
  return tn_failf(env, TN_EINVAL,
                  "%s: [run] %s = %s, expected a number of batches from 1 on, or a part of an epoch with a "
                  "point, above 0 and up to 1.0",
                  tn_settings_where(ini, "run", key), key, text);
}

static tn_status limit_check_overfit(tn_env *env, tn_ini *ini, const tn_settings *s) {
  int64_t n = s->run.overfit, accumulate = s->optimizer.accumulate;
  if (n == 0 || accumulate < 1 || n % accumulate == 0) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [run] overfit = %lld batches with [optimizer] accumulate = %lld, expected a multiple "
                  "of it, since an update has so many batches",
                  tn_settings_where(ini, "run", "overfit"), (long long)n, (long long)accumulate);
}

tn_status tn_settings_read_limits(tn_env *env, tn_ini *ini, tn_settings *s) {
  tn_epoch_limit *limit = s->limit;
  TN_TRY(
      tn_ini_note(env, ini, limit_read(env, ini, "limit_train", s->run.limit_train, &limit[TN_SPLIT_TRAIN])));
  TN_TRY(
      tn_ini_note(env, ini, limit_read(env, ini, "limit_valid", s->run.limit_valid, &limit[TN_SPLIT_VALID])));
  return tn_ini_note(env, ini, limit_check_overfit(env, ini, s));
}
