/* One rank of the communicator `mpi`, without a host: `mpirun -n N mpi_rank PLUGIN MODE [PIECE]`. Prints
 * "rank R: ..." and ends with 0 if all is as expected. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/shared/half.h"
#include "tenon/plugin/communicator.h"
#include "backends/shared/clock.h"

enum { MOST = 8, COUNT = 1000, ROOM = MOST * COUNT * 8 };

/* ---- a host ---- */

static char text[512]; /* the last message */

static tn_status say(const void *handle, tn_status code, const char *option, const char *format, ...) {
  va_list args;
  (void)handle, (void)option;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return code;
}

static void *give(const void *handle, size_t bytes) { return (void)handle, calloc(1, bytes); }
static void take(const void *handle, void *block) { (void)handle, free(block); }

static const tn_api api = {.struct_size = sizeof api, .fail = say, .alloc = give, .free = take};
static tn_env env = {.api = &api};

static const tn_communicator *kind;
static struct { int64_t piece; } options = {1 << 18};
static tn_comm_place place = {.struct_size = sizeof place, .address = "", .timeout_s = 60};
static tn_comm_device device = {.struct_size = sizeof device};
static uint64_t identity[2] = {12, 34};
static void *communicator;

static void fail_at(int line, const char *what) {
  printf("rank %d: line %d: %s: %s\n", (int)place.rank, line, what, text);
  fflush(stdout);
  exit(1);
}

#define CHECK(x)                                                                                             \
  do {                                                                                                       \
    if (!(x)) fail_at(__LINE__, #x);                                                                         \
  } while (0)
#define OK(call) CHECK((call) == TN_OK)

static tn_status open_rank(void) {
  return kind->open(&env, &options, &device, &place, identity, &communicator);
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

/* ---- values ---- */

static int value_of(int32_t r, int64_t i) { return (int)((7 * r + 3 * i) % 11); }

static void put(int32_t dtype, unsigned char *memory, int64_t i, int value) {
  uint16_t half = dtype == TN_F16 ? tn_f16_of_f32((float)value) : tn_bf16_of_f32((float)value);
  switch (dtype) {
  case TN_BOOL: memory[i] = value & 1; break;
  case TN_U8:
  case TN_I8: memory[i] = (unsigned char)value; break;
  case TN_I32: ((int32_t *)(void *)memory)[i] = value; break;
  case TN_I64: ((int64_t *)(void *)memory)[i] = value; break;
  case TN_F32: ((float *)(void *)memory)[i] = (float)value; break;
  case TN_F64: ((double *)(void *)memory)[i] = value; break;
  default: ((uint16_t *)(void *)memory)[i] = half;
  }
}

static int reduced(int32_t reduction, int64_t i) {
  int result = value_of(0, i);
  for (int32_t r = 1; r < place.ranks; r++) {
    int v = value_of(r, i);
    result = reduction == TN_REDUCTION_MIN   ? (v < result ? v : result)
             : reduction == TN_REDUCTION_MAX ? (v > result ? v : result)
                                             : result + v;
  }
  return result;
}

static int expected(const tn_collective *w, int64_t i) {
  switch (w->kind) {
  case TN_ALL_REDUCE: return reduced(w->reduction, i);
  case TN_BROADCAST: return value_of(w->root, i);
  case TN_REDUCE_SCATTER: return reduced(w->reduction, place.rank * (w->count / place.ranks) + i);
  default: return value_of((int32_t)(i / w->count), i % w->count);
  }
}

/* ---- every collective ---- */

static unsigned char from[ROOM], to[ROOM], wanted[ROOM];
static uint64_t begun;

static tn_collective call_of(tn_collective w, bool in_place) {
  size_t size = tn_dtype_size(w.dtype);
  w.struct_size = sizeof w;
  w.name = "one of many";
  w.from = from;
  w.to = to;
  if (!in_place) return w;
  if (w.kind == TN_ALL_GATHER) w.from = to + (size_t)(place.rank * w.count) * size;
  if (w.kind == TN_REDUCE_SCATTER) w.to = from + (size_t)(place.rank * (w.count / place.ranks)) * size;
  if (w.kind == TN_ALL_REDUCE || w.kind == TN_BROADCAST) w.to = from;
  return w;
}

static void run_and_await(const tn_collective *w) {
  OK(kind->run(&env, communicator, w, NULL));
  OK(kind->await(&env, communicator, ++begun));
  OK(kind->status(&env, communicator));
}

/* Of a mean, the values are multiples of the ranks, so that it is exact. Behind the result nothing changes,
 * nor does an operand that is not in place. */
static void try_one(tn_collective like, bool in_place) {
  tn_collective w = call_of(like, in_place);
  int64_t n = w.kind == TN_ALL_GATHER       ? w.count * place.ranks
              : w.kind == TN_REDUCE_SCATTER ? w.count / place.ranks
                                            : w.count;
  int scale = w.reduction == TN_REDUCTION_MEAN ? place.ranks : 1;
  size_t bytes = (size_t)n * tn_dtype_size(w.dtype), operand = (size_t)w.count * tn_dtype_size(w.dtype);
  memset(to, 0xA5, sizeof to);
  for (int64_t i = 0; i < w.count; i++)
    put(w.dtype, (unsigned char *)(uintptr_t)w.from, i, value_of(place.rank, i) * scale);
  memcpy(wanted, w.from, operand);
  run_and_await(&w);
  if (!in_place) CHECK(memcmp(wanted, w.from, operand) == 0);
  if (!in_place) CHECK(to[bytes] == 0xA5);
  for (int64_t i = 0; i < n; i++) put(w.dtype, wanted, i, expected(&w, i));
  if (memcmp(w.to, wanted, bytes) == 0) return;
  printf("kind %d, %s of %lld %s, in place %d\n", (int)w.kind, tn_reduction_name(w.reduction),
         (long long)w.count, tn_dtype_name(w.dtype), in_place);
  fail_at(__LINE__, "another result");
}

static void try_counts(tn_collective like) {
  static const int64_t counts[] = {1, 5, 61, COUNT};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
    for (int in_place = 0; in_place < 2; in_place++) {
      like.count = like.kind == TN_REDUCE_SCATTER ? counts[c] / place.ranks * place.ranks : counts[c];
      if (like.count > 0) try_one(like, in_place);
    }
}

static void try_all(void) {
  for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++) {
    int32_t last = tn_dtype_is_float(dtype) ? TN_REDUCTION_MEAN : TN_REDUCTION_MAX;
    for (int32_t reduction = TN_REDUCTION_SUM; reduction <= last && dtype != TN_BOOL; reduction++) {
      try_counts((tn_collective){.kind = TN_ALL_REDUCE, .reduction = reduction, .dtype = dtype});
      try_counts((tn_collective){.kind = TN_REDUCE_SCATTER, .reduction = reduction, .dtype = dtype});
    }
    try_counts((tn_collective){.kind = TN_BROADCAST, .dtype = dtype, .root = place.ranks - 1});
    try_counts((tn_collective){.kind = TN_ALL_GATHER, .dtype = dtype});
  }
}

static void try_refusals(void) {
  tn_collective w = call_of((tn_collective){.kind = TN_ALL_REDUCE, .dtype = TN_I32, .count = 4}, false);
  w.reduction = TN_REDUCTION_MEAN;
  CHECK(kind->run(&env, communicator, &w, NULL) == TN_EUNSUPPORTED);
  CHECK(strstr(text, "mpi: mean of i32 over ranks") != NULL);
  w.reduction = TN_REDUCTION_SUM;
  w.dtype = TN_BOOL;
  CHECK(kind->run(&env, communicator, &w, NULL) == TN_EUNSUPPORTED);
  w.dtype = TN_F32;
  w.kind = 9;
  CHECK(kind->run(&env, communicator, &w, NULL) == TN_EUNSUPPORTED);
  w.kind = TN_BROADCAST;
  w.root = place.ranks;
  CHECK(kind->run(&env, communicator, &w, NULL) == TN_EINVAL);
  w.count = 0;
  w.root = 0;
  OK(kind->run(&env, communicator, &w, NULL));
}

/* ---- order ---- */

static float noise(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

/* Sums that round: near the exact sum, of the same bits on all ranks, and in every repetition. */
static void try_sums_that_round(void) {
  enum { N = 200000 };
  float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y), *first = malloc(N * sizeof *first),
        *all = malloc((size_t)place.ranks * N * sizeof *all);
  double *sum = calloc(N, sizeof *sum);
  for (int32_t r = 0; r < place.ranks; r++) {
    uint32_t state = (uint32_t)r + 1;
    for (int i = 0; i < N; i++) {
      float v = noise(&state);
      sum[i] += (double)v;
      if (r == place.rank) x[i] = v;
    }
  }
  for (int time = 0; time < 20; time++) {
    pause_ms((long)((unsigned)(place.rank * 31 + time * 17) % 5));
    run_and_await(&(tn_collective){.kind = TN_ALL_REDUCE, .dtype = TN_F32, .count = N, .from = x, .to = y});
    if (time == 0) memcpy(first, y, N * sizeof *y);
    CHECK(memcmp(first, y, N * sizeof *y) == 0);
    for (int i = 0; i < N; i++) CHECK((double)y[i] - sum[i] < 4e-6 && sum[i] - (double)y[i] < 4e-6);
  }
  run_and_await(&(tn_collective){.kind = TN_ALL_GATHER, .dtype = TN_F32, .count = N, .from = y, .to = all});
  for (int32_t r = 0; r < place.ranks; r++) CHECK(memcmp(all + (size_t)r * N, y, N * sizeof *y) == 0);
  free(x), free(y), free(first), free(all), free(sum);
}

/* 600 collectives, more than the ring holds, each of which reads the result of the one before it. */
static void try_a_chain(void) {
  enum { LENGTH = 600, N = 100 };
  static int64_t a[N], b[N];
  for (int i = 0; i < N; i++) a[i] = place.rank + i;
  for (int k = 0; k < LENGTH; k++) {
    tn_collective w = {.kind = TN_ALL_REDUCE,
                       .reduction = TN_REDUCTION_MAX,
                       .dtype = TN_I64,
                       .count = N,
                       .from = k % 2 == 0 ? a : b,
                       .to = k % 2 == 0 ? b : a};
    OK(kind->run(&env, communicator, &w, NULL));
  }
  OK(kind->await(&env, communicator, begun += LENGTH));
  OK(kind->await(&env, communicator, 1)); /* long ago */
  for (int i = 0; i < N; i++) CHECK(a[i] == place.ranks - 1 + i && b[i] == a[i]);
}

/* The least of a number and a NaN is a NaN, and sums of integers wrap. */
static void try_numbers_at_the_edge(void) {
  float x[3] = {1, 2, 3}, least[3];
  int32_t top = INT32_MAX, wrapped;
  if (place.rank == place.ranks - 1) x[1] = __builtin_nanf("");
  run_and_await(&(tn_collective){.kind = TN_ALL_REDUCE,
                                 .reduction = TN_REDUCTION_MIN,
                                 .dtype = TN_F32,
                                 .count = 3,
                                 .from = x,
                                 .to = least});
  CHECK(least[0] == 1 && least[1] != least[1] && least[2] == 3);
  run_and_await(
      &(tn_collective){.kind = TN_ALL_REDUCE, .dtype = TN_I32, .count = 1, .from = &top, .to = &wrapped});
  CHECK((uint32_t)wrapped == (uint32_t)INT32_MAX * (uint32_t)place.ranks);
}

static void mode_all(void) {
  OK(open_rank());
  try_all();
  try_refusals();
  try_sums_that_round();
  try_a_chain();
  try_numbers_at_the_edge();
  kind->close(&env, communicator);
}

/* Runs one after another, and one rank much later than the others. */
static void mode_again(void) {
  for (int time = 0; time < 3; time++) {
    if (place.rank == time) pause_ms(300);
    begun = 0;
    OK(open_rank());
    void *first = communicator;
    CHECK(open_rank() == TN_EUNSUPPORTED && strstr(text, "one rank in each process at a time") != NULL);
    communicator = first;
    try_counts((tn_collective){.kind = TN_ALL_REDUCE, .dtype = TN_F32});
    kind->close(&env, communicator);
  }
}

/* ---- failure ---- */

/* Returns when all ranks have come to this place; they share the folder RANK_FOLDER. For ranks that the
 * communicator no longer brings together: mpirun ends the others when one has ended without MPI_Finalize. */
static void meet(const char *where) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s.%d", getenv("RANK_FOLDER"), where, (int)place.rank);
  FILE *own = fopen(path, "w");
  CHECK(own != NULL && fclose(own) == 0);
  for (int32_t r = 0; r < place.ranks; r++) {
    snprintf(path, sizeof path, "%s/%s.%d", getenv("RANK_FOLDER"), where, (int)r);
    while (access(path, F_OK) != 0) pause_ms(5);
  }
}

static tn_collective bucket(void) {
  return call_of((tn_collective){.kind = TN_ALL_REDUCE, .dtype = TN_F32, .count = 8}, false);
}

static void print_failure(double since) {
  tn_status awaited = kind->await(&env, communicator, 2), said = kind->status(&env, communicator);
  printf("rank %d: %d %d after %.1f s: %s\n", (int)place.rank, (int)awaited, (int)said,
         tn_monotonic_s() - since, text);
  fflush(stdout);
}

/* The last rank does not come to the second collective. */
static void mode_missing(void) {
  place.timeout_s = 10; /* the ranks come to the first collective within milliseconds */
  OK(open_rank());
  tn_collective w = bucket();
  w.name = "all_reduce of bucket 7";
  run_and_await(&w);
  double since = tn_monotonic_s();
  if (place.rank < place.ranks - 1) OK(kind->run(&env, communicator, &w, NULL));
  while (place.rank == place.ranks - 1 && kind->status(&env, communicator) == TN_OK) pause_ms(10);
  print_failure(since);
  CHECK(kind->run(&env, communicator, &w, NULL) == TN_ECOMM);
  kind->close(&env, communicator);
  CHECK(open_rank() == TN_EUNSUPPORTED && strstr(text, "a run of this process has failed before") != NULL);
  meet("end");
}

/* The last rank gives up while the others wait. */
static void mode_abort(void) {
  place.timeout_s = 600;
  OK(open_rank());
  tn_collective w = bucket();
  run_and_await(&w);
  double since = tn_monotonic_s();
  if (place.rank < place.ranks - 1) OK(kind->run(&env, communicator, &w, NULL));
  meet("begun");
  if (place.rank == place.ranks - 1) {
    kind->abort(&env, communicator);
    while (kind->status(&env, communicator) == TN_OK) pause_ms(10);
  }
  print_failure(since);
  kind->close(&env, communicator);
  meet("end");
}

/* The last rank never opens. */
static void mode_absent(void) {
  place.timeout_s = 1;
  double since = tn_monotonic_s();
  if (place.rank == place.ranks - 1) {
    meet("end");
    return;
  }
  tn_status opened = open_rank();
  printf("rank %d: %d after %.1f s: %s\n", (int)place.rank, (int)opened, tn_monotonic_s() - since, text);
  fflush(stdout);
  meet("end");
}

/* The last rank belongs to another run. */
static void mode_stranger(void) {
  if (place.rank == place.ranks - 1) identity[1] = 35;
  tn_status opened = open_rank();
  printf("rank %d: %d: %s\n", (int)place.rank, (int)opened, text);
  fflush(stdout);
  meet("end");
}

/* More ranks than processes of mpirun. */
static void mode_more(void) {
  place.ranks++;
  place.processes++;
  tn_status opened = open_rank();
  printf("rank %d: %d: %s\n", (int)place.rank, (int)opened, text);
}

static void mode_threads(void) {
  place.ranks = 4;
  place.processes = 1;
  CHECK(open_rank() == TN_EUNSUPPORTED);
  printf("rank %d: %s\n", (int)place.rank, text);
}

/* Microseconds of sums in place, of growing sizes. */
static void mode_speed(void) {
  static const int64_t counts[] = {1, 1 << 10, 1 << 16, 1 << 20, 6553600, 11 << 20};
  float *x = calloc(11 << 20, sizeof *x);
  OK(open_rank());
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
    for (int32_t k = TN_ALL_REDUCE; k <= TN_REDUCE_SCATTER; k += 2) {
      tn_collective w = {.kind = k, .dtype = TN_F32, .count = counts[c], .from = x, .to = x};
      if (k == TN_REDUCE_SCATTER) w.count -= w.count % place.ranks;
      if (k == TN_REDUCE_SCATTER) w.to = x + place.rank * (w.count / place.ranks);
      if (w.count == 0) continue;
      double since = 0;
      for (int time = 0; time < 12; time++) {
        if (time == 2) since = tn_monotonic_s();
        run_and_await(&w);
      }
      double us = 1e5 * (tn_monotonic_s() - since);
      if (place.rank == 0)
        printf("%s of %lld f32: %.0f us, %.2f GB/s\n", k == TN_ALL_REDUCE ? "all_reduce" : "reduce_scatter",
               (long long)w.count, us, 4e-3 * (double)w.count / us);
    }
  kind->close(&env, communicator);
  free(x);
}

/* ---- main ---- */

static int number_in(const char *one, const char *other, int otherwise) {
  const char *value = getenv(one) != NULL ? getenv(one) : getenv(other);
  return value != NULL ? atoi(value) : otherwise;
}

static void load(const char *path) {
  void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (file == NULL) snprintf(text, sizeof text, "%s", dlerror());
  CHECK(file != NULL);
  const tn_plugin *(*entry)(void) = (const tn_plugin *(*)(void))(uintptr_t)dlsym(file, TN_PLUGIN_SYMBOL);
  CHECK(entry != NULL);
  kind = (const tn_communicator *)entry()->items[0];
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } modes[] = {{"all", mode_all},     {"again", mode_again},     {"missing", mode_missing},
               {"abort", mode_abort}, {"absent", mode_absent},   {"stranger", mode_stranger},
               {"more", mode_more},   {"threads", mode_threads}, {"speed", mode_speed}};
  if (argc < 3) return 64;
  if (argc > 3) options.piece = atoll(argv[3]);
  place.rank = place.process = number_in("OMPI_COMM_WORLD_RANK", "PMI_RANK", 0);
  place.ranks = place.processes = number_in("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", argc > 4 ? atoi(argv[4]) : 1);
  load(argv[1]);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(argv[2], modes[i].name) == 0) modes[i].run();
  printf("rank %d: fine\n", (int)place.rank);
  return 0;
}
