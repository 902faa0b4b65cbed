/* The machine: instruction sets from made-up files, the time, the names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/system/host.h"

static void reads(const char *text, const char *sets) {
  char path[] = "/tmp/tenon-cpuinfo-XXXXXX", found[TN_HOST_TEXT];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  FILE *file = fdopen(fd, "w");
  fputs(text, file);
  fclose(file);
  tn_host_instructions(path, found);
  remove(path);
  assert_string_equal(found, sets);
}

static void instruction_sets_are_read_from_cpuinfo(void **state) {
  (void)state;
  reads("processor : 0\nflags\t\t: fpu sse4_2 avx avx2x fma avx512f amx_tile\nbugs : avx2\n",
        "sse4_2 avx fma avx512f amx_tile");
  reads("processor : 0\nFeatures : fp asimd asimddp sve2\n", "asimd asimddp sve2");
  reads("processor : 0\n", "");
}

static void a_missing_file_has_none(void **state) {
  char found[TN_HOST_TEXT] = "x";
  (void)state;
  tn_host_instructions("/nowhere/cpuinfo", found);
  assert_string_equal(found, "");
}

static void the_time_is_utc_and_the_machine_has_names(void **state) {
  char text[TN_HOST_TEXT];
  int parts[6];
  char end;
  (void)state;
  tn_host_time(text);
  assert_int_equal(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%c", &parts[0], &parts[1], &parts[2], &parts[3],
                          &parts[4], &parts[5], &end),
                   7);
  assert_true(parts[0] >= 2024 && end == 'Z' && strlen(text) == 20);
  tn_host_system(text);
  assert_true(*text != '\0');
  tn_host_name(text);
  assert_true(strlen(text) < TN_HOST_TEXT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(instruction_sets_are_read_from_cpuinfo),
      cmocka_unit_test(a_missing_file_has_none),
      cmocka_unit_test(the_time_is_utc_and_the_machine_has_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
