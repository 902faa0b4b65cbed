/* plugins/sources/shards/tar.h: reads the members of tar archives one after the other: ustar (POSIX 1003.1),
 * the long names and sizes of GNU tar, and the pax headers `path` and `size`. */
#pragma once

#include "plugins/sources/sources.h"

enum { TAR_NAME = 4096, TAR_BLOCK = 512, TAR_FAULT = 256 };

/* Where the bytes of an archive come from. */
typedef struct tar_input {
  /* Reads n bytes, or fewer at the end. Failures are recorded. */
  tn_status (*read)(struct tar_input *in, void *to, size_t n, size_t *got);
  /* Passes over n bytes; *got is less than n only where the input knows its end. */
  tn_status (*skip)(struct tar_input *in, int64_t n, int64_t *got);
} tar_input;

typedef struct tar {
  const void *handle;
  tar_input *in;
  int64_t at;     /* bytes behind which the next one is read */
  int64_t behind; /* the byte where the next header begins */
  /* The member: */
  char name[TAR_NAME];
  int64_t size;
  char type;             /* of ustar; '0' for a file */
  int32_t sparse;        /* its bytes are stored in pieces */
  char fault[TAR_FAULT]; /* why the archive is damaged, for messages behind its path */
} tar;

/* Begins at byte `at`, where a header is. */
void tar_begin(tar *t, const void *handle, tar_input *in, int64_t at);
/* The next member; the bytes of the last one need not have been read. TN_EOF: the end. TN_EINVAL: it is
 * damaged; nothing is recorded, `fault` says why. Other failures are recorded. */
tn_status tar_next(tar *t);
/* Whether the member is a file with all its bytes in one piece. */
int32_t tar_is_plain_file(const tar *t);
/* Reads the bytes of the member, all of `size`; TN_EINVAL as tar_next. */
tn_status tar_read(tar *t, void *to);
