/* The configuration that process 0 sends, beside that of this process. Up to a line "====" the input is the
 * own configuration, behind it the other; without such a line both are the same. */
#include "core/distributed/ranks/compare_settings.h"
#include "tests/fuzz/fuzz.h"

/* An own configuration has been parsed and printed. */
static char *print_own(fuzz *f, const char *text) {
  tn_ini ini;
  tn_text printed = tn_text_new(f);
  tn_status status = tn_ini_parse(f, text, "own.ini", "/nowhere", &ini);
  if (status == TN_OK) {
    tn_text_add(&printed, "");
    status = tn_ini_print(f, &ini, &printed);
    tn_ini_free(&ini);
  }
  if (status == TN_OK) return tn_text_take(&printed);
  tn_text_free(&printed);
  return NULL;
}

static void judge(fuzz *f, const char *own, const char *theirs) {
  tn_run run = {.ini = {.path = "own.ini", .folder = "/nowhere"}};
  tn_error_record_init(&run.env, &run.record, &f->env);
  run.arena = tn_arena_new(&run.env);
  tn_status status = tn_settings_judge(&run, own, theirs);
  fuzz_expect(status == TN_OK || tn_error_text(&run.env)[0] != '\0', "a failure without a message");
  fuzz_expect(status != TN_EINTERNAL, tn_error_text(&run.env));
  if (tn_text_equal(own, theirs))
    fuzz_expect(status == TN_OK || status == TN_ENOMEM, "a configuration differs from itself");
  tn_arena_free(&run.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char line[] = "\n====\n";
  fuzz f;
  char *text = fuzz_text(bytes, size), *theirs = strstr(text, line);
  if (theirs != NULL) {
    *theirs = '\0';
    theirs += strlen(line);
  }
  fuzz_open(&f);
  char *own = print_own(&f, text);
  tn_error_clear(&f.env);
  if (own != NULL) judge(&f, own, theirs != NULL ? theirs : own);
  tn_release(&f, own);
  fuzz_close(&f);
  free(text);
  return 0;
}
