/* core/export/onnx/rows/activations.c: activations that have an operator of their own; others are decomposed.
 */
#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

static bool activation_takes_float(const export_use *u) {
  return tn_dtype_is_float(export_type(u, 0)->dtype);
}

static bool activation_takes_f32(const export_use *u) { return export_type(u, 0)->dtype == TN_F32; }

static bool activation_takes_plain_softplus(const export_use *u) {
  const tn_numbers_attributes *a = u->node->attributes;
  return a->v[0] == 1;
}

const export_row export_rows_activations[] = {
    {"relu", "Relu(x)", .takes = activation_takes_float},
    {"relu6", "Clip(x, 0, 6)"},
    {"hardtanh", "Clip(x, {min}, {max})", .takes = activation_takes_float},
    {"clip", "Clip(x, {min}, {max})", .takes = activation_takes_float},
    {"leaky_relu", "LeakyRelu(x, alpha={slope})"},
    {"prelu", "PRelu(x, slope)", .takes = activation_takes_float},
    {"elu", "Elu(x, alpha={alpha})"},
    {"celu", "Celu(x, alpha={alpha})", .takes = activation_takes_f32},
    {"selu", "Selu(x)"},
    {"sigmoid", "Sigmoid(x)"},
    {"tanh", "Tanh(x)"},
    {"silu", "Mul(x, Sigmoid(x))"},
    {"mish", "Mish(x)", .since = 18},
    {"gelu", "Gelu(x, approximate={approximate})", .since = 20},
    {"hardsigmoid", "HardSigmoid(x, alpha=0.16666667, beta=0.5)"},
    {"hardswish", "HardSwish(x)", .since = 14},
    {"softplus", "Softplus(x)", .takes = activation_takes_plain_softplus},
    {"softsign", "Softsign(x)"},
    {"softshrink", "Shrink(x, lambd={lambda}, bias={lambda})"},
    {"hardshrink", "Shrink(x, lambd={lambda})"},
    {"log_sigmoid", "Neg(Softplus(Neg(x)))"},
    {"softmax", "Softmax(x, axis={axis})"},
    {"log_softmax", "LogSoftmax(x, axis={axis})"},
    {NULL},
};
