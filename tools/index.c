/* tools/index.c: `tenon index FOLDER`: writes the index of a plugin folder, for installations. */
#include "tools/cli/cli.h"

static int index_run(tn_context *context, const cli_args *args) {
  tn_status status = tn_context_write_index(context, args->words[0]);
  return status == TN_OK ? CLI_OK : cli_fail(args, context, status);
}

const cli_command command_index = {
    .name = "index",
    .words = "FOLDER",
    .doc = "write the index of a plugin folder, so that runs open only the plugins that they need",
    .min_words = 1,
    .max_words = 1,
    .run = index_run};
