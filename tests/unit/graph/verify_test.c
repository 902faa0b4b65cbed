/* Tests of the verifier: a valid graph is broken in every way that it detects. */
#include "tests/unit/graph/rig.h"

static rig R;
static tn_graph *G;

static int set_up(void **state) {
  (void)state;
  rig_init(&R);
  G = parsed(&R, "x: f32[2] = input(name=x)\n"
                 "w: f32[2] = state(path=w)\n"
                 "%3: f32[2] = add(x, w)\n"
                 "s: f32[2], c: f32[2] = sincos(%3)\n"
                 "p: bool[] = full(dtype=bool)\n"
                 "m: f32[2] = state(path=m)\n"
                 "commit w = s if p\n"
                 "commit m = c\n"
                 "output s = s\n"
                 "output c = c\n");
  assert_verified(&R, G);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tn_graph_destroy(G);
  rig_finish(&R);
  return 0;
}

enum { ADD = 2, SINCOS = 3, X = 1, W = 2, SUM = 3, S = 4, C = 5, P = 6 };

static void broken(const char *message) { assert_error(&R, tn_graph_verify(G), TN_EINTERNAL, message); }

static void operand(int32_t node, int32_t i, tn_val v) { ((tn_val *)(uintptr_t)G->nodes.v[node].in)[i] = v; }

static void operands_are_values_of_the_graph(void **state) {
  (void)state;
  operand(ADD, 1, 99);
  broken("graph: %3: f32[2] = add(%1, %99): an operand is no value of the graph");
}

static void operands_come_first(void **state) {
  (void)state;
  operand(ADD, 1, S);
  broken("graph: %3: f32[2] = add(%1, %4): an operand is made by a later statement");
}

static void a_node_does_not_use_itself(void **state) {
  (void)state;
  operand(ADD, 0, SUM);
  broken("graph: %3: f32[2] = add(%3, %2): an operand is made by a later statement");
}

static void operands_fit_the_schema(void **state) {
  (void)state;
  operand(ADD, 0, 0);
  broken("graph: %3: f32[2] = add(_, %2): add: operand x is absent, expected a value");
}

static void types_are_as_inferred(void **state) {
  (void)state;
  G->values.v[C].type.dims[0] = 3;
  broken("graph: %4: f32[2], %5: f32[3] = sincos(%3): a result's type is not the inferred one");
}

static void kept_types_are_the_same(void **state) {
  (void)state;
  static const tn_type other = {.dtype = TN_F64};
  G->types.v[SUM] = &other;
  /* users read the copy in `types`, but the statement of the value is checked first */
  broken("graph: %3: f32[2] = add(%1, %2): the two copies of a result's type differ");
}

static void results_know_their_node(void **state) {
  (void)state;
  G->values.v[C].result = 0;
  broken("graph: %4: f32[2], %5: f32[2] = sincos(%3): a result is recorded for another node");
}

static void results_are_values_of_the_graph(void **state) {
  (void)state;
  G->nodes.v[SINCOS].first_out = 98;
  broken("graph: %98, %99 = sincos(%3): a result is no value of the graph");
}

static void there_are_as_many_results_as_the_schema_says(void **state) {
  (void)state;
  G->nodes.v[SINCOS].n_out = 1;
  broken("graph: %4: f32[2] = sincos(%3): the number of results is not the schema's");
}

static void layouts_are_permutations(void **state) {
  (void)state;
  G->values.v[SUM].layout = (tn_layout){.set = 1, .order = {1}};
  broken("graph: %3: f32[2]{1} = add(%1, %2): a layout's order is no permutation of the dimensions, or a "
         "block fits "
         "none");
  G->values.v[SUM].layout = (tn_layout){.set = 1, .order = {0}, .n_blocks = 1, .block = {{1, 16}}};
  broken("graph: %3: f32[2]{0; 1:16} = add(%1, %2): a layout's order is no permutation of the dimensions, or "
         "a block "
         "fits none");
  G->values.v[SUM].layout = (tn_layout){.set = 1, .order = {0}, .n_blocks = 1, .block = {{0, 16}}};
  assert_verified(&R, G);
}

static void inputs_and_states_are_listed(void **state) {
  (void)state;
  G->inputs.n = 0;
  broken("graph: %1: f32[2] = input(name=x): the input is not listed, or made twice");
  G->inputs.n = 1;
  G->states.v[0].value = 0;
  broken("graph: %2: f32[2] = state(path=w): the state is not listed, or read twice");
}

static void states_have_one_path_and_their_own_type(void **state) {
  (void)state;
  tn_gstate first = G->states.v[0];
  G->states.v[0].type.dims[0] = 5;
  broken("graph: w: the state's value has another type than the state");
  G->states.v[0] = first;
  assert_ok(&R, tn_vec_push(&R, &G->states, first));
  G->states.v[2].value = 0;
  broken("graph: w: two states have this path");
  G->states.v[2] = (tn_gstate){.path = "v", .type = first.type, .value = SUM, .init = "", .where = ""};
  broken("graph: v: the state's value is made by no `state` statement");
}

static void commits_are_checked(void **state) {
  (void)state;
  tn_gcommit first = G->commits.v[0];
  G->commits.v[0].path = "v";
  broken("graph: v: a commit to a state that is not known");
  G->commits.v[0] = (tn_gcommit){first.path, 0, 0};
  broken("graph: w: a commit of no value of the graph");
  G->commits.v[0] = (tn_gcommit){first.path, P, 0};
  broken("graph: w: the committed value has another type than the state");
  G->commits.v[0] = (tn_gcommit){first.path, S, 99};
  broken("graph: w: the predicate of a commit is no value of the graph");
  G->commits.v[0] = (tn_gcommit){first.path, S, S};
  broken("graph: w: the predicate of a commit is not bool[]");
  G->commits.v[0] = first;
  G->commits.v[1].path = "w";
  broken("graph: w: a state is committed twice");
}

static void outputs_are_checked(void **state) {
  (void)state;
  G->outputs.v[0].value = 99;
  broken("graph: s: an output of no value of the graph");
  G->outputs.v[0].value = S;
  G->outputs.v[1].name = "s";
  broken("graph: s: two outputs have this name");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(operands_are_values_of_the_graph),
      CASE(operands_come_first),
      CASE(a_node_does_not_use_itself),
      CASE(operands_fit_the_schema),
      CASE(types_are_as_inferred),
      CASE(kept_types_are_the_same),
      CASE(results_know_their_node),
      CASE(results_are_values_of_the_graph),
      CASE(there_are_as_many_results_as_the_schema_says),
      CASE(layouts_are_permutations),
      CASE(inputs_and_states_are_listed),
      CASE(states_have_one_path_and_their_own_type),
      CASE(commits_are_checked),
      CASE(outputs_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
