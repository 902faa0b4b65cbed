/* Lines that compute with values: `y = silu(gate) * up`, numbers with names, and expressions behind an arrow.
 */
#include "tests/unit/model/rig.h"

#include "tenon/attributes.h"

static void operators_are_ops(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    y = (x + x) * x - x / x\n"), "%2: f32[2, 3] = add(x, x) in y\n"
                                                            "%3: f32[2, 3] = mul(%2, x) in y\n"
                                                            "%4: f32[2, 3] = div(x, x) in y\n"
                                                            "%5: f32[2, 3] = sub(%3, %4) in y\n"
                                                            "output output = %5\n");
}

/* 2 * x + 1 is one affine, and a number takes the type of the value beside it. */
static void numbers_are_folded(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    y = 2 * 3 * x + 8 // 3 - 2 ** 3\n"),
                   "%2: f32[2, 3] = affine(x, scale=6, shift=2) in y\n"
                   "%3: f32[2, 3] = affine(%2, shift=-8) in y\n"
                   "output output = %3\n");
  rig_expect_graph("[model]\ninputs = x: f32[3], i: i64[3]\nlayers =\n    y = i + 1\n",
                   "%3: i64[] = full(value=1, dtype=i64) in y\n"
                   "%4: i64[2, 3] = add(i, %3) in y\n"
                   "output output = %4\n");
}

static void powers_and_remainders_are_pythons(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    y = -x ** 2\n"), "%2: f32[2, 3] = mul(x, x) in y\n"
                                                "%3: f32[2, 3] = neg(%2) in y\n"
                                                "output output = %3\n");
  rig_expect_graph(LAYERS("    y = x // 2 + x % 2\n"), "%2: f32[] = full(value=2) in y\n"
                                                       "%3: f32[2, 3] = floor_divide(x, %2) in y\n"
                                                       "%4: f32[] = full(value=2) in y\n"
                                                       "%5: f32[2, 3] = remainder(x, %4) in y\n"
                                                       "%6: f32[2, 3] = add(%3, %5) in y\n"
                                                       "output output = %6\n");
  rig_expect_graph("[model]\ninputs = x: f32[3], i: i32[3]\nlayers =\n    y = 7 // i % 4\n",
                   "%3: i32[] = full(value=7, dtype=i32) in y\n"
                   "%4: i32[2, 3] = floor_divide(%3, i) in y\n"
                   "%5: i32[] = full(value=4, dtype=i32) in y\n"
                   "%6: i32[2, 3] = remainder(%4, %5) in y\n"
                   "output output = %6\n");
}

static void parts_are_slices(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    y = x[:, 1:]\n"),
                   "%2: f32[2, 2] = slice(x, starts=[0, 1], stops=[2, 3]) in y\n"
                   "output output = %2\n");
  rig_expect_graph(LAYERS("    y = x[..., -1]\n"),
                   "%2: f32[2, 1] = slice(x, starts=[0, 2], stops=[2, 3]) in y\n"
                   "%3: f32[2] = reshape(%2, dims=[2]) in y\n"
                   "output output = %3\n");
  rig_expect_graph(LAYERS("    y = (2 * x)[:, ::2, None] + 1\n"),
                   "%2: f32[2, 2] = slice(x, starts=[0, 0], stops=[2, 3], steps=[1, 2]) in y\n"
                   "%3: f32[2, 2, 1] = reshape(%2, dims=[2, 2, 1]) in y\n"
                   "%4: f32[2, 2, 1] = affine(%3, scale=2, shift=1) in y\n"
                   "output output = %4\n");
  rig_expect_graph(LAYERS("    y = x[:, -9:9]\n"), "output output = x\n");
  rig_expect_graph(LAYERS("    y: relu <- x[:, dims(x)[-1] - 1:]\n"),
                   "%2: f32[2, 1] = slice(x, starts=[0, 2], stops=[2, 3]) in y\n"
                   "%3: f32[2, 1] = relu(%2) in y\n"
                   "output output = %3\n");
}

/* In front of a bracket, a call with several values is a list of them. */
static void an_index_picks_a_value_of_a_call(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    y = 0 < twice(x)[1][:, 0] < 5\n"),
                   "%2: f32[2, 3] = affine(x, shift=1) in y\n"
                   "%3: f32[2, 3] = affine(x, shift=2) in y\n"
                   "%4: f32[2, 1] = slice(%3, starts=[0, 0], stops=[2, 1]) in y\n"
                   "%5: f32[2] = reshape(%4, dims=[2]) in y\n"
                   "%6: f32[] = full() in y\n"
                   "%7: bool[2] = lt(%6, %5) in y\n"
                   "%8: f32[2, 1] = slice(%3, starts=[0, 0], stops=[2, 1]) in y\n"
                   "%9: f32[2] = reshape(%8, dims=[2]) in y\n"
                   "%10: f32[] = full(value=5) in y\n"
                   "%11: bool[2] = lt(%9, %10) in y\n"
                   "%12: bool[2] = and(%7, %11) in y\n"
                   "output output = %12\n");
}

static void comparisons_choose_for_each_element(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    y = x if 0 < x < 1 and yes else 0\n"),
                   "%2: f32[] = full() in y\n"
                   "%3: bool[2, 3] = lt(%2, x) in y\n"
                   "%4: f32[] = full(value=1) in y\n"
                   "%5: bool[2, 3] = lt(x, %4) in y\n"
                   "%6: bool[2, 3] = and(%3, %5) in y\n"
                   "%7: f32[] = full() in y\n"
                   "%8: f32[2, 3] = where(%6, x, %7) in y\n"
                   "output output = %8\n");
  rig_expect_graph(LAYERS("    y = x if dim(x, 1) == 3 else zz\n"), "output output = x\n");
}

static void calls_take_values_first_and_options_behind(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    y = reduce_sum(relu(x), axis=1)\n"),
                   "%2: f32[2, 3] = relu(x) in y\n"
                   "%3: f32[2] = reduce_sum(%2, axes=[1]) in y@1\n"
                   "output output = %3\n");
  rig_expect_graph(LAYERS("    y = maximum(x, 0)\n"), "%2: f32[] = full() in y\n"
                                                      "%3: f32[2, 3] = maximum(x, %2) in y\n"
                                                      "output output = %3\n");
  rig_expect_graph(LAYERS("    y = op.concat([x, x], -1)\n"), "%2: f32[2, 6] = concat(x, x, axis=-1) in y\n"
                                                              "output output = %2\n");
}

static void names_get_the_results_in_order(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    p, q = twice(x)\n    r = q - p\n"), "%2: f32[2, 3] = affine(x, shift=1) in p\n"
                                                                   "%3: f32[2, 3] = affine(x, shift=2) in p\n"
                                                                   "%4: f32[2, 3] = sub(%3, %2) in r\n"
                                                                   "output output = %4\n");
}

static void a_value_stands_behind_the_arrow(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    a: relu\n    b: sum <- 2 * a, in, tanh(a), 1.5\n"),
                   "%2: f32[2, 3] = relu(x) in a\n"
                   "%3: f32[2, 3] = affine(%2, scale=2) in b\n"
                   "%4: f32[2, 3] = tanh(%2) in b.2\n"
                   "%5: f32[] = full(value=1.5) in b.3\n"
                   "%6: f32[2, 3] = add(%3, x) in b\n"
                   "%7: f32[2, 3] = add(%6, %4) in b\n"
                   "%8: f32[2, 3] = add(%7, %5) in b\n"
                   "output output = %8\n");
}

/* A line without values gives a number a name. The next line reads the value of the line before it. */
static void numbers_have_names(void **state) {
  (void)state;
  rig_expect_graph(
      LAYERS("    a: relu\n    n = 2 * dim(in, 1)\n    w = sqrt(n + 3)\n    b: affine(scale=w)\n"),
      "%2: f32[2, 3] = relu(x) in a\n"
      "%3: f32[2, 3] = affine(%2, scale=3) in b\n"
      "output output = %3\n");
  rig_expect_graph(LAYERS("    y = affine(x, sqrt(9), shift=2 * abs(-1))\n    b: affine(exp(0) + 1)\n"),
                   "%2: f32[2, 3] = affine(x, scale=3, shift=2) in y\n"
                   "%3: f32[2, 3] = affine(%2, scale=2) in b\n"
                   "output output = %3\n");
  rig_expect_states(LAYERS("    n = 2\n    a: scale * n\n"), "a.0.gain a.1.gain");
  rig_expect_graph(LAYERS("    y = reshape(x, dims(x))\n"), "%2: f32[2, 3] = reshape(x, dims=[2, 3]) in y\n"
                                                            "output output = %2\n");
}

static void an_argument_keeps_its_meaning(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    b: part(3)\n") "[block part]\nargs = k\nlayers =\n    y = k * in\n",
                   "%2: f32[2, 3] = affine(x, scale=3) in b.y\n"
                   "output output = %2\n");
}

static void an_argument_may_be_a_layer(void **state) {
  (void)state;
  rig_expect_graph(
      LAYERS("    b: part(tanh)\n    c: part(affine(scale=2))\n") "[block part]\nargs = act\nlayers =\n"
                                                                  "    y = act(in) + 1\n    act\n",
      "%2: f32[2, 3] = tanh(x) in b.y\n"
      "%3: f32[2, 3] = affine(%2, shift=1) in b.y\n"
      "%4: f32[2, 3] = tanh(%3) in b.act@1.0\n"
      "%5: f32[2, 3] = affine(%4, scale=2) in c.y\n"
      "%6: f32[2, 3] = affine(%5, shift=1) in c.y\n"
      "%7: f32[2, 3] = affine(%6, scale=2) in c.act@1.0\n"
      "output output = %7\n");
}

static void op_names_an_op(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    y = op.add(x, x)\n    op.relu\n"), "%2: f32[2, 3] = add(x, x) in y\n"
                                                                  "%3: f32[2, 3] = relu(%2) in op.relu@1.0\n"
                                                                  "output output = %3\n");
}

/* Two random values of a line have streams of their own. */
static void expect_two_streams(const tn_graph *g) {
  int64_t streams[2];
  int32_t n = 0;
  for (size_t i = 0; i < g->nodes.n; i++)
    if (tn_text_equal(g->nodes.v[i].op->item.name, "random_normal"))
      streams[n++] = ((const tn_random_attributes *)g->nodes.v[i].attributes)->stream;
  assert_int_equal(n, 2);
  assert_true(streams[0] != streams[1]);
}

static void random_values_are_addressed(void **state) {
  (void)state;
  expect_two_streams(rig_build(LAYERS("    y = x + random_normal(dims(x)) - random_normal(dims(x))\n")));
}

/* A chain of comparisons evaluates its middle twice, and emits it once. */
static void a_chain_has_one_middle(void **state) {
  (void)state;
  const tn_graph *g = rig_build(LAYERS("    y = 0 < tanh(x) < 1\n"));
  int32_t n = 0;
  for (size_t i = 0; i < g->nodes.n; i++) n += tn_text_equal(g->nodes.v[i].op->item.name, "tanh");
  assert_int_equal(n, 1);
}

static void the_number_of_a_repeat_may_begin_later(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    a{i+1}: scale * 2\n    sum <- a1, a2\n"), "a1.gain a2.gain");
}

static void repeats_pass_on_what_a_block_takes(void **state) {
  (void)state;
  rig_expect_graph("[model]\ninputs = x: f32[3], m: f32[3]\nlayers =\n    a: part * 2 <- x, m\n"
                   "    b, c: both * 2 <- x, m\n    d = c\n"
                   "[block part]\ninputs = v, w\nlayers = y = v * w\n"
                   "[block both]\ninputs = v, w\noutputs = -w, v\nlayers =\n",
                   "%3: f32[2, 3] = mul(x, m) in a.0.y\n"
                   "%4: f32[2, 3] = mul(%3, m) in a.1.y\n"
                   "%5: f32[2, 3] = neg(m) in b.0.outputs\n"
                   "%6: f32[2, 3] = neg(x) in b.1.outputs\n"
                   "output output = %5\n");
}

/* A layer without an input does not read the line before it, and one array may have the name of its line. */
static void a_parameter_may_have_the_name_of_its_line(void **state) {
  (void)state;
  rig_expect_states(
      LAYERS("    token: own\n    b: part\n") "[block part]\nlayers =\n    k: own\n    y = in * k\n",
      "token b.k");
  rig_expect_graph(LAYERS("    a: relu\n    token: own\n    y = a * token\n"),
                   "%2: f32[2, 3] = relu(x) in a\n"
                   "%4: f32[2, 3] = mul(%2, token) in y\n"
                   "output output = %4\n");
  rig_expect_error(LAYERS("    y = x * own()\n"),
                   "m.ini:4: own: it has parameters, expected a line of its own for "
                   "it, as in `own1: own(...)`, and its name in the expression");
}

static void a_flat_block_adds_no_level(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    a: part\n    b: outer * 2\n") "[block part]\nflat = yes\nlayers = c: scale\n"
                                                              "[block outer]\nlayers =\n    p: part\n",
                    "c.gain b.0.c.gain b.1.c.gain");
  rig_expect_error(
      LAYERS("    part * 2\n") "[block part]\nflat = yes\nlayers = c: scale\n",
      "m.ini:4: in block 'part': m.ini:7: 'c' is the path of an earlier layer; take another name, or @c "
      "for its parameters");
  rig_expect_error(LAYERS("    p: part\n") "[block part]\nflat = maybe\nlayers = c: scale\n",
                   "m.ini:4: m.ini:6: [block part] flat is 'maybe', expected yes or no");
}

/* Two uses of a flat block have random numbers of their own. */
static void flat_blocks_draw_different_numbers(void **state) {
  (void)state;
  expect_two_streams(rig_build(LAYERS("    part * 2\n") "[block part]\nflat = yes\nlayers =\n"
                                                        "    y = in + random_normal(dims(in))\n"));
}

#define TARGETS(lines) "[model]\ninputs = x: f32[3]\ntargets = t: f32[3]\nloss = gap\nlayers =\n" lines

/* Lines on targets are a part of training, and are left out of prediction. */
static void layers_may_read_targets(void **state) {
  (void)state;
  const char *model = TARGETS("    d = data.t * 2 + dim(data.t, 1)\n    b: block * 2 <- d\n    a: relu <- "
                              "x\n") "[block block]\nlayers =\n    y = in * data.sample.weight if no else in "
                                     "- data.t\n";
  rig_expect_graph(model, "%2: f32[2, 3] = relu(x) in a\n"
                          "output output = %2\n");
  const tn_graph *g = rig_build_measured(model)->graph;
  int32_t n = 0;
  for (size_t i = 0; i < g->nodes.n; i++) n += tn_text_starts(g->nodes.v[i].layer, "b.");
  assert_int_equal(n, 2);
  rig_expect_error(
      TARGETS("    y = x - data.t\n"),
      "m.ini:5: [model] layers: the value of the last line is the output of the model, and depends on "
      "the target 't', which prediction lacks; expected the line of the output last, or its name in "
      "`outputs`");
}

static void mistakes_are_placed(void **state) {
  (void)state;
  rig_expect_error(LAYERS("    y = x + zz\n"),
                   "m.ini:4: there is no value 'zz' here, expected the name of an earlier line or 'in'");
  rig_expect_error(
      LAYERS("    y = scale(x)\n"),
      "m.ini:4: scale on (f32[2, 3]): it has parameters, expected a line of its own for it, as in "
      "`scale1: scale(...)`, and its name in the expression");
  rig_expect_error(LAYERS("    n = 3\n    relu <- n\n"),
                   "m.ini:5: 'n' is no value here, but '3', expected the name of a value");
}

/* Only the mistake is told, not its consequences. */
static void nothing_is_told_of_unknown_values(void **state) {
  (void)state;
  rig_expect_error(
      LAYERS("    y = x + zz\n    z = y * y + dim(y, 1)\n    n = dim(z, 0)\n    a: affine(scale=n) <- z\n"
             "    p, q = twice(y)\n    r = relu(y)[:, 0] + twice(y)[1][0]\n    m = dims(y)[1] // 2\n"
             "    sum <- p, 2 * q\n"),
      "m.ini:4: there is no value 'zz' here, expected the name of an earlier line or 'in'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(operators_are_ops, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(numbers_are_folded, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(powers_and_remainders_are_pythons, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(parts_are_slices, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(an_index_picks_a_value_of_a_call, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(comparisons_choose_for_each_element, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(calls_take_values_first_and_options_behind, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(names_get_the_results_in_order, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_value_stands_behind_the_arrow, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(numbers_have_names, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(an_argument_keeps_its_meaning, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(an_argument_may_be_a_layer, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(op_names_an_op, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(random_values_are_addressed, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_chain_has_one_middle, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(the_number_of_a_repeat_may_begin_later, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(repeats_pass_on_what_a_block_takes, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_parameter_may_have_the_name_of_its_line, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_flat_block_adds_no_level, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(flat_blocks_draw_different_numbers, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(layers_may_read_targets, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(mistakes_are_placed, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(nothing_is_told_of_unknown_values, rig_open, rig_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
