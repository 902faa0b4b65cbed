/* backends/cuda/device/recurrence.cuh: the arguments of the steps of recurrence and of its gradient, for host
 * and device. "Elements" are of the op's type, "numbers" f32, or f64 where the elements are. */
#ifndef TN_CUDA_RECURRENCE_CUH
#define TN_CUDA_RECURRENCE_CUH

enum { RECURRENCE_THREADS = 128 };

struct recurrence_sizes {
  long long batch, steps, units, k; /* k: the step of this launch */
  const int *length;                /* NULL: all sequences have all steps */
  int cell, reverse;                /* cell: TN_CELL_... */
  int gates, stored;                /* numbers for each unit: of x, and of `stored` */
};

struct recurrence_args {
  struct recurrence_sizes s;
  const void *x, *bias, *h, *c;   /* bias, h and c may be NULL */
  void *y, *last, *cell, *stored; /* stored: NULL where nothing reads it */
  const void *product;            /* numbers: w times the state before the step, a row for each sequence */
  void *state, *elements, *cells; /* h as numbers and as elements, and c as numbers */
};

struct recurrence_grad_args {
  struct recurrence_sizes s;
  const void *h, *c, *y, *stored, *dy, *dlast, *dcell; /* all but y and stored may be NULL */
  void *dx, *dbias, *dh, *dc;
  /* Elements, for all steps: gradients of w h + bias, of gru alone, and states. */
  void *product, *before;
  void *now;           /* elements: gradients of w h + bias in this step */
  void *state, *cells; /* numbers: gradients of h and c */
  void *sums;          /* numbers: of `now` over the steps */
};

#endif
