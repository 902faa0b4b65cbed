/* Losses and metrics, and the signature with their targets. */
#include "tests/unit/model/rig.h"

#include <stdio.h>

#include <string.h>

#define MODEL "[model]\ninputs = x: f32[3]\ntargets = t: f32[3]\nlayers =\n    a: relu\n"

/* sum(value * weight * sample weight) / sum(weight * sample weight); a weight of zero counts as one. */
static void a_loss_is_a_weighted_mean(void **state) {
  (void)state;
  rig_expect_measured(MODEL "loss = gap\n", "%2: f32[2, 3] = relu(x) in a\n"
                                            "%5: f32[2, 3] = sub(%2, t) in gap\n"
                                            "%6: f32[2, 3] = full(dims=[2, 3], value=2) in gap\n"
                                            "%7: f32[2, 1] = reshape(sample.weight, dims=[2, 1])\n"
                                            "%8: f32[2, 3] = mul(%6, %7)\n"
                                            "%9: f32[2, 3] = broadcast(%8, dims=[2, 3])\n"
                                            "%10: f32[2, 3] = mul(%5, %9)\n"
                                            "%11: f32[] = reduce_sum(%10)\n"
                                            "%12: f32[] = reduce_sum(%9)\n"
                                            "%13: f32[] = full()\n"
                                            "%14: f32[] = full(value=1)\n"
                                            "%15: bool[] = eq(%12, %13)\n"
                                            "%16: f32[] = where(%15, %14, %12)\n"
                                            "%17: f32[] = div(%11, %16)\n"
                                            "output output = %2\n"
                                            "output gap.sum = %11\n"
                                            "output gap.weight = %12\n"
                                            "output loss = %17\n");
}

/* reduce=sum: the elements of a sample are added with their weights, and samples have the weight 1. */
static void elements_of_a_sample_may_be_added(void **state) {
  (void)state;
  rig_expect_measured(MODEL "loss = gap(reduce=sum)\n", "%2: f32[2, 3] = relu(x) in a\n"
                                                        "%5: f32[2, 3] = sub(%2, t) in gap\n"
                                                        "%6: f32[2, 3] = full(dims=[2, 3], value=2) in gap\n"
                                                        "%7: f32[2, 3] = mul(%5, %6)\n"
                                                        "%8: f32[2] = reduce_sum(%7, axes=[1])\n"
                                                        "%9: f32[2] = reshape(sample.weight, dims=[2])\n"
                                                        "%10: f32[2] = broadcast(%9, dims=[2])\n"
                                                        "%11: f32[2] = mul(%8, %10)\n"
                                                        "%12: f32[] = reduce_sum(%11)\n"
                                                        "%13: f32[] = reduce_sum(%10)\n"
                                                        "%14: f32[] = full()\n"
                                                        "%15: f32[] = full(value=1)\n"
                                                        "%16: bool[] = eq(%13, %14)\n"
                                                        "%17: f32[] = where(%16, %15, %13)\n"
                                                        "%18: f32[] = div(%12, %17)\n"
                                                        "output output = %2\n"
                                                        "output gap.sum = %12\n"
                                                        "output gap.weight = %13\n"
                                                        "output loss = %18\n");
  rig_expect_error(MODEL "loss = gap(reduce=max)\n",
                   "m.ini:6: reduce is 'max', expected mean, of all elements, or sum, of those of a sample");
}

#define WEIGHED "[model]\ninputs = x: f32[3]\ntargets = t: f32[3], w: i32[]\nlayers =\n    a: relu\n"

/* A value that is a number for each sample multiplies the weight of its elements. */
static void samples_may_weigh_as_a_value_says(void **state) {
  (void)state;
  rig_expect_measured(WEIGHED "metrics = hits(weight=w)\n", "%2: f32[2, 3] = relu(x) in a\n"
                                                            "%6: f32[2] = cast(w, to=f32)\n"
                                                            "%7: f32[2] = mul(sample.weight, %6)\n"
                                                            "%8: bool[2, 3] = eq(%2, t) in hits\n"
                                                            "%9: f32[2, 3] = cast(%8, to=f32) in hits\n"
                                                            "%10: f32[2, 1] = reshape(%7, dims=[2, 1])\n"
                                                            "%11: f32[2, 3] = broadcast(%10, dims=[2, 3])\n"
                                                            "%12: f32[2, 3] = mul(%9, %11)\n"
                                                            "%13: f32[] = reduce_sum(%12)\n"
                                                            "%14: f32[] = reduce_sum(%11)\n"
                                                            "output output = %2\n"
                                                            "output hits.sum = %13\n"
                                                            "output hits.weight = %14\n");
  rig_expect_error(
      WEIGHED "loss = gap(weight=t)\n",
      "m.ini:6: weight is t of type f32[2, 3], expected a number for each sample, as of a target t: f32[]");
  rig_expect_error(WEIGHED "loss = gap(weight=v)\n", "m.ini:6: weight is 'v', expected a number, learned, or "
                                                     "the name of a value that is one for each sample");
}

static void a_metric_without_weights_counts_samples_alone(void **state) {
  (void)state;
  rig_expect_measured(MODEL "metrics = hits\n", "%2: f32[2, 3] = relu(x) in a\n"
                                                "%5: bool[2, 3] = eq(%2, t) in hits\n"
                                                "%6: f32[2, 3] = cast(%5, to=f32) in hits\n"
                                                "%7: f32[2, 1] = reshape(sample.weight, dims=[2, 1])\n"
                                                "%8: f32[2, 3] = broadcast(%7, dims=[2, 3])\n"
                                                "%9: f32[2, 3] = mul(%6, %8)\n"
                                                "%10: f32[] = reduce_sum(%9)\n"
                                                "%11: f32[] = reduce_sum(%8)\n"
                                                "output output = %2\n"
                                                "output hits.sum = %10\n"
                                                "output hits.weight = %11\n");
}

static void several_losses_add_up_with_their_factors(void **state) {
  (void)state;
  const tn_model *model =
      rig_build_measured(MODEL "loss =\n    gap\n    far: gap(weight=0.5) <- x, t\n    "
                               "off: gap(weight=1 - 1)\nmetrics =\n    hits\n    m: gap\n");
  static const char *const names[] = {"gap", "far", "off", "hits", "m"};
  static const double factors[] = {1, 0.5, 0, 1, 1};
  assert_int_equal(model->n_measures, 5);
  for (int i = 0; i < 5; i++) {
    char output[32];
    assert_string_equal(model->measures[i].name, names[i]);
    assert_true(model->measures[i].weight == factors[i]);
    assert_int_equal(model->measures[i].is_loss, i < 3);
    snprintf(output, sizeof output, "%s.sum", names[i]);
    assert_int_not_equal(tn_graph_find_output(model->graph, output), 0);
    snprintf(output, sizeof output, "%s.weight", names[i]);
    assert_int_not_equal(tn_graph_find_output(model->graph, output), 0);
  }
  const tn_type *loss = tn_graph_type(model->graph, tn_graph_find_output(model->graph, "loss"));
  assert_int_equal(loss->rank, 0);
  assert_int_equal(loss->dtype, TN_F32);
}

static void prediction_reads_neither_targets_nor_weights(void **state) {
  (void)state;
  const tn_graph *graph = rig_build(MODEL "loss = gap\nmetrics = hits\n");
  assert_int_equal(graph->inputs.n, 1);
  assert_int_equal(tn_graph_find_output(graph, "loss"), 0);
  assert_int_equal(graph->outputs.n, 1);
}

static void items_between_commas_are_measured_alike(void **state) {
  (void)state;
  const tn_model *model = rig_build_measured(MODEL "metrics = hits, gap(weight=3) <- x, t\n");
  assert_int_equal(model->n_measures, 2);
  assert_string_equal(model->measures[0].name, "hits");
  assert_string_equal(model->measures[1].name, "gap");
}

static void lines_without_an_arrow_take_the_first_target(void **state) {
  (void)state;
  const tn_model *model =
      rig_build_measured("[model]\ninputs = x: f32[3]\ntargets =\n    t: f32[3]\n    u: f32[3]\n"
                         "layers =\n    a: relu\n    b: tanh\nloss =\n    gap\n"
                         "    second: gap <- a, u\n");
  const tn_graph *g = model->graph;
  char text[TN_TYPE_TEXT];
  assert_string_equal(tn_type_format(tn_graph_type(g, tn_graph_find_output(g, "output")), text), "f32[2, 3]");
  assert_int_equal(model->n_measures, 2);
}

/* The default target is a label; a rank-0 field has the batch alone. */
static void the_signature_is_the_models(void **state) {
  (void)state;
  const tn_model *model = rig_build_measured("[model]\ninputs = x: i32[]\n    y: f32[2, 1]\nlayers =\n"
                                             "loss =\n    gap <- x, data.label\n");
  static const char *const types[] = {"i32[2]", "f32[2, 2, 1]", "i32[2]", "f32[2]"};
  char text[TN_TYPE_TEXT];
  (void)model;
  for (size_t i = 0; i < 4; i++)
    assert_string_equal(tn_type_format(tn_graph_type(model->graph, model->graph->inputs.v[i]), text),
                        types[i]);
}

static void mistakes_are_placed(void **state) {
  (void)state;
  rig_expect_error(MODEL "loss = hits\n",
                   "m.ini:6: 'hits' is not a loss; `tenon inspect` lists those that are");
  rig_expect_error(MODEL "loss = relu\n",
                   "m.ini:6: 'relu' is not a loss; `tenon inspect` lists those that are");
  rig_expect_error(MODEL "loss = gapp\n", "m.ini:6: no layer is called \"gapp\"; did you mean \"gap\"?");
  rig_expect_error(MODEL "metrics = scale\n",
                   "m.ini:6: 'scale' is not a metric; `tenon inspect` lists those that are");
  rig_expect_error(MODEL "loss = gap * 2\n",
                   "m.ini:6: expected losses or metrics as in `cross_entropy <- fc, label`, at most one name "
                   "a line, no repeats, no conditions");
  rig_expect_error(MODEL "loss = gap if yes\n",
                   "m.ini:6: expected losses or metrics as in `cross_entropy <- fc, label`, at most one name "
                   "a line, no repeats, no conditions");
  rig_expect_error(MODEL "loss = gap, hits\n",
                   "m.ini:6: 'hits' is not a loss; `tenon inspect` lists those that are");
  rig_expect_error(MODEL "loss = p: gap, gap\n",
                   "m.ini:6: expected losses or metrics as in `cross_entropy <- fc, label`, at most one name "
                   "a line, no repeats, no conditions");
  rig_expect_error(
      MODEL "loss =\n    gap\n    gap\n",
      "m.ini:8: two losses or metrics are called 'gap', expected a name in front, as in `second: ...`");
  rig_expect_error(MODEL "loss = loss: gap\n",
                   "m.ini:6: 'loss' is the name of the total, expected another one");
  rig_expect_error(MODEL "loss = gap(weight=no)\n", "m.ini:6: weight is 'no', expected a number, learned, or "
                                                    "the name of a value that is one for each sample");
  rig_expect_error(MODEL "loss = gap <- a, b\n",
                   "m.ini:6: there is no value 'b' here, expected the name of an earlier line or 'in'");
  rig_expect_error(MODEL "loss = gap <- a\n", "m.ini:6: gap on (f32[2, 3]): takes 2 inputs, given 1");
  rig_expect_error("[model]\ninputs = x: f32[3]\ntargets = t: f32[3], t: i32[]\nlayers =\n",
                   "m.ini:3: [model] targets: 't' appears twice");
  rig_expect_error(
      "[model]\ninputs = x: f32[3\nlayers =\n",
      "m.ini:2: [model] inputs: 'f32[3' is not a type, expected dtype and dimensions like f32[3, 224, 224]");
  rig_expect_error("[model]\ninputs = x: f32[1, 1, 1, 1, 1, 1, 1, 1]\nlayers =\n",
                   "m.ini:2: [model] inputs: more than 7 dimensions without the batch");
  rig_expect_error("[model]\ninputs = : f32[1]\nlayers =\n",
                   "m.ini:2: [model] inputs: a name is missing before ':'");
  rig_expect_error("[model]\ninputs =\nlayers =\n",
                   "m.ini:1: [model] inputs is empty, expected at least one");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_loss_is_a_weighted_mean, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(elements_of_a_sample_may_be_added, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(samples_may_weigh_as_a_value_says, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_metric_without_weights_counts_samples_alone, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(several_losses_add_up_with_their_factors, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(prediction_reads_neither_targets_nor_weights, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(items_between_commas_are_measured_alike, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(lines_without_an_arrow_take_the_first_target, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(the_signature_is_the_models, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(mistakes_are_placed, rig_open, rig_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
