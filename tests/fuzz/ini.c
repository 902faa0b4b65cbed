/* INI text: an accepted text prints as text that reads back to the same. */
#include "core/config/ini/ini.h"
#include "tests/fuzz/fuzz.h"

static void read_back(fuzz *f, const tn_ini *ini) {
  tn_text once = tn_text_new(f), twice = tn_text_new(f);
  tn_ini again;
  tn_status status = tn_ini_print(f, ini, &once);
  if (status == TN_OK && once.v) {
    status = tn_ini_parse(f, once.v, "printed.ini", "/nowhere", &again);
    fuzz_expect(status == TN_OK || status == TN_ENOMEM, tn_error_text(f));
    if (status == TN_OK) status = tn_ini_print(f, &again, &twice);
    if (status == TN_OK)
      fuzz_expect(tn_text_equal(once.v, twice.v), "printed text reads back to something else");
    tn_ini_free(&again);
  }
  tn_text_free(&once);
  tn_text_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  tn_ini ini;
  char *text = fuzz_text(bytes, size);
  fuzz_open(&f);
  tn_status status = tn_ini_parse(&f, text, "fuzz.ini", "/nowhere", &ini);
  fuzz_judge(&f, status);
  if (status == TN_OK) status = tn_ini_set(&f, &ini, text);
  fuzz_judge(&f, status);
  if (status == TN_OK) read_back(&f, &ini);
  tn_ini_free(&ini);
  fuzz_close(&f);
  free(text);
  return 0;
}
