/* Pass `constants`: launches that every run would repeat with the same result. */
#include "core/compile/constant_groups.h"
#include "core/compile/output/report.h"
#include "core/compile/select/cover.h"
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static fixture F;

static int set_up(void **state) {
  static const tn_item *const kernels[] = {KERNELS_PLAIN, NULL};
  (void)state;
  fixture_open(&F, kernels);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

/* Two matrices as resize makes them: a region, its sum, and a region behind both. */
#define MATRIX                                                                                               \
  "i: f32[8, 1] = iota(dims=[8, 1], dtype=f32)\n"                                                            \
  "j: f32[1, 8] = iota(dims=[1, 8], axis=1, dtype=f32)\n"                                                    \
  "k = sub(i, j)\n"                                                                                          \
  "m = abs(k)\n"                                                                                             \
  "s = reduce_sum(m, axes=[1], keep=yes)\n"                                                                  \
  "n = div(m, s)\n"

static void a_chain_of_launches_without_operands_is_launched_once(void **state) {
  (void)state;
  assert_after(KEPT, &F, "x: f32[8, 8] = input(name=x)\n" MATRIX "y = matmul(x, n)\noutput y = y\n",
               "x: f32[8, 8]{0, 1} = input(name=x)\n"
               "i: f32[8, 1]{0, 1} = iota(dims=[8, 1], dtype=f32)\n"
               "j: f32[1, 8]{0, 1} = iota(dims=[1, 8], axis=1, dtype=f32)\n"
               "k: f32[8, 8]{0, 1} = sub(i, j)\n"
               "m: f32[8, 8]{0, 1} = abs(k)\n"
               "# once: t.pointwise \"tiles\", 4 nodes\n"
               "s: f32[8, 1]{0, 1} = reduce_sum(m, axes=[1], keep=yes)\n"
               "# once: t.reduce_sum\n"
               "n: f32[8, 8]{0, 1} = div(m, s)\n"
               "# once: t.pointwise \"tiles\", 5 nodes\n"
               "y: f32[8, 8]{0, 1} = matmul(x, n)\n"
               "# 0: t.matmul \"blocked\"\n"
               "output y = y\n");
}

/* Steps of constants come behind those of a run, in an order in which operands come first. */
static void constants_have_memory_of_their_own(void **state) {
  (void)state;
  tn_program *p = fixture_repeated_program(&F, "x: f32[8, 8] = input(name=x)\n" MATRIX
                                               "y = matmul(x, n)\nz = matmul(y, n)\noutput z = z\n");
  assert_int_equal(p->n_steps, 2);
  assert_int_equal(p->n_constants, 3);
  assert_int_equal(p->n_segments, 1);
  assert_int_equal(p->segments[0].n, 2);
  assert_int_equal(p->constant_bytes, 256 + 64 + 256);
  assert_int_equal(p->arena_bytes, 256 + 128); /* y, and the workspace of a product */
  int64_t offset = 0;
  for (int32_t i = 2; i < 5; i++) {
    assert_int_equal(p->steps[i].out[0].location.base, TN_BASE_CONSTANT);
    assert_int_equal(p->steps[i].out[0].location.offset, offset);
    assert_int_equal(p->steps[i].awaits.of[TN_STREAM_COMM], -1);
    offset += i == 3 ? 64 : 256;
  }
  assert_int_equal(p->steps[4].in[0].location.offset, p->steps[3].out[0].location.offset);
  for (int32_t i = 0; i < 2; i++) {
    assert_int_equal(p->steps[i].in[1].location.base, TN_BASE_CONSTANT);
    assert_int_equal(p->steps[i].in[1].location.offset, p->steps[4].out[0].location.offset);
  }
  tn_program_destroy(p);
}

static void the_report_lists_them_beside_the_launches(void **state) {
  (void)state;
  tn_program *p = fixture_repeated_program(&F, "x: f32[8, 8] = input(name=x)\n" MATRIX
                                               "y = matmul(x, n)\noutput y = y\n");
  json_t *report = NULL;
  assert_int_equal(tn_program_report(p, &report), TN_OK);
  assert_int_equal(json_integer_value(json_object_get(report, "launches")), 1);
  assert_int_equal(json_array_size(json_object_get(report, "ops")), 1);
  const json_t *constants = json_object_get(report, "constants");
  assert_int_equal(json_array_size(constants), 3);
  assert_string_equal(json_string_value(json_object_get(json_array_get(constants, 1), "op")), "reduce_sum");
  assert_int_equal(json_integer_value(json_object_get(report, "constant_bytes")), 576);
  assert_int_equal(json_integer_value(json_object_get(report, "peak_bytes")), p->arena_bytes + 576);
  json_decref(report);
  tn_program_destroy(p);
}

/* A constant in a launch that depends on a run costs no launch, and would cost a read. */
static void what_a_region_computes_itself_stays_there(void **state) {
  (void)state;
  tn_program *p = fixture_repeated_program(&F, "x: f32[8, 8] = input(name=x)\n"
                                               "z: f32[8, 8] = full(dims=[8, 8], value=2)\n"
                                               "i: f32[8, 8] = iota(dims=[8, 8], dtype=f32)\n"
                                               "a = mul(z, i)\ny = add(x, a)\noutput y = y\n");
  assert_int_equal(p->n_steps, 1);
  assert_int_equal(p->n_constants, 0);
  assert_int_equal(p->constant_bytes, 0);
  tn_program_destroy(p);
}

static void assert_kept(const char *graph, int32_t steps, int32_t constants) {
  tn_program *p = fixture_repeated_program(&F, graph);
  assert_int_equal(p->n_steps, steps);
  assert_int_equal(p->n_constants, constants);
  tn_program_destroy(p);
}

static void inputs_and_states_are_no_constants(void **state) {
  (void)state;
  assert_kept("x: f32[8, 8] = input(name=x)\nw: f32[8, 8] = state(path=w)\n" MATRIX
              "a = matmul(w, n)\ny = matmul(x, a)\noutput y = y\n",
              2, 3);
  assert_kept("x: f32[8, 8] = input(name=x)\nq: i64[] = input(name=iteration)\n"
              "r: f32[] = cast(q, to=f32)\nb = matmul(x, x)\ny = mul(b, r)\noutput y = y\noutput r = r\n",
              3, 0);
}

/* A commit, an output and a pack decide where the value lies. */
static void values_with_another_location_are_no_constants(void **state) {
  (void)state;
  assert_kept("x: f32[8, 8] = input(name=x)\nw: f32[8, 8] = state(path=w)\n" MATRIX
              "y = matmul(x, w)\ncommit w = n\noutput y = y\n",
              2, 2);
  assert_kept("x: f32[8, 8] = input(name=x)\n" MATRIX "y = matmul(x, n)\noutput y = y\noutput n = n\n", 2, 2);
  assert_kept("x: f32[8, 8] = input(name=x)\n" MATRIX
              "v: f32[64] = reshape(n, dims=[64])\nu: f32[64] = reshape(x, dims=[64])\n"
              "p: f32[128] = pack(v, u, offsets=[0, 64], count=128)\ny = exp(p)\noutput y = y\n",
              3, 2);
}

static void views_of_constants_are_constants(void **state) {
  (void)state;
  assert_kept("x: f32[8, 8] = input(name=x)\n"
              "f: f32[64] = full(dims=[64], value=1)\n"
              "m: f32[8, 8] = reshape(f, dims=[8, 8])\n"
              "t = matmul(m, m)\ny = matmul(x, t)\noutput y = y\n",
              1, 2);
}

/* A value of 1 MiB is kept, and one of more is made in every run. */
static void large_values_are_no_constants(void **state) {
  (void)state;
  assert_kept("x: f32[8, 512] = input(name=x)\na: f32[512, 512] = full(dims=[512, 512], value=1)\n"
              "y = matmul(x, a)\noutput y = y\n",
              1, 1);
  assert_kept("x: f32[8, 512] = input(name=x)\na: f32[512, 513] = full(dims=[512, 513], value=1)\n"
              "y = matmul(x, a)\noutput y = y\n",
              2, 0);
}

/* 17 values of 1 MiB, of which the program keeps 16. */
static void a_program_keeps_so_much_and_no_more(void **state) {
  (void)state;
  tn_text text = tn_text_new(&F.env);
  tn_text_add(&text, "y0: f32[512, 512] = input(name=x)\n");
  for (int i = 1; i <= 17; i++)
    tn_text_addf(&text, "a%d: f32[512, 512] = full(dims=[512, 512], value=%d)\ny%d = matmul(y%d, a%d)\n", i,
                 i, i, i - 1, i);
  tn_text_add(&text, "output y = y17\n");
  assert_kept(text.v, 18, 16);
  tn_text_free(&text);
}

/* Two values of ten elements in a pack of 48: gaps from 10 to 16 and from 26 to 48. */
#define PACK                                                                                                 \
  "a: f32[10] = input(name=a)\nb: f32[10] = input(name=b)\nx = exp(a)\ny = sin(b)\n"                         \
  "p: f32[48] = pack(x, y, offsets=[0, 16], count=48)\nq = reduce_sum(p)\n"

static void the_gaps_of_a_small_pack_are_filled_once(void **state) {
  (void)state;
  tn_program *once = fixture_program(&F, PACK "output q = q\n");
  tn_program *p = fixture_repeated_program(&F, PACK "output q = q\n");
  assert_int_equal(once->n_steps, 5);
  assert_int_equal(p->n_steps, 3);
  assert_int_equal(p->n_constants, 2);
  assert_int_equal(p->constant_bytes, 192);
  const int64_t offsets[] = {40, 104};
  for (int32_t i = 0; i < 2; i++) {
    const tn_operand *gap = &p->steps[3 + i].out[0];
    assert_int_equal(gap->location.base, TN_BASE_CONSTANT);
    assert_int_equal(gap->location.offset, offsets[i]);
    assert_int_equal(gap->type.dims[0], i == 0 ? 6 : 22);
  }
  for (int32_t i = 0; i < 2; i++) {
    assert_int_equal(p->steps[i].out[0].location.base, TN_BASE_CONSTANT);
    assert_int_equal(p->steps[i].out[0].location.offset, 64 * i);
  }
  assert_int_equal(p->steps[2].in[0].location.base, TN_BASE_CONSTANT);
  tn_program_destroy(once);
  tn_program_destroy(p);
}

/* Memory of its own would cost a large pack more than a launch, and a committed one lies in its state. */
static void other_packs_are_filled_in_every_run(void **state) {
  (void)state;
  assert_kept("a: f32[10] = input(name=a)\nx = exp(a)\n"
              "p: f32[300000] = pack(x, offsets=[0], count=300000)\nq = reduce_sum(p)\noutput q = q\n",
              3, 0);
  assert_kept("s: f32[48] = state(path=s)\n" PACK
              "r = reduce_sum(s)\ncommit s = p\noutput q = q\noutput r = r\n",
              6, 0);
}

/* A program that runs once computes its constants in that run. */
static void a_program_that_runs_once_keeps_none(void **state) {
  (void)state;
  tn_program *p =
      fixture_program(&F, "x: f32[8, 8] = input(name=x)\n" MATRIX "y = matmul(x, n)\noutput y = y\n");
  assert_int_equal(p->n_steps, 4);
  assert_int_equal(p->n_constants, 0);
  tn_program_destroy(p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_chain_of_launches_without_operands_is_launched_once),
      CASE(constants_have_memory_of_their_own),
      CASE(the_report_lists_them_beside_the_launches),
      CASE(what_a_region_computes_itself_stays_there),
      CASE(inputs_and_states_are_no_constants),
      CASE(values_with_another_location_are_no_constants),
      CASE(views_of_constants_are_constants),
      CASE(large_values_are_no_constants),
      CASE(a_program_keeps_so_much_and_no_more),
      CASE(the_gaps_of_a_small_pack_are_filled_once),
      CASE(other_packs_are_filled_in_every_run),
      CASE(a_program_that_runs_once_keeps_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
