/* core/graph/text/print.c: prints graphs in the text form of graph.h. */
#include <inttypes.h>

#include "core/config/options/options.h"
#include "core/graph/hash_index.h"
#include "core/graph/text/lexer.h"
#include "core/graph/text/print.h"
#include "core/graph/input_state.h"

/* Marks the values that print by name: the first value of each name that needs no quotes. */
static tn_status printer_find_named(const tn_graph *g, bool *named) {
  tn_hash_index index = tn_hash_index_new(g->env);
  tn_status status = TN_OK;
  for (size_t v = 1; v < g->values.n && status == TN_OK; v++) {
    const char *name = g->values.v[v].name;
    if (name == NULL || !tn_lexer_plain(name)) continue;
    uint64_t hash = tn_hash_text(TN_HASH_START, name);
    size_t probe = 0;
    int64_t other;
    while ((other = tn_hash_index_next(&index, hash, &probe)) != TN_HASH_INDEX_NONE)
      if (tn_text_equal(g->values.v[other].name, name)) break;
    named[v] = other == TN_HASH_INDEX_NONE;
    if (named[v]) status = tn_hash_index_add(&index, hash, (uint32_t)v);
  }
  tn_hash_index_free(&index);
  return status;
}

typedef struct printer {
  const tn_graph *g;
  const bool *named; /* the values that print by name; NULL: no value does */
  tn_text *text;
} printer;

static void printer_value(const printer *p, tn_val v) {
  if (v == 0)
    tn_text_add(p->text, "_");
  else if (p->named != NULL && v < p->g->values.n && p->named[v])
    tn_text_add(p->text, p->g->values.v[v].name);
  else
    tn_text_addf(p->text, "%%%" PRIu32, v);
}

/* "{0, 2, 3, 1}" or "{0, 1, 2, 3; 1:16}" */
static void printer_layout(tn_text *text, const tn_layout *layout, int32_t rank) {
  if (!layout->set) return;
  tn_text_add(text, "{");
  for (int32_t i = 0; i < rank; i++) tn_text_addf(text, "%s%d", i > 0 ? ", " : "", layout->order[i]);
  for (int32_t i = 0; i < layout->n_blocks && i < TN_MAX_BLOCKS; i++)
    tn_text_addf(text, "%s%d:%d", i > 0 ? ", " : "; ", layout->block[i].dim, layout->block[i].size);
  tn_text_add(text, "}");
}

static void printer_result(const printer *p, tn_val v) {
  char type[TN_TYPE_TEXT];
  printer_value(p, v);
  if (v >= p->g->values.n) return; /* the graph is broken; the text is for a message */
  const tn_gvalue *value = &p->g->values.v[v];
  tn_text_addf(p->text, ": %s", tn_type_format(&value->type, type));
  printer_layout(p->text, &value->layout, value->type.rank);
}

static void printer_options(const printer *p, const tn_op *op, const void *attributes, const char *before) {
  tn_text options = tn_text_new(p->text->handle);
  tn_options_print(&options, &op->item, attributes);
  if (options.n > 0) tn_text_addf(p->text, "%s%s", before, options.v);
  if (options.failed) p->text->failed = true;
  tn_text_free(&options);
}

static void printer_arguments(const printer *p, const tn_gnode *node) {
  int32_t n = node->n_in;
  while (n > 0 && node->in[n - 1] == 0) n--; /* absent trailing operands are omitted */
  tn_text_add(p->text, "(");
  for (int32_t i = 0; i < n; i++) {
    if (i > 0) tn_text_add(p->text, ", ");
    printer_value(p, node->in[i]);
  }
  printer_options(p, node->op, node->attributes, n > 0 ? ", " : "");
  tn_text_add(p->text, ")");
}

static void printer_node(const printer *p, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_out; i++) {
    if (i > 0) tn_text_add(p->text, ", ");
    printer_result(p, node->first_out + (tn_val)i);
  }
  tn_text_addf(p->text, "%s%s", node->n_out > 0 ? " = " : "", node->op->item.name);
  printer_arguments(p, node);
  if (node->layer[0] == '\0') return;
  tn_text_add(p->text, " in ");
  tn_lexer_print_name(p->text, node->layer);
}

void tn_print_node(const tn_graph *g, const bool *named, const tn_gnode *node, tn_text *text) {
  printer p = {g, named, text};
  printer_node(&p, node);
}

static void printer_commit(const printer *p, const tn_gcommit *commit) {
  tn_text_add(p->text, "commit ");
  tn_lexer_print_name(p->text, commit->path);
  tn_text_add(p->text, " = ");
  printer_value(p, commit->value);
  if (commit->predicate != 0) tn_text_add(p->text, " if ");
  if (commit->predicate != 0) printer_value(p, commit->predicate);
  tn_text_add(p->text, "\n");
}

static void printer_output(const printer *p, const tn_goutput *output) {
  tn_text_add(p->text, "output ");
  tn_lexer_print_name(p->text, output->name);
  tn_text_add(p->text, " = ");
  printer_value(p, output->value);
  tn_text_add(p->text, "\n");
}

/* States that are registered but not read, such as those that an init program only writes. */
static void printer_unread(const printer *p, const tn_gstate *state) {
  char type[TN_TYPE_TEXT];
  if (state->value != 0) return;
  tn_state_attributes a = {state->path, state->what - 1, state->init, state->type};
  tn_text_addf(p->text, "unread %s = state(", tn_type_format(&state->type, type));
  printer_options(p, &tn_op_state, &a, "");
  tn_text_add(p->text, ")\n");
}

static void printer_graph(const printer *p) {
  const tn_graph *g = p->g;
  for (size_t i = 0; i < g->states.n; i++) printer_unread(p, &g->states.v[i]);
  for (size_t i = 0; i < g->nodes.n; i++) {
    printer_node(p, &g->nodes.v[i]);
    tn_text_add(p->text, "\n");
  }
  for (size_t i = 0; i < g->commits.n; i++) printer_commit(p, &g->commits.v[i]);
  for (size_t i = 0; i < g->outputs.n; i++) printer_output(p, &g->outputs.v[i]);
}

/* For each value, whether it prints by name; the caller's (tn_release), on failure too. */
static tn_status printer_find_names(const tn_graph *g, bool **named) {
  *named = tn_alloc(g->env, tn_size_mul(g->values.n, sizeof **named));
  return *named != NULL ? printer_find_named(g, *named) : TN_ENOMEM;
}

tn_status tn_graph_print(const tn_graph *g, tn_text *text) {
  bool *named = NULL;
  tn_status status = printer_find_names(g, &named);
  printer p = {g, named, text};
  if (status == TN_OK) printer_graph(&p);
  tn_release(g->env, named);
  if (status == TN_OK && text->failed)
    return tn_failf(g->env, TN_ENOMEM, "out of memory while printing a graph");
  return status;
}

tn_status tn_graph_hash(const tn_graph *g, uint64_t *hash) {
  tn_text text = tn_text_new(g->env);
  tn_status status = tn_graph_print(g, &text);
  if (status == TN_OK) *hash = tn_hash_bytes(TN_HASH_START, text.v, text.n);
  tn_text_free(&text);
  return status;
}
