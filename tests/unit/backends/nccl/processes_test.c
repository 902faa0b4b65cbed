/* The communicator nccl between processes: two with two devices each, and four with one. */
#include "tests/unit/backends/nccl/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared by the processes, instead of the control plane of the host. */
typedef struct shared_page {
  _Atomic int identified;
  _Atomic int named; /* processes that have named what they see */
  unsigned char identity[RIG_IDENTITY];
} shared_page;

static shared_page *page;

static void send_identity(const tn_comm_place *place) {
  rig_identify(place, place->process == 0 ? page->identity : NULL);
  if (place->process == 0) atomic_store(&page->identified, 1);
  AWAIT(atomic_load(&page->identified) != 0);
}

static tn_collective calls[MOST];
static const tn_collective *const given[MOST] = {&calls[0], &calls[1], &calls[2], &calls[3]};

static void make_calls(int32_t here) {
  for (int32_t i = 0; i < here; i++) {
    float *host = (float *)(void *)all[i].host;
    for (int k = 0; k < 61; k++) host[k] = (float)(k + all[i].number);
    calls[i] = (tn_collective){.struct_size = sizeof calls[i],
                               .kind = TN_ALL_REDUCE,
                               .dtype = TN_F32,
                               .count = 61,
                               .from = all[i].from,
                               .to = all[i].to,
                               .name = "bucket 7"};
    OK(cuda->copy(&all[i].said.env, all[i].stream, TN_COPY_TO_DEVICE, all[i].from, host, 61 * sizeof(float)));
  }
}

static void check_sums(int32_t here) {
  for (int32_t i = 0; i < here; i++) {
    const float *host = (const float *)(void *)all[i].host;
    OK(cuda->stream_wait(&all[i].said.env, all[i].stream));
    OK(cuda->copy(&all[i].said.env, all[i].copies, TN_COPY_TO_HOST, all[i].host, all[i].to,
                  61 * sizeof(float)));
    OK(cuda->stream_wait(&all[i].said.env, all[i].copies));
    for (int k = 0; k < 61; k++) assert_true(host[k] == (float)(4 * k + 6));
  }
}

static void sums_are_right(const tn_comm_place *place, int32_t here) {
  (void)place;
  for (int k = 0; k < 3; k++) {
    make_calls(here);
    ranks_run(here, given);
    for (int32_t i = 0; i < here; i++) OK(all[i].status);
    check_sums(here);
  }
}

/* The ranks of the last process do not come; those of process 0 name what they see. */
static void a_rank_elsewhere_does_not_come(const tn_comm_place *place, int32_t here) {
  if (place->process != place->processes - 1) {
    make_calls(here);
    ranks_run(here, given);
    for (int32_t i = 0; i < here; i++) rank_enters(&all[i]);
    rank_ends_limit(&all[0]);
    rank_fails(&all[0], "has waited in 'bucket 7' for 61");
    says(&all[0], "the ranks that this one sees have come to it, so another one has not");
    test_clock_run();
    atomic_store(&page->named, 1);
  } else {
    AWAIT(atomic_load(&page->named) != 0);
  }
  for (int32_t i = 0; i < here; i++) kind->abort(&all[i].said.env, all[i].communicator);
}

typedef void (*process_body)(const tn_comm_place *place, int32_t here);
static process_body running;
static tn_comm_place placed;

static void run_process(void **state) {
  (void)state;
  int32_t here = placed.ranks / placed.processes;
  send_identity(&placed);
  ranks_join(here, &placed, page->identity, NULL);
  for (int32_t i = 0; i < here; i++)
    if (all[i].opened != TN_OK) fail_msg("rank %d: %s", (int)all[i].number, all[i].said.text);
  running(&placed, here);
  ranks_end(here);
}

/* Each process runs a test of its own, and its exit status is the number of failures. */
static int child(int32_t process, int32_t processes, double timeout_s, process_body body) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(run_process)};
  running = body;
  placed = (tn_comm_place){.struct_size = sizeof placed,
                           .rank = process * MOST / processes,
                           .ranks = MOST,
                           .process = process,
                           .processes = processes,
                           .address = "127.0.0.1",
                           .timeout_s = timeout_s};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

static int run_processes(int32_t processes, double timeout_s, process_body body) {
  pid_t pids[MOST];
  int failures = 0, status = 0;
  atomic_store(&page->identified, 0);
  fflush(NULL);
  for (int32_t p = 0; p < processes; p++)
    if ((pids[p] = fork()) == 0) exit(child(p, processes, timeout_s, body));
  for (int32_t p = 0; p < processes; p++) {
    waitpid(pids[p], &status, 0);
    failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  return failures;
}

int main(void) {
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  test_clock_open();
  int failures = run_processes(2, 60, sums_are_right);
  failures += run_processes(4, 60, sums_are_right);
  failures += run_processes(2, 60, a_rank_elsewhere_does_not_come);
  return failures != 0;
}
