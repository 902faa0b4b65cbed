/* core/tensor/apply.c: one op on tensors from its text, "softmax(axis=-1)". */
#include <string.h>

#include "core/config/language/syntax.h"
#include "core/tensor/tensor.h"

static tn_status apply_set_argument(tn_arena *arena, tn_call *call, const tn_op *op, const tn_call_arg *arg,
                                    int32_t position) {
  static const tn_scope nothing;
  tn_value value;
  const tn_option *option = tn_options_at(&op->item, position);
  const char *name = arg->name != NULL ? arg->name : option != NULL ? option->name : NULL;
  if (name == NULL)
    return tn_failf(arena->handle, TN_EINVAL, "%s: argument %d is one too many", op->item.name, position + 1);
  TN_TRY(tn_expr_evaluate(arena->handle, arena, arg->value, &nothing, &value));
  const char *text = tn_value_text(arena, &value);
  if (text == NULL) return TN_ENOMEM;
  tn_call_set_text(call, name, text);
  return TN_OK;
}

/* Begins the call and sets its attributes. */
static tn_status apply_begin(tn_device *device, tn_arena *arena, const char *text, tn_call **call) {
  tn_line line;
  const tn_op_def *def;
  TN_TRY(tn_syntax_line(device, arena, text, "", 0, &line));
  if (line.n_items != 1 || line.items[0].layer == NULL || line.items[0].repeat != NULL ||
      line.condition != NULL || line.n_names + line.n_refs > 0)
    return tn_failf(device, TN_EINVAL, "'%s': expected one op such as softmax(axis=-1)", text);
  const tn_item_call *item = &line.items[0];
  TN_TRY(tn_op_table_find(device->use->ops, device, item->layer, &def));
  *call = tn_call_begin(device, item->layer);
  if (*call == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < item->n_args; i++)
    TN_TRY(apply_set_argument(arena, *call, def->op, &item->args[i], i));
  return TN_OK;
}

tn_status tn_apply(tn_device *device, const char *op, tn_tensor *const *operands, int32_t n_operands,
                   tn_tensor **results, int32_t n_results) {
  TN_ENTER(device);
  TN_NEED(device, op, "op");
  if (n_operands > 0) TN_NEED(device, operands, "operands");
  tn_arena arena = tn_arena_new(device);
  tn_call *call = NULL;
  tn_status status = TN_OK;
  if (strchr(op, '(') == NULL)
    call = tn_call_begin(device, op);
  else
    status = apply_begin(device, &arena, op, &call);
  tn_arena_free(&arena);
  if (status != TN_OK) {
    tn_call_cancel(call);
    return status;
  }
  for (int32_t i = 0; i < n_operands; i++) tn_call_operand(call, operands[i]);
  return tn_call_end(call, results, n_results);
}
