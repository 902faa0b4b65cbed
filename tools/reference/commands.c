/* tools/reference/commands.c: the page of the commands of `tenon`, from the tables that parse them. */
#include "tools/reference/reference.h"

static const char commands_intro[] =
    "Results go to stdout, the log and progress to stderr. With `--json` the result is one JSON object on "
    "stdout, also that of a failure; [results.md](../guide/results.md) has the fields.";

static void commands_write_option(FILE *to, const cli_option *option) {
  char letter = cli_option_letter(option);
  fprintf(to, "| `");
  if (letter) fprintf(to, "-%c`, `", letter);
  fprintf(to, "--%s%s", option->name, option->value ? " " : "");
  reference_write_text(to, option->value ? option->value : "");
  fprintf(to, "` | ");
  reference_write_text(to, option->doc);
  fprintf(to, " |\n");
}

/* The options that only some commands take, or those that every command takes. */
static void commands_write_options(FILE *to, const cli_command *command, bool common) {
  bool any = false;
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;) {
    if ((o->bit == 0) != common) continue;
    if (!any) fprintf(to, "\n| option | |\n|---|---|\n");
    any = true;
    commands_write_option(to, o);
  }
}

static void commands_write_command(FILE *to, const cli_command *command) {
  fprintf(to, "\n## tenon %s\n\n`tenon %s%s%s`: ", command->name, command->name, *command->words ? " " : "",
          command->words);
  reference_write_text(to, command->doc);
  fprintf(to, ".\n");
  commands_write_options(to, command, false);
}

static void commands_write_exits(FILE *to) {
  fprintf(to, "\n## Exit codes\n\n| code | |\n|---|---|\n");
  for (const cli_exit *e = cli_exits; e->text; e++) {
    fprintf(to, "| %d | ", e->code);
    reference_write_text(to, e->text);
    fprintf(to, " |\n");
  }
}

void reference_write_commands(FILE *to, const cli_command *const *commands) {
  reference_write_head(to, "Commands", commands_intro);
  for (int i = 0; commands[i] != NULL; i++) commands_write_command(to, commands[i]);
  fprintf(to, "\n## Options of every command\n");
  commands_write_options(to, commands[0], true);
  commands_write_exits(to);
}
