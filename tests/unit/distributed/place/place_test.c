/* The place of a process by the variables of launchers. */
/* cmocka.h needs these before itself */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/plugin/handles.h"
#include "core/distributed/place/place.h"

static tn_env env;
static tn_error_record record;
static tn_process_place place;

/* "NAME=value" of each variable; NULL ends them. */
static const char *look_up(void *context, const char *name) {
  const char *const *variables = context;
  size_t n = strlen(name);
  for (; *variables != NULL; variables++)
    if (strncmp(*variables, name, n) == 0 && (*variables)[n] == '=') return *variables + n + 1;
  return NULL;
}

static tn_status read_place(const char *const *variables) {
  tn_error_record_init_root(&env, &record, &tn_host_api);
  return tn_process_place_read(&env, look_up, (void *)variables, &place);
}

#define READ(...) read_place((const char *const[]){__VA_ARGS__, NULL})

static void expect(const char *launcher, int32_t process, int32_t processes, int32_t local, int32_t locals) {
  assert_non_null(place.launcher);
  assert_string_equal(place.launcher, launcher);
  assert_int_equal(place.process, process);
  assert_int_equal(place.processes, processes);
  assert_int_equal(place.local, local);
  assert_int_equal(place.locals, locals);
}

static void expect_error(tn_status status, const char *text) {
  assert_int_equal(status, TN_EINVAL);
  if (strstr(tn_error_text(&env), text) == NULL) fail_msg("%s", tn_error_text(&env));
}

/* ---- launchers ---- */

static void without_a_launcher_a_process_is_alone(void **state) {
  (void)state;
  assert_int_equal(READ("HOME=/root", "RANK=3", "PMI_RANK=1", "TENON_PROCESS=", "TENON_PROCESSES="), TN_OK);
  assert_null(place.launcher);
  assert_int_equal(place.process, 0);
  assert_int_equal(place.processes, 1);
  assert_int_equal(place.locals, 1);
}

static void tenon_launch_is_read_first(void **state) {
  (void)state;
  assert_int_equal(READ("TENON_PROCESS=5", "TENON_PROCESSES=6", "TENON_LOCAL_PROCESS=1",
                        "TENON_LOCAL_PROCESSES=2", "MASTER_ADDR=n1", "MASTER_PORT=23456",
                        "TENON_TOKEN=secret", "RANK=0", "WORLD_SIZE=2", "SLURM_PROCID=0",
                        "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0"),
                   TN_OK);
  expect("tenon launch", 5, 6, 1, 2);
  assert_string_equal(place.master, "n1");
  assert_int_equal(place.port, 23456);
  assert_string_equal(place.token, "secret");
  assert_false(place.guessable);
}

static void torchrun_is_known_by_its_master(void **state) {
  (void)state;
  assert_int_equal(READ("RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=4",
                        "MASTER_ADDR=n0.cluster", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=abc"),
                   TN_OK);
  expect("torchrun", 3, 8, 3, 4);
  assert_string_equal(place.master, "n0.cluster");
  assert_int_equal(place.port, 29501); /* its store has the port itself */
  assert_string_equal(place.token, "torchrun abc 29500");
  assert_true(place.guessable);
  assert_int_equal(READ("RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3"), TN_OK);
  assert_null(place.launcher);
}

static void torchrun_may_not_say_what_is_local(void **state) {
  (void)state;
  assert_int_equal(READ("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=n0"), TN_OK);
  expect("torchrun", 1, 2, 0, 1);
  assert_string_equal(place.master, "n0");
  assert_true(place.port >= 20000 && place.port < 32000);
  assert_int_equal(READ("RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "MASTER_ADDR=n0"), TN_OK);
  expect("torchrun", 1, 4, 1, 2);
}

/* The name of a host may mean another of its addresses than the loopback device's, where process 0 listens.
 */
static void processes_of_one_host_meet_on_its_loopback_device(void **state) {
  (void)state;
  assert_int_equal(READ("RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
                        "MASTER_ADDR=n0.cluster", "MASTER_PORT=29500"),
                   TN_OK);
  assert_string_equal(place.master, "127.0.0.1");
  assert_int_equal(READ("SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0", "SLURM_LOCALID=0",
                        "SLURM_STEP_NODELIST=n7", "SLURM_STEP_TASKS_PER_NODE=2"),
                   TN_OK);
  assert_string_equal(place.master, "127.0.0.1");
}

static void open_mpi_names_the_host_of_mpirun(void **state) {
  (void)state;
  const char *const four[] = {
      "OMPI_COMM_WORLD_RANK=2",
      "OMPI_COMM_WORLD_SIZE=4",
      "OMPI_COMM_WORLD_LOCAL_RANK=0",
      "OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "OMPI_MCA_orte_hnp_uri=123.0;tcp://10.0.0.1,192.168.0.1:4100;tcp://10.1.0.1:4100",
      "OMPI_MCA_ess_base_jobid=9",
      NULL};
  assert_int_equal(read_place(four), TN_OK);
  expect("Open MPI's mpirun", 2, 4, 0, 2);
  assert_string_equal(place.master, "10.0.0.1");
  assert_string_equal(place.token, "openmpi 9");
  assert_int_equal(READ("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
                        "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=prterun-n0-17@1",
                        "OMPI_MCA_orte_hnp_uri=1.0;tcp://10.0.0.1:4100"),
                   TN_OK);
  expect("Open MPI's mpirun", 1, 2, 1, 2);
  assert_string_equal(place.master, "127.0.0.1");
  assert_string_equal(place.token, "openmpi prterun-n0-17@1");
}

static void mpich_tells_the_processes_of_the_host(void **state) {
  (void)state;
  char token[64];
  assert_int_equal(READ("PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2",
                        "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_ID=4", "SLURM_LOCALID=0"),
                   TN_OK);
  expect("mpirun", 1, 2, 1, 2);
  assert_string_equal(place.master, "127.0.0.1");
  snprintf(token, sizeof token, "pmi %ld", (long)getppid());
  assert_string_equal(place.token, token);
  /* the parents of processes on several hosts differ */
  assert_int_equal(
      READ("PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2", "MASTER_ADDR=n1"), TN_OK);
  assert_string_equal(place.token, "pmi ");
  assert_string_equal(place.master, "n1");
  assert_int_equal(READ("PMI_RANK=1", "PMI_SIZE=2", "PMI_JOBID=77"), TN_OK);
  expect("mpirun", 1, 2, 0, 1);
  assert_string_equal(place.token, "pmi 77");
}

/* ---- Slurm ---- */

#define SLURM_STEP                                                                                           \
  "SLURM_JOB_ID=42", "SLURM_STEP_ID=3", "SLURM_STEP_NODELIST=node[003-007,12],gpu1",                         \
      "SLURM_STEP_TASKS_PER_NODE=2(x3),1(x4)", "SLURM_STEP_NUM_TASKS=10"

static void srun_tells_nodes_and_tasks(void **state) {
  (void)state;
  assert_int_equal(READ(SLURM_STEP, "SLURM_PROCID=5", "SLURM_LOCALID=1", "SLURM_NODEID=2"), TN_OK);
  expect("srun", 5, 10, 1, 2);
  assert_string_equal(place.master, "node003");
  assert_string_equal(place.token, "slurm 42.3");
  int32_t port = place.port;
  assert_true(port >= 20000 && port < 32000);
  assert_int_equal(READ(SLURM_STEP, "SLURM_PROCID=6", "SLURM_LOCALID=0", "SLURM_NODEID=3"), TN_OK);
  expect("srun", 6, 10, 0, 1);
  assert_int_equal(place.port, port);
}

static void srun_may_set_the_variables_of_pmi_too(void **state) {
  (void)state;
  assert_int_equal(READ(SLURM_STEP, "SLURM_PROCID=6", "SLURM_LOCALID=0", "SLURM_NODEID=3", "PMI_RANK=6",
                        "PMI_SIZE=10", "PMI_JOBID=42.3"),
                   TN_OK);
  expect("srun", 6, 10, 0, 1);
  assert_string_equal(place.master, "node003");
}

static void a_batch_script_and_a_shell_of_salloc_are_alone(void **state) {
  (void)state;
  assert_int_equal(READ("SLURM_JOB_ID=42", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NODEID=0",
                        "SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=4"),
                   TN_OK);
  assert_null(place.launcher);
  static const char *const special[] = {"SLURM_STEP_ID=4294967290", "SLURM_STEP_ID=4294967291",
                                        "SLURM_STEP_ID=-5", "SLURM_STEP_ID=batch", "SLURM_STEP_ID="};
  for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
    assert_int_equal(READ("SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=4", special[i]), TN_OK);
    assert_null(place.launcher);
    assert_int_equal(place.processes, 1);
  }
}

static void a_list_of_nodes_has_a_first(void **state) {
  (void)state;
  static const char *const lists[][2] = {{"node[003-007,12],gpu1", "node003"},
                                         {"rack[1-2]n[0-3]", "rack1n0"},
                                         {"gpu1,node[1-2]", "gpu1"},
                                         {"a[7]b", "a7b"},
                                         {"n-1.x_y", "n-1.x_y"},
                                         {"[5-6]", "5"}};
  static const char *const wrong[] = {"", ",a", "n[", "n[1", "n[1-2", "n[]", "n[x]", "n]", "n[1]]", "[[1]]"};
  char name[16], small[4];
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    assert_true(tn_slurm_first_node(lists[i][0], name, sizeof name));
    assert_string_equal(name, lists[i][1]);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_false(tn_slurm_first_node(wrong[i], name, sizeof name));
  assert_true(tn_slurm_first_node("abc,d", small, sizeof small));
  assert_false(tn_slurm_first_node("abcd", small, sizeof small));
  assert_false(tn_slurm_first_node("a[123]", small, sizeof small));
}

static void a_list_of_tasks_has_those_of_each_node(void **state) {
  (void)state;
  static const struct {
    const char *list;
    int32_t node, tasks;
  } cases[] = {{"2(x3),1", 0, 2},
               {"2(x3),1", 2, 2},
               {"2(x3),1", 3, 1},
               {"2(x3),1", 4, -1},
               {"4", 0, 4},
               {"4", 1, -1},
               {"1,2,3", 2, 3},
               {"", 0, -1},
               {"x", 0, -1},
               {"2(x", 0, -1},
               {"2(x2", 1, -1},
               {"2(y3)", 1, -1},
               {"0", 0, -1},
               {"-1", 0, -1},
               {"2,,1", 1, -1},
               {"2(x0),1", 0, -1},
               {"2 1", 1, -1},
               {"21x", 1, -1},
               {"99999999999999999", 0, -1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(tn_slurm_tasks_of_node(cases[i].list, cases[i].node), cases[i].tasks);
}

/* ---- precedence, and mistakes ---- */

static void the_users_master_port_and_token_precede(void **state) {
  (void)state;
  assert_int_equal(READ(SLURM_STEP, "SLURM_PROCID=5", "SLURM_LOCALID=1", "SLURM_NODEID=2",
                        "MASTER_ADDR=10.1.1.1", "MASTER_PORT=1234", "TENON_TOKEN=mine"),
                   TN_OK);
  expect("srun", 5, 10, 1, 2);
  assert_string_equal(place.master, "10.1.1.1");
  assert_int_equal(place.port, 1234);
  assert_string_equal(place.token, "mine");
  assert_false(place.guessable);
}

static void a_variable_without_a_usable_value_is_named(void **state) {
  (void)state;
  expect_error(READ("TENON_PROCESS=2", "TENON_PROCESSES=2"),
               "the environment has TENON_PROCESS=2, expected a whole number from 0 to 1");
  expect_error(READ("TENON_PROCESS=-1", "TENON_PROCESSES=2"), "TENON_PROCESS=-1");
  expect_error(READ("TENON_PROCESS=0", "TENON_PROCESSES=two"),
               "the environment has TENON_PROCESSES=two, expected a whole number from 1 to 16384");
  expect_error(READ("TENON_PROCESS=0", "TENON_PROCESSES=0"), "TENON_PROCESSES=0");
  expect_error(READ("TENON_PROCESS=0", "TENON_PROCESSES=16385"), "TENON_PROCESSES=16385");
  expect_error(READ("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "LOCAL_WORLD_SIZE=3"),
               "the environment has LOCAL_WORLD_SIZE=3, expected a whole number from 1 to 2");
  expect_error(READ("RANK=1", "WORLD_SIZE=4", "MASTER_ADDR=a", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"),
               "the environment has LOCAL_RANK=2, expected a whole number from 0 to 1");
  expect_error(READ("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=65520"),
               "the environment has MASTER_PORT=65520, expected a whole number from 1 to 65519");
  expect_error(READ("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=29500x"), "MASTER_PORT=29500x");
}

static void a_list_of_slurm_that_does_not_fit_is_named(void **state) {
  (void)state;
  expect_error(READ("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=n[x"),
               "the environment has SLURM_STEP_NODELIST=n[x, expected a list of nodes");
  expect_error(
      READ("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0", "SLURM_NODEID=1",
           "SLURM_STEP_TASKS_PER_NODE=2"),
      "the environment has SLURM_STEP_TASKS_PER_NODE=2, expected a list such as 2(x3),1 that has node "
      "1 with more than 0 of 2 tasks");
  expect_error(READ("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0", "SLURM_LOCALID=1",
                    "SLURM_STEP_TASKS_PER_NODE=1(x2)"),
               "SLURM_STEP_TASKS_PER_NODE=1(x2)");
  expect_error(
      READ("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0", "SLURM_STEP_TASKS_PER_NODE=3"),
      "SLURM_STEP_TASKS_PER_NODE=3");
  expect_error(READ("SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0", "SLURM_NODEID=x"),
               "the environment has SLURM_NODEID=x");
}

static void several_hosts_without_a_master_are_refused(void **state) {
  (void)state;
  expect_error(READ("PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2"),
               "mpirun has started 4 processes, 2 of them on this host, and does not say where process 0 is; "
               "set MASTER_ADDR to the name of its host, and MASTER_PORT to a free port there");
  expect_error(READ("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=1"),
               "Open MPI's mpirun has started 4 processes, 1 of them on this host");
  expect_error(
      READ("TENON_PROCESS=1", "TENON_PROCESSES=4", "TENON_LOCAL_PROCESS=0", "TENON_LOCAL_PROCESSES=1"),
      "tenon launch has started 4 processes, 1 of them on this host");
}

static void a_forgotten_srun_is_seen(void **state) {
  (void)state;
  assert_int_equal(READ("SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_PROCID=0"), TN_OK);
  assert_null(place.launcher);
  assert_int_equal(place.tasks, 4);
  assert_int_equal(READ("SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_STEP_ID=4294967291"), TN_OK);
  assert_int_equal(place.tasks, 4);
  assert_int_equal(READ("SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_STEP_ID=0"), TN_OK);
  assert_int_equal(place.tasks, 0);
  assert_int_equal(READ("SLURM_JOB_ID=7", "SLURM_NTASKS=4", "SLURM_STEP_ID=0", "SLURM_PROCID=1",
                        "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_TASKS_PER_NODE=4"),
                   TN_OK);
  assert_int_equal(place.tasks, 0);
  assert_int_equal(READ("SLURM_NTASKS=4"), TN_OK);
  assert_int_equal(place.tasks, 0);
  assert_int_equal(READ("SLURM_JOB_ID=7", "SLURM_NTASKS=many"), TN_OK);
  assert_int_equal(place.tasks, 0);
}

static void long_texts_are_cut(void **state) {
  (void)state;
  char token[400], master[400];
  snprintf(token, sizeof token, "TENON_TOKEN=%0300d", 7);
  snprintf(master, sizeof master, "MASTER_ADDR=%0300d", 7);
  assert_int_equal(READ("TENON_PROCESS=1", "TENON_PROCESSES=4", token, master), TN_OK);
  assert_int_equal(strlen(place.token), TN_PLACE_TOKEN - 1);
  assert_int_equal(strlen(place.master), TN_PLACE_HOST - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_launcher_a_process_is_alone),
      cmocka_unit_test(tenon_launch_is_read_first),
      cmocka_unit_test(torchrun_is_known_by_its_master),
      cmocka_unit_test(torchrun_may_not_say_what_is_local),
      cmocka_unit_test(processes_of_one_host_meet_on_its_loopback_device),
      cmocka_unit_test(open_mpi_names_the_host_of_mpirun),
      cmocka_unit_test(mpich_tells_the_processes_of_the_host),
      cmocka_unit_test(srun_tells_nodes_and_tasks),
      cmocka_unit_test(srun_may_set_the_variables_of_pmi_too),
      cmocka_unit_test(a_batch_script_and_a_shell_of_salloc_are_alone),
      cmocka_unit_test(a_forgotten_srun_is_seen),
      cmocka_unit_test(a_list_of_nodes_has_a_first),
      cmocka_unit_test(a_list_of_tasks_has_those_of_each_node),
      cmocka_unit_test(the_users_master_port_and_token_precede),
      cmocka_unit_test(a_variable_without_a_usable_value_is_named),
      cmocka_unit_test(a_list_of_slurm_that_does_not_fit_is_named),
      cmocka_unit_test(several_hosts_without_a_master_are_refused),
      cmocka_unit_test(long_texts_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
