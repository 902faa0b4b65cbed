/* tests/attack/squatters.c: processes of a job come together beside a program that listens on some of their
 * ports, and reads, answers, or stands between two of them. The token is not among the bytes that it gets,
 * and the job ends with the bits of one beside no such program, or with an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/attack/runs.h"
#include "tests/attack/squatter.h"

enum {
  MOST_PROCESSES = 4,
  FIRST_PORT = 10000,
  PORT_RANGE = 9000,
  TRIED = 17 /* MASTER_PORT and the 16 behind it */
};

typedef struct job {
  int n, port;
  const char *output;
  char token[40], variables[MOST_PROCESSES][8][64];
  const char *lists[MOST_PROCESSES][8];
  attack_command commands[MOST_PROCESSES];
} job;

static void squatters_set_process(job *j, int i) {
  static const char *const words[] = {"train",
                                      "picture.ini",
                                      "--quiet",
                                      "--set",
                                      "distributed.timeout=4",
                                      "--set",
                                      "distributed.communicator=tcp",
                                      "--output"};
  char(*v)[64] = j->variables[i];
  int n = 0;
  snprintf(v[n++], 64, "TENON_PROCESS=%d", i);
  snprintf(v[n++], 64, "TENON_PROCESSES=%d", j->n);
  snprintf(v[n++], 64, "TENON_LOCAL_PROCESS=%d", i);
  snprintf(v[n++], 64, "TENON_LOCAL_PROCESSES=%d", j->n);
  snprintf(v[n++], 64, "MASTER_ADDR=127.0.0.1");
  snprintf(v[n++], 64, "MASTER_PORT=%d", j->port);
  snprintf(v[n++], 64, "TENON_TOKEN=%s", j->token);
  for (int k = 0; k < n; k++) j->lists[i][k] = v[k];
  j->commands[i] = (attack_command){.variables = j->lists[i], .place = 1 + i};
  memcpy(j->commands[i].words, words, sizeof words);
  j->commands[i].words[sizeof words / sizeof *words] = j->output;
}

/* Returns the number of processes that end with 0. */
static int squatters_run_job(int n, int port, const char *output, char token[40]) {
  static job j;
  pid_t pids[MOST_PROCESSES];
  int good = 0;
  j = (job){.n = n, .port = port, .output = output};
  snprintf(token, 40, "%016llx%016llx", (unsigned long long)attack_draw(UINT64_MAX),
           (unsigned long long)attack_draw(UINT64_MAX));
  memcpy(j.token, token, sizeof j.token);
  for (int i = 0; i < n; i++) squatters_set_process(&j, i);
  for (int i = 0; i < n; i++) pids[i] = attack_start(&j.commands[i]);
  for (int i = 0; i < n; i++) good += attack_await(pids[i], &j.commands[i])->code == 0;
  return good;
}

/* A range of ports that no other program has. */
static int squatters_find_ports(void) {
  for (int tries = 0; tries < 100; tries++) {
    int port = FIRST_PORT + (int)attack_draw(PORT_RANGE), free = 0;
    while (free < TRIED && squatter_is_free(port + free)) free++;
    if (free == TRIED) return port;
  }
  attack_die("no %d ports in a row are free", TRIED);
}

static const char *squatters_reference(int n) {
  static char output[32];
  char token[40];
  snprintf(output, sizeof output, "alone%d", n);
  if (!attack_exists(output) && squatters_run_job(n, squatters_find_ports(), output, token) != n)
    attack_die("%d processes do not train", n);
  return output;
}

static void squatters_judge(int n, int good, const char *alone, const char *token) {
  char a[128], b[128];
  attack_bytes record = attack_read("squatter.bytes");
  if (memmem(record.v, record.n, token, strlen(token)) != NULL)
    attack_find(ATTACK_FOREIGN, "the token reached the program that listens");
  free(record.v);
  if (good != n && good > 0) attack_find(ATTACK_WRONG, "%d of %d processes end with 0", good, n);
  if (good != n) return;
  snprintf(a, sizeof a, "%s/run/checkpoints/last/model.safetensors", alone);
  snprintf(b, sizeof b, "beside/run/checkpoints/last/model.safetensors");
  if (!attack_same_files(a, b)) attack_find(ATTACK_WRONG, "the job ends with 0 and other bits");
}

static void squatters_run(void) {
  int n = attack_draw_between(2, MOST_PROCESSES), port, taken = 0;
  uint64_t seed = attack_draw(UINT64_MAX);
  squatter_way way = (squatter_way)attack_draw(SQUATTER_WAYS);
  uint32_t ports = (uint32_t)attack_draw(1u << TRIED);
  char token[40];
  if (attack_draw(3) != 0) ports |= 3; /* the first that are tried */
  attack_describe("%d processes, ports %#x, a program that %s", n, (unsigned)ports, squatter_words[way]);
  const char *alone = squatters_reference(n);
  port = squatters_find_ports();
  attack_remove("beside");
  pid_t pid = squatter_start(way, port, ports, seed, &taken);
  int good = squatters_run_job(n, port, "beside", token);
  squatter_stop(pid);
  squatters_judge(n, good, alone, token);
}

const attack_family attack_squatters = {"squatters", "a program on a job's ports learns and changes nothing",
                                        1, runs_make, squatters_run};
