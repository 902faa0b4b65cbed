/* backends/cuda/pointwise/epilogue.c: see epilogue.h. */
#include "backends/cuda/pointwise/epilogue.h"

#include <string.h>

tn_status tn_cuda_epilogue_print(const void *handle, tn_cuda_epilogue_text *t, int32_t n_given,
                                 const char *tail) {
  t->n_given = n_given;
  tn_status status = tn_cuda_print_epilogue(handle, &t->region.match, n_given, tail, &t->printed);
  if (status == TN_OK && t->printed.n_words > TN_CUDA_EPILOGUE_WORDS)
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the epilogue needs %d words of arguments, at most %d",
                   (int)t->printed.n_words, (int)TN_CUDA_EPILOGUE_WORDS);
  return status;
}

void tn_cuda_epilogue_drop(const void *handle, tn_cuda_epilogue_text *t) {
  tn_cuda_drop_printed(handle, &t->printed);
  tn_epilogue_drop_part(handle, &t->region);
}

static bool epilogue_has_number(const int32_t *list, int32_t n, int64_t number) {
  for (int32_t i = 0; i < n; i++)
    if (list[i] == number) return true;
  return false;
}

int32_t tn_cuda_epilogue_pairs(const tn_cuda_epilogue_text *t, const int32_t *read, int32_t n_read,
                               int32_t (*pairs)[2]) {
  const tn_epilogue_source *source = t->region.source;
  int32_t n = 0;
  for (int32_t i = 0; i < t->printed.n_inplace; i++) {
    int32_t operand = t->printed.inplace[i][0], result = t->printed.inplace[i][1];
    if (operand < t->n_given || epilogue_has_number(read, n_read, source[operand].at)) continue;
    pairs[n][0] = (int32_t)source[operand].at;
    pairs[n++][1] = (int32_t)source[t->region.match.n_in + result].at;
  }
  return n;
}

void tn_cuda_epilogue_keep(const tn_cuda_epilogue_text *t, tn_cuda_epilogue *keep) {
  keep->n_words = t->printed.n_words;
  keep->n_pointers = t->printed.n_pointers;
  memcpy(keep->words, t->printed.words, (size_t)keep->n_words * sizeof *keep->words);
  memcpy(keep->pointer, t->region.source, (size_t)keep->n_pointers * sizeof *keep->pointer);
  for (int32_t i = 0; i < t->n_given; i++) keep->pointer[i].place = TN_EPILOGUE_INNER;
}

void tn_cuda_epilogue_point(const tn_cuda_epilogue *keep, const tn_launch *l, uint64_t *words) {
  memcpy(words, keep->words, (size_t)keep->n_words * sizeof *words);
  for (int32_t i = 0; i < keep->n_pointers; i++) {
    const tn_epilogue_source *s = &keep->pointer[i];
    if (s->place == TN_EPILOGUE_INNER) continue;
    const void *address = s->place == TN_EPILOGUE_OPERAND ? l->in[s->at].data : l->out[s->at].data;
    words[TN_CUDA_PW_POINTERS + i] = (uintptr_t)address;
  }
}
