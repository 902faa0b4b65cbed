/* Every collective, dtype and operation against a plain loop, over threads and processes. */
#include <math.h>
#include <stdio.h>

#include "tests/fakenccl/tests/numbers.h"
#include "tests/fakenccl/tests/rig.h"

enum { MOST = 6000 };

typedef struct buffers {
  void *from, *to;                     /* of the device */
  char *all[RIG_RANKS], *wanted, *got; /* of the host: all operands */
} buffers;

static void open_buffers(rig *r, buffers *b) {
  b->from = rig_new(r, 8 * MOST);
  b->to = rig_new(r, 8 * MOST);
  for (int i = 0; i < r->ranks; i++) b->all[i] = malloc(8 * MOST);
  b->wanted = malloc(8 * MOST);
  b->got = malloc(8 * MOST);
}

static void close_buffers(rig *r, buffers *b) {
  for (int i = 0; i < r->ranks; i++) free(b->all[i]);
  free(b->wanted);
  free(b->got);
  rig_free(r, b->from);
  rig_free(r, b->to);
}

static void fill(rig *r, buffers *b, size_t count, int dtype) {
  for (int i = 0; i < r->ranks; i++) numbers_fill(b->all[i], count, dtype, i);
  rig_put(r, b->from, b->all[r->rank], count * numbers_size(dtype));
}

static void compare(rig *r, buffers *b, const void *at, const void *wanted, size_t bytes, const char *what,
                    int dtype, int op) {
  rig_get(r, b->got, at, bytes);
  if (!CHECK(memcmp(b->got, wanted, bytes) == 0))
    fprintf(stderr, "  %s, dtype %d, op %d, %d ranks\n", what, dtype, op, r->ranks);
}

/* ---- reductions ---- */

static void check_reductions(rig *r, buffers *b, size_t n, int dtype, int op, ncclRedOp_t handle) {
  size_t size = numbers_size(dtype), part = n / (size_t)r->ranks;
  int root = r->ranks - 1;
  numbers_reduce(b->wanted, (void *const *)b->all, r->ranks, n, dtype, op, 0.5);
  OK(L.f_ncclAllReduce(b->from, b->to, n, (ncclDataType_t)dtype, handle, r->comm, r->stream));
  compare(r, b, b->to, b->wanted, n * size, "all_reduce", dtype, op);
  OK(L.f_ncclReduce(b->from, r->rank == root ? b->to : NULL, n, (ncclDataType_t)dtype, handle, root, r->comm,
                    r->stream));
  if (r->rank == root) compare(r, b, b->to, b->wanted, n * size, "reduce", dtype, op);
  const char *mine = b->wanted + (size_t)r->rank * part * size;
  OK(L.f_ncclReduceScatter(b->from, b->to, part, (ncclDataType_t)dtype, handle, r->comm, r->stream));
  compare(r, b, b->to, mine, part * size, "reduce_scatter", dtype, op);
  char *here = (char *)b->from + (size_t)r->rank * part * size;
  OK(L.f_ncclReduceScatter(b->from, here, part, (ncclDataType_t)dtype, handle, r->comm, r->stream));
  compare(r, b, here, mine, part * size, "reduce_scatter in place", dtype, op);
  rig_put(r, b->from, b->all[r->rank], n * size);
  OK(L.f_ncclAllReduce(b->from, b->from, n, (ncclDataType_t)dtype, handle, r->comm, r->stream));
  compare(r, b, b->from, b->wanted, n * size, "all_reduce in place", dtype, op);
}

static void check_dtype(rig *r, buffers *b, int dtype) {
  size_t n = 120;
  ncclRedOp_t handle;
  unsigned char factor[8];
  for (int op = ncclSum; op <= ncclAvg; op++) {
    bool wraps = op == ncclProd && !numbers_is_float(dtype) && numbers_size(dtype) == 8;
    if (wraps) continue; /* the plain loop is one of doubles */
    fill(r, b, n, dtype);
    check_reductions(r, b, n, dtype, op, (ncclRedOp_t)op);
  }
  numbers_set(factor, dtype, 0, 0.5);
  if (!numbers_is_float(dtype)) return;
  OK(L.f_ncclRedOpCreatePreMulSum(&handle, factor, (ncclDataType_t)dtype, ncclScalarHostImmediate, r->comm));
  fill(r, b, n, dtype);
  check_reductions(r, b, n, dtype, ncclNumOps, handle);
  OK(L.f_ncclRedOpDestroy(handle, r->comm));
  void *scalar = rig_new(r, 8);
  rig_put(r, scalar, factor, numbers_size(dtype));
  OK(L.f_ncclRedOpCreatePreMulSum(&handle, scalar, (ncclDataType_t)dtype, ncclScalarDevice, r->comm));
  fill(r, b, n, dtype);
  check_reductions(r, b, n, dtype, ncclNumOps, handle);
  OK(L.f_ncclRedOpDestroy(handle, r->comm));
  rig_free(r, scalar);
}

static void reduce_all_types(rig *r) {
  buffers b;
  open_buffers(r, &b);
  for (int dtype = 0; dtype < ncclNumTypes; dtype++) check_dtype(r, &b, dtype);
  close_buffers(r, &b);
}

static void every_type_and_operation(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n++) assert_int_equal(rig_run(1, n, reduce_all_types, NULL), 0);
  assert_int_equal(rig_run(2, 2, reduce_all_types, NULL), 0);
  QUIET();
}

/* ---- copies ---- */

static void check_gather(rig *r, buffers *b, size_t n, int dtype) {
  size_t bytes = n * numbers_size(dtype);
  for (int i = 0; i < r->ranks; i++) memcpy(b->wanted + (size_t)i * bytes, b->all[i], bytes);
  OK(L.f_ncclAllGather(b->from, b->to, n, (ncclDataType_t)dtype, r->comm, r->stream));
  compare(r, b, b->to, b->wanted, bytes * (size_t)r->ranks, "all_gather", dtype, 0);
  char *here = (char *)b->to + (size_t)r->rank * bytes;
  OK(L.f_cuMemsetD8Async((CUdeviceptr)(uintptr_t)b->to, 1, bytes * (size_t)r->ranks, r->stream));
  rig_put(r, here, b->all[r->rank], bytes);
  OK(L.f_ncclAllGather(here, b->to, n, (ncclDataType_t)dtype, r->comm, r->stream));
  compare(r, b, b->to, b->wanted, bytes * (size_t)r->ranks, "all_gather in place", dtype, 0);
}

static void check_broadcast(rig *r, buffers *b, size_t n, int dtype, int root) {
  size_t bytes = n * numbers_size(dtype);
  const void *from = r->rank == root ? b->from : NULL;
  OK(L.f_ncclBroadcast(from, b->to, n, (ncclDataType_t)dtype, root, r->comm, r->stream));
  compare(r, b, b->to, b->all[root], bytes, "broadcast", dtype, 0);
  OK(L.f_ncclBcast(b->from, n, (ncclDataType_t)dtype, root, r->comm, r->stream));
  compare(r, b, b->from, b->all[root], bytes, "bcast", dtype, 0);
}

/* To the next rank, from the one before; in a group, since each would wait for the other. */
static void check_ring(rig *r, buffers *b, size_t n, int dtype) {
  int next = (r->rank + 1) % r->ranks, before = (r->rank + r->ranks - 1) % r->ranks;
  OK(L.f_ncclGroupStart());
  OK(L.f_ncclSend(b->from, n, (ncclDataType_t)dtype, next, r->comm, r->stream));
  OK(L.f_ncclRecv(b->to, n, (ncclDataType_t)dtype, before, r->comm, r->stream));
  OK(L.f_ncclGroupEnd());
  compare(r, b, b->to, b->all[before], n * numbers_size(dtype), "ring", dtype, 0);
}

static void copy_all_types(rig *r) {
  buffers b;
  open_buffers(r, &b);
  for (int dtype = 0; dtype < ncclNumTypes; dtype++) {
    size_t n = 100;
    fill(r, &b, n, dtype);
    check_gather(r, &b, n, dtype);
    check_ring(r, &b, n, dtype);
    for (int root = 0; root < r->ranks; root++) {
      fill(r, &b, n, dtype);
      check_broadcast(r, &b, n, dtype, root);
    }
  }
  close_buffers(r, &b);
}

static void every_copy(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n++) assert_int_equal(rig_run(1, n, copy_all_types, NULL), 0);
  assert_int_equal(rig_run(4, 1, copy_all_types, NULL), 0);
  QUIET();
}

/* ---- parts ---- */

static void reduce_much(rig *r) {
  size_t n = 700001;
  float sum = (float)(r->ranks * (r->ranks + 1) / 2);
  float *x = rig_floats(r, n), *y = rig_new(r, n * sizeof *y);
  OK(L.f_ncclAllReduce(x, y, n, ncclFloat32, ncclSum, r->comm, r->stream));
  OK(L.f_ncclBroadcast(x, x, n, ncclFloat32, 1, r->comm, r->stream));
  CHECK(rig_is(r, y, n, sum));
  CHECK(rig_is(r, x, n, 2));
  size_t part = 300000;
  float *wide = rig_floats(r, part * (size_t)r->ranks), *mine = rig_new(r, part * sizeof *mine);
  OK(L.f_ncclReduceScatter(wide, mine, part, ncclFloat32, ncclSum, r->comm, r->stream));
  OK(L.f_ncclAllGather(mine, wide, part, ncclFloat32, r->comm, r->stream));
  CHECK(rig_is(r, wide, part * (size_t)r->ranks, sum));
  OK(L.f_ncclGroupStart());
  OK(L.f_ncclRecv(mine, part, ncclFloat32, 1 - r->rank % 2 + r->rank / 2 * 2, r->comm, r->stream));
  OK(L.f_ncclSend(wide, part, ncclFloat32, 1 - r->rank % 2 + r->rank / 2 * 2, r->comm, r->stream));
  OK(L.f_ncclGroupEnd());
  CHECK(rig_is(r, mine, part, sum));
  rig_free(r, x), rig_free(r, y), rig_free(r, wide), rig_free(r, mine);
}

static void more_than_fits_into_a_slot(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 4, reduce_much, NULL), 0);
  assert_int_equal(rig_run(4, 1, reduce_much, NULL), 0);
  assert_int_equal(rig_run(2, 2, reduce_much, NULL), 0);
  QUIET();
}

/* The bits of a sum that depends on its order: the same on all ranks, for threads and processes. */
static void hash_sum(rig *r) {
  size_t n = 1000;
  float host[1000];
  for (size_t i = 0; i < n; i++) host[i] = 1.0f / (float)(1 + i + 1000 * (size_t)r->rank);
  float *x = rig_floats(r, n);
  rig_put(r, x, host, sizeof host);
  OK(L.f_ncclAllReduce(x, x, n, ncclFloat32, ncclSum, r->comm, r->stream));
  rig_get(r, host, x, sizeof host);
  for (size_t i = 0; i < n; i++) {
    float sum = 0;
    for (int k = 0; k < r->ranks; k++) {
      float next = 1.0f / (float)(1 + i + 1000 * (size_t)k);
      sum = k == 0 ? next : sum + next;
    }
    if (!CHECK(host[i] == sum)) break;
  }
  rig_free(r, x);
}

static void sums_are_in_the_order_of_ranks(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 4, hash_sum, NULL), 0);
  assert_int_equal(rig_run(2, 2, hash_sum, NULL), 0);
  assert_int_equal(rig_run(4, 1, hash_sum, NULL), 0);
  QUIET();
}

/* Infinity goes through, and NaN in sums; the greatest leaves NaN out. */
static void reduce_specials(rig *r) {
  float host[4] = {r->rank == 1 ? NAN : 1, r->rank == 0 ? INFINITY : 1, 3e38f, (float)r->rank};
  float *x = rig_new(r, sizeof host), *y = rig_new(r, sizeof host);
  rig_put(r, x, host, sizeof host);
  OK(L.f_ncclAllReduce(x, y, 4, ncclFloat32, ncclMax, r->comm, r->stream));
  rig_get(r, host, y, sizeof host);
  CHECK(host[0] == 1 && host[1] == INFINITY && host[2] == 3e38f && host[3] == (float)(r->ranks - 1));
  OK(L.f_ncclAllReduce(x, y, 4, ncclFloat32, ncclSum, r->comm, r->stream));
  rig_get(r, host, y, sizeof host);
  CHECK(host[0] != host[0] && host[1] == INFINITY && host[2] == INFINITY);
  rig_free(r, x), rig_free(r, y);
}

static void special_values(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 2, reduce_specials, NULL), 0);
  QUIET();
}

static const struct CMUnitTest tests[] = {
    RIG_TEST(every_type_and_operation),       RIG_TEST(every_copy),     RIG_TEST(more_than_fits_into_a_slot),
    RIG_TEST(sums_are_in_the_order_of_ranks), RIG_TEST(special_values),
};
RIG_MAIN(tests)
