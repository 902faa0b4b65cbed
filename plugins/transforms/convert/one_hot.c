/* plugins/transforms/convert/one_hot.c: a class number as f32 with a 1 at the class, the target that mixup
 * and cutmix mix. */
#include <string.h>

#include "plugins/transforms/transforms.h"

typedef struct one_hot_options {
  int64_t classes;
} one_hot_options;

static const tn_option options[] = {
    TN_OPT(one_hot_options, classes, TN_OPT_INT, NULL, "[1, 1000000000]", "number of classes"), TN_OPT_END};

static tn_status one_hot_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const one_hot_options *o = opts;
  for (int32_t k = 0; k < n; k++) {
    if ((in[k].dtype != TN_I32 && in[k].dtype != TN_I64) || in[k].rank >= TN_MAX_RANK - 1)
      return tn_fail(
          env, TN_EINVAL, NULL,
          "a field is %s of rank %d, expected class numbers, i32 or i64, as in one_hot(10) <- label",
          tn_dtype_name(in[k].dtype), (int)in[k].rank);
    out[k] = in[k];
    out[k].dtype = TN_F32;
    out[k].dims[out[k].rank++] = o->classes;
  }
  return TN_OK;
}

/* A negative number, such as one that a loss ignores, has no 1. */
static tn_status one_hot_apply(tn_transform_call *c, const void *opts) {
  const one_hot_options *o = opts;
  for (int32_t k = 0; k < c->n; k++) {
    float *out = c->out[k];
    memset(out, 0, tn_type_bytes(&c->out_type[k]));
    for (int64_t i = 0, count = tn_type_count(&c->in_type[k]); i < count; i++) {
      int64_t label =
          c->in_type[k].dtype == TN_I32 ? ((const int32_t *)c->in[k])[i] : ((const int64_t *)c->in[k])[i];
      if (label >= o->classes)
        return tn_fail(c, TN_EINVAL, "classes", "a field has class %lld, expected less than classes = %lld",
                       (long long)label, (long long)o->classes);
      if (label >= 0) out[i * o->classes + label] = 1;
    }
  }
  return TN_OK;
}

const tn_transform one_hot_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "one_hot", "a class number as f32 with a 1 at the class",
                    one_hot_options, options),
    .types = "a class number to f32 [classes]",
    .example = "transforms = to_float\n    one_hot(10) <- label",
    .infer = one_hot_infer,
    .apply = one_hot_apply,
};
