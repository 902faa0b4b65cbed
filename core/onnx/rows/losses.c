/* core/onnx/rows/losses.c: losses as part of a graph. */
#include <string.h>

#include "core/onnx/import.h"

/* The operands of a loss: scores or their logarithms (N, C, ...), class numbers (N, ...), a weight for each
 * class. */
typedef struct loss_parts {
  const char *logs, *counted, *shares; /* counted: 1 for the class of each place; shares: times its weight */
} loss_parts;

/* [None, :, None] for a weight of classes beside (N, C, ...). */
static const char *loss_weight(const onnx_use *n, const char *weight, int32_t rank) {
  const char *text = onnx_print(n, "%s[None, :", weight);
  for (int32_t i = 2; i < rank; i++) text = onnx_print(n, "%s, None", text);
  return onnx_print(n, "%s]", text);
}

static tn_status loss_read(const onnx_use *n, loss_parts *p) {
  const tn_type x = onnx_operand(n, 0)->type;
  const char *target = onnx_text_of(n, 1, false), *weight = onnx_has(n, 2) ? onnx_text_of(n, 2, false) : NULL;
  const tn_onnx_attribute *ignored = onnx_attribute(n, "ignore_index");
  if (target == NULL || (onnx_has(n, 2) && weight == NULL)) return onnx_failed(n);
  if (x.rank < 2 || x.rank != onnx_operand(n, 1)->type.rank + 1)
    return ONNX_REFUSE(n, "scores of %d dimensions", x.rank);
  p->counted = onnx_let(n, "one_hot(%s, classes=%lld, dtype=f32)", target, (long long)x.dims[1]);
  if (p->counted != NULL && ignored != NULL)
    p->counted = onnx_let(n, "%s * cast(%s != %lld, to=f32)[..., None]", p->counted, target,
                          (long long)ignored->whole);
  if (p->counted != NULL && x.rank > 2) p->counted = onnx_let(n, "movedim(%s, [-1], [1])", p->counted);
  p->shares = p->counted != NULL && weight != NULL
                  ? onnx_let(n, "%s * %s", p->counted, loss_weight(n, weight, x.rank))
                  : p->counted;
  return p->shares != NULL ? TN_OK : onnx_failed(n);
}

static tn_status loss_end(const onnx_use *n, const loss_parts *p) {
  const char *reduction = onnx_word(n, "reduction", "mean");
  if (strcmp(reduction, "none") == 0)
    return onnx_compute(n, "-reduce_sum(%s * %s, axes=[1])", p->logs, p->shares);
  if (strcmp(reduction, "sum") == 0) return onnx_compute(n, "-reduce_sum(%s * %s)", p->logs, p->shares);
  return onnx_compute(n, "-reduce_sum(%s * %s) / reduce_sum(%s)", p->logs, p->shares, p->shares);
}

static tn_status row_nll(const onnx_use *n) {
  loss_parts p = {.logs = onnx_text_of(n, 0, false)};
  if (p.logs == NULL) return onnx_failed(n);
  TN_TRY(loss_read(n, &p));
  return loss_end(n, &p);
}

static tn_status row_cross_entropy(const onnx_use *n) {
  const char *x = onnx_text_of(n, 0, false);
  loss_parts p = {.logs = x != NULL ? onnx_let(n, "log_softmax(%s, axis=1)", x) : NULL};
  if (p.logs == NULL) return onnx_failed(n);
  TN_TRY(loss_read(n, &p));
  if (onnx_wants(n, 1)) TN_TRY(onnx_bind(n, 1, p.logs));
  return loss_end(n, &p);
}

const onnx_row onnx_loss_rows[] = {
    {"NegativeLogLikelihoodLoss", row_nll, NULL, 2},
    {"SoftmaxCrossEntropyLoss", row_cross_entropy, NULL, 2},
    {NULL, NULL, NULL},
};
