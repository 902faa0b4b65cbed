/* backends/cuda/cudnn/backend.c: see backend.h. */
#include "backends/cuda/cudnn/backend.h"

#include <string.h>

#include "backends/cuda/cudnn/engines.h"
#include "backends/cuda/cudnn/library.h"

tn_status tn_cudnn_backend_open(tn_env *env, tn_cuda_backend_object *backend) {
  if (!backend->options->cudnn) return TN_OK;
  backend->cudnn = tn_new(env, sizeof *backend->cudnn);
  if (backend->cudnn == NULL) return TN_ENOMEM;
  tn_cudnn_library_open(backend->options->libraries, backend->cudnn);
  /* One that is there and does not work is a surprise. */
  bool damaged = *backend->cudnn->path != '\0' && backend->cudnn->version <= 0;
  if (*backend->cudnn->absent)
    tn_env_log(env, damaged ? TN_LOG_WARN : TN_LOG_INFO,
               "cuda: convolutions and attention run without cuDNN: %s", backend->cudnn->absent);
  else if (*backend->cudnn->driverless)
    tn_env_log(env, TN_LOG_WARN,
               "cuda: cuDNN's engines that are compiled at run time, attention's among them, are missing: %s",
               backend->cudnn->driverless);
  return TN_OK;
}

void tn_cudnn_backend_close(tn_env *env, tn_cuda_backend_object *backend) {
  if (backend->cudnn == NULL) return;
  tn_cudnn_forget_engines(backend->cudnn);
  tn_cudnn_library_close(backend->cudnn);
  tn_delete(env, backend->cudnn);
  backend->cudnn = NULL;
}

int32_t tn_cudnn_describe_library(const tn_cuda_backend_object *backend, tn_backend_library *library) {
  if (backend->cudnn == NULL || *backend->cudnn->absent) return 0;
  library->name = "cuDNN";
  library->version = backend->cudnn->version_text;
  library->path = backend->cudnn->path;
  return 1;
}

/* Fusions of convolutions with batch norms have engines for f16 alone, on compute capability 8 and 9. */
const char *tn_cudnn_better_policy(const tn_cuda_backend_object *backend, const tn_device_properties *device,
                                   const char *policy, const char *op) {
  if (backend->cudnn == NULL || *backend->cudnn->absent) return NULL;
  if (device->arch < 80 || device->arch > 90 || strcmp(policy, "bf16") != 0) return NULL;
  return strcmp(op, "conv2d") == 0 ? "fp16" : NULL;
}
