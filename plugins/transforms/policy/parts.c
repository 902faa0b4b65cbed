/* plugins/transforms/policy/parts.c: see parts.h. Values between two parts lie in memory of the call. */
#include "plugins/transforms/policy/parts.h"

#include <string.h>

enum { PART_FIELDS = 16 };

tn_status parts_check(tn_env *env, const tn_transforms *parts, int32_t n) {
  if (parts->n == 0)
    return tn_fail(env, TN_EINVAL, "transforms",
                   "transforms is empty, expected some, as in [random_flip, color_jitter(0.4)]");
  if (n > PART_FIELDS)
    return tn_fail(env, TN_EINVAL, NULL, "%d fields, expected at most %d", (int)n, PART_FIELDS);
  for (int64_t i = 0; i < parts->n; i++)
    if (parts->v[i].transform->granularity != TN_PER_SAMPLE)
      return tn_fail(
          env, TN_EINVAL, "transforms",
          "%s works on batches, expected transforms of samples; put it at the end of the list of [data]",
          parts->v[i].transform->item.name);
  return TN_OK;
}

tn_status parts_infer(tn_env *env, const tn_transform_part *part, int32_t n, const tn_type *in,
                      tn_type *out) {
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  return part->transform->infer(env, part->options, n, in, out);
}

tn_status parts_check_kept(tn_env *env, const char *what, int32_t n, const tn_type *in, const tn_type *out) {
  for (int32_t k = 0; k < n; k++)
    if (!tn_type_equal(&in[k], &out[k]))
      return tn_fail(
          env, TN_EINVAL, "transforms",
          "%s give field %d another type or size, expected the same, as the next transform gets one type",
          what, (int)k);
  return TN_OK;
}

/* Between two parts. */
typedef struct part_values {
  tn_type in_type[PART_FIELDS], out_type[PART_FIELDS];
  const void *in[PART_FIELDS];
  void *out[PART_FIELDS], *held[PART_FIELDS]; /* held: memory of `in`; NULL: that of the call */
} part_values;

static tn_status part_make_room(tn_transform_call *c, int last, part_values *v) {
  for (int32_t k = 0; k < c->n; k++) {
    if (last) v->out_type[k] = c->out_type[k];
    v->out[k] = last ? c->out[k] : tn_new(&c->env, tn_type_bytes(&v->out_type[k]) + 1);
    if (v->out[k] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status part_apply(tn_transform_call *c, const tn_transform_part *part, uint64_t use, int last,
                            part_values *v) {
  tn_scratch scratch = {NULL, 0};
  memset(v->out, 0, sizeof v->out);
  TN_TRY(parts_infer(&c->env, part, c->n, v->in_type, v->out_type));
  tn_status status = part_make_room(c, last, v);
  tn_transform_call call = *c;
  call.in_type = v->in_type;
  call.out_type = v->out_type;
  call.in = v->in;
  call.out = v->out;
  call.key = tn_hash_mix(c->key, use);
  call.scratch = &scratch;
  if (status == TN_OK) status = part->transform->apply(&call, part->options);
  tn_delete(&c->env, scratch.memory);
  for (int32_t k = 0; k < c->n; k++) {
    tn_delete(&c->env, v->held[k]);
    v->held[k] = last ? NULL : v->out[k];
    v->in[k] = v->out[k];
    v->in_type[k] = v->out_type[k];
  }
  return status;
}

tn_status parts_apply(tn_transform_call *c, const tn_transforms *parts, const int64_t *order, int64_t count) {
  part_values v;
  tn_status status = TN_OK;
  for (int32_t k = 0; k < c->n; k++) {
    v.in_type[k] = c->in_type[k];
    v.in[k] = c->in[k];
    v.held[k] = NULL;
    if (count == 0) memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
  }
  for (int64_t i = 0; status == TN_OK && i < count; i++)
    status = part_apply(c, &parts->v[order[i]], (uint64_t)order[i] + 1, i + 1 == count, &v);
  for (int32_t k = 0; k < c->n; k++) tn_delete(&c->env, v.held[k]);
  return status;
}
