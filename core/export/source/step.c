/* core/export/source/step.c: the function of a step, and its call. */
#include <string.h>

#include "core/export/source/source.h"
#include "core/graph/input_state.h"

/* ---- parameters ---- */

static const char *step_state_pointer(source_program *p, tn_val v) {
  const tn_state_attributes *a = tn_graph_maker(p->graph, v)->attributes;
  return source_weight_pointer(p, &(source_weight){.path = a->path, .type = a->type});
}

source_parameter source_parameter_of(source_program *p, const char *name, tn_val v) {
  if (p->place[v] == NULL) p->place[v] = step_state_pointer(p, v);
  return (source_parameter){name, source_type(tn_graph_type(p->graph, v)->dtype), p->place[v]};
}

/* ---- the function ---- */

/* "step_4: conv2d in layer1.0.conv1" */
static void step_add_comment(const source_use *u) {
  const char *layer = u->node->layer;
  bool named = layer != NULL && *layer != '\0' && strstr(layer, "*/") == NULL;
  tn_text_addf(&u->p->steps, "/* %s%s%s */\n", u->node->op->item.name, named ? " in " : "",
               named ? layer : "");
}

void source_begin_with(const source_use *u, const source_parameter *in, int32_t n, int64_t scratch) {
  source_program *p = u->p;
  const char *link = "";
  if (scratch > p->scratch_bytes) p->scratch_bytes = scratch;
  step_add_comment(u);
  tn_text_addf(&p->steps, "static void step_%lld(", (long long)p->n_steps);
  tn_text_addf(&p->calls, "  step_%lld(", (long long)p->n_steps);
  for (int32_t i = 0; i < n; i++, link = ", ") {
    if (in[i].name == NULL || in[i].pointer == NULL) {
      p->steps.failed = true;
      return;
    }
    tn_text_addf(&p->steps, "%sconst %s *%s", link, in[i].type, in[i].name);
    tn_text_addf(&p->calls, "%s%s", link, in[i].pointer);
  }
  for (int32_t k = 0; k < u->node->n_out; k++, link = ", ") {
    tn_text_addf(&p->steps, "%s%s *restrict y%d", link, source_type(source_out(u, k)->dtype), (int)k);
    tn_text_addf(&p->calls, "%s%s", link, p->place[u->node->first_out + (tn_val)k]);
  }
  tn_text_add(&p->steps, scratch > 0 ? ", float *restrict scratch) {\n" : ") {\n");
  tn_text_add(&p->calls, scratch > 0 ? ", (float *)(void *)scratch);\n" : ");\n");
}

void source_begin(const source_use *u, int64_t scratch) {
  source_parameter *in = tn_arena_alloc(&u->p->arena, ((size_t)u->node->n_in + 1) * sizeof *in);
  int32_t n = 0;
  for (int32_t i = 0; in != NULL && i < u->node->n_in; i++) {
    if (!source_has(u, i)) continue;
    const char *name = tn_arena_printf(&u->p->arena, "a%d", (int)i);
    in[n++] = source_parameter_of(u->p, name, u->node->in[i]);
  }
  if (in == NULL) u->p->steps.failed = true;
  source_begin_with(u, in, n, scratch);
}

void source_end(const source_use *u) {
  for (int32_t k = 1; k < u->node->n_out; k++) tn_text_addf(&u->p->steps, "  (void)y%d;\n", (int)k);
  tn_text_add(&u->p->steps, "}\n\n");
  u->p->n_steps++;
}
