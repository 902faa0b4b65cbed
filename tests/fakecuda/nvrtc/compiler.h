/* tests/fakecuda/nvrtc/compiler.h: runs of the C++ compiler of the host. */
#pragma once

#include "tests/fakecuda/nvrtc/build.h"

enum { NVRTC_ARGS = 256 };

typedef struct nvrtc_args {
  const char *words[NVRTC_ARGS];
  int32_t count;
  char *compiler; /* a copy that is cut into words */
} nvrtc_args;

/* The compiler, and the options of each run: `language` is "c++" or "c++-header"; no header of the host, no
 * macro of the host. False: there is no memory. */
bool nvrtc_args_begin(nvrtc_args *args, const char *language, const char *standard);
void nvrtc_args_end(nvrtc_args *args);
void nvrtc_args_add(nvrtc_args *args, const char *word);
/* How code is generated: the same for a prepared header and for its users. */
void nvrtc_args_add_code(nvrtc_args *args);
/* The option for the host's instruction that multiplies and adds; "" where it has none. */
const char *nvrtc_fma(void);
/* Runs the compiler in the folder, with files of the folder as its input and output. Returns its exit status;
 * -1: it cannot be run, and errno says why. */
int nvrtc_run(const char *folder, const nvrtc_args *args, const char *input, const char *output,
              const char *errors);

/* The text that each source begins with, as a header that the compiler has read before: in FAKECUDA_CACHE.
 * False: it is not to be had, and the source contains the text. Any thread. */
bool nvrtc_prepared_header(const char *standard, char path[], size_t room);
