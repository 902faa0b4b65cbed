/* backends/cuda/cudnn/backend.h: what the backend calls about cuDNN; a build without cuDNN's headers has
 * absent.c in place of the other files. */
#pragma once

#include "backends/cuda/objects.h"

/* Opens cuDNN where it is found and wanted; logs why where it is not. */
tn_status tn_cudnn_backend_open(tn_env *env, tn_cuda_backend_object *backend);
void tn_cudnn_backend_close(tn_env *env, tn_cuda_backend_object *backend);
/* Fills in the library and returns 1; 0: cuDNN is not used. */
int32_t tn_cudnn_describe_library(const tn_cuda_backend_object *backend, tn_backend_library *library);

/* The policy for which cuDNN has fusions of an op that it lacks under this one; NULL: none. */
const char *tn_cudnn_better_policy(const tn_cuda_backend_object *backend, const tn_device_properties *device,
                                   const char *policy, const char *op);

/* Ends the requests of a device (plan.h). TN_EUNSUPPORTED: a plan cannot be built, and the request is
 * dropped; *declined is its kernel's tn_prepare.use. */
tn_status tn_cudnn_finish_prepare(tn_env *env, tn_cuda_device *device, int32_t *declined);
/* Closes what a device has for cuDNN; all plans are withdrawn. */
void tn_cudnn_device_close(tn_env *env, tn_cuda_device *device);
