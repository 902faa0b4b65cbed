/* Text that grows, and words of the argument. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/pointwise/printer.h"

static bool text_grow(tn_cuda_printer *p, size_t more) {
  if (p->n + more + 1 <= p->room) return true;
  size_t room = 2 * p->room + more + 4096;
  char *text = p->no_memory ? NULL : tn_new(p->region->handle, room);
  if (text == NULL) {
    p->no_memory = true;
    return false;
  }
  if (p->made->text != NULL) memcpy(text, p->made->text, p->n + 1);
  tn_delete(p->region->handle, p->made->text);
  p->made->text = text;
  p->room = room;
  return true;
}

void tn_cuda_put(tn_cuda_printer *p, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  size_t more = (size_t)vsnprintf(NULL, 0, format, args);
  if (text_grow(p, more)) vsnprintf(p->made->text + p->n, more + 1, format, again);
  if (!p->no_memory) p->n += more;
  va_end(again);
  va_end(args);
}

/* Words beyond the limit are counted, not kept: the region is declined then. */
int32_t tn_cuda_put_word(tn_cuda_printer *p, uint64_t word) {
  tn_cuda_printed *made = p->made;
  if (made->n_words < TN_CUDA_PW_WORDS) made->words[made->n_words] = word;
  return made->n_words++;
}

const char *tn_cuda_lane_name(int32_t lane) {
#define LANE_NAME(code, name, type, whole) #name,
  static const char *const names[TN_LANES] = {TN_EACH_LANE(LANE_NAME)};
  return names[lane];
}

const char *tn_cuda_element_name(int32_t dtype) { return dtype == TN_BOOL ? "u8" : tn_dtype_name(dtype); }

void tn_cuda_put_number(tn_cuda_printer *p, int32_t lane, uint64_t bits) {
  bool number = lane == TN_LANE_F32 || lane == TN_LANE_F64;
  const char *name = tn_cuda_lane_name(lane);
  int32_t word = tn_cuda_put_word(p, bits);
  if (number)
    tn_cuda_put(p, "%s_of_word(a.w[%d])", name, (int)word);
  else
    tn_cuda_put(p, "(%s)a.w[%d]", name, (int)word);
}
