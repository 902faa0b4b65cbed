/* core/conformance/cases/examples.c: uses of ops of which the schema does not say which operands fit: options
 * as text, and operands of some dims. */
#include <stdio.h>
#include <string.h>

#include "core/conformance/cases/examples.h"

enum { EXAMPLE_OPERANDS = 3 };

/* Operands: digits are dims, "i" in front marks an index below `below`. */
typedef struct example_use {
  const char *op, *options, *operands[EXAMPLE_OPERANDS];
  int64_t below;
} example_use;

static const example_use example_uses[] = {
    {"index_select", "axis=1", {"234", "i23"}, 3},
    {"index_select", "axis=-1", {"5", "i"}, 5},
    {"take", "", {"23", "i4"}, 6},
    {"take_along_dim", "axis=0", {"314", "i251"}, 3},
    {"index_add", "axis=1", {"234", "i5", "254"}, 3},
    {"index_copy", "axis=-1", {"24", "i3", "23"}, 4},
    {"index_fill", "value=0.5", {"43", "i2"}, 4},
    {"one_hot", "classes=4;dtype=f32", {"i23"}, 5},
    {"unsqueeze", "axis=-2", {"23"}, 0},
    {"squeeze", "axes=[1,2]", {"2131"}, 0},
    {"expand", "dims=[2,-1,3]", {"41"}, 0},
    {"swapaxes", "axis0=0;axis1=-1", {"234"}, 0},
    {"movedim", "source=[0,1];destination=[-1,0]", {"234"}, 0},
    {"narrow", "axis=1;start=-3;length=2", {"254"}, 0},
    {"select", "axis=0;index=-1", {"34"}, 0},
    {"stack", "axis=1", {"23", "23", "23"}, 0},
    {"flip", "axes=[0,-1]", {"324"}, 0},
    {"roll", "shifts=[1,-2];axes=[0,1]", {"35"}, 0},
    {"roll", "shifts=[3]", {"35"}, 0},
    {"tile", "repeats=[2,1,3]", {"23"}, 0},
    {"repeat_interleave", "repeats=3;axis=1", {"23"}, 0},
    {"tril", "diagonal=-1", {"234"}, 0},
    {"tril_flatten", "diagonal=-1", {"234"}, 0},
    {"tril_flatten", "", {"33"}, 0},
    {"last_step", "", {"345", "i3"}, 5},
    {"glu", "axis=1;gate=silu", {"245"}, 0},
    {"triu", "diagonal=1", {"243"}, 0},
    {"diagonal", "diagonal=1;axis1=2;axis2=0", {"324"}, 0},
    {"diag_embed", "diagonal=-2", {"23"}, 0},
    {"diag", "diagonal=1", {"34"}, 0},
    {"diag", "diagonal=-1", {"3"}, 0},
    {"trace", "", {"234"}, 0},
    {"pixel_shuffle", "factor=2", {"1823"}, 0},
    {"pixel_unshuffle", "factor=2", {"146"}, 0},
    {"channel_shuffle", "groups=3", {"263"}, 0},
    {"unfold", "kernel=[2,3];stride=[2,1];padding=[1]", {"2245"}, 0},
    {"fold", "size=[4,5];kernel=[2];stride=[1,2]", {"286"}, 0},
    {"var", "axes=[0,-1];keep=yes", {"324"}, 0},
    {"std", "axes=[1]", {"254"}, 0},
    {"norm", "p=2;axes=[1]", {"234"}, 0},
    {"norm", "p=1;axes=[0];keep=yes", {"324"}, 0},
    {"norm", "p=3", {"23"}, 0},
    {"normalize", "axis=-1", {"235"}, 0},
    {"logsumexp", "axes=[0,2]", {"324"}, 0},
    {"prod", "axes=[1]", {"234"}, 0},
    {"any", "axes=[1];keep=yes", {"23"}, 0},
    {"all", "axes=[0]", {"32"}, 0},
    {"max_with_index", "axis=1", {"234"}, 0},
    {"min_with_index", "axis=0;keep=yes", {"324"}, 0},
    {"kthvalue", "k=2;axis=1", {"254"}, 0},
    {"median", "axis=-1", {"35"}, 0},
    {"argmin", "axis=1", {"35"}, 0},
    {"argsort", "axis=0;descending=yes", {"52"}, 0},
    {"cosine_similarity", "axis=1", {"234", "234"}, 0},
    {"pairwise_distance", "p=1;keep=yes", {"34", "14"}, 0},
    {"cdist", "p=2", {"234", "254"}, 0},
    {"einsum", "equation=bhid_bhjd_bhij", {"2134", "2154"}, 0},
    {"einsum", "equation=...ij,kj->k...i", {"234", "54"}, 0},
    {"einsum", "equation=ii,ij,k->j", {"33", "34", "2"}, 0},
    {NULL, NULL, {NULL}, 0},
};

/* Distinct numbers: finite differences stay away from ties. */
static tn_val example_operand(tn_draw *d, const example_use *u, const char *text) {
  bool index = *text == 'i';
  tn_type type = {index ? TN_I64 : d->dtype, 0, {0}};
  for (text += index; *text != '\0'; text++) type.dims[type.rank++] = *text - '0';
  return index ? tn_draw_integers(d, type, 0, u->below) : tn_draw_tensor(d, type, TN_FILL_DISTINCT);
}

/* The use of an op with this number. */
static const example_use *example_find(const char *op, int64_t number) {
  for (const example_use *u = example_uses; u->op != NULL; u++)
    if (strcmp(u->op, op) == 0 && number-- == 0) return u;
  return NULL;
}

bool tn_example_exists(const char *op) { return example_find(op, 0) != NULL; }

tn_val tn_example_emit(tn_draw *d, const tn_case *c) {
  char options[64], *rest = options, *equals;
  tn_val in[EXAMPLE_OPERANDS];
  int32_t n = 0;
  int64_t uses = 0;
  while (example_find(c->op, uses) != NULL) uses++;
  const example_use *u = example_find(c->op, d->draw % uses);
  for (; n < EXAMPLE_OPERANDS && u->operands[n] != NULL; n++) in[n] = example_operand(d, u, u->operands[n]);
  tn_draw_begin(d, c->op, n, in);
  snprintf(options, sizeof options, "%s", u->options);
  for (char *option; (option = strsep(&rest, ";")) != NULL;) {
    if ((equals = strchr(option, '=')) == NULL) continue;
    *equals = '\0';
    tn_op_set_text(d->b, option, equals + 1);
  }
  return tn_op_end(d->b);
}
