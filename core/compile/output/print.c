/* core/compile/output/print.c: assignments, covers and programs as text. */
#include "core/compile/output/print.h"

#include <inttypes.h>
#include <string.h>

#include "core/compile/kernels/loop_kernel.h"

/* ---- covers ---- */

/* Adds the text up to and including the next newline; returns the rest. */
static const char *add_text_line(tn_text *text, const char *at) {
  const char *end = strchr(at, '\n');
  size_t n = end == NULL ? strlen(at) : (size_t)(end - at) + 1;
  tn_text_addn(text, at, n);
  return at + n;
}

/* Groups, then constants. */
static const tn_group *group_or_constant(const tn_cover *cover, size_t index) {
  return index < cover->groups.n ? &cover->groups.v[index] : &cover->constants.v[index - cover->groups.n];
}

static void add_group_line(const tn_cover *cover, int32_t index, tn_text *text) {
  const tn_group *g = group_or_constant(cover, (size_t)index);
  if ((size_t)index < cover->groups.n)
    tn_text_addf(text, "# %" PRId32 ": %s", index, g->entry->item->name);
  else
    tn_text_addf(text, "# once: %s", g->entry->item->name);
  if (g->choice.name[0] != '\0') tn_text_addf(text, " \"%s\"", g->choice.name);
  if (g->n_nodes > 1) tn_text_addf(text, ", %" PRId32 " nodes", g->n_nodes);
  tn_text_add(text, "\n");
}

/* Per node, the first of the groups of which it is the last node; per group, the next such group. */
static tn_status find_group_ends(const tn_cover *cover, int32_t **first, int32_t **next) {
  size_t nodes = cover->graph->nodes.n, groups = cover->groups.n + cover->constants.n;
  *first = tn_alloc(cover->env, (nodes + groups) * sizeof **first);
  if (*first == NULL) return TN_ENOMEM;
  *next = *first + nodes;
  for (size_t i = 0; i < nodes; i++) (*first)[i] = -1;
  for (size_t i = groups; i-- > 0;) {
    const tn_group *g = group_or_constant(cover, i);
    uint32_t last = 0;
    for (int32_t k = 0; k < g->n_nodes; k++)
      if (g->nodes[k] > last) last = g->nodes[k];
    (*next)[i] = (*first)[last];
    (*first)[last] = (int32_t)i;
  }
  return TN_OK;
}

/* The graph's text has a line for each state that is not read, then one for each node. */
static void add_cover_text(const tn_cover *cover, const char *graph, const int32_t *first,
                           const int32_t *next, tn_text *text) {
  const char *at = graph;
  for (size_t i = 0; i < cover->graph->states.n; i++)
    if (cover->graph->states.v[i].value == 0) at = add_text_line(text, at);
  for (size_t i = 0; i < cover->graph->nodes.n; i++) {
    at = add_text_line(text, at);
    for (int32_t g = first[i]; g >= 0; g = next[g]) add_group_line(cover, g, text);
  }
  tn_text_add(text, at);
}

tn_status tn_cover_print(const tn_cover *cover, tn_text *text) {
  tn_text graph = tn_text_new(cover->env);
  int32_t *first = NULL, *next = NULL;
  tn_status status = tn_graph_print(cover->graph, &graph);
  if (status == TN_OK) status = find_group_ends(cover, &first, &next);
  if (status == TN_OK) add_cover_text(cover, graph.v != NULL ? graph.v : "", first, next, text);
  tn_release(cover->env, first);
  tn_text_free(&graph);
  if (status == TN_OK && text->failed)
    return tn_failf(cover->env, TN_ENOMEM, "out of memory while printing a cover");
  return status;
}

/* ---- assignments ---- */

static void add_fallback_line(const tn_assignment *a, size_t node, tn_text *text) {
  if (a->round.fallback[node] == NULL) return;
  tn_text_addf(text, "# falls back to %s: %s\n", a->fallback->target.families[0], a->round.fallback[node]);
}

tn_status tn_assignment_print(const tn_assignment *a, tn_text *text) {
  tn_text graph = tn_text_new(a->env);
  tn_status status = tn_graph_print(a->graph, &graph);
  const char *at = graph.v != NULL ? graph.v : "";
  for (size_t i = 0; status == TN_OK && i < a->graph->states.n; i++)
    if (a->graph->states.v[i].value == 0) at = add_text_line(text, at);
  for (size_t i = 0; status == TN_OK && i < a->graph->nodes.n; i++) {
    at = add_text_line(text, at);
    add_fallback_line(a, i, text);
  }
  if (status == TN_OK) tn_text_add(text, at);
  tn_text_free(&graph);
  if (status == TN_OK && text->failed)
    return tn_failf(a->env, TN_ENOMEM, "out of memory while printing an assignment");
  return status;
}

/* ---- programs ---- */

const char *tn_base_name(int32_t base) {
  static const char *const names[] = {"none",   "arena", "region",    "slot",
                                      "output", "host",  "constants", "offload"};
  return names[base];
}

static void add_location(const tn_program *p, const tn_location *location, tn_text *text) {
  bool region = location->base == TN_BASE_REGION;
  tn_text_addf(text, " @ %s+%" PRId64, region ? p->regions[location->region] : tn_base_name(location->base),
               location->offset);
}

static void add_value_name(const tn_program *p, tn_val v, tn_text *text) {
  const char *name = v == 0 ? "_" : p->cover->graph->values.v[v].name;
  if (name != NULL)
    tn_text_add(text, name);
  else
    tn_text_addf(text, "%%%" PRIu32, v);
}

static void add_operand_text(const tn_program *p, tn_val v, const tn_operand *o, bool locations,
                             tn_text *text) {
  add_value_name(p, v, text);
  if (v != 0 && locations) add_location(p, &o->location, text);
}

/* Returns whether there are any. */
static bool add_awaits(const char *word, const tn_awaits *awaits, tn_text *text) {
  bool any = false;
  for (int32_t role = TN_STREAMS - 1; role > TN_STREAM_COMPUTE; role--) {
    if (awaits->of[role] < 0) continue;
    tn_text_addf(text, "%s %" PRId32, any ? "," : word, awaits->of[role]);
    any = true;
  }
  return any;
}

static void add_step_line(const tn_program *p, int32_t index, bool locations, tn_text *text) {
  const tn_step *step = &p->steps[index];
  const tn_group *g = step->group;
  if (index < p->n_steps)
    tn_text_addf(text, "%" PRId32 ": ", index);
  else
    tn_text_add(text, "once: ");
  for (int32_t i = 0; i < step->n_out; i++) {
    if (i > 0) tn_text_add(text, ", ");
    add_operand_text(p, g->out[i], &step->out[i], locations, text);
  }
  tn_text_addf(text, " = %s", g->entry->item->name);
  if (g->choice.name[0] != '\0') tn_text_addf(text, " \"%s\"", g->choice.name);
  tn_text_add(text, "(");
  for (int32_t i = 0; i < step->n_in; i++) {
    if (i > 0) tn_text_add(text, ", ");
    add_operand_text(p, g->in[i], &step->in[i], locations, text);
  }
  tn_text_add(text, ")");
  if (locations && g->choice.workspace_bytes > 0)
    tn_text_addf(text, " workspace %" PRId64 " @ %s+%" PRId64, g->choice.workspace_bytes,
                 g->fallback != NULL ? "host" : "arena", step->workspace_offset);
  if (locations) add_awaits(" after", &step->awaits, text);
  tn_text_add(text, "\n");
}

/* "copy out x" */
static void add_transfer_lines(const tn_program *p, bool in, const tn_transfer *transfers, int32_t n,
                               bool locations, tn_text *text) {
  for (int32_t i = 0; i < n; i++) {
    const tn_transfer *t = &transfers[i];
    tn_text_add(text, in ? "copy in " : "copy out ");
    add_value_name(p, t->value, text);
    if (locations) {
      add_location(p, &t->device, text);
      tn_text_addf(text, " %s host+%" PRId64 ", %" PRId64 " bytes", in ? "<-" : "->", t->host, t->bytes);
    }
    tn_text_add(text, "\n");
  }
}

static void add_segment_lines(const tn_program *p, const tn_segment *s, bool locations, tn_text *text) {
  add_transfer_lines(p, false, s->out, s->n_out, locations, text);
  if (s->placed && s->reads >= 0)
    tn_text_addf(text, "host after %" PRId32 "\n", s->reads);
  else if (s->fallback)
    tn_text_add(text, s->placed ? "host\n" : "wait\n");
  for (int32_t i = s->first; i < s->first + s->n; i++) add_step_line(p, i, locations, text);
  if (locations && add_awaits("await", &s->awaits, text)) tn_text_add(text, "\n");
  add_transfer_lines(p, true, s->in, s->n_in, locations, text);
}

static void add_binding_lines(const char *what, const tn_binding *bindings, int32_t n, bool locations,
                              tn_text *text) {
  char type[TN_TYPE_TEXT];
  for (int32_t i = 0; i < n; i++) {
    tn_text_addf(text, "%s %s: %s", what, bindings[i].name, tn_type_format(&bindings[i].type, type));
    if (locations)
      tn_text_addf(text, " @ %s+%" PRId64, what[0] == 'i' ? "slot" : "output", bindings[i].offset);
    tn_text_add(text, "\n");
  }
}

/* The programs of loops, each of which is launched as often as the loop has steps. */
static tn_status add_bodies(const tn_program *p, bool locations, tn_text *text) {
  for (int32_t i = 0; i < tn_program_all_steps(p); i++) {
    const tn_step *step = &p->steps[i];
    if (step->body == NULL) continue;
    const tn_loop_attributes *a = step->group->match->nodes[0].node->attributes;
    tn_text_addf(text, "# launch %" PRId32 ", %s: %" PRId64 " steps of\n", i, step->name, a->steps);
    TN_TRY(tn_program_print(step->body->program, locations, text));
  }
  return TN_OK;
}

tn_status tn_program_print(const tn_program *p, bool locations, tn_text *text) {
  tn_text_addf(text, "program %s: %" PRId32 " launches", p->name, p->n_steps);
  if (locations)
    tn_text_addf(text,
                 ", arena %" PRId64 " (at least %" PRId64 "), slot %" PRId64 ", output %" PRId64
                 ", kept %" PRId64,
                 p->arena_bytes, p->bound_bytes, p->slot_bytes, p->output_bytes, p->prepared_bytes);
  if (locations && p->constant_bytes > 0) tn_text_addf(text, ", constants %" PRId64, p->constant_bytes);
  if (locations && p->host_bytes > 0) tn_text_addf(text, ", host %" PRId64, p->host_bytes);
  tn_text_add(text, "\n");
  add_binding_lines("input", p->inputs, p->n_inputs, locations, text);
  add_binding_lines("output", p->outputs, p->n_outputs, locations, text);
  for (int32_t i = p->n_steps; i < tn_program_all_steps(p); i++) add_step_line(p, i, locations, text);
  for (int32_t i = 0; i < p->n_segments; i++) add_segment_lines(p, &p->segments[i], locations, text);
  TN_TRY(add_bodies(p, locations, text));
  if (text->failed) return tn_failf(p->env, TN_ENOMEM, "out of memory while printing a program");
  return TN_OK;
}
