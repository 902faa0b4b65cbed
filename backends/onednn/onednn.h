/* backends/onednn/onednn.h: options, backend object and instruction sets of the extension `onednn`.
 *
 * It extends the family `cpu` by faster kernels. Device, memory and the team of threads are those of `cpu`.
 * oneDNN's primitives run on libgomp's threads. */
#pragma once

#include <fenv.h>
#include <pthread.h>
#include <stdbool.h>

#include "tenon/plugin/backend.h"

extern const tn_backend tn_onednn_backend;

enum { TN_WINOGRAD_AUTO = 0, TN_WINOGRAD_OFF = 1 };
enum { TN_CODE_AUTO = 0, TN_CODE_OFF = 1 };
enum { TN_PACK_AUTO = 0, TN_PACK_OFF = 1 };

typedef struct tn_onednn_options {
  tn_ints pin;          /* the processors of libgomp's threads, in order; empty: threads are not bound */
  int32_t winograd;     /* TN_WINOGRAD_... */
  int32_t isa;          /* 0: the best of the processor; else one more than the highest TN_ISA_... to use */
  int32_t code;         /* TN_CODE_... */
  int32_t pack_weights; /* TN_PACK_... */
} tn_onednn_options;

typedef struct tn_onednn {
  tn_onednn_options options;
  struct tn_library
      *library;    /* oneDNN's engine and stream (library/primitive_list.h); NULL: built without oneDNN */
  int32_t started; /* libgomp's threads of thread `starter`, itself included; 0 before the first start */
  pthread_t starter;
  /* Of these threads, where the application has used them before in other floating-point environments: what
   * each had, while primitives run; NULL: they have the default. */
  fenv_t *environments;
} tn_onednn;

/* ---- options.c ---------------------------------------------------------------------------------- */

/* The options of a backend object; all zero where it is NULL, as in a plan for a device that is missing. */
tn_onednn_options tn_onednn_options_of(const void *backend);
/* The best instruction set (TN_ISA_...) of the processor, limited by option `isa`. */
int32_t tn_onednn_isa_of(const void *backend);
/* The instruction set of machine code for regions: that of the other kernels, or TN_ISA_PLAIN, for which none
 * is written: option `code`. */
int32_t tn_onednn_code_isa(const void *backend);

/* ---- openmp.c ----------------------------------------------------------------------------------- */

/* Starts libgomp's threads of the calling thread, unless they are started. libgomp ends the process when a
 * thread does not start, so as many are tried first. TN_EUNAVAILABLE: there cannot be so many. */
tn_status tn_onednn_start_threads(tn_env *env, tn_onednn *backend, int32_t threads);
/* Sets the number of threads of the calling thread's later primitives. Returns the number before, which the
 * caller sets again: the application's parallel regions have it, too. */
int32_t tn_onednn_use_threads(int32_t threads);
/* Around primitives: in between libgomp's threads have the default floating-point environment. */
void tn_onednn_enter_environment(const tn_onednn *backend, int32_t threads);
void tn_onednn_leave_environment(const tn_onednn *backend, int32_t threads);
/* Binds libgomp's threads of the calling thread to the processors of option `pin`, before primitives run.
 * The host binds the launching thread. */
void tn_onednn_bind_threads(const void *backend, int32_t threads);
/* Undoes it: the threads may use all processors of the calling thread. */
void tn_onednn_unbind_threads(const void *backend);
/* TN_EINVAL where environment variables make libgomp bind its threads as well. */
tn_status tn_onednn_check_pin(tn_env *env, const tn_ints *pin);

/* ---- isa.c -------------------------------------------------------------------------------------- */

enum { TN_ISA_PLAIN = 0, TN_ISA_AVX2 = 1, TN_ISA_AVX512 = 2, TN_ISA_AVX512_BF16 = 3, TN_ISAS = 4 };
/* The best of the processor. */
int32_t tn_onednn_isa(void);
/* A region with more bytes of operands and results comes from memory, and leaves no result in a cache. */
int64_t tn_onednn_cached_bytes(void);
