/* backends/cpu/kernels/reduce_lane.h: the inner loops of reductions, for one type of elements (X) and of
 * accumulators (ACC). reduce.c defines both and LANE(name) and includes this file once per pair.
 *
 * A run adds n neighbours to one result. The result has REDUCE_LANES accumulators, so that the loop
 * vectorizes: element i of a run is added to lane i % REDUCE_LANES. A row adds n neighbours to n results. The
 * second set of accumulators of an op follows the first at distance REDUCE_LANES (run) or REDUCE_BLOCK (row).
 */

/* The first loop takes REDUCE_LANES elements at a time and keeps the accumulators in registers, with type T;
 * the second takes the rest. */
#define RUN(name, T, n_sets, body)                                                                           \
  static TN_CPU_CLONES void LANE(name##_run)(void *accumulators, const void *xs, const void *ys, int64_t n,  \
                                             const double *mean) {                                           \
    ACC *acc = accumulators;                                                                                 \
    const X *x = xs, *y = ys;                                                                                \
    const ACC m = mean == NULL ? 0 : (ACC)mean[0];                                                           \
    int64_t i = 0;                                                                                           \
    (void)y;                                                                                                 \
    (void)m;                                                                                                 \
    if (n >= REDUCE_LANES) {                                                                                 \
      T a[n_sets][REDUCE_LANES];                                                                             \
      for (int j = 0; j < n_sets * REDUCE_LANES; j++) a[j / REDUCE_LANES][j % REDUCE_LANES] = (T)acc[j];     \
      for (; i + REDUCE_LANES <= n; i += REDUCE_LANES)                                                       \
        for (int j = 0; j < REDUCE_LANES; j++) body(a[0][j], a[n_sets - 1][j], x[i + j], y[i + j], m);       \
      for (int j = 0; j < n_sets * REDUCE_LANES; j++) acc[j] = (ACC)a[j / REDUCE_LANES][j % REDUCE_LANES];   \
    }                                                                                                        \
    for (int j = 0; i < n; i++, j++) body(acc[j], acc[j + (n_sets - 1) * REDUCE_LANES], x[i], y[i], m);      \
  }

#define ROW(name, n_sets, body)                                                                              \
  static TN_CPU_CLONES void LANE(name##_row)(void *accumulators, const void *xs, const void *ys, int64_t n,  \
                                             const double *mean) {                                           \
    ACC *a = accumulators, *b = a + (n_sets - 1) * REDUCE_BLOCK;                                             \
    const X *x = xs, *y = ys;                                                                                \
    (void)b;                                                                                                 \
    (void)y;                                                                                                 \
    (void)mean;                                                                                              \
    TN_CPU_VECTOR for (int64_t j = 0; j < n; j++) body(a[j], b[j], x[j], y[j], mean[j]);                     \
  }

#define LARGER(a, b, x, y, m)  a = (x) > a || (x) != (x) ? (x) : a
#define SMALLER(a, b, x, y, m) a = (x) < a || (x) != (x) ? (x) : a
RUN(max, X, 1, LARGER)
ROW(max, 1, LARGER)
RUN(min, X, 1, SMALLER)
ROW(min, 1, SMALLER)
#undef LARGER
#undef SMALLER

#if REDUCE_FLOATS

#define ADD(a, b, x, y, m) a += (ACC)(x)
/* m is near the mean. */
#define ADD_SQUARE(a, b, x, y, m) (a += (ACC)(x)-m, b += ((ACC)(x)-m) * ((ACC)(x)-m))
/* x is dy; y is the operand of the normalization. */
#define ADD_DOT(a, b, x, y, m) (a += (ACC)(x), b += (ACC)(x) * ((ACC)(y)-m))
RUN(sum, ACC, 1, ADD)
ROW(sum, 1, ADD)
RUN(moments, ACC, 2, ADD_SQUARE)
ROW(moments, 2, ADD_SQUARE)
RUN(grads, ACC, 2, ADD_DOT)
ROW(grads, 2, ADD_DOT)
#undef ADD_SQUARE
#undef ADD_DOT

#else

#define ADD(a, b, x, y, m) a = (ACC)((uint64_t)a + (uint64_t)(x))
RUN(sum, ACC, 1, ADD)
ROW(sum, 1, ADD)

#endif

#undef ADD
#undef RUN
#undef ROW
