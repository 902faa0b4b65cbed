/* backends/cpu/kernels/common/rows_lane.h: the functions of rows.h for one type X. rows.c includes this file
 * once per type, with the exponential EXP, the names LANE(name) and the table FUNCTIONS. */

static TN_CPU_CLONES double LANE(largest)(const void *from, int64_t n, double so_far) {
  const X *x = from;
  X lanes[LANES];
  int64_t i = 0;
  for (int j = 0; j < LANES; j++) lanes[j] = (X)so_far;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) lanes[j] = LARGER(x[i + j], lanes[j]);
  for (int j = 0; i < n; i++, j++) lanes[j] = LARGER(x[i], lanes[j]);
  for (int j = 1; j < LANES; j++) lanes[0] = LARGER(lanes[j], lanes[0]);
  return (double)lanes[0];
}

static TN_CPU_CLONES double LANE(sum)(const void *from, int64_t n) {
  const X *x = from;
  SUM(x[k]);
}

static TN_CPU_CLONES double LANE(sum_exp)(const void *from, int64_t n, double shift) {
  const X *x = from, m = (X)shift;
  SUM(EXP(x[k] - m));
}

static TN_CPU_CLONES double LANE(sum_squares)(const void *from, int64_t n, double shift) {
  const X *x = from;
  SUM(((double)x[k] - shift) * ((double)x[k] - shift));
}

static TN_CPU_CLONES void LANE(softmax)(const void *from, void *to, int64_t n, double shift, double sum) {
  const X *x = from, m = (X)shift, s = (X)sum;
  X *y = to;
  EACH(y[k] = EXP(x[k] - m) / s);
}

static TN_CPU_CLONES void LANE(difference)(const void *from, void *to, int64_t n, double shift, double log) {
  const X *x = from, m = (X)shift, l = (X)log;
  X *y = to;
  EACH(y[k] = (x[k] - m) - l);
}

static TN_CPU_CLONES void LANE(scale)(const void *from, void *to, int64_t n, double shift, double scale) {
  const X *x = from, m = (X)shift, s = (X)scale;
  X *y = to;
  EACH(y[k] = (x[k] - m) * s);
}

static TN_CPU_CLONES void LANE(each_largest)(const void *from, int64_t n, void *so_far) {
  const X *x = from;
  X *m = so_far;
  EACH(m[k] = LARGER(x[k], m[k]));
}

static TN_CPU_CLONES void LANE(each_sum)(const void *from, int64_t n, double *sum) {
  const X *x = from;
  EACH(sum[k] += (double)x[k]);
}

static TN_CPU_CLONES void LANE(each_sum_exp)(const void *from, int64_t n, const void *shift, double *sum) {
  const X *x = from, *m = shift;
  EACH(sum[k] += (double)EXP(x[k] - m[k]));
}

static TN_CPU_CLONES void LANE(each_softmax)(const void *from, void *to, int64_t n, const void *shift,
                                             const double *sum) {
  const X *x = from, *m = shift;
  X *y = to;
  EACH(y[k] = EXP(x[k] - m[k]) / (X)sum[k]);
}

static TN_CPU_CLONES void LANE(each_difference)(const void *from, void *to, int64_t n, const void *shift,
                                                const double *log) {
  const X *x = from, *m = shift;
  X *y = to;
  EACH(y[k] = (x[k] - m[k]) - (X)log[k]);
}

static const tn_row_functions FUNCTIONS = {LANE(largest),      LANE(sum),          LANE(sum_exp),
                                           LANE(sum_squares),  LANE(softmax),      LANE(difference),
                                           LANE(scale),        LANE(each_largest), LANE(each_sum),
                                           LANE(each_sum_exp), LANE(each_softmax), LANE(each_difference)};
