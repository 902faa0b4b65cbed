/* tests/fakecuda/cudnn/support.h: which graphs have an engine. */
#ifndef TN_TESTS_FAKECUDA_CUDNN_SUPPORT_H
#define TN_TESTS_FAKECUDA_CUDNN_SUPPORT_H

#include "tests/fakecuda/cudnn/program.h"

/* Engines by global index. Which of them a graph has follows from its pattern. */
enum {
  FAKEDNN_ENGINE_OWN,      /* a kernel of the library */
  FAKEDNN_ENGINE_COMPILED, /* at run time */
  FAKEDNN_ENGINE_PIECES,   /* weight gradients in pieces, added in the order in which they are ready */
  FAKEDNN_ENGINE_PLAIN,    /* the last resort: the heuristics' mode FALLBACK names it */
  FAKEDNN_ENGINES
};

/* Bits of the engines of a graph on an architecture (90: sm_90). 0: none, and the reason is kept as that of a
 * refusal, with its status. */
cudnnStatus_t fakednn_find_engines(const fakednn_program *program, int arch, unsigned *engines);
/* Bytes of workspace of an engine with a choice of its knob. */
int64_t fakednn_workspace(const fakednn_program *program, int32_t engine, int64_t knob);
/* Whether an engine of the program adds products with tensor cores. */
bool fakednn_is_16_bit(const fakednn_program *program);

#endif
