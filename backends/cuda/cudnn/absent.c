/* backends/cuda/cudnn/absent.c: in place of the other files in a build without the headers of cuDNN. */
#include "backends/cuda/cudnn/backend.h"

tn_status tn_cudnn_backend_open(tn_env *env, tn_cuda_backend_object *backend) {
  if (backend->options->cudnn)
    tn_env_log(env, TN_LOG_INFO, "cuda: convolutions and attention run without cuDNN, as Tenon was built");
  return TN_OK;
}

void tn_cudnn_backend_close(tn_env *env, tn_cuda_backend_object *backend) {
  (void)env;
  (void)backend;
}

int32_t tn_cudnn_describe_library(const tn_cuda_backend_object *backend, tn_backend_library *library) {
  (void)backend;
  (void)library;
  return 0;
}

const char *tn_cudnn_better_policy(const tn_cuda_backend_object *backend, const tn_device_properties *device,
                                   const char *policy, const char *op) {
  (void)backend;
  (void)device;
  (void)policy;
  (void)op;
  return NULL;
}

tn_status tn_cudnn_finish_prepare(tn_env *env, tn_cuda_device *device, int32_t *declined) {
  (void)env;
  (void)device;
  (void)declined;
  return TN_OK;
}

void tn_cudnn_device_close(tn_env *env, tn_cuda_device *device) {
  (void)env;
  (void)device;
}
