/* The communicator nccl between four devices of the double of CUDA. */
#include "tests/unit/backends/nccl/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

/* Small integers, which every type holds; a mean over four ranks is one, too. */
static int value_of(int32_t r, int64_t i) { return (int)((4 * r + 8 * i) % 44); }

static void put(int32_t dtype, unsigned char *memory, int64_t i, int value) {
  uint16_t bits;
  float f = (float)value;
  uint32_t wide;
  memcpy(&wide, &f, 4);
  switch (dtype) {
  case TN_BOOL:
  case TN_U8: memory[i] = (unsigned char)value; break;
  case TN_I32: ((int32_t *)(void *)memory)[i] = value; break;
  case TN_I64: ((int64_t *)(void *)memory)[i] = value; break;
  case TN_F32: ((float *)(void *)memory)[i] = f; break;
  case TN_F64: ((double *)(void *)memory)[i] = value; break;
  case TN_BF16:
    bits = (uint16_t)(wide >> 16);
    memcpy(memory + 2 * i, &bits, 2);
    break;
  default: /* f16: normal numbers */
    bits = value == 0 ? 0 : (uint16_t)((wide - 0x38000000) >> 13);
    memcpy(memory + 2 * i, &bits, 2);
  }
}

enum { MEAN = 3 };

static int reduced(int32_t reduction, int32_t ranks, int64_t i) {
  int result = value_of(0, i);
  for (int32_t r = 1; r < ranks; r++) {
    int v = value_of(r, i);
    result = reduction == TN_REDUCTION_MIN   ? (v < result ? v : result)
             : reduction == TN_REDUCTION_MAX ? (v > result ? v : result)
                                             : result + v;
  }
  return reduction == MEAN ? result / ranks : result;
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
  for (int64_t i = 0; i < w->count; i++) put(w->dtype, r->host, i, value_of(r->number, i));
  OK(cuda->copy(&r->said.env, r->stream, TN_COPY_TO_DEVICE, (void *)(uintptr_t)w->from, r->host,
                (uint64_t)w->count * tn_dtype_size(w->dtype)));
  OK(cuda->stream_wait(&r->said.env, r->stream));
}

static void check_result(rank *r, const tn_collective *w, int32_t ranks) {
  static unsigned char wanted[ROOM];
  int64_t n = w->kind == TN_ALL_GATHER       ? w->count * ranks
              : w->kind == TN_REDUCE_SCATTER ? w->count / ranks
                                             : w->count;
  size_t bytes = (size_t)n * tn_dtype_size(w->dtype);
  OK(cuda->stream_wait(&r->said.env, r->stream));
  OK(cuda->copy(&r->said.env, r->copies, TN_COPY_TO_HOST, r->host, w->to, bytes));
  OK(cuda->stream_wait(&r->said.env, r->copies));
  for (int64_t i = 0; i < n; i++) put(w->dtype, wanted, i, expected(w, ranks, r->number, i));
  assert_memory_equal(r->host, wanted, bytes);
}

/* Where operand and result lie; in place as the header says. */
static tn_collective call_of(const tn_collective *like, const rank *r, int32_t ranks, bool in_place) {
  tn_collective w = *like;
  size_t size = tn_dtype_size(w.dtype);
  w.struct_size = sizeof w;
  w.name = "bucket 7";
  w.from = r->from;
  w.to = r->to;
  if (!in_place) return w;
  if (w.kind == TN_ALL_GATHER) w.from = r->to + (size_t)(r->number * w.count) * size;
  if (w.kind == TN_REDUCE_SCATTER) w.to = r->from + (size_t)(r->number * (w.count / ranks)) * size;
  if (w.kind == TN_ALL_REDUCE || w.kind == TN_BROADCAST) w.to = r->from;
  return w;
}

static tn_collective calls[MOST];
static const tn_collective *const given[MOST] = {&calls[0], &calls[1], &calls[2], &calls[3]};

static void make_calls(const tn_collective *like, int32_t ranks, bool in_place) {
  for (int32_t r = 0; r < ranks; r++) {
    calls[r] = call_of(like, &all[r], ranks, in_place);
    fill_operand(&all[r], &calls[r]);
  }
}

static void all_are_well(int32_t ranks) {
  for (int32_t r = 0; r < ranks; r++)
    if (all[r].status != TN_OK) fail_msg("rank %d: %s", (int)r, all[r].said.text);
}

enum { FOR_EVER_S = 100000 }; /* a limit that would end after that of the test */

static void start(int32_t ranks, double timeout_s) {
  ranks_start(ranks, ranks, NULL, timeout_s);
  for (int32_t r = 0; r < ranks; r++)
    if (all[r].opened != TN_OK) fail_msg("rank %d: %s", (int)r, all[r].said.text);
}

static void try_one(const tn_collective *like, int32_t ranks, bool in_place) {
  make_calls(like, ranks, in_place);
  ranks_run(ranks, given);
  all_are_well(ranks);
  for (int32_t r = 0; r < ranks; r++) check_result(&all[r], &calls[r], ranks);
}

static void try_counts(tn_collective like, int32_t ranks) {
  static const int64_t counts[] = {1, 61};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
    for (int in_place = 0; in_place < 2; in_place++) {
      like.count = like.kind == TN_REDUCE_SCATTER ? counts[c] / ranks * ranks : counts[c];
      if (like.count > 0) try_one(&like, ranks, in_place);
    }
}

static const int32_t dtypes[] = {TN_U8, TN_I32, TN_I64, TN_F16, TN_BF16, TN_F32, TN_F64};

static void collectives_give_what_they_say_for_every_type(void **state) {
  (void)state;
  for (int32_t ranks = 1; ranks <= MOST; ranks += 3) {
    start(ranks, 60);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
      for (int32_t reduction = TN_REDUCTION_SUM; reduction <= MEAN; reduction++) {
        bool drops_nan = reduction == TN_REDUCTION_MIN || reduction == TN_REDUCTION_MAX;
        if (!drops_nan || !tn_dtype_is_float(dtypes[d]))
          try_counts((tn_collective){.kind = TN_ALL_REDUCE, .reduction = reduction, .dtype = dtypes[d]},
                     ranks);
        if (d % 3 == 0)
          try_counts((tn_collective){.kind = TN_REDUCE_SCATTER, .reduction = reduction, .dtype = dtypes[d]},
                     ranks);
      }
      try_counts((tn_collective){.kind = TN_BROADCAST, .dtype = dtypes[d], .root = ranks - 1}, ranks);
      try_counts((tn_collective){.kind = TN_ALL_GATHER, .dtype = dtypes[d]}, ranks);
    }
    try_counts((tn_collective){.kind = TN_ALL_GATHER, .dtype = TN_BOOL}, ranks);
    for (int32_t r = 0; r < ranks; r++) OK(kind->status(&all[r].said.env, all[r].communicator));
    ranks_end(ranks);
  }
}

static const tn_collective sum = {.kind = TN_ALL_REDUCE, .dtype = TN_F32, .count = 61};

static void a_captured_collective_runs_in_every_replay(void **state) {
  (void)state;
  start(4, 60);
  make_calls(&sum, 4, false);
  ranks_capture(4, given);
  all_are_well(4);
  for (int replay = 0; replay < 3; replay++) {
    for (int32_t r = 0; r < 4; r++) fill_operand(&all[r], &calls[r]);
    ranks_do(4, rank_replay);
    all_are_well(4);
    for (int32_t r = 0; r < 4; r++) check_result(&all[r], &calls[r], 4);
  }
  ranks_end(4);
}

static void a_call_that_is_in_progress_is_waited_for(void **state) {
  (void)state;
  rig_set("FAKENCCL_PROGRESS", "7");
  start(2, 60);
  try_one(&sum, 2, true);
  ranks_end(2);
}

/* The oldest library and each that differs from the one before it in what the communicator must do. */
static const char *const library_versions[] = {"21805", "21903", "22105", "22203", "22507",
                                               "22703", "22809", "22907", "23007"};
enum { VERSIONS = sizeof library_versions / sizeof *library_versions };

/* open and run each are on a thread that has ended when the next one begins. */
static void the_threads_of_calls_may_end(void **state) {
  (void)state;
  for (int v = 0; v < VERSIONS; v++) {
    rig_set("FAKENCCL_VERSION", library_versions[v]);
    rig_set("FAKENCCL_PROGRESS", "2");
    start(2, 60);
    for (int i = 0; i < 2; i++) try_one(&sum, 2, true);
    ranks_end(2);
  }
}

static void no_elements_are_no_collective(void **state) {
  (void)state;
  start(2, 60);
  tn_collective none = {.kind = TN_ALL_REDUCE, .dtype = TN_F32, .count = 0};
  OK(kind->run(&all[0].said.env, all[0].communicator, &none, all[0].stream)); /* on one rank alone */
  OK(kind->status(&all[0].said.env, all[0].communicator));
  try_one(&sum, 2, false);
  ranks_end(2);
}

static void refuses(tn_collective call, const char *text) {
  assert_int_equal(kind->run(&all[0].said.env, all[0].communicator, &call, all[0].stream), TN_EUNSUPPORTED);
  says(&all[0], text);
}

static void what_nccl_has_not_is_refused(void **state) {
  (void)state;
  start(2, 60);
  refuses((tn_collective){.kind = 9, .dtype = TN_F32, .count = 2}, "there is no collective 9");
  refuses((tn_collective){.kind = TN_ALL_REDUCE, .dtype = TN_BOOL, .count = 2},
          "ncclAllReduce of 2 bool, reduction 0, root 0, over 2 ranks: NCCL has no such type");
  refuses((tn_collective){.kind = TN_ALL_GATHER, .dtype = TN_DTYPES, .count = 2}, "NCCL has no such type");
  refuses((tn_collective){.kind = TN_ALL_REDUCE, .dtype = TN_F32, .reduction = 4, .count = 2},
          "reduction 4, root 0, over 2 ranks: there is no such reduction, expected sum, min, max or mean");
  refuses((tn_collective){.kind = TN_ALL_REDUCE, .dtype = TN_BF16, .reduction = TN_REDUCTION_MAX, .count = 2},
          "NCCL's min and max of floats leave NaN out");
  refuses((tn_collective){.kind = TN_REDUCE_SCATTER, .dtype = TN_F32, .count = 3},
          "ncclReduceScatter of 3 f32");
  refuses((tn_collective){.kind = TN_BROADCAST, .dtype = TN_F32, .count = 2, .root = 2},
          "expected a rank as root");
  ranks_end(2);
}

/* ---- memory of NCCL ---- */

static void take_memory(rank *r) {
  tn_env *env = &r->said.env;
  r->status = kind->memory_new(env, &options, &r->seat, ROOM, &r->shared);
  if (r->status == TN_OK && r->shared != NULL)
    r->status = kind->attach(env, r->communicator, r->shared, ROOM);
}

static void give_memory_back(rank *r) {
  if (r->shared == NULL) return;
  kind->detach(&r->said.env, r->communicator, r->shared, ROOM);
  kind->memory_delete(&r->said.env, &options, &r->seat, r->shared, ROOM);
}

static void collectives_work_in_memory_of_nccl(void **state) {
  (void)state;
  static const char *const oldest[] = {"21800", "21900", "22907"};
  for (options.memory = TN_NCCL_DEVICE; options.memory <= TN_NCCL_SYMMETRIC; options.memory++) {
    rig_set("FAKENCCL_PROGRESS", "2");
    rig_set("FAKENCCL_VERSION", oldest[options.memory]);
    start(4, 60);
    ranks_do(4, take_memory);
    all_are_well(4);
    for (int32_t r = 0; r < 4; r++)
      assert_true((all[r].shared != NULL) == (options.memory != TN_NCCL_DEVICE));
    make_calls(&sum, 4, false);
    for (int32_t r = 0; r < 4 && all[r].shared != NULL; r++) {
      calls[r].to = all[r].shared;
      calls[r].from = (char *)all[r].shared + ROOM / 2;
      fill_operand(&all[r], &calls[r]);
    }
    ranks_run(4, given);
    all_are_well(4);
    for (int32_t r = 0; r < 4; r++) check_result(&all[r], &calls[r], 4);
    ranks_do(4, give_memory_back);
    ranks_end(4);
  }
  options.memory = TN_NCCL_DEVICE;
}

/* It is freed after the communicator was given up, which has let go of the registration. */
static void memory_of_nccl_outlives_giving_up(void **state) {
  (void)state;
  options.memory = TN_NCCL_SYMMETRIC;
  rig_set("FAKENCCL_VERSION", "22907");
  start(2, 60);
  ranks_do(2, take_memory);
  all_are_well(2);
  for (int32_t r = 0; r < 2; r++) kind->abort(&all[r].said.env, all[r].communicator);
  ranks_do(2, give_memory_back);
  ranks_end(2);
  options.memory = TN_NCCL_DEVICE;
}

/* NCCL's thread goes on with a registration that rank 1 has not come to in time. */
static void memory_that_a_rank_does_not_register_is_given_up(void **state) {
  (void)state;
  options.memory = TN_NCCL_SYMMETRIC;
  rig_set("FAKENCCL_VERSION", "22907");
  start(2, 60);
  all[0].place.has_failed = rig_end_limit;
  test_clock_hold();
  take_memory(&all[0]);
  test_clock_run();
  assert_int_equal(all[0].status, TN_ECOMM);
  says(&all[0], "ncclCommWindowRegister has waited for the other ranks for 60 s");
  take_memory(&all[1]); /* too late */
  for (int32_t r = 0; r < 2; r++) give_memory_back(&all[r]);
  ranks_end(2);
  options.memory = TN_NCCL_DEVICE;
}

static void an_older_library_has_no_such_memory(void **state) {
  (void)state;
  static const char *const versions[] = {"21800", "22903"},
                           *const texts[] = {"memory = registered needs NCCL 2.19 or later, but ",
                                             "memory = symmetric needs NCCL 2.29.7 or later, but "};
  for (int i = 0; i < 2; i++) {
    rig_set("FAKENCCL_VERSION", versions[i]);
    options.memory = i == 0 ? TN_NCCL_REGISTERED : TN_NCCL_SYMMETRIC;
    ranks_start(2, 2, NULL, FOR_EVER_S);
    assert_int_equal(all[0].opened, TN_EUNAVAILABLE);
    says(&all[0], texts[i]);
    ranks_end(2);
    options.memory--; /* what it has is enough */
    rig_set("FAKENCCL_VERSION", versions[i]);
    start(2, FOR_EVER_S);
    try_one(&sum, 2, true);
    ranks_end(2);
  }
  options.memory = TN_NCCL_DEVICE;
}

/* ---- failures ---- */

/* Rank 2 has been in one collective and does not come to the next. */
static void a_rank_that_does_not_come_is_named(void **state) {
  (void)state;
  start(4, 60);
  try_one(&sum, 4, false);
  make_calls(&sum, 4, false);
  for (int32_t r = 0; r < 4; r++) calls[r].name = "bucket 8";
  ranks_run(4, (const tn_collective *const[]){&calls[0], &calls[1], NULL, &calls[3]});
  all_are_well(4);
  rank_enters(&all[1]);
  rank_enters(&all[3]);
  rank_ends_limit(&all[0]);
  rank_fails(&all[0], "has waited in 'bucket 8' for 61");
  test_clock_run();
  rank_fails(&all[3], "rank 2 has not come to it, and is behind 'bucket 7'");
  rank_fails(&all[2], "rank 2 has not come to it, and is behind 'bucket 7'");
  for (int32_t r = 0; r < 4; r++) kind->abort(&all[r].said.env, all[r].communicator);
  ranks_end(4); /* the streams end */
}

/* NCCL 2.22 waits in the call, which has the lock. */
static void a_call_that_does_not_return_is_reported(void **state) {
  (void)state;
  static const char *const texts[] = {"rank 0 on device 0: a call of NCCL has not returned for 61",
                                      "rank 1 has not come to it, nor to any before it"};
  for (int follow = 0; follow < 2; follow++) {
    options.follow = follow;
    rig_set("FAKENCCL_VERSION", "22203");
    start(2, 60);
    make_calls(&sum, 2, false);
    ranks_run_begin(2, (const tn_collective *const[]){&calls[0], NULL});
    rank_ends_limit(&all[0]);
    rank_fails(&all[0], texts[follow]);
    test_clock_run();
    for (int32_t r = 0; r < 2; r++) kind->abort(&all[r].said.env, all[r].communicator);
    ranks_run_end(2);
    assert_int_equal(all[0].status, TN_ECOMM);
    ranks_end(2);
  }
}

static void calls_that_block_are_refused(void **state) {
  (void)state;
  rig_set("NCCL_COMM_BLOCKING", "1");
  ranks_start(2, 2, NULL, FOR_EVER_S);
  for (int32_t r = 0; r < 2; r++) {
    assert_int_not_equal(all[r].opened, TN_OK);
    if (strstr(all[r].said.text, "has failed to join") == NULL)
      says(&all[r],
           "the environment variable NCCL_COMM_BLOCKING is 1, with which NCCL waits for other ranks without "
           "a limit; unset it");
  }
  ranks_end(2);
}

/* NCCL's thread launches nothing after run has failed: nothing writes to the result. The pause is the time in
 * which it would; on a slow machine it is too short to show that, and fails nothing. */
static void a_late_call_is_given_up(void **state) {
  (void)state;
  for (int captured = 0; captured < 2; captured++) {
    rig_set("FAKENCCL_LATE", "1500000");
    start(2, 60);
    make_calls(&sum, 2, false);
    for (int32_t r = 0; r < 2; r++) {
      all[r].place.has_failed = rig_end_limit;
      tn_collective like = calls[r];
      like.from = all[r].to;
      fill_operand(&all[r], &like);
    }
    test_clock_hold();
    (captured ? ranks_capture : ranks_run)(2, given);
    test_clock_run();
    for (int32_t r = 0; r < 2; r++) {
      assert_int_equal(all[r].status, TN_ECOMM);
      says(&all[r], "could not be enqueued within 60 s");
    }
    nanosleep(&(struct timespec){1, 700000000}, NULL);
    for (int32_t r = 0; r < 2; r++) {
      tn_collective same = {
          .kind = TN_BROADCAST, .dtype = TN_F32, .count = sum.count, .to = all[r].to, .root = r};
      check_result(&all[r], &same, 2);
      kind->abort(&all[r].said.env, all[r].communicator);
    }
    ranks_end(2);
  }
}

static void a_rank_that_does_not_come_to_a_replay_is_named(void **state) {
  (void)state;
  start(2, 60);
  make_calls(&sum, 2, false);
  ranks_capture(2, given);
  ranks_do(2, rank_replay);
  ranks_do(2, rank_wait);
  all_are_well(2);
  for (int i = 0; i < 3; i++) OK(kind->status(&all[0].said.env, all[0].communicator));
  rank_replay(&all[0]);
  OK(all[0].status);
  rank_ends_limit(&all[0]);
  rank_fails(&all[0], "rank 0 on device 0 has waited in 'bucket 7'");
  test_clock_run();
  says(&all[0], "rank 1 has not come to it, and is behind 'bucket 7'"); /* of the replay before */
  for (int32_t r = 0; r < 2; r++) kind->abort(&all[r].said.env, all[r].communicator);
  ranks_end(2);
}

static void giving_up_ends_what_others_wait_for(void **state) {
  (void)state;
  start(4, FOR_EVER_S);
  make_calls(&sum, 4, false);
  ranks_run(4, (const tn_collective *const[]){&calls[0], &calls[1], NULL, NULL});
  kind->abort(&all[2].said.env, all[2].communicator);
  rank_fails(&all[0], "rank 2 has given up");
  rank_fails(&all[1], "rank 2 has given up");
  for (int32_t r = 0; r < 4; r++) kind->abort(&all[r].said.env, all[r].communicator);
  assert_int_not_equal(kind->run(&all[0].said.env, all[0].communicator, &calls[0], all[0].stream), TN_OK);
  says(&all[0], "rank 2 has given up");
  ranks_end(4);
}

/* NCCL's abort waits for graphs that have collectives. */
static void giving_up_does_not_wait_for_captures(void **state) {
  (void)state;
  start(2, FOR_EVER_S);
  make_calls(&sum, 2, false);
  ranks_capture(2, given);
  all_are_well(2);
  for (int32_t r = 0; r < 2; r++) kind->abort(&all[r].said.env, all[r].communicator);
  ranks_end(2);
}

static _Atomic(int32_t) asked; /* a bit for each rank */

/* The limit ends when two ranks wait. */
static int32_t end_limit_of_two(const tn_comm_place *place) {
  int32_t before = atomic_fetch_or(&asked, 1 << place->rank);
  return (before | 1 << place->rank) == 3 ? rig_end_limit(place) : 0;
}

static void miss_rank_2(const char *version) {
  rig_set("FAKENCCL_VERSION", version);
  rig_has_failed = end_limit_of_two;
  atomic_store(&asked, 0);
  test_clock_hold();
  ranks_start(3, 2, NULL, 60);
  test_clock_run();
  rig_has_failed = NULL;
  bool named = false;
  for (int32_t r = 0; r < 2; r++) {
    assert_int_equal(all[r].opened, TN_ECOMM);
    named = named || strstr(all[r].said.text, "waited for all 3 ranks for 60 s: rank 2 did not come");
  }
  assert_true(named);
  /* the third comes too late, and lets go of the group */
  all[2] = all[1];
  all[2].place.rank = 2;
  rank_open_late(&all[2]);
  assert_int_equal(all[2].opened, TN_ECOMM);
  ranks_end(2);
}

static atomic_bool closed;

static void *pass_until_closed(void *arg) {
  AWAIT((test_clock_pass(1), atomic_load(&closed)));
  return arg;
}

/* The object then stays, for the thread that still destroys. */
static void close_has_a_limit(void **state) {
  (void)state;
  static void *left[2];
  pthread_t time;
  start(2, 60);
  try_one(&sum, 2, true);
  rig_set("FAKENCCL_HANG", "ncclCommDestroy:8000000");
  test_clock_hold();
  assert_int_equal(pthread_create(&time, NULL, pass_until_closed, NULL), 0);
  for (int32_t r = 0; r < 2; r++) {
    left[r] = all[r].communicator;
    all[r].communicator = NULL;
    kind->close(&all[r].said.env, left[r]);
  }
  atomic_store(&closed, true);
  pthread_join(time, NULL);
  test_clock_run();
  for (int32_t r = 0; r < 2; r++) AWAIT(atomic_load(&((tn_nccl_rank *)left[r])->ended));
  ranks_end(2);
}

static void a_rank_that_never_opens_is_named(void **state) {
  (void)state;
  for (int v = 0; v < VERSIONS; v++) miss_rank_2(library_versions[v]);
}

static void two_ranks_on_one_device_are_refused(void **state) {
  (void)state;
  ranks_start(2, 2, (const int32_t[]){1, 1}, 20);
  bool named = false;
  for (int32_t r = 0; r < 2; r++) {
    assert_int_not_equal(all[r].opened, TN_OK);
    named = named || (strstr(all[r].said.text, "Duplicate GPU") &&
                      strstr(all[r].said.text, "rank 0 on device 1, rank 1 on device 1"));
  }
  if (!named) fail_msg("'%s', '%s'", all[0].said.text, all[1].said.text);
  rig_logs("Duplicate GPU detected");
  ranks_end(2);
}

static void what_nccl_reports_is_told(void **state) {
  (void)state;
  bool told = false;
  rig_set("FAKENCCL_FAIL", "ncclCommInitRankConfig:1=2");
  ranks_start(2, 2, NULL, FOR_EVER_S);
  for (int32_t r = 0; r < 2; r++) {
    assert_int_equal(all[r].opened, TN_ECOMM);
    if (strstr(all[r].said.text, "ncclCommInitRankConfig (") == NULL) continue;
    says(&all[r], r == 0 ? "nccl: rank 0 on device 0: " : "nccl: rank 1 on device 1: ");
    says(&all[r], "NCCL_DEBUG=INFO");
    told = true;
  }
  assert_true(told);
  ranks_end(2);
  rig_set("FAKENCCL_FAIL", "ncclAllReduce:1@0=1");
  start(2, FOR_EVER_S);
  make_calls(&sum, 2, false);
  ranks_run(2, (const tn_collective *const[]){&calls[0], NULL});
  assert_int_equal(all[0].status, TN_EDEVICE);
  says(&all[0], "nccl: rank 0 on device 0: ncclAllReduce: ");
  for (int32_t r = 0; r < 2; r++) kind->abort(&all[r].said.env, all[r].communicator);
  ranks_end(2);
}

/* The stream writes nothing, and the status knows only what NCCL tells. */
static void following_can_be_left_out(void **state) {
  (void)state;
  options.follow = 0;
  start(2, 60);
  try_one(&sum, 2, true);
  assert_null(((const tn_nccl_rank *)all[0].communicator)->follow.word);
  make_calls(&sum, 2, false);
  ranks_run(2, (const tn_collective *const[]){&calls[0], NULL});
  test_clock_hold();
  for (int i = 0; i < 3; i++) {
    OK(kind->status(&all[0].said.env, all[0].communicator));
    test_clock_pass(61);
  }
  test_clock_run();
  for (int32_t r = 0; r < 2; r++) kind->abort(&all[r].said.env, all[r].communicator);
  ranks_end(2);
  options.follow = 1;
}

/* A driver may capture a write, and then not run the graph. */
static void captures_that_do_not_run_are_not_followed(void **state) {
  (void)state;
  static const char *const calls_that_fail[] = {"cuGraphInstantiateWithFlags:1+=801", "cuGraphLaunch:1+=801"};
  tn_comm_position position = {.struct_size = sizeof position};
  for (int i = 0; i < 2; i++) {
    rig_set("FAKECUDA_FAIL", calls_that_fail[i]);
    start(2, 60);
    for (int32_t r = 0; r < 2; r++) {
      const tn_nccl_rank *opened = all[r].communicator;
      assert_true(opened->follow.word != NULL && !opened->follow.in_captures);
      assert_int_equal(kind->position(&all[r].said.env, all[r].communicator, &position), TN_EUNSUPPORTED);
    }
    try_one(&sum, 2, true);
    ranks_end(2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_nccl_reports_is_told), /* first: it counts the calls of the process */
      cmocka_unit_test(collectives_give_what_they_say_for_every_type),
      cmocka_unit_test(a_captured_collective_runs_in_every_replay),
      cmocka_unit_test(a_call_that_is_in_progress_is_waited_for),
      cmocka_unit_test(the_threads_of_calls_may_end),
      cmocka_unit_test(no_elements_are_no_collective),
      cmocka_unit_test(what_nccl_has_not_is_refused),
      cmocka_unit_test(collectives_work_in_memory_of_nccl),
      cmocka_unit_test(memory_of_nccl_outlives_giving_up),
      cmocka_unit_test(memory_that_a_rank_does_not_register_is_given_up),
      cmocka_unit_test(an_older_library_has_no_such_memory),
      cmocka_unit_test(a_rank_that_does_not_come_is_named),
      cmocka_unit_test(a_call_that_does_not_return_is_reported),
      cmocka_unit_test(calls_that_block_are_refused),
      cmocka_unit_test(a_late_call_is_given_up),
      cmocka_unit_test(a_rank_that_does_not_come_to_a_replay_is_named),
      cmocka_unit_test(giving_up_ends_what_others_wait_for),
      cmocka_unit_test(giving_up_does_not_wait_for_captures),
      cmocka_unit_test(close_has_a_limit),
      cmocka_unit_test(a_rank_that_never_opens_is_named),
      cmocka_unit_test(two_ranks_on_one_device_are_refused),
      cmocka_unit_test(following_can_be_left_out),
      cmocka_unit_test(captures_that_do_not_run_are_not_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
