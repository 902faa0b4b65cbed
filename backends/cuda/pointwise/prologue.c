/* backends/cuda/pointwise/prologue.c: see prologue.h. */
#include "backends/cuda/pointwise/prologue.h"

#include <string.h>

tn_status tn_cuda_prologue_print(const void *handle, tn_cuda_prologue_text *t, const tn_layout *layout,
                                 const tn_cuda_front *front, const char *tail) {
  const tn_epilogue_part *region = &t->parts.region;
  tn_cuda_front all = *front;
  tn_cuda_drop_printed(handle, &t->printed);
  for (int32_t i = 0; i < all.n; i++)
    all.stored[i] = region->source[region->match.n_in + i].place == TN_EPILOGUE_RESULT;
  tn_status status = tn_cuda_print_prologue(handle, &region->match, layout, &all, tail, &t->printed);
  if (status == TN_OK && t->printed.fetched_bytes > TN_CUDA_FETCHED_BYTES)
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the prologue loads %d bytes at once, at most %d",
                   (int)t->printed.fetched_bytes, (int)TN_CUDA_FETCHED_BYTES);
  return status;
}

void tn_cuda_prologue_drop(const void *handle, tn_cuda_prologue_text *t) {
  tn_cuda_drop_printed(handle, &t->printed);
  tn_prologue_drop(handle, &t->parts);
}

static bool prologue_has_number(const int32_t *list, int32_t n, int64_t number) {
  for (int32_t i = 0; i < n; i++)
    if (list[i] == number) return true;
  return false;
}

int32_t tn_cuda_prologue_pairs(const tn_cuda_prologue_text *t, const int32_t *read, int32_t n_read,
                               int32_t (*pairs)[2]) {
  const tn_epilogue_source *source = t->parts.region.source;
  int32_t n = 0;
  for (int32_t i = 0; i < t->printed.n_inplace; i++) {
    const tn_epilogue_source *in = &source[t->printed.inplace[i][0]],
                             *out = &source[t->parts.region.match.n_in + t->printed.inplace[i][1]];
    if (out->place != TN_EPILOGUE_RESULT || prologue_has_number(read, n_read, in->at)) continue;
    pairs[n][0] = (int32_t)in->at;
    pairs[n++][1] = (int32_t)out->at;
  }
  return n;
}

void tn_cuda_prologue_rules(const tn_cuda_prologue_text *t, const tn_operand_layout *layout,
                            tn_operand_layout *in, tn_operand_layout *out) {
  const tn_epilogue_part *p = &t->parts.region;
  const tn_type *space = p->match.out[0];
  for (int32_t i = 0; i < p->match.n_in; i++)
    if (tn_type_count(space) > 1 && tn_type_same_dims(p->match.in[i], space)) in[p->source[i].at] = *layout;
  for (int32_t k = 0; k < p->match.n_out && tn_type_count(space) > 1; k++) {
    const tn_epilogue_source *s = &p->source[p->match.n_in + k];
    if (s->place == TN_EPILOGUE_RESULT) out[s->at] = *layout;
  }
}

void tn_cuda_prologue_keep(const tn_cuda_prologue_text *t, tn_cuda_prologue *keep) {
  keep->part.n_words = t->printed.n_words;
  keep->part.n_pointers = t->printed.n_pointers;
  memcpy(keep->part.words, t->printed.words, (size_t)keep->part.n_words * sizeof *keep->part.words);
  memcpy(keep->part.pointer, t->parts.region.source,
         (size_t)keep->part.n_pointers * sizeof *keep->part.pointer);
  memcpy(keep->alignment, t->printed.alignment, (size_t)keep->part.n_pointers);
}

bool tn_cuda_prologue_point(const tn_cuda_prologue *keep, const tn_launch *l, uint64_t *words) {
  bool aligned = true;
  tn_cuda_epilogue_point(&keep->part, l, words);
  for (int32_t i = 0; i < keep->part.n_pointers; i++)
    aligned = aligned && words[TN_CUDA_PW_POINTERS + i] % keep->alignment[i] == 0;
  return aligned;
}
