/* plugins/losses/distillation.c: distill, the loss of a model that learns the scores of another one (Hinton,
 * Vinyals, Dean, 2015): with softened distributions p of the teacher and q of the student,
 *
 *   alpha temperature^2 KL(p | q) + (1 - alpha) cross_entropy(student, target)
 *
 * temperature^2 keeps the size of the gradient, which is that of scores divided by the temperature. */
#include "plugins/losses/losses.h"

enum { DISTILL_IGNORED = -100 };

typedef struct distill_options {
  double temperature, alpha;
  int64_t axis;
} distill_options;

static const tn_option distill_rows[] = {
    TN_OPT(distill_options, temperature, TN_OPT_FLOAT, "1", "[1e-3, 1e6]",
           "divides the scores of both; above 1 the small probabilities count more"),
    TN_OPT(distill_options, alpha, TN_OPT_FLOAT, "0.9", "[0, 1]",
           "part of the teacher; the rest is the cross entropy of the target. Without a target it is 1"),
    TN_OPT(distill_options, axis, TN_OPT_INT, "-1", NULL, "the dimension of the classes"), TN_OPT_END};

/* sum(p (log p - log q)) of each row. */
static tn_val distill_divergence(tn_build *b, const distill_options *o, int64_t axis) {
  tn_val student = tn_build_in(b, 0),
         teacher = tn_to_dtype(b, tn_build_in(b, 1), tn_val_type(b, student)->dtype);
  double warm = 1 / o->temperature;
  tn_val q = tn_log_softmax(b, tn_affine(b, student, warm, 0), axis);
  tn_val p = tn_log_softmax(b, tn_affine(b, teacher, warm, 0), axis);
  return tn_reduce_sum(b, tn_mul(b, tn_exp(b, p), tn_sub(b, p, q)), 1, &axis, 0);
}

static tn_status distill_check(tn_build *b, const distill_options *o, int64_t *axis) {
  const tn_type *student = tn_val_type(b, tn_build_in(b, 0)), *teacher = tn_val_type(b, tn_build_in(b, 1));
  *axis = o->axis < 0 ? o->axis + student->rank : o->axis;
  if (!tn_type_same_dims(student, teacher))
    return tn_fail(b, TN_EINVAL, NULL,
                   "the scores of the student and of the teacher have two shapes, expected the same: the "
                   "classes of both are compared one by one");
  if (*axis >= 0 && *axis < student->rank) return TN_OK;
  return tn_fail(b, TN_EINVAL, "axis", "%lld is out of range for rank-%d scores", (long long)o->axis,
                 (int)student->rank);
}

static tn_status build_distill(tn_build *b, const void *given) {
  const distill_options *o = given;
  int64_t axis;
  TN_TRY(distill_check(b, o, &axis));
  double square = o->temperature * o->temperature;
  tn_val soft = distill_divergence(b, o, axis);
  if (tn_build_n_in(b) < 3) {
    tn_build_yield(b, 0, tn_affine(b, soft, square, 0));
    return TN_OK;
  }
  tn_val target = tn_build_in(b, 2);
  tn_val hard = tn_cross_entropy(b, tn_build_in(b, 0), target, axis, DISTILL_IGNORED, 0);
  tn_val both =
      tn_add(b, tn_affine(b, tn_to_dtype(b, soft, tn_val_type(b, hard)->dtype), o->alpha * square, 0),
             tn_affine(b, hard, 1 - o->alpha, 0));
  tn_build_yield(b, 0, both);
  tn_build_yield(b, 1,
                 tn_to_dtype(b, targets_counted(b, target, DISTILL_IGNORED), tn_val_type(b, both)->dtype));
  return TN_OK;
}

const tn_layer_kind loss_distill = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "distill",
                    "divergence of a student's scores from a teacher's, and the cross entropy of the target "
                    "(Hinton, Vinyals, Dean, 2015)",
                    distill_options, distill_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 3,
    .types = "scores of the student, scores of the teacher of the same shape, and class numbers without the "
             "dimension of the classes",
    .example = "targets = label: f32[10]\nloss = distill(temperature=4)",
    .build = build_distill};
