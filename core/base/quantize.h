/* core/base/quantize.h: [quantize]: the layers that train with rounded inputs and weights, and how the ranges
 * of inputs are observed. */
#pragma once

#include <stdbool.h>

#include "core/base/text/word_list.h"

typedef struct tn_quantize {
  bool given;
  const char *where; /* "file.ini:14" of match */
  tn_words match;    /* patterns of paths of layers */
  int64_t input_bits, weight_bits;
  int32_t observer; /* TN_OBSERVER_... */
  double averaging; /* the part of a batch's range in the moving average */
  int64_t observe;  /* ranges change in so many steps; 0: in all */
} tn_quantize;

/* A moving average of the ranges of batches, or the least and the greatest element of all batches. */
enum { TN_OBSERVER_AVERAGE = 0, TN_OBSERVER_MINMAX = 1 };

/* The names of the states of a layer that have the range of its input, behind its path and a dot. Before the
 * first batch the least element is above the greatest. */
#define TN_QUANTIZE_LOW  "input_min"
#define TN_QUANTIZE_HIGH "input_max"

/* The length of the layer's path in front of ".input_min" or ".input_max"; 0: `name` is another. */
size_t tn_quantize_layer(const char *name);
