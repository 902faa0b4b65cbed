/* tests/unit/backends/cpu/kernels/movement_test.c: ops that move elements, against naive loops over
 * coordinates. */
#include "tests/unit/backends/cpu/rig.h"

#include <stdio.h>

#include "tenon/plugin/storage.h"

extern const tn_kernel tn_kernel_cpu_concat, tn_kernel_cpu_copy, tn_kernel_cpu_pack, tn_kernel_cpu_pad,
    tn_kernel_cpu_reorder, tn_kernel_cpu_slice, tn_kernel_cpu_transpose;

/* ---- helpers ---- */

static tn_type drawn_type(tn_rng *rng, int32_t max_rank, int64_t max_dim) {
  static const int32_t dtypes[] = {TN_U8, TN_F16, TN_F32, TN_F64};
  tn_type type = {dtypes[tn_rng_below(rng, 4)], (int32_t)tn_rng_below(rng, max_rank + 1), {0}};
  for (int32_t i = 0; i < type.rank; i++)
    type.dims[i] = tn_rng_below(rng, 15) == 0 ? 0 : 1 + tn_rng_below(rng, tn_rng_below(rng, 3) ? 6 : max_dim);
  return type;
}

/* Different bytes for every element. */
static uint8_t *numbered(const tn_type *type) {
  size_t n = tn_type_bytes(type);
  uint8_t *bytes = rig_tensor(type);
  for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)((i * 2654435761u) >> 13);
  return bytes;
}

static int64_t position(const tn_type *type, const int64_t *c) {
  int64_t at = 0;
  for (int32_t i = 0; i < type->rank; i++) at = at * type->dims[i] + c[i];
  return at;
}

/* Runs a node with one operand on numbered bytes; returns the operand and the result. */
static void run_one(const tn_kernel *kernel, const char *op, const void *attributes, const tn_type *x_type,
                    const tn_type *y_type, uint8_t **x, uint8_t **y) {
  rig_match m;
  rig_start(&m);
  int32_t number = rig_in(&m, x_type);
  rig_out(&m, rig_node(&m, op, attributes, &number, 1, y_type, 1));
  *x = numbered(x_type);
  *y = rig_tensor(y_type);
  void *in[] = {*x}, *out[] = {*y};
  rig_run_on_all(kernel, &m, in, out);
  rig_sweep_allocations(kernel, &m);
}

static void same_element(const tn_type *type, const uint8_t *y, int64_t to, const uint8_t *x, int64_t from) {
  size_t size = tn_dtype_size(type->dtype);
  uint8_t zero[8] = {0};
  assert_memory_equal(y + (size_t)to * size, from < 0 ? zero : x + (size_t)from * size, size);
}

/* ---- transpose, slice, pad ---- */

static void check_transpose(const tn_type *x_type, const int64_t *order) {
  tn_transpose_attributes a = {{x_type->rank, order}};
  tn_type y_type = *x_type;
  uint8_t *x, *y;
  for (int32_t i = 0; i < x_type->rank; i++) y_type.dims[i] = x_type->dims[order[i]];
  run_one(&tn_kernel_cpu_transpose, "transpose", &a, x_type, &y_type, &x, &y);
  for (int64_t i = 0; i < tn_type_count(&y_type); i++) {
    int64_t c[TN_MAX_RANK], from[TN_MAX_RANK];
    rig_coordinates(&y_type, i, c);
    for (int32_t k = 0; k < x_type->rank; k++) from[order[k]] = c[k];
    same_element(x_type, y, i, x, position(x_type, from));
  }
  free(x);
  free(y);
}

static void transpose_moves_every_element_for_drawn_shapes_and_orders(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(51, 0);
  for (int32_t round = 0; round < 150; round++) {
    tn_type type = drawn_type(&rng, 6, 40);
    int64_t order[TN_MAX_RANK];
    for (int32_t i = 0; i < type.rank; i++) order[i] = i;
    for (int32_t i = type.rank - 1; i > 0; i--) {
      int64_t k = tn_rng_below(&rng, i + 1), keep = order[i];
      order[i] = order[k];
      order[k] = keep;
    }
    check_transpose(&type, order);
  }
  const int64_t swap[] = {1, 0}, channels_last[] = {0, 2, 3, 1};
  for (int32_t dtype = TN_U8; dtype <= TN_F64; dtype++) {
    tn_type square = RIG_TYPE(dtype, 300, 1100), image = RIG_TYPE(dtype, 2, 3, 20, 33);
    check_transpose(&square, swap);
    check_transpose(&image, channels_last);
  }
}

static void slice_takes_starts_stops_and_steps_for_drawn_shapes(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(52, 0);
  for (int32_t round = 0; round < 150; round++) {
    tn_type x_type = drawn_type(&rng, 5, 30), y_type = x_type;
    int64_t starts[TN_MAX_RANK], stops[TN_MAX_RANK], steps[TN_MAX_RANK], none = 0;
    for (int32_t i = 0; i < x_type.rank; i++) {
      starts[i] = tn_rng_below(&rng, x_type.dims[i] + 1);
      stops[i] = starts[i] + tn_rng_below(&rng, x_type.dims[i] - starts[i] + 1);
      steps[i] = round % 2 == 0 ? 1 : 1 + tn_rng_below(&rng, 3);
      y_type.dims[i] = (stops[i] - starts[i] + steps[i] - 1) / steps[i];
    }
    tn_slice_attributes a = {{x_type.rank, starts}, {x_type.rank, stops}, {x_type.rank, steps}};
    if (round % 4 == 0) a.steps = (tn_ints){0, &none};
    uint8_t *x, *y;
    run_one(&tn_kernel_cpu_slice, "slice", &a, &x_type, &y_type, &x, &y);
    for (int64_t i = 0; i < tn_type_count(&y_type); i++) {
      int64_t c[TN_MAX_RANK];
      rig_coordinates(&y_type, i, c);
      for (int32_t k = 0; k < x_type.rank; k++) c[k] = starts[k] + c[k] * steps[k];
      same_element(&x_type, y, i, x, position(&x_type, c));
    }
    free(x);
    free(y);
  }
}

/* The coordinate in x of a coordinate of pad's result, or -1 for a zero. */
static int64_t unpadded(int64_t c, int64_t low, int64_t inner, int64_t dim) {
  c -= low;
  return c < 0 || c % (inner + 1) != 0 || c / (inner + 1) >= dim ? -1 : c / (inner + 1);
}

static void pad_puts_zeros_around_and_between_for_drawn_shapes(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(53, 0);
  for (int32_t round = 0; round < 150; round++) {
    tn_type x_type = drawn_type(&rng, 4, 20), y_type = x_type;
    int64_t low[TN_MAX_RANK], high[TN_MAX_RANK], inner[TN_MAX_RANK];
    for (int32_t i = 0; i < x_type.rank; i++) {
      low[i] = tn_rng_below(&rng, 3);
      high[i] = tn_rng_below(&rng, 3);
      inner[i] = round % 2 == 0 ? 0 : tn_rng_below(&rng, 3);
      int64_t gaps = x_type.dims[i] > 0 ? x_type.dims[i] - 1 : 0;
      y_type.dims[i] = low[i] + high[i] + x_type.dims[i] + gaps * inner[i];
    }
    tn_pad_attributes a = {
        {x_type.rank, low}, {x_type.rank, high}, {round % 4 == 0 ? 0 : x_type.rank, inner}};
    uint8_t *x, *y;
    run_one(&tn_kernel_cpu_pad, "pad", &a, &x_type, &y_type, &x, &y);
    for (int64_t i = 0; i < tn_type_count(&y_type); i++) {
      int64_t c[TN_MAX_RANK];
      bool outside = false;
      rig_coordinates(&y_type, i, c);
      for (int32_t k = 0; k < x_type.rank; k++) {
        c[k] = unpadded(c[k], low[k], inner[k], x_type.dims[k]);
        outside = outside || c[k] < 0;
      }
      same_element(&x_type, y, i, x, outside ? -1 : position(&x_type, c));
    }
    free(x);
    free(y);
  }
}

/* ---- concat, pack, copy ---- */

static void concat_joins_its_operands_along_any_axis(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(54, 0);
  for (int32_t round = 0; round < 80; round++) {
    rig_match m;
    tn_type y_type = drawn_type(&rng, 4, 30), types[4];
    if (y_type.rank == 0) continue;
    int64_t axis = tn_rng_below(&rng, y_type.rank);
    int32_t n = 1 + (int32_t)tn_rng_below(&rng, 4), numbers[4];
    void *in[4];
    tn_axis_attributes a = {round % 2 == 0 ? axis : axis - y_type.rank};
    rig_start(&m);
    y_type.dims[axis] = 0;
    for (int32_t i = 0; i < n; i++) {
      types[i] = y_type;
      types[i].dims[axis] = tn_rng_below(&rng, 6);
      numbers[i] = rig_in(&m, &types[i]);
      in[i] = numbered(&types[i]);
    }
    for (int32_t i = 0; i < n; i++) y_type.dims[axis] += types[i].dims[axis];
    rig_out(&m, rig_node(&m, "concat", &a, numbers, n, &y_type, 1));
    void *y = rig_tensor(&y_type);
    rig_run_on_all(&tn_kernel_cpu_concat, &m, in, &y);
    for (int64_t i = 0; i < tn_type_count(&y_type); i++) {
      int64_t c[TN_MAX_RANK];
      int32_t k = 0;
      rig_coordinates(&y_type, i, c);
      while (c[axis] >= types[k].dims[axis]) c[axis] -= types[k++].dims[axis];
      same_element(&y_type, y, i, in[k], position(&types[k], c));
    }
    for (int32_t i = 0; i < n; i++) free(in[i]);
    free(y);
  }
}

static void pack_lays_operands_at_their_offsets_with_zeros_between(void **state) {
  (void)state;
  rig_match m;
  int64_t offsets[] = {2, 16, 30000};
  tn_pack_attributes a = {{3, offsets}, 40000};
  tn_type types[] = {RIG_TYPE(TN_F32, 3, 4), rig_type(TN_F32, 0, NULL), RIG_TYPE(TN_F32, 90, 100)};
  tn_type y_type = RIG_TYPE(TN_F32, 40000);
  int32_t numbers[3];
  void *in[3], *y = rig_tensor(&y_type);
  rig_start(&m);
  for (int32_t i = 0; i < 3; i++) {
    numbers[i] = rig_in(&m, &types[i]);
    in[i] = numbered(&types[i]);
  }
  rig_out(&m, rig_node(&m, "pack", &a, numbers, 3, &y_type, 1));
  rig_run_on_all(&tn_kernel_cpu_pack, &m, in, &y);
  for (int64_t i = 0; i < 40000; i++) {
    int32_t k = i < 16 ? 0 : i < 30000 ? 1 : 2;
    int64_t from = i - offsets[k];
    same_element(&y_type, y, i, in[k], from >= 0 && from < tn_type_count(&types[k]) ? from : -1);
  }
  for (int32_t i = 0; i < 3; i++) free(in[i]);
  free(y);
}

static void copy_takes_storage_as_it_is_also_in_place(void **state) {
  (void)state;
  rig_match m;
  tn_type type = RIG_TYPE(TN_F16, 3, 5, 700, 2);
  tn_layout layout = {1, 1, {0, 2, 3, 1}, {{1, 8}}};
  tn_storage s = tn_storage_of(&type, &layout);
  size_t bytes = (size_t)s.count * 2;
  uint8_t *x = malloc(bytes), *y = calloc(1, bytes);
  for (size_t i = 0; i < bytes; i++) x[i] = (uint8_t)(i % 251);
  rig_start(&m);
  int32_t number = rig_in(&m, &type);
  rig_out(&m, rig_node(&m, "copy", NULL, &number, 1, &type, 1));
  void *in[] = {x}, *out[] = {y};
  rig_memory memory = {.in = in, .out = out, .in_layout = &layout, .out_layout = &layout, .threads = 2};
  assert_int_equal(rig_run(&tn_kernel_cpu_copy, &m, &memory, NULL), TN_OK);
  assert_memory_equal(x, y, bytes);
  memory.out = in;
  assert_int_equal(rig_run(&tn_kernel_cpu_copy, &m, &memory, NULL), TN_OK);
  assert_memory_equal(x, y, bytes);
  free(x);
  free(y);
}

/* ---- reorder ---- */

static tn_layout drawn_layout(tn_rng *rng, const tn_type *type, bool blocks) {
  tn_layout l = tn_layout_row_major(type->rank);
  for (int32_t i = type->rank - 1; i > 0; i--) {
    int64_t k = tn_rng_below(rng, i + 1);
    uint8_t keep = l.order[i];
    l.order[i] = l.order[k];
    l.order[k] = keep;
  }
  for (int32_t i = 0; i < 3 && blocks && type->rank > 0; i++) {
    static const uint16_t sizes[] = {2, 3, 4, 8};
    if (tn_rng_below(rng, 2) == 0) continue;
    l.block[l.n_blocks++] = (tn_block){(uint16_t)tn_rng_below(rng, type->rank), sizes[tn_rng_below(rng, 4)]};
  }
  return l;
}

/* The position of an element by the definition of a layout: the dimensions in the layout's order, divided
 * into blocks, then the blocks. */
static int64_t storage_position(const tn_type *type, const tn_layout *l, const int64_t *c) {
  int64_t at = 0, size[TN_MAX_RANK];
  for (int32_t i = 0; i < TN_MAX_RANK; i++) size[i] = 1;
  for (int32_t i = 0; i < l->n_blocks; i++) size[l->block[i].dim] *= l->block[i].size;
  for (int32_t i = 0; i < type->rank; i++) {
    int32_t d = l->order[i];
    at = at * ((type->dims[d] + size[d] - 1) / size[d]) + c[d] / size[d];
  }
  for (int32_t i = 0; i < l->n_blocks; i++) {
    int64_t inside = c[l->block[i].dim] % size[l->block[i].dim], below = 1;
    for (int32_t k = i + 1; k < l->n_blocks; k++)
      if (l->block[k].dim == l->block[i].dim) below *= l->block[k].size;
    at = at * l->block[i].size + inside / below % l->block[i].size;
  }
  return at;
}

static void check_reorder(const tn_type *type, const tn_layout *from, const tn_layout *to) {
  rig_match m;
  size_t size = tn_dtype_size(type->dtype);
  tn_storage a = tn_storage_of(type, from), b = tn_storage_of(type, to);
  uint8_t *x = calloc((size_t)a.count * size + 1, 1), *want = calloc((size_t)b.count * size + 1, 1);
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    int64_t c[TN_MAX_RANK];
    rig_coordinates(type, i, c);
    for (size_t k = 0; k < size; k++)
      x[(size_t)storage_position(type, from, c) * size + k] =
          want[(size_t)storage_position(type, to, c) * size + k] =
              (uint8_t)((((size_t)i * size + k) * 2654435761u) >> 13);
  }
  rig_start(&m);
  int32_t number = rig_in(&m, type);
  rig_out(&m, rig_node(&m, "reorder", NULL, &number, 1, type, 1));
  rig_sweep_allocations(&tn_kernel_cpu_reorder, &m);
  for (int32_t threads = 1; threads <= 4; threads *= 2) {
    uint8_t *y = malloc((size_t)b.count * size + 1);
    memset(y, 0x77, (size_t)b.count * size + 1);
    void *in[] = {x}, *out[] = {y};
    rig_memory memory = {.in = in, .out = out, .in_layout = from, .out_layout = to, .threads = threads};
    assert_int_equal(rig_run(&tn_kernel_cpu_reorder, &m, &memory, NULL), TN_OK);
    assert_memory_equal(y, want, (size_t)b.count * size);
    assert_int_equal(y[(size_t)b.count * size], 0x77);
    free(y);
  }
  free(x);
  free(want);
}

static void reorder_goes_between_any_two_layouts_and_keeps_padding_zero(void **state) {
  (void)state;
  tn_rng rng = tn_rng_at(55, 0);
  for (int32_t round = 0; round < 200; round++) {
    tn_type type = drawn_type(&rng, 5, 20);
    tn_layout from = drawn_layout(&rng, &type, round % 3 != 0),
              to = drawn_layout(&rng, &type, round % 2 != 0);
    check_reorder(&type, &from, &to);
  }
  tn_type image = RIG_TYPE(TN_F32, 2, 19, 30, 31);
  tn_layout plain = tn_layout_row_major(4), blocked = {1, 1, {0, 1, 2, 3}, {{1, 16}}};
  check_reorder(&image, &plain, &blocked);
  check_reorder(&image, &blocked, &plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transpose_moves_every_element_for_drawn_shapes_and_orders),
      cmocka_unit_test(slice_takes_starts_stops_and_steps_for_drawn_shapes),
      cmocka_unit_test(pad_puts_zeros_around_and_between_for_drawn_shapes),
      cmocka_unit_test(concat_joins_its_operands_along_any_axis),
      cmocka_unit_test(pack_lays_operands_at_their_offsets_with_zeros_between),
      cmocka_unit_test(copy_takes_storage_as_it_is_also_in_place),
      cmocka_unit_test(reorder_goes_between_any_two_layouts_and_keeps_padding_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
