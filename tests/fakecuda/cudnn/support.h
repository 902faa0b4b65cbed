/* tests/fakecuda/cudnn/support.h: which graphs have an engine. */
#pragma once

#include "tests/fakecuda/cudnn/program.h"

/* Engines by global index. Which of them a graph has follows from its pattern. */
enum {
  FAKEDNN_ENGINE_OWN,      /* a kernel of the library */
  FAKEDNN_ENGINE_COMPILED, /* at run time */
  FAKEDNN_ENGINE_PIECES,   /* weight gradients in pieces, added in the order in which they are ready */
  FAKEDNN_ENGINE_PLAIN,    /* without tensor cores: the heuristics' mode FALLBACK names it */
  FAKEDNN_ENGINE_EXACT,    /* compiled at run time, without tensor cores: likewise */
  FAKEDNN_ENGINES
};

/* Bits of the engines of a graph on an architecture (90: sm_90). 0: none, and the reason is kept as that of
 * the last refusal. */
unsigned fakednn_find_engines(const fakednn_program *program, int arch);
/* Bytes of workspace of an engine with a choice of its knob. */
int64_t fakednn_workspace(const fakednn_program *program, int32_t engine, int64_t knob);
/* Whether an engine uses tensor cores, which round operands of f32 to TF32. */
bool fakednn_uses_tensor_cores(const fakednn_program *program, int32_t engine);
/* The elements of the largest tensor in memory: a cudnnDataType_t. */
int32_t fakednn_main_type(const fakednn_program *program);
