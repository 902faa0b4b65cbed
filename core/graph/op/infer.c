/* core/graph/op/infer.c: checks operands against schemas and infers the types of results. */
#include "core/graph/op/infer.h"

#include "core/base/element.h"

#include <stdio.h>
#include <string.h>

/* The dtype bound to a letter of the schema while one node is checked, and the operand that bound it. */
typedef struct binding {
  int32_t dtype;
  int32_t operand;
} binding;

typedef struct inference {
  const tn_env *env;
  const tn_op_def *def;
  const tn_type *const *in;
  int32_t n_in, n_out;
  binding letters[TN_SCHEMA_LETTERS];
} inference;

typedef struct operand_name {
  char v[64];
} operand_name;

/* "w", or "xs[2]" for an item of a variadic operand. */
static operand_name infer_operand_name(const tn_op_def *def, int32_t i) {
  const tn_operand_def *o = tn_op_def_operand(def, i);
  operand_name name;
  if (o->variadic)
    snprintf(name.v, sizeof name.v, "%s[%d]", o->name, i - def->n_operands + 1);
  else
    snprintf(name.v, sizeof name.v, "%s", o->name);
  return name;
}

static tn_status infer_refuse_operand(const inference *s, int32_t i, const char *expected) {
  char type[TN_TYPE_TEXT];
  return tn_failf(s->env, TN_EINVAL, "%s: operand %s is %s, expected %s", s->def->op->item.name,
                  infer_operand_name(s->def, i).v, tn_type_format(s->in[i], type), expected);
}

/* "f16, bf16, f32 or f64" */
static void infer_list_dtypes(uint32_t dtypes, char *text, size_t size) {
  size_t n = 0;
  text[0] = '\0';
  for (int32_t i = 0; i < TN_DTYPES - 1; i++) {
    int32_t d = tn_dtype_order[i];
    if ((dtypes >> d & 1) == 0) continue;
    dtypes &= ~(1u << d);
    const char *comma = n == 0 ? "" : dtypes == 0 ? " or " : ", ";
    n += (size_t)snprintf(text + n, size - n, "%s%s", comma, tn_dtype_name(d));
  }
}

/* A letter is bound to the dtype of its first operand. */
static tn_status infer_check_letter(inference *s, int32_t i, char letter) {
  char text[96];
  binding *b = &s->letters[letter - 'A'];
  uint32_t allowed = s->def->dtypes[letter - 'A'];
  if (b->dtype == TN_ANY) {
    *b = (binding){s->in[i]->dtype, i};
    if ((allowed >> s->in[i]->dtype & 1) != 0) return TN_OK;
    infer_list_dtypes(allowed, text, sizeof text);
    return infer_refuse_operand(s, i, text);
  }
  if (b->dtype != s->in[i]->dtype) {
    snprintf(text, sizeof text, "%s like %s", tn_dtype_name(b->dtype),
             infer_operand_name(s->def, b->operand).v);
    return infer_refuse_operand(s, i, text);
  }
  return TN_OK;
}

static tn_status infer_check_operand(inference *s, int32_t i) {
  const tn_operand_def *o = tn_op_def_operand(s->def, i);
  if (s->in[i] == NULL && o->optional) return TN_OK;
  if (s->in[i] == NULL)
    return tn_failf(s->env, TN_EINVAL, "%s: operand %s is absent, expected a value", s->def->op->item.name,
                    infer_operand_name(s->def, i).v);
  if (o->letter != 0) return infer_check_letter(s, i, o->letter);
  if (o->dtype != TN_ANY && o->dtype != s->in[i]->dtype)
    return infer_refuse_operand(s, i, tn_dtype_name(o->dtype));
  return TN_OK;
}

static tn_status infer_check_operands(inference *s) {
  const tn_op_def *def = s->def;
  int32_t least = def->variadic ? def->n_operands - 1 : def->n_operands;
  if (s->n_in < least || (s->n_in > least && !def->variadic))
    return tn_failf(s->env, TN_EINVAL, "%s: %d operands given, expected %s%d", def->op->item.name, s->n_in,
                    def->variadic ? "at least " : "", least);
  for (int32_t i = 0; i < s->n_in; i++) TN_TRY(infer_check_operand(s, i));
  return TN_OK;
}

/* All results of an op with any number of them have one definition. */
static const tn_result_def *infer_result_def(const inference *s, int32_t result) {
  return &s->def->results[s->def->count != NULL ? 0 : result];
}

/* The dtype of a result by the schema; TN_ANY: the op decides. */
static int32_t infer_schema_dtype(const inference *s, int32_t result) {
  const tn_result_def *r = infer_result_def(s, result);
  return r->letter != 0 ? s->letters[r->letter - 'A'].dtype : r->dtype;
}

/* ---- broadcasting ---- */

/* Widens `dims` by the dims of operand i, aligned at the last dimension as NumPy does. */
static tn_status infer_broadcast_one(const inference *s, int32_t i, tn_type *all) {
  const tn_type *t = s->in[i];
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  tn_type wide = *all;
  wide.rank = t->rank > all->rank ? t->rank : all->rank;
  for (int32_t d = 1; d <= wide.rank; d++) {
    int64_t a = d <= all->rank ? all->dims[all->rank - d] : 1, b = d <= t->rank ? t->dims[t->rank - d] : 1;
    if (a != b && a != 1 && b != 1) {
      return tn_failf(
          s->env, TN_EINVAL,
          "%s: operand %s is %s, which does not broadcast with %s of the operands before it, expected "
          "dimensions that are equal or 1",
          s->def->op->item.name, infer_operand_name(s->def, i).v, tn_type_format(t, one),
          strchr(tn_type_format(all, other), '['));
    }
    wide.dims[wide.rank - d] = a == 1 ? b : a;
  }
  *all = wide;
  return TN_OK;
}

static tn_status infer_pointwise(const inference *s, tn_type *out) {
  tn_type all = {0};
  for (int32_t i = 0; i < s->n_in; i++)
    if (s->in[i] != NULL) TN_TRY(infer_broadcast_one(s, i, &all));
  for (int32_t i = 0; i < s->n_out; i++) {
    int32_t dtype = out[i].dtype;
    out[i] = all;
    out[i].dtype = dtype;
  }
  return TN_OK;
}

/* ---- what the op says ---- */

static tn_status infer_by_op(const inference *s, const void *attributes, tn_type *out) {
  const tn_op *op = s->def->op;
  tn_infer n = {.env = *s->env,
                .struct_size = sizeof n,
                .node = {.struct_size = (uint32_t)sizeof(tn_node),
                         .n_in = s->n_in,
                         .n_out = s->n_out,
                         .op = op->item.name,
                         .attributes = attributes,
                         .in = s->in,
                         .out = out}};
  return tn_wrap(s->env, op->infer(&n), "%s", op->item.name);
}

bool tn_type_fits(const tn_type *type) {
  int64_t count = 1, bytes;
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i] < 0 || __builtin_mul_overflow(count, type->dims[i], &count)) return false;
  return !__builtin_mul_overflow(count, (int64_t)tn_dtype_size(type->dtype), &bytes);
}

static tn_status infer_check_result(inference *s, int32_t i, tn_type *out) {
  const tn_result_def *r = infer_result_def(s, i);
  const char *op = s->def->op->item.name;
  char type[TN_TYPE_TEXT], allowed[96];
  int32_t dtype = infer_schema_dtype(s, i);
  uint32_t dtypes = r->letter != 0 ? s->def->dtypes[r->letter - 'A'] : (1u << TN_DTYPES) - 2;
  if (out->rank < 0 || out->rank > TN_MAX_RANK)
    return tn_failf(s->env, TN_EINVAL, "%s: result %s has %d dimensions, expected 0 to %d", op, r->name,
                    out->rank, TN_MAX_RANK);
  for (int32_t d = out->rank; d < TN_MAX_RANK; d++) out->dims[d] = 0;
  if (dtype != TN_ANY) dtypes = 1u << dtype;
  infer_list_dtypes(dtypes, allowed, sizeof allowed);
  if (out->dtype <= TN_ANY || out->dtype >= TN_DTYPES || (dtypes >> out->dtype & 1) == 0)
    return tn_failf(s->env, TN_EINVAL, "%s: result %s is %s, expected %s", op, r->name,
                    tn_type_format(out, type), allowed);
  /* A letter without operands is bound to the dtype of its first result. */
  if (r->letter != 0) s->letters[r->letter - 'A'].dtype = out->dtype;
  if (tn_type_fits(out)) return TN_OK;
  return tn_failf(s->env, TN_EINVAL,
                  "%s: result %s would be %s, expected dimensions >= 0 and at most 2^63 - 1 bytes", op,
                  r->name, tn_type_format(out, type));
}

/* ---- wider dtypes ---- */

static bool infer_widens(const inference *s) {
  for (int32_t i = 0; i < s->n_in; i++)
    if (tn_op_def_widens(s->def, i, s->in[i])) return true;
  return false;
}

static tn_status infer_results(inference *s, const void *attributes, tn_type *out) {
  const tn_op_def *def = s->def;
  for (int32_t i = 0; i < s->n_out; i++) out[i] = (tn_type){.dtype = infer_schema_dtype(s, i)};
  if (def->infer != NULL) return def->infer(s->env, def, attributes, s->in, s->n_in, out);
  if (tn_op_infers_by_decomposition(def->op))
    return def->composite(s->env, def, attributes, s->in, s->n_in, out);
  return def->op->infer != NULL ? infer_by_op(s, attributes, out) : infer_pointwise(s, out);
}

/* The results of the wide operands; those of a letter have its dtype. */
static tn_status infer_widened(inference *s, const void *attributes, tn_type *out) {
  size_t n = (size_t)s->n_in;
  tn_type *types = tn_alloc(s->env, n * sizeof *types);
  const tn_type **in = tn_alloc(s->env, n * sizeof *in);
  tn_status status = types != NULL && in != NULL ? TN_OK : TN_ENOMEM;
  for (int32_t i = 0; i < s->n_in && status == TN_OK; i++) {
    if (s->in[i] == NULL) continue;
    types[i] = *s->in[i];
    types[i].dtype = tn_op_def_wide(s->def, i, types[i].dtype);
    in[i] = &types[i];
  }
  if (status == TN_OK) status = tn_infer_types(s->env, s->def, attributes, in, s->n_in, out);
  for (int32_t i = 0; i < s->n_out && status == TN_OK; i++)
    if (infer_schema_dtype(s, i) != TN_ANY) out[i].dtype = infer_schema_dtype(s, i);
  tn_release(s->env, in);
  tn_release(s->env, types);
  return status;
}

tn_status tn_infer_types(const tn_env *env, const tn_op_def *def, const void *attributes,
                         const tn_type *const *in, int32_t n_in, tn_type *out) {
  inference s = {.env = env, .def = def, .in = in, .n_in = n_in, .n_out = tn_op_n_results(def, attributes)};
  TN_TRY(infer_check_operands(&s));
  TN_TRY((infer_widens(&s) ? infer_widened : infer_results)(&s, attributes, out));
  for (int32_t i = 0; i < s.n_out; i++) TN_TRY(infer_check_result(&s, i, &out[i]));
  return TN_OK;
}
