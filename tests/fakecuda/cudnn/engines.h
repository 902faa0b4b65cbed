/* tests/fakecuda/cudnn/engines.h: devices, heuristics, engines, their configurations and plans as they
 * finalize. */
#pragma once

#include "tests/fakecuda/cudnn/program.h"

/* The work of a plan. It stays in memory, so that work that outlives its plan finds it destroyed. */
typedef struct fakednn_plan {
  struct fakednn_plan *next;
  const fakednn_program *program;
  int32_t engine, arch;
  int64_t workspace;
  atomic_bool destroyed;
  atomic_int runs;
} fakednn_plan;

cudnnStatus_t fakednn_finalize_device(fakednn_body *body);
/* A graph that no engine has: no results, as in the library. */
cudnnStatus_t fakednn_finalize_heuristics(fakednn_body *body);
cudnnStatus_t fakednn_finalize_engine(fakednn_body *body);
cudnnStatus_t fakednn_finalize_configuration(fakednn_body *body);
cudnnStatus_t fakednn_finalize_plan(fakednn_body *body);
