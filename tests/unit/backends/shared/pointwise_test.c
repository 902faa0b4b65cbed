#include "tests/unit/backends/cpu/rig.h"

#include <math.h>
#include <stdio.h>

#include "backends/shared/pointwise/program.h"

/* ---- a kernel whose query looks at the region ---- */

static void (*look)(tn_pw_region *region);

static tn_status look_query(tn_query *q) {
  tn_pw_region region;
  tn_status status = tn_pw_build(q, q->match, NULL, &region);
  tn_variant v = {.struct_size = sizeof v, .name = "looked at", .deterministic = 1, .capturable = 1};
  if (status == TN_OK) look(&region);
  if (status == TN_OK) tn_add_variant(q, &v);
  tn_pw_drop(&region);
  return status;
}

static const tn_kernel looker = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "looker", ""),
                                 .family = "none",
                                 .pattern = "pointwise+",
                                 .query = look_query};

static void look_at(const rig_match *m, void (*body)(tn_pw_region *region)) {
  look = body;
  assert_int_equal(rig_query(&looker, m).status, TN_OK);
}

static void look_nowhere(tn_pw_region *r) { (void)r; }

static void check_refused(const rig_match *m, const char *reason) {
  look = look_nowhere;
  rig_answer answer = rig_query(&looker, m);
  assert_int_equal(answer.status, TN_EUNSUPPORTED);
  assert_string_equal(answer.text, reason);
}

/* ---- matches ---- */

static int32_t unary(rig_match *m, const char *op, const void *attributes, int32_t x, tn_type type) {
  return rig_node(m, op, attributes, &x, 1, &type, 1);
}

static int32_t binary(rig_match *m, const char *op, int32_t x, int32_t y, tn_type type) {
  int32_t in[2] = {x, y};
  return rig_node(m, op, NULL, in, 2, &type, 1);
}

static int32_t operand(rig_match *m, tn_type type) { return rig_in(m, &type); }

static const tn_pw_insn *insn_of(const tn_pw_region *r, int32_t op) {
  for (int32_t i = 0; i < r->n_insns; i++)
    if (r->insns[i].op == op) return &r->insns[i];
  return NULL;
}

static int32_t count_of(const tn_pw_region *r, int32_t op) {
  int32_t n = 0;
  for (int32_t i = 0; i < r->n_insns; i++) n += r->insns[i].op == op;
  return n;
}

/* ---- legality ---- */

static void matches_that_cannot_be_built_are_refused_with_the_reason(void **state) {
  (void)state;
  rig_match m;
  tn_type f = RIG_TYPE(TN_F32, 4), five = RIG_TYPE(TN_F32, 5);
  tn_type one = rig_type(TN_I32, 0, NULL), many = RIG_TYPE(TN_I64, 4);
  rig_start(&m);
  operand(&m, f);
  check_refused(&m, "the region has no result");
  rig_start(&m);
  rig_out(&m, unary(&m, "swish", NULL, operand(&m, f), f));
  check_refused(&m, "swish is not among its ops");
  static const struct {
    const char *op, *reason;
    int32_t dtype;
  } cases[] = {{"exp", "exp of u8 is not among its ops", TN_U8},
               {"exp", "exp of i64 is not among its ops", TN_I64},
               {"neg", "neg of bool is not among its ops", TN_BOOL},
               {"not", "not of f32 is not among its ops", TN_F32}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tn_type type = RIG_TYPE(cases[i].dtype, 4);
    rig_start(&m);
    rig_out(&m, unary(&m, cases[i].op, NULL, operand(&m, type), type));
    check_refused(&m, cases[i].reason);
  }
  rig_start(&m);
  int32_t x = operand(&m, f), y = operand(&m, five);
  rig_out(&m, binary(&m, "add", x, y, f));
  check_refused(&m, "operand 1 of add does not broadcast to the result");
  rig_start(&m);
  x = operand(&m, f), y = operand(&m, five);
  rig_out(&m, unary(&m, "neg", NULL, x, f));
  rig_out(&m, unary(&m, "neg", NULL, y, five));
  check_refused(&m, "the results differ in their dimensions");
  tn_random_attributes random = {{1, f.dims}, 1, 0, 1, TN_F32};
  rig_start(&m);
  rig_out(&m, unary(&m, "random_uniform", &random, operand(&m, one), f));
  check_refused(&m, "random_uniform of i32 is not among its ops");
  rig_start(&m);
  rig_out(&m, unary(&m, "random_normal", &random, operand(&m, many), f));
  check_refused(&m, "the iteration or block of random_normal is not a scalar");
  int64_t starts[] = {0}, index[] = {0};
  tn_spread_attributes spread = {{1, starts}, {1, index}, 4};
  rig_start(&m);
  x = unary(&m, "neg", NULL, operand(&m, f), f);
  rig_out(&m, unary(&m, "spread", &spread, x, f));
  check_refused(&m, "the values of spread are made in the same region");
}

/* ---- access ---- */

static void check_map(const tn_pw_region *r, const tn_pw_insn *insn, int32_t access, int32_t rank,
                      const int64_t *dims, const int64_t *strides) {
  const tn_pw_map *map = &r->maps[insn->map];
  assert_int_equal(tn_pw_access_of(map), access);
  assert_int_equal(map->rank, rank);
  for (int32_t i = 0; i < rank; i++) {
    assert_int_equal(map->dims[i], dims[i]);
    assert_int_equal(map->strides[i], strides[i]);
  }
  assert_int_equal(r->values[insn->out].rate, access == TN_PW_SCALAR ? TN_PW_ONCE : TN_PW_PER_ELEMENT);
}

static void look_at_loads(tn_pw_region *r) {
  const tn_pw_insn *i = r->insns;
  static const int64_t same[2][1] = {{120}, {1}}, scalar[2][1] = {{120}, {0}}, row[2][2] = {{24, 5}, {0, 1}};
  static const int64_t column[2][2] = {{24, 5}, {1, 0}}, middle[2][3] = {{2, 3, 20}, {0, 1, 0}};
  static const int64_t outer[2][3] = {{2, 3, 20}, {20, 0, 1}};
  assert_int_equal(count_of(r, TN_PW_LOAD), 6);
  for (int32_t k = 0; k < 6; k++) assert_int_equal(i[k + (k > 1 ? k - 1 : 0)].op, TN_PW_LOAD);
  check_map(r, &i[0], TN_PW_SAME, 1, same[0], same[1]);
  check_map(r, &i[1], TN_PW_SCALAR, 1, scalar[0], scalar[1]);
  check_map(r, &i[3], TN_PW_REPEATED, 2, row[0], row[1]);
  check_map(r, &i[5], TN_PW_REPEATED, 2, column[0], column[1]);
  check_map(r, &i[7], TN_PW_REPEATED, 3, middle[0], middle[1]);
  check_map(r, &i[9], TN_PW_REPEATED, 3, outer[0], outer[1]);
  for (int32_t k = 0; k < 6; k++) assert_int_equal(i[k + (k > 1 ? k - 1 : 0)].view, k);
  assert_false(r->positions);
}

static void operands_are_loaded_along_the_walk_of_their_dimensions(void **state) {
  (void)state;
  rig_match m;
  tn_type space = RIG_TYPE(TN_F32, 2, 3, 4, 5);
  const tn_type types[] = {space,
                           rig_type(TN_F32, 0, NULL),
                           RIG_TYPE(TN_F32, 5),
                           RIG_TYPE(TN_F32, 2, 3, 4, 1),
                           RIG_TYPE(TN_F32, 3, 1, 1),
                           RIG_TYPE(TN_F32, 2, 1, 4, 5)};
  rig_start(&m);
  for (int32_t i = 0; i < 6; i++) rig_in(&m, &types[i]);
  int32_t v = 0;
  for (int32_t i = 1; i < 6; i++) v = binary(&m, "add", v, i, space);
  rig_out(&m, v);
  assert_false(tn_pw_is_elementwise(&m.match));
  look_at(&m, look_at_loads);
}

static void look_at_positions(tn_pw_region *r) {
  static const int64_t along[2][3] = {{2, 3, 4}, {0, 1, 0}}, same[2][1] = {{24}, {1}},
                       rows[2][2] = {{6, 4}, {1, 0}};
  const tn_pw_insn *index = insn_of(r, TN_PW_INDEX), *uniform = insn_of(r, TN_PW_UNIFORM);
  const tn_pw_insn *normal = insn_of(r, TN_PW_NORMAL), *spread = insn_of(r, TN_PW_SPREAD);
  check_map(r, index, TN_PW_REPEATED, 3, along[0], along[1]);
  assert_int_equal(index->lane, TN_LANE_I64);
  check_map(r, uniform, TN_PW_SAME, 1, same[0], same[1]);
  assert_int_equal(uniform->count, 24);
  assert_int_equal(uniform->bits, 7);
  assert_true(uniform->in[0] != TN_PW_NONE && uniform->in[1] == uniform->in[0]);
  check_map(r, normal, TN_PW_REPEATED, 2, rows[0], rows[1]);
  assert_int_equal(normal->count, 6);
  assert_int_equal(normal->in[1], TN_PW_NONE);
  check_map(r, spread, TN_PW_SAME, 1, same[0], same[1]);
  assert_int_equal(spread->view, 1);
  assert_int_equal(spread->n_table, 2);
  static const int64_t table[] = {0, 10, 1, 0};
  assert_memory_equal(r->tables + spread->table, table, sizeof table);
  assert_true(r->positions);
}

static void indices_random_numbers_and_ranges_carry_the_walk_of_their_index(void **state) {
  (void)state;
  rig_match m;
  tn_type space = RIG_TYPE(TN_F32, 2, 3, 4), row = RIG_TYPE(TN_F32, 2, 3, 1),
          scalar = rig_type(TN_I64, 0, NULL);
  tn_iota_attributes iota = {{3, space.dims}, -2, TN_F32};
  tn_random_attributes uniform = {{3, space.dims}, 7, 0, 1, TN_F32},
                       normal = {{3, row.dims}, 8, 0, 1, TN_F32};
  int64_t starts[] = {0, 10}, index[] = {1, 0};
  tn_spread_attributes spread = {{2, starts}, {2, index}, 24};
  rig_start(&m);
  int32_t counters[2] = {operand(&m, scalar), 0}, values = operand(&m, RIG_TYPE(TN_F32, 2));
  int32_t i = rig_node(&m, "iota", &iota, NULL, 0, &space, 1);
  int32_t u = rig_node(&m, "random_uniform", &uniform, counters, 2, &space, 1);
  counters[1] = -1;
  int32_t n = rig_node(&m, "random_normal", &normal, counters, 2, &row, 1);
  int32_t s = unary(&m, "spread", &spread, values, space);
  rig_out(&m, binary(&m, "add", binary(&m, "add", i, u, space), binary(&m, "add", n, s, space), space));
  look_at(&m, look_at_positions);
}

static void look_at_a_single_one(tn_pw_region *r) {
  assert_false(r->positions);
  for (int32_t i = 0; i < r->n_insns; i++)
    if (r->insns[i].op != TN_PW_ADD && r->insns[i].view != 0)
      assert_int_equal(r->values[r->insns[i].out].rate, TN_PW_ONCE);
  assert_null(insn_of(r, TN_PW_SPREAD));
}

static void positions_in_single_values_are_the_same_everywhere(void **state) {
  (void)state;
  rig_match m;
  tn_type space = RIG_TYPE(TN_F32, 6), one = RIG_TYPE(TN_F32, 1), scalar = rig_type(TN_I64, 0, NULL);
  tn_random_attributes uniform = {{1, one.dims}, 7, 0, 1, TN_F32};
  int64_t starts[] = {0}, index[] = {0};
  tn_spread_attributes spread = {{1, starts}, {1, index}, 6};
  rig_start(&m);
  int32_t x = operand(&m, space), iteration = operand(&m, scalar), rate = operand(&m, one);
  int32_t u = unary(&m, "random_uniform", &uniform, iteration, one),
          s = unary(&m, "spread", &spread, rate, space);
  rig_out(&m, binary(&m, "add", binary(&m, "add", x, u, space), s, space));
  assert_true(tn_pw_is_elementwise(&m.match));
  look_at(&m, look_at_a_single_one);
}

/* Channels in blocks: the walk of every tensor, against the definition. */
static void a_walk_through_blocks_gives_the_element_at_each_position(void **state) {
  (void)state;
  enum { N = 2, C = 8, H = 3, B = 4 };
  tn_type type = RIG_TYPE(TN_F32, N, C, H), channel = RIG_TYPE(TN_F32, C, 1);
  tn_pw_space s = {.type = type, .n_axes = 4, .axis = {{0, N, 1}, {1, C / B, B}, {2, H, 1}, {1, B, 1}}};
  int64_t steps[TN_MAX_RANK], got[N * C * H];
  tn_pw_space_count(&s);
  assert_int_equal(s.count, N * C * H);
  for (int32_t per_channel = 0; per_channel < 2; per_channel++) {
    const tn_type *t = per_channel ? &channel : &type;
    tn_pw_steps(t, steps);
    tn_pw_map map = tn_pw_map_of(&s, t, steps, 0, s.n_axes);
    for (int64_t from = 0; from < s.count; from += 5) {
      tn_pw_indices(&map, from, s.count - from, got);
      for (int64_t p = from; p < s.count; p++) {
        int64_t b = p % B, h = p / B % H, c = p / B / H % (C / B) * B + b, n = p / B / H / (C / B);
        assert_int_equal(got[p - from], per_channel ? c : (n * C + c) * H + h);
      }
    }
  }
}

/* ---- rounding ---- */

/* The ops of a region, in order, as text. */
static char listing[512];
static const char *const op_names[TN_PW_OPS] = {
    [TN_PW_ADD] = "add",     [TN_PW_MAXIMUM] = "maximum",   [TN_PW_EXP] = "exp",
    [TN_PW_LT] = "lt",       [TN_PW_WHERE] = "where",       [TN_PW_CAST] = "cast",
    [TN_PW_ROUND] = "round", [TN_PW_CONSTANT] = "constant", [TN_PW_LOAD] = "load",
    [TN_PW_INDEX] = "index", [TN_PW_AFFINE] = "affine",     [TN_PW_NEG] = "neg"};

static void list_ops(tn_pw_region *r) {
  listing[0] = 0;
  for (int32_t i = 0; i < r->n_insns; i++) {
    const tn_pw_insn *insn = &r->insns[i];
    snprintf(listing + strlen(listing), sizeof listing - strlen(listing), "%s%s", i > 0 ? " " : "",
             op_names[insn->op]);
    if (insn->op == TN_PW_ROUND || insn->op == TN_PW_CAST)
      snprintf(listing + strlen(listing), sizeof listing - strlen(listing), ":%s",
               tn_dtype_name(insn->dtype));
  }
}

static void check_listing(const rig_match *m, const char *expected) {
  look_at(m, list_ops);
  assert_string_equal(listing, expected);
}

static void halves_are_rounded_after_every_op_that_is_not_exact(void **state) {
  (void)state;
  static const tn_affine_attributes affine = {2, 1};
  rig_match m;
  for (int32_t dtype = TN_F16; dtype <= TN_F64; dtype++) {
    tn_type type = RIG_TYPE(dtype, 4), flag = RIG_TYPE(TN_BOOL, 4);
    bool half = !tn_lane_is_stored(dtype);
    char expected[256];
    const char *r = !half ? "" : dtype == TN_F16 ? " round:f16" : " round:bf16";
    rig_start(&m);
    int32_t x = operand(&m, type), y = operand(&m, type), v = binary(&m, "add", x, y, type);
    v = binary(&m, "maximum", v, unary(&m, "neg", NULL, unary(&m, "exp", NULL, v, type), type), type);
    int32_t in[3] = {binary(&m, "lt", x, v, flag), unary(&m, "affine", &affine, v, type), x};
    rig_out(&m, rig_node(&m, "where", NULL, in, 3, &type, 1));
    snprintf(expected, sizeof expected, "load load add%s exp%s neg maximum lt affine%s where", r, r, r);
    check_listing(&m, expected);
  }
}

static void casts_round_to_what_they_are_cast_to(void **state) {
  (void)state;
  static const struct {
    int32_t from, to;
    const char *expected;
  } cases[] = {{TN_F32, TN_F32, "load"},
               {TN_BF16, TN_F32, "load"},
               {TN_F32, TN_BF16, "load round:bf16"},
               {TN_F16, TN_BF16, "load round:bf16"},
               {TN_F64, TN_F16, "load cast:f16 round:f16"},
               {TN_I32, TN_F16, "load cast:f16 round:f16"},
               {TN_F16, TN_I32, "load cast:i32"},
               {TN_BOOL, TN_U8, "load"},
               {TN_U8, TN_BOOL, "load cast:bool"},
               {TN_F32, TN_F64, "load cast:f64"}};
  rig_match m;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tn_cast_attributes to = {cases[i].to};
    rig_start(&m);
    rig_out(&m, unary(&m, "cast", &to, operand(&m, RIG_TYPE(cases[i].from, 3)), RIG_TYPE(cases[i].to, 3)));
    check_listing(&m, cases[i].expected);
  }
}

static void a_constant_has_the_bits_of_its_type_and_is_made_once(void **state) {
  (void)state;
  static const struct {
    double value;
    int32_t dtype;
    uint64_t bits;
  } cases[] = {{0.1, TN_F32, 0x3dcccccd},
               {0.1, TN_BF16, 0x3dcd0000},
               {0.1, TN_F16, 0x3dccc000},
               {0.1, TN_F64, 0x3fb999999999999a},
               {1e6, TN_F16, 0x7f800000},
               {-2.9, TN_I32, 0xfffffffe},
               {-2.9, TN_I64, 0xfffffffffffffffe},
               {3e9, TN_I32, INT32_MAX},
               {-3e9, TN_I32, 0x80000000},
               {1e19, TN_I64, INT64_MAX},
               {-1e19, TN_I64, 0x8000000000000000},
               {NAN, TN_I32, 0},
               {300, TN_U8, 255},
               {-1, TN_U8, 0},
               {0.5, TN_BOOL, 1},
               {0, TN_BOOL, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_int_equal(tn_pw_bits_of(cases[i].value, cases[i].dtype), cases[i].bits);
  rig_match m;
  tn_type type = RIG_TYPE(TN_F32, 3), scalar = rig_type(TN_F32, 0, NULL);
  tn_full_attributes two = {{0, NULL}, 2, TN_F32}, three = {{0, NULL}, 3, TN_F32};
  const tn_full_attributes *values[] = {&two, &three, &two};
  rig_start(&m);
  int32_t v = operand(&m, type);
  for (int32_t i = 0; i < 3; i++)
    v = binary(&m, "add", v, rig_node(&m, "full", values[i], NULL, 0, &scalar, 1), type);
  rig_out(&m, v);
  check_listing(&m, "constant load add constant add add");
}

/* ---- the list ---- */

static void check_ssa(const tn_pw_region *r) {
  bool *defined = calloc((size_t)r->n_values, sizeof *defined);
  for (int32_t v = 0; v < r->n_values; v++) defined[v] = r->values[v].operand != TN_PW_NONE;
  for (int32_t i = 0; i < r->n_insns; i++) {
    const tn_pw_insn *insn = &r->insns[i];
    for (int32_t k = 0; k < TN_PW_INPUTS; k++) {
      if (insn->in[k] == TN_PW_NONE) continue;
      assert_true(defined[insn->in[k]]);
      bool other =
          (insn->op == TN_PW_WHERE && k == 0) || insn->op == TN_PW_UNIFORM || insn->op == TN_PW_NORMAL;
      if (!other) assert_int_equal(r->values[insn->in[k]].lane, insn->lane);
    }
    if (insn->out == TN_PW_NONE) {
      assert_int_equal(insn->op, TN_PW_STORE);
      continue;
    }
    assert_false(defined[insn->out]);
    defined[insn->out] = true;
    if (insn->op == TN_PW_CAST) assert_int_equal(r->values[insn->out].lane, tn_lane_of(insn->dtype));
    if (insn->op >= TN_PW_CONSTANT) assert_int_equal(r->values[insn->out].lane, insn->lane);
  }
  free(defined);
}

static void look_at_rates(tn_pw_region *r) {
  check_ssa(r);
  tn_pw_schedule(r);
  tn_pw_place(r, true);
  check_ssa(r);
  assert_int_equal(r->end[TN_PW_PER_SEGMENT], r->end[TN_PW_ONCE]);
  assert_int_equal(r->end[TN_PW_PER_ELEMENT], r->n_insns);
  for (int32_t i = 0; i < r->n_insns; i++)
    if (r->insns[i].out != TN_PW_NONE)
      assert_int_equal(r->values[r->insns[i].out].rate,
                       i < r->end[TN_PW_ONCE] ? TN_PW_ONCE : TN_PW_PER_ELEMENT);
  assert_int_equal(r->end[TN_PW_ONCE], 4); /* the scalar, its square, the constant, their sum */
  const tn_pw_insn *exp = insn_of(r, TN_PW_EXP), *load = &r->insns[r->end[TN_PW_ONCE]];
  assert_int_equal(load->op, TN_PW_LOAD);
  assert_int_equal(r->values[load->out].made, r->end[TN_PW_ONCE]);
  assert_int_equal(r->values[load->out].last_use, exp - r->insns); /* the later of two uses */
  const tn_pw_insn *square = insn_of(r, TN_PW_MUL), *sum = insn_of(r, TN_PW_ADD);
  assert_int_equal(r->values[square->out].last_use, sum - r->insns); /* both once */
  assert_int_equal(r->values[sum->out].last_use, TN_PW_LATER);       /* for every element */
}

static void values_that_are_the_same_everywhere_come_first_and_stay_alive(void **state) {
  (void)state;
  rig_match m;
  tn_type type = RIG_TYPE(TN_BF16, 9), scalar = rig_type(TN_F32, 0, NULL), wide = RIG_TYPE(TN_F32, 9);
  tn_full_attributes one = {{0, NULL}, 1, TN_F32};
  tn_cast_attributes to = {TN_F32};
  rig_start(&m);
  int32_t x = operand(&m, type), s = operand(&m, scalar), w = unary(&m, "cast", &to, x, wide);
  int32_t square = binary(&m, "mul", s, s, scalar), f = rig_node(&m, "full", &one, NULL, 0, &scalar, 1);
  int32_t d = binary(&m, "div", w, binary(&m, "add", square, f, scalar), wide);
  rig_out(&m, binary(&m, "sub", unary(&m, "exp", NULL, w, wide), d, wide));
  look_at(&m, look_at_rates);
}

/* ---- in-place pairs ---- */

static char pairs[256];

/* The pairs as "operand>result", then how each result is written: "direct" or "store". */
static void list_pairs(tn_pw_region *r) {
  tn_pw_schedule(r);
  tn_pw_place(r, true);
  pairs[0] = 0;
  for (int32_t i = 0; i < r->n_inplace; i++)
    snprintf(pairs + strlen(pairs), sizeof pairs - strlen(pairs), "%d>%d ", (int)r->inplace[i][0],
             (int)r->inplace[i][1]);
  for (int32_t k = 0; k < r->match->n_out; k++) {
    bool direct = r->values[r->of[r->match->out_number[k]]].result == k;
    snprintf(pairs + strlen(pairs), sizeof pairs - strlen(pairs), "%s%s", k > 0 ? " " : "",
             direct ? "direct" : "store");
  }
}

static void check_pairs(const rig_match *m, const char *expected) {
  look_at(m, list_pairs);
  assert_string_equal(pairs, expected);
}

/* The same where the values of operands are in their memory. */
static void list_pairs_of_memory(tn_pw_region *r) {
  int32_t n = 0;
  for (int32_t i = 0; i < r->n_insns; i++)
    if (r->insns[i].op == TN_PW_LOAD)
      tn_pw_bind(r, r->insns[i].out, r->insns[i].view, TN_PW_NONE);
    else
      r->insns[n++] = r->insns[i];
  r->n_insns = n;
  list_pairs(r);
}

static void check_pairs_of_memory(const rig_match *m, const char *expected) {
  look_at(m, list_pairs_of_memory);
  assert_string_equal(pairs, expected);
}

static void results_replace_operands_that_are_read_no_more(void **state) {
  (void)state;
  rig_match m;
  tn_type t = RIG_TYPE(TN_F32, 8), half = RIG_TYPE(TN_F16, 8), flag = RIG_TYPE(TN_BOOL, 8),
          row = RIG_TYPE(TN_F32, 1);
  rig_start(&m); /* either operand */
  int32_t x = operand(&m, t), y = operand(&m, t), v = binary(&m, "add", x, y, t);
  rig_out(&m, v);
  check_pairs(&m, "0>0 1>0 direct");
  check_pairs_of_memory(&m, "0>0 1>0 direct");
  rig_start(
      &m); /* x is read after the first result is made, whose memory may be y's, or x's once it is loaded */
  x = operand(&m, t), y = operand(&m, t), v = binary(&m, "add", x, y, t);
  int32_t w = binary(&m, "mul", v, x, t);
  rig_out(&m, v);
  rig_out(&m, w);
  check_pairs(&m, "0>0 1>0 0>1 1>1 direct direct");
  check_pairs_of_memory(&m, "1>0 0>1 1>1 direct direct");
  rig_start(&m); /* both are read later: the result is kept and stored at the end, which allows both pairs */
  x = operand(&m, t), y = operand(&m, t), v = binary(&m, "add", x, y, t);
  w = binary(&m, "sub", binary(&m, "mul", v, x, t), y, t);
  rig_out(&m, v);
  rig_out(&m, binary(&m, "lt", w, v, flag));
  check_pairs(&m, "0>0 1>0 direct direct");
  check_pairs_of_memory(&m, "0>0 1>0 store direct");
  rig_start(&m); /* other types and repeated operands share nothing */
  x = operand(&m, half), y = operand(&m, row);
  tn_cast_attributes to = {TN_F32};
  rig_out(&m, binary(&m, "add", unary(&m, "cast", &to, x, t), y, t));
  check_pairs(&m, "direct");
  rig_start(&m); /* halves are stored, and may replace halves */
  x = operand(&m, half);
  rig_out(&m, unary(&m, "exp", NULL, x, half));
  check_pairs(&m, "0>0 store");
  rig_start(&m); /* one value, two results: one of them is a copy */
  x = operand(&m, t), v = unary(&m, "exp", NULL, x, t);
  rig_out(&m, v);
  rig_out(&m, v);
  check_pairs(&m, "0>0 0>1 direct store");
}

static void memory_that_is_read_to_the_end_is_not_replaced(void **state) {
  (void)state;
  rig_match m;
  tn_type t = RIG_TYPE(TN_F32, 8);
  int64_t starts[] = {0, 3}, index[] = {7, 0};
  tn_spread_attributes spread = {{2, starts}, {2, index}, 8};
  rig_start(&m); /* spread reads anywhere */
  int32_t x = operand(&m, t), v = binary(&m, "add", x, unary(&m, "spread", &spread, x, t), t);
  rig_out(&m, v);
  check_pairs(&m, "direct");
  rig_start(&m); /* x itself is a result, copied at the end from its memory */
  x = operand(&m, t);
  int32_t y = operand(&m, t);
  rig_out(&m, unary(&m, "neg", NULL, y, t));
  rig_out(&m, unary(&m, "broadcast", NULL, x, t));
  check_pairs_of_memory(&m, "1>0 1>1 direct store");
}

/* ---- registers ---- */

static tn_pw_machine machine = {
    .program = sizeof(tn_pw_program), .insn = 8, .most = 512, .least = 64, .multiple = 1, .buffer = 8192};
static int64_t got_tile;
static int32_t got_slots;
static tn_status got_status;

static void assign(tn_pw_region *r) {
  tn_pw_program *p = NULL;
  tn_pw_schedule(r);
  tn_pw_place(r, true);
  got_status = tn_pw_assign(r, &machine, &p);
  if (got_status == TN_OK) {
    got_tile = p->tile;
    got_slots = p->n_slots;
    for (int32_t i = 0; i < p->n_slots; i++) assert_int_equal(p->slots[i] % 64, 0);
    assert_int_equal(p->count, r->space.count);
    assert_int_equal(p->n_bindings, 1);
    assert_int_equal(p->bindings[0].view, 1); /* the result */
    assert_int_equal(p->bindings[0].reg, p->n_slots);
  }
  tn_delete(r->handle, p);
}

/* n values of the operand, all alive before the first is used. */
static void assign_wide(int32_t n) {
  static rig_match m;
  static tn_affine_attributes shift[64];
  tn_type t = RIG_TYPE(TN_F32, 1000);
  int32_t values[64], sum;
  rig_start(&m);
  int32_t x = operand(&m, t);
  for (int32_t i = 0; i < n; i++) {
    shift[i] = (tn_affine_attributes){1, i};
    values[i] = unary(&m, "affine", &shift[i], x, t);
  }
  sum = values[0];
  for (int32_t i = 1; i < n; i++) sum = binary(&m, "maximum", sum, values[i], t);
  rig_out(&m, sum);
  look_at(&m, assign);
}

static void registers_are_reused_and_tiles_shrink_until_they_fit(void **state) {
  (void)state;
  assign_wide(4); /* the last affine takes the register of x */
  assert_int_equal(got_slots, 4);
  assert_int_equal(got_tile, 512);
  assign_wide(5);
  assert_int_equal(got_slots, 5);
  assert_int_equal(got_tile, 256);
  assign_wide(32);
  assert_int_equal(got_tile, 64);
  machine.multiple = 48;
  assign_wide(5);
  assert_int_equal(got_tile, 240);
  machine.multiple = 1;
}

static void look_at_no_room(tn_pw_region *r) {
  assign(r);
  assert_int_equal(got_status, TN_EUNSUPPORTED);
}

static void values_that_do_not_fit_are_refused(void **state) {
  (void)state;
  machine.buffer = 1024;
  static rig_match m;
  static const tn_affine_attributes a = {2, 1};
  tn_type t = RIG_TYPE(TN_F32, 1000);
  int32_t values[6];
  rig_start(&m);
  int32_t x = operand(&m, t);
  for (int32_t i = 0; i < 6; i++) values[i] = unary(&m, "affine", &a, x, t);
  int32_t sum = values[0];
  for (int32_t i = 1; i < 6; i++) sum = binary(&m, "add", sum, values[i], t);
  rig_out(&m, sum);
  look = look_at_no_room;
  rig_answer answer = rig_query(&looker, &m);
  assert_string_equal(answer.text, "the region of 11 nodes has too many values alive at once");
  machine.buffer = 8192;
}

/* ---- a printer ---- */

/* A region in C, instruction by instruction, as a back end prints it for a compiler of its own. */
static char code[2048];

static void print(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(code + strlen(code), sizeof code - strlen(code), format, args);
  va_end(args);
}

static void print_offset(const tn_pw_map *map) {
  int64_t below = 1;
  if (tn_pw_access_of(map) == TN_PW_SCALAR) print("0");
  if (tn_pw_access_of(map) == TN_PW_SAME) print("i");
  for (int32_t k = map->rank - 1; k >= 0 && tn_pw_access_of(map) == TN_PW_REPEATED; k--) {
    if (map->strides[k] != 0 && k > 0)
      print("i / %d %% %d * %d + ", (int)below, (int)map->dims[k], (int)map->strides[k]);
    if (k == 0) print("i / %d * %d", (int)below, (int)map->strides[k]);
    below *= map->dims[k];
  }
}

static void print_insn(const tn_pw_region *r, const tn_pw_insn *insn) {
  static const char *const lanes[TN_LANES] = {"byte", "char", "int", "long", "float", "double"};
  static const char *const operators[TN_PW_OPS] = {[TN_PW_ADD] = "+", [TN_PW_MUL] = "*", [TN_PW_LT] = "<"};
  const int32_t *in = insn->in;
  if (insn->op != TN_PW_STORE) print("%s v%d = ", lanes[r->values[insn->out].lane], (int)insn->out);
  switch (insn->op) {
  case TN_PW_LOAD:
    print("%s(in%d[", insn->dtype == TN_BF16 ? "wide" : "", (int)insn->view);
    print_offset(&r->maps[insn->map]);
    print("])");
    break;
  case TN_PW_STORE:
    print("out%d[i] = %s(v%d)", (int)insn->view, insn->dtype == TN_BF16 ? "narrow" : "", (int)in[0]);
    break;
  case TN_PW_ROUND: print("round(v%d)", (int)in[0]); break;
  case TN_PW_WHERE: print("v%d ? v%d : v%d", (int)in[0], (int)in[1], (int)in[2]); break;
  default: print("v%d %s v%d", (int)in[0], operators[insn->op], (int)in[1]); break;
  }
  print(";\n");
}

static void print_region(tn_pw_region *r) {
  code[0] = 0;
  tn_pw_schedule(r);
  tn_pw_place(r, false);
  for (int32_t i = 0; i < r->n_insns; i++) print_insn(r, &r->insns[i]);
}

static void a_printer_needs_no_more_than_the_list(void **state) {
  (void)state;
  rig_match m;
  tn_type t = RIG_TYPE(TN_BF16, 2, 3, 4), channel = RIG_TYPE(TN_BF16, 3, 1),
          scalar = rig_type(TN_BF16, 0, NULL);
  tn_type flag = RIG_TYPE(TN_BOOL, 2, 3, 4);
  rig_start(&m);
  int32_t x = operand(&m, t), c = operand(&m, channel), s = operand(&m, scalar);
  int32_t y = binary(&m, "mul", binary(&m, "add", x, c, t), s, t),
          in[3] = {binary(&m, "lt", y, x, flag), y, x};
  rig_out(&m, rig_node(&m, "where", NULL, in, 3, &t, 1));
  look_at(&m, print_region);
  assert_string_equal(code, "float v4 = wide(in2[0]);\n"
                            "float v0 = wide(in0[i]);\n"
                            "float v1 = wide(in1[i / 4 % 3 * 1 + i / 12 * 0]);\n"
                            "float v2 = v0 + v1;\n"
                            "float v3 = round(v2);\n"
                            "float v5 = v3 * v4;\n"
                            "float v6 = round(v5);\n"
                            "byte v7 = v6 < v0;\n"
                            "float v8 = v7 ? v6 : v0;\n"
                            "out0[i] = narrow(v8);\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_that_cannot_be_built_are_refused_with_the_reason),
      cmocka_unit_test(operands_are_loaded_along_the_walk_of_their_dimensions),
      cmocka_unit_test(indices_random_numbers_and_ranges_carry_the_walk_of_their_index),
      cmocka_unit_test(positions_in_single_values_are_the_same_everywhere),
      cmocka_unit_test(a_walk_through_blocks_gives_the_element_at_each_position),
      cmocka_unit_test(halves_are_rounded_after_every_op_that_is_not_exact),
      cmocka_unit_test(casts_round_to_what_they_are_cast_to),
      cmocka_unit_test(a_constant_has_the_bits_of_its_type_and_is_made_once),
      cmocka_unit_test(values_that_are_the_same_everywhere_come_first_and_stay_alive),
      cmocka_unit_test(results_replace_operands_that_are_read_no_more),
      cmocka_unit_test(memory_that_is_read_to_the_end_is_not_replaced),
      cmocka_unit_test(registers_are_reused_and_tiles_shrink_until_they_fit),
      cmocka_unit_test(values_that_do_not_fit_are_refused),
      cmocka_unit_test(a_printer_needs_no_more_than_the_list),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
