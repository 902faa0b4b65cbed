/* Maps (backends/shared/pointwise/space.h) as functions from a position to the place of an element. Which
 * strides are 0 and 1 is in the text; the other strides, and the divisors, are words. */
#include <stdio.h>

#include "backends/cuda/divider.h"
#include "backends/cuda/pointwise/printer.h"

static int32_t map_mode(const tn_cuda_printer *p, const tn_pw_map *map) {
  int32_t inner = map->rank - 1, width = p->made->width;
  if (tn_pw_access_of(map) == TN_PW_SAME) return PRINT_SAME;
  if (inner == 0 || map->strides[inner] > 1 || map->dims[inner] % width != 0) return PRINT_EACH;
  for (int32_t i = 0; i < inner && map->strides[inner] == 1; i++)
    if (map->strides[i] % width != 0) return PRINT_EACH;
  return map->strides[inner] == 1 ? PRINT_RUN : PRINT_ONE;
}

static bool map_equal(const tn_pw_map *a, const tn_pw_map *b) {
  bool equal = a->rank == b->rank;
  for (int32_t i = 0; i < a->rank && equal; i++)
    equal = a->dims[i] == b->dims[i] && a->strides[i] == b->strides[i];
  return equal;
}

void tn_cuda_plan_maps(tn_cuda_printer *p) {
  const tn_pw_region *r = p->region;
  for (int32_t i = 0; i < r->n_maps; i++) {
    int32_t first = 0;
    while (!map_equal(&r->maps[first], &r->maps[i])) first++;
    p->map_of[i] = first;
    p->map_mode[i] = map_mode(p, &r->maps[i]);
  }
}

/* Adds coordinate `c`, an expression, of a dimension to the place. */
static void map_put_stride(tn_cuda_printer *p, int64_t stride, const char *c) {
  if (stride == 0) return;
  if (stride == 1)
    tn_cuda_put(p, "  place += %s;\n", c);
  else
    tn_cuda_put(p, "  place += %s * (at_t)a.w[%d];\n", c, (int)tn_cuda_put_word(p, (uint64_t)stride));
}

void tn_cuda_put_divider(tn_cuda_printer *p, int64_t divisor, char text[96]) {
  struct divider d = tn_cuda_divider(divisor < 1 ? 1 : divisor);
  int word = tn_cuda_put_word(p, (uint64_t)d.divisor);
  if (p->wide) {
    tn_cuda_put_word(p, d.long_multiplier);
    tn_cuda_put_word(p, d.long_shift);
    snprintf(text, 96, "long_divider_of(a.w[%d], a.w[%d], a.w[%d])", word, word + 1, word + 2);
  } else {
    tn_cuda_put_word(p, d.multiplier | (uint64_t)d.shift << 32);
    snprintf(text, 96, "divider_of(a.w[%d], a.w[%d])", word, word + 1);
  }
}

/* From the innermost dimension outwards. A dimension along which the tensor repeats is divided away. */
static void map_put_function(tn_cuda_printer *p, int32_t number) {
  const tn_pw_map *map = &p->region->maps[number];
  tn_cuda_put(p, "static __device__ inline at_t map_%d(const words &a, at_t p) {\n  at_t place = 0;\n",
              (int)number);
  for (int32_t i = map->rank - 1; i > 0; i--) {
    char divider[96], rest[128];
    tn_cuda_put_divider(p, map->dims[i], divider);
    snprintf(rest, sizeof rest, "split(&p, %s)", divider);
    if (map->strides[i] == 0)
      tn_cuda_put(p, "  p = divide(p, %s);\n", divider);
    else
      map_put_stride(p, map->strides[i], rest);
  }
  map_put_stride(p, map->strides[0], "p");
  tn_cuda_put(p, "  return place;\n}\n\n");
}

/* Maps that only instructions with one value for all positions have need no function. */
static bool map_is_walked(const tn_pw_region *r, const tn_cuda_printer *p, int32_t number) {
  for (int32_t i = r->end[TN_PW_ONCE]; i < r->n_insns; i++)
    if (r->insns[i].map != TN_PW_NONE && p->map_of[r->insns[i].map] == number) return true;
  return false;
}

void tn_cuda_put_maps(tn_cuda_printer *p) {
  for (int32_t i = 0; i < p->region->n_maps; i++)
    if (p->map_of[i] == i && p->map_mode[i] != PRINT_SAME && map_is_walked(p->region, p, i))
      map_put_function(p, i);
}

void tn_cuda_put_place(tn_cuda_printer *p, int32_t map, bool of_position) {
  int32_t number = p->map_of[map];
  uint8_t bit = of_position ? 2 : 1;
  if (p->map_known[number] & bit) return;
  p->map_known[number] |= bit;
  if (of_position)
    tn_cuda_put(p, "    const at_t e%d = map_%d(a, within(p + k, count));\n", (int)number, (int)number);
  else
    tn_cuda_put(p, "  const at_t m%d = map_%d(a, p);\n", (int)number, (int)number);
}
