/* core/ops/rows.h: private to core/ops: pointwise ops as rows. A row is an op: its name, its doc, its schema,
 * and the members of tn_op that it has. */
#pragma once

#include "core/ops/common.h"

#define ROW(name, doc, signature, ...)                                                                       \
  const tn_op tn_op_##name = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, #name, doc),                               \
                              .schema = signature,                                                           \
                              .op_class = TN_CLASS_POINTWISE,                                                \
                              __VA_ARGS__}

/* A row with options, each a number: member v[i] of tn_numbers_attributes. */
#define ROW_WITH(name, doc, options, signature, ...)                                                         \
  const tn_op tn_op_##name = {.item = {(uint32_t)sizeof(tn_op), TN_OP, #name, doc, options,                  \
                                       (uint32_t)sizeof(tn_option),                                          \
                                       (uint32_t)sizeof(tn_numbers_attributes)},                             \
                              .schema = signature,                                                           \
                              .op_class = TN_CLASS_POINTWISE,                                                \
                              __VA_ARGS__}
#define NUMBER(i, name, default_text, range, doc)                                                            \
  {                                                                                                          \
    name, TN_OPT_FLOAT, 0, (uint32_t)offsetof(tn_numbers_attributes, v[i]), (uint32_t)sizeof(double),        \
        default_text, range, doc                                                                             \
  }
#define NUMBERS(...)                                                                                         \
  (const tn_option[]) { __VA_ARGS__, TN_OPT_END }

#define UNARY   "(x:T) -> (y:T)"
#define BINARY  "(x:T, y:T) -> (z:T)"
#define COMPARE "(x:T, y:T) -> (z:bool)"
#define TEST    "(x:T) -> (y:bool)"
#define FLOATS  TN_OPS_FLOATS
#define WHOLES  "; T in u8 i8 i32 i64"
#define BOTH    TN_OPS_NUMBERS
