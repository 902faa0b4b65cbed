/* tools/man.c: `tenon man`: the manual page, from the tables of commands, options and exit codes. */
#include "tools/cli/cli.h"

/* Text of a page: a backslash and a hyphen are written as marks, and a line must not begin with a dot. */
static void man_print(const char *text) {
  for (const char *at = text; *at; at++) {
    if (at == text && (*at == '.' || *at == '\'')) printf("\\&");
    if (*at == '\\')
      printf("\\e");
    else if (*at == '-')
      printf("\\-");
    else
      putchar(*at);
  }
}

static void man_print_option(const cli_option *option) {
  printf(".TP\n.B ");
  if (cli_option_letter(option)) printf("\\-%c, ", cli_option_letter(option));
  printf("\\-\\-");
  man_print(option->name);
  if (option->value) {
    printf(" \\fI");
    man_print(option->value);
    printf("\\fR");
  }
  printf("\n");
  man_print(option->doc);
  printf("\n");
}

static void man_print_command(const cli_command *command) {
  printf(".SS tenon ");
  man_print(command->name);
  printf(" ");
  man_print(command->words);
  printf("\n");
  man_print(command->doc);
  printf(".\n");
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;)
    if (o->bit != 0) man_print_option(o);
}

/* The options without a bit are those of every command. */
static void man_print_common(const cli_command *command) {
  printf(".SS Options of every command\n");
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;)
    if (o->bit == 0) man_print_option(o);
}

static int man_run(tn_context *context, const cli_args *args) {
  (void)context;
  printf(".TH TENON 1 \"\" \"tenon %s\" \"User Commands\"\n"
         ".SH NAME\ntenon \\- deep learning from one INI file\n"
         ".SH SYNOPSIS\n.B tenon\n.I COMMAND\n[\\fIargument\\fR]... [\\fIoption\\fR]...\n"
         ".SH COMMANDS\n",
         tn_version());
  for (int i = 0; args->commands[i] != NULL; i++) man_print_command(args->commands[i]);
  man_print_common(args->commands[0]);
  printf(".SH EXIT STATUS\n");
  for (const cli_exit *e = cli_exits; e->text; e++) {
    printf(".TP\n.B %d\n", e->code);
    man_print(e->text);
    printf("\n");
  }
  printf(".SH OUTPUT\nResults go to stdout, the log and progress to stderr. With \\fB\\-\\-json\\fR the "
         "result is one "
         "JSON object on stdout, also that of a failure.\n"
         ".SH SEE ALSO\nThe guides that are installed in share/doc/tenon.\n");
  return CLI_OK;
}

const cli_command command_man = {.name = "man",
                                 .words = "",
                                 .doc = "the manual page, for man: tenon man | man -l -",
                                 .min_words = 0,
                                 .max_words = 0,
                                 .run = man_run,
                                 .alone = true};
