/* tests/fakenccl/clique.c: see clique.h. */
#include "tests/fakenccl/clique.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t MAGIC = UINT64_C(0x6C63636E656B6166); /* "fakenccl" */

typedef struct identity {
  uint64_t magic, nonce;
  int32_t process, file;
} identity;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fakenccl_clique *cliques; /* open in this process, or in the one that it was forked from */

static const char *clique_map(fakenccl_clique *c) {
  void *at =
      mmap(NULL, sizeof(fakenccl_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, c->file, 0);
  if (at == MAP_FAILED) return "the shared memory cannot be mapped";
  c->shared = at;
  return NULL;
}

static void clique_free(fakenccl_clique *c) {
  if (c->shared != NULL) munmap(c->shared, sizeof *c->shared);
  if (c->file >= 0) close(c->file);
  free(c);
}

static fakenccl_clique *clique_add(int file, uint64_t nonce) {
  fakenccl_clique *c = calloc(1, sizeof *c);
  if (c == NULL) return NULL;
  c->process = getpid();
  c->file = file;
  c->nonce = nonce;
  return c;
}

const char *fakenccl_clique_new(ncclUniqueId *id) {
  identity name = {.magic = MAGIC, .process = getpid()};
  name.file = memfd_create("fakenccl", MFD_CLOEXEC);
  bool usable = name.file >= 0 && ftruncate(name.file, sizeof(fakenccl_shared)) == 0 &&
                getrandom(&name.nonce, sizeof name.nonce, 0) == sizeof name.nonce;
  fakenccl_clique *c = usable ? clique_add(name.file, name.nonce) : NULL;
  if (c == NULL && name.file >= 0) close(name.file);
  if (c == NULL) return "no memory for the id";
  const char *why = clique_map(c);
  if (why != NULL) return clique_free(c), why;
  c->made = true;
  c->shared->magic = MAGIC;
  c->shared->nonce = name.nonce;
  memset(id, 0, sizeof *id);
  memcpy(id, &name, sizeof name);
  pthread_mutex_lock(&lock);
  c->next = cliques;
  cliques = c;
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* A child of fork has a copy of its parent's list. The file is the same; the locks are not. */
static fakenccl_clique *clique_find(uint64_t nonce) {
  fakenccl_clique *c = cliques;
  while (c != NULL && c->nonce != nonce) c = c->next;
  if (c == NULL || c->process == getpid()) return c;
  c->process = getpid();
  c->references = 0;
  c->made = false;
  for (int r = 0; r < FAKENCCL_RANKS; r++) atomic_store(&c->devices[r], 0);
  return c;
}

static const char *clique_open_other(const identity *name, fakenccl_clique **clique) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)name->process, (int)name->file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  struct stat is;
  bool same = file >= 0 && fstat(file, &is) == 0 && is.st_size == sizeof(fakenccl_shared);
  if (file >= 0 && !same) close(file);
  if (!same) return "the process that made the id, or its communicator, has ended";
  fakenccl_clique *c = clique_add(file, name->nonce);
  if (c == NULL) return close(file), "no memory";
  const char *why = clique_map(c);
  if (why == NULL && (c->shared->magic != MAGIC || c->shared->nonce != name->nonce))
    why = "the communicator of the id has ended";
  if (why != NULL) return clique_free(c), why;
  c->next = cliques;
  cliques = c;
  *clique = c;
  return NULL;
}

const char *fakenccl_clique_open(const ncclUniqueId *id, fakenccl_clique **clique) {
  identity name;
  memcpy(&name, id, sizeof name);
  if (name.magic != MAGIC) return "the id is not one of ncclGetUniqueId";
  pthread_mutex_lock(&lock);
  const char *why = NULL;
  *clique = clique_find(name.nonce);
  if (*clique == NULL) why = clique_open_other(&name, clique);
  if (why == NULL) (*clique)->references++;
  pthread_mutex_unlock(&lock);
  return why;
}

/* The maker keeps an id that not all ranks have opened. */
void fakenccl_clique_close(fakenccl_clique *c) {
  pthread_mutex_lock(&lock);
  const fakenccl_shared *s = c->shared;
  bool waits = c->made && atomic_load(&s->present) < atomic_load(&s->ranks);
  if (--c->references == 0 && !waits) {
    fakenccl_clique **link = &cliques;
    while (*link != c) link = &(*link)->next;
    *link = c->next;
    clique_free(c);
  }
  pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void clique_close_all(void) {
  while (cliques != NULL) {
    fakenccl_clique *c = cliques;
    cliques = c->next;
    clique_free(c);
  }
}

static struct flock clique_byte(int rank) {
  return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
}

void fakenccl_clique_hold(fakenccl_clique *c, int rank, int device) {
  struct flock byte = clique_byte(rank);
  fcntl(c->file, F_SETLK, &byte);
  atomic_store(&c->devices[rank], device + 1);
}

bool fakenccl_clique_lives(fakenccl_clique *c, int rank) {
  struct flock byte = clique_byte(rank);
  if (atomic_load(&c->devices[rank]) != 0) return true;
  return fcntl(c->file, F_GETLK, &byte) != 0 || byte.l_type != F_UNLCK;
}
