/* tests/integration/cli/texts.h: a small language model and its text. */
#pragma once

#include "program.h"

/* A transformer that learns a line which the text repeats. */
#define TEXT_INI(TOKENIZER, CLASSES, CAUSAL)                                                                 \
  "[run]\nname = text\nepochs = 6\n[data]\nsource = text\nfile = text.txt\ntokens = 16\nbatch = 8\n"         \
  "tokenizer = " TOKENIZER "\n[model]\ninputs = tokens: i32[16]\ntargets = next: i32[16]\nlayers =\n"        \
  "    wte:  embedding(" CLASSES ", 32)\n    wpe:  positions(32) <- tokens\n    x:    add <- wte, wpe\n"     \
  "    h:    block(32, heads=2) * 2\n    head: linear(" CLASSES ")\nloss = cross_entropy\n"                  \
  "[block block]\nargs = width, heads\nlayers =\n    ln:   layer_norm\n    qkv:  linear(3*width)\n"          \
  "    q, k, v: split(3, axis=-1)\n    y:    attention(heads, causal=" CAUSAL ") <- q, k, v\n"               \
  "    proj: linear(width)\n    a:    add <- in, proj\n    up:   linear(4*width)\n          gelu\n"          \
  "    down: linear(width)\n          add <- a, down\n"                                                      \
  "[optimizer]\ntype = adamw\nlr = 5e-3\n"

/* text.txt: a line of 13 characters, 9 of them different, again and again. */
static inline void write_pattern(void) {
  enum { LINE = 13, LINES = 300 };
  static char text[LINE * LINES + 1];
  for (int i = 0; i < LINE * LINES; i++) text[i] = "To be or not\n"[i % LINE];
  file_write("text.txt", text);
}
