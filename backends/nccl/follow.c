/* backends/nccl/follow.c: see follow.h. */
#include "backends/nccl/follow.h"

#include <stdatomic.h>
#include <stdio.h>

#define MARK 0x80000000u

/* ---- numbers and names ---- */

uint32_t tn_nccl_follow_number(tn_nccl_follow *follow, const char *name) {
  pthread_mutex_lock(&follow->lock);
  uint32_t number = follow->calls++ & (MARK / 2 - 1);
  tn_nccl_kept_name *kept = &follow->names[number % TN_NCCL_KEPT];
  kept->number = number;
  snprintf(kept->text, sizeof kept->text, "%s", name);
  pthread_mutex_unlock(&follow->lock);
  return number;
}

void tn_nccl_follow_name(tn_nccl_follow *follow, uint32_t word, char *text, size_t size) {
  uint32_t number = (word - 1) / 2;
  pthread_mutex_lock(&follow->lock);
  const tn_nccl_kept_name *kept = &follow->names[number % TN_NCCL_KEPT];
  if (kept->number == number && kept->text[0] != '\0')
    snprintf(text, size, "'%s'", kept->text);
  else
    snprintf(text, size, "collective %u", (unsigned)number);
  pthread_mutex_unlock(&follow->lock);
}

/* ---- writes ---- */

static tn_status nccl_follow_write(tn_env *env, const tn_nccl_follow *follow, CUstream stream,
                                   uint32_t value) {
  const tn_nccl_driver *driver = follow->driver;
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  if (follow->word == NULL) return TN_OK;
  if (!follow->in_captures) {
    tn_status status = TN_NCCL_CU(env, driver, cuStreamIsCapturing, stream, &capturing);
    if (status != TN_OK || capturing != CU_STREAM_CAPTURE_STATUS_NONE) return status;
  }
  return TN_NCCL_CU(env, driver, cuStreamWriteValue32, stream, (CUdeviceptr)(uintptr_t)follow->word,
                    value & ~MARK, CU_STREAM_WRITE_VALUE_DEFAULT);
}

tn_status tn_nccl_follow_begin(tn_env *env, const tn_nccl_follow *follow, CUstream stream, uint32_t number) {
  return nccl_follow_write(env, follow, stream, 2 * number + 1);
}

tn_status tn_nccl_follow_end(tn_env *env, const tn_nccl_follow *follow, CUstream stream, uint32_t number) {
  return nccl_follow_write(env, follow, stream, 2 * number + 2);
}

/* ---- the host's view ---- */

uint32_t tn_nccl_follow_word(const tn_nccl_follow *follow) {
  return follow->word != NULL ? atomic_load(follow->word) & ~MARK : 0;
}

/* Where the exchange fails, the device has written in between. */
double tn_nccl_follow_waited(tn_nccl_follow *follow, double now_s) {
  uint32_t seen = follow->word != NULL ? atomic_load(follow->word) : 0;
  double waited_s = 0;
  if ((seen & 1) == 0) return 0;
  pthread_mutex_lock(&follow->lock);
  if ((seen & MARK) != 0)
    waited_s = now_s - follow->since;
  else if (atomic_compare_exchange_strong(follow->word, &seen, seen | MARK))
    follow->since = now_s;
  pthread_mutex_unlock(&follow->lock);
  return waited_s;
}

tn_status tn_nccl_follow_position(tn_env *env, tn_nccl_follow *follow, tn_comm_position *position) {
  uint32_t word = tn_nccl_follow_word(follow), number = (word - 1) / 2;
  if (follow->word == NULL || !follow->in_captures)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "nccl: not all collectives are followed");
  position->inside = (int32_t)(word & 1);
  if (!position->inside) return TN_OK;
  pthread_mutex_lock(&follow->lock);
  const tn_nccl_kept_name *kept = &follow->names[number % TN_NCCL_KEPT];
  if (kept->number == number) snprintf(position->name, sizeof position->name, "%s", kept->text);
  pthread_mutex_unlock(&follow->lock);
  return TN_OK;
}

/* ---- open, close ---- */

void tn_nccl_follow_init(tn_nccl_follow *follow) { pthread_mutex_init(&follow->lock, NULL); }

static void nccl_follow_stop(tn_nccl_follow *follow) {
  if (follow->word != NULL) (void)follow->driver->cuMemFreeHost((void *)follow->word);
  follow->word = NULL;
}

void tn_nccl_follow_close(tn_nccl_follow *follow) {
  nccl_follow_stop(follow);
  pthread_mutex_destroy(&follow->lock);
}

/* Runs a graph of one write. */
static bool nccl_follow_replay(const tn_nccl_driver *driver, CUstream stream, CUgraph graph) {
  CUgraphExec exec = NULL;
  if (driver->cuGraphInstantiateWithFlags(&exec, graph, 0) != CUDA_SUCCESS) return false;
  bool ran = driver->cuGraphLaunch(exec, stream) == CUDA_SUCCESS;
  ran = driver->cuStreamSynchronize(stream) == CUDA_SUCCESS && ran;
  (void)driver->cuGraphExecDestroy(exec);
  return ran;
}

/* A driver may capture a write and then refuse the graph. */
static bool nccl_follow_try_capture(tn_nccl_follow *follow, CUstream stream) {
  const tn_nccl_driver *driver = follow->driver;
  CUdeviceptr word = (CUdeviceptr)(uintptr_t)follow->word;
  CUgraph graph = NULL;
  if (driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS) return false;
  CUresult taken = driver->cuStreamWriteValue32(stream, word, 2, CU_STREAM_WRITE_VALUE_DEFAULT);
  CUresult ended = driver->cuStreamEndCapture(stream, &graph);
  bool runs = taken == CUDA_SUCCESS && ended == CUDA_SUCCESS && graph != NULL &&
              nccl_follow_replay(driver, stream, graph) && atomic_load(follow->word) == 2;
  if (graph != NULL) (void)driver->cuGraphDestroy(graph);
  return runs;
}

/* A write that runs and one that is captured; the first decides on all, the second on captures. */
static CUresult nccl_follow_try(tn_nccl_follow *follow, CUstream stream) {
  const tn_nccl_driver *driver = follow->driver;
  CUresult code = driver->cuStreamWriteValue32(stream, (CUdeviceptr)(uintptr_t)follow->word, 0,
                                               CU_STREAM_WRITE_VALUE_DEFAULT);
  if (code == CUDA_SUCCESS) code = driver->cuStreamSynchronize(stream);
  if (code == CUDA_SUCCESS) follow->in_captures = nccl_follow_try_capture(follow, stream);
  if (code == CUDA_SUCCESS) atomic_store(follow->word, 0);
  return code;
}

tn_status tn_nccl_follow_open(tn_env *env, const tn_nccl_driver *driver, tn_nccl_follow *follow) {
  void *word = NULL;
  CUstream stream = NULL;
  follow->driver = driver;
  tn_status status =
      TN_NCCL_CU(env, driver, cuMemHostAlloc, &word, sizeof *follow->word, CU_MEMHOSTALLOC_PORTABLE);
  if (status != TN_OK) return status;
  follow->word = word;
  atomic_store(follow->word, 0);
  status = TN_NCCL_CU(env, driver, cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
  if (status != TN_OK) return status;
  CUresult code = nccl_follow_try(follow, stream);
  (void)driver->cuStreamDestroy(stream);
  if (code == CUDA_SUCCESS && !follow->in_captures)
    tn_env_log(
        env, TN_LOG_INFO,
        "nccl: captured collectives are not followed: the driver captures no writes, or does not run them");
  if (code == CUDA_SUCCESS) return TN_OK;
  tn_env_log(env, TN_LOG_INFO, "nccl: collectives are not followed: cuStreamWriteValue32 fails with code %d",
             (int)code);
  nccl_follow_stop(follow);
  return TN_OK;
}
