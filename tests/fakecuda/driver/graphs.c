/* tests/fakecuda/driver/graphs.c: graphs and their executable forms. All forms of a graph share its captured
 * work, which the engine replays one at a time. */
#include <stdlib.h>

#include "tests/fakecuda/driver/driver.h"

/* The captured work. */
typedef struct recorded {
  int references;
  tn_sim_capture *sim;
  struct fake_work *works;
  size_t nodes;
} recorded;

/* A CUgraph or a CUgraphExec. */
typedef struct graph {
  fake_context *context;
  void *handle;
  uint64_t number;
  recorded *work;
} graph;

static void graph_free(graph *g) {
  tn_env env = fake_env;
  fake_handle_drop(g->handle);
  if (--g->work->references == 0) {
    tn_sim_capture_delete(&env, g->work->sim); /* waits for the device */
    fake_works_free(g->work->works);
    free(g->work);
  }
  free(g);
}

static graph *graph_new(int kind, fake_context *context, recorded *work) {
  graph *g = calloc(1, sizeof *g);
  void *handle = g != NULL ? fake_handle_new(kind, context, g) : NULL;
  if (handle == NULL) return free(g), NULL;
  *g = (graph){context, handle, ++context->graphs, work};
  work->references++;
  return g;
}

CUresult fake_graph_new(const fake_call *call, const fake_capture *capture, CUgraph *handle) {
  (void)call;
  recorded *work = calloc(1, sizeof *work);
  if (work == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *work = (recorded){.sim = capture->sim, .works = capture->works, .nodes = capture->nodes};
  const graph *g = graph_new(FAKE_GRAPH, capture->context, work);
  if (g == NULL) return free(work), CUDA_ERROR_OUT_OF_MEMORY;
  *handle = g->handle;
  return CUDA_SUCCESS;
}

static CUresult graph_find(const fake_call *call, int kind, const void *handle, graph **g) {
  *g = fake_handle_find(kind, handle);
  if (*g != NULL) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_HANDLE, "%p is no live %s", handle,
                     kind == FAKE_GRAPH ? "graph" : "executable graph");
}

static CUresult graph_instantiate(const fake_call *call, CUgraphExec *exec, CUgraph handle,
                                  unsigned long long flags) {
  graph *g;
  unsigned long long known =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (exec == NULL || (flags & ~known) != 0)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "flags %#llx, place %p", flags, (void *)exec);
  CUresult code = graph_find(call, FAKE_GRAPH, handle, &g);
  if (code != CUDA_SUCCESS) return code;
  const graph *e = graph_new(FAKE_EXEC, g->context, g->work);
  if (e == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *exec = e->handle;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph handle, unsigned long long flags) {
  FAKE_CALL(FAKE_CURRENT, graph_instantiate(&call, exec, handle, flags));
}

static CUresult graph_delete(const fake_call *call, int kind, const void *handle) {
  graph *g;
  CUresult code = graph_find(call, kind, handle, &g);
  if (code != CUDA_SUCCESS) return code;
  if (g->work->references == 1 && fake_finish(g->context)) code = graph_find(call, kind, handle, &g);
  if (code == CUDA_SUCCESS) graph_free(g);
  return code;
}

FAKE_API CUresult cuGraphDestroy(CUgraph handle) {
  FAKE_CALL(FAKE_CURRENT | FAKE_FREES, graph_delete(&call, FAKE_GRAPH, handle));
}

FAKE_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  FAKE_CALL(FAKE_CURRENT | FAKE_FREES, graph_delete(&call, FAKE_EXEC, exec));
}

static void graph_close(fake_context *context, int kind, const char *what) {
  size_t at = 0;
  for (graph *g; (g = fake_handle_next(kind, context, &at)) != NULL;) {
    fake_leak(context, "%s %llu", what, (unsigned long long)g->number);
    graph_free(g);
  }
}

void fake_graphs_close(fake_context *context) {
  graph_close(context, FAKE_EXEC, "executable graph");
  graph_close(context, FAKE_GRAPH, "graph");
}

/* ---- launches ---- */

static CUresult graph_launch(const fake_call *call, CUgraphExec exec, CUstream handle) {
  graph *g;
  fake_stream *s;
  CUresult code = graph_find(call, FAKE_EXEC, exec, &g);
  if (code == CUDA_SUCCESS) code = fake_stream_for_work(call, handle, &s);
  if (code != CUDA_SUCCESS) return code;
  if (g->context != s->context)
    return fake_refuse(call, CUDA_ERROR_INVALID_CONTEXT, "the graph is of device %d, the stream of device %d",
                       g->context->device, s->context->device);
  if (s->capture != NULL)
    return fake_capture_spoil(call, s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                              "the double captures no launch of a graph");
  tn_env env = fake_env;
  if (tn_sim_capture_launch(&env, g->work->sim, s->sim) == TN_OK) return CUDA_SUCCESS;
  int fault = atomic_load(&s->context->fault);
  return fault != CUDA_SUCCESS ? (CUresult)fault : CUDA_ERROR_OUT_OF_MEMORY;
}

FAKE_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  FAKE_CALL(FAKE_CURRENT, graph_launch(&call, exec, stream));
}

/* Copies, memsets and kernels are nodes. A node's handle is of no use but to be counted. */
static CUresult graph_nodes(const fake_call *call, CUgraph handle, CUgraphNode *nodes, size_t *n) {
  graph *g;
  if (n == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the number of nodes");
  CUresult code = graph_find(call, FAKE_GRAPH, handle, &g);
  if (code != CUDA_SUCCESS) return code;
  size_t room = nodes != NULL ? *n : 0;
  for (size_t i = 0; i < room; i++)
    nodes[i] = i < g->work->nodes ? (CUgraphNode)(uintptr_t)(UINT64_C(0x5DCF) << 48 | (i + 1)) : NULL;
  *n = nodes == NULL || room > g->work->nodes ? g->work->nodes : room;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *n) {
  FAKE_CALL(FAKE_CURRENT, graph_nodes(&call, handle, nodes, n));
}
