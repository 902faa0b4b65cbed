/* core/onnx/rows/attention.h: attention, which operators of several domains describe. */
#pragma once

#include "core/onnx/import.h"

/* A value of (N, heads, tokens, width). */
typedef struct onnx_heads {
  const char *text;
  int64_t heads, tokens, width;
} onnx_heads;

typedef struct onnx_scores {
  onnx_heads q, k, v;
  double scale, softcap; /* softcap 0: none */
  const char *seen;      /* a condition: which keys a query sees; NULL: all */
  const char *added;     /* to the scores; NULL: nothing */
  int64_t offset;        /* keys in front of the first query */
  int32_t shown;         /* the node's result that has scores; -1: none */
  int32_t shown_step;    /* 0: products, 1: behind softcap, 2: with the mask, 3: the shares */
} onnx_scores;

/* The node's first result is attention; (N, tokens, heads * width) where `joined`. */
tn_status onnx_attend(const onnx_use *n, onnx_scores *scores, bool joined);
/* The node's first result is operand 0, turned by tables of cos and sin, the operands of these numbers, at
 * the positions of operand `places`, or -1: the tables have a row for each token. */
tn_status onnx_rotate(const onnx_use *n, int32_t cos, int32_t sin, int32_t places);
