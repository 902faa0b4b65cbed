/* Clock, processors, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "core/base/system/system.h"

static void the_clock_never_goes_back(void **state) {
  (void)state;
  double last = tn_clock_s();
  for (int i = 0; i < 1000; i++) {
    double now = tn_clock_s();
    assert_true(now >= last);
    last = now;
  }
}

static void there_is_a_processor(void **state) {
  (void)state;
  assert_in_range(tn_cpu_count(), 1, 1 << 16);
}

static void some_memory_is_available_but_not_more_than_there_is(void **state) {
  (void)state;
  int64_t page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
  assert_true(tn_memory_total() > 0 && tn_memory_total() <= page * pages);
  int64_t available = tn_memory_available();
  assert_true(available > 0 && available <= tn_memory_total());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_clock_never_goes_back),
      cmocka_unit_test(there_is_a_processor),
      cmocka_unit_test(some_memory_is_available_but_not_more_than_there_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
