/* Collectives between simulated devices, each driven by a thread of its own. */
#include <pthread.h>
#include <time.h>

#include "backends/sim/communicator/group.h"
#include "tests/support/await.h"
#include "tests/support/test_clock.h"
#include "tests/unit/backends/sim/rig.h"

enum { MOST = 4, ROOM = 4 * 64 * 8 };

/* A handle with a message of its own: ranks fail at the same time. */
typedef struct speaker {
  tn_env env;
  char text[512];
} speaker;

static tn_status say(const void *handle, tn_status code, const char *option, const char *format, ...) {
  (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(((speaker *)(uintptr_t)handle)->text, sizeof((speaker *)0)->text, format, args);
  va_end(args);
  return code;
}

static void *give(const void *handle, size_t bytes) {
  (void)handle;
  return calloc(1, bytes);
}

static void take(const void *handle, void *block) {
  (void)handle;
  free(block);
}

static const tn_api table = {.struct_size = sizeof table, .fail = say, .alloc = give, .free = take};

typedef struct rank {
  speaker said;
  rig *device;
  tn_comm_device seat; /* what the host passes for the device */
  tn_comm_place place;
  const void *identity;
  void *communicator;
  char *from, *to;     /* of the device */
  unsigned char *host; /* staging */
  tn_status opened, ended;
  pthread_t thread;
} rank;

static rank all[MOST];
static unsigned char identity[64];
static const tn_communicator *const kind = &tn_sim_communicator;

static tn_sim_group_options options;                          /* of all ranks */
static int32_t (*asked_in_waits)(const tn_comm_place *place); /* their has_failed; NULL: none */

static void *native(tn_env *env, const tn_comm_device *seat, void *stream, const char *name) {
  return tn_sim_backend.native(env, seat->device, stream, name);
}

static void *no_native(tn_env *env, const tn_comm_device *seat, void *stream, const char *name) {
  return (void)env, (void)seat, (void)stream, (void)name, NULL;
}

static void *open_rank(void *arg) {
  rank *r = arg;
  r->opened = kind->open(&r->said.env, &options, &r->seat, &r->place, r->identity, &r->communicator);
  return NULL;
}

static void start(int32_t ranks, int32_t come, int32_t order, double timeout_s) {
  speaker host = {.env = {.api = &table}};
  OK(kind->identify(&host.env, NULL, NULL, identity));
  for (int32_t i = 0; i < come; i++) {
    all[i] = (rank){.said.env.api = &table,
                    .device = rig_open((tn_sim_options){.order = order, .seed = 3 + i}),
                    .place = {.rank = i,
                              .ranks = ranks,
                              .processes = 1,
                              .timeout_s = timeout_s,
                              .has_failed = asked_in_waits},
                    .identity = identity};
    rig *d = all[i].device;
    all[i].seat = (tn_comm_device){.struct_size = sizeof all[i].seat, .device = d->device, .native = native};
    void *memory[3];
    for (int k = 0; k < 3; k++)
      OK(d->b->memory_new(&d->env, d->device, k < 2 ? TN_MEMORY_DEVICE : TN_MEMORY_STAGING, ROOM,
                          &memory[k]));
    all[i].from = memory[0];
    all[i].to = memory[1];
    all[i].host = memory[2];
  }
  for (int32_t i = 0; i < come; i++) pthread_create(&all[i].thread, NULL, open_rank, &all[i]);
  for (int32_t i = 0; i < come; i++) pthread_join(all[i].thread, NULL);
}

static void end(int32_t come) {
  for (int32_t i = 0; i < come; i++) {
    rig *d = all[i].device;
    d->b->stream_wait(&all[i].said.env, d->streams[TN_STREAM_COMM]);
    if (all[i].communicator) kind->close(&all[i].said.env, all[i].communicator);
    void *memory[] = {all[i].from, all[i].to, all[i].host};
    for (int k = 0; k < 3; k++)
      d->b->memory_delete(&d->env, d->device, k < 2 ? TN_MEMORY_DEVICE : TN_MEMORY_STAGING, memory[k], ROOM);
    rig_close(d);
  }
}

/* ---- values ---- */

/* Small integers, which every type holds. */
static int value_of(int32_t r, int64_t i) { return (int)((7 * r + 3 * i) % 11); }

static void put(int32_t dtype, unsigned char *memory, int64_t i, int value) {
  uint16_t bits;
  float f = (float)value;
  uint32_t wide;
  memcpy(&wide, &f, 4);
  switch (dtype) {
  case TN_U8: memory[i] = (unsigned char)value; break;
  case TN_I32: ((int32_t *)memory)[i] = value; break;
  case TN_I64: ((int64_t *)memory)[i] = value; break;
  case TN_F32: ((float *)memory)[i] = f; break;
  case TN_F64: ((double *)memory)[i] = value; break;
  case TN_BF16:
    bits = (uint16_t)(wide >> 16);
    memcpy(memory + 2 * i, &bits, 2);
    break;
  default: /* f16: normal numbers */
    bits = value == 0 ? 0 : (uint16_t)((wide - 0x38000000) >> 13);
    memcpy(memory + 2 * i, &bits, 2);
  }
}

static const int32_t dtypes[] = {TN_U8, TN_I32, TN_I64, TN_F16, TN_BF16, TN_F32, TN_F64};

static int reduced(int32_t reduction, int32_t ranks, int64_t i) {
  int result = value_of(0, i);
  for (int32_t r = 1; r < ranks; r++) {
    int v = value_of(r, i);
    result = reduction == TN_REDUCTION_MIN   ? (v < result ? v : result)
             : reduction == TN_REDUCTION_MAX ? (v > result ? v : result)
                                             : result + v;
  }
  return result;
}

/* The expected element i of a rank's result. */
static int expected(const tn_collective *w, int32_t ranks, int32_t number, int64_t i) {
  switch (w->kind) {
  case TN_ALL_REDUCE: return reduced(w->reduction, ranks, i);
  case TN_BROADCAST: return value_of(w->root, i);
  case TN_REDUCE_SCATTER: return reduced(w->reduction, ranks, number * (w->count / ranks) + i);
  default: return value_of((int32_t)(i / w->count), i % w->count);
  }
}

static void fill_operand(rank *r, const tn_collective *w) {
  rig *d = r->device;
  bool mean = w->reduction == TN_REDUCTION_MEAN; /* a multiple of the ranks, so that the mean is exact */
  for (int64_t i = 0; i < w->count; i++)
    put(w->dtype, r->host, i, value_of(r->place.rank, i) * (mean ? r->place.ranks : 1));
  OK(d->b->copy(&d->env, d->streams[TN_STREAM_COMM], TN_COPY_TO_DEVICE, (void *)(uintptr_t)w->from, r->host,
                (uint64_t)w->count * tn_dtype_size(w->dtype)));
  OK(d->b->stream_wait(&d->env, d->streams[TN_STREAM_COMM]));
}

static void check_result(rank *r, const tn_collective *w, int32_t ranks) {
  rig *d = r->device;
  static unsigned char wanted[ROOM];
  int64_t n = w->kind == TN_ALL_GATHER       ? w->count * ranks
              : w->kind == TN_REDUCE_SCATTER ? w->count / ranks
                                             : w->count;
  size_t bytes = (size_t)n * tn_dtype_size(w->dtype);
  OK(d->b->stream_wait(&d->env, d->streams[TN_STREAM_COMM]));
  OK(d->b->copy(&d->env, d->out, TN_COPY_TO_HOST, r->host, w->to, bytes));
  OK(d->b->stream_wait(&d->env, d->out));
  for (int64_t i = 0; i < n; i++) put(w->dtype, wanted, i, expected(w, ranks, r->place.rank, i));
  assert_memory_equal(r->host, wanted, bytes);
}

/* Where operand and result lie; in place as the header says. */
static tn_collective call_of(const tn_collective *like, const rank *r, int32_t ranks, bool in_place) {
  tn_collective w = *like;
  size_t size = tn_dtype_size(w.dtype);
  w.struct_size = sizeof w;
  w.from = r->from;
  w.to = r->to;
  if (!in_place) return w;
  if (w.kind == TN_ALL_GATHER) w.from = r->to + (size_t)(r->place.rank * w.count) * size;
  if (w.kind == TN_REDUCE_SCATTER) w.to = r->from + (size_t)(r->place.rank * (w.count / ranks)) * size;
  if (w.kind == TN_ALL_REDUCE || w.kind == TN_BROADCAST) w.to = r->from;
  return w;
}

static void try_one(const tn_collective *like, int32_t ranks, bool in_place) {
  tn_collective calls[MOST];
  for (int32_t r = 0; r < ranks; r++) {
    calls[r] = call_of(like, &all[r], ranks, in_place);
    fill_operand(&all[r], &calls[r]);
  }
  for (int32_t r = 0; r < ranks; r++)
    OK(kind->run(&all[r].said.env, all[r].communicator, &calls[r], all[r].device->streams[TN_STREAM_COMM]));
  for (int32_t r = 0; r < ranks; r++) check_result(&all[r], &calls[r], ranks);
}

static void try_counts(tn_collective like, int32_t ranks) {
  static const int64_t counts[] = {1, 5, 61};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
    for (int in_place = 0; in_place < 2; in_place++) {
      like.count = like.kind == TN_REDUCE_SCATTER ? counts[c] / ranks * ranks : counts[c];
      if (like.count > 0) try_one(&like, ranks, in_place);
    }
}

static void collectives_give_what_they_say_for_every_type(void **state) {
  (void)state;
  static const int32_t orders[] = {TN_SIM_LAZY, TN_SIM_EAGER, TN_SIM_EAGER, TN_SIM_RANDOM};
  for (int32_t ranks = 1; ranks <= MOST; ranks++) {
    start(ranks, ranks, orders[ranks - 1], 60);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
      int32_t last = tn_dtype_is_float(dtypes[d]) ? TN_REDUCTION_MEAN : TN_REDUCTION_MAX;
      for (int32_t reduction = TN_REDUCTION_SUM; reduction <= last; reduction++) {
        try_counts((tn_collective){.kind = TN_ALL_REDUCE, .reduction = reduction, .dtype = dtypes[d]}, ranks);
        if (reduction == TN_REDUCTION_SUM || d % 3 == 0)
          try_counts((tn_collective){.kind = TN_REDUCE_SCATTER, .reduction = reduction, .dtype = dtypes[d]},
                     ranks);
      }
      try_counts((tn_collective){.kind = TN_BROADCAST, .dtype = dtypes[d], .root = ranks - 1}, ranks);
      try_counts((tn_collective){.kind = TN_ALL_GATHER, .dtype = dtypes[d]}, ranks);
    }
    end(ranks);
  }
}

static tn_collective sum_of(const rank *r, int64_t count) {
  return (tn_collective){.struct_size = sizeof(tn_collective),
                         .kind = TN_ALL_REDUCE,
                         .dtype = TN_F32,
                         .count = count,
                         .from = r->from,
                         .to = r->to,
                         .name = "bucket 7"};
}

static void zero_operand(rank *r) {
  OK(r->device->b->fill_zero(&r->device->env, r->device->streams[TN_STREAM_COMM], r->from, ROOM));
}

/* Enqueues a sum on some ranks, and how each ends. */
static void sum_on(int32_t ranks, const int64_t *counts) {
  for (int32_t i = 0; i < ranks; i++) {
    tn_collective w = sum_of(&all[i], counts[i]);
    zero_operand(&all[i]);
    if (counts[i] > 0)
      OK(kind->run(&all[i].said.env, all[i].communicator, &w, all[i].device->streams[TN_STREAM_COMM]));
  }
}

static void fails_saying(int32_t i, const char *text) {
  rank *r = &all[i];
  assert_int_equal(r->device->b->stream_wait(&r->said.env, r->device->streams[TN_STREAM_COMM]), TN_ECOMM);
  if (!strstr(r->said.text, text)) fail_msg("'%s' does not say '%s'", r->said.text, text);
  assert_int_equal(kind->status(&r->said.env, r->communicator), TN_ECOMM);
}

/* The limit of 60 s ends when the first ranks have come to their first collective. */
static void end_the_limit(int32_t come) {
  for (int32_t i = 0; i < come; i++) {
    tn_sim_part *part = all[i].communicator;
    AWAIT(atomic_load(&part->reached[TN_SIM_ARRIVED]) == 1);
  }
  test_clock_hold();
  test_clock_pass(61);
}

static void a_rank_that_does_not_come_is_named(void **state) {
  (void)state;
  start(3, 3, TN_SIM_EAGER, 60);
  OK(kind->status(&all[0].said.env, all[0].communicator));
  sum_on(3, (int64_t[]){8, 8, 0});
  end_the_limit(2);
  fails_saying(0, "rank 2 did not come to 'bucket 7' within 60 s");
  fails_saying(1, "rank 2 did not come to 'bucket 7' within 60 s");
  test_clock_run();
  end(3);
}

static void ranks_that_come_for_different_things_are_told(void **state) {
  (void)state;
  start(2, 2, TN_SIM_EAGER, 60);
  sum_on(2, (int64_t[]){8, 9});
  fails_saying(0, "all_reduce of 8 f32");
  fails_saying(1, "all_reduce of 9 f32");
  end(2);
}

static void giving_up_ends_what_others_wait_for(void **state) {
  (void)state;
  start(3, 3, TN_SIM_RANDOM, 600);
  sum_on(3, (int64_t[]){8, 8, 0});
  kind->abort(&all[2].said.env, all[2].communicator);
  fails_saying(0, "rank 2 has given up");
  fails_saying(1, "rank 2 has given up");
  end(3);
}

/* Asked by each rank that waits for the others: their limit ends when two do. */
static int32_t end_the_wait_of_two(const tn_comm_place *place) {
  static _Atomic(const tn_comm_place *) first;
  const tn_comm_place *none = NULL;
  if (!atomic_compare_exchange_strong(&first, &none, place) && none != place) test_clock_pass(61);
  return 0;
}

static void whoever_is_missing_at_the_start_is_named(void **state) {
  (void)state;
  asked_in_waits = end_the_wait_of_two;
  test_clock_hold();
  start(3, 2, TN_SIM_EAGER, 60);
  test_clock_run();
  asked_in_waits = NULL;
  for (int32_t i = 0; i < 2; i++) {
    assert_int_equal(all[i].opened, TN_ECOMM);
    assert_non_null(strstr(all[i].said.text, "of 3 ranks, 2 did not come within 60 s"));
  }
  /* the third comes too late, and lets go of what they shared */
  all[2] = all[1];
  all[2].place.rank = 2;
  open_rank(&all[2]);
  assert_int_equal(all[2].opened, TN_ECOMM);
  end(2);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  start(2, 2, TN_SIM_EAGER, 60);
  tn_env *env = &all[0].said.env;
  void *stream = all[0].device->streams[TN_STREAM_COMM];
  tn_collective w = sum_of(&all[0], 8);
  w.dtype = TN_BOOL;
  assert_int_equal(kind->run(env, all[0].communicator, &w, stream), TN_EUNSUPPORTED);
  w.dtype = TN_I32;
  w.reduction = TN_REDUCTION_MEAN;
  assert_int_equal(kind->run(env, all[0].communicator, &w, stream), TN_EUNSUPPORTED);
  assert_non_null(strstr(all[0].said.text, "sim: all_reduce, mean of i32"));
  w = sum_of(&all[0], 9);
  w.kind = TN_REDUCE_SCATTER;
  assert_int_equal(kind->run(env, all[0].communicator, &w, stream), TN_EINVAL);
  w.kind = TN_BROADCAST;
  w.root = 2;
  assert_int_equal(kind->run(env, all[0].communicator, &w, stream), TN_EINVAL);
  w.kind = 9;
  assert_int_equal(kind->run(env, all[0].communicator, &w, stream), TN_EUNSUPPORTED);
  w = sum_of(&all[0], 0);
  OK(kind->run(env, all[0].communicator, &w, stream));
  end(2);
}

/* ---- as with NCCL: failures show in the status alone ---- */

static bool done(int32_t i, void *event) {
  int32_t ended = 0;
  OK(all[i].device->b->event_done(&all[i].said.env, event, &ended));
  return ended != 0;
}

static void a_failure_shows_in_the_status_and_the_stream_waits_until_it_is_given_up(void **state) {
  (void)state;
  options.failure = TN_SIM_FAILS_STATUS;
  start(2, 2, TN_SIM_EAGER, 60);
  sum_on(2, (int64_t[]){8, 0});
  end_the_limit(1);
  rig *d = all[0].device;
  void *event = rig_event(d), *stream = d->streams[TN_STREAM_COMM];
  assert_true(done(0, event)); /* never recorded */
  OK(d->b->event_record(&all[0].said.env, event, stream));
  AWAIT(kind->status(&all[0].said.env, all[0].communicator) != TN_OK);
  test_clock_run();
  assert_non_null(strstr(all[0].said.text, "rank 1 did not come to 'bucket 7' within 60 s"));
  assert_false(done(0, event));
  kind->abort(&all[0].said.env, all[0].communicator);
  OK(d->b->stream_wait(&all[0].said.env, stream)); /* no failed work */
  assert_true(done(0, event));
  assert_int_equal(kind->status(&all[1].said.env, all[1].communicator), TN_ECOMM);
  assert_non_null(strstr(all[1].said.text, "rank 1 did not come")); /* the first failure stays */
  d->b->event_delete(&all[0].said.env, event);
  end(2);
  options.failure = TN_SIM_FAILS_STREAM;
}

static void a_device_without_the_interface_is_refused(void **state) {
  (void)state;
  start(1, 1, TN_SIM_EAGER, 60);
  tn_comm_device other = {.struct_size = sizeof other, .native = no_native};
  void *communicator = NULL;
  assert_int_equal(kind->open(&all[0].said.env, &options, &other, &all[0].place, identity, &communicator),
                   TN_EUNSUPPORTED);
  assert_non_null(strstr(all[0].said.text, "sim.1"));
  assert_null(tn_sim_backend.native(&all[0].said.env, all[0].device->device, NULL, "sim.2"));
  end(1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_give_what_they_say_for_every_type),
      cmocka_unit_test(a_rank_that_does_not_come_is_named),
      cmocka_unit_test(ranks_that_come_for_different_things_are_told),
      cmocka_unit_test(giving_up_ends_what_others_wait_for),
      cmocka_unit_test(whoever_is_missing_at_the_start_is_named),
      cmocka_unit_test(what_cannot_be_is_refused),
      cmocka_unit_test(a_failure_shows_in_the_status_and_the_stream_waits_until_it_is_given_up),
      cmocka_unit_test(a_device_without_the_interface_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
