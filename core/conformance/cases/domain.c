/* core/conformance/cases/domain.c: draws numbers from the domain of an operand. */
#include "core/conformance/cases/cases.h"

double tn_domain_smallest_normal(int32_t dtype) {
  return dtype == TN_F16 ? 0x1p-14 : dtype == TN_F64 ? 0x1p-1022 : 0x1p-126;
}

static double domain_power(tn_rng *rng, double low, double high) {
  return exp(tn_rng_between(rng, log(low), log(high)));
}

/* Sizes without sign. Sums of large numbers of f16 and their squares stay finite. */
static double domain_wide(tn_rng *rng) {
  switch (tn_rng_below(rng, 4)) {
  case 0: return 0;
  case 1: return domain_power(rng, 1e-6, 1e-2);
  case 2: return tn_rng_between(rng, 4, 8);
  default: return tn_rng_between(rng, 0, 4);
  }
}

static double domain_special(tn_rng *rng, int32_t dtype) {
  double normal = tn_domain_smallest_normal(dtype);
  switch (tn_rng_below(rng, 8)) {
  case 0: return INFINITY;
  case 1: return NAN;
  case 2: return normal * tn_rng_uniform(rng);
  case 3: return normal * tn_rng_between(rng, 1, 4);
  case 4:
  case 5: return dtype == TN_F16 ? tn_rng_between(rng, 8, 60) : domain_power(rng, 8, 3e4);
  default: return domain_wide(rng);
  }
}

static double domain_size(tn_rng *rng, const tn_case_input *input) {
  if (input->style == TN_STYLE_SPECIAL) return domain_special(rng, input->type.dtype);
  return input->style == TN_STYLE_WIDE ? domain_wide(rng) : tn_rng_between(rng, 0, 4);
}

/* Numbers of an interval, its bounds included. Numbers that are not finite are outside of it. */
static double domain_between(tn_rng *rng, const tn_case_input *input, double low, double high) {
  int64_t edge = input->style == TN_STYLE_ORDINARY || input->margin > 0 ? 2 : tn_rng_below(rng, 6);
  if (edge == 0 && !input->domain.low_open) return low;
  if (edge == 1 && !input->domain.high_open) return high;
  return low + (high - low) * ((double)tn_rng_below(rng, 1 << 20) + 0.5) * 0x1p-20;
}

/* A domain with one bound: the distance from it. An infinity belongs to it, a NaN does not. */
static double domain_beyond(tn_rng *rng, const tn_case_input *input, bool open) {
  double distance = domain_size(rng, input);
  return distance != distance ? 1 : distance == 0 && open ? 0.5 : distance + input->margin;
}

double tn_draw_from_domain(tn_rng *rng, const tn_case_input *input) {
  const tn_range *r = &input->domain;
  double margin = fmin(input->margin, 0.25 * (r->high - r->low));
  if (isfinite(r->low) && isfinite(r->high))
    return domain_between(rng, input, r->low + margin, r->high - margin);
  if (isfinite(r->low)) return r->low + domain_beyond(rng, input, r->low_open);
  if (isfinite(r->high)) return r->high - domain_beyond(rng, input, r->high_open);
  double size = domain_size(rng, input);
  return tn_rng_below(rng, 2) == 0 ? size : -size;
}
