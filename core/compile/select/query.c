/* core/compile/select/query.c: shows a kernel its match and keeps the variants it offers. */
#include "core/compile/select/query.h"

#include <string.h>

#include "core/compile/select/recorded_choices.h"
#include "core/compile/select/tuner.h"
#include "core/graph/uses.h"
#include "core/plugin/handles.h"

/* ---- the match as the kernel sees it ---- */

static const tn_type **list_types(tn_arena *arena, const tn_graph *g, const tn_val *values, int32_t n) {
  const tn_type **types = tn_arena_alloc(arena, (size_t)n * sizeof *types);
  for (int32_t i = 0; types != NULL && i < n; i++)
    if (values[i] != 0) types[i] = g->types.v[values[i]];
  return types;
}

static tn_status describe_node(tn_arena *arena, const tn_graph *g, const tn_gnode *node, bool swapped,
                               tn_node *out) {
  const tn_type **in = list_types(arena, g, node->in, node->n_in);
  tn_type *results = tn_arena_alloc(arena, (size_t)node->n_out * sizeof *results);
  if (in == NULL || results == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < node->n_out; i++) results[i] = *tn_graph_type(g, node->first_out + i);
  if (swapped) {
    const tn_type *first = in[0];
    in[0] = in[1];
    in[1] = first;
  }
  *out = (tn_node){sizeof *out, node->n_in, node->n_out, node->op->item.name, node->attributes, in, results};
  return TN_OK;
}

static tn_status describe_nodes(tn_arena *arena, const tn_graph *g, const tn_candidate *c, tn_node *described,
                                tn_match_node *nodes) {
  int32_t number = c->n_in, operand = 0;
  for (int32_t i = 0; i < c->n_nodes; i++) {
    const tn_gnode *node = &g->nodes.v[c->nodes[i]];
    TN_TRY(describe_node(arena, g, node, c->swapped != NULL && c->swapped[i], &described[i]));
    nodes[i].node = &described[i];
    nodes[i].in = c->numbers + operand;
    nodes[i].first_out = number;
    operand += node->n_in;
    number += node->n_out;
  }
  return TN_OK;
}

static int32_t number_of(const tn_graph *g, const tn_candidate *c, const tn_match_node *nodes, tn_val value) {
  uint32_t maker = g->values.v[value].node;
  for (int32_t i = 0; i < c->n_nodes; i++)
    if (c->nodes[i] == maker) return nodes[i].first_out + g->values.v[value].result;
  return -1;
}

/* State, or a view of it. */
static bool is_state(const tn_graph *g, tn_val v) {
  while (v != 0) {
    const tn_gnode *node = &g->nodes.v[g->values.v[v].node];
    if (tn_node_kind_of(node) == TN_NODE_STATE) return true;
    if (tn_node_kind_of(node) != TN_NODE_VIEW) return false;
    v = node->in[0];
  }
  return false;
}

static uint8_t *mark_constant(tn_arena *arena, const tn_graph *g, const tn_target *target,
                              const tn_candidate *c) {
  uint8_t *constant = tn_arena_alloc(arena, (size_t)c->n_in);
  for (int32_t i = 0; constant != NULL && i < c->n_in; i++)
    constant[i] = target->constant_state && g->commits.n == 0 && is_state(g, c->in[i]);
  return constant;
}

static tn_status build_match(tn_arena *arena, const tn_graph *g, const tn_target *target,
                             const tn_candidate *c, tn_match **match) {
  tn_match *m = tn_arena_alloc(arena, sizeof *m);
  tn_match_node *nodes = tn_arena_alloc(arena, (size_t)c->n_nodes * sizeof *nodes);
  tn_node *described = tn_arena_alloc(arena, (size_t)c->n_nodes * sizeof *described);
  int32_t *out_number = tn_arena_alloc(arena, (size_t)c->n_out * sizeof *out_number);
  if (m == NULL || nodes == NULL || described == NULL || out_number == NULL) return TN_ENOMEM;
  TN_TRY(describe_nodes(arena, g, c, described, nodes));
  for (int32_t i = 0; i < c->n_out; i++) out_number[i] = number_of(g, c, nodes, c->out[i]);
  const tn_type **in = list_types(arena, g, c->in, c->n_in), **out = list_types(arena, g, c->out, c->n_out);
  uint8_t *constant = mark_constant(arena, g, target, c);
  if (in == NULL || out == NULL || constant == NULL) return TN_ENOMEM;
  *m = (tn_match){sizeof *m, c->n_in, c->n_out, c->n_nodes, in, out, out_number, nodes, constant};
  *match = m;
  return TN_OK;
}

/* ---- cost ---- */

static double moved_bytes(const tn_type *const *types, int32_t n) {
  double bytes = 0;
  for (int32_t i = 0; i < n; i++)
    if (types[i] != NULL) bytes += (double)tn_type_bytes(types[i]);
  return bytes;
}

static void cost_of(const tn_op *op, const tn_node *node, tn_cost *cost) {
  *cost = (tn_cost){.struct_size = sizeof *cost};
  if (op->cost != NULL) {
    op->cost(node, cost);
    return;
  }
  cost->bytes = moved_bytes(node->in, node->n_in);
  for (int32_t i = 0; i < node->n_out; i++) {
    cost->flops += (double)tn_type_count(&node->out[i]);
    cost->bytes += (double)tn_type_bytes(&node->out[i]);
  }
}

tn_status tn_node_cost(tn_arena *arena, const tn_graph *graph, const tn_gnode *node, tn_cost *cost) {
  tn_node described;
  TN_TRY(describe_node(arena, graph, node, false, &described));
  cost_of(node->op, &described, cost);
  return TN_OK;
}

/* Inside a match nothing moves: only what crosses its border counts. */
static tn_cost match_cost(const tn_graph *g, const tn_candidate *c, const tn_match *m) {
  tn_cost total = {.struct_size = sizeof total}, one = total;
  for (int32_t i = 0; i < m->n_nodes; i++) {
    cost_of(g->nodes.v[c->nodes[i]].op, m->nodes[i].node, &one);
    total.flops += one.flops;
  }
  total.bytes = m->n_nodes == 1 ? one.bytes : moved_bytes(m->in, m->n_in) + moved_bytes(m->out, m->n_out);
  return total;
}

/* Where a kernel does not say: orders of magnitude of one core of a processor, good enough to rank
 * what moves or computes more behind what does less. */
static double estimate_s(const tn_target *target, tn_cost cost) {
  double threads = target->properties.threads > 1 ? target->properties.threads : 1;
  return 1e-6 + cost.flops / (2e10 * threads) + cost.bytes / 1e10;
}

void *tn_target_self(const tn_target *target, const char *family) {
  for (int32_t i = 0; target->selves != NULL && i < target->n_families; i++)
    if (strcmp(target->families[i], family) == 0) return target->selves[i];
  return NULL;
}

/* ---- variants ---- */

enum { MOST_RIVALS = 16 };

typedef struct collector {
  tn_query_host host;
  tn_arena *arena;
  const tn_candidate *candidate;
  double estimate_s;
  const tn_replay_choice *wanted; /* what an earlier compilation chose; NULL: it did not choose this kernel */
  tn_choice *variants;
  int32_t n, room, best; /* best: the cheapest, or the one that an earlier compilation chose */
  bool replayed;
  tn_status status;
} collector;

static const char *wrong_rule(const tn_operand_layout *rules, int32_t n, const tn_match *m) {
  for (int32_t i = 0; rules != NULL && i < n; i++) {
    if (rules[i].rule < TN_LAYOUT_ROW_MAJOR || rules[i].rule > TN_LAYOUT_PREFERRED)
      return "an unknown layout rule";
    if (rules[i].rule == TN_LAYOUT_SAME_AS &&
        (rules[i].same_as < 0 || rules[i].same_as >= m->n_in + m->n_out))
      return "a layout as that of an operand which is not there";
    if (rules[i].rule == TN_LAYOUT_FIXED && !rules[i].layout.set) return "a fixed layout that is unset";
  }
  return NULL;
}

static const char *wrong_variant(const tn_kernel *k, const tn_variant *v, const tn_match *m) {
  const char *wrong = wrong_rule(v->in, m->n_in, m);
  if (wrong == NULL) wrong = wrong_rule(v->out, m->n_out, m);
  if (wrong != NULL) return wrong;
  if (v->workspace_bytes < 0 || v->prepared_bytes < 0 || v->folded_bytes < 0)
    return "a negative number of bytes";
  if (v->folded_bytes > 0 && k->fold == NULL) return "folded memory, but the kernel has no fold";
  if (v->n_inplace < 0 || (v->n_inplace > 0 && v->inplace == NULL))
    return "in-place pairs that are not there";
  for (int32_t i = 0; i < v->n_inplace; i++)
    if (v->inplace[i][0] < 0 || v->inplace[i][0] >= m->n_in || v->inplace[i][1] < 0 ||
        v->inplace[i][1] >= m->n_out)
      return "an in-place pair of an operand or result that is not there";
  return NULL;
}

/* NULL rules mean row-major and stay NULL. */
static tn_status copy_rules(tn_arena *arena, const tn_operand_layout *rules, int32_t n,
                            const tn_operand_layout **copy) {
  *copy = rules == NULL ? NULL : tn_arena_copy(arena, rules, (size_t)n * sizeof *rules);
  return rules != NULL && *copy == NULL ? TN_ENOMEM : TN_OK;
}

static tn_status copy_variant(tn_arena *arena, const tn_match *m, const tn_variant *v, double cost_s,
                              tn_choice *choice) {
  *choice = (tn_choice){.id = v->id,
                        .workspace_bytes = v->workspace_bytes,
                        .prepared_bytes = v->prepared_bytes,
                        .folded_bytes = v->folded_bytes,
                        .n_inplace = v->n_inplace,
                        .cost_s = cost_s,
                        .measured = false,
                        .deterministic = v->deterministic != 0,
                        .capturable = v->capturable != 0};
  choice->name = tn_arena_strdup(arena, v->name != NULL ? v->name : "");
  choice->inplace = tn_arena_copy(arena, v->inplace, (size_t)v->n_inplace * sizeof *v->inplace);
  choice->in_layout = tn_arena_alloc(arena, (size_t)m->n_in * sizeof *choice->in_layout);
  choice->out_layout = tn_arena_alloc(arena, (size_t)m->n_out * sizeof *choice->out_layout);
  if (choice->name == NULL || choice->inplace == NULL || choice->in_layout == NULL ||
      choice->out_layout == NULL)
    return TN_ENOMEM;
  TN_TRY(copy_rules(arena, v->in, m->n_in, &choice->in_rule));
  return copy_rules(arena, v->out, m->n_out, &choice->out_rule);
}

/* Room for one more; what was there before stays in the arena, unused. */
static tn_status make_room(collector *c) {
  if (c->n < c->room) return TN_OK;
  int32_t room = c->room == 0 ? 2 : 2 * c->room;
  tn_choice *more = tn_arena_alloc(c->arena, (size_t)room * sizeof *more);
  if (more == NULL) return TN_ENOMEM;
  if (c->n > 0) memcpy(more, c->variants, (size_t)c->n * sizeof *more);
  c->variants = more;
  c->room = room;
  return TN_OK;
}

static tn_status keep_variant(collector *c, const tn_variant *v) {
  double cost_s = v->cost_s > 0 ? v->cost_s : c->estimate_s;
  TN_TRY(make_room(c));
  TN_TRY(copy_variant(c->arena, c->candidate->match, v, cost_s, &c->variants[c->n]));
  if (c->wanted != NULL && c->wanted->variant == v->id && !c->replayed) {
    c->best = c->n;
    c->replayed = true;
  } else if (!c->replayed && cost_s < c->variants[c->best].cost_s) {
    c->best = c->n;
  }
  c->n++;
  return TN_OK;
}

/* ---- measured ---- */

/* What is merely preferred binds nobody. */
static bool same_rules(const tn_operand_layout *a, const tn_operand_layout *b, int32_t n) {
  if (a == NULL || b == NULL) return a == b;
  for (int32_t i = 0; i < n; i++) {
    bool preferred = a[i].rule == TN_LAYOUT_PREFERRED && b[i].rule == TN_LAYOUT_PREFERRED;
    if (!preferred && memcmp(&a[i], &b[i], sizeof *a) != 0) return false;
  }
  return true;
}

/* Whether another variant wants its operands like this one, so that speed alone is between them. */
static bool has_rival(const collector *c, const tn_choice *choice) {
  const tn_match *m = c->candidate->match;
  for (int32_t i = 0; i < c->n; i++) {
    const tn_choice *other = &c->variants[i];
    if (other != choice && same_rules(choice->in_rule, other->in_rule, m->n_in) &&
        same_rules(choice->out_rule, other->out_rule, m->n_out))
      return true;
  }
  return false;
}

/* Rivals are measured together or not at all: a time and an estimate do not compare. */
static void measure_variants(collector *c, tn_tuner *tuner) {
  const tn_candidate *candidate = c->candidate;
  double seconds[MOST_RIVALS];
  if (c->replayed || c->n < 2 || c->n > MOST_RIVALS) return;
  for (int32_t i = 0; i < c->n; i++) {
    seconds[i] = c->variants[i].cost_s;
    if (has_rival(c, &c->variants[i]) &&
        !tuner->time(tuner, candidate->kernel->entry, candidate->match, &c->variants[i], &seconds[i]))
      return;
  }
  for (int32_t i = 0; i < c->n; i++) {
    c->variants[i].cost_s = seconds[i];
    c->variants[i].measured = has_rival(c, &c->variants[i]);
    if (seconds[i] < c->variants[c->best].cost_s) c->best = i;
  }
}

/* tn_add_variant ends here. A tie goes to the variant that came first. */
static void take_variant(tn_query *q, const tn_variant *given) {
  collector *c = (collector *)q;
  tn_variant v = {0};
  if (c->status != TN_OK) return;
  memcpy(&v, given, given->struct_size < sizeof v ? given->struct_size : sizeof v);
  const char *wrong = wrong_variant(c->candidate->kernel->kernel, &v, c->candidate->match);
  c->status = wrong == NULL
                  ? keep_variant(c, &v)
                  : tn_failf(q, TN_EINVAL, "variant \"%s\" promises %s", v.name != NULL ? v.name : "", wrong);
}

/* The reason of a kernel that declines; its text is in the handle. */
static tn_status declined(tn_env *env, tn_arena *arena, tn_candidate *candidate, const char *reason) {
  candidate->reason = tn_arena_strdup(arena, reason[0] != '\0' ? reason : "it gave no reason");
  tn_error_clear(env);
  return candidate->reason == NULL ? TN_ENOMEM : TN_OK;
}

static tn_status kernel_failed(tn_env *env, const tn_candidate *candidate, tn_status status) {
  const tn_entry *entry = candidate->kernel->entry;
  return tn_wrap(env, status, "kernel %s of plugin %s", entry->item->name, entry->plugin);
}

/* Whether a device takes a launch of another family's kernel is its backend's to say. */
static tn_status ask_backend(tn_env *env, const tn_target *target, const tn_candidate *candidate) {
  const tn_backend *backend = target->backend;
  if (backend == NULL || backend->takes == NULL || candidate->kernel->rank < target->n_own) return TN_OK;
  return backend->takes(env, target->self, candidate->kernel->kernel, candidate->match);
}

static const tn_replay_choice *find_wanted(const tn_graph *graph, const tn_target *target,
                                           const tn_candidate *c) {
  if (target->replay == NULL) return NULL;
  const tn_replay_choice *choice = tn_replay_find(target->replay, tn_replay_key(graph, c->nodes, c->n_nodes));
  return choice != NULL && tn_text_equal(choice->kernel, c->kernel->entry->item->name) ? choice : NULL;
}

tn_status tn_candidate_query(tn_env *env, tn_arena *arena, const tn_graph *graph, const tn_target *target,
                             tn_candidate *candidate) {
  tn_match *match = NULL;
  candidate->reason = NULL;
  TN_TRY(build_match(arena, graph, target, candidate, &match));
  candidate->match = match;
  candidate->cost = match_cost(graph, candidate, match);
  int32_t rank = candidate->kernel->rank;
  void *self = target->selves != NULL ? target->selves[rank] : NULL;
  collector c = {.host = {{*env, sizeof(tn_query), match, &target->properties, self}, take_variant},
                 .arena = arena,
                 .candidate = candidate,
                 .wanted = find_wanted(graph, target, candidate),
                 .estimate_s = estimate_s(target, candidate->cost)};
  tn_error_clear(env);
  tn_status status = ask_backend(env, target, candidate);
  if (status == TN_OK) status = candidate->kernel->kernel->query(&c.host.pub);
  if (c.status != TN_OK) return kernel_failed(env, candidate, c.status);
  if (status == TN_EUNSUPPORTED) return declined(env, arena, candidate, tn_error_text(env));
  if (status != TN_OK) return kernel_failed(env, candidate, status);
  if (c.n == 0) return declined(env, arena, candidate, "it offered no variant");
  if (target->tuner != NULL) measure_variants(&c, target->tuner);
  candidate->choice = c.variants[c.best];
  /* what was chosen before is not chosen anew */
  candidate->variants = c.replayed ? &c.variants[c.best] : c.variants;
  candidate->n_variants = c.replayed ? 1 : c.n;
  candidate->replayed = c.replayed;
  return TN_OK;
}
