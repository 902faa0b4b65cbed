/* Tests of optimizers as formulas: the ops that are emitted, and the messages about mistakes. */
#include "core/graph/build/emit_optimizer.h"
#include "tests/unit/graph/rig.h"

typedef struct rule_options {
  double lr, beta;
  int32_t twice;
} rule_options;
static const tn_option rows[] = {
    TN_OPT_WITH(rule_options, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.1", ">= 0", "learning rate"),
    TN_OPT(rule_options, beta, TN_OPT_FLOAT, "0.5", "[0, 1)", "decay"),
    TN_OPT(rule_options, twice, TN_OPT_FLAG, "no", NULL, "a second state"), TN_OPT_END};

static rig R;
static tn_val given_in[2], next, rate;

static int set_up(void **state) {
  (void)state;
  rig_init(&R);
  given_in[0] = param(&R, "w", TYPE(TN_F32, 3));
  given_in[1] = param(&R, "g", TYPE(TN_F32, 3));
  rate = param(&R, "rate", scalar_of(TN_F32));
  next = 0;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  rig_finish(&R);
  return 0;
}

static tn_val rule_lr(tn_build *b, void *context, const char *name) {
  (void)b, (void)context;
  assert_string_equal(name, "lr");
  return rate;
}

static tn_val rule_updates(tn_build *b, void *context, int32_t which) {
  (void)context;
  assert_int_equal(which, TN_UPDATES);
  return tn_scalar(b, TN_I64, 3);
}

/* Emits the rule; the builder has the failure. */
static tn_status emit(const tn_optimizer_state *states, const char *formula, bool twice,
                      uint32_t granularity) {
  const tn_optimizer rule = {.item =
                                 TN_ITEM(tn_optimizer, TN_OPTIMIZER, "rule", "of tests", rule_options, rows),
                             .granularity = granularity,
                             .formula = formula,
                             .states = states};
  const rule_options options = {0.1, 0.5, twice};
  tn_build_frame frame = {.in = given_in,
                          .n_in = 2,
                          .yielded = &next,
                          .n_yield = 1,
                          .prefix = "",
                          .where = "",
                          .option_value = rule_lr,
                          .counter = rule_updates};
  tn_builder_push(R.b, &frame);
  tn_status status = tn_optimizer_update(R.b, &rule, &options);
  tn_builder_pop(R.b);
  return status;
}

static void expect_mistake(const tn_optimizer_state *states, const char *formula, const char *text) {
  tn_status status = emit(states, formula, false, TN_UPDATE_ELEMENTWISE);
  assert_int_not_equal(status, TN_OK);
  if (strstr(R.record.text, text) == NULL) fail_msg("'%s' does not say '%s'", R.record.text, text);
}

static size_t count_ops(const char *name) {
  size_t n = 0;
  for (size_t i = 0; i < R.graph->nodes.n; i++) n += strcmp(R.graph->nodes.v[i].op->item.name, name) == 0;
  return n;
}

static const tn_optimizer_state mean_state[] = {{"mean"}, {NULL}};
static const tn_optimizer_state two_states[] = {{"mean"}, {"most", .when = "twice"}, {NULL}};
static const tn_optimizer_state scalar_state[] = {{"product", .scalar = 1}, {NULL}};
#define MEAN_RULE "next_mean = beta * mean + (1 - beta) * grad;"

static void a_formula_commits_its_states_and_yields_the_parameter(void **state) {
  (void)state;
  assert_ok(&R, emit(mean_state, MEAN_RULE "next_param = param - lr * next_mean", false, 0));
  assert_ok(&R, tn_build_status(R.b));
  assert_int_not_equal(next, 0);
  assert_int_equal(R.graph->commits.n, 1);
  assert_string_equal(R.graph->commits.v[0].path, "mean");
  assert_verified(&R, R.graph);
}

static void the_parameter_is_what_is_kept_without_the_move(void **state) {
  (void)state;
  assert_ok(&R, emit(mean_state, MEAN_RULE "kept = param; move = lr * next_mean", false, 0));
  assert_int_not_equal(next, 0);
  assert_string_equal(tn_graph_maker(R.graph, next)->op->item.name, "sub");
  expect_mistake(mean_state, MEAN_RULE "kept = param * lr", "expected next_param, or kept and move");
  expect_mistake(mean_state, "kept = param; move = lr * grad", "next_ and the name of each state");
}

static void a_state_exists_with_its_option(void **state) {
  (void)state;
  static const char formula[] = MEAN_RULE "next_most = exp(most + next_mean);"
                                          "next_param = param - lr * (next_most if twice else next_mean)";
  assert_ok(&R, emit(two_states, formula, false, 0));
  assert_int_equal(R.graph->commits.n, 1);
  assert_int_equal(count_ops("exp"), 0);
}

static void a_state_exists_where_its_option_is_yes(void **state) {
  (void)state;
  static const char formula[] = MEAN_RULE "next_most = exp(most + next_mean);"
                                          "next_param = param - lr * (next_most if twice else next_mean)";
  assert_ok(&R, emit(two_states, formula, true, 0));
  assert_int_equal(R.graph->commits.n, 2);
  assert_int_equal(count_ops("exp"), 1);
}

/* 1 - exp(-beta updates) in f64, rounded once. */
static void scalars_are_rounded_where_they_meet_a_tensor(void **state) {
  (void)state;
  assert_ok(&R, emit(NULL, "next_param = param - lr * grad * (1 - exp(-beta * updates))", false, 0));
  assert_verified(&R, R.graph);
  assert_int_equal(count_ops("cast"), 2); /* updates to f64, the divisor to f32 */
  for (size_t i = 0; i < R.graph->nodes.n; i++)
    if (strcmp(R.graph->nodes.v[i].op->item.name, "exp") == 0)
      assert_int_equal(tn_graph_type(R.graph, R.graph->nodes.v[i].first_out)->dtype, TN_F64);
}

static void a_scalar_state_stays_one_number(void **state) {
  (void)state;
  assert_ok(&R, emit(scalar_state,
                     "next_product = product + updates * beta;"
                     "next_param = param - lr * grad * next_product",
                     false, 0));
  assert_int_equal(R.graph->commits.n, 1);
  assert_int_equal(tn_graph_type(R.graph, R.graph->commits.v[0].value)->rank, 0);
  assert_verified(&R, R.graph);
}

static void the_gradient_may_become_a_state(void **state) {
  (void)state;
  assert_ok(&R, emit(mean_state, "next_mean = grad; next_param = param - lr * (grad + mean)", false, 0));
  assert_int_not_equal(R.graph->commits.v[0].value, given_in[1]);
}

static void mistakes_are_told(void **state) {
  (void)state;
  static const struct {
    const tn_optimizer_state *states;
    const char *formula, *text;
  } cases[] = {
      {NULL, "next_param = param - lr *", "of optimizer rule: column 26: expected a number, a name"},
      {NULL, "next_param = param - rate * grad",
       "column 22: expected an operand, an earlier name or a numeric option"},
      {NULL, "step = lr * grad",
       "expected next_param, or kept and move, and next_ and the name of each state"},
      {mean_state, "next_param = param - lr * grad",
       "expected next_param, or kept and move, and next_ and the name of each state"},
      {NULL, "next_param = param - reduce_sum(grad)", "expected a pointwise op"},
      {NULL, "param = param - grad", "expected a new name"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tear_down(NULL);
    set_up(NULL);
    expect_mistake(cases[i].states, cases[i].formula, cases[i].text);
  }
}

static void a_state_depends_on_an_option_of_the_optimizer(void **state) {
  (void)state;
  static const tn_optimizer_state states[] = {{"most", .when = "amsgrad"}, {NULL}};
  assert_int_equal(emit(states, "next_most = grad; next_param = param", false, 0), TN_EABI);
  assert_non_null(strstr(R.record.text, "state 'most' depends on 'amsgrad', which is no option"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_formula_commits_its_states_and_yields_the_parameter),
      CASE(the_parameter_is_what_is_kept_without_the_move),
      CASE(a_state_exists_with_its_option),
      CASE(a_state_exists_where_its_option_is_yes),
      CASE(scalars_are_rounded_where_they_meet_a_tensor),
      CASE(a_scalar_state_stays_one_number),
      CASE(the_gradient_may_become_a_state),
      CASE(mistakes_are_told),
      CASE(a_state_depends_on_an_option_of_the_optimizer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
