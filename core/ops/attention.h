/* core/ops/attention.h: private to core/ops: parts of attention that general_attention shares. */
#pragma once

#include "core/ops/common.h"

extern const tn_op tn_op_attention;

/* Rows of options. */
#define TN_ATTENTION_CAUSAL                                                                                  \
  TN_OPT(tn_attention_attributes, causal, TN_OPT_FLAG, "no", NULL,                                           \
         "query i sees keys up to i + (keys - queries)")
#define TN_ATTENTION_PRODUCTS                                                                                \
  TN_OPT(tn_attention_attributes, scale, TN_OPT_FLOAT, "0", NULL,                                            \
         "of the products; 0: 1 / sqrt(head width)"),                                                        \
      TN_OPS_MATH(tn_attention_attributes),                                                                  \
      TN_OPT(tn_attention_attributes, heads, TN_OPT_INT, "0", ">= 0",                                        \
             "of operands (batch, tokens, heads * width)")

/* The type of an operand as (batch, heads, tokens, width). */
tn_type tn_attention_split(const tn_attention_attributes *a, const tn_type *x);
/* (batch, tokens, heads * width) as (batch, heads, tokens, width), and back. */
tn_val tn_attention_to_heads(tn_build *b, const tn_attention_attributes *a, tn_val x);
tn_val tn_attention_from_heads(tn_build *b, const tn_attention_attributes *a, tn_val x);
/* scale q k^T in A: (batch, heads, queries, keys). */
tn_val tn_attention_scores(tn_build *b, const tn_attention_attributes *a, tn_val q, tn_val k);
void tn_attention_cost(const tn_node *n, tn_cost *cost);
