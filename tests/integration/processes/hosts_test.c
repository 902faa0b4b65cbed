/* Trainings on two hosts, which are network namespaces of this machine: the bits of one host, and the end of
 * all processes where the network between the hosts is cut. */
#include "launched.h"

#include "hosts.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char model_ini[] = LAUNCHED_INI("name = run\nmax_steps = 40\n", "1h");

enum { PROCESSES = 4 };

static char self[4096]; /* this program, which stands in for ssh */

/* ---- processes that no launcher starts ---- */

static pid_t started[PROCESSES];

/* The variables of torchrun, on two hosts with half of the processes each. */
static void become_rank(int rank, const char *arguments) {
  char line[1024], text[128];
  int local = rank % (PROCESSES / 2);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!hosts_enter(rank == local ? HOST_A : HOST_B)) _exit(127);
  snprintf(text, sizeof text, "%d %d %d %d", rank, PROCESSES, local, PROCESSES / 2);
  static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
  char *rest = text;
  for (int i = 0; i < 4; i++) setenv(names[i], strsep(&rest, " "), 1);
  setenv("MASTER_ADDR", HOST_A, 1);
  setenv("MASTER_PORT", "29500", 1); /* of the namespace, which no other test has */
  snprintf(line, sizeof line, "exec " TENON " train model.ini --quiet %s >out.%d 2>&1", arguments, rank);
  execl("/bin/sh", "sh", "-c", line, (char *)NULL);
  _exit(127);
}

static void start_by_hand(const char *arguments) {
  fflush(NULL);
  for (int i = 0; i < PROCESSES; i++) {
    started[i] = fork();
    assert_true(started[i] >= 0);
    if (started[i] == 0) become_rank(i, arguments);
  }
}

static const char *said(int rank) {
  char path[16];
  snprintf(path, sizeof path, "out.%d", rank);
  return file_read(path, NULL);
}

static void end_by_hand(int code) {
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    assert_int_equal(waitpid(started[i], &status, 0), started[i]);
    started[i] = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
      fail_msg("process %d: status %#x, expected exit code %d: %s", i, (unsigned)status, code, said(i));
  }
}

/* ---- set-up ---- */

static int set_up(void **state) {
  if (program_open(state) != 0) return -1;
  const char *failed = hosts_make();
  if (failed != NULL) print_message("two hosts cannot be made here: %s\n", failed);
  setenv("TENON_SSH", self, 1);
  file_write("model.ini", model_ini);
  return 0;
}

static int tear_down(void **state) {
  for (int i = 0; i < PROCESSES; i++) {
    if (started[i] <= 0) continue;
    kill(started[i], SIGKILL);
    waitpid(started[i], NULL, 0);
    started[i] = 0;
  }
  if (hosts_make() == NULL && !hosts_join(true)) return -1;
  return program_close(state);
}

/* ---- results ---- */

static void same_losses(const char *a, const char *b) {
  char *texts[2], *rest[2];
  for (int i = 0; i < 2; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/run/metrics.jsonl", i == 0 ? a : b);
    rest[i] = texts[i] = file_read(path, NULL);
  }
  for (int lines = 0;; lines++) {
    const char *line[2] = {strsep(&rest[0], "\n"), strsep(&rest[1], "\n")};
    assert_true((line[0] == NULL) == (line[1] == NULL));
    if (line[0] == NULL) {
      assert_true(lines > 40);
      return;
    }
    const char *x = strstr(line[0], "\"loss\""), *y = strstr(line[1], "\"loss\"");
    assert_true((x == NULL) == (y == NULL));
    size_t n = x != NULL ? strcspn(x, ",}") : 0;
    if (x != NULL && (strcspn(y, ",}") != n || strncmp(x, y, n) != 0)) fail_msg("%s\n%s", line[0], line[1]);
  }
}

static void same_results(const char *a, const char *b) {
  same_losses(a, b);
  checkpoints_equal(a, b);
}

/* ---- the same bits ---- */

static void two_hosts_have_the_bits_of_one(void **state) {
  (void)state;
  if (hosts_make() != NULL) skip();
  program_json(0, "launch -n 4 model.ini --output one");
  const json_t *r = program_json(0, "launch --hosts " HOST_A ":3," HOST_B ":1 model.ini --output launched");
  assert_int_equal(program_number(r, "devices"), 4);
  same_results("launched", "one");
  start_by_hand("--output by_hand");
  end_by_hand(0);
  same_results("by_hand", "one");
}

/* mpirun runs on host a, and reaches host b by an agent. */
static void mpirun_on_two_hosts_has_the_bits_of_one(void **state) {
  (void)state;
  char command[16384];
  if (hosts_make() != NULL || MPIRUN[0] == '\0') skip();
  program_json(0, "launch -n 4 model.ini --output one");
  snprintf(command, sizeof command,
           "%s " HOST_A " timeout 900 " MPIRUN " --allow-run-as-root --bind-to none --oversubscribe"
           " --host " HOST_A ":2," HOST_B ":2 --mca plm_rsh_agent %s --mca btl self,tcp"
           " --mca btl_tcp_if_include 192.0.2.0/24 --mca oob_tcp_if_include 192.0.2.0/24 --wdir $PWD"
           " -n 4 " TENON " train model.ini --output mpi --set distributed.communicator=mpi --quiet"
           " >out.0 2>&1",
           self, self);
  int status = system(command);
  if (status != 0) fail_msg("status %#x: %s", (unsigned)status, said(0));
  same_results("mpi", "one");
}

/* ---- a cut ---- */

/* Each names a process of the other host. */
static void the_lost_host_is_named(void) {
  for (int i = 0; i < PROCESSES; i++) {
    const char *host = i < PROCESSES / 2 ? HOST_B : HOST_A;
    if (strstr(said(i), host) == NULL) fail_msg("process %d does not name %s: %s", i, host, said(i));
  }
}

/* The processes miss each other after 20 s of silence, long before the timeout of an hour, which would fail
 * the test by meson's limit. */
static void a_cut_between_hosts_ends_all(void **state) {
  (void)state;
  if (hosts_make() != NULL) skip();
  start_by_hand("--output cut --set run.max_steps=100000000000 --set run.epochs=100000000000");
  program_await(file_lines("cut/run/metrics.jsonl") >= 30);
  assert_true(hosts_join(false));
  end_by_hand(77);
  the_lost_host_is_named();
}

int main(int argc, char **argv) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(two_hosts_have_the_bits_of_one),
                                     TEST(mpirun_on_two_hosts_has_the_bits_of_one),
                                     TEST(a_cut_between_hosts_ends_all)};
  if (argc > 1) return hosts_ssh(argc, argv);
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  return n > 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
