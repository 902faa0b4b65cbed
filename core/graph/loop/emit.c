/* core/graph/loop/emit.c: takes the body of a loop out of a graph, and emits the loop. */
#include <stdio.h>
#include <string.h>

#include "core/graph/input_state.h"
#include "core/graph/loop/loop.h"

void tn_loop_parts_free(const tn_env *env, tn_loop_parts *parts) {
  tn_vec_free(env, &parts->sequences);
  tn_vec_free(env, &parts->before);
  tn_vec_free(env, &parts->states);
  tn_vec_free(env, &parts->constants);
  tn_vec_free(env, &parts->outputs);
  tn_vec_free(env, &parts->next);
}

/* ---- the values that the body reads ---- */

typedef struct loop_body {
  const tn_loop_parts *parts;
  const tn_graph *from;
  bool *reached; /* per value of `from`: the outputs and next states depend on it */
  bool *given;   /* per value: an operand */
} loop_body;

static void body_mark_given(const loop_body *l, const tn_loop_values *values) {
  for (size_t i = 0; i < values->n; i++) l->given[values->v[i].inner] = true;
}

static void body_reach(loop_body *l, uint32_t first) {
  const tn_graph *g = l->from;
  for (size_t i = g->nodes.n; i-- > 0;) {
    const tn_gnode *node = &g->nodes.v[i];
    bool reached = false;
    for (int32_t k = 0; k < node->n_out; k++)
      reached |= l->reached[node->first_out + (tn_val)k] && !l->given[node->first_out + (tn_val)k];
    for (int32_t k = 0; reached && i >= first && k < node->n_in; k++)
      if (node->in[k] != 0) l->reached[node->in[k]] = true;
  }
}

/* Values from nodes before `first` are read and not followed. */
static tn_status body_start(loop_body *l, const tn_loop_parts *parts, uint32_t first) {
  size_t n = parts->from->values.n;
  *l = (loop_body){.parts = parts, .from = parts->from};
  l->reached = tn_alloc(parts->from->env, tn_size_mul(n, 2));
  if (l->reached == NULL) return TN_ENOMEM;
  l->given = l->reached + n;
  body_mark_given(l, &parts->sequences);
  body_mark_given(l, &parts->before);
  body_mark_given(l, &parts->states);
  body_mark_given(l, &parts->constants);
  for (size_t i = 0; i < parts->outputs.n; i++) l->reached[parts->outputs.v[i]] = true;
  for (size_t i = 0; i < parts->next.n; i++) l->reached[parts->next.v[i]] = true;
  body_reach(l, first);
  return TN_OK;
}

static void body_end(loop_body *l) { tn_release(l->from->env, l->reached); }

tn_status tn_loop_capture(tn_loop_parts *parts, uint32_t first) {
  const tn_graph *g = parts->from;
  loop_body l;
  tn_status status = body_start(&l, parts, first);
  for (tn_val v = 1; status == TN_OK && v < g->values.n; v++) {
    bool outside = g->values.v[v].node < first || tn_op_is_input_or_state(tn_graph_maker(g, v)->op);
    const tn_loop_value constant = {.inner = v, .outer = v};
    if (l.reached[v] && !l.given[v] && outside) status = tn_vec_push(g->env, &parts->constants, constant);
  }
  body_end(&l);
  return status;
}

/* ---- the body as a graph of its own ---- */

typedef struct body_writer {
  loop_body l;
  tn_rewrite r;
  tn_graph *to;
  TN_VEC(tn_val) operands; /* of the loop, as far as the body reads them */
  tn_loop_attributes a;
} body_writer;

/* ---- parts of a body that is a graph of its own ---- */

static tn_val parts_input(tn_graph *body, char letter, size_t number, const tn_type *type) {
  char name[24];
  snprintf(name, sizeof name, "%c%zu", letter, number);
  return letter == 'c' ? tn_graph_state(body, name, type, TN_STATE_BUFFER, "", "")
                       : tn_graph_input(body, name, type);
}

static tn_status parts_add_value(tn_loop_values *values, const tn_env *env, tn_loop_value value) {
  return value.inner != 0 ? tn_vec_push(env, values, value) : TN_ENOMEM;
}

static tn_status parts_add_operands(tn_build *b, tn_graph *body, const tn_loop_attributes *a,
                                    const tn_val *in, int32_t n_in, tn_loop_parts *p) {
  size_t number = 0;
  int32_t i = 0;
  for (int64_t k = 0; k < a->sequences; k++, i++) {
    const tn_type type = tn_loop_step_type(tn_val_type(b, in[i]));
    TN_TRY(parts_add_value(&p->sequences, &b->env,
                           (tn_loop_value){parts_input(body, 'x', number++, &type), in[i], 0}));
  }
  for (int64_t k = 0; k < a->before; k++, i += 2)
    TN_TRY(parts_add_value(
        &p->before, &b->env,
        (tn_loop_value){parts_input(body, 'p', number++, tn_val_type(b, in[i])), in[i], in[i + 1]}));
  for (int64_t k = 0; k < a->states; k++, i++)
    TN_TRY(
        parts_add_value(&p->states, &b->env,
                        (tn_loop_value){parts_input(body, 'h', number++, tn_val_type(b, in[i])), in[i], 0}));
  for (number = 0; i < n_in; i++)
    TN_TRY(
        parts_add_value(&p->constants, &b->env,
                        (tn_loop_value){parts_input(body, 'c', number++, tn_val_type(b, in[i])), in[i], 0}));
  return TN_OK;
}

tn_status tn_loop_parts_of(tn_build *b, tn_graph *body, const tn_loop_attributes *a, const tn_val *in,
                           int32_t n_in, tn_loop_parts *p) {
  *p =
      (tn_loop_parts){.from = body, .steps = a->steps, .reverse = a->reverse, .stacked = (int32_t)a->stacked};
  TN_TRY(parts_add_operands(b, body, a, in, n_in, p));
  for (size_t i = 0; i < body->outputs.n; i++) {
    tn_val v = body->outputs.v[i].value;
    TN_TRY(i < (size_t)a->outputs ? tn_vec_push(body->env, &p->outputs, v)
                                  : tn_vec_push(body->env, &p->next, v));
  }
  return TN_OK;
}

/* ---- writing the body ---- */

static tn_status writer_keep(body_writer *w, tn_val operand) {
  return tn_vec_push(w->to->env, &w->operands, operand);
}

static tn_status writer_add_input(body_writer *w, char letter, const tn_loop_value *value) {
  tn_val v = parts_input(w->to, letter, w->to->inputs.n, tn_graph_type(w->l.from, value->inner));
  w->r.map[value->inner] = v;
  return v != 0 ? TN_OK : TN_ENOMEM;
}

static tn_status writer_add_constant(body_writer *w, const tn_loop_value *value) {
  tn_val v = parts_input(w->to, 'c', w->to->states.n, tn_graph_type(w->l.from, value->inner));
  w->r.map[value->inner] = v;
  return v != 0 ? writer_keep(w, value->outer) : TN_ENOMEM;
}

static tn_status writer_add_operands(body_writer *w) {
  const tn_loop_parts *p = w->l.parts;
  for (size_t i = 0; i < p->sequences.n; i++) {
    if (!w->l.reached[p->sequences.v[i].inner]) continue;
    w->a.sequences++;
    TN_TRY(writer_add_input(w, 'x', &p->sequences.v[i]));
    TN_TRY(writer_keep(w, p->sequences.v[i].outer));
  }
  for (size_t i = 0; i < p->before.n; i++) {
    if (!w->l.reached[p->before.v[i].inner]) continue;
    w->a.before++;
    TN_TRY(writer_add_input(w, 'p', &p->before.v[i]));
    TN_TRY(writer_keep(w, p->before.v[i].outer));
    TN_TRY(writer_keep(w, p->before.v[i].stack));
  }
  for (size_t i = 0; i < p->states.n; i++) {
    TN_TRY(writer_add_input(w, 'h', &p->states.v[i]));
    TN_TRY(writer_keep(w, p->states.v[i].outer));
  }
  for (size_t i = 0; i < p->constants.n; i++)
    if (w->l.reached[p->constants.v[i].inner]) TN_TRY(writer_add_constant(w, &p->constants.v[i]));
  return TN_OK;
}

static bool writer_reaches(const body_writer *w, const tn_gnode *node) {
  bool reached = false;
  for (int32_t k = 0; k < node->n_out; k++) {
    tn_val v = node->first_out + (tn_val)k;
    reached |= w->l.reached[v] && !w->l.given[v];
  }
  return reached;
}

static tn_status writer_copy_nodes(body_writer *w) {
  for (size_t i = 0; i < w->l.from->nodes.n; i++) {
    const tn_gnode *node = &w->l.from->nodes.v[i];
    if (!writer_reaches(w, node)) continue;
    if (tn_op_is_input_or_state(node->op))
      return tn_failf(w->to->env, TN_EINTERNAL, "loop: the body reads %s, which is no operand",
                      w->l.from->values.v[node->first_out].name);
    TN_TRY(tn_rewrite_copy(&w->r, node));
  }
  return TN_OK;
}

static tn_status writer_add_outputs(body_writer *w) {
  const tn_loop_parts *p = w->l.parts;
  char name[24];
  for (size_t i = 0; i < p->outputs.n + p->next.n; i++) {
    bool state = i >= p->outputs.n;
    tn_val v = state ? p->next.v[i - p->outputs.n] : p->outputs.v[i];
    snprintf(name, sizeof name, "%s%zu", state ? "next" : "y", state ? i - p->outputs.n : i);
    TN_TRY(tn_graph_output(w->to, name, w->r.map[v]));
  }
  return TN_OK;
}

static tn_status writer_write(body_writer *w) {
  TN_TRY(writer_add_operands(w));
  TN_TRY(writer_copy_nodes(w));
  return writer_add_outputs(w);
}

/* Statements on one line: the text is an attribute. Line breaks inside of texts are escaped. */
static tn_status writer_print(const body_writer *w, tn_text *text) {
  tn_text lines = tn_text_new(w->to->env);
  tn_status status = tn_graph_print(w->to, &lines);
  for (size_t i = 0; status == TN_OK && i < lines.n; i++) {
    bool ends = lines.v[i] == '\n';
    if (!ends)
      tn_text_addn(text, &lines.v[i], 1);
    else if (i + 1 < lines.n)
      tn_text_add(text, "; ");
  }
  tn_text_free(&lines);
  return status == TN_OK && text->failed ? TN_ENOMEM : status;
}

/* ---- the op ---- */

static tn_val writer_emit(tn_build *b, const body_writer *w, const char *body) {
  tn_op_begin(b, "loop");
  for (size_t i = 0; i < w->operands.n; i++) tn_op_arg(b, w->operands.v[i]);
  tn_op_set_text(b, "body", body);
  tn_op_set_int(b, "steps", w->a.steps);
  tn_op_set_int(b, "reverse", w->a.reverse);
  tn_op_set_int(b, "sequences", w->a.sequences);
  tn_op_set_int(b, "before", w->a.before);
  tn_op_set_int(b, "states", w->a.states);
  tn_op_set_int(b, "stacked", w->a.stacked);
  tn_op_set_int(b, "outputs", w->a.outputs);
  return tn_op_end(b);
}

static tn_status loop_emit(tn_build *b, body_writer *w, tn_val *first) {
  tn_builder *builder = NULL;
  tn_text text = tn_text_new(b);
  TN_TRY(tn_builder_create(w->to, &builder));
  w->r.from = w->l.from;
  w->r.b = tn_builder_handle(builder);
  tn_status status = writer_write(w);
  tn_builder_destroy(builder);
  if (status == TN_OK) status = writer_print(w, &text);
  if (status == TN_OK) *first = writer_emit(b, w, text.v);
  tn_text_free(&text);
  return status;
}

tn_val tn_loop_emit(tn_build *b, const tn_loop_parts *parts) {
  const tn_graph *g = tn_builder_graph(b);
  tn_val first = 0;
  body_writer w = {.a = {.steps = parts->steps,
                         .reverse = parts->reverse,
                         .states = (int64_t)parts->states.n,
                         .stacked = parts->stacked,
                         .outputs = (int64_t)parts->outputs.n}};
  tn_status status = tn_build_status(b);
  if (status != TN_OK) return 0;
  status = tn_graph_create(g->env, g->ops, &w.to);
  if (status == TN_OK) status = body_start(&w.l, parts, 0);
  if (status == TN_OK) {
    w.r.map = tn_alloc(g->env, tn_size_mul(parts->from->values.n, sizeof *w.r.map));
    status = w.r.map != NULL ? loop_emit(b, &w, &first) : TN_ENOMEM;
    body_end(&w.l);
  }
  tn_vec_free(g->env, &w.operands);
  tn_release(g->env, w.r.map);
  tn_graph_destroy(w.to);
  tn_builder_fail(b, status);
  return first;
}
