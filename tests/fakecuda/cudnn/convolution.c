/* tests/fakecuda/cudnn/convolution.c: convolutions and their gradients as products of matrices. A block of
 * positions of the result (rows) meets the elements of the filter (columns, in the order row, column,
 * channel) in a panel of the data. */
#include <stdlib.h>
#include <string.h>
#include "backends/shared/half.h"
#include "tests/fakecuda/cudnn/product.h"
#include "tests/fakecuda/cudnn/run.h"
#include "tests/fakecuda/cudnn/support.h"

enum { POSITIONS = 128 };

typedef struct job {
  const fakednn_node *node;
  const fakednn_tensor *x, *w, *y;
  float *x_data, *w_data, *y_data;
  int64_t group, channels, filters; /* of a group */
  int64_t width;                    /* elements of a filter */
  bool tf32;
  float *panel;   /* [POSITIONS][padded width] */
  float *results; /* [POSITIONS][padded filters] */
  float *weights; /* [width][padded filters], or [filters][padded width] */
  double *sums;
  int64_t *elements; /* offsets of the elements of a filter */
} job;

static float round_operand(const job *j, float value) { return j->tf32 ? tn_tf32_of_f32(value) : value; }

/* ---- where things are ---- */

static void split_position(const job *j, int64_t position, int64_t at[3]) {
  at[2] = position % j->y->dims[3];
  at[1] = position / j->y->dims[3] % j->y->dims[2];
  at[0] = position / j->y->dims[3] / j->y->dims[2];
}

static int64_t result_offset(const job *j, int64_t position) {
  int64_t at[3];
  split_position(j, position, at);
  return at[0] * j->y->strides[0] + at[1] * j->y->strides[2] + at[2] * j->y->strides[3] +
         j->group * j->filters * j->y->strides[1];
}

/* Offset of the data under element (row, column) of a filter at a position, first channel; -1: in the
 * padding. */
static int64_t data_offset(const job *j, const int64_t at[3], int64_t row, int64_t column) {
  const fakednn_node *n = j->node;
  int64_t h = at[1] * n->stride[0] - n->before[0] + row * n->dilation[0];
  int64_t w = at[2] * n->stride[1] - n->before[1] + column * n->dilation[1];
  if (h < 0 || h >= j->x->dims[2] || w < 0 || w >= j->x->dims[3]) return -1;
  return at[0] * j->x->strides[0] + h * j->x->strides[2] + w * j->x->strides[3] +
         j->group * j->channels * j->x->strides[1];
}

/* Offsets of the elements of a filter. CUDNN_CONVOLUTION turns the filter around. */
static void find_elements(const job *j) {
  const fakednn_tensor *w = j->w;
  for (int64_t e = 0; e < j->width; e++) {
    int64_t channel = e % j->channels, column = e / j->channels % w->dims[3],
            row = e / j->channels / w->dims[3];
    if (j->node->mode == CUDNN_CONVOLUTION) row = w->dims[2] - 1 - row, column = w->dims[3] - 1 - column;
    j->elements[e] = channel * w->strides[1] + row * w->strides[2] + column * w->strides[3];
  }
}

static float *filter_of(const job *j, int64_t filter) {
  return j->w_data + (j->group * j->filters + filter) * j->w->strides[0];
}

/* ---- panels ---- */

static void fill_panel(const job *j, int64_t first, int64_t n) {
  int64_t step = j->x->strides[1];
  for (int64_t p = 0; p < n; p++) {
    float *to = j->panel + p * fakednn_padded(j->width);
    int64_t at[3];
    split_position(j, first + p, at);
    for (int64_t row = 0; row < j->w->dims[2]; row++) {
      for (int64_t column = 0; column < j->w->dims[3]; column++, to += j->channels) {
        int64_t from = data_offset(j, at, row, column);
        for (int64_t c = 0; c < j->channels; c++)
          to[c] = from < 0 ? 0 : round_operand(j, j->x_data[from + c * step]);
      }
    }
  }
}

static void fill_results(const job *j, int64_t first, int64_t n) {
  for (int64_t p = 0; p < n; p++) {
    const float *from = j->y_data + result_offset(j, first + p);
    float *to = j->results + p * fakednn_padded(j->filters);
    for (int64_t f = 0; f < j->filters; f++) to[f] = round_operand(j, from[f * j->y->strides[1]]);
  }
}

/* A row for each element of the filter. Some filters at a time, which share lines of the cache. */
static void fill_weights_by_element(const job *j) {
  int64_t row = fakednn_padded(j->filters);
  for (int64_t first = 0; first < j->filters; first += FAKEDNN_LANES) {
    int64_t end = first + FAKEDNN_LANES < j->filters ? first + FAKEDNN_LANES : j->filters;
    for (int64_t e = 0; e < j->width; e++) {
      for (int64_t f = first; f < end; f++)
        j->weights[e * row + f] = round_operand(j, filter_of(j, f)[j->elements[e]]);
    }
  }
}

/* A row for each filter. */
static void fill_weights_by_filter(const job *j) {
  int64_t row = fakednn_padded(j->width);
  for (int64_t f = 0; f < j->filters; f++) {
    const float *from = filter_of(j, f);
    for (int64_t e = 0; e < j->width; e++) j->weights[f * row + e] = round_operand(j, from[j->elements[e]]);
  }
}

static void blend(const job *j, float *to, double value) {
  *to = (float)(j->node->alpha * value + (j->node->beta != 0 ? j->node->beta * (double)*to : 0));
}

/* ---- the three products ---- */

static void run_forward(const job *j) {
  int64_t positions = j->y->dims[0] * j->y->dims[2] * j->y->dims[3], row = fakednn_padded(j->filters);
  fill_weights_by_element(j);
  for (int64_t first = 0; first < positions; first += POSITIONS) {
    int64_t n = positions - first < POSITIONS ? positions - first : POSITIONS;
    fill_panel(j, first, n);
    memset(j->sums, 0, (size_t)(n * row) * sizeof(double));
    fakednn_multiply(&(fakednn_product){n, j->filters, j->width, j->panel, fakednn_padded(j->width), 1,
                                        j->weights, row, j->sums, row});
    for (int64_t p = 0; p < n; p++) {
      float *to = j->y_data + result_offset(j, first + p);
      for (int64_t f = 0; f < j->filters; f++) blend(j, to + f * j->y->strides[1], j->sums[p * row + f]);
    }
  }
}

static void spread_panel(const job *j, int64_t first, int64_t n, double *total) {
  int64_t step = j->x->strides[1];
  for (int64_t p = 0; p < n; p++) {
    const double *from = j->sums + p * fakednn_padded(j->width);
    int64_t at[3];
    split_position(j, first + p, at);
    for (int64_t row = 0; row < j->w->dims[2]; row++) {
      for (int64_t column = 0; column < j->w->dims[3]; column++, from += j->channels) {
        int64_t to = data_offset(j, at, row, column);
        for (int64_t c = 0; to >= 0 && c < j->channels; c++) total[to + c * step] += from[c];
      }
    }
  }
}

/* `total`: sums at the offsets of the data, of all groups. */
static void run_data(const job *j, double *total) {
  int64_t positions = j->y->dims[0] * j->y->dims[2] * j->y->dims[3], row = fakednn_padded(j->width);
  fill_weights_by_filter(j);
  for (int64_t first = 0; first < positions; first += POSITIONS) {
    int64_t n = positions - first < POSITIONS ? positions - first : POSITIONS;
    fill_results(j, first, n);
    memset(j->sums, 0, (size_t)(n * row) * sizeof(double));
    fakednn_multiply(&(fakednn_product){n, j->width, j->filters, j->results, fakednn_padded(j->filters), 1,
                                        j->weights, row, j->sums, row});
    spread_panel(j, first, n, total);
  }
}

/* Sums of pieces are rounded to f32 and added: `weights` has the total. */
static void add_piece(const job *j) {
  int64_t n = j->width * fakednn_padded(j->filters);
  for (int64_t i = 0; i < n; i++) j->weights[i] += (float)j->sums[i];
  memset(j->sums, 0, (size_t)n * sizeof(double));
}

/* `piece`: positions that are added before the sum is rounded. */
static void run_filter(const job *j, int64_t piece) {
  int64_t positions = j->y->dims[0] * j->y->dims[2] * j->y->dims[3], row = fakednn_padded(j->filters);
  memset(j->sums, 0, (size_t)(j->width * row) * sizeof(double));
  memset(j->weights, 0, (size_t)(j->width * row) * sizeof(float));
  for (int64_t first = 0, n; first < positions; first += n) {
    int64_t end = (first / piece + 1) * piece;
    n = (end < positions ? end : positions) - first;
    if (n > POSITIONS) n = POSITIONS;
    fill_panel(j, first, n);
    fill_results(j, first, n);
    fakednn_multiply(&(fakednn_product){j->width, j->filters, n, j->panel, 1, fakednn_padded(j->width),
                                        j->results, row, j->sums, row});
    if (first + n == end) add_piece(j);
  }
  add_piece(j);
  for (int64_t first = 0; first < j->filters; first += FAKEDNN_LANES) {
    int64_t end = first + FAKEDNN_LANES < j->filters ? first + FAKEDNN_LANES : j->filters;
    for (int64_t e = 0; e < j->width; e++) {
      for (int64_t f = first; f < end; f++)
        blend(j, filter_of(j, f) + j->elements[e], (double)j->weights[e * row + f]);
    }
  }
}

/* ---- jobs ---- */

/* Another number of positions each time that the plan runs. */
static int64_t piece_of(const fakednn_values *values, int64_t positions) {
  static const int64_t parts[] = {2, 3, 5, 7};
  if (values->plan->engine != FAKEDNN_ENGINE_PIECES) return positions;
  return positions / parts[values->run % 4] + 1;
}

static void run_group(const job *j, const fakednn_values *values, double *total) {
  switch (j->node->kind) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: run_forward(j); break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: run_data(j, total); break;
  default: run_filter(j, piece_of(values, j->y->dims[0] * j->y->dims[2] * j->y->dims[3])); break;
  }
}

static void store_data(const job *j, const double *total) {
  for (int64_t i = 0, n = fakednn_span(j->x); i < n; i++) blend(j, j->x_data + i, total[i]);
}

static bool reserve(job *j) {
  int64_t width = fakednn_padded(j->width), filters = fakednn_padded(j->filters);
  int64_t most = width > filters ? width : filters,
          weights = most * (j->width > j->filters ? j->width : j->filters);
  int64_t sums = POSITIONS * most > j->width * filters ? POSITIONS * most : j->width * filters;
  j->panel = calloc((size_t)(POSITIONS * (width + filters) + weights), sizeof(float));
  j->sums = calloc((size_t)sums, sizeof(double));
  j->elements = malloc((size_t)j->width * sizeof(int64_t));
  if (!j->panel || !j->sums || !j->elements) return false;
  j->results = j->panel + POSITIONS * width;
  j->weights = j->results + POSITIONS * filters;
  find_elements(j);
  return true;
}

bool fakednn_run_convolution(const fakednn_node *node, const fakednn_values *values) {
  job j = {.node = node,
           .x = fakednn_in_slot(node, values, FAKEDNN_CONV_X),
           .w = fakednn_in_slot(node, values, FAKEDNN_CONV_W),
           .y = fakednn_in_slot(node, values, FAKEDNN_CONV_Y),
           .x_data = fakednn_data(node, values, FAKEDNN_CONV_X),
           .w_data = fakednn_data(node, values, FAKEDNN_CONV_W),
           .y_data = fakednn_data(node, values, FAKEDNN_CONV_Y)};
  int64_t groups = j.x->dims[1] / j.w->dims[1];
  bool data = node->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  double *total = data ? calloc((size_t)fakednn_span(j.x), sizeof(double)) : NULL;
  j.channels = j.w->dims[1];
  j.filters = j.w->dims[0] / groups;
  j.width = j.channels * j.w->dims[2] * j.w->dims[3];
  j.tf32 = values->tf32;
  bool reserved = reserve(&j) && (!data || total);
  for (; reserved && j.group < groups; j.group++) run_group(&j, values, total);
  if (reserved && data) store_data(&j, total);
  free(j.panel);
  free(j.sums);
  free(j.elements);
  free(total);
  return reserved;
}
