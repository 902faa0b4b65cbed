/* Tests of the builder: ops, frames, and sticky errors. */
#include "tests/unit/graph/rig.h"

#include "tenon/random.h"

static rig R;

static int set_up(void **state) {
  (void)state;
  rig_init(&R);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rig_finish(&R);
  return 0;
}

static void assert_type(tn_val v, tn_type type) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  assert_int_not_equal(v, 0);
  assert_string_equal(tn_type_format(tn_val_type(R.b, v), one), tn_type_format(&type, other));
}

/* ---- emission ---- */

static void pointwise_results_broadcast_as_in_numpy(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 4, 1, 3)), y = param(&R, "y", TYPE(TN_F32, 5, 1));
  assert_type(tn_add(R.b, x, y), TYPE(TN_F32, 4, 5, 3));
  assert_type(tn_add(R.b, x, tn_scalar(R.b, TN_F32, 2)), TYPE(TN_F32, 4, 1, 3));
  tn_val empty = param(&R, "e", TYPE(TN_F32, 0));
  assert_type(tn_mul(R.b, empty, tn_scalar(R.b, TN_F32, 2)), TYPE(TN_F32, 0));
  assert_type(tn_add(R.b, empty, param(&R, "one", TYPE(TN_F32, 1))), TYPE(TN_F32, 0));
  assert_verified(&R, R.graph);
}

static void ops_may_nest_between_begin_and_end(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 2));
  tn_op_begin(R.b, "sub");
  tn_op_arg(R.b, tn_neg(R.b, x));
  tn_op_arg(R.b, tn_mul(R.b, x, tn_exp(R.b, x)));
  tn_val y = tn_op_end(R.b);
  assert_type(y, TYPE(TN_F32, 2));
  assert_prints(&R, R.graph,
                "x: f32[2] = state(path=x, init=zeros)\n"
                "%2: f32[2] = neg(x)\n"
                "%3: f32[2] = exp(x)\n"
                "%4: f32[2] = mul(x, %3)\n"
                "%5: f32[2] = sub(%2, %4)\n");
}

static void optional_operands_may_be_absent_in_the_middle_and_left_out_at_the_end(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 2));
  assert_type(tn_op3(R.b, "fuse", x, 0, x), TYPE(TN_F32, 2));
  const tn_gnode *node = &R.graph->nodes.v[R.graph->nodes.n - 1];
  assert_int_equal(node->n_in, 3);
  assert_int_equal(node->in[1], 0);
  tn_op2(R.b, "fuse", x, x);
  assert_stuck(&R, "fuse: operand y is absent, expected a value");
}

static void a_variadic_op_without_operands_has_no_dtype_to_follow(void **state) {
  (void)state;
  tn_op_begin(R.b, "total");
  tn_op_end(R.b);
  assert_stuck(&R, "total: result y is any[], expected bool, u8, i8, i32, i64, f16, bf16, f32 or f64");
}

static void a_variadic_op_names_the_operand_that_does_not_fit(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 2));
  assert_type(tn_op3(R.b, "total", x, x, x), TYPE(TN_F32, 2));
  tn_op2(R.b, "total", x, param(&R, "y", TYPE(TN_F64, 2)));
  assert_stuck(&R, "total: operand xs[1] is f64[2], expected f32 like xs[0]");
}

static void several_results_are_found_by_index(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F64, 2)), s = tn_op1(R.b, "sincos", x);
  assert_int_equal(tn_op_result(R.b, s, 0), s);
  assert_int_equal(tn_op_result(R.b, s, 1), s + 1);
  tn_op_result(R.b, s, 2);
  assert_stuck(&R, "tn_op_result: result 2 of sincos is asked for, expected 0 to 1");
}

static void a_result_is_counted_from_the_first(void **state) {
  (void)state;
  tn_val s = tn_op1(R.b, "sincos", param(&R, "x", TYPE(TN_F64, 2)));
  tn_op_result(R.b, s + 1, 0);
  assert_stuck(&R, "tn_op_result: the value given is result 1 of sincos, expected its first one");
}

static void types_keep_their_address_while_the_graph_grows(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 7));
  const tn_type *type = tn_val_type(R.b, x);
  for (int i = 0; i < 1000; i++) x = tn_neg(R.b, x);
  assert_int_equal(type->dims[0], 7);
  assert_ptr_equal(type, tn_val_type(R.b, 1));
}

static void absent_values_have_a_type_too(void **state) {
  (void)state;
  assert_int_equal(tn_val_type(R.b, 0)->dtype, TN_ANY);
  assert_int_equal(tn_val_type(R.b, 4711)->rank, 0);
}

/* ---- refusals ---- */

static void dtypes_must_agree_with_the_operand_that_came_first(void **state) {
  (void)state;
  tn_add(R.b, param(&R, "x", TYPE(TN_F32, 2)), param(&R, "w", TYPE(TN_F16, 64, 3, 7, 7)));
  assert_stuck(&R, "add: operand y is f16[64, 3, 7, 7], expected f32 like x");
}

static void dtypes_must_be_among_those_of_the_schema(void **state) {
  (void)state;
  tn_exp(R.b, param(&R, "x", TYPE(TN_I32, 2)));
  assert_stuck(&R, "exp: operand x is i32[2], expected f16, f32 or f64");
}

static void a_fixed_dtype_must_be_met(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 2));
  tn_where(R.b, x, x, x);
  assert_stuck(&R, "where: operand c is f32[2], expected bool");
}

static void shapes_must_broadcast(void **state) {
  (void)state;
  tn_add(R.b, param(&R, "x", TYPE(TN_F32, 2, 3)), param(&R, "y", TYPE(TN_F32, 2)));
  assert_stuck(&R,
               "add: operand y is f32[2], which does not broadcast with [2, 3] of the operands before it, "
               "expected dimensions that are equal or 1");
}

static void types_follow_from_a_decomposition(void **state) {
  (void)state;
  tn_val y = tn_op1(R.b, "halves", param(&R, "x", TYPE(TN_F32, 10)));
  assert_type(y, TYPE(TN_F32, 2, 5));
  assert_type(tn_op_result(R.b, y, 1), scalar_of(TN_F64));
  assert_prints(&R, R.graph,
                "x: f32[10] = state(path=x, init=zeros)\n"
                "%2: f32[2, 5], %3: f64[] = halves(x)\n");
}

static void a_decomposition_without_types_is_refused(void **state) {
  static const struct {
    int64_t n;
    const char *text;
  } cases[] = {
      {6, "halves: halves of 3 elements"},
      {8, "halves: the decomposition does not yield result sum"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (i > 0) set_up(state);
    assert_int_equal(tn_op1(R.b, "halves", param(&R, "x", TYPE(TN_F32, cases[i].n))), 0);
    assert_non_null(strstr(tn_error_text(R.b), cases[i].text));
    if (i + 1 < sizeof cases / sizeof *cases) tear_down(state);
  }
}

static void types_of_an_op_that_contains_itself_are_refused(void **state) {
  (void)state;
  assert_int_equal(tn_op1(R.b, "bottomless", param(&R, "x", TYPE(TN_F32, 2))), 0);
  assert_non_null(strstr(tn_error_text(R.b), "decompositions nest over 64 deep, one must contain itself"));
}

static void too_many_operands_are_refused(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 2));
  tn_op3(R.b, "add", x, x, x);
  assert_stuck(&R, "add: 3 operands given, expected 2");
}

static void a_value_of_another_graph_is_refused(void **state) {
  (void)state;
  tn_neg(R.b, 99);
  assert_stuck(&R, "neg: operand 0 is value 99, which is not of this graph");
}

static void attributes_are_refused_with_the_op_in_front(void **state) {
  (void)state;
  tn_op_begin(R.b, "tagged");
  tn_op_set_int(R.b, "whole", -11);
  assert_stuck(&R, "tagged: whole: -11 is out of range, expected >= -10");
}

static void a_missing_attribute_is_refused(void **state) {
  (void)state;
  tn_op1(R.b, "reshape", param(&R, "x", TYPE(TN_F32, 2)));
  assert_int_equal(tn_build_status(R.b), TN_EINVAL);
  assert_non_null(strstr(tn_error_text(R.b), "reshape: dims: "));
}

static void inferred_types_are_checked(void **state) {
  (void)state;
  int64_t dims[3] = {INT64_MAX / 2, 2, 2};
  tn_reshape(R.b, param(&R, "x", TYPE(TN_F32, 2)), 3, dims);
  assert_stuck(
      &R, "reshape: result y would be f32[4611686018427387903, 2, 2], expected dimensions >= 0 and at most "
          "2^63 - 1 bytes");
}

static void negative_dimensions_are_refused(void **state) {
  (void)state;
  int64_t dims[1] = {-2};
  tn_reshape(R.b, param(&R, "x", TYPE(TN_F32, 2)), 1, dims);
  assert_stuck(&R, "reshape: result y would be f32[-2], expected dimensions >= 0 and at most 2^63 - 1 bytes");
}

static void an_undecided_result_is_refused(void **state) {
  (void)state;
  tn_type type = TYPE(TN_ANY, 2);
  tn_full(R.b, &type, 1);
  assert_stuck(&R, "full: result y is any[2], expected bool, u8, i8, i32, i64, f16, bf16, f32 or f64");
}

static void an_unknown_op_is_refused(void **state) {
  (void)state;
  tn_op1(R.b, "expp", param(&R, "x", TYPE(TN_F32, 2)));
  assert_int_equal(tn_build_status(R.b), TN_EUNAVAILABLE);
}

static void end_without_begin_is_refused(void **state) {
  (void)state;
  tn_op_end(R.b);
  assert_stuck(&R, "tn_op_end without tn_op_begin");
}

/* ---- errors that stick ---- */

static void after_an_error_nothing_happens(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 2));
  tn_op_end(R.b);
  size_t nodes = R.graph->nodes.n, states = R.graph->states.n;
  assert_int_equal(tn_neg(R.b, x), 0);
  assert_int_equal(param(&R, "y", TYPE(TN_F32, 2)), 0);
  assert_int_equal(tn_op_result(R.b, x, 0), 0);
  assert_int_equal(tn_build_counter(R.b, TN_ITERATION), 0);
  assert_int_equal(tn_build_in(R.b, 0), 0);
  tn_build_commit(R.b, x, x);
  tn_build_yield(R.b, 0, x);
  assert_int_equal(R.graph->nodes.n, nodes);
  assert_int_equal(R.graph->states.n, states);
  assert_int_equal(R.graph->commits.n, 0);
  assert_stuck(&R, "tn_op_end without tn_op_begin");
}

static void the_first_error_survives_later_ones(void **state) {
  (void)state;
  tn_op_end(R.b);
  tn_fail(R.b, TN_EINVAL, NULL, "a consequence");
  assert_stuck(&R, "tn_op_end without tn_op_begin");
  tn_builder_fail(R.b, tn_fail(R.b, TN_EIO, NULL, "another consequence"));
  assert_stuck(&R, "tn_op_end without tn_op_begin");
}

static void an_error_with_more_context_replaces_the_sticky_one(void **state) {
  (void)state;
  tn_op_end(R.b);
  tn_builder_fail(R.b, tn_wrap(R.b, tn_build_status(R.b), "layer 'fc1'"));
  assert_stuck(&R, "layer 'fc1': tn_op_end without tn_op_begin");
}

static void an_error_without_text_gets_one(void **state) {
  (void)state;
  tn_error_clear(R.b);
  tn_builder_fail(R.b, TN_ENOMEM);
  assert_stuck(&R, "out of memory");
}

static void the_blamed_option_sticks_too(void **state) {
  (void)state;
  int64_t dims[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  tn_reshape(R.b, param(&R, "x", TYPE(TN_F32, 1)), 9, dims);
  tn_error_clear(R.b);
  assert_stuck(&R, "reshape: dims has 9 entries, expected at most 8");
  assert_string_equal(R.record.option, "dims");
}

/* ---- frames ---- */

static void a_frame_puts_its_place_in_front_and_on_nodes(void **state) {
  (void)state;
  tn_build_frame frame = {.prefix = "fc1", .where = "net.ini:14"};
  tn_builder_push(R.b, &frame);
  tn_val x = param(&R, "weight", TYPE(TN_F32, 2)), y = tn_neg(R.b, x);
  assert_string_equal(tn_graph_maker(R.graph, y)->layer, "fc1");
  assert_string_equal(tn_graph_maker(R.graph, y)->where, "net.ini:14");
  assert_string_equal(R.graph->states.v[0].path, "fc1.weight");
  assert_string_equal(R.graph->states.v[0].where, "net.ini:14");
  tn_op_end(R.b);
  tn_builder_pop(R.b);
  assert_stuck(&R, "net.ini:14: tn_op_end without tn_op_begin");
}

static void a_frame_gives_operands_results_gradients_and_wants(void **state) {
  (void)state;
  tn_val x = param(&R, "x", TYPE(TN_F32, 2)), in[] = {x, 0}, out[] = {x + 10}, dout[] = {x + 20},
         yielded[2] = {0};
  bool want[] = {false, true};
  tn_build_frame frame = {.in = in,
                          .n_in = 2,
                          .out = out,
                          .dout = dout,
                          .n_out = 1,
                          .want = want,
                          .yielded = yielded,
                          .n_yield = 2,
                          .training = true};
  assert_int_equal(tn_build_training(R.b), 0);
  tn_builder_push(R.b, &frame);
  assert_int_equal(tn_build_training(R.b), 1);
  assert_int_equal(tn_build_n_in(R.b), 2);
  assert_int_equal(tn_build_in(R.b, 0), x);
  assert_int_equal(tn_build_in(R.b, 1), 0);
  assert_int_equal(tn_build_out(R.b, 0), x + 10);
  assert_int_equal(tn_build_out_grad(R.b, 0), x + 20);
  assert_int_equal(tn_build_wants_grad(R.b, 0), 0);
  assert_int_equal(tn_build_wants_grad(R.b, 1), 1);
  assert_int_equal(tn_build_wants_grad(R.b, 2), 0);
  tn_build_yield(R.b, 1, x);
  assert_int_equal(yielded[1], x);
  tn_build_in(R.b, 2);
  assert_stuck(&R, "tn_build_in(b, 2): the frame has 2 values, see tenon/build.h");
  tn_builder_pop(R.b);
}

static void a_frame_without_gradients_returns_0(void **state) {
  (void)state;
  assert_int_equal(tn_build_wants_grad(R.b, 0), 0);
  tn_build_out_grad(R.b, 0);
  assert_stuck(&R, "tn_build_out_grad(b, 0): the frame has 0 values, see tenon/build.h");
}

static void yielding_without_results_is_refused(void **state) {
  (void)state;
  tn_build_yield(R.b, 0, param(&R, "x", TYPE(TN_F32, 2)));
  assert_stuck(&R, "tn_build_yield is not available here, see tenon/build.h");
}

static void layers_and_option_values_need_a_frame_that_has_them(void **state) {
  (void)state;
  tn_build_layer(R.b, "fc1", "linear(2)", NULL, 0);
  assert_stuck(&R, "tn_build_layer is not available here, see tenon/build.h");
}

static void a_begin_without_end_is_found_when_its_frame_ends(void **state) {
  (void)state;
  tn_build_frame frame = {.where = "net.ini:3"};
  tn_builder_push(R.b, &frame);
  tn_op_begin(R.b, "add");
  tn_builder_pop(R.b);
  assert_stuck(&R, "net.ini:3: add: tn_op_begin without tn_op_end");
}

static void an_inner_frame_cannot_end_an_outer_op(void **state) {
  (void)state;
  tn_build_frame frame = {.where = ""};
  tn_op_begin(R.b, "add");
  tn_builder_push(R.b, &frame);
  tn_op_end(R.b);
  tn_builder_pop(R.b);
  assert_stuck(&R, "tn_op_end without tn_op_begin");
}

/* ---- state ---- */

static void the_same_name_gives_the_same_state(void **state) {
  (void)state;
  tn_val w = param(&R, "w", TYPE(TN_F32, 2));
  assert_int_equal(param(&R, "w", TYPE(TN_F32, 2)), w);
  assert_int_equal(R.graph->states.n, 1);
  assert_int_equal(R.graph->states.v[0].what, TN_STATE_PARAM);
  param(&R, "w", TYPE(TN_F32, 3));
  assert_stuck(&R, "state w is asked for as f32[3], but it is f32[2] already");
}

static tn_val seen_state(tn_build *b, void *context, const char *name, const tn_type *type,
                         const char *init) {
  snprintf(context, 64, "%s %s %d", name, init, type->rank);
  return tn_scalar(b, TN_F32, 1);
}

static void seen_commit(tn_build *b, void *context, tn_val state, tn_val now) {
  (void)b;
  snprintf(context, 64, "commit %u %u", state, now);
}

static tn_val seen_layer(tn_build *b, void *context, const char *name, const char *line, const tn_val *in,
                         int32_t n) {
  (void)n;
  snprintf(context, 64, "%s = %s", name, line);
  tn_val outputs[2] = {tn_neg(b, in[0]), tn_exp(b, in[0])};
  tn_builder_results(b, outputs, 2);
  return outputs[0];
}

static tn_val seen_option(tn_build *b, void *context, const char *option) {
  (void)b;
  snprintf(context, 64, "%s", option);
  return 1;
}

static const char *renamed(void *context, const char *name) {
  snprintf(context, 64, "elsewhere.%s", name);
  return context;
}

static void callbacks_of_a_frame_take_over(void **state) {
  (void)state;
  char seen[64];
  tn_val x = param(&R, "x", TYPE(TN_F32, 2));
  tn_build_frame frame = {.context = seen,
                          .state = seen_state,
                          .commit = seen_commit,
                          .layer = seen_layer,
                          .option_value = seen_option};
  tn_builder_push(R.b, &frame);
  tn_val s = param(&R, "momentum", TYPE(TN_F32, 2));
  assert_string_equal(seen, "momentum zeros 1");
  tn_build_commit(R.b, s, x);
  assert_string_equal(seen, "commit 2 1");
  tn_val first = tn_build_layer(R.b, "fc1", "linear(2)", &x, 1);
  assert_string_equal(seen, "fc1 = linear(2)");
  assert_true(tn_graph_is(R.graph, tn_op_result(R.b, first, 1), "exp"));
  tn_build_option_value(R.b, "lr");
  assert_string_equal(seen, "lr");
  tn_builder_pop(R.b);
  assert_ok(&R, tn_build_status(R.b));
  assert_int_equal(R.graph->states.n, 1);
}

static void a_frame_may_name_the_path_of_a_state(void **state) {
  (void)state;
  char seen[64];
  tn_build_frame frame = {.context = seen, .path = renamed, .prefix = "here"};
  tn_builder_push(R.b, &frame);
  param(&R, "weight", TYPE(TN_F32, 2));
  tn_builder_pop(R.b);
  assert_string_equal(R.graph->states.v[0].path, "elsewhere.weight");
}

static void commits_name_the_path_of_their_state(void **state) {
  (void)state;
  tn_type type = TYPE(TN_F32, 2);
  tn_val mean = tn_build_state(R.b, "mean", &type, "zeros");
  tn_build_commit(R.b, mean, tn_neg(R.b, mean));
  assert_ok(&R, tn_build_status(R.b));
  assert_string_equal(R.graph->commits.v[0].path, "mean");
  assert_int_equal(R.graph->states.v[0].what, TN_STATE_BUFFER);
  tn_build_commit(R.b, mean, mean);
  assert_stuck(&R, "state mean is committed twice, expected one commit in a program");
}

/* A layer need not ask whether its statistics are frozen. */
static void a_frozen_buffer_is_not_committed(void **state) {
  (void)state;
  const char *patterns[] = {"mean"};
  int64_t until[] = {2};
  const tn_freeze freeze = {patterns, until, 1};
  tn_type type = TYPE(TN_F32, 2);
  tn_val mean = tn_build_state(R.b, "mean", &type, "zeros");
  R.graph->freeze = &freeze;
  R.graph->epoch = 2;
  tn_build_commit(R.b, mean, tn_neg(R.b, mean));
  assert_ok(&R, tn_build_status(R.b));
  assert_int_equal(R.graph->commits.n, 0);
  R.graph->epoch = 3;
  tn_build_commit(R.b, mean, tn_neg(R.b, mean));
  assert_int_equal(R.graph->commits.n, 1);
}

static void only_state_can_be_committed(void **state) {
  (void)state;
  tn_val one = tn_scalar(R.b, TN_F32, 1);
  tn_build_commit(R.b, one, one);
  assert_stuck(&R, "tn_build_commit: the value given is no state, expected a result of tn_build_state");
}

static void a_commit_has_the_type_of_its_state(void **state) {
  (void)state;
  tn_type type = TYPE(TN_F32, 2);
  tn_build_commit(R.b, tn_build_state(R.b, "mean", &type, "zeros"), tn_scalar(R.b, TN_F32, 1));
  assert_stuck(&R, "commit mean: the value is f32[], expected f32[2], the type of the state");
}

/* ---- counters and streams ---- */

static void counters_are_an_input_and_a_state_plus_one(void **state) {
  (void)state;
  assert_int_equal(tn_build_counter(R.b, TN_ITERATION), tn_build_counter(R.b, TN_ITERATION));
  tn_build_counter(R.b, TN_UPDATES);
  assert_prints(&R, R.graph,
                "iteration: i64[] = input(name=iteration)\n"
                "run.updates: i64[] = state(path=run.updates, what=host, init=zeros)\n"
                "%3: i64[] = full(value=1, dtype=i64)\n"
                "%4: i64[] = add(run.updates, %3)\n");
  tn_build_counter(R.b, 3);
  assert_stuck(&R, "tn_build_counter(b, 3): expected TN_ITERATION, TN_UPDATES or TN_BATCH_BLOCK");
}

static void a_block_is_there_where_the_batch_is_cut(void **state) {
  (void)state;
  assert_int_equal(tn_build_counter(R.b, TN_BATCH_BLOCK), 0);
  assert_int_equal(tn_build_ranks(R.b), 1);
  R.graph->ranks = 3;
  assert_int_not_equal(tn_build_counter(R.b, TN_BATCH_BLOCK), 0);
  assert_int_equal(tn_build_ranks(R.b), 3);
  assert_prints(&R, R.graph, "block: i64[] = input(name=block)\n");
}

static uint64_t stream_at(const char *prefix, uint64_t seed, const char *use) {
  tn_build_frame frame = {.prefix = prefix, .seed = seed};
  tn_builder_push(R.b, &frame);
  uint64_t stream = tn_build_random_stream(R.b, use);
  tn_builder_pop(R.b);
  return stream;
}

static void streams_depend_on_seed_place_and_use_alone(void **state) {
  (void)state;
  uint64_t stream = stream_at("drop1", 7, "mask");
  assert_true(stream == tn_hash_mix(7, tn_hash_bytes(TN_HASH_START, "drop1/mask", 10)));
  param(&R, "x", TYPE(TN_F32, 2));
  assert_true(stream == stream_at("drop1", 7, "mask"));
  assert_true(stream != stream_at("drop1", 8, "mask"));
  assert_true(stream != stream_at("drop2", 7, "mask"));
  assert_true(stream != stream_at("drop1", 7, "mask2"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(pointwise_results_broadcast_as_in_numpy),
      CASE(ops_may_nest_between_begin_and_end),
      CASE(optional_operands_may_be_absent_in_the_middle_and_left_out_at_the_end),
      CASE(a_variadic_op_without_operands_has_no_dtype_to_follow),
      CASE(a_variadic_op_names_the_operand_that_does_not_fit),
      CASE(several_results_are_found_by_index),
      CASE(a_result_is_counted_from_the_first),
      CASE(types_keep_their_address_while_the_graph_grows),
      CASE(absent_values_have_a_type_too),
      CASE(dtypes_must_agree_with_the_operand_that_came_first),
      CASE(dtypes_must_be_among_those_of_the_schema),
      CASE(a_fixed_dtype_must_be_met),
      CASE(shapes_must_broadcast),
      CASE(types_follow_from_a_decomposition),
      CASE(a_decomposition_without_types_is_refused),
      CASE(types_of_an_op_that_contains_itself_are_refused),
      CASE(too_many_operands_are_refused),
      CASE(a_value_of_another_graph_is_refused),
      CASE(attributes_are_refused_with_the_op_in_front),
      CASE(a_missing_attribute_is_refused),
      CASE(inferred_types_are_checked),
      CASE(negative_dimensions_are_refused),
      CASE(an_undecided_result_is_refused),
      CASE(an_unknown_op_is_refused),
      CASE(end_without_begin_is_refused),
      CASE(after_an_error_nothing_happens),
      CASE(the_first_error_survives_later_ones),
      CASE(an_error_with_more_context_replaces_the_sticky_one),
      CASE(an_error_without_text_gets_one),
      CASE(the_blamed_option_sticks_too),
      CASE(a_frame_puts_its_place_in_front_and_on_nodes),
      CASE(a_frame_gives_operands_results_gradients_and_wants),
      CASE(a_frame_without_gradients_returns_0),
      CASE(yielding_without_results_is_refused),
      CASE(layers_and_option_values_need_a_frame_that_has_them),
      CASE(a_begin_without_end_is_found_when_its_frame_ends),
      CASE(an_inner_frame_cannot_end_an_outer_op),
      CASE(the_same_name_gives_the_same_state),
      CASE(callbacks_of_a_frame_take_over),
      CASE(a_frame_may_name_the_path_of_a_state),
      CASE(commits_name_the_path_of_their_state),
      CASE(a_frozen_buffer_is_not_committed),
      CASE(only_state_can_be_committed),
      CASE(a_commit_has_the_type_of_its_state),
      CASE(counters_are_an_input_and_a_state_plus_one),
      CASE(a_block_is_there_where_the_batch_is_cut),
      CASE(streams_depend_on_seed_place_and_use_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
