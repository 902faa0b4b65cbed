/* core/gguf/gguf_model.h: a decoder in a file of GGUF as a configuration. The lines have the names of the
 * file's tensors, so that `[weights] file` may be the file itself. */
#pragma once

#include "core/base/text/text.h"
#include "core/formats/gguf.h"

/* Sizes and numbers of a decoder of the LLaMA family. */
typedef struct tn_gguf_decoder {
  int64_t vocabulary, width, depth, heads, kv_heads, head, hidden,
      window;               /* window: tokens that a pass sees */
  int64_t attention_window; /* 0: all of them */
  double epsilon, base;
  bool bias;        /* of q, k and v */
  bool interleaved; /* rotary pairs are neighbours */
  bool tied;        /* the scores take the table of the tokens */
} tn_gguf_decoder;

/* Reads the keys and checks that the tensors have these shapes. TN_EUNSUPPORTED: the architecture or a part
 * of it is not known, with its name; TN_EINVAL: a key or tensor is missing or has another shape. */
tn_status tn_gguf_decoder_read(const void *handle, tn_gguf *file, tn_gguf_decoder *decoder);
/* Appends the configuration. `name` is that of the run, `weights` the value of [weights] file; NULL: without
 * it. */
void tn_gguf_decoder_write(tn_gguf *file, const tn_gguf_decoder *decoder, const char *name,
                           const char *weights, tn_text *text);
/* Both, for a file whose weights are read from itself: without [weights]. The run has the name of the file.
 */
tn_status tn_gguf_configuration(const void *handle, const char *path, tn_text *text);

/* Writes all tensors as f32 to a file of safetensors at `path`, with the tokenizer `json` as a note; NULL:
 * none. */
tn_status tn_gguf_write_weights(const void *handle, const tn_gguf *file, const char *json, const char *path);
