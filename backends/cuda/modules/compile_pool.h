/* backends/cuda/modules/compile_pool.h: threads that compile modules. */
#pragma once

#include <pthread.h>

#include "backends/cuda/modules/ahead.h"

enum { TN_CUDA_COMPILE_THREADS = 8 };

/* One text to compile. The owner fills the first part and keeps it until the job is done. */
typedef struct tn_cuda_job {
  const char *title, *text;
  const char *file; /* "softmax.cu", to use the image that nvcc made; NULL: NVRTC compiles the text */
  /* Makes the image, or writes `error` and returns false; NULL: NVRTC compiles the text. */
  bool (*compile)(struct tn_cuda_job *job);
  char key[TN_CUDA_KEY];
  tn_cuda_image image;
  bool done, compiled;              /* compiled: it has an image */
  bool refused;                     /* NVRTC refuses the text */
  bool ahead, damaged;              /* nvcc made the image; that image is damaged, so NVRTC made one */
  bool cached, corrupt;             /* the image was in the folder; the one in the folder is damaged */
  char error[TN_CUDA_ERROR_TEXT];   /* why it is not compiled: the first line; NVRTC's log follows */
  char unsaved[TN_CUDA_ERROR_TEXT]; /* why the image was not kept; "": it was */
  struct tn_cuda_job *next;
} tn_cuda_job;

typedef struct tn_cuda_pool {
  tn_cuda_compiler compiler;
  const char *folder;         /* of images, or "" */
  const tn_cuda_ahead *ahead; /* images that nvcc made, or NULL */
  pthread_mutex_t lock;
  pthread_cond_t more, less; /* jobs to take; jobs done */
  tn_cuda_job *first, *last;
  bool stop;
  pthread_t threads[TN_CUDA_COMPILE_THREADS];
  int32_t n_threads, n_idle;
} tn_cuda_pool;

void tn_cuda_pool_init(tn_cuda_pool *pool);
/* Waits for the jobs that have begun; drops the others. */
void tn_cuda_pool_free(tn_cuda_pool *pool);
/* Enqueues a job. Where no thread can be started, the job is done within the call. */
void tn_cuda_pool_add(tn_cuda_pool *pool, tn_cuda_job *job);
/* Waits until the job is done. False: the handle's work was asked to stop before. */
bool tn_cuda_pool_await(const void *handle, tn_cuda_pool *pool, const tn_cuda_job *job);
/* Drops a job that no thread has taken; waits for one that is compiled. Its owner may free it then. */
void tn_cuda_pool_withdraw(tn_cuda_pool *pool, tn_cuda_job *job);
