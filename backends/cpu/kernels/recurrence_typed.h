/* backends/cpu/kernels/recurrence_typed.h: the loops of recurrence.c for one lane. It includes this file once
 * per lane, with LANE, TYPED(name), SIGMOID(x), TANH(x), and the functions TYPED(load) and TYPED(store). */

/* ---- products: out[r][c] += sum over k of a[r * row_step + k * step] m[k][c], m with `width` columns ----
 */

typedef LANE TYPED(vector) __attribute__((vector_size(64), aligned(sizeof(LANE)), may_alias));
enum { TYPED(LANES) = 64 / sizeof(LANE) };

typedef struct TYPED(product) {
  LANE *out;
  const LANE *a, *m;
  int64_t row_step, step, inner, width;
} TYPED(product);

/* Two vectors of columns of n rows, in registers while k runs; n is known where this is inlined. */
static inline __attribute__((always_inline)) void TYPED(product_tile)(const TYPED(product) * p, int64_t row,
                                                                      int64_t column, const int n) {
  TYPED(vector) sum[4][2];
  for (int r = 0; r < n; r++)
    for (int c = 0; c < 2; c++)
      sum[r][c] = *(const TYPED(vector) *)(p->out + (row + r) * p->width + column + c * TYPED(LANES));
  for (int64_t k = 0; k < p->inner; k++) {
    const TYPED(vector) *m = (const TYPED(vector) *)(p->m + k * p->width + column);
    const LANE *a = p->a + row * p->row_step + k * p->step;
    for (int r = 0; r < n; r++)
      for (int c = 0; c < 2; c++) sum[r][c] += a[r * p->row_step] * m[c];
  }
  for (int r = 0; r < n; r++)
    for (int c = 0; c < 2; c++)
      *(TYPED(vector) *)(p->out + (row + r) * p->width + column + c * TYPED(LANES)) = sum[r][c];
}

static inline __attribute__((always_inline)) void TYPED(product_rest)(const TYPED(product) * p, int64_t row,
                                                                      int64_t column) {
  LANE *out = p->out + row * p->width;
  for (int64_t k = 0; k < p->inner; k++) {
    LANE a = p->a[row * p->row_step + k * p->step];
    for (int64_t c = column; c < p->width; c++) out[c] += a * p->m[k * p->width + c];
  }
}

static TN_CPU_CLONES void TYPED(multiply)(const TYPED(product) * p, int64_t rows) {
  int64_t column = 0;
  for (; column + 2 * TYPED(LANES) <= p->width; column += 2 * TYPED(LANES)) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) TYPED(product_tile)(p, row, column, 4);
    for (; row < rows; row++) TYPED(product_tile)(p, row, column, 1);
  }
  for (int64_t row = 0; row < rows; row++) TYPED(product_rest)(p, row, column);
}

/* ---- the weight ---- */

static void TYPED(load_weight)(const recurrence_job *j, const tn_view *w) {
  TYPED(load)(w, 0, j->gates * j->units * j->units, j->weight);
}

/* (units, gates * units), so that the columns of a product are gates. */
static void TYPED(transpose_weight)(const recurrence_job *j, const tn_view *w) {
  int64_t columns = j->gates * j->units;
  LANE *to = j->weight, row[TN_TILE];
  for (int64_t c = 0; c < columns; c++)
    for (int64_t at = 0; at < j->units; at += TN_TILE) {
      int64_t n = j->units - at < TN_TILE ? j->units - at : TN_TILE;
      TYPED(load)(w, c * j->units + at, n, row);
      for (int64_t k = 0; k < n; k++) to[(at + k) * columns + c] = row[k];
    }
}

/* A row of units of an operand that may be absent: then zeros. */
static void TYPED(load_units)(const recurrence_job *j, int32_t operand, int64_t row, LANE *to) {
  const tn_view *v = operand >= 0 ? recurrence_operand(j->l, operand) : NULL;
  if (v != NULL)
    TYPED(load)(v, row * j->units, j->units, to);
  else
    memset(to, 0, (size_t)j->units * sizeof *to);
}

/* The states of the sequences of a task, or their gradients: operands that may be absent, and results. Only
 * lstm has c. */
static void TYPED(load_states)(const recurrence_job *j, int64_t task, int32_t h_operand, int32_t c_operand,
                               LANE *h, LANE *c) {
  int32_t cells = j->a->cell == TN_CELL_LSTM ? c_operand : -1;
  for (int64_t row = recurrence_first(j, task); row < recurrence_end(j, task); row++) {
    int64_t at = (row - recurrence_first(j, task)) * j->units;
    TYPED(load_units)(j, h_operand, row, h + at);
    TYPED(load_units)(j, cells, row, c + at);
  }
}

static void TYPED(store_states)(const recurrence_job *j, int64_t task, int32_t h_result, const LANE *h,
                                const LANE *c) {
  int64_t at = recurrence_first(j, task) * j->units, n = recurrence_end(j, task) * j->units - at;
  TYPED(store)(&j->l->out[h_result], at, n, h);
  if (j->a->cell == TN_CELL_LSTM) TYPED(store)(&j->l->out[h_result + 1], at, n, c);
}

/* ---- forward ---- */

/* One step of one sequence. x: gates of the input; p: w h + bias. */
static TN_CPU_CLONES void TYPED(lstm)(int64_t n, const LANE *x, const LANE *p, LANE *h, LANE *c,
                                      LANE *stored) {
  TN_CPU_VECTOR for (int64_t u = 0; u < n; u++) {
    LANE i = SIGMOID(x[u] + p[u]), f = SIGMOID(x[n + u] + p[n + u]);
    LANE g = TANH(x[2 * n + u] + p[2 * n + u]), o = SIGMOID(x[3 * n + u] + p[3 * n + u]);
    LANE next = f * c[u] + i * g;
    c[u] = next;
    h[u] = o * TANH(next);
    stored[u] = i;
    stored[n + u] = f;
    stored[2 * n + u] = g;
    stored[3 * n + u] = o;
    stored[4 * n + u] = next;
  }
}

static TN_CPU_CLONES void TYPED(gru)(int64_t n, const LANE *x, const LANE *p, LANE *h, LANE *stored) {
  TN_CPU_VECTOR for (int64_t u = 0; u < n; u++) {
    LANE r = SIGMOID(x[u] + p[u]), z = SIGMOID(x[n + u] + p[n + u]);
    LANE m = TANH(x[2 * n + u] + r * p[2 * n + u]);
    stored[u] = r;
    stored[n + u] = z;
    stored[2 * n + u] = m;
    stored[3 * n + u] = p[2 * n + u];
    h[u] = (1 - z) * m + z * h[u];
  }
}

static TN_CPU_CLONES void TYPED(plain)(int64_t n, bool relu, const LANE *x, const LANE *p, LANE *h) {
  TN_CPU_VECTOR for (int64_t u = 0; u < n; u++) {
    LANE sum = x[u] + p[u];
    h[u] = relu ? (sum > 0 || sum != sum ? sum : 0) : TANH(sum);
  }
}

static void TYPED(cell)(const recurrence_job *j, const LANE *x, const LANE *p, LANE *h, LANE *c,
                        LANE *stored) {
  switch (j->a->cell) {
  case TN_CELL_LSTM: TYPED(lstm)(j->units, x, p, h, c, stored); break;
  case TN_CELL_GRU: TYPED(gru)(j->units, x, p, h, stored); break;
  default: TYPED(plain)(j->units, j->a->cell == TN_CELL_RELU, x, p, h);
  }
}

/* The rows of a task: states, w h + bias, of one sequence the gates of the input and the stored numbers, and
 * the bias. */
typedef struct TYPED(rows) {
  LANE *h, *c, *p, *x, *stored, *bias;
} TYPED(rows);

static TYPED(rows) TYPED(rows_of)(const recurrence_job *j, int64_t task) {
  int64_t n = j->units;
  LANE *at = (LANE *)j->scratch + task * recurrence_scratch(j);
  TYPED(rows) r = {.h = at};
  r.c = r.h + j->rows * n;
  r.p = r.c + j->rows * n;
  r.x = r.p + j->rows * j->gates * n;
  r.stored = r.x + j->gates * n;
  r.bias = r.stored + j->stored * n;
  return r;
}

static void TYPED(forward_row)(const recurrence_job *j, const TYPED(rows) * r, int64_t i, int64_t row,
                               int64_t k) {
  int64_t n = j->units, columns = j->gates * n;
  TYPED(load)(&j->l->in[0], recurrence_at(j, row, k, columns), columns, r->x);
  TYPED(cell)(j, r->x, r->p + i * columns, r->h + i * n, r->c + i * n, r->stored);
  TYPED(store)(&j->l->out[0], recurrence_at(j, row, k, n), n, r->h + i * n);
  if (j->stored > 0)
    TYPED(store)(&j->l->out[3], recurrence_at(j, row, k, j->stored * n), j->stored * n, r->stored);
}

/* w h + bias of all sequences of a task. */
static void TYPED(forward_product)(const recurrence_job *j, const TYPED(rows) * r, int64_t rows) {
  int64_t n = j->units, columns = j->gates * n;
  const TYPED(product) p = {r->p, r->h, j->weight, n, 1, n, columns};
  for (int64_t i = 0; i < rows; i++) memcpy(r->p + i * columns, r->bias, (size_t)columns * sizeof *r->p);
  TYPED(multiply)(&p, rows);
}

static void TYPED(forward)(void *arg, int64_t task) {
  const recurrence_job *j = arg;
  const tn_view *bias = recurrence_operand(j->l, 2);
  TYPED(rows) r = TYPED(rows_of)(j, task);
  int64_t first = recurrence_first(j, task), end = recurrence_end(j, task), columns = j->gates * j->units;
  TYPED(load_states)(j, task, 3, 4, r.h, r.c);
  memset(r.bias, 0, (size_t)columns * sizeof *r.bias);
  if (bias != NULL) TYPED(load)(bias, 0, columns, r.bias);
  int64_t longest = recurrence_longest(j, first, end);
  for (int64_t k = 0; k < longest; k++) {
    TYPED(forward_product)(j, &r, end - first);
    for (int64_t row = first; row < end; row++)
      if (k < recurrence_length(j, row)) TYPED(forward_row)(j, &r, row - first, row, k);
  }
  TYPED(store_states)(j, task, 1, r.h, r.c);
}

/* ---- backward ---- */

/* One step of one sequence back: t has the stored numbers, h and c the state before the step. Of dh and dc
 * the gradients behind the step become those before it, dh without the part through w. d: of the gates; p: of
 * w h + bias. */
static TN_CPU_CLONES void TYPED(lstm_grad)(int64_t n, const LANE *t, const LANE *c, LANE *dh, LANE *dc,
                                           LANE *d, LANE *p) {
  TN_CPU_VECTOR for (int64_t u = 0; u < n; u++) {
    LANE i = t[u], f = t[n + u], g = t[2 * n + u], o = t[3 * n + u], squashed = TANH(t[4 * n + u]);
    LANE through = dc[u] + dh[u] * o * (1 - squashed * squashed);
    p[u] = d[u] = through * g * i * (1 - i);
    p[n + u] = d[n + u] = through * c[u] * f * (1 - f);
    p[2 * n + u] = d[2 * n + u] = through * i * (1 - g * g);
    p[3 * n + u] = d[3 * n + u] = dh[u] * squashed * o * (1 - o);
    dc[u] = through * f;
    dh[u] = 0;
  }
}

static TN_CPU_CLONES void TYPED(gru_grad)(int64_t n, const LANE *t, const LANE *h, LANE *dh, LANE *d,
                                          LANE *p) {
  TN_CPU_VECTOR for (int64_t u = 0; u < n; u++) {
    LANE r = t[u], z = t[n + u], m = t[2 * n + u], q = t[3 * n + u];
    LANE dm = dh[u] * (1 - z) * (1 - m * m);
    p[2 * n + u] = dm * r;
    d[2 * n + u] = dm;
    p[n + u] = d[n + u] = dh[u] * (h[u] - m) * z * (1 - z);
    p[u] = d[u] = dm * q * r * (1 - r);
    dh[u] *= z;
  }
}

static TN_CPU_CLONES void TYPED(plain_grad)(int64_t n, bool relu, const LANE *y, LANE *dh, LANE *d, LANE *p) {
  TN_CPU_VECTOR for (int64_t u = 0; u < n; u++) {
    p[u] = d[u] = relu ? (y[u] > 0 ? dh[u] : 0) : dh[u] * (1 - y[u] * y[u]);
    dh[u] = 0;
  }
}

/* The rows of a task: running gradients, and of one sequence its numbers of one step. */
typedef struct TYPED(grad_rows) {
  LANE *dh, *dc, *stored, *y, *c, *dx;
} TYPED(grad_rows);

static TYPED(grad_rows) TYPED(grad_rows_of)(const recurrence_job *j, int64_t task) {
  int64_t n = j->units;
  LANE *at = (LANE *)j->scratch + task * recurrence_grad_scratch(j);
  TYPED(grad_rows) r = {.dh = at};
  r.dc = r.dh + j->rows * n;
  r.stored = r.dc + j->rows * n;
  r.y = r.stored + j->stored * n;
  r.c = r.y + n;
  r.dx = r.c + n;
  return r;
}

/* The gradient of the gates of step k, which it stores, and of w h + bias, which stays in the workspace
 * beside the state before the step. */
static void TYPED(backward_row)(const recurrence_job *j, const TYPED(grad_rows) * r, int64_t i, int64_t row,
                                int64_t k) {
  int64_t n = j->units, columns = j->gates * n, at = recurrence_at(j, row, k, 1);
  LANE *dh = r->dh + i * n, *dc = r->dc + i * n;
  LANE *p = (LANE *)j->product + at * columns, *h = (LANE *)j->state + at * n;
  if (j->dy != NULL) {
    TYPED(load)(j->dy, at * n, n, r->y);
    for (int64_t u = 0; u < n; u++) dh[u] += r->y[u];
  }
  if (k > 0)
    TYPED(load)(&j->l->in[4], recurrence_at(j, row, k - 1, n), n, h);
  else
    TYPED(load_units)(j, 1, row, h);
  if (j->stored > 0) TYPED(load)(&j->l->in[5], at * j->stored * n, j->stored * n, r->stored);
  switch (j->a->cell) {
  case TN_CELL_LSTM:
    if (k > 0)
      TYPED(load)(&j->l->in[5], recurrence_at(j, row, k - 1, 5 * n) + 4 * n, n, r->c);
    else
      TYPED(load_units)(j, 2, row, r->c);
    TYPED(lstm_grad)(n, r->stored, r->c, dh, dc, r->dx, p);
    break;
  case TN_CELL_GRU: TYPED(gru_grad)(n, r->stored, h, dh, r->dx, p); break;
  default:
    TYPED(load)(&j->l->in[4], at * n, n, r->y);
    TYPED(plain_grad)(n, j->a->cell == TN_CELL_RELU, r->y, dh, r->dx, p);
  }
  TYPED(store)(&j->l->out[0], at * columns, columns, r->dx);
  const TYPED(product) through = {dh, p, j->weight, columns, 1, columns, n};
  TYPED(multiply)(&through, 1);
}

static void TYPED(backward)(void *arg, int64_t task) {
  const recurrence_job *j = arg;
  TYPED(grad_rows) r = TYPED(grad_rows_of)(j, task);
  int64_t first = recurrence_first(j, task), end = recurrence_end(j, task);
  TYPED(load_states)(j, task, 7, 8, r.dh, r.dc);
  for (int64_t k = recurrence_longest(j, first, end) - 1; k >= 0; k--)
    for (int64_t row = first; row < end; row++)
      if (k < recurrence_length(j, row)) TYPED(backward_row)(j, &r, row - first, row, k);
  TYPED(store_states)(j, task, 3, r.dh, r.dc);
}

/* Some rows of the gradients of w and of bias: sums over all steps, in their order. */
static void TYPED(weight_grad)(void *arg, int64_t task) {
  const recurrence_job *j = arg;
  int64_t n = j->units, columns = j->gates * n, all = j->batch * j->steps, first = task * WEIGHT_ROWS;
  int64_t rows = first + WEIGHT_ROWS < columns ? WEIGHT_ROWS : columns - first;
  LANE *sum = (LANE *)j->scratch + first * (n + 1), *bias = sum + rows * n;
  const LANE *product = (const LANE *)j->product + first;
  memset(sum, 0, (size_t)(rows * (n + 1)) * sizeof *sum);
  const TYPED(product) p = {sum, product, j->state, 1, columns, all, n};
  TYPED(multiply)(&p, rows);
  for (int64_t at = 0; at < all; at++)
    for (int64_t r = 0; r < rows; r++) bias[r] += product[at * columns + r];
  TYPED(store)(&j->l->out[1], first * n, rows * n, sum);
  TYPED(store)(&j->l->out[2], first, rows, bias);
}
