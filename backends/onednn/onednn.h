/* backends/onednn/onednn.h: what the files of the fast CPU share: its options, the object that its open
 * makes, and the instruction sets that its kernels choose between.
 *
 * It extends the family `cpu`: the same device and memory, more kernels, and one team for all of them,
 * libgomp's, which oneDNN uses too. */
#ifndef TN_BACKENDS_ONEDNN_ONEDNN_H
#define TN_BACKENDS_ONEDNN_ONEDNN_H

#include "tenon/plugin/backend.h"

extern const tn_backend tn_onednn_backend;

enum { TN_WINOGRAD_AUTO = 0, TN_WINOGRAD_OFF = 1 };

typedef struct tn_onednn_options {
  int64_t threads;  /* 0: as many as there are processors */
  tn_ints pin;      /* the processors of the threads, in their order; none: they are not bound */
  int32_t winograd; /* TN_WINOGRAD_... */
  int32_t isa;      /* 0: the best of the processor; else one more than the highest TN_ISA_... to use */
} tn_onednn_options;

typedef struct tn_onednn {
  tn_onednn_options options;
  struct tn_dnn *dnn; /* the library's engine and stream (dnn/dnn.h); NULL: built without oneDNN */
} tn_onednn;

/* What a kernel sees of it; defaults where the backend is not open, as when a plan is made for a device that
 * is not there. */
tn_onednn_options tn_onednn_options_of(const void *backend);
/* The best instruction set of the processor (below), no higher than what the options ask for (isa = ...). */
int32_t tn_onednn_isa_of(const void *backend);

/* ---- team.c ------------------------------------------------------------------------------------- */

/* Chunks 0 .. chunks-1 on the threads of libgomp; `backend` is what the extension's open made. */
void tn_onednn_parallel(tn_env *env, void *backend, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                        void *arg);
/* The calling thread's loops and primitives use so many threads from now on. */
void tn_onednn_use_threads(int32_t threads);
/* Binds the calling thread's team to the backend's processors, if it has any, before primitives run on it.
 * The launching thread is the host's to bind. */
void tn_onednn_take_places(const void *backend, int32_t threads);
/* Gives the team back the processors of the calling thread. */
void tn_onednn_leave_places(const void *backend);
/* TN_EINVAL where the environment has libgomp bind its threads, too. */
tn_status tn_onednn_check_places(tn_env *env, const tn_ints *pin);

/* ---- isa.c -------------------------------------------------------------------------------------- */

enum { TN_ISA_PLAIN = 0, TN_ISA_AVX2 = 1, TN_ISA_AVX512 = 2, TN_ISA_AVX512_BF16 = 3, TN_ISAS = 4 };
/* The best level of the processor. */
int32_t tn_onednn_isa(void);

#endif
