/* Strided copies of the ops that move elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "backends/shared/movement.h"
#include "tenon/attributes.h"

enum { MOST = 128 };

/* Copies 32-bit elements one by one. */
static void copy(const tn_movement *m, int32_t *to, const int32_t *from) {
  int64_t n = 1;
  for (int32_t i = 0; i < m->rank; i++) n *= m->dims[i];
  for (int64_t k = 0; k < n; k++) {
    int64_t rest = k, at = m->to_first, of = m->from_first;
    for (int32_t i = m->rank; i-- > 0; rest /= m->dims[i]) {
      at += rest % m->dims[i] * m->to[i];
      of += rest % m->dims[i] * m->from[i];
    }
    to[at] = from[of];
  }
}

typedef struct one {
  tn_type x, y;
  const tn_type *in[1];
  tn_node node;
  int32_t from[MOST], to[MOST];
} one;

static one *made(one *o, tn_type x, tn_type y, const void *attributes) {
  *o = (one){.x = x, .y = y};
  o->in[0] = &o->x;
  o->node = (tn_node){.struct_size = sizeof o->node,
                      .n_in = 1,
                      .n_out = 1,
                      .attributes = attributes,
                      .in = o->in,
                      .out = &o->y};
  for (int32_t i = 0; i < MOST; i++) o->from[i] = i + 1;
  return o;
}

static void a_transpose_reads_in_another_order(void **state) {
  (void)state;
  static const int64_t order[] = {0, 3, 1, 2};
  const tn_transpose_attributes a = {{4, order}};
  one o;
  made(&o, (tn_type){TN_F32, 4, {2, 3, 4, 5}}, (tn_type){TN_F32, 4, {2, 5, 3, 4}}, &a);
  tn_movement m = tn_movement_of_transpose(&o.node);
  assert_int_equal(m.rank, 3); /* 3 and 4 stay side by side */
  copy(&m, o.to, o.from);
  for (int32_t n = 0; n < 2; n++)
    for (int32_t c = 0; c < 5; c++)
      for (int32_t k = 0; k < 12; k++)
        assert_int_equal(o.to[(n * 5 + c) * 12 + k], o.from[(n * 12 + k) * 5 + c]);
}

static void a_slice_starts_and_steps(void **state) {
  (void)state;
  static const int64_t starts[] = {1, 2}, stops[] = {3, 8}, steps[] = {1, 3};
  const tn_slice_attributes a = {.starts = {2, starts}, .stops = {2, stops}, .steps = {2, steps}};
  one o;
  made(&o, (tn_type){TN_F32, 2, {4, 8}}, (tn_type){TN_F32, 2, {2, 2}}, &a);
  tn_movement m = tn_movement_of_slice(&o.node);
  copy(&m, o.to, o.from);
  static const int32_t expected[] = {8 + 2, 8 + 5, 16 + 2, 16 + 5};
  for (int32_t i = 0; i < 4; i++) assert_int_equal(o.to[i], o.from[expected[i]]);
}

static void a_pad_leaves_the_elements_around_and_between(void **state) {
  (void)state;
  static const int64_t low[] = {1, 0}, high[] = {0, 2}, inner[] = {0, 1};
  const tn_pad_attributes a = {{2, low}, {2, high}, {2, inner}};
  one o;
  made(&o, (tn_type){TN_F32, 2, {2, 3}}, (tn_type){TN_F32, 2, {3, 7}}, &a);
  tn_movement m = tn_movement_of_pad(&o.node);
  copy(&m, o.to, o.from);
  for (int32_t i = 0; i < 21; i++) {
    bool filled = i >= 7 && i % 7 < 5 && i % 7 % 2 == 0;
    assert_int_equal(o.to[i], filled ? (i / 7 - 1) * 3 + i % 7 / 2 + 1 : 0);
  }
}

static void operands_lie_side_by_side(void **state) {
  (void)state;
  const tn_axis_attributes last = {-1};
  one o;
  made(&o, (tn_type){TN_F32, 2, {3, 2}}, (tn_type){TN_F32, 2, {3, 5}}, &last);
  assert_int_equal(tn_movement_axis(&o.node), 1);
  tn_movement m = tn_movement_beside(&o.x, &o.y, 1, 3);
  copy(&m, o.to, o.from);
  for (int32_t i = 0; i < 15; i++) assert_int_equal(o.to[i], i % 5 < 3 ? 0 : i / 5 * 2 + i % 5 - 3 + 1);
}

static void one_element_has_a_dimension(void **state) {
  (void)state;
  static const int64_t dims[] = {1, 1}, strides[] = {1, 1};
  tn_movement m = tn_movement_make(2, dims, strides, strides);
  assert_true(m.rank == 1 && m.dims[0] == 1 && m.to[0] == 1 && m.from[0] == 1);
  m = tn_movement_make(0, dims, strides, strides);
  assert_true(m.rank == 1 && m.dims[0] == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_transpose_reads_in_another_order),
      cmocka_unit_test(a_slice_starts_and_steps),
      cmocka_unit_test(a_pad_leaves_the_elements_around_and_between),
      cmocka_unit_test(operands_lie_side_by_side),
      cmocka_unit_test(one_element_has_a_dimension),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
