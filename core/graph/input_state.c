/* core/graph/input_state.c: the descriptors of the ops `input` and `state`. */
#include "core/graph/input_state.h"

/* The result has the type that the attributes have. */
static tn_status input_state_infer(tn_infer *n, const tn_type *type, const char *example) {
  if (type->dtype == TN_ANY)
    return tn_fail(n, TN_EINVAL, NULL, "the type is missing, expected one as in `%s`", example);
  n->node.out[0] = *type;
  return TN_OK;
}

static tn_status input_infer(tn_infer *n) {
  const tn_input_attributes *a = n->node.attributes;
  return input_state_infer(n, &a->type, "x: f32[8, 3] = input(name=x)");
}

static tn_status state_infer(tn_infer *n) {
  const tn_state_attributes *a = n->node.attributes;
  return input_state_infer(n, &a->type, "w: f32[8, 3] = state(path=w)");
}

static const tn_option input_options[] = {
    TN_OPT(tn_input_attributes, name, TN_OPT_TEXT, NULL, NULL, "batch field or control value"), TN_OPT_END};

static const tn_option state_options[] = {
    TN_OPT(tn_state_attributes, path, TN_OPT_TEXT, NULL, NULL, "path in checkpoints"),
    TN_OPT(tn_state_attributes, what, TN_OPT_ENUM, "param", "param|buffer|slot|derived|host|scratch",
           "what it is for"),
    TN_OPT(tn_state_attributes, init, TN_OPT_TEXT, "", NULL, "initializer"), TN_OPT_END};

const tn_op tn_op_input = {
    .item = TN_ITEM(tn_op, TN_OP, "input", "a value from outside: a field of the batch or a control value",
                    tn_input_attributes, input_options),
    .schema = "() -> (value:any)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_OTHER,
    .infer = input_infer,
};

const tn_op tn_op_state = {
    .item = TN_ITEM(tn_op, TN_OP, "state", "a parameter or other state as it is when the program starts",
                    tn_state_attributes, state_options),
    .schema = "() -> (value:any)",
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_OTHER,
    .infer = state_infer,
};

tn_type *tn_input_state_type(const tn_op *op, void *attributes) {
  return op == &tn_op_input ? &((tn_input_attributes *)attributes)->type
                            : &((tn_state_attributes *)attributes)->type;
}
