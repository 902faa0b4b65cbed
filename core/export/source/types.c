/* core/export/source/types.c: types of elements as words of C. */
#include "core/export/source/source.h"

const char *source_type(int32_t dtype) {
  switch (dtype) {
  case TN_BOOL: return "unsigned char";
  case TN_U8: return "uint8_t";
  case TN_I8: return "int8_t";
  case TN_I32: return "int32_t";
  case TN_I64: return "int64_t";
  case TN_F32: return "float";
  default: return "void";
  }
}
