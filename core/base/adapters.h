/* core/base/adapters.h: which layers get adapters of low rank: [adapt] and [adapt.NAME]. Hu and others,
 * "LoRA: low-rank adaptation of large language models", ICLR 2022: the layer keeps its weight W, and y = W x
 * becomes y = W x + s B A x with trained A and B of `rank` rows and columns. Liu and others, "DoRA:
 * weight-decomposed low-rank adaptation", ICML 2024: each unit of W + s B A is scaled to a trained norm, too.
 */
#pragma once

#include "core/base/text/word_list.h"

enum { TN_ADAPT_LORA = 0, TN_ADAPT_DORA = 1 };

typedef struct tn_adapter {
  const char *section; /* "adapt", or "adapt.NAME" */
  const char *where;   /* "file.ini:14" of match */
  tn_words match;      /* patterns of paths of layers */
  int64_t rank;
  double alpha, dropout;
  double scale; /* s: alpha / rank, or alpha / sqrt(rank) with rslora */
  int32_t rslora;
  int32_t type; /* TN_ADAPT_... */
} tn_adapter;

typedef struct tn_adapters {
  tn_adapter *v;
  int32_t n;
  tn_words train; /* patterns of other parameters that are trained, as a new head */
} tn_adapters;

/* The names of the parameters of a layer's adapter, behind its path and a dot: those of PEFT. The last one is
 * the norm of each unit. */
#define TN_ADAPTER_DOWN           "lora_A.weight"
#define TN_ADAPTER_UP             "lora_B.weight"
#define TN_ADAPTER_EMBEDDING_DOWN "lora_embedding_A"
#define TN_ADAPTER_EMBEDDING_UP   "lora_embedding_B"
#define TN_ADAPTER_MAGNITUDE      "lora_magnitude_vector"

/* The adapter of a layer: the first whose patterns match its path; NULL: it has none. */
const tn_adapter *tn_adapters_find(const tn_adapters *adapters, const char *layer);

/* The length of the layer's path in front of ".lora_A.weight" or ".lora_embedding_A"; 0: `name` is another.
 */
size_t tn_adapter_layer(const char *name);

/* The length of the layer's path in front of ".lora_magnitude_vector"; 0: `name` is another. */
size_t tn_adapter_magnitude_layer(const char *name);

/* Whether a name is that of a parameter of an adapter. */
bool tn_adapter_owns(const char *name);

/* The norm of each unit of a weight (rows, columns): of a row, or of a column where the weight is the table
 * of an embedding. `norms` has room for one number a unit. */
void tn_adapter_norms(const float *weight, int64_t rows, int64_t columns, bool embedding, float *norms);
