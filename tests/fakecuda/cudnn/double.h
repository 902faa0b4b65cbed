/* tests/fakecuda/cudnn/double.h: a double of cuDNN 9, built as libcudnn.so.9: the graph API of its C backend.
 *
 * Descriptors are stored and checked against the header's contract; a graph of operations is interpreted by
 * reference code. Descriptors, modes and element types that the library has and the double lacks are refused
 * with CUDNN_STATUS_NOT_SUPPORTED; the reason begins with "the double lacks", and FAKECUDA_LOG gets a line.
 *
 * Which graphs have an engine, and with which properties, is the table of support.c, taken from the library.
 * An engine is of the library's own kernels or compiled at run time; that for weight gradients in pieces is
 * not deterministic: its sums are cut in another way each time that it runs.
 *
 * The work of cudnnBackendExecute is enqueued by fakecuda_enqueue. The functions of
 * tests/fakecuda/driver/task.h are looked up in the global scope of the program, then in a loaded
 * libcuda.so.1; cudnnCreate fails where they are missing. A plan that is destroyed before its work has run,
 * or before a captured graph with its work is launched, is a fault.
 *
 * Every entry point calls fakecuda_call with its name first. Where that is not 0, it returns
 * that number if it is one of cuDNN's codes, else CUDNN_STATUS_INTERNAL_ERROR: a Destroy frees all the same,
 * the others have done nothing; versions are 0, cudnnGetErrorString knows no status, and
 * cudnnGetLastErrorString writes nothing. Without a driver nothing is counted: descriptors, graphs,
 * heuristics and plans work with the properties of a device as JSON. No engine is compiled at run time where
 * no libcuda.so.1 is loaded.
 *
 * Environment: FAKECUDA_CUDNN_VERSION: what cudnnGetVersion says, else the header's version;
 * FAKECUDA_CUDNN_COMPILE_MS: how long a plan of an engine compiled at run time takes to finalize, else 0;
 * FAKECUDA_CUDNN_NO_JIT=1: the same where one is loaded;
 * FAKECUDA_CUDNN_UNBUILT=3,4: the engines of which no plan is finalized, except from its text;
 * FAKECUDA_CUDNN_DROPS_NAN=1: RELU_FWD of NaN is its lower bound, as engines without the note STRICT_NAN_PROP
 * may have it. */
#pragma once

#include <stdint.h>

#define FAKEDNN_EXPORT __attribute__((visibility("default")))

/* The reason of the last refusal on the calling thread, and the entry point; "" before the first. Found by
 * dlsym; cudnnGetLastErrorString gives the same text. */
FAKEDNN_EXPORT const char *fakecudnn_why(void);
/* Handles and descriptors created and not destroyed yet, of all threads. Found by dlsym. */
FAKEDNN_EXPORT int64_t fakecudnn_live(void);
