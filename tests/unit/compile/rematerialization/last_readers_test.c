/* The last two readers of every value, against a scan of all groups, while groups change. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "core/compile/rematerialization/last_readers.h"
#include "tenon/random.h"

enum { GROUPS = 24, OPERANDS = 4 };

/* Group i makes value i + 2 from earlier values; value 1 is an input. */
typedef struct made_cover {
  tn_cover cover;
  tn_group groups[GROUPS];
  tn_val in[GROUPS][OPERANDS], out[GROUPS];
  uint32_t node[GROUPS];
} made_cover;

static tn_graph *chain_of_groups(fixture *f) {
  char text[GROUPS * 40];
  int32_t at = snprintf(text, sizeof text, "v0: f32[4] = input(name=a)\n");
  for (int32_t i = 0; i < GROUPS; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "v%d = exp(v%d)\n", i + 1, i);
  snprintf(text + at, sizeof text - (size_t)at, "output y = v%d\n", GROUPS);
  return fixture_graph(f, text);
}

/* The early values have many readers. A value may be read twice. */
static void draw_operands(made_cover *m, int32_t group, tn_rng *rng) {
  m->groups[group].n_in = (int32_t)tn_rng_below(rng, OPERANDS + 1);
  for (int32_t k = 0; k < m->groups[group].n_in; k++) {
    int32_t most = tn_rng_below(rng, 3) == 0 || group < 2 ? group + 1 : 3;
    m->in[group][k] = 1 + (tn_val)tn_rng_below(rng, most);
  }
}

static void make_cover_of(made_cover *m, fixture *f, tn_graph *graph, tn_rng *rng) {
  memset(m, 0, sizeof *m);
  for (int32_t i = 0; i < GROUPS; i++) {
    m->out[i] = (tn_val)(i + 2);
    m->node[i] = (uint32_t)(i + 1);
    m->groups[i] =
        (tn_group){.nodes = &m->node[i], .n_nodes = 1, .in = m->in[i], .out = &m->out[i], .n_out = 1};
    graph->nodes.v[i + 1].group = i;
    draw_operands(m, i, rng);
  }
  m->cover.env = &f->env;
  m->cover.graph = graph;
  m->cover.groups.v = m->groups;
  m->cover.groups.n = GROUPS;
}

/* The last two of the value's maker and its readers. */
static void check_value(const tn_last_readers *r, const made_cover *m, tn_val v) {
  int32_t last = r->maker[v], before = -1;
  if (r->last[v] == INT32_MAX) return; /* the graph's output */
  for (int32_t i = 0; i < GROUPS; i++) {
    bool reads = !r->dead[i] && tn_last_readers_group_reads(r, &m->groups[i], v);
    if (!reads || i == last) continue;
    before = last;
    last = i;
  }
  assert_int_equal(r->last[v], last);
  assert_int_equal(r->before[v], before);
}

/* A group gets other operands, or is removed. */
static void change_one_group(tn_last_readers *r, made_cover *m, tn_rng *rng) {
  int32_t i = (int32_t)tn_rng_below(rng, GROUPS);
  tn_group old = m->groups[i];
  tn_val operands[OPERANDS];
  if (r->dead[i]) return;
  memcpy(operands, m->in[i], sizeof operands);
  old.in = operands;
  r->dead[i] = tn_rng_below(rng, 20) == 0;
  if (!r->dead[i]) draw_operands(m, i, rng);
  assert_int_equal(tn_last_readers_update(r, &old, i), TN_OK);
}

static void readers_are_those_that_a_scan_finds(void **state) {
  (void)state;
  static const tn_item *const none[] = {NULL};
  fixture f;
  fixture_open(&f, none);
  for (uint64_t seed = 0; seed < 30; seed++) {
    tn_rng rng = tn_rng_at(seed, 0);
    tn_graph *graph = chain_of_groups(&f);
    tn_last_readers readers;
    made_cover m;
    make_cover_of(&m, &f, graph, &rng);
    assert_int_equal(tn_last_readers_create(&readers, &m.cover), TN_OK);
    for (int32_t k = 0; k < 200; k++) {
      for (tn_val v = 1; v < GROUPS + 2; v++) check_value(&readers, &m, v);
      change_one_group(&readers, &m, &rng);
    }
    tn_last_readers_free(&readers);
    tn_graph_destroy(graph);
  }
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(readers_are_those_that_a_scan_finds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
