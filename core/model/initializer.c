/* core/model/initializer.c: initializers such as `kaiming_normal(a=0.1)`, emitted as graph. Fans as in
 * PyTorch: fan_in = dims[1] * receptive field, fan_out = dims[0] * receptive field. Kaiming: He, Zhang,
 * Ren, Sun, ICCV 2015. Xavier: Glorot and Bengio, AISTATS 2010. */
#include "core/model/model.h"

#include <math.h>

#include "tenon/ops.h"

enum { TN_FAN_IN = 0, TN_FAN_OUT = 1 };

/* The arguments of all initializers; the tables below list those of each. */
typedef struct tn_init_options {
  double value, low, high, mean, std, a, gain;
  int32_t mode;
} tn_init_options;

#define INIT_FLOAT(field, fallback, range, doc)                                                              \
  TN_OPT(tn_init_options, field, TN_OPT_FLOAT, fallback, range, doc)
static const tn_option no_arguments[] = {TN_OPT_END};
static const tn_option constant_arguments[] = {INIT_FLOAT(value, NULL, NULL, "every element"), TN_OPT_END};
static const tn_option uniform_arguments[] = {INIT_FLOAT(low, "0", NULL, "least value"),
                                              INIT_FLOAT(high, "1", NULL, "upper end, excluded"), TN_OPT_END};
static const tn_option normal_arguments[] = {INIT_FLOAT(mean, "0", NULL, "mean"),
                                             INIT_FLOAT(std, "1", ">= 0", "standard deviation"), TN_OPT_END};
static const tn_option kaiming_arguments[] = {
    INIT_FLOAT(a, "0", NULL, "negative slope of the following leaky ReLU"),
    TN_OPT(tn_init_options, mode, TN_OPT_ENUM, "fan_in", "fan_in|fan_out", "which fan sets the variance"),
    TN_OPT_END};
static const tn_option xavier_arguments[] = {INIT_FLOAT(gain, "1", "> 0", "factor"), TN_OPT_END};

typedef tn_val (*tn_init_fn)(tn_build *b, const tn_init_options *o, const tn_type *type, uint64_t stream);

typedef struct tn_fans {
  double in, out;
} tn_fans;

static tn_fans initializer_fans(const tn_type *type) {
  double field = 1;
  for (int32_t i = 2; i < type->rank; i++) field *= (double)type->dims[i];
  if (type->rank == 0) return (tn_fans){1, 1};
  if (type->rank == 1) return (tn_fans){(double)type->dims[0], (double)type->dims[0]};
  return (tn_fans){(double)type->dims[1] * field, (double)type->dims[0] * field};
}

static tn_val initializer_random(tn_build *b, const char *op, const tn_type *type, uint64_t stream, double x,
                                 double y) {
  tn_op_begin(b, op);
  tn_op_arg(b, tn_scalar(b, TN_I64, 0));
  tn_op_set_ints(b, "dims", type->rank, type->dims);
  tn_op_set_int(b, "stream", (int64_t)stream);
  tn_op_set_float(b, "a", x);
  tn_op_set_float(b, "b", y);
  tn_op_set_int(b, "dtype", type->dtype);
  return tn_op_end(b);
}

static tn_val initializer_zeros(tn_build *b, const tn_init_options *o, const tn_type *type, uint64_t stream) {
  (void)o, (void)stream;
  return tn_full(b, type, 0.0);
}
static tn_val initializer_ones(tn_build *b, const tn_init_options *o, const tn_type *type, uint64_t stream) {
  (void)o, (void)stream;
  return tn_full(b, type, 1.0);
}
static tn_val initializer_constant(tn_build *b, const tn_init_options *o, const tn_type *type,
                                   uint64_t stream) {
  (void)stream;
  return tn_full(b, type, o->value);
}
static tn_val initializer_uniform(tn_build *b, const tn_init_options *o, const tn_type *type,
                                  uint64_t stream) {
  return initializer_random(b, "random_uniform", type, stream, o->low, o->high);
}
static tn_val initializer_normal(tn_build *b, const tn_init_options *o, const tn_type *type,
                                 uint64_t stream) {
  return initializer_random(b, "random_normal", type, stream, o->mean, o->std);
}
static double initializer_kaiming_std(const tn_init_options *o, const tn_type *type) {
  tn_fans fans = initializer_fans(type);
  double fan = o->mode == TN_FAN_IN ? fans.in : fans.out;
  return sqrt(2.0 / (1.0 + o->a * o->a)) / sqrt(fan > 0 ? fan : 1);
}
static tn_val initializer_kaiming_uniform(tn_build *b, const tn_init_options *o, const tn_type *type,
                                          uint64_t stream) {
  double bound = sqrt(3.0) * initializer_kaiming_std(o, type);
  return initializer_random(b, "random_uniform", type, stream, -bound, bound);
}
static tn_val initializer_kaiming_normal(tn_build *b, const tn_init_options *o, const tn_type *type,
                                         uint64_t stream) {
  return initializer_random(b, "random_normal", type, stream, 0.0, initializer_kaiming_std(o, type));
}
static double initializer_xavier_std(const tn_init_options *o, const tn_type *type) {
  tn_fans fans = initializer_fans(type);
  return o->gain * sqrt(2.0 / (fans.in + fans.out > 0 ? fans.in + fans.out : 1));
}
static tn_val initializer_xavier_uniform(tn_build *b, const tn_init_options *o, const tn_type *type,
                                         uint64_t stream) {
  double bound = sqrt(3.0) * initializer_xavier_std(o, type);
  return initializer_random(b, "random_uniform", type, stream, -bound, bound);
}
static tn_val initializer_xavier_normal(tn_build *b, const tn_init_options *o, const tn_type *type,
                                        uint64_t stream) {
  return initializer_random(b, "random_normal", type, stream, 0.0, initializer_xavier_std(o, type));
}

typedef struct tn_initializer {
  tn_item item; /* not of a plugin: its kind is 0 */
  const char *example;
  tn_init_fn emit;
} tn_initializer;

#define INIT(name, doc, arguments, example)                                                                  \
  { TN_ITEM(tn_item, 0, #name, doc, tn_init_options, arguments), example, initializer_##name }
static const tn_initializer initializers[] = {
    INIT(zeros, "every element is 0", no_arguments, "zeros"),
    INIT(ones, "every element is 1", no_arguments, "ones"),
    INIT(constant, "every element is the same number", constant_arguments, "constant(0.1)"),
    INIT(uniform, "uniform from low to high", uniform_arguments, "uniform(-0.1, 0.1)"),
    INIT(normal, "normal with this mean and standard deviation", normal_arguments, "normal(0, 0.02)"),
    INIT(kaiming_uniform, "uniform, with variance 2 / ((1 + a^2) fan) (He and others, ICCV 2015)",
         kaiming_arguments, "kaiming_uniform(a=0.2)"),
    INIT(kaiming_normal, "normal, with variance 2 / ((1 + a^2) fan) (He and others, ICCV 2015)",
         kaiming_arguments, "kaiming_normal(mode=fan_out)"),
    INIT(xavier_uniform,
         "uniform, with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, AISTATS 2010)",
         xavier_arguments, "xavier_uniform"),
    INIT(xavier_normal,
         "normal, with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio, AISTATS 2010)",
         xavier_arguments, "xavier_normal(gain=1.4)"),
};
enum { N_INITIALIZERS = sizeof initializers / sizeof *initializers };

const tn_item *tn_initializer_item(int32_t i, const char **example) {
  if (i >= N_INITIALIZERS) return NULL;
  if (example != NULL) *example = initializers[i].example;
  return &initializers[i].item;
}

static tn_status initializer_find(tn_build *b, const char *name, const tn_initializer **found) {
  const char *names[N_INITIALIZERS];
  for (int32_t i = 0; i < N_INITIALIZERS; i++) {
    names[i] = initializers[i].item.name;
    if (tn_text_equal(names[i], name)) {
      *found = &initializers[i];
      return TN_OK;
    }
  }
  const char *nearest = tn_text_nearest(name, names, N_INITIALIZERS);
  return tn_failf(b, TN_EINVAL, "there is no initializer '%s'%s%s%s", name,
                  nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
                  nearest != NULL ? "'?" : "");
}

static tn_status initializer_fill_arguments(tn_build *b, tn_arena *arena, const tn_expr *call,
                                            tn_options *options) {
  for (int32_t i = 0; i < call->n_args; i++) {
    static const tn_scope nothing;
    tn_value value;
    const tn_option *option = tn_options_at(options->item, i);
    const char *name = call->args[i].name != NULL ? call->args[i].name : option != NULL ? option->name : NULL;
    if (name == NULL) return tn_failf(b, TN_EINVAL, "argument %d is one too many", i + 1);
    TN_TRY(tn_expr_evaluate(b, arena, call->args[i].value, &nothing, &value));
    const char *text = tn_value_text(arena, &value);
    if (text == NULL) return TN_ENOMEM;
    TN_TRY(tn_options_set_text(b, options, name, text));
  }
  return tn_options_finish(b, options);
}

static tn_status initializer_emit(tn_build *b, tn_arena *arena, const char *init, const tn_type *type,
                                  uint64_t stream, tn_val *value) {
  tn_expr *call = NULL;
  const tn_initializer *kind = NULL;
  tn_options options;
  TN_TRY(tn_syntax_expr(b, arena, init, &call));
  if (call->kind != TN_EXPR_CALL && call->kind != TN_EXPR_WORD)
    return tn_failf(b, TN_EINVAL, "expected an initializer like normal(0, 0.02)");
  TN_TRY(initializer_find(b, call->word, &kind));
  TN_TRY(tn_options_start(b, arena, &kind->item, &options));
  TN_TRY(initializer_fill_arguments(b, arena, call, &options));
  *value = kind->emit(b, options.data, type, stream);
  return tn_build_status(b);
}

tn_val tn_initializer_emit(tn_build *b, const char *init, const tn_type *type, uint64_t stream) {
  tn_arena arena = tn_arena_new(b);
  tn_val value = 0;
  tn_status status = initializer_emit(b, &arena, init, type, stream, &value);
  if (status != TN_OK) {
    tn_wrap(b, status, "initializer '%s'", init);
    tn_builder_fail(b, status);
  }
  tn_arena_free(&arena);
  return value;
}
