/* backends/cuda/kernels/recurrence.c: recurrence and its gradient. A step is a product of the states and the
 * weight by cuBLASLt, with sums in f32 (f64 for f64), and a launch that computes the cells of all sequences
 * (device/recurrence.cu). The gradient of the weight is one product of all steps at the end.
 *
 * cuDNN's recurrent layers do not fit the op: they keep what backward needs in a reserve of their own layout,
 * where the gradient of the op reads y and `stored`, they want the weights copied into a packed space, and
 * they compute the product of the input, which is an op of its own here. */
#include "backends/cuda/device/recurrence.cuh"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/products/product.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

enum { W = 1, LENGTH = 5 };                                                 /* operands of forward */
enum { GRAD_W, GRAD_H, GRAD_C, GRAD_LENGTH, GRAD_Y, GRAD_STORED, GRAD_DY }; /* and of the gradient */
enum { ROOM_ALIGNMENT = 256 };

/* The parts of the workspace. All but NOW, BEFORE, ELEMENTS and GATES are f32, or f64. */
enum {
  PRODUCT,     /* forward: a row of gates for each sequence */
  STATE,       /* h or its gradient */
  ELEMENTS,    /* forward: h as the product reads it; in STATE where that has the type of elements */
  CELLS,       /* c or its gradient */
  NOW,         /* backward: a row of gates for each sequence */
  SUMS,        /* backward: the same */
  BEFORE,      /* backward: states of all steps */
  GATES,       /* backward of gru: gates of all steps */
  OF_MULTIPLY, /* cuBLASLt's */
  ROOMS
};

typedef struct recurrence_kernel {
  tn_cuda_function start, step, end;
  tn_cuda_product step_product, weight_product;
  tn_cuda_product_plan step_plan, weight_plan;
  int32_t dtype;
  bool gradient;
  struct recurrence_sizes sizes;
  int64_t room[ROOMS + 1]; /* where each begins; the last is the end */
} recurrence_kernel;

/* ---- sizes ---- */

static int64_t recurrence_sequences(const recurrence_kernel *k) { return k->sizes.batch; }
static int64_t recurrence_columns(const recurrence_kernel *k) { return k->sizes.gates * k->sizes.units; }
static int64_t recurrence_rows(const recurrence_kernel *k) { return k->sizes.batch * k->sizes.steps; }
static int32_t recurrence_numbers(int32_t dtype) { return dtype == TN_F64 ? TN_F64 : TN_F32; }

/* Forward: d = h w^T; backward: dh += d w. */
static void recurrence_set_products(recurrence_kernel *k) {
  int64_t units = k->sizes.units, columns = recurrence_columns(k);
  k->step_product = (tn_cuda_product){.dtype = k->dtype,
                                      .wide = recurrence_numbers(k->dtype),
                                      .transpose_b = !k->gradient,
                                      .reads_c = k->gradient,
                                      .m = recurrence_sequences(k),
                                      .n = k->gradient ? units : columns,
                                      .k = k->gradient ? columns : units,
                                      .batch = 1,
                                      .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
  k->step_product.row_a = k->step_product.k;
  k->step_product.row_d = k->step_product.n;
  k->weight_product = (tn_cuda_product){.dtype = k->dtype,
                                        .wide = k->dtype,
                                        .transpose_a = true,
                                        .m = columns,
                                        .n = units,
                                        .k = recurrence_rows(k),
                                        .row_a = columns,
                                        .row_d = units,
                                        .batch = 1,
                                        .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
}

static int64_t recurrence_room_bytes(const recurrence_kernel *k, int32_t room) {
  int64_t element = (int64_t)tn_dtype_size(k->dtype),
          number = (int64_t)tn_dtype_size(recurrence_numbers(k->dtype));
  int64_t state = recurrence_sequences(k) * k->sizes.units, gates = state * k->sizes.gates,
          steps = k->sizes.steps;
  int64_t step = tn_cuda_product_workspace(&k->step_product),
          weight = tn_cuda_product_workspace(&k->weight_product);
  switch (room) {
  case PRODUCT: return k->gradient ? 0 : gates * number;
  case STATE: return state * number;
  case ELEMENTS: return k->gradient || element == number ? 0 : state * element;
  case CELLS: return k->sizes.cell == TN_CELL_LSTM ? state * number : 0;
  case NOW: return k->gradient ? gates * element : 0;
  case SUMS: return k->gradient ? gates * number : 0;
  case BEFORE: return k->gradient ? state * steps * element : 0;
  case GATES: return k->gradient && k->sizes.cell == TN_CELL_GRU ? gates * steps * element : 0;
  default: return k->gradient && weight > step ? weight : step;
  }
}

/* The sizes are those of y, w and stored; NULL: nothing is stored. */
static recurrence_kernel recurrence_of(const tn_match *m, bool gradient) {
  const tn_node *node = m->nodes[0].node;
  const tn_recurrence_attributes *a = node->attributes;
  const tn_type *y = gradient ? node->in[GRAD_Y] : &node->out[0], *w = node->in[gradient ? GRAD_W : W];
  const tn_type *stored = gradient ? node->in[GRAD_STORED] : &node->out[3];
  recurrence_kernel k = {.dtype = y->dtype, .gradient = gradient};
  int64_t units = at_least_1(y->dims[2]);
  k.sizes = (struct recurrence_sizes){.batch = y->dims[0],
                                      .steps = y->dims[1],
                                      .units = y->dims[2],
                                      .cell = a->cell,
                                      .reverse = a->reverse,
                                      .gates = (int)(w->dims[0] / units),
                                      .stored = (int)(stored->dims[2] / units)};
  recurrence_set_products(&k);
  for (int32_t i = 0; i < ROOMS; i++)
    k.room[i + 1] = k.room[i] + round_up(recurrence_room_bytes(&k, i), ROOM_ALIGNMENT);
  return k;
}

/* ---- query and prepare ---- */

/* A product and a launch of cells for each step, one after the other. */
static tn_status cuda_recurrence_offer(tn_query *q, bool gradient) {
  recurrence_kernel k = recurrence_of(q->match, gradient);
  const tn_cuda_product *p = &k.step_product;
  bool half = tn_dtype_size(k.dtype) == 2;
  double weight = (double)p->n * (double)p->k * (double)tn_dtype_size(k.dtype);
  double flops = 2 * (double)p->m * (double)p->n * (double)p->k, steps = (double)k.sizes.steps;
  double product = tn_cuda_estimate_s(q->device, half ? TN_CUDA_PRODUCT : TN_CUDA_PLAIN_PRODUCT, weight,
                                      flops, q->device->matrix_flops_per_s[k.dtype]);
  double once = tn_cuda_bytes_s(q->device, TN_CUDA_ROWS, tn_match_bytes(q->match));
  return tn_offer(
      q, (tn_variant){.name = "steps",
                      .workspace_bytes = k.room[ROOMS],
                      .prepared_bytes = sizeof k,
                      .cost_s = once + steps * ((gradient ? 2 : 1) * product + q->device->launch_s)});
}

static tn_status cuda_recurrence_query(tn_query *q) { return cuda_recurrence_offer(q, false); }
static tn_status cuda_recurrence_grad_query(tn_query *q) { return cuda_recurrence_offer(q, true); }

static tn_status recurrence_request(tn_prepare *p, recurrence_kernel *k) {
  static const char file[] = "recurrence.cu";
  const char *dtype = tn_dtype_name(k->dtype), *kind = k->gradient ? "grad_" : "";
  TN_TRY(tn_cuda_request(p, &k->start, file, "recurrence_%sstart_%s", kind, dtype));
  TN_TRY(tn_cuda_request(p, &k->step, file, "recurrence_%sstep_%s", kind, dtype));
  return tn_cuda_request(p, &k->end, file, "recurrence_%send_%s", kind, dtype);
}

static tn_status cuda_recurrence_open(tn_prepare *p, bool gradient, void **made) {
  const tn_cuda_device *device = tn_cuda_device_of(p);
  recurrence_kernel *k = *made = tn_new(p, sizeof *k);
  if (k == NULL) return TN_ENOMEM;
  *k = recurrence_of(p->match, gradient);
  if (k->sizes.units == 0) return TN_OK;
  TN_TRY(recurrence_request(p, k));
  if (recurrence_rows(k) == 0) return TN_OK;
  TN_TRY(tn_cuda_product_open(&p->env, device, &k->step_product, 0, &k->step_plan));
  return gradient ? tn_cuda_product_open(&p->env, device, &k->weight_product, 0, &k->weight_plan) : TN_OK;
}

static tn_status cuda_recurrence_prepare(tn_prepare *p, void **made) {
  return cuda_recurrence_open(p, false, made);
}
static tn_status cuda_recurrence_grad_prepare(tn_prepare *p, void **made) {
  return cuda_recurrence_open(p, true, made);
}

static void cuda_recurrence_release(tn_env *env, void *made) {
  recurrence_kernel *k = made;
  tn_cuda_product_close(&k->step_plan);
  tn_cuda_product_close(&k->weight_plan);
  tn_cuda_withdraw(&k->start);
  tn_cuda_withdraw(&k->step);
  tn_cuda_withdraw(&k->end);
  tn_delete(env, k);
}

/* ---- launch ---- */

static void *cuda_recurrence_room(const tn_launch *l, const recurrence_kernel *k, int32_t room) {
  return (char *)l->workspace + k->room[room];
}

/* Threads for the units of all sequences; the end of the gradient also has the numbers of the bias. */
static tn_cuda_grid recurrence_grid(const recurrence_kernel *k, bool end) {
  int64_t items = recurrence_sequences(k) * k->sizes.units, columns = recurrence_columns(k);
  if (end && k->gradient && columns > items) items = columns;
  return tn_cuda_grid_of(items, RECURRENCE_THREADS, TN_CUDA_MOST_BLOCKS);
}

static tn_status cuda_recurrence_multiply(tn_launch *l, const recurrence_kernel *k,
                                          const tn_cuda_product_plan *plan, tn_cuda_matrices x) {
  x.workspace = cuda_recurrence_room(l, k, OF_MULTIPLY);
  x.workspace_bytes = tn_cuda_product_workspace(&plan->product);
  return tn_cuda_product_run(&l->env, plan, l->stream, &x);
}

static tn_status cuda_recurrence_launch(tn_launch *l) {
  const recurrence_kernel *k = l->prepared;
  const tn_cuda_grid grid = recurrence_grid(k, false);
  struct recurrence_args a = {.s = k->sizes,
                              .x = l->in[0].data,
                              .bias = l->in[2].data,
                              .h = l->in[3].data,
                              .c = l->in[4].data,
                              .y = l->out[0].data,
                              .last = l->out[1].data,
                              .cell = l->out[2].data,
                              .stored = l->n_out > 3 ? l->out[3].data : NULL,
                              .product = cuda_recurrence_room(l, k, PRODUCT),
                              .state = cuda_recurrence_room(l, k, STATE),
                              .elements = cuda_recurrence_room(l, k, ELEMENTS),
                              .cells = cuda_recurrence_room(l, k, CELLS)};
  if (recurrence_sequences(k) * k->sizes.units == 0) return TN_OK;
  if (k->room[ELEMENTS] == k->room[ELEMENTS + 1]) a.elements = a.state;
  const tn_cuda_matrices x = {.a = a.elements, .b = l->in[W].data, .d = cuda_recurrence_room(l, k, PRODUCT)};
  a.s.length = l->in[LENGTH].data;
  TN_TRY(tn_cuda_launch(l, &k->start, &grid, &a, sizeof a));
  for (a.s.k = 0; a.s.k < a.s.steps; a.s.k++) {
    TN_TRY(cuda_recurrence_multiply(l, k, &k->step_plan, x));
    TN_TRY(tn_cuda_launch(l, &k->step, &grid, &a, sizeof a));
  }
  return tn_cuda_launch(l, &k->end, &grid, &a, sizeof a);
}

/* The gradient of w: the gradients of the gates times the states before the steps. */
static tn_status cuda_recurrence_weight(tn_launch *l, const recurrence_kernel *k,
                                        const struct recurrence_grad_args *a) {
  const tn_view *dw = &l->out[1];
  const tn_cuda_matrices x = {.a = a->product != NULL ? a->product : a->dx, .b = a->before, .d = dw->data};
  if (recurrence_rows(k) > 0) return cuda_recurrence_multiply(l, k, &k->weight_plan, x);
  return tn_cuda_fill_zero(&l->env, l->stream, dw->data, tn_type_bytes(&dw->type));
}

static tn_status recurrence_back(tn_launch *l, const recurrence_kernel *k, struct recurrence_grad_args *a) {
  const tn_cuda_grid grid = recurrence_grid(k, false);
  const tn_cuda_matrices x = {.a = a->now, .b = l->in[GRAD_W].data, .c = a->state, .d = a->state};
  TN_TRY(tn_cuda_launch(l, &k->start, &grid, a, sizeof *a));
  if (recurrence_rows(k) == 0) return TN_OK;
  for (a->s.k = a->s.steps - 1; a->s.k >= 0; a->s.k--) {
    TN_TRY(tn_cuda_launch(l, &k->step, &grid, a, sizeof *a));
    TN_TRY(cuda_recurrence_multiply(l, k, &k->step_plan, x));
  }
  return TN_OK;
}

static tn_status cuda_recurrence_grad_launch(tn_launch *l) {
  const recurrence_kernel *k = l->prepared;
  const tn_cuda_grid end = recurrence_grid(k, true);
  struct recurrence_grad_args a = {.s = k->sizes,
                                   .h = l->in[GRAD_H].data,
                                   .c = l->in[GRAD_C].data,
                                   .y = l->in[GRAD_Y].data,
                                   .stored = l->in[GRAD_STORED].data,
                                   .dy = l->in[GRAD_DY].data,
                                   .dlast = l->in[GRAD_DY + 1].data,
                                   .dcell = l->in[GRAD_DY + 2].data,
                                   .dx = l->out[0].data,
                                   .dbias = l->out[2].data,
                                   .dh = l->out[3].data,
                                   .dc = l->out[4].data,
                                   .product = k->sizes.cell == TN_CELL_GRU ? cuda_recurrence_room(l, k, GATES)
                                                                           : NULL,
                                   .before = cuda_recurrence_room(l, k, BEFORE),
                                   .now = cuda_recurrence_room(l, k, NOW),
                                   .state = cuda_recurrence_room(l, k, STATE),
                                   .cells = cuda_recurrence_room(l, k, CELLS),
                                   .sums = cuda_recurrence_room(l, k, SUMS)};
  if (k->sizes.units == 0) return TN_OK;
  a.s.length = l->in[GRAD_LENGTH].data;
  TN_TRY(recurrence_back(l, k, &a));
  TN_TRY(cuda_recurrence_weight(l, k, &a));
  return tn_cuda_launch(l, &k->end, &end, &a, sizeof a);
}

TN_DEFINE_KERNEL(cuda, recurrence, "cuda_recurrence",
                 "y, last, cell, stored = recurrence(x, w, bias?, h?, c?, length?)",
                 "a product and a launch of cells for each step", TN_KERNEL_CALLBACKS(cuda_recurrence));
TN_DEFINE_KERNEL(cuda, recurrence_inference, "cuda_recurrence_inference",
                 "y, last, cell, _ = recurrence(x, w, bias?, h?, c?, length?)",
                 "a recurrence that stores nothing for a gradient", TN_KERNEL_CALLBACKS(cuda_recurrence));
TN_DEFINE_KERNEL(
    cuda, recurrence_grad, "cuda_recurrence_grad",
    "dx, dw, dbias, dh, dc = recurrence_grad(w, h?, c?, length?, y, stored, dy?, dlast?, dcell?)",
    "a launch of cells and a product for each step, then the gradient of w as one product",
    TN_KERNEL_CALLBACKS_WITH(cuda_recurrence_grad, cuda_recurrence_release));
