/* tests/unit/backends/mpi/rig.c: the host. */
#include "tests/unit/backends/mpi/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 64 };

char rig_text[512];
static struct {
  char *at;
  size_t bytes;
} blocks[BLOCKS];
static int n_blocks;

static tn_status say(const void *handle, tn_status code, const char *option, const char *format, ...) {
  va_list args;
  (void)handle, (void)option;
  va_start(args, format);
  vsnprintf(rig_text, sizeof rig_text, format, args);
  va_end(args);
  return code;
}

static void *give(const void *handle, size_t bytes) {
  (void)handle;
  char *block = calloc(1, bytes);
  if (n_blocks == BLOCKS || block == NULL) abort();
  blocks[n_blocks].at = block;
  blocks[n_blocks++].bytes = bytes;
  return block;
}

static void take(const void *handle, void *block) {
  (void)handle;
  for (int i = 0; i < n_blocks; i++)
    if (blocks[i].at == block) blocks[i].at = NULL;
  free(block);
}

bool rig_holds(const void *address) {
  const char *at = address;
  for (int i = 0; i < n_blocks; i++)
    if (blocks[i].at != NULL && at >= blocks[i].at && at < blocks[i].at + blocks[i].bytes) return true;
  return false;
}

static const tn_api api = {.struct_size = sizeof api, .fail = say, .alloc = give, .free = take};
tn_env rig_env = {.api = &api};

extern const tn_plugin *tn_static_mpi(void);
const tn_communicator *rig_kind;

static struct { int64_t piece; } options = {1 << 10};
static tn_comm_place place = {.struct_size = sizeof place, .address = "", .timeout_s = 0.3};
static tn_comm_device device = {.struct_size = sizeof device};
static const uint64_t identity[2] = {12, 34};

tn_status rig_open(void **communicator) {
  place.ranks = place.processes = fake.ranks;
  setenv("PMI_SIZE", "2", 1); /* a launcher of MPI */
  rig_kind = (const tn_communicator *)(const void *)tn_static_mpi()->items[0];
  return rig_kind->open(&rig_env, &options, &device, &place, identity, communicator);
}

void rig_fail(int line, const char *what) {
  fprintf(stderr, "line %d: %s: %s\n", line, what, rig_text);
  _exit(1);
}

void rig_run(void (*body)(void)) {
  int status = 0;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    body();
    exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}
