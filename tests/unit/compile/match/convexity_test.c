/* The contracted graph: convex sets, and the topological order after merges, against plain algorithms that
 * walk all vertices. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "core/compile/match/convexity.h"
#include "tenon/random.h"

enum { NODES = 80 };

/* The vertices in topological order, and the vertex of each node. */
typedef struct plain_graph {
  const tn_graph *graph;
  int32_t vertex[NODES], order[NODES], n;
} plain_graph;

/* ---- random graphs ---- */

/* Node 0 is an input; each other node adds two earlier ones, near or far. */
static tn_graph *random_graph(fixture *f, tn_rng *rng) {
  static char text[NODES * 40];
  int32_t at = snprintf(text, sizeof text, "v0: f32[4] = input(name=a)\n");
  for (int32_t i = 1; i < NODES; i++) {
    int32_t far = tn_rng_below(rng, 4) == 0 || i < 12 ? i : 12;
    int32_t a = i - 1 - (int32_t)tn_rng_below(rng, far), b = i - 1 - (int32_t)tn_rng_below(rng, far);
    at += snprintf(text + at, sizeof text - (size_t)at, "v%d = add(v%d, v%d)\n", i, a, b);
  }
  snprintf(text + at, sizeof text - (size_t)at, "output y = v%d\n", NODES - 1);
  return fixture_graph(f, text);
}

/* Two or three vertices, by chance near each other. Returns the number of their nodes. */
static int32_t random_set(const plain_graph *p, tn_rng *rng, uint32_t *nodes) {
  int32_t n_vertices = 2 + (int32_t)tn_rng_below(rng, 2), n = 0, first = (int32_t)tn_rng_below(rng, p->n);
  int32_t range = tn_rng_below(rng, 2) == 0 ? 6 : p->n;
  bool chosen[NODES] = {false};
  for (int32_t k = 0; k < n_vertices; k++)
    chosen[p->order[(first + (int32_t)tn_rng_below(rng, range)) % p->n]] = true;
  for (uint32_t i = 0; i < NODES; i++)
    if (chosen[p->vertex[i]]) nodes[n++] = i;
  return n;
}

/* ---- the plain algorithms ---- */

/* Whether a node of the vertex reads a result of a marked vertex. */
static bool reads_marked(const plain_graph *p, int32_t vertex, const bool *marked) {
  for (int32_t i = 0; i < NODES; i++) {
    const tn_gnode *node = &p->graph->nodes.v[i];
    for (int32_t k = 0; p->vertex[i] == vertex && k < node->n_in; k++) {
      int32_t maker = p->vertex[p->graph->values.v[node->in[k]].node];
      if (maker != vertex && marked[maker]) return true;
    }
  }
  return false;
}

/* behind[v]: v is outside of the set, and a path leads from the set to v. */
static void find_behind(const plain_graph *p, const bool *set, bool *behind) {
  bool marked[NODES];
  memcpy(marked, set, sizeof marked);
  for (int32_t k = 0; k < p->n; k++) {
    int32_t v = p->order[k];
    behind[v] = !set[v] && reads_marked(p, v, marked);
    marked[v] |= behind[v];
  }
}

static bool is_plainly_convex(const plain_graph *p, const bool *set) {
  bool behind[NODES] = {false};
  find_behind(p, set, behind);
  for (int32_t k = 0; k < p->n; k++)
    if (set[p->order[k]] && reads_marked(p, p->order[k], behind)) return false;
  return true;
}

static void append_vertices(const plain_graph *p, int32_t first, int32_t last, const bool *set,
                            const bool *behind, bool dependent, int32_t *order, int32_t *n) {
  for (int32_t k = first; k <= last; k++)
    if (!set[p->order[k]] && behind[p->order[k]] == dependent) order[(*n)++] = p->order[k];
}

/* Between the set's ends: vertices that do not depend on the set, the set, vertices that do. */
static void merge_plainly(plain_graph *p, const bool *set, const uint32_t *nodes, int32_t n_nodes) {
  int32_t order[NODES], n = 0, first = p->n, last = -1, merged = p->vertex[nodes[0]];
  bool behind[NODES] = {false};
  find_behind(p, set, behind);
  for (int32_t k = p->n; k-- > 0;)
    if (set[p->order[k]]) {
      first = k;
      if (last < 0) last = k;
    }
  for (int32_t k = 0; k < first; k++) order[n++] = p->order[k];
  append_vertices(p, first, last, set, behind, false, order, &n);
  order[n++] = merged;
  append_vertices(p, first, last, set, behind, true, order, &n);
  for (int32_t k = last + 1; k < p->n; k++) order[n++] = p->order[k];
  memcpy(p->order, order, (size_t)n * sizeof *order);
  p->n = n;
  for (int32_t i = 0; i < n_nodes; i++) p->vertex[nodes[i]] = merged;
}

/* ---- the comparison ---- */

static void check_order(const tn_contracted_graph *c, const plain_graph *p) {
  int32_t n = 0;
  int64_t before = 0;
  for (int32_t v = tn_contracted_first(c); v != c->end; v = c->next[v]) {
    assert_true(n < p->n);
    assert_int_equal(v, p->order[n++]);
    assert_true(c->position[v] > before);
    before = c->position[v];
  }
  assert_int_equal(n, p->n);
  assert_true(c->position[c->end] > before);
}

/* `tight`: no position is left between neighbours, so that moves number all of them anew. Returns the number
 * of merges. */
static int32_t compare_merges(const tn_graph *graph, tn_contracted_graph *c, tn_rng *rng, bool tight) {
  plain_graph p = {.graph = graph, .n = NODES};
  int32_t merges = 0;
  for (int32_t i = 0; i < NODES; i++) p.vertex[i] = p.order[i] = i;
  for (int32_t i = 0; tight && i <= NODES; i++) c->position[i] = i + 1;
  for (int32_t k = 0; k < 200; k++) {
    uint32_t nodes[NODES];
    bool set[NODES] = {false};
    int32_t n = random_set(&p, rng, nodes);
    for (int32_t i = 0; i < n; i++) set[p.vertex[nodes[i]]] = true;
    tn_contracted_set_of(c, nodes, n);
    bool convex = is_plainly_convex(&p, set);
    assert_int_equal(tn_contracted_set_is_convex(c, nodes, n), convex);
    if (!convex || n > 12) continue;
    tn_contracted_set_merge(c, nodes, n);
    merge_plainly(&p, set, nodes, n);
    for (int32_t i = 0; i < NODES; i++) assert_int_equal(c->vertex[i], p.vertex[i]);
    check_order(c, &p);
    merges++;
  }
  return merges;
}

static void merges_keep_the_order_of_the_plain_algorithm(void **state) {
  (void)state;
  static const tn_item *const none[] = {NULL};
  int32_t merges = 0;
  fixture f;
  fixture_open(&f, none);
  for (uint64_t seed = 0; seed < 40; seed++) {
    tn_rng rng = tn_rng_at(seed, 0);
    tn_graph *graph = random_graph(&f, &rng);
    tn_arena arena = tn_arena_new(&f.env);
    tn_uses uses;
    tn_contracted_graph contracted;
    assert_int_equal(graph->nodes.n, NODES);
    assert_int_equal(tn_uses_create(&arena, graph, &uses), TN_OK);
    assert_int_equal(tn_contracted_create(&arena, graph, &uses, &contracted), TN_OK);
    merges += compare_merges(graph, &contracted, &rng, seed % 2 == 1);
    tn_arena_free(&arena);
    tn_graph_destroy(graph);
  }
  assert_true(merges > 1000);
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(merges_keep_the_order_of_the_plain_algorithm)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
