/* core/model/lines/callee.c: finds the block, layer or op that a call names, and the number of its inputs. */
#include "core/graph/op/schema.h"
#include "core/model/assemble.h"

#include <string.h>

/* Ops under the names that users of NumPy and PyTorch know. */
static const char *const callee_other_names[][2] = {
    {"sum", "reduce_sum"},  {"mean", "reduce_mean"}, {"amax", "reduce_max"},
    {"amin", "reduce_min"}, {"arange", "iota"},
};

/* The counters of random numbers are operands that the host gives. */
static int32_t callee_count_operands(const tn_op_def *def, int32_t *least) {
  int32_t n = 0;
  *least = 0;
  for (; n < def->n_operands && !tn_text_equal(def->operands[n].name, "iteration"); n++)
    *least += !def->operands[n].optional && !def->operands[n].variadic;
  return def->variadic && n == def->n_operands ? -1 : n;
}

static tn_status callee_take_op(const tn_assembly *a, const char *name, tn_callee *callee) {
  tn_status status = tn_op_table_find(a->request->ops, a->env, name, &callee->op);
  if (status == TN_EUNAVAILABLE && !tn_registry_has(a->request->registry, TN_OP, name))
    return tn_failf(a->env, TN_EINVAL, "%s", tn_error_text(a->env));
  if (status != TN_OK) return status;
  callee->name = name;
  callee->max_in = callee_count_operands(callee->op, &callee->min_in);
  if (callee->op->variadic && callee->min_in == 0) callee->min_in = 1;
  return TN_OK;
}

/* The number of inputs that a block declares: 1 where it names none. */
static tn_status callee_take_block(tn_assembly *a, tn_section *section, tn_callee *callee) {
  tn_line line;
  TN_TRY(tn_block_line(a, section, "inputs", "names <- ", "", &line));
  callee->block = section;
  callee->min_in = callee->max_in = line.n_refs > 0 ? line.n_refs : 1;
  return TN_OK;
}

static const char *callee_other_name(const tn_assembly *a, const char *name) {
  for (size_t i = 0; i < sizeof callee_other_names / sizeof *callee_other_names; i++)
    if (tn_text_equal(callee_other_names[i][0], name) &&
        tn_registry_has(a->request->registry, TN_OP, callee_other_names[i][1]))
      return callee_other_names[i][1];
  return NULL;
}

bool tn_callee_exists(const tn_assembly *a, const char *name) {
  if (tn_text_starts(name, "op.")) return tn_registry_has(a->request->registry, TN_OP, name + strlen("op."));
  return tn_block_section(a, name) != NULL || tn_registry_has(a->request->registry, TN_LAYER, name) ||
         tn_registry_has(a->request->registry, TN_OP, name) || callee_other_name(a, name) != NULL;
}

tn_status tn_callee_find(tn_assembly *a, const char *name, tn_callee *callee) {
  tn_section *block = tn_block_section(a, name);
  bool is_layer = tn_registry_has(a->request->registry, TN_LAYER, name);
  *callee = (tn_callee){.name = name};
  if (tn_text_starts(name, "op.")) return callee_take_op(a, name + strlen("op."), callee);
  if (block != NULL && is_layer)
    return tn_failf(a->env, TN_EINVAL, "%s: [%s] has the name of a layer, expected another one",
                    tn_key_where(a->request->ini, block, NULL), block->name);
  if (block != NULL) return callee_take_block(a, block, callee);
  if (!is_layer && tn_registry_has(a->request->registry, TN_OP, name)) return callee_take_op(a, name, callee);
  const char *other = is_layer ? NULL : callee_other_name(a, name);
  if (other != NULL) return callee_take_op(a, other, callee);
  if (!is_layer && tn_text_equal(name, "gradient")) {
    *callee = (tn_callee){.name = name, .is_gradient = true, .min_in = 2, .max_in = 2};
    return TN_OK;
  }
  if (tn_text_equal(name, "scan"))
    return tn_failf(a->env, TN_EINVAL,
                    "scan has a line of its own: write `y, h: scan(cell) <- x, h0`, and y in the expression");
  const char *tail = strrchr(name, '.'); /* "torch.exp", "x.sum", "x.size" */
  if (tail != NULL && (tn_text_equal(tail, ".size") || tn_text_equal(tail, ".shape")))
    return tn_failf(a->env, TN_EINVAL, "no layer is called \"%s\"; write dim(%.*s, 1) for a dimension", name,
                    (int)(tail - name), name);
  if (tail != NULL && tn_callee_exists(a, tail + 1))
    return tn_failf(a->env, TN_EINVAL,
                    "no layer is called \"%s\"; write %s, with values as its first arguments", name,
                    tail + 1);
  TN_TRY(tn_find_layer(a, name, &callee->layer));
  callee->min_in = callee->layer->min_in;
  callee->max_in = callee->layer->max_in;
  return TN_OK;
}

/* The values of the call, the arguments of the layer that it stands for, and the call's options. */
static tn_status callee_merge_arguments(tn_assembly *a, const tn_item_call *call, tn_item_call *item) {
  tn_call_arg *args =
      tn_arena_alloc(&a->arena, tn_size_mul((size_t)(call->n_args + item->n_args) + 1, sizeof *args));
  int32_t n = 0;
  if (args == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < call->n_args; i++)
    if (call->args[i].name == NULL) args[n++] = call->args[i];
  for (int32_t i = 0; i < item->n_args; i++) args[n++] = item->args[i];
  for (int32_t i = 0; i < call->n_args; i++)
    if (call->args[i].name != NULL) args[n++] = call->args[i];
  item->args = args;
  item->n_args = n;
  return TN_OK;
}

/* `act` of a block whose argument `act` is the name of a layer, or a call of one: "silu", "leaky_relu(0.1)".
 */
static tn_status callee_parse_argument(const tn_model_scope *scope, const char *text,
                                       const tn_item_call *call, const tn_item_call **meant) {
  tn_assembly *a = scope->assembly;
  tn_line *line = tn_arena_alloc(&a->arena, sizeof *line);
  if (line == NULL) return TN_ENOMEM;
  TN_TRY(tn_syntax_line(a->env, &a->arena, text, call->layer, 0, line));
  tn_item_call *item = &line->items[0];
  TN_TRY(callee_merge_arguments(a, call, item));
  item->repeat = call->repeat;
  *meant = item;
  return TN_OK;
}

tn_status tn_callee_meant(const tn_model_scope *scope, const tn_item_call *call, const tn_item_call **meant) {
  *meant = call;
  int32_t i = call->layer != NULL ? tn_scope_find_argument(scope, call->layer) : -1;
  if (i < 0 || scope->arg_values[i].kind != TN_VALUE_TEXT) return TN_OK;
  const char *text = scope->arg_values[i].text;
  const char *name = tn_arena_printf(&scope->assembly->arena, "%.*s", (int)strcspn(text, "("), text);
  if (name == NULL) return TN_ENOMEM;
  if (!tn_callee_exists(scope->assembly, name) && tn_callee_exists(scope->assembly, call->layer))
    return TN_OK;
  return callee_parse_argument(scope, text, call, meant);
}
