/* core/gguf/configuration.c: a decoder as the text of a configuration. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/gguf/gguf_model.h"

/* A text of the file, in a comment. */
static void configuration_write_plain(tn_text *text, const char *from, size_t most) {
  for (size_t i = 0; from[i] != '\0' && i < most; i++)
    tn_text_addn(text, (unsigned char)from[i] >= ' ' && from[i] != 127 ? &from[i] : " ", 1);
}

static void configuration_write_heading(tn_gguf *file, const char *name, tn_text *text) {
  tn_text_add(text, "# ");
  configuration_write_plain(text, tn_gguf_text(file, "general.name", "A decoder"), 100);
  tn_text_addf(text, ", of the form of %s, from a file of GGUF.\n[run]\nname = %s\n\n",
               tn_gguf_text(file, "general.architecture", ""), name);
}

static void configuration_write_model(const tn_gguf_decoder *d, tn_text *text) {
  long long window = (long long)d->window, vocabulary = (long long)d->vocabulary;
  tn_text_addf(text,
               "[model]\ninputs = tokens: i32[%lld]\ntargets = next: i32[%lld]\nlayers =\n"
               "    token_embd: embedding(%lld, %lld)\n    blk: block * %lld\n    output_norm: "
               "rms_norm(epsilon=%.9g)\n",
               window, window, vocabulary, (long long)d->width, (long long)d->depth, d->epsilon);
  if (d->tied)
    tn_text_addf(text, "    head: linear(%lld, bias=no, weight=@token_embd.weight)\n", vocabulary);
  else
    tn_text_addf(text, "    output: linear(%lld, bias=no)\n", vocabulary);
  tn_text_add(text, "loss = cross_entropy\n\n");
}

static void configuration_write_attention(const tn_gguf_decoder *d, tn_text *text) {
  const char *bias = d->bias ? "" : ", bias=no", *pairs = d->interleaved ? ", interleaved=yes" : "";
  long long heads = (long long)d->heads, kv_heads = (long long)d->kv_heads, head = (long long)d->head;
  tn_text_addf(text,
               "    attn_q: linear(%lld%s) <- attn_norm\n    attn_k: linear(%lld%s) <- attn_norm\n"
               "    attn_v: linear(%lld%s) <- attn_norm\n",
               heads * head, bias, kv_heads * head, bias, kv_heads * head, bias);
  tn_text_addf(text, "    q: rotary(%lld, %.9g%s) <- attn_q\n    k: rotary(%lld, %.9g%s) <- attn_k\n", heads,
               d->base, pairs, kv_heads, d->base, pairs);
  tn_text_addf(text, "    attention(%lld, kv_heads=%lld, causal=yes", heads, kv_heads);
  if (d->attention_window > 0) tn_text_addf(text, ", window=%lld", (long long)d->attention_window);
  tn_text_addf(text, ") <- q, k, attn_v\n    attn_output: linear(%lld, bias=no)\n", (long long)d->width);
}

static void configuration_write_block(const tn_gguf_decoder *d, tn_text *text) {
  tn_text_addf(text, "[block block]\nlayers =\n    attn_norm: rms_norm(epsilon=%.9g)\n", d->epsilon);
  configuration_write_attention(d, text);
  tn_text_addf(text,
               "    a = in + attn_output\n    ffn_norm: rms_norm(epsilon=%.9g)\n"
               "    ffn_gate: linear(%lld, bias=no) <- ffn_norm\n    gate: silu\n"
               "    ffn_up: linear(%lld, bias=no) <- ffn_norm\n    mul <- gate, ffn_up\n"
               "    ffn_down: linear(%lld, bias=no)\n    y = a + ffn_down\n",
               d->epsilon, (long long)d->hidden, (long long)d->hidden, (long long)d->width);
}

void tn_gguf_decoder_write(tn_gguf *file, const tn_gguf_decoder *d, const char *name, const char *weights,
                           tn_text *text) {
  configuration_write_heading(file, name, text);
  configuration_write_model(d, text);
  configuration_write_block(d, text);
  if (weights != NULL) tn_text_addf(text, "\n[weights]\nfile = %s\n", weights);
}

/* "model" of "models/model.gguf", with _ for what a name cannot have. */
static void configuration_name(const char *path, char *name, size_t room) {
  const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
  snprintf(name, room, "%s", base);
  char *dot = strrchr(name, '.');
  if (dot != NULL && dot != name) *dot = '\0';
  for (char *c = name; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c) && *c != '-') *c = '_';
}

tn_status tn_gguf_configuration(const void *handle, const char *path, tn_text *text) {
  tn_gguf *file;
  tn_gguf_decoder decoder;
  char name[64];
  configuration_name(path, name, sizeof name);
  TN_TRY(tn_gguf_open(handle, path, &file));
  tn_status status = tn_gguf_decoder_read(handle, file, &decoder);
  if (status == TN_OK) tn_gguf_decoder_write(file, &decoder, name, NULL, text);
  tn_gguf_close(file);
  return status == TN_OK && text->failed ? TN_ENOMEM : status;
}
