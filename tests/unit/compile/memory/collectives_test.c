/* Collectives in programs: buckets of gradients that are reduced in slices of one flat vector. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"
#include "tests/unit/compile/memory/simulate.h"

static const tn_item *const plain[] = {KERNELS_PLAIN, NULL};
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

static void buckets_are_reduced_in_the_flat_vector_as_soon_as_they_are_complete(void **state) {
  (void)state;
  expect("x: f32[16, 16] = input(name=x)\n"
         "a = transpose(x, order=[1, 0])\n"
         "b = transpose(a, order=[1, 0])\n"
         "c = transpose(b, order=[1, 0])\n"
         "p = pack(a, offsets=[0], count=256)\n"
         "q = pack(b, c, offsets=[0, 256], count=512)\n"
         "r = all_reduce(p)\n"
         "s = all_reduce(q)\n"
         "f = pack(r, s, offsets=[0, 256], count=768)\n"
         "y = reduce_sum(f)\n"
         "output y = y\n",
         "program p: 6 launches, arena 3072 (at least 3072), slot 1024, output 64, kept 0\n"
         "input x: f32[16, 16] @ slot+0\n"
         "output y: f32[] @ output+0\n"
         "0: a @ arena+0 = t.transpose(x @ slot+0)\n"
         "1: b @ arena+1024 = t.transpose(a @ arena+0)\n"
         "2: r @ arena+0 = all_reduce(p @ arena+0)\n"
         "3: c @ arena+2048 = t.transpose(b @ arena+1024)\n"
         "4: s @ arena+1024 = all_reduce(q @ arena+1024)\n"
         "5: y @ output+0 = t.reduce_sum(f @ arena+0) after 4\n");
}

/* The cast takes bytes and frees none, and stands behind all transposes in the graph. */
static void what_alone_a_collective_waits_for_runs_at_once(void **state) {
  (void)state;
  char *text = fixture_text(&F,
                            "x: f32[16, 16] = input(name=x)\n"
                            "a = transpose(x, order=[1, 0])\n"
                            "b = transpose(a, order=[1, 0])\n"
                            "c = transpose(b, order=[1, 0])\n"
                            "d: f16[16, 16] = cast(a, to=f16)\n"
                            "r = all_reduce(d)\n"
                            "s = cast(r, to=f32)\n"
                            "y = mul(c, s)\n"
                            "output y = y\n",
                            SCHEDULED);
  const char *cast = strstr(text, "1: d = "), *reduced = strstr(text, "2: r = all_reduce(d)");
  if (cast == NULL || reduced == NULL) fail_msg("not at once:\n%s", text);
  tn_release(&F.env, text);
}

static void a_gradient_with_other_readers_is_overwritten_after_they_have_run(void **state) {
  (void)state;
  expect("x: f32[16, 16] = input(name=x)\n"
         "a = transpose(x, order=[1, 0])\n"
         "p = pack(a, offsets=[0], count=256)\n"
         "u = transpose(a, order=[1, 0])\n"
         "v = reduce_sum(u)\n"
         "r = all_reduce(p)\n"
         "y = reduce_sum(r)\n"
         "output v = v\n"
         "output y = y\n",
         "program p: 5 launches, arena 2048 (at least 2048), slot 1024, output 128, kept 0\n"
         "input x: f32[16, 16] @ slot+0\n"
         "output v: f32[] @ output+0\n"
         "output y: f32[] @ output+64\n"
         "0: a @ arena+0 = t.transpose(x @ slot+0)\n"
         "1: u @ arena+1024 = t.transpose(a @ arena+0)\n"
         "2: r @ arena+0 = all_reduce(p @ arena+0)\n"
         "3: v @ output+0 = t.reduce_sum(u @ arena+1024)\n"
         "4: y @ output+64 = t.reduce_sum(r @ arena+0) after 2\n");
}

static void an_operand_that_is_read_later_is_not_overwritten(void **state) {
  (void)state;
  expect("x: f32[16] = input(name=x)\n"
         "a = exp(x)\n"
         "r = all_reduce(a, reduction=max)\n"
         "y = sub(a, r)\n"
         "output y = y\n",
         "program p: 3 launches, arena 128 (at least 128), slot 64, output 64, kept 0\n"
         "input x: f32[16] @ slot+0\n"
         "output y: f32[16] @ output+0\n"
         "0: a @ arena+0 = t.pointwise \"tiles\"(x @ slot+0)\n"
         "1: r @ arena+64 = all_reduce(a @ arena+0)\n"
         "2: y @ output+0 = t.pointwise \"tiles\"(a @ arena+0, r @ arena+64) after 1\n");
}

static void an_input_is_not_overwritten(void **state) {
  (void)state;
  expect("x: f32[16] = input(name=x)\n"
         "r = all_reduce(x)\n"
         "y = exp(r)\n"
         "output y = y\n",
         "program p: 2 launches, arena 64 (at least 64), slot 64, output 64, kept 0\n"
         "input x: f32[16] @ slot+0\n"
         "output y: f32[16] @ output+0\n"
         "0: r @ arena+0 = all_reduce(x @ slot+0)\n"
         "1: y @ output+0 = t.pointwise \"tiles\"(r @ arena+0) after 0\n");
}

static void the_sum_over_micro_batches_stays_in_its_region(void **state) {
  (void)state;
  expect("x: f32[16, 16] = input(name=x)\n"
         "block: i64[] = input(name=block)\n"
         "g: f32[256] = state(path=g, what=scratch)\n"
         "a = transpose(x, order=[1, 0])\n"
         "p = pack(a, offsets=[0], count=256)\n"
         "n: i64[] = full(value=2, dtype=i64)\n"
         "first = lt(block, n)\n"
         "s = add(g, p)\n"
         "t = where(first, p, s)\n"
         "commit g = t\n",
         "program p: 2 launches, arena 1024 (at least 1024), slot 1088, output 0, kept 0\n"
         "input x: f32[16, 16] @ slot+0\n"
         "input block: i64[] @ slot+1024\n"
         "0: a @ arena+0 = t.transpose(x @ slot+0)\n"
         "1: t @ state.f32+0 = t.pointwise \"tiles\"(block @ slot+1024, g @ state.f32+0, p @ arena+0)\n");
}

/* u must not get the memory of r while the collective runs. The reader of r runs last. */
static void the_memory_of_a_collective_is_kept_until_a_step_awaits_it(void **state) {
  (void)state;
  expect("x: f32[16, 16] = input(name=x)\n"
         "a = transpose(x, order=[1, 0])\n"
         "r = all_reduce(a)\n"
         "u = transpose(x, order=[0, 1])\n"
         "v = transpose(u, order=[1, 0])\n"
         "z = reduce_sum(v)\n"
         "y = reduce_sum(r)\n"
         "output z = z\n"
         "output y = y\n",
         "program p: 6 launches, arena 3072 (at least 3072), slot 1024, output 128, kept 0\n"
         "input x: f32[16, 16] @ slot+0\n"
         "output z: f32[] @ output+0\n"
         "output y: f32[] @ output+64\n"
         "0: a @ arena+0 = t.transpose(x @ slot+0)\n"
         "1: r @ arena+0 = all_reduce(a @ arena+0)\n"
         "2: u @ arena+1024 = t.transpose(x @ slot+0)\n"
         "3: v @ arena+2048 = t.transpose(u @ arena+1024)\n"
         "4: z @ output+0 = t.reduce_sum(v @ arena+2048)\n"
         "5: y @ output+64 = t.reduce_sum(r @ arena+0) after 1\n");
}

static void a_collective_that_no_step_awaits_ends_with_the_program(void **state) {
  (void)state;
  expect("x: f32[16, 16] = input(name=x)\n"
         "g: f32[16, 16] = state(path=g, what=scratch)\n"
         "a = transpose(x, order=[1, 0])\n"
         "r = all_reduce(a)\n"
         "s = all_reduce(g)\n"
         "commit g = r\n"
         "output s = s\n",
         "program p: 3 launches, arena 1024 (at least 1024), slot 1024, output 1024, kept 0\n"
         "input x: f32[16, 16] @ slot+0\n"
         "output s: f32[16, 16] @ output+0\n"
         "0: s @ output+0 = all_reduce(g @ state.f32+0)\n"
         "1: a @ arena+0 = t.transpose(x @ slot+0)\n"
         "2: r @ state.f32+0 = all_reduce(a @ arena+0)\n"
         "await 2\n");
}

/* ---- regions that are divided among ranks ---- */

/* The region "w" of 64 elements is divided among 4 ranks, and lies inside of "w:f32" with the state "p". */
static void divide(void) {
  const tn_gstate p = {
      .path = "p", .type = {TN_F32, 1, {64}}, .what = TN_STATE_DERIVED, .init = "", .where = ""};
  int32_t part, whole;
  assert_int_equal(tn_state_map_region(F.map, "w", TN_F32, &part), TN_OK);
  assert_int_equal(tn_state_map_region(F.map, "w:f32", TN_F32, &whole), TN_OK);
  tn_state_map_extend(F.map, part, 64);
  tn_state_map_divide(F.map, part, 4);
  assert_int_equal(tn_state_map_add(F.map, &p, whole, 0), TN_OK);
  tn_state_map_put_inside(F.map, part, whole);
}

/* `b` reads all parameters, so that it runs before the rank's part of them is overwritten. Without the order
 * the update would be made in the arena, and copied at the end. */
static void a_part_is_updated_in_place_behind_the_readers_of_the_whole(void **state) {
  (void)state;
  divide();
  assert_after(PLANNED, &F,
               "p: f32[64] = state(path=p, what=derived)\n"
               "w: f32[16] = state(path=@w, what=slot)\n"
               "x: f32[64] = input(name=x)\n"
               "a = transpose(x, order=[0])\n"
               "g = reduce_scatter(a, ranks=4)\n"
               "n = add(w, g)\n"
               "v = all_gather(n, ranks=4)\n"
               "b = mul(p, x)\n"
               "y = reduce_sum(b)\n"
               "commit @w = n\n"
               "commit p = v\n"
               "output y = y\n",
               "program p: 6 launches, arena 576 (at least 576), slot 256, output 64, kept 0\n"
               "input x: f32[64] @ slot+0\n"
               "output y: f32[] @ output+0\n"
               "0: a @ arena+0 = t.transpose(x @ slot+0)\n"
               "1: g @ arena+512 = reduce_scatter(a @ arena+0)\n"
               "2: b @ arena+256 = t.pointwise \"tiles\"(p @ w:f32+0, x @ slot+0)\n"
               "3: y @ output+0 = t.reduce_sum(b @ arena+256)\n"
               "4: n @ w+0 = t.pointwise \"tiles\"(w @ w+0, g @ arena+512) after 1\n"
               "5: v @ w:f32+0 = all_gather(n @ w+0)\n"
               "await 5\n");
}

/* No elements move on the rank that has them. */
static void a_part_is_gathered_into_the_region_around_it(void **state) {
  (void)state;
  divide();
  assert_after(PLANNED, &F,
               "w: f32[16] = state(path=@w, what=slot)\n"
               "v = all_gather(w, ranks=4)\n"
               "p: f32[64] = state(path=p, what=derived)\n"
               "commit p = v\n",
               "program p: 1 launches, arena 0 (at least 0), slot 0, output 0, kept 0\n"
               "0: v @ w:f32+0 = all_gather(w @ w+0)\n"
               "await 0\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(buckets_are_reduced_in_the_flat_vector_as_soon_as_they_are_complete,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_alone_a_collective_waits_for_runs_at_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_gradient_with_other_readers_is_overwritten_after_they_have_run,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_operand_that_is_read_later_is_not_overwritten, set_up, tear_down),
      cmocka_unit_test_setup_teardown(an_input_is_not_overwritten, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_part_is_updated_in_place_behind_the_readers_of_the_whole, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_part_is_gathered_into_the_region_around_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_sum_over_micro_batches_stays_in_its_region, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_collective_that_no_step_awaits_ends_with_the_program, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(the_memory_of_a_collective_is_kept_until_a_step_awaits_it, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
