/* backends/cuda/device/recurrence.cu: the cells of recurrence and of its gradient, as
 * backends/cpu/kernels/recurrence_typed.h has them. A launch computes one step of all sequences, or their states before
 * and behind the steps; a thread has a unit of a sequence. Lengths outside of 0 to `steps` count as these bounds. */
#include "backends/cuda/device/recurrence.cuh"
#include "backends/cuda/device/prelude.cuh"

enum { LSTM = 0, GRU = 1, TANH = 2, RELU = 3 };

static __device__ inline f32 squash(f32 x) { return tanhf(x); }
static __device__ inline f64 squash(f64 x) { return tanh(x); }
static __device__ inline f32 logistic(f32 x) { return 1 / (1 + expf(-x)); }
static __device__ inline f64 logistic(f64 x) { return 1 / (1 + exp(-x)); }

/* The unit of a thread in the step of the launch. */
struct unit {
  i64 row, u;
  i64 at, before; /* steps of all sequences: this one, and the one before it; before: -1 for the first */
  bool active;    /* the sequence has the step */
};

static __device__ inline unit unit_of(const recurrence_sizes &s, i64 i) {
  unit p;
  p.row = i / s.units;
  p.u = i - p.row * s.units;
  i64 length = s.length ? s.length[p.row] : s.steps, first = p.row * s.steps;
  length = length < 0 ? 0 : length > s.steps ? s.steps : length;
  p.active = s.k < length;
  p.at = first + (s.reverse && p.active ? length - 1 - s.k : s.k);
  p.before = s.k == 0 ? -1 : s.reverse ? p.at + 1 : p.at - 1;
  return p;
}

template <typename T, typename N> static __device__ inline N load(const void *from, i64 at) {
  return from ? (N)widen(((const T *)from)[at]) : (N)0;
}

template <typename T, typename N> static __device__ inline void store(void *to, i64 at, N x) {
  if (to) narrow((T *)to + at, x);
}

/* ---- forward ---- */

template <typename T, typename N> static __device__ void start(const recurrence_args &a) {
  for (i64 i = grid_first(); i < a.s.batch * a.s.units; i += grid_step()) {
    N h = load<T, N>(a.h, i);
    ((N *)a.state)[i] = h;
    narrow((T *)a.elements + i, h);
    if (a.s.cell == LSTM) ((N *)a.cells)[i] = load<T, N>(a.c, i);
  }
}

/* Gate g without its function: the part of the input, and that of the state. */
template <typename T, typename N> static __device__ inline N input(const recurrence_args &a, const unit &p, i64 g) {
  return widen(((const T *)a.x)[(p.at * a.s.gates + g) * a.s.units + p.u]);
}
template <typename T, typename N> static __device__ inline N product(const recurrence_args &a, const unit &p, i64 g) {
  N sum = ((const N *)a.product)[(p.row * a.s.gates + g) * a.s.units + p.u];
  return sum + load<T, N>(a.bias, g * a.s.units + p.u);
}
template <typename T, typename N> static __device__ inline N gate(const recurrence_args &a, const unit &p, i64 g) {
  return input<T, N>(a, p, g) + product<T, N>(a, p, g);
}

template <typename T, typename N>
static __device__ inline void keep(const recurrence_args &a, const unit &p, i64 number, N x) {
  store<T, N>(a.stored, (p.at * a.s.stored + number) * a.s.units + p.u, x);
}

/* The state behind the step. */
template <typename T, typename N> static __device__ N cell(const recurrence_args &a, const unit &p, i64 i) {
  N h = ((const N *)a.state)[i];
  if (a.s.cell == LSTM) {
    N in = logistic(gate<T, N>(a, p, 0)), forget = logistic(gate<T, N>(a, p, 1));
    N g = squash(gate<T, N>(a, p, 2)), out = logistic(gate<T, N>(a, p, 3));
    N c = forget * ((const N *)a.cells)[i] + in * g;
    const N all[] = {in, forget, g, out, c};
    for (i64 n = 0; n < 5; n++) keep<T, N>(a, p, n, all[n]);
    ((N *)a.cells)[i] = c;
    return out * squash(c);
  }
  if (a.s.cell == GRU) {
    N r = logistic(gate<T, N>(a, p, 0)), z = logistic(gate<T, N>(a, p, 1)), q = product<T, N>(a, p, 2);
    N m = squash(input<T, N>(a, p, 2) + r * q);
    const N all[] = {r, z, m, q};
    for (i64 n = 0; n < 4; n++) keep<T, N>(a, p, n, all[n]);
    return (1 - z) * m + z * h;
  }
  N sum = gate<T, N>(a, p, 0);
  return a.s.cell == TANH ? squash(sum) : sum < 0 ? (N)0 : sum;
}

template <typename T, typename N> static __device__ void step(const recurrence_args &a) {
  for (i64 i = grid_first(); i < a.s.batch * a.s.units; i += grid_step()) {
    const unit p = unit_of(a.s, i);
    if (!p.active)
      for (i64 n = 0; n < a.s.stored; n++) keep<T, N>(a, p, n, 0);
    N h = p.active ? cell<T, N>(a, p, i) : (N)0;
    narrow((T *)a.y + p.at * a.s.units + p.u, h);
    if (!p.active) continue;
    ((N *)a.state)[i] = h;
    narrow((T *)a.elements + i, h);
  }
}

template <typename T, typename N> static __device__ void end(const recurrence_args &a) {
  for (i64 i = grid_first(); i < a.s.batch * a.s.units; i += grid_step()) {
    narrow((T *)a.last + i, ((const N *)a.state)[i]);
    if (a.s.cell == LSTM) narrow((T *)a.cell + i, ((const N *)a.cells)[i]);
  }
}

/* ---- backward ---- */

template <typename T, typename N> static __device__ void grad_start(const recurrence_grad_args &a) {
  for (i64 i = grid_first(); i < a.s.batch * a.s.units; i += grid_step()) {
    ((N *)a.state)[i] = load<T, N>(a.dlast, i);
    if (a.s.cell == LSTM) ((N *)a.cells)[i] = load<T, N>(a.dcell, i);
    for (i64 g = 0; g < a.s.gates; g++) ((N *)a.sums)[i + g * a.s.batch * a.s.units] = 0;
  }
}

template <typename T, typename N>
static __device__ inline N kept(const recurrence_grad_args &a, i64 at, i64 number, i64 u) {
  return widen(((const T *)a.stored)[(at * a.s.stored + number) * a.s.units + u]);
}

/* The gradients of a unit's gates: of x, and of w h + bias. */
template <typename N> struct gates {
  N x[4], product[4];
};

/* Of dh and dc the gradients behind the step become those before it, dh without the part through w. */
template <typename T, typename N>
static __device__ void lstm_grad(const recurrence_grad_args &a, const unit &p, N *dh, N *dc, gates<N> *d) {
  N in = kept<T, N>(a, p.at, 0, p.u), forget = kept<T, N>(a, p.at, 1, p.u), g = kept<T, N>(a, p.at, 2, p.u);
  N out = kept<T, N>(a, p.at, 3, p.u), squashed = squash(kept<T, N>(a, p.at, 4, p.u));
  N c = p.before < 0 ? load<T, N>(a.c, p.row * a.s.units + p.u) : kept<T, N>(a, p.before, 4, p.u);
  N through = *dc + *dh * out * (1 - squashed * squashed);
  d->x[0] = through * g * in * (1 - in);
  d->x[1] = through * c * forget * (1 - forget);
  d->x[2] = through * in * (1 - g * g);
  d->x[3] = *dh * squashed * out * (1 - out);
  for (i64 n = 0; n < 4; n++) d->product[n] = d->x[n];
  *dc = through * forget;
  *dh = 0;
}

template <typename T, typename N>
static __device__ void gru_grad(const recurrence_grad_args &a, const unit &p, N h, N *dh, gates<N> *d) {
  N r = kept<T, N>(a, p.at, 0, p.u), z = kept<T, N>(a, p.at, 1, p.u);
  N m = kept<T, N>(a, p.at, 2, p.u), q = kept<T, N>(a, p.at, 3, p.u);
  N dm = *dh * (1 - z) * (1 - m * m);
  d->x[0] = d->product[0] = dm * q * r * (1 - r);
  d->x[1] = d->product[1] = *dh * (h - m) * z * (1 - z);
  d->x[2] = dm;
  d->product[2] = dm * r;
  *dh *= z;
}

template <typename T, typename N>
static __device__ void plain_grad(const recurrence_grad_args &a, const unit &p, N *dh, gates<N> *d) {
  N y = widen(((const T *)a.y)[p.at * a.s.units + p.u]);
  d->x[0] = d->product[0] = a.s.cell == TANH ? *dh * (1 - y * y) : y > 0 ? *dh : (N)0;
  *dh = 0;
}

/* The gradients of the gates, which are zero where the sequence does not have the step. */
template <typename T, typename N>
static __device__ N grad_cell(const recurrence_grad_args &a, const unit &p, i64 i, gates<N> *d) {
  for (i64 n = 0; n < 4; n++) d->x[n] = d->product[n] = 0;
  if (!p.active) return 0;
  N *dh = (N *)a.state + i, *dc = (N *)a.cells + i;
  N h = p.before < 0 ? load<T, N>(a.h, i) : widen(((const T *)a.y)[p.before * a.s.units + p.u]);
  *dh += load<T, N>(a.dy, p.at * a.s.units + p.u);
  if (a.s.cell == LSTM)
    lstm_grad<T, N>(a, p, dh, dc, d);
  else if (a.s.cell == GRU)
    gru_grad<T, N>(a, p, h, dh, d);
  else
    plain_grad<T, N>(a, p, dh, d);
  return h;
}

template <typename T, typename N> static __device__ void grad_step(const recurrence_grad_args &a) {
  for (i64 i = grid_first(); i < a.s.batch * a.s.units; i += grid_step()) {
    const unit p = unit_of(a.s, i);
    gates<N> d;
    narrow((T *)a.before + p.at * a.s.units + p.u, grad_cell<T, N>(a, p, i, &d));
    for (i64 g = 0; g < a.s.gates; g++) {
      i64 at = (p.at * a.s.gates + g) * a.s.units + p.u, now = (p.row * a.s.gates + g) * a.s.units + p.u;
      narrow((T *)a.dx + at, d.x[g]);
      store<T, N>(a.product, at, d.product[g]);
      narrow((T *)a.now + now, d.product[g]);
      ((N *)a.sums)[now] += d.product[g];
    }
  }
}

/* Also the gradient of the bias, of which a thread sums a number over the sequences. */
template <typename T, typename N> static __device__ void grad_end(const recurrence_grad_args &a) {
  i64 columns = a.s.gates * a.s.units;
  for (i64 i = grid_first(); i < a.s.batch * a.s.units; i += grid_step()) {
    narrow((T *)a.dh + i, ((const N *)a.state)[i]);
    if (a.s.cell == LSTM) narrow((T *)a.dc + i, ((const N *)a.cells)[i]);
  }
  for (i64 i = grid_first(); i < columns; i += grid_step()) {
    N sum = 0;
    for (i64 row = 0; row < a.s.batch; row++) sum += ((const N *)a.sums)[row * columns + i];
    narrow((T *)a.dbias + i, sum);
  }
}

#define RECURRENCE(name, args, T, N) \
  extern "C" __global__ void __launch_bounds__(RECURRENCE_THREADS, 1) recurrence_##name##_##T(const args a) { \
    name<T, N>(a); \
  }
#define RECURRENCES(T, N) \
  RECURRENCE(start, recurrence_args, T, N) \
  RECURRENCE(step, recurrence_args, T, N) \
  RECURRENCE(end, recurrence_args, T, N) \
  RECURRENCE(grad_start, recurrence_grad_args, T, N) \
  RECURRENCE(grad_step, recurrence_grad_args, T, N) \
  RECURRENCE(grad_end, recurrence_grad_args, T, N)
RECURRENCES(f16, f32)
RECURRENCES(bf16, f32)
RECURRENCES(f32, f32)
RECURRENCES(f64, f64)
