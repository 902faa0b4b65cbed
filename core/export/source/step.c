/* core/export/source/step.c: the function of a step, and its call. */
#include <string.h>

#include "core/export/source/source.h"

const char *source_type(int32_t dtype) {
  switch (dtype) {
  case TN_BOOL: return "unsigned char";
  case TN_U8: return "uint8_t";
  case TN_I8: return "int8_t";
  case TN_I32: return "int32_t";
  case TN_I64: return "int64_t";
  case TN_F32: return "float";
  default: return "void";
  }
}

static void step_add_call(const source_use *u, int64_t scratch) {
  tn_text *calls = &u->p->calls;
  const char *link = "";
  tn_text_addf(calls, "  step_%lld(", (long long)u->p->n_steps);
  for (int32_t i = 0; i < u->node->n_in; i++) {
    if (!source_has(u, i)) continue;
    tn_text_addf(calls, "%s%s", link, u->p->place[u->node->in[i]]);
    link = ", ";
  }
  for (int32_t k = 0; k < u->node->n_out; k++) {
    tn_text_addf(calls, "%s%s", link, u->p->place[u->node->first_out + (tn_val)k]);
    link = ", ";
  }
  if (scratch > 0) tn_text_addf(calls, ", (float *)(void *)scratch");
  tn_text_add(calls, ");\n");
}

/* "step_4: conv2d in layer1.0.conv1" */
static void step_add_comment(const source_use *u) {
  const char *layer = u->node->layer;
  bool named = layer != NULL && *layer != '\0' && strstr(layer, "*/") == NULL;
  tn_text_addf(&u->p->steps, "/* %s%s%s */\n", u->node->op->item.name, named ? " in " : "",
               named ? layer : "");
}

void source_begin(const source_use *u, int64_t scratch) {
  tn_text *t = &u->p->steps;
  const char *link = "";
  if (scratch > u->p->scratch_bytes) u->p->scratch_bytes = scratch;
  step_add_comment(u);
  tn_text_addf(t, "static void step_%lld(", (long long)u->p->n_steps);
  for (int32_t i = 0; i < u->node->n_in; i++) {
    if (!source_has(u, i)) continue;
    tn_text_addf(t, "%sconst %s *a%d", link, source_type(source_in(u, i)->dtype), (int)i);
    link = ", ";
  }
  for (int32_t k = 0; k < u->node->n_out; k++) {
    tn_text_addf(t, "%s%s *restrict y%d", link, source_type(source_out(u, k)->dtype), (int)k);
    link = ", ";
  }
  tn_text_add(t, scratch > 0 ? ", float *restrict scratch) {\n" : ") {\n");
  step_add_call(u, scratch);
}

void source_end(const source_use *u) {
  for (int32_t k = 1; k < u->node->n_out; k++) tn_text_addf(&u->p->steps, "  (void)y%d;\n", (int)k);
  tn_text_add(&u->p->steps, "}\n\n");
  u->p->n_steps++;
}
