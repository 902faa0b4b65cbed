/* tests/attack/runs.c: see runs.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/attack/runs.h"

static const char runs_picture[] =
    "[run]\nname = run\nepochs = 2\nseed = 3\nsave_every = 3\nthreads = 1\nprofile = 2\nsamples = 2\n"
    "[data]\nsource = random\nshape = [1, 6, 6]\nclasses = 3\nsamples = 48\nbatch = 12\nworkers = 0\n"
    "[model]\ninputs = image: f32[1, 6, 6]\nlayers =\n"
    "    conv1: conv2d(4, kernel=3, bias=no)\n    bn1:   batch_norm\n           relu\n           "
    "dropout(0.2)\n"
    "           flatten\n    fc:    linear(3)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = adamw\nlr = 0.01\nema = 0.9\n"
    "[backend]\nuse = cpu\nautotune = no\n";

static const char runs_text[] =
    "[run]\nname = run\nepochs = 2\nseed = 5\nthreads = 1\nsamples = 2\n"
    "[data]\nsource = text\nfile = text.txt\ntokens = 8\nbatch = 4\nworkers = 0\n"
    "[model]\ninputs = tokens: i32[8]\ntargets = next: i32[8]\nlayers =\n"
    "    wte:  embedding(8, 8)\n    wpe:  positions(8) <- tokens\n    x:    add <- wte, wpe\n    qkv:  "
    "linear(24)\n"
    "    q, k, v: split(3, axis=-1)\n    y:    attention(2, causal=yes) <- q, k, v\n          add <- x, y\n"
    "    ln:   layer_norm\n    head: linear(8)\n"
    "loss = cross_entropy\nmetrics = perplexity\n"
    "[optimizer]\ntype = sgd\nlr = 0.1\n"
    "[backend]\nuse = onednn\nautotune = no\n";

void runs_write_rows(const char *path, int rows, const float *values) {
  char bytes[8192], header[128];
  size_t n = sizeof(float) * RUNS_ROW * (size_t)rows;
  int length = snprintf(header, sizeof header,
                        "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, 6, 6), }", rows);
  memset(bytes, ' ', 128);
  memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
  memcpy(bytes + 10, header, (size_t)length);
  bytes[127] = '\n';
  if (128 + n > sizeof bytes) attack_die("too many rows");
  memcpy(bytes + 128, values, n);
  attack_write(path, bytes, 128 + n);
}

static void runs_write_inputs(void) {
  static const char line[] = "to be or not\n";
  char text[40 * sizeof line] = "";
  float rows[2 * RUNS_ROW];
  for (int i = 0; i < 40; i++) strcat(text, line);
  for (int i = 0; i < 2 * RUNS_ROW; i++) rows[i] = sinf((float)i);
  attack_write_text("text.txt", text);
  attack_write_text("picture.ini", runs_picture);
  attack_write_text("text.ini", runs_text);
  runs_write_rows("rows.npy", 2, rows);
}

void runs_make(void) {
  if (attack_exists("base")) return;
  runs_write_inputs();
  attack_must((const char *[]){"train", "picture.ini", "--output", "base/picture", "--quiet", NULL});
  attack_must((const char *[]){"train", "text.ini", "--output", "base/text", "--quiet", NULL});
  attack_must((const char *[]){"eval", "base/picture/run", "--classes", NULL});
  attack_must((const char *[]){"report", "base/picture/run", NULL});
}
