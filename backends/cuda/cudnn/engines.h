/* backends/cuda/cudnn/engines.h: the engines of cuDNN that compute a graph on a device.
 *
 * The device is its description (tn_device_properties.details, in the keys that cuDNN reads), so a device in
 * the machine and one that a file describes go one way, and nothing here needs a driver. Engines that are
 * compiled at run time are listed only where a driver is found: cuDNN hides them otherwise. */
#pragma once

#include "backends/cuda/cudnn/graph.h"
#include "backends/cuda/cudnn/library.h"
#include "backends/cuda/rates.h"
#include "tenon/plugin/kernel.h"

enum { TN_CUDNN_KNOBS = 24, TN_CUDNN_ENGINES = 4, TN_CUDNN_REASON = 512 };

/* An engine with its settings, as heuristics name it. */
typedef struct tn_cudnn_engine {
  char name[40]; /* "engine 62.0": the first one that is offered; "engine 3.0 compiled" */
  int64_t index; /* cuDNN's, within the graph */
  int32_t n_knobs;
  cudnnBackendKnobType_t knob[TN_CUDNN_KNOBS];
  int64_t knob_value[TN_CUDNN_KNOBS];
  int64_t workspace_bytes;
  bool compiled;      /* at run time, in half a second to two */
  bool deterministic; /* the same bits in every run */
  bool matrix;        /* computes on matrix units; f32 is rounded to tf32 there */
} tn_cudnn_engine;

/* The engines that are offered, cuDNN's favourite first; none: the reason. */
typedef struct tn_cudnn_engines {
  int32_t n;
  tn_cudnn_engine engine[TN_CUDNN_ENGINES];
  bool broken; /* none, because a call failed that cuDNN should have answered */
  char reason[TN_CUDNN_REASON];
} tn_cudnn_engines;

/* Finds the engines of a graph, in 2 ms or so; the answer is remembered by the graph's text and the device.
 * Any thread. `backend`: the backend's object; NULL: TN_EUNSUPPORTED. `exact`: f32 is not rounded to fewer
 * bits. Engines are left out that reduce in f16, transform (Winograd, FFT), or want more workspace than the
 * graph allows; at least one is deterministic if cuDNN has one. Engines compiled at run time are taken where
 * there are no others. TN_EUNSUPPORTED: cuDNN is not there, does not know the device, computes no such graph,
 * or has failed, of which the first time is logged as a warning; the text has its reason. */
tn_status tn_cudnn_find_engines(tn_env *env, const void *backend, const tn_device_properties *device,
                                const tn_cudnn_graph *g, bool exact, tn_cudnn_engines *engines);

/* 91900 for 9.19.0, of the library that a backend's object uses; NULL: none is open. 0: cuDNN is not used. */
int64_t tn_cudnn_version_of(const void *backend);

/* Frees the remembered answers of a library. */
void tn_cudnn_forget_engines(tn_cudnn_library *library);

/* The part of all variants of a graph that they share. */
typedef struct tn_cudnn_offer {
  const tn_operand_layout *in, *out;
  int64_t workspace_bytes; /* besides the engine's, which comes first and is rounded up to 256 */
  int64_t prepared_bytes, folded_bytes;
  int32_t n_inplace;
  const int32_t (*inplace)[2];
  int32_t first_id; /* of the variants; the others follow */
  const char *form; /* of the graph, where a kernel has several: part of the variants' names; or NULL */
  bool varies;      /* the last bits differ from run to run, also where cuDNN calls an engine deterministic */
  tn_cuda_kind kind; /* of the shares of the device's rates that the kernel reaches; 0: a convolution */
  int32_t dtype;     /* of the operands of products */
  double flops;      /* of products */
  double bytes;      /* read and written by all launches of the kernel */
  double other_s;    /* seconds of its other launches */
  int32_t plain_sums;
  bool exact;
} tn_cudnn_offer;

/* Alignment of workspaces, bytes, and of the kernel's own part behind that of the engine. */
enum { TN_CUDNN_WORKSPACE_ROUND = 256 };

/* Offers a variant for each engine of a graph, with the ids first_id, first_id + 1, ... */
tn_status tn_cudnn_offer_engines(tn_query *q, const tn_cudnn_graph *g, const tn_cudnn_offer *offer);
/* An engine's workspace, rounded up: where the kernel's own begins. */
int64_t tn_cudnn_engine_workspace(const tn_cudnn_engine *engine);
