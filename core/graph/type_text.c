/* core/graph/type_text.c: types as text, "f32[8, 3, 32, 32]". */
#include <inttypes.h>
#include <stdio.h>

#include "core/graph/graph.h"

const char *tn_type_format(const tn_type *type, char text[TN_TYPE_TEXT]) {
  int n = snprintf(text, TN_TYPE_TEXT, "%s[", tn_dtype_name(type->dtype));
  for (int32_t i = 0; i < type->rank && i < TN_MAX_RANK; i++)
    n += snprintf(text + n, (size_t)(TN_TYPE_TEXT - n), "%s%" PRId64, i > 0 ? ", " : "", type->dims[i]);
  snprintf(text + n, (size_t)(TN_TYPE_TEXT - n), "]");
  return text;
}
