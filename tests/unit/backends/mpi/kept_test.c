/* The memory that MPI may still use after a failure is not freed: its requests cannot be ended, and a program
 * that has begun MPI itself may go on calling it. */
#include "tests/unit/backends/mpi/rig.h"

static void cards_body(void) {
  void *communicator;
  fake = (fake_mpi){.ranks = 2, .level = 3, .pending = "MPI_Iallgather"};
  RIG_CHECK(rig_open(&communicator) == TN_ECOMM);
  RIG_CHECK(strstr(rig_text, "did not come to the exchange of identities within 0.3 s") != NULL);
  RIG_CHECK(rig_holds(fake.sent));
  RIG_CHECK(rig_holds(fake.received));
}

static void identities_that_are_under_way_are_kept(void **state) {
  (void)state;
  rig_run(cards_body);
}

static void collective_body(void) {
  void *communicator;
  float data[4096] = {0};
  const tn_collective sum = {.struct_size = sizeof sum,
                             .kind = TN_ALL_REDUCE,
                             .dtype = TN_F32,
                             .count = 4096,
                             .from = data,
                             .to = data,
                             .name = "sum"};
  fake = (fake_mpi){.ranks = 2, .level = 3, .pending = "MPI_Ialltoallv"};
  RIG_CHECK(rig_open(&communicator) == TN_OK);
  RIG_CHECK(rig_kind->run(&rig_env, communicator, &sum, NULL) == TN_OK);
  RIG_CHECK(rig_kind->await(&rig_env, communicator, 1) == TN_ECOMM);
  rig_kind->close(&rig_env, communicator);
  RIG_CHECK(rig_holds(fake.heard));
  RIG_CHECK(rig_holds(fake.told));
}

static void messages_of_a_run_that_has_failed_are_kept(void **state) {
  (void)state;
  rig_run(collective_body);
}

static void good_body(void) {
  void *communicator;
  fake = (fake_mpi){.ranks = 2, .level = 3};
  RIG_CHECK(rig_open(&communicator) == TN_OK);
  RIG_CHECK(rig_holds(fake.heard));
  rig_kind->close(&rig_env, communicator);
  RIG_CHECK(!rig_holds(fake.heard));
}

static void a_run_that_has_ended_in_order_frees_its_memory(void **state) {
  (void)state;
  rig_run(good_body);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(identities_that_are_under_way_are_kept),
      cmocka_unit_test(messages_of_a_run_that_has_failed_are_kept),
      cmocka_unit_test(a_run_that_has_ended_in_order_frees_its_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
