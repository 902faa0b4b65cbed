/* tests/fakecuda/kernels/image.h: the contract between an image and the code that runs it. The double of
 * NVRTC puts this text before each source, so it is C and C++ and includes nothing. */
#pragma once

enum { FAKE_IMAGE_MAGIC = 0x66616b65, FAKE_IMAGE_VERSION = 1 };
/* The most dynamic shared memory of a block, and the bytes behind it that show whether a block wrote past it.
 */
enum { FAKE_DYNAMIC_BYTES = 232448, FAKE_CANARY_BYTES = 64 };

typedef struct fake_index {
  unsigned x, y, z;
} fake_index;

/* The built-in variables of the thread that runs, in thread-local storage of the image. */
typedef struct fake_here {
  fake_index thread, block, block_dim, grid_dim;
  void *state;
} fake_here;

enum fake_barrier_verb { FAKE_BARRIER, FAKE_BARRIER_COUNT, FAKE_BARRIER_AND, FAKE_BARRIER_OR };
enum fake_warp_verb {
  FAKE_WARP_SYNC,
  FAKE_WARP_BALLOT,
  FAKE_WARP_SHUFFLE,
  FAKE_WARP_SHUFFLE_UP,
  FAKE_WARP_SHUFFLE_DOWN,
  FAKE_WARP_SHUFFLE_XOR,
  FAKE_WARP_MATCH_ANY,
  FAKE_WARP_REDUCE_ADD,
  FAKE_WARP_REDUCE_MIN,
  FAKE_WARP_REDUCE_MAX,
  FAKE_WARP_REDUCE_MIN_SIGNED,
  FAKE_WARP_REDUCE_MAX_SIGNED,
  FAKE_WARP_REDUCE_AND,
  FAKE_WARP_REDUCE_OR,
  FAKE_WARP_REDUCE_XOR
};

/* A barrier that a thread waits at. It lies on the stack of the thread. */
typedef struct fake_barrier {
  int verb, predicate, result, line;
  const char *file;
} fake_barrier;

/* An operation of a warp: `value` is the lane's own value, `lane` the source lane, the delta or the lane
 * mask. A lane that reads from a lane outside `mask` receives a value of ones. */
typedef struct fake_warp {
  int verb, line;
  unsigned mask, lane, width;
  unsigned long long value, result;
  const char *file;
} fake_warp;

typedef struct fake_runtime {
  void (*barrier)(void *state, fake_barrier *call);
  void (*warp)(void *state, fake_warp *call);
  unsigned (*lane)(void *state);
  void (*trap)(void *state, const char *what, const char *file, int line); /* does not return */
  void (*yield)(void *state); /* lets the other threads of the block run */
  unsigned long long (*clock)(void *state);
} fake_runtime;

typedef struct fake_parameter {
  unsigned offset, bytes;
} fake_parameter;

typedef struct fake_kernel {
  const char *written;             /* as the source or a name expression says it */
  void (*kernel)(void);            /* the __global__ function, whose symbol is the name of the kernel */
  void (*run)(const void *buffer); /* calls it with the parameters in the buffer */
  const fake_parameter *parameters;
  int n_parameters, max_threads;
  unsigned buffer_bytes;
} fake_kernel;

/* Name expressions of variables. */
typedef struct fake_name {
  const char *written;
  const void *address;
} fake_name;

/* The image exports one symbol, `fakecuda_image`. `dynamic` is NULL where no kernel has dynamic shared
 * memory. Both addresses are those of the calling thread. */
typedef struct fake_image {
  int magic, version;
  int n_kernels, n_names;
  const fake_kernel *kernels;
  const fake_name *names;
  void (*locate)(fake_here **here, char **dynamic);
  const fake_runtime **runtime;
} fake_image;
