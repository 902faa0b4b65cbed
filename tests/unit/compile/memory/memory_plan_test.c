/* Passes `schedule` and `memory`: launch order, locations, and copies for values that cannot have theirs. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"
#include "tests/unit/compile/memory/simulate.h"

/* Only the first operand may be overwritten. */
static tn_status offer_sub(tn_query *q) {
  static const int32_t pair[1][2] = {{0, 0}};
  tn_variant v = {.struct_size = sizeof v, .n_inplace = 1, .inplace = pair, .cost_s = 1e-9};
  tn_add_variant(q, &v);
  return TN_OK;
}

/* Either result may overwrite the operand, but not both. */
static tn_status offer_exp_sin(tn_query *q) {
  static const int32_t pairs[2][2] = {{0, 0}, {0, 1}};
  tn_variant v = {.struct_size = sizeof v, .n_inplace = 2, .inplace = pairs};
  tn_add_variant(q, &v);
  return TN_OK;
}

static KERNEL(k_sub, "t.sub", "t", "z = sub(x, y)", offer_sub);
static KERNEL(k_exp_sin, "t.exp_sin", "t", "e = exp(x); s = sin(e) -> e, s", offer_exp_sin);

static const tn_item *const plain[] = {KERNELS_PLAIN, NULL};
static const tn_item *const special[] = {KERNELS_PLAIN, &k_sub.item, &k_exp_sin.item, NULL};
static fixture F;

static int set_up(void **state) {
  (void)state;
  fixture_open(&F, plain);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

/* Compares the planned text, and simulates the program. */
static void expect(const char *text, const char *expected) {
  assert_after(PLANNED, &F, text, expected);
  tn_graph *graph = fixture_graph(&F, text);
  tn_program *program = fixture_program(&F, text);
  simulate(&F, graph, program);
  tn_program_destroy(program);
  tn_graph_destroy(graph);
}

static void a_commit_is_in_place_after_the_readers_of_the_old_value(void **state) {
  (void)state;
  /* the transpose reads the old value, so it runs first, against the order of the graph */
  expect("w: f32[8, 8] = state(path=w)\n"
         "n = affine(w, scale=0.5)\n"
         "t = transpose(w, order=[1, 0])\n"
         "commit w = n\noutput t = t\n",
         "program p: 2 launches, arena 0 (at least 0), slot 0, output 256, kept 0\n"
         "output t: f32[8, 8] @ output+0\n"
         "0: t @ output+0 = t.transpose(w @ state.f32+0)\n"
         "1: n @ state.f32+0 = t.pointwise \"tiles\"(w @ state.f32+0)\n");
}

static void a_commit_whose_writer_may_not_write_over_its_operand_is_copied(void **state) {
  (void)state;
  expect("w: f32[8, 8] = state(path=w)\nn = transpose(w, order=[1, 0])\ncommit w = n\n",
         "program p: 2 launches, arena 256 (at least 256), slot 0, output 0, kept 0\n"
         "0: n @ arena+0 = t.transpose(w @ state.f32+0)\n"
         "1: %3 @ state.f32+0 = t.copy(n @ arena+0)\n");
}

static void a_commit_with_a_later_reader_is_copied_at_the_end(void **state) {
  (void)state;
  expect("w: f32[8, 8] = state(path=w)\n"
         "n = affine(w, scale=0.5)\n"
         "y = matmul(n, w)\n"
         "commit w = n\noutput y = y\n",
         "program p: 3 launches, arena 384 (at least 384), slot 0, output 256, kept 0\n"
         "output y: f32[8, 8] @ output+0\n"
         "0: n @ arena+0 = t.pointwise \"tiles\"(w @ state.f32+0)\n"
         "1: y @ output+0 = t.matmul \"blocked\"(n @ arena+0, w @ state.f32+0, _) workspace 100 @ arena+256\n"
         "2: %4 @ state.f32+0 = t.copy(n @ arena+0)\n");
}

static void states_can_be_exchanged(void **state) {
  (void)state;
  expect("a: f32[8] = state(path=a)\nb: f32[8] = state(path=b)\ncommit a = b\ncommit b = a\n",
         "program p: 3 launches, arena 64 (at least 64), slot 0, output 0, kept 0\n"
         "0: %3 @ arena+0 = t.copy(b @ state.f32+64)\n"
         "1: %4 @ state.f32+64 = t.copy(a @ state.f32+0)\n"
         "2: %5 @ state.f32+0 = t.copy(%3 @ arena+0)\n");
}

static void a_state_may_keep_its_value(void **state) {
  (void)state;
  expect("a: f32[8] = state(path=a)\ncommit a = a\n",
         "program p: 0 launches, arena 0 (at least 0), slot 0, output 0, kept 0\n");
}

static void one_value_may_be_committed_twice_and_be_an_output(void **state) {
  (void)state;
  expect("a: f32[8] = state(path=a)\nb: f32[8] = state(path=b)\nn = exp(a)\n"
         "commit a = n\ncommit b = n\noutput n = n\noutput m = n\n",
         "program p: 4 launches, arena 0 (at least 0), slot 0, output 128, kept 0\n"
         "output n: f32[8] @ output+0\n"
         "output m: f32[8] @ output+64\n"
         "0: n @ state.f32+0 = t.pointwise \"tiles\"(a @ state.f32+0)\n"
         "1: %3 @ state.f32+64 = t.copy(n @ state.f32+0)\n"
         "2: %4 @ output+0 = t.copy(n @ state.f32+0)\n"
         "3: %5 @ output+64 = t.copy(n @ state.f32+0)\n");
}

static void inputs_and_states_reach_outputs_by_copies(void **state) {
  (void)state;
  expect("x: f32[8] = input(name=x)\na: f32[8] = state(path=a)\nn = exp(x)\n"
         "commit a = n\noutput x = x\noutput a = a\n",
         "program p: 3 launches, arena 0 (at least 0), slot 64, output 128, kept 0\n"
         "input x: f32[8] @ slot+0\n"
         "output x: f32[8] @ output+0\n"
         "output a: f32[8] @ output+64\n"
         "0: %4 @ output+0 = t.copy(x @ slot+0)\n"
         "1: %5 @ output+64 = t.copy(a @ state.f32+0)\n"
         "2: n @ state.f32+0 = t.pointwise \"tiles\"(x @ slot+0)\n");
}

static void a_view_has_the_location_of_its_operand(void **state) {
  (void)state;
  expect("x: f32[4, 8] = input(name=x)\ny = exp(x)\nv = reshape(y, dims=[8, 4])\nw = reshape(v, dims=[32])\n"
         "z = reduce_sum(w)\nu = reshape(z, dims=[1])\noutput u = u\n",
         "program p: 2 launches, arena 128 (at least 128), slot 128, output 64, kept 0\n"
         "input x: f32[4, 8] @ slot+0\n"
         "output u: f32[1] @ output+0\n"
         "0: y @ arena+0 = t.pointwise \"tiles\"(x @ slot+0)\n"
         "1: z @ output+0 = t.reduce_sum(w @ arena+0)\n");
}

static void the_results_of_a_chain_share_one_buffer(void **state) {
  (void)state;
  fixture_close(&F);
  fixture_open(&F, special);
  /* t.sub may overwrite its first operand: a is dead after b; c is the second operand; in f both are e */
  expect("x: f32[8, 8] = input(name=x)\n"
         "a = matmul(x, x)\n"
         "b = sub(a, x)\n"
         "c = matmul(b, x)\n"
         "d = sub(x, c)\n"
         "e = transpose(d, order=[1, 0])\n"
         "f = sub(e, e)\n"
         "g = matmul(f, f)\n"
         "output g = g\n",
         "program p: 7 launches, arena 640 (at least 640), slot 256, output 256, kept 0\n"
         "input x: f32[8, 8] @ slot+0\n"
         "output g: f32[8, 8] @ output+0\n"
         "0: a @ arena+0 = t.matmul \"blocked\"(x @ slot+0, x @ slot+0, _) workspace 100 @ arena+256\n"
         "1: b @ arena+0 = t.sub(a @ arena+0, x @ slot+0)\n"
         "2: c @ arena+256 = t.matmul \"blocked\"(b @ arena+0, x @ slot+0, _) workspace 100 @ arena+512\n"
         "3: d @ arena+0 = t.sub(x @ slot+0, c @ arena+256)\n"
         "4: e @ arena+256 = t.transpose(d @ arena+0)\n"
         "5: f @ arena+0 = t.sub(e @ arena+256, e @ arena+256)\n"
         "6: g @ output+0 = t.matmul \"blocked\"(f @ arena+0, f @ arena+0, _) workspace 100 @ arena+256\n");
}

static void two_results_do_not_take_one_operand(void **state) {
  (void)state;
  fixture_close(&F);
  fixture_open(&F, special);
  expect("x: f32[8, 8] = input(name=x)\na = matmul(x, x)\ne = exp(a)\ns = sin(e)\nb = matmul(s, x)\noutput b "
         "= b\n",
         "program p: 3 launches, arena 512 (at least 512), slot 256, output 256, kept 0\n"
         "input x: f32[8, 8] @ slot+0\n"
         "output b: f32[8, 8] @ output+0\n"
         "0: a @ arena+0 = t.matmul \"blocked\"(x @ slot+0, x @ slot+0, _) workspace 100 @ arena+256\n"
         "1: e @ arena+0, s @ arena+256 = t.exp_sin(a @ arena+0)\n"
         "2: b @ output+0 = t.matmul \"blocked\"(s @ arena+256, x @ slot+0, _) workspace 100 @ arena+0\n");
}

/* ---- regions and packs ---- */

/* p: [4, 4] at 0; q: [8] at 16; 48 elements in all. */
static void place_parameters(void) {
  static const tn_gstate p = {.path = "p", .type = {TN_F32, 2, {4, 4}}, .what = TN_STATE_PARAM};
  static const tn_gstate q = {.path = "q", .type = {TN_F32, 1, {8}}, .what = TN_STATE_PARAM};
  static const tn_gstate r = {.path = "r", .type = {TN_F32, 1, {16}}, .what = TN_STATE_PARAM};
  int32_t region;
  assert_int_equal(tn_state_map_region(F.map, "param.f32", TN_F32, &region), TN_OK);
  assert_int_equal(tn_state_map_add(F.map, &p, region, -1), TN_OK);
  assert_int_equal(tn_state_map_add(F.map, &q, region, -1), TN_OK);
  assert_int_equal(tn_state_map_add(F.map, &r, region, -1), TN_OK);
}

#define TRAIN                                                                                                \
  "x: f32[4, 4] = input(name=x)\n"                                                                           \
  "p: f32[4, 4] = state(path=p)\n"                                                                           \
  "q: f32[8] = state(path=q)\n"                                                                              \
  "all: f32[48] = state(path=\"@param.f32\")\n"

static void gradients_are_made_in_the_pack_and_the_update_is_in_place(void **state) {
  (void)state;
  place_parameters();
  expect(TRAIN "dp = matmul(x, p)\n"
               "dq = affine(q, scale=2)\n"
               "g = pack(dp, dq, offsets=[0, 16], count=48)\n"
               "n = sub(all, g)\n"
               "commit \"@param.f32\" = n\n",
         "program p: 4 launches, arena 320 (at least 320), slot 64, output 0, kept 0\n"
         "input x: f32[4, 4] @ slot+0\n"
         "0: dp @ arena+0 = t.matmul \"blocked\"(x @ slot+0, p @ param.f32+0, _) workspace 100 @ arena+192\n"
         "1: %9 @ arena+96 = t.pointwise \"tiles\"()\n"
         "2: dq @ arena+64 = t.pointwise \"tiles\"(q @ param.f32+64)\n"
         "3: n @ param.f32+0 = t.pointwise \"tiles\"(all @ param.f32+0, g @ arena+0)\n");
}

static void a_value_with_another_location_is_copied_into_the_pack(void **state) {
  (void)state;
  place_parameters();
  expect(TRAIN "y = exp(x)\n"
               "v = reshape(y, dims=[16])\n"
               "g = pack(v, v, q, offsets=[0, 16, 32], count=40)\n"
               "h = sin(g)\n"
               "output h = h\noutput y = y\n",
         "program p: 5 launches, arena 192 (at least 192), slot 64, output 256, kept 0\n"
         "input x: f32[4, 4] @ slot+0\n"
         "output h: f32[40] @ output+0\n"
         "output y: f32[4, 4] @ output+192\n"
         "0: y @ arena+0 = t.pointwise \"tiles\"(x @ slot+0)\n"
         "1: %7 @ arena+64 = t.copy(v @ arena+0)\n"
         "2: %9 @ output+192 = t.copy(y @ arena+0)\n"
         "3: %8 @ arena+128 = t.copy(q @ param.f32+64)\n"
         "4: h @ output+0 = t.pointwise \"tiles\"(g @ arena+0)\n");
}

static void packs_may_be_committed_and_be_outputs(void **state) {
  (void)state;
  place_parameters();
  expect(TRAIN "y = exp(q)\nz = sin(x)\n"
               "g = pack(z, y, offsets=[0, 16], count=48)\n"
               "f = pack(y, offsets=[8], count=16)\n"
               "commit \"@param.f32\" = g\noutput f = f\n",
         "program p: 6 launches, arena 192 (at least 192), slot 64, output 64, kept 0\n"
         "input x: f32[4, 4] @ slot+0\n"
         "output f: f32[16] @ output+0\n"
         "0: y @ arena+64 = t.pointwise \"tiles\"(q @ param.f32+64)\n"
         "1: %7 @ arena+96 = t.pointwise \"tiles\"()\n"
         "2: %8 @ output+32 = t.copy(y @ arena+64)\n"
         "3: %9 @ output+0 = t.pointwise \"tiles\"()\n"
         "4: z @ arena+0 = t.pointwise \"tiles\"(x @ slot+0)\n"
         "5: %10 @ param.f32+0 = t.copy(g @ arena+0)\n");
}

/* ---- order ---- */

static void a_group_that_frees_memory_goes_first(void **state) {
  (void)state;
  /* the sums free their operands, so they run as soon as they are ready, against the order of the graph */
  assert_after(SCHEDULED, &F,
               "x: f32[64, 64] = input(name=x)\n"
               "a = matmul(x, x)\n"
               "b = transpose(x, order=[1, 0])\n"
               "c = concat(x, x)\n"
               "s = reduce_sum(a)\nt = reduce_sum(b)\nu = reduce_sum(c)\n"
               "output s = s\noutput t = t\noutput u = u\n",
               "program p: 6 launches\n"
               "input x: f32[64, 64]\n"
               "output s: f32[]\noutput t: f32[]\noutput u: f32[]\n"
               "0: a = t.matmul \"blocked\"(x, x, _)\n"
               "1: s = t.reduce_sum(a)\n"
               "2: b = t.transpose(x)\n"
               "3: t = t.reduce_sum(b)\n"
               "4: c = t.concat(x, x)\n"
               "5: u = t.reduce_sum(c)\n");
}

/* ---- errors and edges ---- */

static void commits_that_overlap_are_refused(void **state) {
  (void)state;
  place_parameters();
  assert_string_equal(
      fixture_failure(&F, TRAIN "n = exp(all)\nm = exp(q)\ncommit \"@param.f32\" = n\ncommit q = m\n",
                      TN_EINVAL),
      "program p: commits of @param.f32 and q write the same memory");
}

static void a_state_that_is_not_in_the_map_is_refused(void **state) {
  (void)state;
  tn_graph *graph = fixture_graph(&F, "a: f32[8] = state(path=a)\nb = exp(a)\noutput b = b\n");
  tn_program *program = NULL;
  assert_int_equal(tn_compile(&F.env, "p", F.registry, &F.target, graph, F.map, NULL, &program), TN_EINVAL);
  assert_string_equal(tn_error_text(&F.env), "program p: state a is not in the state map");
  tn_graph_destroy(graph);
}

static void a_state_that_changed_its_type_is_refused(void **state) {
  (void)state;
  tn_program_destroy(fixture_program(&F, "a: f32[8] = state(path=a)\nb = exp(a)\noutput b = b\n"));
  assert_string_equal(fixture_failure(&F, "a: f32[9] = state(path=a)\nb = exp(a)\noutput b = b\n", TN_EINVAL),
                      "state a is f32[9] here and f32[8] elsewhere; all programs of a run share it");
}

static void empty_values_take_no_memory(void **state) {
  (void)state;
  expect("x: f32[0, 8] = input(name=x)\na: f32[0, 8] = state(path=a)\ny = exp(x)\nz = reduce_sum(y)\ncommit "
         "a = y\noutput y = y\noutput z = z\n",
         "program p: 2 launches, arena 0 (at least 0), slot 0, output 64, kept 0\n"
         "input x: f32[0, 8] @ slot+0\n"
         "output y: f32[0, 8] @ output+0\n"
         "output z: f32[] @ output+0\n"
         "0: y @ output+0 = t.pointwise \"tiles\"(x @ slot+0)\n"
         "1: z @ output+0 = t.reduce_sum(y @ output+0)\n");
}

static void a_missing_copy_kernel_is_an_error(void **state) {
  (void)state;
  static const tn_item *const few[] = {&k_pointwise.item, NULL};
  fixture_close(&F);
  fixture_open(&F, few);
  assert_string_equal(
      fixture_failure(&F, "x: f32[8] = input(name=x)\noutput x = x\n", TN_EUNSUPPORTED),
      "program p: no kernel takes copy, which the memory plan needs; every backend must have one");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(a_commit_is_in_place_after_the_readers_of_the_old_value),
      TEST(a_commit_whose_writer_may_not_write_over_its_operand_is_copied),
      TEST(a_commit_with_a_later_reader_is_copied_at_the_end),
      TEST(states_can_be_exchanged),
      TEST(a_state_may_keep_its_value),
      TEST(one_value_may_be_committed_twice_and_be_an_output),
      TEST(inputs_and_states_reach_outputs_by_copies),
      TEST(a_view_has_the_location_of_its_operand),
      TEST(the_results_of_a_chain_share_one_buffer),
      TEST(two_results_do_not_take_one_operand),
      TEST(gradients_are_made_in_the_pack_and_the_update_is_in_place),
      TEST(a_value_with_another_location_is_copied_into_the_pack),
      TEST(packs_may_be_committed_and_be_outputs),
      TEST(a_group_that_frees_memory_goes_first),
      TEST(commits_that_overlap_are_refused),
      TEST(a_state_that_is_not_in_the_map_is_refused),
      TEST(a_state_that_changed_its_type_is_refused),
      TEST(empty_values_take_no_memory),
      TEST(a_missing_copy_kernel_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
