/* Rotary positions from tables, against their definition. */
#include "tests/unit/backends/onednn/isa_rig.h"

extern const tn_kernel tn_kernel_onednn_rotary;

/* ---- by definition ---- */

static tn_status rotary_naive_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "naive", .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status rotary_naive_launch(tn_launch *l) {
  const tn_type *t = &l->in[0].type;
  int64_t tokens = t->dims[1], heads = t->dims[2], pairs = t->dims[4];
  const float *x = l->in[0].data, *c = l->in[1].data, *s = l->in[2].data;
  float *y = l->out[0].data;
  for (int64_t h = 0; h < t->dims[0] * tokens * heads; h++)
    for (int64_t i = 0; i < pairs; i++) {
      int64_t at = h / heads % tokens * pairs + i, first = h * 2 * pairs + i, second = first + pairs;
      y[first] = (float)((double)x[first] * (double)c[at] - (double)x[second] * (double)s[at]);
      y[second] = (float)((double)x[second] * (double)c[at] + (double)x[first] * (double)s[at]);
    }
  return TN_OK;
}

static const tn_kernel naive = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "naive", "rotary positions as they are defined"),
    .family = "cpu",
    .pattern = "y = concat(d, g)",
    .query = rotary_naive_query,
    .launch = rotary_naive_launch};

/* ---- matches ---- */

/* The nodes that the op's decomposition has behind its tables. */
typedef struct turned {
  rig_match m;
  tn_type x, half, table;
  int64_t starts[2][5], stops[5];
  tn_slice_attributes slices[2];
  tn_axis_attributes join;
} turned;

static int32_t product(turned *t, int32_t a, int32_t b) {
  return rig_node(&t->m, "mul", NULL, (int32_t[]){a, b}, 2, &t->half, 1);
}

/* `halves`: the axis along which the pairs are cut. */
static void start(turned *t, tn_type x, tn_type table, int32_t halves) {
  *t = (turned){.x = x, .half = x, .table = table, .join = {.axis = halves}};
  t->half.dims[halves] = 1;
  rig_start(&t->m);
  int32_t in[3] = {rig_in(&t->m, &t->x), rig_in(&t->m, &t->table), rig_in(&t->m, &t->table)}, half[2];
  for (int32_t i = 0; i < 5; i++) t->stops[i] = x.dims[i];
  for (int32_t i = 0; i < 2; i++) {
    t->starts[i][halves] = i;
    t->slices[i] = (tn_slice_attributes){.starts = {5, t->starts[i]}, .stops = {5, t->stops}};
    half[i] = rig_node(&t->m, "slice", &t->slices[i], in, 1, &t->half, 1);
  }
  int32_t p = product(t, half[0], in[1]), q = product(t, half[1], in[2]);
  int32_t d = rig_node(&t->m, "sub", NULL, (int32_t[]){p, q}, 2, &t->half, 1);
  int32_t e = product(t, half[1], in[1]), f = product(t, half[0], in[2]);
  int32_t g = rig_node(&t->m, "add", NULL, (int32_t[]){e, f}, 2, &t->half, 1);
  rig_out(&t->m, rig_node(&t->m, "concat", &t->join, (int32_t[]){d, g}, 2, &t->x, 1));
}

static turned now;

static void heads_of_any_width_turn(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {
      {2, 7, 3, 8}, {1, 300, 4, 32}, {3, 5, 1, 17}, {2, 1, 2, 1}, {1, 4, 2, 40}};
  tn_rng rng = tn_rng_at(81, 0);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const int64_t *s = shapes[i];
    tn_type x = RIG_TYPE(TN_F32, s[0], s[1], s[2], 2, s[3]), table = RIG_TYPE(TN_F32, 1, s[1], 1, 1, s[3]);
    void *data[3] = {rig_drawn(&x, &rng), rig_drawn(&table, &rng), rig_drawn(&table, &rng)};
    start(&now, x, table, 3);
    ways_check(&tn_kernel_onednn_rotary, &naive, &now.m, data, 1e-6, 1);
    for (int32_t k = 0; k < 3; k++) free(data[k]);
  }
  rig_sweep_allocations(&tn_kernel_onednn_rotary, &now.m);
}

static void refused(const char *why) {
  rig_answer answer = rig_query(&tn_kernel_onednn_rotary, &now.m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  if (strstr(answer.text, why) == NULL) fail_msg("%s", answer.text);
}

static void other_products_are_refused(void **state) {
  (void)state;
  tn_type x = RIG_TYPE(TN_F32, 2, 3, 4, 2, 2), table = RIG_TYPE(TN_F32, 1, 3, 1, 1, 2);
  start(&now, x, table, 4); /* pairs of neighbours */
  refused("halves of a head");
  start(&now, x, RIG_TYPE(TN_F32, 2, 3, 1, 1, 2), 3); /* a table for each sample */
  refused("halves of a head");
  start(&now, x, table, 3);
  now.starts[0][3] = 1, now.starts[1][3] = 0;
  refused("halves of a head");
  x.dtype = TN_F64;
  start(&now, x, table, 3);
  refused("f64");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(heads_of_any_width_turn),
                                     cmocka_unit_test(other_products_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
