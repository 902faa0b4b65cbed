/* Layouts of parameters for a whole run: the layout that their uses prefer, if all uses accept any layout. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "core/compile/kernels/recorded_choices.h"
#include "tests/unit/compile/kernels.h"

static const tn_layout by_16 = {.set = 1, .n_blocks = 1, .order = {0, 1}, .block = {{0, 16}}};

/* Saves a copy of its second operand and of its result if they have blocks of 16. */
static tn_status offer_packed(tn_query *q) {
  const tn_operand_layout in[3] = {{0}, {TN_LAYOUT_PREFERRED, 0, by_16}, {0}};
  const tn_operand_layout out = {TN_LAYOUT_PREFERRED, 0, by_16};
  tn_variant v = {.struct_size = sizeof v, .name = "packed", .in = in, .out = &out, .cost_s = 1e-6};
  tn_add_variant(q, &v);
  return TN_OK;
}

/* Takes weights and makes their gradient with the dimensions in the other order only. */
static tn_status offer_fixed(tn_query *q) {
  const tn_layout turned = {.set = 1, .order = {1, 0}};
  const tn_operand_layout in[3] = {{0}, {TN_LAYOUT_FIXED, 0, turned}, {0}};
  const tn_operand_layout out = {TN_LAYOUT_FIXED, 0, turned};
  bool gradient = q->match->in[1]->dims[0] == 7;
  tn_variant v = {.struct_size = sizeof v, .name = "turned", .in = gradient ? NULL : in, .cost_s = 1e-6};
  v.out = gradient ? &out : NULL;
  tn_add_variant(q, &v);
  return TN_OK;
}

static KERNEL(k_fixed, "fast.turned", "fast", "y = matmul(a, b, bias?)", offer_fixed);
static KERNEL(k_packed, "t.packed", "t", "y = matmul(a, b, bias?)", offer_packed);

#define UPDATE                                                                                               \
  "g = matmul(a, a)\n"                                                                                       \
  "p = pack(g, offsets=[0], count=1024, region=param.f32)\n"                                                 \
  "@param.f32: f32[1024] = state(path=@param.f32)\n"                                                         \
  "n = sub(@param.f32, p)\n"                                                                                 \
  "commit @param.f32 = n\n"
#define STEP                                                                                                 \
  "a: f32[32, 32] = input(name=a)\n"                                                                         \
  "w: f32[32, 32] = state(path=w)\n"                                                                         \
  "y = matmul(a, w)\n"

static fixture F;

static int open(void **state) {
  static const tn_item *const kernels[] = {&k_packed.item,  &k_reduce_sum.item, &k_copy.item,
                                           &k_reorder.item, &k_pointwise.item,  NULL};
  (void)state;
  fixture_open(&F, kernels);
  return 0;
}

static int shut(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

static void ok(tn_status status) {
  if (status != TN_OK) fail_msg("%s", tn_error_text(&F.env));
}

static void place(const char *path, const char *name, const tn_type *type, int32_t *region) {
  tn_gstate state = {.path = path, .type = *type, .what = TN_STATE_PARAM, .init = "", .where = ""};
  ok(tn_state_map_region(F.map, name, type->dtype, region));
  ok(tn_state_map_add(F.map, &state, *region, -1));
}

/* w in the region of parameters, and its optimizer state in a parallel region. */
static void place_parameter(const tn_type *type) {
  int32_t params, slots;
  place("w", "param.f32", type, &params);
  place("w.momentum", "momentum.f32", type, &slots);
  tn_state_map_follow(F.map, slots, params);
}

static tn_program *compile(const char *text, bool choose) {
  tn_graph *graph = fixture_graph(&F, text);
  tn_compile_options options = {.layout_map = choose ? F.map : NULL};
  tn_program *program = NULL;
  ok(tn_state_map_add_rest(F.map, graph));
  ok(tn_compile(&F.env, "p", F.registry, &F.target, graph, F.map, &options, &program));
  tn_graph_destroy(graph);
  return program;
}

static const tn_type square = {TN_F32, 2, {32, 32}};

static int32_t blocks_of(const char *path) { return tn_state_map_find(F.map, path)->layout.n_blocks; }

static int32_t count_reorders(const tn_program *p) {
  int32_t n = 0;
  for (int32_t i = 0; i < p->n_steps; i++)
    n += strcmp(p->steps[i].group->kernel->item.name, "t.reorder") == 0;
  return n;
}

static void a_parameter_gets_the_layout_that_its_readers_prefer(void **state) {
  (void)state;
  place_parameter(&square);
  tn_program *p = compile(STEP "output y = y\n" UPDATE, true);
  assert_int_equal(blocks_of("w"), 1);
  assert_int_equal(blocks_of("w.momentum"), 1);
  assert_int_equal(count_reorders(p), 0);
  assert_int_equal(p->steps[0].in[1].layout.n_blocks, 1);
  assert_int_equal(p->steps[0].out[0].layout.n_blocks, 0); /* an output */
  assert_int_equal(p->steps[1].out[0].layout.n_blocks, 1); /* the gradient, in the flat vector */
  assert_int_equal(p->n_steps, 3);
  tn_program_destroy(p);
}

#define FIXED                                                                                                \
  "a: f32[7, 32] = input(name=a)\n"                                                                          \
  "w: f32[32, 32] = state(path=w)\n"                                                                         \
  "y = matmul(a, w)\n"                                                                                       \
  "g = matmul(a, a, transpose_a=yes)\n"                                                                      \
  "p = pack(g, offsets=[0], count=1024, region=param.f32)\n"                                                 \
  "@param.f32: f32[1024] = state(path=@param.f32)\n"                                                         \
  "n = sub(@param.f32, p)\n"                                                                                 \
  "commit @param.f32 = n\noutput y = y\n"

static void open_with_fixed(void) {
  static const char *const families[] = {"fast", "t"};
  static const tn_item *const kernels[] = {&k_fixed.item,   &k_reduce_sum.item, &k_copy.item,
                                           &k_reorder.item, &k_pointwise.item,  NULL};
  shut(NULL);
  fixture_open(&F, kernels);
  fixture_families(&F, families, 2);
  place_parameter(&square);
}

/* The kernel accepts no other layout. The parameter has that layout, so that nothing is reordered. */
static void a_fixed_layout_votes_for_the_layout_of_a_parameter(void **state) {
  (void)state;
  open_with_fixed();
  tn_program *p = compile(FIXED, true);
  assert_int_equal(tn_state_map_find(F.map, "w")->layout.order[0], 1);
  assert_int_equal(count_reorders(p), 0);
  assert_int_equal(p->steps[0].in[1].layout.order[0], 1);
  tn_program_destroy(p);
}

/* One reader and the maker of the gradient require the other order: 2 copies against those of the sums. */
static void row_major_readers_vote_too(void **state) {
  static const char *const sums[] = {
      "s = reduce_sum(w)\noutput s = s\n",
      "s = reduce_sum(w)\nt = reduce_sum(w, axes=[0])\nu = reduce_sum(w, axes=[1])\n"
      "output s = s\noutput t = t\noutput u = u\n"};
  (void)state;
  for (int32_t i = 0; i < 2; i++) {
    char text[2000];
    open_with_fixed();
    snprintf(text, sizeof text, FIXED "%s", sums[i]);
    tn_program *p = compile(text, true);
    const tn_layout *layout = &tn_state_map_find(F.map, "w")->layout;
    assert_int_equal(layout->set && layout->order[0] == 1, i == 0);
    assert_int_equal(count_reorders(p), i == 0 ? 1 : 2);
    tn_program_destroy(p);
  }
}

static void a_program_without_permission_chooses_no_layouts(void **state) {
  (void)state;
  place_parameter(&square);
  tn_program *p = compile(STEP "output y = y\n" UPDATE, false);
  assert_int_equal(blocks_of("w"), 0);
  assert_int_equal(p->steps[0].in[1].layout.n_blocks, 0);
  assert_int_equal(p->steps[1].out[0].layout.n_blocks, 0);
  tn_program_destroy(p);
}

static void a_resumed_run_takes_the_recorded_layouts(void **state) {
  (void)state;
  static tn_recorded_state was = {"w", "1 0, 0:16"};
  static tn_recorded_kernel kernels[] = {{"t.packed", "made"}, {"t.pointwise", "made"}};
  const tn_recorded_choices replay = {.kernels = kernels, .n_kernels = 2, .states = &was, .n_states = 1};
  const tn_recorded_choices plain = {.kernels = kernels, .n_kernels = 2};
  place_parameter(&square);
  F.target.replay = &replay;
  tn_program_destroy(compile(STEP "output y = y\n" UPDATE, true));
  assert_int_equal(tn_state_map_find(F.map, "w")->layout.order[0], 1);
  shut(NULL);
  open(NULL);
  place_parameter(&square);
  F.target.replay = &plain;
  tn_program_destroy(compile(STEP "output y = y\n" UPDATE, true));
  assert_int_equal(blocks_of("w"), 0);
}

static void a_view_keeps_it_row_major(void **state) {
  (void)state;
  place_parameter(&square);
  tn_program_destroy(compile(
      STEP "v = reshape(w, dims=[1024])\ns = reduce_sum(v)\noutput y = y\noutput s = s\n" UPDATE, true));
  assert_int_equal(blocks_of("w"), 0);
}

static void a_gradient_that_others_read_keeps_it_row_major(void **state) {
  (void)state;
  place_parameter(&square);
  tn_program_destroy(compile(STEP "output y = y\n" UPDATE "output g = g\n", true));
  assert_int_equal(blocks_of("w"), 0);
}

static void a_layout_with_padding_is_not_taken(void **state) {
  (void)state;
  const tn_type narrow = {TN_F32, 2, {24, 32}};
  place_parameter(&narrow);
  tn_program_destroy(compile("a: f32[24, 24] = input(name=a)\n"
                             "b: f32[24, 32] = input(name=b)\n"
                             "w: f32[24, 32] = state(path=w)\n"
                             "y = matmul(a, w)\n"
                             "g = matmul(a, b)\n"
                             "p = pack(g, offsets=[0], count=768, region=param.f32)\n"
                             "@param.f32: f32[768] = state(path=@param.f32)\n"
                             "n = sub(@param.f32, p)\n"
                             "output y = y\ncommit @param.f32 = n\n",
                             true));
  assert_int_equal(blocks_of("w"), 0);
}

static void other_programs_take_the_layout_of_the_state(void **state) {
  (void)state;
  place_parameter(&square);
  tn_state_map_set_layout(F.map, tn_state_map_find(F.map, "w"), &by_16);
  tn_program *p = compile(STEP "output y = y\n", false);
  assert_int_equal(count_reorders(p), 0);
  assert_int_equal(p->steps[0].in[1].layout.n_blocks, 1);
  tn_program_destroy(p);
}

static void views_and_outputs_of_a_state_with_a_layout_are_reordered(void **state) {
  (void)state;
  place_parameter(&square);
  tn_state_map_set_layout(F.map, tn_state_map_find(F.map, "w"), &by_16);
  tn_program *p = compile("w: f32[32, 32] = state(path=w)\n"
                          "v = reshape(w, dims=[1024])\n"
                          "s = reduce_sum(v)\n"
                          "output s = s\noutput w = w\n",
                          false);
  assert_int_equal(count_reorders(p), 2);
  for (int32_t i = 0; i < p->n_steps; i++)
    if (strcmp(p->steps[i].group->kernel->item.name, "t.reduce_sum") == 0)
      assert_int_equal(p->steps[i].in[0].location.base, TN_BASE_ARENA);
  tn_program_destroy(p);
}

static void a_committed_value_has_the_layout_of_the_state(void **state) {
  (void)state;
  place_parameter(&square);
  tn_state_map_set_layout(F.map, tn_state_map_find(F.map, "w"), &by_16);
  tn_program *p = compile("a: f32[32, 32] = input(name=a)\n"
                          "f: f32[1024] = input(name=f)\n"
                          "w: f32[32, 32] = state(path=w)\n"
                          "m: f32[32, 32] = state(path=w.momentum)\n"
                          "e = exp(a)\n"
                          "v = reshape(f, dims=[32, 32])\n"
                          "commit w = e\ncommit w.momentum = v\n",
                          false);
  int32_t blocks = 0;
  for (int32_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].out[0].location.base == TN_BASE_REGION) blocks += p->steps[i].out[0].layout.n_blocks;
  assert_int_equal(blocks, 2);
  assert_int_equal(count_reorders(p), 2);
  tn_program_destroy(p);
}

static void a_region_whose_result_is_reordered_stays_as_it_is(void **state) {
  (void)state;
  place_parameter(&square);
  tn_state_map_set_layout(F.map, tn_state_map_find(F.map, "w"), &by_16);
  /* both groups read the constant, so each computes it */
  tn_program *p = compile("a: f32[32, 32] = input(name=a)\n"
                          "w: f32[32, 32] = state(path=w)\n"
                          "k: f32[32, 32] = full(value=2, dims=[32, 32])\n"
                          "s = reduce_sum(k)\n"
                          "e = mul(a, k)\n"
                          "output s = s\ncommit w = e\n",
                          false);
  for (int32_t i = 0; i < p->n_steps; i++)
    for (int32_t k = 0; k < p->steps[i].group->match->n_out; k++)
      assert_true(p->steps[i].group->match->out_number[k] >= 0);
  tn_program_destroy(p);
}

static void layouts_are_read_as_they_are_printed(void **state) {
  (void)state;
  static const char *const texts[] = {"row-major", "1 0", "0 1, 0:16", "1 0, 1:8, 0:16, 1:2"};
  static const char *const wrong[] = {"",         "0",        "0 0",   "0 2",     "0 1,",
                                      "0 1, 2:4", "0 1, 0:0", "0 1 x", "0 1, 0 4"};
  tn_layout layout;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    tn_text text = tn_text_new(&F.env);
    assert_true(tn_layout_parse(texts[i], &square, &layout));
    tn_layout_print(&layout, 2, &text);
    assert_string_equal(text.v, texts[i]);
    tn_text_free(&text);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_false(tn_layout_parse(wrong[i], &square, &layout));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open, shut)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(a_parameter_gets_the_layout_that_its_readers_prefer),
      CASE(a_program_without_permission_chooses_no_layouts),
      CASE(a_resumed_run_takes_the_recorded_layouts),
      CASE(a_view_keeps_it_row_major),
      CASE(a_fixed_layout_votes_for_the_layout_of_a_parameter),
      CASE(row_major_readers_vote_too),
      CASE(a_gradient_that_others_read_keeps_it_row_major),
      CASE(a_layout_with_padding_is_not_taken),
      CASE(other_programs_take_the_layout_of_the_state),
      CASE(views_and_outputs_of_a_state_with_a_layout_are_reordered),
      CASE(a_committed_value_has_the_layout_of_the_state),
      CASE(a_region_whose_result_is_reordered_stays_as_it_is),
      CASE(layouts_are_read_as_they_are_printed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
