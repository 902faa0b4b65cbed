/* backends/cuda/cudnn/descriptors.h: descriptors of cuDNN's backend interface, and the calls about them.
 *
 * A list of calls keeps the first failure and skips the calls behind it, so that a sequence of calls is
 * checked once, at its end. It owns the descriptors that it creates. One thread uses it at a time; it needs
 * no tn_env, so threads of the compile pool may. */
#pragma once

#include "backends/cuda/cudnn/engines.h"
#include "backends/cuda/driver/libraries.h"

enum { TN_CUDNN_OWNED = 256, TN_CUDNN_WHY = 512 };

typedef struct tn_cudnn_calls {
  const tn_cudnn_library *library;
  cudnnStatus_t code;     /* of the first failure */
  char why[TN_CUDNN_WHY]; /* "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED (...)"; "": none */
  int32_t n_owned;
  cudnnBackendDescriptor_t owned[TN_CUDNN_OWNED];
} tn_cudnn_calls;

void tn_cudnn_calls_init(tn_cudnn_calls *c, const tn_cudnn_library *library);
/* Destroys the descriptors. */
void tn_cudnn_calls_free(tn_cudnn_calls *c);
/* Takes a descriptor over from the calls. */
void tn_cudnn_disown(tn_cudnn_calls *c, cudnnBackendDescriptor_t descriptor);
static inline bool tn_cudnn_ok(const tn_cudnn_calls *c) { return c->code == CUDNN_STATUS_SUCCESS; }
/* Whether cuDNN has failed, other than by refusing what it was asked for. */
bool tn_cudnn_broke(const tn_cudnn_calls *c);
/* TN_OK, or the failure: TN_EUNSUPPORTED for what cuDNN does not support, TN_ENOMEM, else TN_EDEVICE. */
tn_status tn_cudnn_status(tn_env *env, const tn_cuda_libraries *libraries, const tn_cudnn_calls *c);
/* Records a failure of a function that is called directly. */
void tn_cudnn_check(tn_cudnn_calls *c, cudnnStatus_t code, const char *call);

cudnnBackendDescriptor_t tn_cudnn_create(tn_cudnn_calls *c, cudnnBackendDescriptorType_t type);
void tn_cudnn_set(tn_cudnn_calls *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t n, const void *values);
void tn_cudnn_set_descriptor(tn_cudnn_calls *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptor_t value);
void tn_cudnn_set_int(tn_cudnn_calls *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                      int64_t value);
/* Reads at most n values; the number of those that were there, 0 after a failure. */
int64_t tn_cudnn_get(tn_cudnn_calls *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t n, void *values);
/* Reads at most `most` descriptors, into new ones of a type. */
int64_t tn_cudnn_get_descriptors(tn_cudnn_calls *c, cudnnBackendDescriptor_t d,
                                 cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                 int64_t most, cudnnBackendDescriptor_t *values);
void tn_cudnn_finalize(tn_cudnn_calls *c, cudnnBackendDescriptor_t d);

/* The description of a device, in JSON, as a descriptor. */
cudnnBackendDescriptor_t tn_cudnn_describe_device(tn_cudnn_calls *c, const char *details);
/* A graph as a descriptor; `handle` is NULL where no device is open. */
cudnnBackendDescriptor_t tn_cudnn_describe_graph(tn_cudnn_calls *c, const tn_cudnn_graph *g,
                                                 cudnnHandle_t handle);
/* An engine for a graph, for the handle's device or, where handle is NULL, for the one that `details`
 * describes. Compiles engines that are compiled at run time. */
cudnnBackendDescriptor_t tn_cudnn_describe_plan(tn_cudnn_calls *c, const tn_cudnn_graph *g,
                                                const tn_cudnn_engine *e, const char *details,
                                                cudnnHandle_t handle);
