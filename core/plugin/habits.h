/* core/plugin/habits.h: what items of other frameworks are called here. Private to core/plugin. */
#ifndef TN_CORE_PLUGIN_HABITS_H
#define TN_CORE_PLUGIN_HABITS_H

#include <stdint.h>

/* An item's name as PyTorch or Keras has it. */
typedef struct tn_habit {
  uint32_t kind;
  const char *foreign; /* without module, capitals and underscores: "batchnorm2d" */
  const char *own;     /* the item that does the same; NULL: none does */
  const char *advice;  /* the text to write, or the reason why there is none */
} tn_habit;

/* Finds "nn.BatchNorm2d", "BatchNorm2d" or "batch_norm_2d" among the items of a kind; NULL: not known. */
const tn_habit *tn_habit_find(uint32_t kind, const char *name);

#endif
