/* tests/fakenccl/clique.h: the memory that the ranks of a communicator share, between threads and processes:
 * a file in memory without a name. The unique id has the process that made it and its descriptor of the file;
 * the others open it through /proc, so nothing is left behind when processes are killed. Ranks share atomic
 * numbers, and bytes that these guard; no lock, which a killed process might hold. Each process locks the
 * bytes of the file that have the numbers of its ranks (fcntl); the kernel gives them back when it ends. */
#pragma once

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  FAKENCCL_RANKS = 64,
  FAKENCCL_TEXT = 512,
  FAKENCCL_SLOTS = 2,
  FAKENCCL_SLOT_BYTES = 1 << 20, /* of a rank's part of a collective */
  FAKENCCL_PAIR_BYTES = 1 << 14  /* of a part of a message */
};

enum {
  FAKENCCL_ALL_REDUCE,
  FAKENCCL_BROADCAST,
  FAKENCCL_REDUCE,
  FAKENCCL_ALL_GATHER,
  FAKENCCL_REDUCE_SCATTER,
  FAKENCCL_SEND,
  FAKENCCL_RECV
};

/* The properties of a call that must be the same on all ranks. */
typedef struct fakenccl_what {
  int32_t kind, dtype, op; /* op: FAKENCCL_PREMULSUM for all operators that a user makes */
  int32_t peer;            /* root, or the other rank of a message */
  uint64_t count;
  int32_t place, places; /* in the group, among the calls of the communicator */
} fakenccl_what;
enum { FAKENCCL_PREMULSUM = ncclNumOps };

typedef struct fakenccl_member {
  _Atomic(uint32_t) claimed, aborted;
  _Atomic(uint32_t) connects; /* 1 << kind of its collectives so far */
  int32_t process;
  unsigned char device[24];        /* id of the host, UUID of the device */
  fakenccl_what calls[2];          /* of collective n: calls[n % 2]; a rank is at most one ahead */
  _Atomic(uint64_t) begun;         /* collectives that it has come to */
  _Atomic(uint32_t) talks;         /* the group that runs has messages */
  _Atomic(uint64_t) posted, taken; /* parts of collectives */
  _Atomic(uint64_t) windows;       /* registered */
  _Atomic(uint64_t) splits;
  int32_t color[2], key[2];
  _Atomic(uint64_t) named; /* splits for which it has made an id */
  ncclUniqueId id[2];
} fakenccl_member;

/* Messages from one rank to another. */
typedef struct fakenccl_pair {
  _Atomic(uint64_t) put, taken; /* parts */
  fakenccl_what what;           /* of the message of the last part */
} fakenccl_pair;

typedef struct fakenccl_shared {
  uint64_t magic, nonce;
  _Atomic(uint32_t) ranks, present;
  _Atomic(uint32_t) failing; /* a rank writes the text */
  _Atomic(int32_t) error;
  char text[FAKENCCL_TEXT];
  fakenccl_member members[FAKENCCL_RANKS];
  fakenccl_pair pairs[FAKENCCL_RANKS][FAKENCCL_RANKS];
  _Alignas(4096) char slots[FAKENCCL_RANKS][FAKENCCL_SLOTS][FAKENCCL_SLOT_BYTES];
  char messages[FAKENCCL_RANKS][FAKENCCL_RANKS][FAKENCCL_PAIR_BYTES];
} fakenccl_shared; /* pages that are not used take no memory */

/* This process's end of it; one for all ranks of the process. */
typedef struct fakenccl_clique {
  struct fakenccl_clique *next;
  pid_t process;
  uint64_t nonce;
  int file, references;
  bool made; /* the id was made here */
  fakenccl_shared *shared;
  _Atomic(int) devices[FAKENCCL_RANKS]; /* of this process's ranks, plus 1; 0: no rank of it; -1: it has
                                           ended */
} fakenccl_clique;

/* NULL or a reason. */
const char *fakenccl_clique_new(ncclUniqueId *id);
/* *clique: with one more reference. */
const char *fakenccl_clique_open(const ncclUniqueId *id, fakenccl_clique **clique);
void fakenccl_clique_close(fakenccl_clique *clique);
/* Marks a rank as one of this process. */
void fakenccl_clique_hold(fakenccl_clique *clique, int rank, int device);
/* Whether the process of a rank, which has come, is alive. */
bool fakenccl_clique_lives(fakenccl_clique *clique, int rank);
