/* Pass `select`: patterns, regions and their limits. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "core/compile/kernels/tuner.h"
#include "core/compile/select/select.h"
#include "tests/unit/compile/kernels.h"
#include "tenon/attributes.h"

/* ---- more kernels ---- */

/* `maximum` with the number 0, which the graph must give. */
static tn_status offer_relu(tn_query *q) {
  const tn_node *zero = q->match->constant_node[1];
  if (q->match->constant_node[0] != NULL || zero == NULL)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%s is no number", zero == NULL ? "c" : "x");
  double number = ((const tn_full_attributes *)zero->attributes)->value;
  if (number != 0) return tn_fail(q, TN_EUNSUPPORTED, NULL, "the number is %g", number);
  return offer_plain(q);
}

static KERNEL(k_relu, "t.relu", "t", "h = maximum(x, c); y = exp(h)", offer_relu);
static KERNEL(k_gated, "t.gated", "t", "&r = relu(x); y = matmul(r, w)", offer_plain);
static KERNEL(k_gated_exp, "t.gated_exp", "t", "&v = reshape(x); &r = relu(v); y = exp(r)", offer_plain);
static KERNEL(k_tail, "t.tail", "t", "y = exp(x); s = sin(x); z = mul(y, s)", offer_plain);
static KERNEL(k_both, "t.both", "t", "m = matmul(a, b); n = matmul(a, c) -> m, n", offer_plain);
static KERNEL(k_keeps, "t.keeps", "t", "y = matmul(a, b); z = relu(y) -> y, z", offer_plain);

static fixture F;

#define OPEN(...) FIXTURE_OPEN(&F, __VA_ARGS__)

static tn_cover *cover_of(const char *text) { return fixture_cover(&F, text); }

static const char *value_name(const tn_cover *cover, tn_val v) {
  const char *name = cover->graph->values.v[v].name;
  return v == 0 ? "_" : name != NULL ? name : "?";
}

/* ---- patterns ---- */

static void a_larger_pattern_wins(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_matmul_relu.item);
  assert_after(SELECTED, &F, AXW "h = matmul(a, w)\nr = relu(h)\noutput r = r\n",
               "a: f32[4, 8] = input(name=a)\n"
               "w: f32[8, 8] = input(name=w)\n"
               "h: f32[4, 8] = matmul(a, w)\n"
               "r: f32[4, 8] = relu(h)\n"
               "# 0: t.matmul_relu \"blocked\", 2 nodes\n"
               "output r = r\n");
  fixture_close(&F);
}

static void commutative_operands_match_both_ways(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_matmul_add_relu.item);
  static const char *const adds[] = {"s = add(h, q)\n", "s = add(q, h)\n"};
  for (int i = 0; i < 2; i++) {
    char text[400];
    snprintf(text, sizeof text,
             AXW "q: f32[4, 8] = input(name=q)\nh = matmul(a, w)\n%sr = relu(s)\noutput r = r\n", adds[i]);
    tn_cover *cover = cover_of(text);
    assert_int_equal(cover->groups.n, 1);
    const tn_group *g = &cover->groups.v[0];
    assert_string_equal(g->kernel->item.name, "t.matmul_add_relu");
    assert_int_equal(g->n_in, 4);
    assert_string_equal(value_name(cover, g->in[0]), "a");
    assert_string_equal(value_name(cover, g->in[1]), "w");
    assert_string_equal(value_name(cover, g->in[2]), "_");
    assert_string_equal(value_name(cover, g->in[3]), "q");
    /* the kernel sees the order of the pattern: the product is operand 0 of the sum */
    const tn_match_node *sum = &g->match->nodes[1];
    assert_int_equal(sum->in[0], 4);
    assert_int_equal(sum->in[1], 3);
    assert_int_equal(g->match->nodes[2].in[0], 5);
    assert_int_equal(g->match->out_number[0], 6);
    assert_null(g->match->in[2]);
    tn_cover_destroy(cover);
  }
  fixture_close(&F);
}

static void optional_operands_may_be_there(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_matmul_relu.item);
  tn_cover *cover =
      cover_of(AXW "b: f32[8] = input(name=b)\nh = matmul(a, w, b)\nr = relu(h)\noutput r = r\n");
  assert_int_equal(cover->groups.n, 1);
  assert_string_equal(value_name(cover, cover->groups.v[0].in[2]), "b");
  assert_int_equal(cover->groups.v[0].match->nodes[0].in[2], 2);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void variadic_operands_are_listed(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  tn_cover *cover = cover_of(AXW "y = concat(a, w, a)\noutput y = y\n");
  const tn_group *g = &cover->groups.v[0];
  assert_int_equal(g->n_in, 3);
  assert_string_equal(value_name(cover, g->in[1]), "w");
  assert_string_equal(value_name(cover, g->in[2]), "a");
  assert_int_equal(g->match->nodes[0].in[2], 2);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void an_inner_value_with_a_user_outside_refuses(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_matmul_relu.item);
  tn_cover *cover =
      cover_of(AXW "h = matmul(a, w)\nr = relu(h)\nl = reduce_sum(h)\noutput r = r\noutput l = l\n");
  assert_int_equal(cover->groups.n, 3);
  assert_string_equal(cover->groups.v[1].kernel->item.name, "t.pointwise");
  assert_string_equal(fixture_reason(&cover->groups.v[1], "t.matmul_relu"),
                      "a value inside it is used outside");
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void outputs_and_commits_count_as_users(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_matmul_relu.item);
  tn_cover *cover = cover_of(AXW "h = matmul(a, w)\nr = relu(h)\noutput r = r\noutput h = h\n");
  assert_int_equal(cover->groups.n, 2);
  assert_string_equal(fixture_reason(&cover->groups.v[1], "t.matmul_relu"),
                      "a value inside it is committed or an output");
  tn_cover_destroy(cover);
  cover = cover_of(
      AXW "p: f32[4, 8] = state(path=p)\nh = matmul(a, w)\nr = relu(h)\ncommit p = h\noutput r = r\n");
  assert_int_equal(cover->groups.n, 2);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void results_after_the_arrow_may_have_users(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_keeps.item);
  tn_cover *cover =
      cover_of(AXW "h = matmul(a, w)\nr = relu(h)\nl = reduce_sum(h)\noutput r = r\noutput l = l\n");
  assert_string_equal(cover->groups.v[0].kernel->item.name, "t.keeps");
  assert_int_equal(cover->groups.v[0].n_out, 2);
  assert_string_equal(value_name(cover, cover->groups.v[0].out[0]), "h");
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void a_path_that_leaves_and_re_enters_refuses(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_both.item);
  /* n's operand depends on m: one launch cannot compute both */
  tn_cover *cover = cover_of(AXW "m = matmul(a, w)\nt = transpose(m, order=[1, 0])\nc = matmul(t, m)\n"
                                 "n = matmul(a, c)\noutput n = n\n");
  for (size_t i = 0; i < cover->groups.n; i++)
    assert_string_not_equal(cover->groups.v[i].kernel->item.name, "t.both");
  assert_string_equal(fixture_reason(&cover->groups.v[3], "t.both"),
                      "a path leaves the match and re-enters it");
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void patterns_are_found_through_shared_operands(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_both.item, &k_tail.item);
  tn_cover *cover = cover_of(AXW "v: f32[8, 8] = input(name=v)\nm = matmul(a, w)\nn = matmul(a, v)\n"
                                 "y = exp(m)\ns = sin(m)\nz = mul(s, y)\noutput z = z\noutput n = n\n");
  assert_int_equal(cover->groups.n, 2);
  assert_string_equal(cover->groups.v[0].kernel->item.name, "t.both");
  assert_string_equal(cover->groups.v[1].kernel->item.name, "t.tail");
  assert_int_equal(cover->groups.v[1].match->nodes[2].in[0], 1);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* Either of two pairs could be one launch. As two launches they would depend on each other. */
static void groups_never_wait_for_each_other(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_both.item);
  const char *g = "a: f32[4, 4] = input(name=a)\n"
                  "b: f32[4, 4] = input(name=b)\n"
                  "m1 = matmul(a, a)\n"
                  "t = transpose(m1, order=[1, 0])\n"
                  "n1 = matmul(b, t)\n"
                  "m2 = matmul(b, b)\n"
                  "u = transpose(m2, order=[1, 0])\n"
                  "n2 = matmul(a, u)\n"
                  "output n1 = n1\noutput n2 = n2\n";
  tn_cover *cover = cover_of(g);
  int both = 0;
  for (size_t i = 0; i < cover->groups.n; i++)
    both += strcmp(cover->groups.v[i].kernel->item.name, "t.both") == 0;
  assert_int_equal(both, 1);
  tn_cover_destroy(cover);
  tn_program_destroy(fixture_program(&F, g));
  fixture_close(&F);
}

/* ---- regions ---- */

static void a_region_has_one_iteration_space(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  /* s broadcasts into the region and is needed there alone; u is an output, so it is made apart */
  assert_after(SELECTED, &F,
               "a: f32[4, 8] = input(name=a)\n"
               "b: f32[8] = input(name=b)\n"
               "s = exp(b)\n"
               "u = sin(b)\n"
               "x = mul(a, s)\n"
               "y = add(x, u)\n"
               "output y = y\noutput u = u\n",
               "a: f32[4, 8] = input(name=a)\n"
               "b: f32[8] = input(name=b)\n"
               "s: f32[8] = exp(b)\n"
               "u: f32[8] = sin(b)\n"
               "# 0: t.pointwise \"tiles\"\n"
               "x: f32[4, 8] = mul(a, s)\n"
               "y: f32[4, 8] = add(x, u)\n"
               "# 1: t.pointwise \"tiles\", 3 nodes\n"
               "output y = y\n"
               "output u = u\n");
  fixture_close(&F);
}

static void a_region_has_several_results(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  tn_cover *cover =
      cover_of("a: f32[4, 8] = input(name=a)\nx = exp(a)\ny = sin(x)\nz = cos(x)\nl = reduce_sum(x)\n"
               "output y = y\noutput z = z\noutput l = l\n");
  assert_int_equal(cover->groups.n, 2);
  const tn_group *g = &cover->groups.v[0];
  assert_int_equal(g->n_nodes, 3);
  assert_int_equal(g->n_in, 1);
  assert_int_equal(g->n_out, 3);
  assert_int_equal(g->match->out_number[0], 1);
  assert_int_equal(g->match->nodes[2].in[0], 1);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void a_value_that_only_a_later_region_reads_is_computed_there(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  /* the comparison could join r's region, but then its result would be live until the end */
  tn_cover *cover = cover_of(AXW "r = relu(a)\nz: f32[] = full(value=0)\nm = gt(r, z)\nh = matmul(r, w)\n"
                                 "d = where(m, h, z)\noutput d = d\n");
  assert_int_equal(cover->groups.n, 3);
  assert_int_equal(cover->groups.v[0].n_nodes, 1);
  assert_int_equal(cover->groups.v[2].n_nodes, 3);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* ---- siblings ---- */

static void small_regions_that_read_results_of_one_node_are_one(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_moments.item);
  tn_cover *cover =
      cover_of("a: f32[4, 8] = input(name=a)\nb: f32[4] = input(name=b)\ns, q = moments(a, axes=[1])\n"
               "x = exp(s)\ny = mul(q, b)\noutput x = x\noutput y = y\n");
  assert_int_equal(cover->groups.n, 2);
  assert_string_equal(cover->groups.v[1].kernel->item.name, "t.pointwise");
  assert_int_equal(cover->groups.v[1].n_nodes, 2);
  assert_int_equal(cover->groups.v[1].n_in, 3);
  assert_int_equal(cover->groups.v[1].n_out, 2);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* Readers of one value: the first with one more operand, thirty with two. A region takes as many as its
 * operands allow. */
static void siblings_fill_one_region_after_the_other(void **state) {
  (void)state;
  static const int32_t nodes[] = {12, 11, 8}, operands[] = {TN_REGION_OPERANDS, 23, 17};
  OPEN(KERNELS_PLAIN);
  char text[31 * 160] = "a: f32[4] = input(name=a)\nz: f32[4] = input(name=z)\ny = mul(a, z)\noutput y = y\n";
  for (int i = 0; i < 30; i++)
    sprintf(text + strlen(text),
            "c%d: bool[4] = input(name=c%d)\nb%d: f32[4] = input(name=b%d)\ny%d = where(c%d, a, b%d)\n"
            "output y%d = y%d\n",
            i, i, i, i, i, i, i, i, i);
  tn_cover *cover = cover_of(text);
  assert_int_equal(cover->groups.n, 3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(cover->groups.v[i].n_nodes, nodes[i]);
    assert_int_equal(cover->groups.v[i].n_in, operands[i]);
    assert_int_equal(cover->groups.v[i].n_out, nodes[i]);
  }
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* The new values of a parameter and its momentum. */
static void large_regions_with_committed_results_are_one(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  tn_cover *cover =
      cover_of("w: f32[128, 128] = state(path=w, what=param)\nm: f32[128, 128] = state(path=m, what=slot)\n"
               "g: f32[128, 128] = input(name=g)\nx = exp(m)\ny = mul(g, w)\nz = mul(m, g)\n"
               "v = mul(y, x)\ncommit w = v\ncommit m = z\n");
  assert_int_equal(cover->groups.n, 1);
  assert_int_equal(cover->groups.v[0].n_nodes, 4);
  assert_int_equal(cover->groups.v[0].n_in, 3);
  assert_int_equal(cover->groups.v[0].n_out, 2);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* More bytes, another iteration space, a path between them, no common operand. */
static void other_regions_stay_apart(void **state) {
  (void)state;
  static const char *const apart[] = {
      "a: f32[128, 128] = input(name=a)\nx = exp(a)\ny = sin(a)\n",
      "a: f32[4] = input(name=a)\nb: f32[2, 4] = input(name=b)\nx = exp(a)\ny = mul(a, b)\n",
      "a: f32[8, 8] = input(name=a)\nx = exp(a)\nh = matmul(x, x)\ny = mul(h, a)\n",
      "a: f32[4] = input(name=a)\nb: f32[4] = input(name=b)\nx = exp(a)\ny = sin(b)\n",
  };
  OPEN(KERNELS_PLAIN);
  for (size_t i = 0; i < sizeof apart / sizeof *apart; i++) {
    char text[200];
    int32_t regions = 0;
    snprintf(text, sizeof text, "%soutput x = x\noutput y = y\n", apart[i]);
    tn_cover *cover = cover_of(text);
    for (size_t g = 0; g < cover->groups.n; g++)
      regions += strcmp(cover->groups.v[g].kernel->item.name, "t.pointwise") == 0;
    assert_int_equal(regions, 2);
    tn_cover_destroy(cover);
  }
  fixture_close(&F);
}

/* ---- limits ---- */

static char *chain(int n) {
  tn_text text = tn_text_new(&F.env);
  tn_text_add(&text, "x0: f32[4] = input(name=x)\n");
  for (int i = 0; i < n; i++) tn_text_addf(&text, "x%d = exp(x%d)\n", i + 1, i);
  tn_text_addf(&text, "output y = x%d\n", n);
  return tn_text_take(&text);
}

static void a_region_that_is_too_large_for_its_kernel_is_cut(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  char *text = chain(100);
  tn_cover *cover = cover_of(text);
  int32_t nodes = 0;
  for (size_t i = 0; i < cover->groups.n; i++) {
    assert_true(cover->groups.v[i].n_nodes <= 20);
    nodes += cover->groups.v[i].n_nodes;
  }
  assert_int_equal(nodes, 100);
  assert_true(cover->groups.n <= 12);
  tn_cover_destroy(cover);
  tn_release(&F.env, text);
  fixture_close(&F);
}

static void a_region_has_at_most_24_operands(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  tn_text text = tn_text_new(&F.env);
  for (int i = 0; i < 40; i++) tn_text_addf(&text, "a%d: f32[4] = input(name=a%d)\n", i, i);
  tn_text_add(&text, "s0 = exp(a0)\n");
  for (int i = 1; i < 40; i++) tn_text_addf(&text, "s%d = add(s%d, a%d)\n", i, i - 1, i);
  tn_text_add(&text, "output s = s39\n");
  tn_cover *cover = cover_of(text.v);
  for (size_t i = 0; i < cover->groups.n; i++) assert_true(cover->groups.v[i].n_in <= 24);
  tn_cover_destroy(cover);
  tn_text_free(&text);
  fixture_close(&F);
}

static void a_predicated_commit_is_a_choice_of_values(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  assert_after(SELECTED, &F,
               "p: f32[8] = state(path=p)\n"
               "ok: bool[] = input(name=ok)\n"
               "n = affine(p, scale=0.5)\n"
               "commit p = n if ok\n",
               "p: f32[8] = state(path=p)\n"
               "ok: bool[] = input(name=ok)\n"
               "n: f32[8] = affine(p, scale=0.5)\n"
               "%4: f32[8] = where(ok, n, p)\n"
               "# 0: t.pointwise \"tiles\", 2 nodes\n"
               "commit p = %4\n");
  fixture_close(&F);
}

static void views_and_packs_need_no_kernel(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  tn_cover *cover = cover_of("a: f32[4, 8] = input(name=a)\nx = exp(a)\nv = reshape(x, dims=[32])\n"
                             "p = pack(v, v, offsets=[0, 32], count=64)\ny = sin(p)\noutput y = y\n");
  assert_int_equal(cover->groups.n, 2);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static void an_empty_graph_has_an_empty_cover(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN);
  tn_cover *cover = cover_of("a: f32[4] = input(name=a)\nb = exp(a)\n");
  assert_int_equal(cover->groups.n, 0);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

static const tn_group *group_of_kernel(const tn_cover *cover, const char *kernel) {
  for (size_t i = 0; i < cover->groups.n; i++)
    if (strcmp(cover->groups.v[i].kernel->item.name, kernel) == 0) return &cover->groups.v[i];
  return NULL;
}

/* The output reads h, so h stays; the product reads a and not h. */
static void a_recomputed_node_stays_for_its_other_users(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_gated.item);
  tn_cover *cover = cover_of(AXW "h = relu(a)\nr = matmul(h, w)\noutput r = r\noutput h = h\n");
  assert_int_equal(cover->groups.n, 2);
  const tn_group *g = group_of_kernel(cover, "t.gated");
  assert_non_null(g);
  assert_int_equal(g->n_in, 2);
  assert_string_equal(value_name(cover, g->in[0]), "a");
  assert_string_equal(value_name(cover, g->in[1]), "w");
  assert_true(g->shared[0] && !g->shared[1]);
  assert_string_equal(g->match->nodes[0].node->op, "relu");
  assert_int_equal(g->match->nodes[1].in[0], 2);
  /* relu's 32 operations count, too: 2 * 4 * 8 * 8 + 32 */
  assert_true(g->cost.flops == 544);
  int32_t own = cover->graph->nodes.v[g->nodes[0]].group;
  assert_string_equal(cover->groups.v[own].kernel->item.name, "t.pointwise");
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* Both readers of h recompute it, so h is left out; they read e. */
static void a_node_that_all_of_its_users_recompute_is_swept(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_gated.item);
  tn_cover *cover =
      cover_of(AXW "e = exp(a)\nh = relu(e)\nr = matmul(h, w)\ns = matmul(h, w, transpose_b=yes)\n"
                   "output r = r\noutput s = s\n");
  assert_int_equal(cover->groups.n, 3);
  assert_string_equal(cover->groups.v[0].kernel->item.name, "t.pointwise");
  assert_int_equal(cover->groups.v[0].n_nodes, 1); /* e alone: h joins no region */
  assert_string_equal(cover->groups.v[1].kernel->item.name, "t.gated");
  assert_string_equal(cover->groups.v[2].kernel->item.name, "t.gated");
  assert_false(cover->groups.v[1].shared[0]);
  tn_cover_destroy(cover);
  fixture_close(&F);
}

/* A swept view needs no location. */
static void what_only_swept_nodes_read_is_not_stored(void **state) {
  (void)state;
  OPEN(KERNELS_PLAIN, &k_gated_exp.item);
  tn_cover *cover = cover_of(AXW "e = exp(a)\nv = reshape(e, dims=[32])\nr = relu(v)\ny = exp(r)\n"
                                 "output y = y\n");
  assert_int_equal(cover->groups.n, 2);
  assert_true(cover->graph->nodes.v[cover->groups.v[1].nodes[0]].group == 1);
  tn_cover_destroy(cover);
  tn_program *program = fixture_program(&F, AXW "v = reshape(a, dims=[32])\nr = relu(v)\ny = exp(r)\n"
                                                "z = sin(v)\noutput y = y\noutput z = z\n");
  assert_int_equal(program->n_steps, 2);
  tn_program_destroy(program);
  fixture_close(&F);
}

/* The number is known behind views and broadcasts, but an operand that only has the same type is no constant.
 */
static void a_match_names_the_node_of_a_constant(void **state) {
  (void)state;
  static const struct {
    const char *graph, *reason;
  } cases[] = {
      {"c: f32[] = full()", NULL},
      {"z: f32[1] = full(dims=[1])\n c: f32[1, 1] = reshape(z, dims=[1, 1])", NULL},
      {"z: f32[1] = full(dims=[1])\n c: f32[2, 3] = broadcast(z, dims=[2, 3])", NULL},
      {"c: f32[] = full(value=2)", "the number is 2"},
      {"c: f32[] = input(name=c)", "c is no number"},
      {"z: f32[] = full()\n c: f32[] = exp(z)", "c is no number"},
  };
  OPEN(&k_relu.item, &k_pointwise.item);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[400];
    snprintf(text, sizeof text,
             "x: f32[2, 3] = input(name=x)\n %s\n h = maximum(x, c)\n y = exp(h)\n output o = y\n",
             cases[i].graph);
    tn_cover *cover = cover_of(text);
    const tn_group *last = &cover->groups.v[cover->groups.n - 1];
    const char *reason = fixture_reason(last, "t.relu");
    assert_string_equal(last->kernel->item.name, cases[i].reason == NULL ? "t.relu" : "t.pointwise");
    if (cases[i].reason != NULL) assert_string_equal(reason, cases[i].reason);
    tn_cover_destroy(cover);
  }
  fixture_close(&F);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_larger_pattern_wins),
      cmocka_unit_test(commutative_operands_match_both_ways),
      cmocka_unit_test(optional_operands_may_be_there),
      cmocka_unit_test(variadic_operands_are_listed),
      cmocka_unit_test(an_inner_value_with_a_user_outside_refuses),
      cmocka_unit_test(outputs_and_commits_count_as_users),
      cmocka_unit_test(results_after_the_arrow_may_have_users),
      cmocka_unit_test(a_recomputed_node_stays_for_its_other_users),
      cmocka_unit_test(a_node_that_all_of_its_users_recompute_is_swept),
      cmocka_unit_test(what_only_swept_nodes_read_is_not_stored),
      cmocka_unit_test(a_match_names_the_node_of_a_constant),
      cmocka_unit_test(a_path_that_leaves_and_re_enters_refuses),
      cmocka_unit_test(patterns_are_found_through_shared_operands),
      cmocka_unit_test(groups_never_wait_for_each_other),
      cmocka_unit_test(a_region_has_one_iteration_space),
      cmocka_unit_test(a_region_has_several_results),
      cmocka_unit_test(a_value_that_only_a_later_region_reads_is_computed_there),
      cmocka_unit_test(small_regions_that_read_results_of_one_node_are_one),
      cmocka_unit_test(siblings_fill_one_region_after_the_other),
      cmocka_unit_test(large_regions_with_committed_results_are_one),
      cmocka_unit_test(other_regions_stay_apart),
      cmocka_unit_test(a_region_that_is_too_large_for_its_kernel_is_cut),
      cmocka_unit_test(a_region_has_at_most_24_operands),
      cmocka_unit_test(a_predicated_commit_is_a_choice_of_values),
      cmocka_unit_test(views_and_packs_need_no_kernel),
      cmocka_unit_test(an_empty_graph_has_an_empty_cover),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
