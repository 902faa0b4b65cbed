/* tests/fakecuda/cudnn/run.h: the interpreter of programs. */
#pragma once

#include "tests/fakecuda/cudnn/engines.h"
#include "tests/fakecuda/cudnn/graph.h"

/* The argument of fakednn_run, as long as its tensors need. */
typedef struct fakednn_task {
  fakednn_plan *plan;
  void *workspace;
  union {
    void *memory;
    double value; /* of a tensor by value */
  } tensor[FAKEDNN_TENSORS];
} fakednn_task;

/* A body for fakecuda_enqueue. Another result than 0: the plan was destroyed, or out of host memory. */
int fakednn_run(void *task);

/* The tensors of a program in memory of the host, in f32 at the offsets of their strides. */
typedef struct fakednn_values {
  const fakednn_plan *plan;
  float *of[FAKEDNN_TENSORS];
  int run;   /* how often the plan ran before */
  bool tf32; /* operands of products are rounded to TF32 */
} fakednn_values;

/* An operation's result to values->of of what it writes, which is there. false: out of memory. */
bool fakednn_run_convolution(const fakednn_node *node, const fakednn_values *values);
bool fakednn_run_matmul(const fakednn_node *node, const fakednn_values *values);
bool fakednn_run_pointwise(const fakednn_node *node, const fakednn_values *values);
bool fakednn_run_reduction(const fakednn_node *node, const fakednn_values *values);
bool fakednn_run_statistics(const fakednn_node *node, const fakednn_values *values);
bool fakednn_run_bn_finalize(const fakednn_node *node, const fakednn_values *values);
bool fakednn_run_bn_backward(const fakednn_node *node, const fakednn_values *values);

/* The tensor in a slot; NULL: absent. */
const fakednn_tensor *fakednn_in_slot(const fakednn_node *node, const fakednn_values *values, int slot);
/* Its values; NULL: absent. */
float *fakednn_data(const fakednn_node *node, const fakednn_values *values, int slot);
