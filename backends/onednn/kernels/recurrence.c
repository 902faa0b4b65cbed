/* backends/onednn/kernels/recurrence.c: recurrence in f32, bf16 and f16, alone or with the product of the
 * input in front of it. Arithmetic is f32: the weights of halves are widened when they are packed, and their
 * states are not rounded between steps.
 *
 * A launch packs the weights into panels once. A task then takes some sequences through all steps, so no step
 * waits for other tasks: in each step it multiplies the rows of states that have not ended by a panel and
 * computes the cells of that panel's units while their gates are in the first-level cache. The states of f32
 * are the rows of y. */
#include "backends/onednn/kernels/recurrence_sequences.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

enum {
  CACHED = 1 << 18, /* floats of a weight that stays in the second-level cache, at most */
  FEW_ROWS = 6,     /* sequences of a task with such a weight, at most; with a larger one, ROWS */
  TASKS = 4,        /* tasks wanted with such a weight */
  FEW_TASKS = 2,    /* tasks wanted with a larger weight */
  AHEAD = 1 << 16   /* floats of the input that a task multiplies at once */
};

/* ---- forward ------------------------------------------------------------------------------------- */

enum { INPUT = 0, INPUT_WEIGHT = 1, INPUT_BIAS = 2 }; /* with the product in front */
enum { WEIGHT = 1, BIAS, H, C, LENGTH };              /* without it: see recurrence_number */

/* The number of an operand of the recurrence: the product in front adds two. */
static int32_t recurrence_number(const recurrence_kernel *p, int32_t operand) {
  return operand + (p->whole ? 2 : 0);
}

static void *recurrence_in(const recurrence_job *j, int32_t operand) {
  return j->l->in[recurrence_number(j->p, operand)].data;
}

/* The columns of a panel, as its vectors: rows of a weight, or elements of a bias from `at` on. */
static void recurrence_pack_bias(const recurrence_kernel *p, const void *bias, int64_t at, int64_t step,
                                 const int64_t *n, float *to) {
  int64_t lanes = p->loops->lanes;
  memset(to, 0, (size_t)recurrence_panel_width(p) * sizeof *to);
  for (int64_t b = 0; bias != NULL && b < recurrence_blocks(p); b++)
    if (n[b] > 0) p->loops->widen(p->dtype, bias, at + b * step, n[b], to + b * lanes);
}

/* The columns of a panel from row `first` of a weight on. For tiles two elements are one, as if f32. */
static void recurrence_pack_weight(const recurrence_kernel *p, const void *w, int64_t first, int64_t k,
                                   const int64_t *n, float *to) {
  int64_t step = p->gates == 1 ? p->loops->lanes : p->units, blocks = recurrence_blocks(p), lines = k;
  if (p->tiles) lines = k / 2;
  p->loops->pack_rows(p->tiles ? TN_F32 : p->dtype, w, first * lines, lines, step, n, blocks, to);
  int64_t width = recurrence_panel_width(p), rest = recurrence_lines(p, k) - lines;
  memset(to + lines * width, 0, (size_t)(rest * width) * sizeof *to);
}

static void recurrence_pack_panel(void *arg, int64_t panel) {
  const recurrence_job *j = arg;
  const recurrence_kernel *p = j->p;
  int64_t width = recurrence_panel_width(p), first = panel * recurrence_panel_units(p), n[BLOCKS];
  int64_t step = p->gates == 1 ? p->loops->lanes : p->units, blocks = recurrence_blocks(p);
  for (int64_t b = 0; b < blocks; b++)
    n[b] = least(p->loops->lanes, p->units - first - (p->gates == 1 ? b * p->loops->lanes : 0));
  recurrence_pack_weight(p, recurrence_in(j, WEIGHT), first, p->units, n,
                         j->panels + panel * width * recurrence_lines(p, p->units));
  recurrence_pack_bias(p, recurrence_in(j, BIAS), first, step, n, j->bias + 2 * panel * width);
  if (!p->whole) return;
  recurrence_pack_weight(p, j->l->in[INPUT_WEIGHT].data, first, p->features, n,
                         j->input + panel * width * recurrence_lines(p, p->features));
  recurrence_pack_bias(p, j->l->in[INPUT_BIAS].data, first, step, n, j->bias + (2 * panel + 1) * width);
}

/* The state of a sequence behind step k, or before step 0: a row of y, or of halves one of two rows. */
static float *recurrence_behind(const recurrence_job *j, int64_t row, int64_t k) {
  int64_t n = j->p->units;
  if (j->states != NULL) return j->states + (2 * row + (k & 1)) * n;
  return (float *)j->l->out[0].data + recurrence_at(j, row, k) * n;
}

/* The state of a sequence before step k. */
static const float *recurrence_before(const recurrence_job *j, int64_t row, int64_t k) {
  const float *h = recurrence_in(j, H);
  if (k > 0 || j->states != NULL) return recurrence_behind(j, row, k - 1);
  return h != NULL ? h + row * j->p->units : j->zeros;
}

/* The gates of some sequences and the units of a panel. */
typedef struct recurrence_gates {
  const int64_t *rows;
  int64_t n, k, panel;
  float *to; /* rows of a panel's width */
} recurrence_gates;

/* The input of a step of sequence number i of a task: f32, which of halves is widened in advance. */
static float *recurrence_features(const recurrence_job *j, const recurrence_gates *g, int64_t i) {
  const recurrence_kernel *p = j->p;
  if (j->features == NULL)
    return (float *)j->l->in[INPUT].data + recurrence_at(j, g->rows[i], g->k) * p->features;
  int64_t task = g->rows[i] / p->rows;
  return j->features + ((task * p->ahead + g->k % p->ahead) * p->rows + i) * p->features;
}

/* The part of the state, or with `input` that of the input. */
static void recurrence_multiply_gates(const recurrence_job *j, const recurrence_gates *g, bool input) {
  const recurrence_kernel *p = j->p;
  int64_t width = recurrence_panel_width(p), depth = input ? p->features : p->units;
  tn_recurrence_product m = {.rows = g->n,
                             .k = depth,
                             .blocks = recurrence_blocks(p),
                             .panel = (input ? j->input : j->panels) +
                                      g->panel * width * recurrence_lines(p, depth)};
  for (int64_t i = 0; i < g->n; i++) {
    m.a[i] = input ? recurrence_features(j, g, i) : recurrence_before(j, g->rows[i], g->k);
    m.first[i] = j->bias + (2 * g->panel + input) * width;
    m.out[i] = g->to + i * width;
  }
  recurrence_multiply_rows(p, &m);
}

/* The part of the input of p->ahead steps from k on, panel by panel, so that its weight need not stay in the
 * cache beside that of the state. */
static float *recurrence_inputs(const recurrence_job *j, int64_t task, int64_t panel, int64_t k) {
  const recurrence_kernel *p = j->p;
  int64_t of_step = p->rows * recurrence_panel_width(p), of_panel = p->ahead * of_step;
  return j->inputs + (task * recurrence_panels(p) + panel) * of_panel + k % p->ahead * of_step;
}

static void recurrence_widen_inputs(const recurrence_job *j, int64_t task, int64_t k) {
  int64_t rows[ROWS], n = j->p->features;
  recurrence_gates g = {.rows = rows};
  for (g.k = k; g.k < k + j->p->ahead; g.k++) {
    g.n = recurrence_active(j, task, g.k, rows);
    for (int64_t i = 0; i < g.n; i++)
      j->p->loops->widen(j->p->dtype, j->l->in[INPUT].data, recurrence_at(j, rows[i], g.k) * n, n,
                         recurrence_features(j, &g, i));
  }
}

static void recurrence_multiply_inputs(const recurrence_job *j, int64_t task, int64_t k) {
  int64_t rows[ROWS];
  if (j->features != NULL) recurrence_widen_inputs(j, task, k);
  for (int64_t panel = 0; panel < recurrence_panels(j->p); panel++)
    for (int64_t i = k; i < k + j->p->ahead; i++) {
      int64_t n = recurrence_active(j, task, i, rows);
      const recurrence_gates g = {rows, n, i, panel, recurrence_inputs(j, task, panel, i)};
      recurrence_multiply_gates(j, &g, true);
    }
}

/* One step of the sequences of a task, for the units of a panel. */
static void recurrence_step(const recurrence_job *j, int64_t task, const recurrence_gates *g) {
  const recurrence_kernel *p = j->p;
  int64_t lanes = p->loops->lanes, first = g->panel * recurrence_panel_units(p),
          width = recurrence_panel_width(p);
  float *inputs = p->whole ? recurrence_inputs(j, task, g->panel, g->k) : NULL;
  void *x = j->l->in[INPUT].data, *stored = j->l->n_out > 3 && p->stored > 0 ? j->l->out[3].data : NULL;
  recurrence_multiply_gates(j, g, false);
  for (int64_t i = 0; i < g->n; i++) {
    int64_t at = recurrence_at(j, g->rows[i], g->k);
    p->loops->cell[p->dtype][p->a.cell](&(tn_recurrence_cell){
        .n = least(recurrence_panel_units(p), p->units - first),
        .x_is_f32 = p->whole,
        .x = p->whole ? inputs + i * width : recurrence_element(p, x, at * recurrence_columns(p) + first),
        .x_step = p->whole ? lanes : p->units,
        .p = g->to + i * width,
        .p_step = lanes,
        .h = recurrence_before(j, g->rows[i], g->k) + first,
        .c = j->cells + g->rows[i] * p->units + first,
        .next = recurrence_behind(j, g->rows[i], g->k) + first,
        .y = recurrence_element(p, j->l->out[0].data, at * p->units + first),
        .stored = recurrence_element(p, stored, at * p->stored * p->units + first),
        .stored_step = p->units});
  }
}

static void recurrence_forward(void *arg, int64_t task) {
  const recurrence_job *j = arg;
  const recurrence_kernel *p = j->p;
  _Alignas(64) float product[ROWS * WIDTH];
  int64_t rows[ROWS], end = least((task + 1) * p->rows, p->batch);
  recurrence_gates g = {.rows = rows, .to = product};
  for (int64_t row = task * p->rows; row < end; row++) {
    if (p->a.cell == TN_CELL_LSTM)
      recurrence_load_state(j, recurrence_number(p, C), row, j->cells + row * p->units);
    if (j->states != NULL)
      recurrence_load_state(j, recurrence_number(p, H), row, recurrence_behind(j, row, -1));
  }
  for (g.k = 0; (g.n = recurrence_active(j, task, g.k, rows)) > 0; g.k++) {
    if (p->whole && g.k % p->ahead == 0) recurrence_multiply_inputs(j, task, g.k);
    for (g.panel = 0; g.panel < recurrence_panels(p); g.panel++) recurrence_step(j, task, &g);
  }
  for (int64_t row = task * p->rows; row < end; row++) {
    recurrence_store_state(j, 1, row, recurrence_before(j, row, recurrence_length(j, row)));
    if (p->a.cell == TN_CELL_LSTM && j->cells != j->l->out[2].data)
      recurrence_store_state(j, 2, row, j->cells + row * p->units);
  }
}

static tn_status onednn_recurrence_launch(tn_launch *l) {
  const recurrence_kernel *p = l->prepared;
  recurrence_job j = {.l = l, .p = p, .length = l->in[recurrence_number(p, LENGTH)].data};
  TN_TRY(tn_check_sequence_lengths(l, j.length, p->batch, p->steps));
  if (p->units == 0) return TN_OK;
  j.panels = l->workspace;
  j.input = j.panels + recurrence_panel_floats(p, p->units);
  j.bias = j.input + recurrence_panel_floats(p, p->features);
  j.zeros = j.bias + recurrence_bias_rows(p);
  j.inputs = j.zeros + recurrence_padded(p);
  j.cells = l->out[2].data;
  if (recurrence_is_half(p)) {
    j.cells = j.inputs + recurrence_input_floats(p);
    j.states = j.cells + recurrence_state_rows(p);
    j.features = j.states + 2 * recurrence_state_rows(p);
  }
  memset(j.zeros, 0, (size_t)p->units * sizeof(float));
  for (int32_t i = 0; j.length != NULL && i < l->n_out; i += 3) recurrence_clear(&l->out[i]);
  tn_parallel(l, recurrence_panels(p), recurrence_pack_panel, &j);
  tn_parallel(l, recurrence_tasks(p), recurrence_forward, &j);
  return TN_OK;
}

/* ---- query --------------------------------------------------------------------------------------- */

/* The sizes are those of y, w and stored. */
static void recurrence_set_sizes(recurrence_kernel *p, const tn_type *y, const tn_type *w,
                                 const tn_type *stored) {
  p->batch = y->dims[0];
  p->steps = y->dims[1];
  p->units = y->dims[2];
  p->gates = p->units > 0 ? w->dims[0] / p->units : 1;
  p->stored = p->units > 0 ? stored->dims[2] / p->units : 0;
  bool stays = recurrence_columns(p) * p->units <= CACHED && !p->tiles;
  int64_t rows = stays ? FEW_ROWS : p->tiles ? TN_RECURRENCE_TILE_ROWS : ROWS;
  p->rows = balanced_step(p->batch, least(rows, at_least_1(p->batch / (stays ? TASKS : FEW_TASKS))));
}

/* Of bf16 with an even number of units, and of features where their product is part of the match. */
static bool recurrence_takes_tiles(const tn_match *m, int32_t isa) {
  const tn_node *node = m->nodes[m->n_nodes - 1].node;
  const tn_type *w = node->in[strcmp(node->op, "recurrence_grad") == 0 ? GRAD_WEIGHT : WEIGHT];
  bool even = w->dims[1] % 2 == 0 && (m->n_nodes == 1 || m->in[INPUT]->dims[1] % 2 == 0);
  return w->dtype == TN_BF16 && even && tn_onednn_recurrence_has_tiles(isa);
}

void tn_onednn_recurrence_make(const tn_match *m, const void *backend, recurrence_kernel *p) {
  const tn_node *node = m->nodes[m->n_nodes - 1].node;
  bool gradient = strcmp(node->op, "recurrence_grad") == 0;
  int32_t isa = tn_onednn_isa_of(backend);
  *p = (recurrence_kernel){.a = *(const tn_recurrence_attributes *)node->attributes,
                           .dtype = node->out[0].dtype,
                           .loops = TN_LOOPS_PICK_AT(tn_loops_recurrence, isa),
                           .gemm = TN_LOOPS_PICK_AT(tn_loops_gemm, isa),
                           .whole = m->n_nodes > 1};
  p->tiles = recurrence_takes_tiles(m, isa);
  recurrence_set_sizes(p, gradient ? node->in[GRAD_Y] : &node->out[0],
                       node->in[gradient ? GRAD_WEIGHT : WEIGHT],
                       gradient ? node->in[GRAD_STORED] : &node->out[3]);
  if (p->whole) p->features = m->in[INPUT]->dims[1];
  int64_t wide = recurrence_columns(p);
  if (recurrence_is_half(p) && p->features > wide) wide = p->features;
  if (p->whole) p->ahead = least(p->steps, at_least_1(AHEAD / at_least_1(p->rows * wide)));
  if (gradient)
    tn_gemm_partition_make(&p->weight, TN_F32, 1, 0, 1, recurrence_columns(p), p->units, recurrence_all(p),
                           TN_GEMM_ROW_SUMS);
}

static double recurrence_rate(const tn_query *q, const recurrence_kernel *p) {
  int32_t isa = tn_onednn_isa_of(q->backend);
  double rate = isa >= TN_ISA_AVX512 ? 7e10 : isa >= TN_ISA_AVX2 ? 3.5e10 : 5e9;
  return rate * tn_thread_speed(q->device) *
         (double)at_least_1(least(recurrence_tasks(p), q->device->threads));
}

tn_status tn_onednn_recurrence_offer(tn_query *q, const recurrence_kernel *p, int64_t floats, double times) {
  double products =
      (double)recurrence_all(p) * (double)recurrence_columns(p) * (double)(p->units + p->features);
  return tn_offer(q, (tn_variant){.name = "panels",
                                  .workspace_bytes = floats * (int64_t)sizeof(float),
                                  .prepared_bytes = (int64_t)sizeof *p,
                                  .cost_s = tn_cost_of_bytes(q->device, tn_match_bytes(q->match)) +
                                            times * products / recurrence_rate(q, p)});
}

tn_status tn_onednn_recurrence_check(tn_query *q) {
  int32_t dtype = q->match->out[0]->dtype;
  if (dtype == TN_F32 || dtype == TN_BF16 || dtype == TN_F16) return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f32, bf16 or f16",
                 tn_dtype_name(dtype));
}

/* The product of the input has the weight transposed, as a linear layer, and its rows are the steps. */
static tn_status recurrence_check_product(tn_query *q) {
  const tn_match *m = q->match;
  if (m->n_nodes == 1) return TN_OK;
  const tn_matmul_attributes *t = m->nodes[0].node->attributes;
  if (!t->transpose_a && t->transpose_b && t->math == TN_MATH_FULL && m->in[INPUT]->rank == 2 &&
      m->in[INPUT_WEIGHT]->rank == 2 && m->in[INPUT_WEIGHT]->dims[0] == m->nodes[1].node->out[0].dims[2])
    return TN_OK;
  return tn_fail(q, TN_EUNSUPPORTED, NULL, "the product in front is not that of a linear layer, in f32");
}

static tn_status onednn_recurrence_query(tn_query *q) {
  TN_TRY(tn_onednn_recurrence_check(q));
  TN_TRY(recurrence_check_product(q));
  recurrence_kernel p;
  tn_onednn_recurrence_make(q->match, q->backend, &p);
  return tn_onednn_recurrence_offer(q, &p, recurrence_forward_floats(&p), 1);
}

tn_status tn_onednn_recurrence_prepare(tn_prepare *p, void **made) {
  recurrence_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  tn_onednn_recurrence_make(p->match, p->backend, kernel);
  *made = kernel;
  return TN_OK;
}

#define FORWARD                                                                                              \
  .query = onednn_recurrence_query, .prepare = tn_onednn_recurrence_prepare, .release = tn_delete_prepared,  \
  .launch = onednn_recurrence_launch
#define PRODUCT  "g = matmul(rows, wi, shift?); x = reshape(g); "
#define OPERANDS "recurrence(x, w, bias?, h?, c?, length?)"

TN_DEFINE_KERNEL(onednn, recurrence, "onednn_recurrence", "y, last, cell, stored = " OPERANDS,
                 "some sequences through all steps in each task, by panels of units", FORWARD);
TN_DEFINE_KERNEL(onednn, recurrence_inference, "onednn_recurrence_inference", "y, last, cell, _ = " OPERANDS,
                 "a recurrence that stores nothing for a gradient", FORWARD);
TN_DEFINE_KERNEL(onednn, recurrent_layer, "onednn_recurrent_layer",
                 PRODUCT "y, last, cell, stored = " OPERANDS, "a recurrence with the product of its input",
                 FORWARD);
TN_DEFINE_KERNEL(onednn, recurrent_layer_inference, "onednn_recurrent_layer_inference",
                 PRODUCT "y, last, cell, _ = " OPERANDS,
                 "a recurrence with the product of its input, which stores nothing for a gradient", FORWARD);
