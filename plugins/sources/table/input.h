/* plugins/sources/table/input.h: a file, unpacked where it is gzip or zstd, in blocks of whole rows. */
#pragma once

#include "plugins/sources/table/table.h"

typedef struct table_input {
  const tn_env *env;
  const char *path;
  int fd;
  struct gzFile_s *gzip; /* NULL: the file is not packed by gzip */
  struct ZSTD_DCtx_s *zstd;
  uint8_t *packed; /* of zstd: bytes that are not unpacked yet */
  size_t packed_at, packed_end;
  bool packed_open; /* the frame has not ended */
  char *bytes;      /* from `at` to `end`, followed by a NUL */
  size_t size, at, end;
  bool ended;     /* the bytes up to `end` are the last ones */
  uint64_t total; /* unpacked bytes, and those of the file */
  int64_t file_bytes;
  double estimate; /* bytes of the whole file when it is unpacked; 0: unknown */
} table_input;

/* Opens a file and reads its first block. The caller calls table_input_close, also after a failure. */
tn_status table_input_open(const tn_env *env, const char *path, table_input *in);
/* The same of standard input, which is not unpacked. `name` is for messages. */
tn_status table_input_open_standard(const tn_env *env, const char *name, table_input *in);
/* Moves the bytes from `at` on to the front and reads more behind them. */
tn_status table_input_more(table_input *in);
void table_input_close(table_input *in);
