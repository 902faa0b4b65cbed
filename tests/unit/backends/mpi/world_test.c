/* The states of MPI in which the communicator finds a process. */
#include "tests/unit/backends/mpi/rig.h"

enum { SINGLE, FUNNELED, SERIALIZED, MULTIPLE }; /* the order of MPI_THREAD_SINGLE ... */

static const int levels[] = {0, 1, 2, 3};

static void refused(const char *why) {
  void *communicator;
  RIG_CHECK(rig_open(&communicator) == TN_EUNSUPPORTED);
  RIG_CHECK(communicator == NULL);
  RIG_CHECK(strstr(rig_text, why) != NULL);
}

static void ended_body(void) {
  fake = (fake_mpi){.ranks = 2, .level = levels[MULTIPLE], .initialized = true, .finalized = true};
  refused("MPI has been ended in this process, and cannot be begun again");
  RIG_CHECK(fake.inits == 0 && fake.calls == 0);
}

static void mpi_that_was_ended_is_not_used(void **state) {
  (void)state;
  rig_run(ended_body);
}

/* The second time as well. */
static void single_body(void) {
  fake = (fake_mpi){.ranks = 2, .level = levels[SINGLE]};
  for (int i = 0; i < 2; i++) refused("allows one thread alone in a process (MPI_THREAD_SINGLE)");
  RIG_CHECK(fake.inits == 1);
}

static void mpi_without_threads_is_refused(void **state) {
  (void)state;
  rig_run(single_body);
}

static void opens(void) {
  void *communicator;
  RIG_CHECK(rig_open(&communicator) == TN_OK);
  rig_kind->close(&rig_env, communicator);
}

static void funneled_body(void) {
  fake = (fake_mpi){.ranks = 2, .level = levels[FUNNELED]};
  opens();
  RIG_CHECK(fake.inits == 1);
}

static void one_thread_that_calls_mpi_is_enough(void **state) {
  (void)state;
  rig_run(funneled_body);
}

static void other_body(void) {
  fake = (fake_mpi){.ranks = 2, .level = levels[SERIALIZED], .initialized = true};
  refused("the program has begun MPI without MPI_THREAD_MULTIPLE");
  fake.level = levels[MULTIPLE];
  opens();
  RIG_CHECK(fake.inits == 0);
}

static void mpi_of_the_program_needs_all_threads(void **state) {
  (void)state;
  rig_run(other_body);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mpi_that_was_ended_is_not_used),
      cmocka_unit_test(mpi_without_threads_is_refused),
      cmocka_unit_test(one_thread_that_calls_mpi_is_enough),
      cmocka_unit_test(mpi_of_the_program_needs_all_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
