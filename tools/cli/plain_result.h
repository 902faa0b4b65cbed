/* tools/cli/plain_result.h: a result of the library for people. */
#pragma once

#include <jansson.h>

/* Parses a result, all of whose texts and keys are made plain: they are names of files, tensors and classes,
 * which another person may have chosen to send control sequences to the terminal. NULL: it is no JSON, or
 * there is no memory. The caller's reference. */
json_t *cli_load_plain(const char *text);
/* A path as a text of a result; bytes that are not UTF-8 become question marks. */
json_t *cli_json_text(const char *text);
