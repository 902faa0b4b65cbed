/* tools/index.c: `tenon index FOLDER`: for whoever puts plugins into a folder. */
#include "tools/cli.h"

static int run_index(tn_context *context, const cli_args *args) {
  tn_status status = tn_context_write_index(context, args->words[0]);
  return status == TN_OK ? CLI_OK : cli_fail(context, status);
}

const cli_command command_index = {.name = "index",
                                   .words = "FOLDER",
                                   .doc =
                                       "write the index of a plugin folder, so that runs open what they need",
                                   .min_words = 1,
                                   .max_words = 1,
                                   .run = run_index};
