#include "tools/cli/plain_stream.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tenon/context.h"

cli_plain_stream cli_plain_stream_open(void) {
  return (cli_plain_stream){.terminal = isatty(STDOUT_FILENO) != 0};
}

/* The bytes of the character of UTF-8 that begins so; 1: no character begins so. */
static size_t plain_stream_length(unsigned char first) {
  return first >= 0xC2 && first < 0xE0   ? 2
         : first >= 0xE0 && first < 0xF0 ? 3
         : first >= 0xF0 && first < 0xF5 ? 4
                                         : 1;
}

void cli_plain_stream_end(cli_plain_stream *s) {
  s->one[s->n] = '\0';
  bool shown = s->n == 1 && (s->one[0] == '\n' || s->one[0] == '\t');
  if (s->n == 1 && s->one[0] == '\0') s->one[0] = ' ';
  if (!shown) tn_text_make_plain(s->one);
  fwrite(s->one, 1, s->n, stdout);
  s->n = 0;
}

static void plain_stream_add(cli_plain_stream *s, char byte) {
  bool continues = ((unsigned char)byte & 0xC0) == 0x80;
  if (s->n > 0 && !continues) cli_plain_stream_end(s); /* a character that was cut off */
  if (s->n == 0) s->bytes = plain_stream_length((unsigned char)byte);
  s->one[s->n++] = byte;
  if (s->n == s->bytes) cli_plain_stream_end(s);
}

bool cli_plain_stream_write(cli_plain_stream *s, const char *text, size_t bytes) {
  if (!s->terminal) return fwrite(text, 1, bytes, stdout) == bytes && fflush(stdout) == 0;
  for (size_t i = 0; i < bytes; i++) plain_stream_add(s, text[i]);
  return ferror(stdout) == 0 && fflush(stdout) == 0;
}
