/* Random graphs: compiled, and executed symbolically. */
#include <stdio.h>

#include "tests/unit/compile/kernels.h"
#include "tests/unit/compile/memory/simulate.h"
#include "tenon/random.h"

/* ---- kernels beyond the plain ones ---- */

static const tn_operand_layout turned = {TN_LAYOUT_FIXED, 0, {.set = 1, .order = {1, 0}}};
static const tn_operand_layout blocked = {
    TN_LAYOUT_FIXED, 0, {.set = 1, .n_blocks = 1, .order = {0, 1}, .block = {{1, 16}}}};

static tn_status offer_turned(tn_query *q) {
  tn_operand_layout in[3] = {{0}, turned, {0}};
  tn_variant v = {
      .struct_size = sizeof v, .name = "turned", .in = in, .out = &blocked, .workspace_bytes = 70};
  if (q->match->in[0]->rank != 2) return tn_fail(q, TN_EUNSUPPORTED, NULL, "rank 2 only");
  tn_add_variant(q, &v);
  return TN_OK;
}

/* Accepts any layout if all operands have one shape. */
static tn_status offer_any(tn_query *q) {
  tn_operand_layout any[64];
  for (int32_t i = 0; i < 64; i++) any[i] = (tn_operand_layout){TN_LAYOUT_ANY, 0, {0}};
  int32_t pair[1][2] = {{0, 0}};
  if (q->match->n_in == 0) return tn_fail(q, TN_EUNSUPPORTED, NULL, "nothing to read");
  for (int32_t i = 0; i < q->match->n_in; i++)
    if (!tn_type_same_dims(q->match->in[i], q->match->out[0]))
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "it broadcasts");
  tn_variant v = {.struct_size = sizeof v, .name = "any", .in = any, .out = any, .inplace = pair};
  v.n_inplace = tn_type_equal(q->match->in[0], q->match->out[0]);
  tn_add_variant(q, &v);
  return TN_OK;
}

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

static KERNEL(k_sub, "fast.sub", "t", "z = sub(x, y)", offer_sub);
static KERNEL(k_exp_sin, "fast.exp_sin", "t", "e = exp(x); s = sin(e) -> e, s", offer_exp_sin);
static KERNEL(k_turned, "fast.matmul", "fast", "y = matmul(a, b, bias?)", offer_turned);
static KERNEL(k_any, "fast.pointwise", "fast", "pointwise+", offer_any);
static KERNEL(k_both, "fast.both", "t", "m = matmul(a, b); n = matmul(a, c) -> m, n", offer_plain);
static KERNEL(k_keeps, "fast.keeps", "t", "y = matmul(a, b); z = relu(y) -> y, z", offer_plain);
static KERNEL(k_mul_sum, "fast.mul_sum", "t", "p = mul(x, y); s = reduce_sum(p)", offer_plain);

/* They recompute nodes: one, a chain, and a view. */
static KERNEL(k_exp_mul, "fast.exp_mul", "t", "&e = exp(x); p = mul(e, y); s = sin(p) -> p, s", offer_plain);
static KERNEL(k_mul_sub, "fast.mul_sub", "t", "&m = mul(x, y); z = sub(m, w)", offer_plain);
static KERNEL(k_add_relu, "fast.add_relu", "t", "&a = add(x, y); &r = relu(a); m = matmul(r, w)",
              offer_plain);
static KERNEL(k_relu_matmul, "fast.relu_matmul", "t", "&r = relu(x); m = matmul(w, r)", offer_plain);
static KERNEL(k_reshaped, "fast.reshaped", "t", "&e = relu(x); &v = reshape(e); y = add(v, w)", offer_plain);
static KERNEL(k_viewed, "fast.viewed", "t", "&v = reshape(x); y = mul(v, w)", offer_plain);
static KERNEL(k_turned_exp, "fast.turned_exp", "t", "&e = exp(x); y = matmul(e, w)", offer_turned);

/* A device without kernels for some ops, and its fallback, which has layouts and workspaces of its own. */
static tn_status offer_some(tn_query *q) {
  for (int32_t i = 0; i < q->match->n_nodes; i++)
    if (strcmp(q->match->nodes[i].node->op, "sin") == 0 || strcmp(q->match->nodes[i].node->op, "sub") == 0)
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "no %s", q->match->nodes[i].node->op);
  return offer_plain(q);
}

static tn_status offer_worked(tn_query *q) {
  static const int32_t pair[1][2] = {{0, 0}};
  tn_variant v = {.struct_size = sizeof v, .workspace_bytes = 100};
  if (tn_type_equal(q->match->in[0], q->match->out[0])) v.n_inplace = 1, v.inplace = pair;
  tn_add_variant(q, &v);
  return TN_OK;
}

static KERNEL(k_some, "t.some", "t", "pointwise+", offer_some);
static KERNEL(h_pointwise, "h.pointwise", "h", "pointwise+", offer_worked);
static KERNEL(h_transpose, "h.transpose", "h", "y = transpose(x)", offer_worked);
static KERNEL(h_matmul, "h.matmul", "h", "y = matmul(a, b, bias?)", offer_turned);
static KERNEL(h_reduce, "h.reduce_sum", "h", "y = reduce_sum(x)", offer_worked);

/* ---- random graphs ---- */

/* Shapes by number: [4, 8], [8, 8], [8], [] and [32]; packs are of the last kind. */
enum { MATRIX, SQUARE, ROW, SCALAR, FLAT, PACKED, SHAPES };
static const char *const shape_text[] = {"[4, 8]", "[8, 8]", "[8]", "[]", "[32]", "[112]"};

enum { VALUES = 400 };

typedef struct generator {
  tn_rng rng;
  tn_text text;
  int shape[VALUES];
  char name[VALUES][16];
  int n;
} generator;

static int below(generator *g, int n) { return (int)tn_rng_below(&g->rng, n); }

/* A value of a shape: one of the last eight or any, with equal probability. -1: no value was found. */
static int pick(generator *g, int shape) {
  for (int tries = 0; tries < 40; tries++) {
    int last = g->n < 8 ? g->n : 8;
    int v = below(g, 2) ? g->n - 1 - below(g, last) : below(g, g->n);
    if (g->shape[v] == shape) return v;
  }
  return -1;
}

static const char *named(generator *g, int shape) {
  g->shape[g->n] = shape;
  snprintf(g->name[g->n], sizeof g->name[0], "v%d", g->n);
  return g->name[g->n++];
}

static void declare(generator *g, const char *what, const char *name, int shape) {
  snprintf(g->name[g->n], sizeof g->name[0], "v%d", g->n);
  g->shape[g->n] = shape;
  tn_text_addf(&g->text, "v%d: f32%s = %s=%s)\n", g->n, shape_text[shape], what, name);
  g->n++;
}

static void unary(generator *g) {
  static const char *const ops[] = {"exp", "sin", "relu", "affine", "copy"};
  int shape = below(g, SHAPES), x = pick(g, shape), op = below(g, 5);
  if (x >= 0)
    tn_text_addf(&g->text, "%s = %s(%s%s)\n", named(g, shape), ops[op], g->name[x],
                 op == 3 ? ", scale=0.5" : "");
}

static void binary(generator *g) {
  static const char *const ops[] = {"add", "mul", "sub"};
  int shape = below(g, SHAPES), x = pick(g, shape), y = pick(g, shape), op = below(g, 3);
  if (x >= 0 && y >= 0)
    tn_text_addf(&g->text, "%s = %s(%s, %s)\n", named(g, shape), ops[op], g->name[x], g->name[y]);
}

static void broadcasting(generator *g) {
  int shape = below(g, 2) ? MATRIX : SQUARE, x = pick(g, shape), y = pick(g, below(g, 2) ? ROW : SCALAR);
  if (x >= 0 && y >= 0)
    tn_text_addf(&g->text, "%s = %s(%s, %s)\n", named(g, shape), below(g, 2) ? "add" : "mul", g->name[x],
                 g->name[y]);
}

static void product(generator *g) {
  int shape = below(g, 2) ? MATRIX : SQUARE, x = pick(g, shape), y = pick(g, SQUARE);
  if (x >= 0 && y >= 0)
    tn_text_addf(&g->text, "%s = matmul(%s, %s)\n", named(g, shape), g->name[x], g->name[y]);
}

static void reduction(generator *g) {
  int from = below(g, 2) ? MATRIX : SQUARE, x = pick(g, from), to = below(g, 2) ? ROW : SCALAR;
  if (x >= 0)
    tn_text_addf(&g->text, "%s = reduce_sum(%s%s)\n", named(g, to), g->name[x],
                 to == ROW ? ", axes=[0]" : "");
}

static void reshape(generator *g) {
  int from = below(g, 2) ? MATRIX : FLAT, x = pick(g, from), to = from == MATRIX ? FLAT : MATRIX;
  if (x >= 0) tn_text_addf(&g->text, "%s = reshape(%s, dims=%s)\n", named(g, to), g->name[x], shape_text[to]);
}

static void movement(generator *g) {
  int a = pick(g, MATRIX), b = pick(g, MATRIX), s = pick(g, SQUARE);
  if (below(g, 2) && s >= 0)
    tn_text_addf(&g->text, "%s = transpose(%s, order=[1, 0])\n", named(g, SQUARE), g->name[s]);
  else if (a >= 0 && b >= 0)
    tn_text_addf(&g->text, "%s = concat(%s, %s)\n", named(g, SQUARE), g->name[a], g->name[b]);
}

static void constant(generator *g) {
  int shape = below(g, FLAT);
  tn_text_addf(&g->text, "%s: f32%s = full(dims=%s, value=%d)\n", named(g, shape), shape_text[shape],
               shape_text[shape], below(g, 3));
}

/* 112 elements: two matrices and a row, with gaps. */
static void pack(generator *g) {
  int a = pick(g, below(g, 2) ? MATRIX : FLAT), r = pick(g, ROW), b = pick(g, MATRIX);
  if (a >= 0 && r >= 0 && b >= 0)
    tn_text_addf(&g->text, "%s = pack(%s, %s, %s, offsets=[0, %d, 64], count=112)\n", named(g, PACKED),
                 g->name[a], g->name[r], g->name[b], below(g, 2) ? 32 : 48);
}

static void collective(generator *g) {
  int shape = below(g, SHAPES), x = pick(g, shape);
  if (x >= 0) tn_text_addf(&g->text, "%s = all_reduce(%s)\n", named(g, shape), g->name[x]);
}

/* A bucket that is reduced, in a pack with another value. */
static void bucket(generator *g) {
  int a = pick(g, MATRIX), r = pick(g, ROW), b = pick(g, MATRIX), n = g->n;
  if (a < 0 || r < 0 || b < 0) return;
  tn_text_addf(&g->text, "i%d = pack(%s, %s, offsets=[0, 32], count=48)\nr%d = all_reduce(i%d)\n", n,
               g->name[a], g->name[r], n, n);
  tn_text_addf(&g->text, "%s = pack(r%d, %s, offsets=[0, 64], count=112)\n", named(g, PACKED), n, g->name[b]);
}

static void add_node(generator *g) {
  static void (*const makers[])(generator *) = {unary,        unary,        binary,     binary,    binary,
                                                broadcasting, broadcasting, product,    reduction, reshape,
                                                movement,     constant,     collective, bucket,    pack};
  makers[below(g, 15)](g);
}

static void add_commit(generator *g, const char *path, int shape) {
  int v = pick(g, shape), ok = below(g, 4) == 0;
  if (v < 0 || below(g, 3) == 0) return;
  tn_text_addf(&g->text, "commit \"%s\" = %s%s\n", path, g->name[v], ok ? " if ok" : "");
}

/* Three parameters are in a region that the graph also reads as a state. Either the region or the parameters
 * are committed. */
static void add_commits(generator *g) {
  if (below(g, 2)) {
    add_commit(g, "@param.f32", PACKED);
  } else {
    add_commit(g, "p", MATRIX);
    add_commit(g, "q", ROW);
    add_commit(g, "r", MATRIX);
  }
  add_commit(g, "s", SQUARE);
  add_commit(g, "t", SQUARE);
  add_commit(g, "u", SCALAR);
}

/* Reads the values in the opposite order, as backward does. */
static void mirror(generator *g) {
  int sum = pick(g, MATRIX);
  for (int v = g->n - 1; sum >= 0 && v > 0 && g->n < VALUES - 2; v--) {
    if (g->shape[v] != MATRIX && g->shape[v] != SQUARE) continue;
    const char *op = g->shape[v] == SQUARE ? "matmul" : below(g, 2) ? "mul" : "sub", *old = g->name[sum];
    sum = g->n;
    tn_text_addf(&g->text, "%s = %s(%s, %s)\n", named(g, MATRIX), op, old, g->name[v]);
  }
}

static void generate(generator *g, int nodes, bool mirrored) {
  tn_text_add(&g->text, "ok: bool[] = input(name=ok)\n");
  declare(g, "input(name", "x", MATRIX);
  declare(g, "input(name", "y", SQUARE);
  declare(g, "input(name", "z", ROW);
  declare(g, "input(name", "l", SCALAR);
  declare(g, "state(path", "p", MATRIX);
  declare(g, "state(path", "q", ROW);
  declare(g, "state(path", "r", MATRIX);
  declare(g, "state(path", "s", SQUARE);
  declare(g, "state(path", "t", SQUARE);
  declare(g, "state(path", "u", SCALAR);
  declare(g, "state(path", "\"@param.f32\"", PACKED);
  while (nodes-- > 0 && g->n < VALUES - 2) add_node(g);
  if (mirrored) mirror(g);
  add_commits(g);
  for (int i = 0; i < 3; i++)
    tn_text_addf(&g->text, "output o%d = %s\n", i, g->name[g->n - 1 - below(g, g->n / 2)]);
}

/* ---- tests ---- */

static void place_parameters(fixture *f) {
  static const tn_gstate states[] = {{.path = "p", .type = {TN_F32, 2, {4, 8}}, .what = TN_STATE_PARAM},
                                     {.path = "q", .type = {TN_F32, 1, {8}}, .what = TN_STATE_PARAM},
                                     {.path = "r", .type = {TN_F32, 2, {4, 8}}, .what = TN_STATE_PARAM}};
  static const int64_t offsets[] = {0, 48, 80};
  int32_t region;
  assert_int_equal(tn_state_map_region(f->map, "param.f32", TN_F32, &region), TN_OK);
  for (int i = 0; i < 3; i++)
    assert_int_equal(tn_state_map_add(f->map, &states[i], region, offsets[i]), TN_OK);
}

static double arena_total, bound_total;
static int64_t arena_limit;
static int32_t recomputed, cuts, shared, swept;

/* Nodes that groups share with others, and nodes that are only recomputed. */
static void count_shared(const tn_program *program) {
  const tn_cover *cover = program->cover;
  for (size_t i = 0; i < cover->groups.n; i++) {
    const tn_group *g = &cover->groups.v[i];
    for (int32_t k = 0; g->shared != NULL && k < g->n_nodes - 1; k++) g->shared[k] ? shared++ : swept++;
  }
}

static void try_one(fixture *f, uint64_t seed, int nodes) {
  generator *g = calloc(1, sizeof *g);
  g->rng = tn_rng_at(seed, 1);
  g->text = tn_text_new(&f->env);
  generate(g, nodes, arena_limit > 0);
  tn_graph *graph = fixture_graph(f, g->text.v);
  tn_compile_options options = {.arena_limit = arena_limit};
  tn_program *program = NULL;
  if (tn_state_map_add_rest(f->map, graph) != TN_OK) fail_msg("%s", tn_error_text(&f->env));
  if (tn_compile(&f->env, "random", f->registry, &f->target, graph, f->map, &options, &program) != TN_OK)
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, tn_error_text(&f->env), g->text.v);
  simulate(f, graph, program);
  recomputed += program->cover->n_rematerialized;
  count_shared(program);
  for (int32_t i = 0; i < program->n_segments; i++) cuts += program->segments[i].fallback;
  arena_total += (double)program->arena_bytes;
  bound_total += (double)program->bound_bytes;
  tn_program_destroy(program);
  tn_graph_destroy(graph);
  tn_text_free(&g->text);
  free(g);
}

static tn_target host;

static void try_many(const tn_item *const *kernels, const char *const *families, int32_t n_families,
                     int graphs, int nodes) {
  fixture f;
  fixture_open(&f, kernels);
  f.target.fallback = host.n_families > 0 ? &host : NULL;
  fixture_families(&f, families, n_families);
  place_parameters(&f);
  arena_total = bound_total = 0;
  for (int i = 0; i < graphs; i++) try_one(&f, (uint64_t)i * 1000 + (uint64_t)nodes, nodes);
  print_message("%d graphs of %d nodes: arena / bound %.4f\n", graphs, nodes, arena_total / bound_total);
  assert_true(arena_total <= 1.1 * bound_total);
  fixture_close(&f);
}

static const char *const plain_families[] = {"t"}, *const both_families[] = {"fast", "t"};
static const tn_item *const plain[] = {KERNELS_PLAIN, NULL};
static const tn_item *const fused[] = {KERNELS_PLAIN, &k_matmul_relu.item, &k_matmul_add_relu.item,
                                       &k_both.item,  &k_keeps.item,       &k_mul_sum.item,
                                       &k_sub.item,   &k_exp_sin.item,     NULL};
static const tn_item *const laid_out[] = {KERNELS_PLAIN, &k_turned.item, &k_any.item, &k_matmul_relu.item,
                                          NULL};

static const tn_item *const sharing[] = {
    KERNELS_PLAIN,    &k_exp_mul.item, &k_mul_sub.item,    &k_add_relu.item, &k_relu_matmul.item,
    &k_reshaped.item, &k_viewed.item,  &k_turned_exp.item, &k_both.item,     NULL};

static void programs_of_small_graphs_are_correct(void **state) {
  (void)state;
  try_many(plain, plain_families, 1, 300, 8);
}

static void programs_of_large_graphs_are_correct(void **state) {
  (void)state;
  try_many(plain, plain_families, 1, 60, 200);
}

static void fused_kernels_keep_the_meaning(void **state) {
  (void)state;
  try_many(fused, plain_families, 1, 150, 60);
}

static void recomputed_nodes_keep_the_meaning(void **state) {
  (void)state;
  shared = swept = 0;
  try_many(sharing, plain_families, 1, 200, 12);
  try_many(sharing, plain_families, 1, 500, 60);
  try_many(sharing, plain_families, 1, 20, 200);
  arena_limit = 1;
  try_many(sharing, plain_families, 1, 60, 60);
  arena_limit = 0;
  print_message("%d nodes shared, %d swept\n", shared, swept);
  assert_true(shared > 80 && swept > 80);
}

static void layouts_keep_the_meaning(void **state) {
  (void)state;
  try_many(laid_out, both_families, 2, 150, 40);
}

static void rematerialization_keeps_the_meaning(void **state) {
  (void)state;
  arena_limit = 1;
  recomputed = 0;
  try_many(fused, plain_families, 1, 100, 60);
  try_many(laid_out, both_families, 2, 60, 60);
  try_many(plain, plain_families, 1, 10, 200);
  print_message("%d blocks recomputed\n", recomputed);
  assert_true(recomputed > 100);
  arena_limit = 0;
}

static void fallbacks_keep_the_meaning(void **state) {
  static const char *const host_families[] = {"h"};
  static const tn_item *const lacking[] = {
      &k_matmul.item,    &k_concat.item, &k_copy.item,      &k_reorder.item, &k_some.item,
      &h_pointwise.item, &h_matmul.item, &h_transpose.item, &h_reduce.item,  NULL};
  static const tn_item *const without_matmul[] = {&k_concat.item,    &k_copy.item,      &k_reorder.item,
                                                  &k_pointwise.item, &h_pointwise.item, &h_matmul.item,
                                                  &h_transpose.item, &h_reduce.item,    NULL};
  (void)state;
  cuts = 0;
  host = (tn_target){.families = host_families, .n_families = 1};
  try_many(lacking, plain_families, 1, 200, 8);
  try_many(lacking, plain_families, 1, 100, 60);
  try_many(without_matmul, plain_families, 1, 100, 60);
  arena_limit = 1;
  try_many(lacking, plain_families, 1, 40, 60);
  arena_limit = 0;
  host.n_families = 0;
  print_message("%d cuts\n", cuts);
  assert_true(cuts > 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(programs_of_small_graphs_are_correct),
      cmocka_unit_test(programs_of_large_graphs_are_correct),
      cmocka_unit_test(fused_kernels_keep_the_meaning),
      cmocka_unit_test(recomputed_nodes_keep_the_meaning),
      cmocka_unit_test(layouts_keep_the_meaning),
      cmocka_unit_test(rematerialization_keeps_the_meaning),
      cmocka_unit_test(fallbacks_keep_the_meaning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
