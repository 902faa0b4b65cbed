/* core/conformance/cases/draw.c: draws types, operands and values. */
#include <math.h>
#include <stdio.h>

#include "core/base/element.h"
#include "core/conformance/cases/cases.h"
#include "core/conformance/reference/reference.h"

tn_type tn_draw_type_of(int32_t dtype, int32_t rank, const int64_t *dims) {
  tn_type t = {dtype, rank, {0}};
  for (int32_t i = 0; i < rank; i++) t.dims[i] = dims[i];
  return t;
}

tn_type tn_draw_type(tn_draw *d, int32_t dtype, int32_t least_rank, int32_t most_rank, bool empty) {
  tn_type t = {dtype, (int32_t)tn_draw_between(d, least_rank, most_rank), {0}};
  int64_t count = 1;
  for (int32_t i = 0; i < t.rank; i++) {
    t.dims[i] = tn_draw_between(d, 0, 3) == 0 ? 1
                : count < 1000                ? tn_draw_size(d, 1, 4)
                                              : tn_draw_between(d, 1, 2);
    count *= t.dims[i];
  }
  if (empty && t.rank > 0 && tn_draw_between(d, 0, 9) == 0) t.dims[tn_draw_between(d, 0, t.rank - 1)] = 0;
  return t;
}

tn_type tn_draw_narrower(tn_draw *d, const tn_type *wide) {
  int32_t gone = tn_draw_flag(d) ? 0 : (int32_t)tn_draw_between(d, 0, wide->rank);
  tn_type t = tn_draw_type_of(wide->dtype, wide->rank - gone, wide->dims + gone);
  for (int32_t i = 0; i < t.rank; i++)
    if (tn_draw_between(d, 0, 2) == 0) t.dims[i] = 1;
  return t;
}

static tn_val draw_input(tn_draw *d, tn_case_input input) {
  if (d->n_inputs == TN_CASE_INPUTS) return 0;
  snprintf(input.name, sizeof input.name, "x%d", d->n_inputs);
  d->inputs[d->n_inputs++] = input;
  tn_val given = tn_graph_input(d->graph, input.name, &input.type);
  if (d->dying) given = tn_copy(d->b, given);
  tn_val (*front)(tn_draw *, tn_val) = d->front;
  d->front = NULL;
  return front != NULL ? front(d, given) : given;
}

tn_val tn_draw_tensor(tn_draw *d, tn_type type, int32_t fill) {
  return draw_input(
      d, (tn_case_input){
             .type = type, .fill = type.dtype == TN_BOOL ? TN_FILL_BOOL : fill, .low = -9, .high = 9});
}

tn_val tn_draw_integers(tn_draw *d, tn_type type, int64_t low, int64_t high) {
  return draw_input(d, (tn_case_input){.type = type, .fill = TN_FILL_INTEGER, .low = low, .high = high});
}

tn_val tn_draw_domain(tn_draw *d, tn_type type, tn_range domain) {
  return draw_input(d, (tn_case_input){.type = type,
                                       .fill = type.dtype == TN_BOOL ? TN_FILL_BOOL : TN_FILL_DOMAIN,
                                       .low = -9,
                                       .high = 9,
                                       .domain = domain,
                                       .style = d->style});
}

tn_val tn_draw_counter(tn_draw *d, int64_t least) {
  return tn_draw_integers(d, tn_draw_type_of(TN_I64, 0, NULL), least, least + 5);
}

/* ---- values ---- */

static double draw_value(tn_rng *rng, const tn_case_input *input) {
  switch (input->fill) {
  case TN_FILL_FAR: return (input->type.dtype == TN_BF16 ? 100 : 1500) + tn_rng_between(rng, -2, 2);
  case TN_FILL_POSITIVE: return tn_rng_between(rng, 0.5, 2);
  case TN_FILL_AWAY: {
    double v = tn_rng_between(rng, 0.1, 2);
    return tn_rng_below(rng, 2) == 0 ? v : -v;
  }
  case TN_FILL_INTEGER: return (double)(input->low + tn_rng_below(rng, input->high - input->low));
  case TN_FILL_BOOL: return (double)tn_rng_below(rng, 2);
  case TN_FILL_DOMAIN: return tn_draw_from_domain(rng, input);
  default: return tn_rng_between(rng, -2, 2);
  }
}

/* Multiples of 0.1 around 0 in random order (Fisher-Yates shuffle). */
static void draw_distinct(tn_rng *rng, int64_t n, double *values) {
  for (int64_t i = 0; i < n; i++) values[i] = 0.1 * (double)(i - n / 2) + 0.03;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t k = tn_rng_below(rng, i + 1);
    double v = values[i];
    values[i] = values[k];
    values[k] = v;
  }
}

/* The integers of a domain, between -9 and 8 where it has no bound. Special ones are all of a type of one
 * byte, whose arithmetic wraps. */
static void draw_integer_bounds(tn_case_input *input) {
  const tn_range *r = &input->domain;
  double least, most;
  bool bytes = tn_dtype_size(input->type.dtype) == 1 && input->style == TN_STYLE_SPECIAL;
  tn_element_range(input->type.dtype, &least, &most);
  double low =
      isinf(r->low) ? fmin(-9, r->high - 18) : ceil(r->low) + (r->low_open && r->low == ceil(r->low));
  low = fmax(bytes && isinf(r->low) ? least : low, least);
  double high =
      isinf(r->high) ? fmax(9, low + 18) : floor(r->high) + !(r->high_open && r->high == floor(r->high));
  if (bytes && isinf(r->high)) high = most + 1;
  input->low = (int64_t)low;
  input->high = (int64_t)fmax(high, low + 1);
}

void tn_draw_values(tn_rng *rng, const tn_case_input *input, double *values) {
  int64_t n = tn_type_count(&input->type);
  tn_case_input drawn = *input;
  /* Integer types have integers of either sign. */
  if (!tn_dtype_is_float(input->type.dtype) && input->fill != TN_FILL_BOOL) {
    if (input->fill == TN_FILL_DOMAIN) draw_integer_bounds(&drawn);
    drawn.fill = TN_FILL_INTEGER;
  }
  if (drawn.fill == TN_FILL_DISTINCT)
    draw_distinct(rng, n, values);
  else
    for (int64_t i = 0; i < n; i++) values[i] = draw_value(rng, &drawn);
  for (int64_t i = 0; i < n; i++) values[i] = tn_reference_round(input->type.dtype, values[i]);
}

void tn_draw_begin(tn_draw *d, const char *op, int32_t n, const tn_val *operands) {
  tn_op_begin(d->b, op);
  for (int32_t i = 0; i < n; i++) tn_op_arg(d->b, operands[i]);
}

/* ---- results ---- */

int32_t tn_draw_results(const tn_draw *d, tn_val first, tn_val *results) {
  int32_t n = d->n_results > 0 ? d->n_results : tn_graph_maker(d->graph, first)->n_out;
  for (int32_t i = 0; i < n; i++) results[i] = d->n_results > 0 ? d->results[i] : first + (tn_val)i;
  return n;
}

bool tn_draw_is_differentiable(const tn_draw *d, tn_val first) {
  const tn_gnode *node = tn_graph_maker(d->graph, first);
  if (d->n_results > 0) return tn_dtype_is_float(tn_graph_type(d->graph, first)->dtype);
  return (node->op->flags & TN_OP_NONDIFF) == 0 && node->n_in > 0;
}
