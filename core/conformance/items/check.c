/* core/conformance/items/check.c: runs a check of an item and records its outcome. */
#include <stdarg.h>
#include <stdio.h>

#include "core/conformance/items/items.h"

void tn_check_fail(tn_check *check, const char *format, ...) {
  va_list args;
  if (check->wrong[0] != '\0') return;
  va_start(args, format);
  vsnprintf(check->wrong, sizeof check->wrong, format, args);
  va_end(args);
}

static tn_status check_record(tn_check *check, const char *name) {
  tn_suite *suite = check->suite;
  if (check->wrong[0] != '\0') {
    TN_TRY(tn_suite_fail(suite, name, check->wrong));
    return tn_suite_check_device(suite, name);
  }
  if (check->lacking[0] != '\0') return tn_suite_lack(suite, name, check->lacking);
  suite->passed++;
  return TN_OK;
}

tn_status tn_check_run(tn_suite *suite, const tn_entry *entry, const char *item, const char *name,
                       tn_status (*run)(tn_check *check)) {
  tn_check check = {.suite = suite, .entry = entry, .item = item};
  const char *whole = tn_arena_printf(&suite->arena, "%s/%s", item, name);
  if (whole == NULL) return TN_ENOMEM;
  if (!tn_suite_selects_check(suite, item, whole) || !tn_suite_begin(suite, whole)) return TN_OK;
  tn_status status = run(&check);
  if (status == TN_ENOMEM) return status;
  if (status == TN_EUNAVAILABLE || status == TN_EUNSUPPORTED)
    snprintf(check.lacking, sizeof check.lacking, "%s", tn_error_text(suite->env));
  else if (status != TN_OK)
    tn_check_fail(&check, "%s", tn_error_text(suite->env));
  tn_error_clear(suite->env);
  return check_record(&check, whole);
}
