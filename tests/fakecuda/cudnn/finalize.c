/* tests/fakecuda/cudnn/finalize.c: see finalize.h. */
#include "tests/fakecuda/cudnn/finalize.h"
#include "tests/fakecuda/cudnn/engines.h"
#include "tests/fakecuda/cudnn/execute.h"
#include "tests/fakecuda/cudnn/graph.h"
#include "tests/fakecuda/cudnn/operations.h"

cudnnStatus_t fakednn_finalize(fakednn_body *body) {
  int n;
  if (fakednn_slots(body->type, &n)) return fakednn_finalize_operation(body);
  switch (body->type) {
  case CUDNN_BACKEND_TENSOR_DESCRIPTOR: return fakednn_finalize_tensor(body);
  case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: return fakednn_finalize_convolution(body);
  case CUDNN_BACKEND_POINTWISE_DESCRIPTOR: return fakednn_finalize_pointwise(body);
  case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return fakednn_finalize_graph(body);
  case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR: return fakednn_finalize_device(body);
  case CUDNN_BACKEND_ENGINE_DESCRIPTOR: return fakednn_finalize_engine(body);
  case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR: return fakednn_finalize_configuration(body);
  case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: return fakednn_finalize_heuristics(body);
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return fakednn_finalize_plan(body);
  case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: return fakednn_finalize_pack(body);
  default: return CUDNN_STATUS_SUCCESS;
  }
}
