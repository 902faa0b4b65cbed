/* tools/cli/plain_stream.h: a text that appears on stdout in parts, as the tokens of `tenon generate`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* On a terminal the characters are made plain, but for new lines and tabs: the tokens are those of weights,
 * which another person may have chosen to send control sequences. Elsewhere the bytes are written as they
 * are: a file or a pipe gets the text itself. A character may be divided between parts. */
typedef struct cli_plain_stream {
  bool terminal;
  char one[5]; /* the bytes of a character that has begun */
  size_t n, bytes;
} cli_plain_stream;

cli_plain_stream cli_plain_stream_open(void);
/* False: stdout cannot be written. */
bool cli_plain_stream_write(cli_plain_stream *stream, const char *text, size_t bytes);
/* Writes the bytes of a character that has begun. */
void cli_plain_stream_end(cli_plain_stream *stream);
