/* core/base/quantize.c: see quantize.h. */
#include "core/base/quantize.h"

#include <string.h>

size_t tn_quantize_layer(const char *name) {
  static const char *const ends[] = {"." TN_QUANTIZE_LOW, "." TN_QUANTIZE_HIGH};
  for (int i = 0; i < 2; i++)
    if (tn_text_ends(name, ends[i])) return strlen(name) - strlen(ends[i]);
  return 0;
}
