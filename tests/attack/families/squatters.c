/* tests/attack/families/squatters.c: processes of a job come together beside a program that listens on some
 * of their ports, and reads, answers, or stands between two of them. The token is not among the bytes that it
 * gets, and the job ends with the bits of one beside no such program, or with an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/attack/families/squatter.h"
#include "tests/attack/runs.h"

enum {
  MOST_PROCESSES = 4,
  FIRST_PORT = 10000,
  PORT_RANGE = 9000,
  TRIED = 17,           /* MASTER_PORT and the 16 behind it */
  NO_COMMUNICATION = 77 /* the exit code of TN_ECOMM */
};

typedef struct job {
  int n, port;
  int codes[MOST_PROCESSES], good; /* exit codes; how many are 0 */
  const char *output;
  char token[40], ends[600], variables[MOST_PROCESSES][8][64];
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

/* How a process has ended, for a finding. */
static void squatters_note_end(job *j, int i, const attack_result *result) {
  size_t used = strlen(j->ends);
  j->codes[i] = result->code;
  j->good += result->code == 0;
  snprintf(j->ends + used, sizeof j->ends - used, "%s%d: %d %.110s", i > 0 ? "; " : "", i, result->code,
           result->code == 0 ? "" : result->err);
}

static void squatters_run_job(job *j, int n, int port, const char *output) {
  pid_t pids[MOST_PROCESSES];
  *j = (job){.n = n, .port = port, .output = output};
  snprintf(j->token, sizeof j->token, "%016llx%016llx", (unsigned long long)attack_draw(UINT64_MAX),
           (unsigned long long)attack_draw(UINT64_MAX));
  for (int i = 0; i < n; i++) squatters_set_process(j, i);
  for (int i = 0; i < n; i++) pids[i] = attack_start(&j->commands[i]);
  for (int i = 0; i < n; i++) {
    const attack_result *result = attack_await(pids[i], &j->commands[i]);
    squatters_note_end(j, i, result);
  }
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
  static job j;
  snprintf(output, sizeof output, "alone%d", n);
  if (attack_exists(output)) return output;
  squatters_run_job(&j, n, squatters_find_ports(), output);
  if (j.good != n) attack_die("%d processes do not train: %s", n, j.ends);
  return output;
}

/* A process that has done its part may end before the last frame of another one is changed, and no protocol
 * can tell it (the two generals). Nothing of it is silent: the others end with TN_ECOMM's code and say why,
 * and the checkpoint of a process 0 that ended with 0 has the right bits. */
static void squatters_judge(const job *j, const char *alone) {
  char a[128], b[128];
  attack_bytes record = attack_read("squatter.bytes");
  if (memmem(record.v, record.n, j->token, strlen(j->token)) != NULL)
    attack_find(ATTACK_FOREIGN, "the token reached the program that listens");
  free(record.v);
  for (int i = 0; i < j->n && j->good > 0; i++)
    if (j->codes[i] != 0 && j->codes[i] != NO_COMMUNICATION)
      attack_find(ATTACK_WRONG, "%d of %d processes end with 0: %s", j->good, j->n, j->ends);
  if (j->codes[0] != 0) return;
  snprintf(a, sizeof a, "%s/run/checkpoints/last/model.safetensors", alone);
  snprintf(b, sizeof b, "beside/run/checkpoints/last/model.safetensors");
  if (!attack_same_files(a, b))
    attack_find(ATTACK_WRONG, "process 0 ends with 0 and other bits: %s", j->ends);
}

static void squatters_run(void) {
  static job j;
  int n = attack_draw_between(2, MOST_PROCESSES), port, taken = 0;
  uint64_t seed = attack_draw(UINT64_MAX);
  squatter_way way = (squatter_way)attack_draw(SQUATTER_WAYS);
  uint32_t ports = (uint32_t)attack_draw(1u << TRIED);
  if (attack_draw(3) != 0) ports |= 3; /* the first that are tried */
  attack_describe("%d processes, ports %#x, a program that %s", n, (unsigned)ports, squatter_words[way]);
  const char *alone = squatters_reference(n);
  port = squatters_find_ports();
  attack_remove("beside");
  pid_t pid = squatter_start(way, port, ports, seed, &taken);
  squatters_run_job(&j, n, port, "beside");
  squatter_stop(pid);
  squatters_judge(&j, alone);
}

const attack_family attack_squatters = {"squatters", "a program on a job's ports learns and changes nothing",
                                        1, runs_make, squatters_run};
