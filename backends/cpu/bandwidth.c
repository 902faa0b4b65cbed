/* backends/cpu/bandwidth.c: the rate of memory, measured once and kept in the cache folder. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "backends/shared/clock.h"
#include "backends/shared/team.h"

enum { BUFFER_BYTES = 64 << 20, PIECE_BYTES = 1 << 20, ROUNDS = 7, MOST_PATH = 1024 };

/* ---- measuring ---- */

typedef struct bandwidth_copy {
  char *to;
  const char *from;
} bandwidth_copy;

static void bandwidth_copy_piece(void *arg, int64_t chunk) {
  const bandwidth_copy *c = arg;
  memcpy(c->to + chunk * PIECE_BYTES, c->from + chunk * PIECE_BYTES, PIECE_BYTES);
}

static int bandwidth_compare(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* Two digits, so that a plan does not depend on the rest. 0: the median is more than a fifth slower than the
 * best. */
static double bandwidth_of_rounds(double *rounds_s) {
  qsort(rounds_s, ROUNDS, sizeof *rounds_s, bandwidth_compare);
  if (rounds_s[ROUNDS / 2] > 1.2 * rounds_s[0]) return 0;
  double rate = 2.0 * BUFFER_BYTES / rounds_s[0], digit = pow(10, floor(log10(rate)) - 1);
  return floor(rate / digit) * digit;
}

static double bandwidth_measure(tn_env *env, int32_t threads) {
  const tn_ints unbound = {0, NULL};
  tn_team *team = NULL;
  double rounds_s[ROUNDS];
  bandwidth_copy copy = {malloc(BUFFER_BYTES), calloc(1, BUFFER_BYTES)};
  bool ready =
      copy.to != NULL && copy.from != NULL && tn_team_create(env, "cpu", threads, &unbound, &team) == TN_OK;
  for (int32_t i = -1; ready && i < ROUNDS; i++) { /* the first round touches the pages */
    double start_s = tn_monotonic_s();
    tn_team_run(team, BUFFER_BYTES / PIECE_BYTES, bandwidth_copy_piece, &copy);
    if (i >= 0) rounds_s[i] = tn_monotonic_s() - start_s;
  }
  if (team != NULL) tn_team_destroy(team);
  free((void *)(uintptr_t)copy.from);
  free(copy.to);
  return ready ? bandwidth_of_rounds(rounds_s) : 0;
}

/* ---- the file ---- */

/* The first line names what the number is for; the second is the number. */
static void bandwidth_heading(const char *name, int32_t threads, char *heading, size_t size) {
  snprintf(heading, size, "tenon bandwidth 1: %s, %d threads\n", name, (int)threads);
}

static bool bandwidth_path(const char *cache, const char *heading, const char *end, char *path) {
  uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
  for (const char *c = heading; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
  int n = snprintf(path, MOST_PATH, "%s/bandwidth-%016llx.txt%s", cache, (unsigned long long)hash, end);
  return *cache != '\0' && n > 0 && n < MOST_PATH;
}

static double bandwidth_read(const char *path, const char *heading) {
  char line[256];
  double rate = 0;
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  bool same = fgets(line, sizeof line, file) != NULL && strcmp(line, heading) == 0;
  if (!same || fscanf(file, "%lf", &rate) != 1 || !(rate > 0 && rate < 1e15)) rate = 0;
  fclose(file);
  return rate;
}

/* A new file beside the one that it will replace. O_EXCL follows no link that another program has put there.
 */
static FILE *bandwidth_create(const char *cache, const char *heading, char *path) {
  for (int try = 0; try < 100; try++) {
    char end[48];
    snprintf(end, sizeof end, ".%ld-%d.tmp", (long)getpid(), try);
    if (!bandwidth_path(cache, heading, end, path)) return NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL && fd >= 0) close(fd);
    return file;
  }
  return NULL;
}

/* Another process may read or write the same file, so it is replaced as a whole. */
static void bandwidth_write(tn_env *env, const char *cache, const char *heading, double rate) {
  char path[MOST_PATH], written[MOST_PATH];
  if (!bandwidth_path(cache, heading, "", path)) return;
  FILE *file = tn_make_folder(env, cache) == TN_OK ? bandwidth_create(cache, heading, written) : NULL;
  bool good = file != NULL && fprintf(file, "%s%.17g\n", heading, rate) > 0;
  if (file != NULL) good &= fclose(file) == 0;
  if (good && rename(written, path) == 0) return;
  if (file != NULL) remove(written);
  tn_env_log(env, TN_LOG_WARN, "cpu: the rate of memory is not stored in %s", cache);
}

double tn_cpu_bandwidth(tn_env *env, const char *cache, const char *name, int32_t threads) {
  char heading[256], path[MOST_PATH];
  bandwidth_heading(name, threads, heading, sizeof heading);
  double rate = bandwidth_path(cache, heading, "", path) ? bandwidth_read(path, heading) : 0;
  if (rate > 0) return rate;
  rate = bandwidth_measure(env, threads);
  if (rate > 0 && *cache != '\0') bandwidth_write(env, cache, heading, rate);
  if (rate == 0)
    tn_env_log(env, TN_LOG_INFO, "cpu: measurements of the rate of memory differ: the estimate is used");
  return rate;
}
