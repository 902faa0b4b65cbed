/* The lines of a model: order, names, several results, repeats, conditions, sharing. */
#include "tests/unit/model/rig.h"

static void lines_follow_each_other(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    a: scale\n    relu\n    b: scale(by=3)\n"),
                   "%3: f32[2, 3] = mul(x, a.gain) in a\n"
                   "%4: f32[2, 3] = relu(%3) in relu@1.0\n"
                   "%6: f32[2, 3] = mul(%4, b.gain) in b\n"
                   "%7: f32[2, 3] = affine(%6, scale=3) in b\n"
                   "output output = %7\n");
}

static void names_choose_what_a_line_reads(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    a: sigmoid\n    b: tanh <- in\n    sum <- b, a, data.x, x\n"),
                   "%2: f32[2, 3] = sigmoid(x) in a\n"
                   "%3: f32[2, 3] = tanh(x) in b\n"
                   "%4: f32[2, 3] = add(%3, %2) in sum@2.0\n"
                   "%5: f32[2, 3] = add(%4, x) in sum@2.0\n"
                   "%6: f32[2, 3] = add(%5, x) in sum@2.0\n"
                   "output output = %6\n");
}

static void a_line_may_be_a_chain(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    a: relu, tanh,\n       sigmoid\n    sum <- a, a.0, a.1, a.2\n"),
                   "%2: f32[2, 3] = relu(x) in a.0\n"
                   "%3: f32[2, 3] = tanh(%2) in a.1\n"
                   "%4: f32[2, 3] = sigmoid(%3) in a.2\n"
                   "%5: f32[2, 3] = add(%4, %2) in sum@1.0\n"
                   "%6: f32[2, 3] = add(%5, %3) in sum@1.0\n"
                   "%7: f32[2, 3] = add(%6, %4) in sum@1.0\n"
                   "output output = %7\n");
}

static void repeats_are_numbered(void **state) {
  (void)state;
  rig_expect_states(
      LAYERS("    a: scale * 3\n    b: scale * 1\n    c: scale(by=2) * 2, scale\n    d: scale\n"),
      "a.0.gain a.1.gain a.2.gain b.0.gain c.0.gain c.1.gain c.2.gain d.gain");
}

static void the_number_may_stand_inside_the_name(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    conv{i}: scale * 2\n    x{i}: scale\n    sum <- conv0, conv1, x0\n"),
                    "conv0.gain conv1.gain x0.gain");
}

static void a_count_is_an_expression(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    a: scale * (dim(in, 1) - 1)\n    b: relu * 0\n"), "a.0.gain a.1.gain");
}

static void outputs_get_the_names_in_order(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    p, q: twice\n    sum <- q, p, q\n"),
                   "%2: f32[2, 3] = affine(x, shift=1) in p\n"
                   "%3: f32[2, 3] = affine(x, shift=2) in p\n"
                   "%4: f32[2, 3] = add(%3, %2) in sum@1.0\n"
                   "%5: f32[2, 3] = add(%4, %3) in sum@1.0\n"
                   "output output = %5\n");
}

/* The first output is the input of the next line; the others are available by name. */
static void the_first_output_goes_on(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    twice\n    twice, relu\n"),
                   "%2: f32[2, 3] = affine(x, shift=1) in twice@0.0\n"
                   "%3: f32[2, 3] = affine(x, shift=2) in twice@0.0\n"
                   "%4: f32[2, 3] = affine(%2, shift=1) in twice@1.0\n"
                   "%5: f32[2, 3] = affine(%2, shift=2) in twice@1.0\n"
                   "%6: f32[2, 3] = relu(%4) in relu@1.1\n"
                   "output output = %6\n");
}

static void a_false_condition_leaves_the_value_as_it_is(void **state) {
  (void)state;
  rig_expect_graph(
      LAYERS("    a: relu\n    b: scale if dim(in, 1) == 4\n    c: tanh <- b if 3 < dim(b, -1) or no\n"
             "    sigmoid <- c\n"),
      "%2: f32[2, 3] = relu(x) in a\n"
      "%3: f32[2, 3] = sigmoid(%2) in sigmoid@3.0\n"
      "output output = %3\n");
  rig_expect_states(LAYERS("    b: scale if dim(in, 1) == 3 and not 0\n"), "b.gain");
}

static void shared_layers_have_one_set_of_parameters(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    a: scale\n    relu\n    b: @a\n    @a * 2\n"), "a.gain");
  rig_expect_graph(LAYERS("    a: scale(by=2)\n    b: @a\n"), "%3: f32[2, 3] = mul(x, a.gain) in a\n"
                                                              "%4: f32[2, 3] = affine(%3, scale=2) in a\n"
                                                              "%5: f32[2, 3] = mul(%4, a.gain) in a\n"
                                                              "%6: f32[2, 3] = affine(%5, scale=2) in a\n"
                                                              "output output = %6\n");
}

static void a_parameter_may_be_tied_by_its_path(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    a: scale\n    b: scale(gain=@a.gain)\n    c: scale(by=2, gain=@a.gain)\n"),
                    "a.gain");
}

static void layers_nest_under_their_path(void **state) {
  (void)state;
  rig_expect_states(
      LAYERS("    a: pair\n    b: pair * 2\n"),
      "a.first.gain a.second.gain b.0.first.gain b.0.second.gain b.1.first.gain b.1.second.gain");
}

static void a_nested_layer_has_all_its_outputs(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    cross\n"), "%2: f32[2, 3] = affine(x, shift=1) in cross@0.0.both\n"
                                          "%3: f32[2, 3] = affine(x, shift=2) in cross@0.0.both\n"
                                          "output output = %3\n");
}

/* Comments and blank lines must not change random streams, which depend on the path. */
static void what_has_no_name_is_called_by_its_place_in_the_list(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("\n; a comment\n    relu\n\n    tanh\n"), "%2: f32[2, 3] = relu(x) in relu@0.0\n"
                                                                    "%3: f32[2, 3] = tanh(%2) in tanh@1.0\n"
                                                                    "output output = %3\n");
}

static void an_op_stands_in_like_a_layer(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    reduce_sum([1])\n    affine(scale=2) <- in\n"),
                   "%2: f32[2] = reduce_sum(x, axes=[1]) in reduce_sum@0.0\n"
                   "%3: f32[2, 3] = affine(x, scale=2) in affine@1.0\n"
                   "output output = %3\n");
}

static void several_inputs_are_there_by_name(void **state) {
  (void)state;
  rig_expect_graph(
      "[model]\ninputs = x: f32[3], y: f32[3]\n    z: f32[]\nlayers =\n    a: sum <- x, y\n    relu <- z\n"
      "    sum <- a, in\n",
      "%4: f32[2, 3] = add(x, y) in a\n"
      "%5: f32[2] = relu(z) in relu@1.0\n"
      "%6: f32[2, 3] = add(%4, x) in sum@2.0\n"
      "output output = %6\n");
}

static void no_layers_leave_the_input(void **state) {
  (void)state;
  rig_expect_graph("[model]\ninputs = x: f32[3]\nlayers =\n", "output output = x\n");
}

static void mistakes_are_placed(void **state) {
  (void)state;
  rig_expect_error(
      LAYERS("    a: scale\n    a: scale\n"),
      "m.ini:5: 'a' is the path of an earlier layer; take another name, or @a for its parameters");
  rig_expect_error(LAYERS("    a: scale\n    relu <- b\n"),
                   "m.ini:5: there is no value 'b' here, expected the name of an earlier line or 'in'");
  rig_expect_error(
      LAYERS("    scale\n"),
      "m.ini:4: scale on (f32[2, 3]): a layer with parameters needs a name: write `scale1: scale`");
  rig_expect_error(LAYERS("    p, q, r: twice\n"), "m.ini:4: 3 names, but there are 2 outputs");
  rig_expect_error(LAYERS("    a: scale(by=-1)\n"),
                   "m.ini:4: scale 'a' on (f32[2, 3]): by: -1 is out of range, expected >= 0");
  rig_expect_error(LAYERS("    a: scale * x\n"),
                   "m.ini:4: repeat count is x, expected a whole number from 0 to 10000");
  rig_expect_error(LAYERS("    a: scale if by\n"),
                   "m.ini:4: 'by' is neither a number, nor yes or no, nor a name that is known here");
  rig_expect_error(LAYERS("    a: scale if dim(in, 3) == 1\n"),
                   "m.ini:4: dim(in, 3): there is no such value, or it has no such dimension");
  rig_expect_error(LAYERS("    a: @b\n"), "m.ini:4: '@b' names no earlier layer");
  rig_expect_error(LAYERS("    a: scale\n    b: scale(gain=@a.gian)\n"),
                   "m.ini:5: scale 'b' on (f32[2, 3]): @a.gian names no parameter of an earlier layer, did "
                   "you mean @a.gain?");
  rig_expect_error(LAYERS("    a: scale\n    b: scale(gian=@a.gain)\n"),
                   "m.ini:5: scale 'b' on (f32[2, 3]): scale has neither an option nor a parameter 'gian'");
  rig_expect_error(LAYERS("    a: sale\n"), "m.ini:4: no layer is called \"sale\"; did you mean \"scale\"?");
  rig_expect_error(LAYERS("    sum <- x, x, x\n    sigmoid <- x, x\n"),
                   "m.ini:5: sigmoid on (f32[2, 3], f32[2, 3]): takes 1 input, given 2");
  rig_expect_error(
      LAYERS("    reduce_sum(3)\n"),
      "m.ini:4: reduce_sum on (f32[2, 3]): axes has 3, expected -2 .. 1 for an operand of rank 2");
}

static void a_layer_that_yields_nothing_is_at_fault(void **state) {
  (void)state;
  rig_expect_failure(TN_EABI, LAYERS("    a: broken\n"),
                     "m.ini:4: broken 'a' on (f32[2, 3]): the layer returned no value");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(lines_follow_each_other, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(names_choose_what_a_line_reads, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_line_may_be_a_chain, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(repeats_are_numbered, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(the_number_may_stand_inside_the_name, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_count_is_an_expression, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(outputs_get_the_names_in_order, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(the_first_output_goes_on, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_false_condition_leaves_the_value_as_it_is, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(shared_layers_have_one_set_of_parameters, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_parameter_may_be_tied_by_its_path, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(layers_nest_under_their_path, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_nested_layer_has_all_its_outputs, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(what_has_no_name_is_called_by_its_place_in_the_list, rig_open,
                                      rig_close),
      cmocka_unit_test_setup_teardown(an_op_stands_in_like_a_layer, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(several_inputs_are_there_by_name, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(no_layers_leave_the_input, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(mistakes_are_placed, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_layer_that_yields_nothing_is_at_fault, rig_open, rig_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
