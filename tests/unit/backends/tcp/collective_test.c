/* Collectives between threads and between processes, beside loops over the ranks' operands. */
#include "backends/shared/reduce.h"
#include "tests/unit/backends/tcp/rig.h"

static const int32_t dtypes[] = {TN_U8, TN_I32, TN_I64, TN_F16, TN_BF16, TN_F32, TN_F64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- operands ---- */

static uint32_t value_draw(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u; /* Numerical Recipes */
  return *state >> 9;
}

/* Numbers whose sums are rounded, the same on every call with the same rank and seed. */
static void value_fill(int32_t dtype, int32_t rank, uint32_t seed, void *to, int64_t count) {
  uint32_t state = seed * 977u + (uint32_t)rank * 131071u + 7u;
  for (int64_t i = 0; i < count; i++) {
    float f = (float)value_draw(&state) / (float)(1 << 20) - 3.0f;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    switch (dtype) {
    case TN_U8: ((uint8_t *)to)[i] = (uint8_t)bits; break;
    case TN_I32: ((int32_t *)to)[i] = (int32_t)(bits * 7u); break;
    case TN_I64: ((int64_t *)to)[i] = (int64_t)(bits * 0x100000007ull); break;
    case TN_F16: ((uint16_t *)to)[i] = (uint16_t)(0x3000 + (bits >> 7) % 0x1800); break; /* 0.125 .. 32 */
    case TN_BF16: ((uint16_t *)to)[i] = (uint16_t)(bits >> 16); break;
    case TN_F32: ((float *)to)[i] = f; break;
    default: ((double *)to)[i] = (double)f * 1.000000001;
    }
  }
}

/* ---- the results by a loop ---- */

typedef struct trial {
  tn_collective like;
  bool in_place;
  uint32_t seed;
} trial;

static int64_t trial_results(const trial *t, int32_t ranks) {
  return t->like.kind == TN_ALL_GATHER       ? t->like.count * ranks
         : t->like.kind == TN_REDUCE_SCATTER ? t->like.count / ranks
                                             : t->like.count;
}

static void trial_expect(const trial *t, int32_t rank, int32_t ranks, char *to) {
  const tn_collective *c = &t->like;
  size_t size = tn_dtype_size(c->dtype), bytes = (size_t)c->count * size;
  char *all = malloc(bytes * (size_t)ranks + 1);
  const void *from[RIG_RANKS];
  int64_t n = trial_results(t, ranks);
  for (int32_t r = 0; r < ranks; r++) {
    value_fill(c->dtype, r, t->seed, all + (size_t)r * bytes, c->count);
    from[r] = all + (size_t)r * bytes + (c->kind == TN_REDUCE_SCATTER ? (size_t)rank * (size_t)n * size : 0);
  }
  if (c->kind == TN_ALL_GATHER)
    memcpy(to, all, bytes * (size_t)ranks);
  else if (c->kind == TN_BROADCAST)
    memcpy(to, from[c->root], bytes);
  else
    tn_reduce(c->dtype, c->reduction, ranks, from, to, n);
  free(all);
}

/* Where operand and result lie; in place as the header says. */
static tn_collective trial_call(const trial *t, int32_t rank, int32_t ranks, char *from, char *to) {
  tn_collective c = t->like;
  size_t size = tn_dtype_size(c.dtype);
  c.struct_size = sizeof c;
  c.from = from;
  c.to = to;
  if (!t->in_place) return c;
  if (c.kind == TN_ALL_GATHER)
    c.from = to + (size_t)rank * (size_t)c.count * size;
  else
    c.to = from + (c.kind == TN_REDUCE_SCATTER ? (size_t)rank * (size_t)(c.count / ranks) * size : 0);
  return c;
}

static void trial_run(rig_rank *r, const trial *t) {
  int32_t rank = r->place.rank, ranks = r->place.ranks;
  size_t room = (size_t)t->like.count * (size_t)ranks * tn_dtype_size(t->like.dtype) + 64;
  char *from = calloc(1, room), *to = calloc(1, room), *expected = calloc(1, room);
  tn_collective c = trial_call(t, rank, ranks, from, to);
  value_fill(c.dtype, rank, t->seed, (void *)(uintptr_t)c.from, c.count);
  trial_expect(t, rank, ranks, expected);
  tn_status status = rig_call(r, &c);
  size_t bytes = (size_t)trial_results(t, ranks) * tn_dtype_size(c.dtype);
  bool same = memcmp(c.to, expected, bytes) == 0;
  free(from), free(to), free(expected);
  WANT_OK(r, status);
  WANT(r, same, "%s of %lld %s, reduction %d, root %d, in place %d: wrong result", tn_collective_name(c.kind),
       (long long)c.count, tn_dtype_name(c.dtype), (int)c.reduction, (int)c.root, (int)t->in_place);
}

/* ---- tests ---- */

static void try_counts(rig_rank *r, const tn_collective *like, const int64_t *counts, int32_t n) {
  for (int32_t i = 0; i < n && !r->wrong[0]; i++)
    for (int in_place = 0; in_place < 2 && !r->wrong[0]; in_place++) {
      trial t = {.like = *like, .in_place = in_place != 0, .seed = (uint32_t)(i + 3 * in_place)};
      int32_t ranks = r->place.ranks;
      t.like.count = like->kind == TN_REDUCE_SCATTER ? counts[i] / ranks * ranks : counts[i];
      trial_run(r, &t);
    }
}

static void try_every_kind(rig_rank *r, int32_t dtype, const int64_t *counts, int32_t n) {
  for (int32_t reduction = TN_REDUCTION_SUM; reduction <= TN_REDUCTION_MEAN; reduction++) {
    if (!tn_can_reduce(dtype, reduction)) continue;
    try_counts(r, &(tn_collective){.kind = TN_ALL_REDUCE, .reduction = reduction, .dtype = dtype}, counts, n);
    try_counts(r, &(tn_collective){.kind = TN_REDUCE_SCATTER, .reduction = reduction, .dtype = dtype}, counts,
               n);
  }
  for (int32_t root = 0; root < r->place.ranks; root++)
    try_counts(r, &(tn_collective){.kind = TN_BROADCAST, .dtype = dtype, .root = root}, counts, n);
  try_counts(r, &(tn_collective){.kind = TN_ALL_GATHER, .dtype = dtype}, counts, n);
}

/* Small, odd, around the limit of whole operands and around the ring of received bytes. */
static void try_every_type(rig_rank *r) {
  static const int64_t counts[] = {61, 4097, 0, 1, 5, 40013};
  for (int32_t d = 0; d < DTYPES && !r->wrong[0]; d++)
    try_every_kind(r, dtypes[d], counts, dtypes[d] == TN_F32 ? 6 : 2);
}

static void every_kind_and_type_between_threads(void **state) {
  (void)state;
  for (int32_t ranks = 1; ranks <= 4; ranks++) {
    rig_start(ranks, 60);
    rig_threads(try_every_type);
  }
}

static void every_kind_and_type_between_processes(void **state) {
  (void)state;
  for (int32_t ranks = 2; ranks <= 4; ranks++) {
    rig_start(ranks, 60);
    for (int32_t i = 0; i < ranks; i++) {
      rig[i].options.buffer = 4096; /* the rings go round often */
      rig[i].options.direct = 1000;
    }
    rig_processes(try_every_type);
  }
}

static void try_a_million(rig_rank *r) {
  static const int64_t million = 1000003;
  for (int32_t kind = TN_ALL_REDUCE; kind <= TN_ALL_GATHER; kind++)
    try_counts(r, &(tn_collective){.kind = kind, .dtype = TN_F32, .root = 1}, &million, 1);
}

static void a_million_elements(void **state) {
  (void)state;
  rig_start(3, 60);
  rig_processes(try_a_million);
}

/* ---- order and time ---- */

/* Collectives of random kinds and sizes, behind random pauses: the results do not depend on time. */
static uint32_t pause_seed;

static void try_pauses(rig_rank *r) {
  uint32_t shared = pause_seed, own = pause_seed * 31u + (uint32_t)r->place.rank;
  for (int i = 0; i < 8 && !r->wrong[0]; i++) {
    trial t = {.seed = pause_seed + (uint32_t)i, .in_place = value_draw(&shared) % 2 != 0};
    t.like.kind = (int32_t)(value_draw(&shared) % 4);
    t.like.dtype = dtypes[value_draw(&shared) % DTYPES];
    t.like.reduction = (int32_t)(value_draw(&shared) % (tn_dtype_is_float(t.like.dtype) ? 4 : 3));
    t.like.root = (int32_t)value_draw(&shared) % r->place.ranks;
    t.like.count = (int64_t)(value_draw(&shared) % 20000) * r->place.ranks;
    if (value_draw(&own) % 2 != 0) rig_pause_ms(value_draw(&own) % 6);
    trial_run(r, &t);
  }
}

static void random_pauses_change_no_bit(void **state) {
  (void)state;
  for (pause_seed = 1; pause_seed <= 20; pause_seed++) {
    rig_start(2 + (int32_t)pause_seed % 3, 60);
    if (pause_seed % 2 != 0)
      rig_threads(try_pauses);
    else
      rig_processes(try_pauses);
  }
}

/* Many collectives wait at once, and end in their order. */
static void run_far_ahead(rig_rank *r) {
  enum { AHEAD = 500 };
  static float values[4][AHEAD];
  float *own = values[r->place.rank];
  for (int i = 0; i < AHEAD; i++) {
    own[i] = (float)(i + r->place.rank);
    tn_collective c = rig_sum(&own[i], &own[i], 1);
    WANT_OK(r, tn_tcp_communicator.run(&r->env, r->communicator, &c, NULL));
  }
  for (int i = 0; i < AHEAD; i += 99) {
    WANT_OK(r, tn_tcp_communicator.await(&r->env, r->communicator, (uint64_t)i + 1));
    WANT(r, own[i] == (float)(4 * i + 6), "sum %d is %g", i, own[i]);
  }
  WANT_OK(r, tn_tcp_communicator.await(&r->env, r->communicator, AHEAD));
  WANT(r, own[AHEAD - 1] == (float)(4 * AHEAD + 2), "the last sum is %g", own[AHEAD - 1]);
}

static void collectives_that_wait_end_in_their_order(void **state) {
  (void)state;
  rig_start(4, 60);
  rig_threads(run_far_ahead);
}

/* Rank 1 comes when the queue of rank 0 is full. */
static void run_too_far_ahead(rig_rank *r) {
  float value[2] = {1, 2};
  tn_collective c = rig_sum(value, value, 1);
  if (r->place.rank == 1) return rig_await_stage(0, 1);
  int32_t before = atomic_load(&r->allocations);
  for (int i = 0; i < TN_TCP_QUEUE; i++)
    WANT_OK(r, tn_tcp_communicator.run(&r->env, r->communicator, &c, NULL));
  tn_status status = tn_tcp_communicator.run(&r->env, r->communicator, &c, NULL);
  WANT(r, atomic_load(&r->allocations) == before, "run allocates");
  tn_tcp_communicator.abort(&r->env, r->communicator);
  atomic_store(&r->stage, 1);
  WANT_FAILURE(r, status, "4096 collectives wait already");
}

static void too_many_that_wait_are_refused_without_waiting(void **state) {
  (void)state;
  rig_start(2, 60);
  rig_threads(run_too_far_ahead);
}

static void refuse_calls(rig_rank *r) {
  float values[4] = {0};
  tn_status (*run)(tn_env *, void *, const tn_collective *, void *) = tn_tcp_communicator.run;
  tn_collective c = rig_sum(values, values, 4);
  c.dtype = TN_BOOL;
  WANT(r, run(&r->env, r->communicator, &c, NULL) == TN_EUNSUPPORTED, "bool");
  c = rig_sum(values, values, 3);
  c.kind = TN_REDUCE_SCATTER;
  WANT(r, run(&r->env, r->communicator, &c, NULL) == TN_EINVAL, "3 elements over 2 ranks");
  c.kind = TN_BROADCAST;
  c.root = 2;
  WANT(r, run(&r->env, r->communicator, &c, NULL) == TN_EINVAL, "root 2 of 2");
  c.kind = 9;
  WANT(r, run(&r->env, r->communicator, &c, NULL) == TN_EUNSUPPORTED, "kind 9");
  c = rig_sum(values, values, 4);
  c.reduction = 9;
  WANT(r, run(&r->env, r->communicator, &c, NULL) == TN_EUNSUPPORTED, "reduction 9");
  WANT_OK(r, tn_tcp_communicator.status(&r->env, r->communicator));
}

static void calls_that_cannot_be_are_refused(void **state) {
  (void)state;
  rig_start(2, 60);
  rig_threads(refuse_calls);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_and_type_between_threads),
      cmocka_unit_test(every_kind_and_type_between_processes),
      cmocka_unit_test(a_million_elements),
      cmocka_unit_test(random_pauses_change_no_bit),
      cmocka_unit_test(collectives_that_wait_end_in_their_order),
      cmocka_unit_test(too_many_that_wait_are_refused_without_waiting),
      cmocka_unit_test(calls_that_cannot_be_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
