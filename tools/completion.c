/* tools/completion.c: `tenon completion bash|zsh|fish`: a script for the shell, from the tables of commands
 * and options. The form of an argument says how it is completed: lower-case words of "auto|FOLDER" are
 * offered, and FILE, FOLDER and PATH stand for files. */
#include <ctype.h>
#include <string.h>

#include "tools/cli/cli.h"

enum { COMPLETION_WORDS = 256 };

/* ---- forms ---- */

/* The words that a form offers, separated by blanks; "": none. */
static void completion_list_words(const char *form, char words[COMPLETION_WORDS]) {
  size_t first = form ? strcspn(form, " ") : 0, n = 0;
  words[0] = '\0';
  if (form == NULL || memchr(form, '|', first) == NULL) return;
  for (const char *at = form; at < form + first; at += strcspn(at, "| ") + 1) {
    size_t length = strcspn(at, "| ");
    if (islower((unsigned char)at[0]) && n + length + 2 < COMPLETION_WORDS)
      n += (size_t)snprintf(words + n, COMPLETION_WORDS - n, "%s%.*s", n ? " " : "", (int)length, at);
  }
}

static bool completion_takes_files(const char *form) {
  return form && (strstr(form, "FILE") || strstr(form, "FOLDER") || strstr(form, "PATH"));
}

/* ---- bash ---- */

static void completion_print_bash_values(const cli_command *command) {
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;) {
    char words[COMPLETION_WORDS];
    if (o->value == NULL) continue;
    completion_list_words(o->value, words);
    printf("    %s:--%s) words='%s' files=%s ;;\n", command->name, o->name, words,
           completion_takes_files(o->value) ? "1" : "");
  }
}

static void completion_print_bash_command(const cli_command *command) {
  char words[COMPLETION_WORDS];
  completion_list_words(command->words, words);
  printf("    %s:*)\n      options='", command->name);
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;) printf("--%s ", o->name);
  printf("'\n      [ $COMP_CWORD = 2 ] && words='%s'\n      files=%s ;;\n", words,
         completion_takes_files(command->words) ? "1" : "");
}

static void completion_print_bash(const cli_command *const *commands) {
  printf("# Completion of tenon for bash, written by `tenon completion bash`.\n"
         "_tenon() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= options= files=\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '");
  for (int i = 0; commands[i] != NULL; i++) printf("%s ", commands[i]->name);
  printf("help' -- \"$cur\"))\n    return\n  fi\n  case \"${COMP_WORDS[1]}:$prev\" in\n");
  for (int i = 0; commands[i] != NULL; i++) {
    completion_print_bash_values(commands[i]);
    completion_print_bash_command(commands[i]);
  }
  printf("  esac\n"
         "  case \"$cur\" in -*) words=$options files= ;; esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  if [ -n \"$files\" ]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    while IFS= read -r path; do COMPREPLY+=(\"$path\"); done < <(compgen -f -- \"$cur\")\n"
         "  fi\n"
         "}\n"
         "complete -F _tenon tenon\n");
}

/* ---- zsh ---- */

/* Texts in single quotes, where zsh takes [, ] and : for marks. */
static void completion_print_quoted(const char *text, const char *marks) {
  for (; *text; text++) {
    if (*text == '\'')
      printf("'\\''");
    else
      printf("%s%c", strchr(marks, *text) ? "\\" : "", *text);
  }
}

static void completion_print_zsh_action(const char *form) {
  char words[COMPLETION_WORDS];
  completion_list_words(form, words);
  bool files = completion_takes_files(form);
  if (words[0] && files)
    printf("{_alternative \"words\\:\\:(%s)\" \"files\\:\\:_files\"}", words);
  else if (words[0])
    printf("(%s)", words);
  else
    printf(files ? "_files" : " ");
}

static void completion_print_zsh_command(const cli_command *command) {
  char words[COMPLETION_WORDS];
  printf("  %s)\n    _arguments -s", command->name);
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;) {
    printf(" \\\n      '%s--%s[", o->value ? "*" : "", o->name);
    completion_print_quoted(o->doc, "[]:\\");
    printf("]");
    if (o->value) {
      printf(":");
      completion_print_quoted(o->value, "[]:\\");
      printf(":");
      completion_print_zsh_action(o->value);
    }
    printf("'");
  }
  completion_list_words(command->words, words);
  if (words[0]) printf(" \\\n      '1:word:(%s)'", words);
  if (completion_takes_files(command->words)) printf(" \\\n      '*:file:_files'");
  printf("\n    ;;\n");
}

static void completion_print_zsh(const cli_command *const *commands) {
  printf("#compdef tenon\n# Completion of tenon for zsh, written by `tenon completion zsh`.\n"
         "local -a commands\ncommands=(\n");
  for (int i = 0; commands[i] != NULL; i++) {
    printf("  '%s:", commands[i]->name);
    completion_print_quoted(commands[i]->doc, ":\\");
    printf("'\n");
  }
  printf(")\nif (( CURRENT == 2 )); then\n  _describe command commands\n  return\nfi\n"
         "shift words\n(( CURRENT-- ))\ncase $words[1] in\n");
  for (int i = 0; commands[i] != NULL; i++) completion_print_zsh_command(commands[i]);
  printf("esac\n");
}

/* ---- fish ---- */

/* A text in single quotes, with a blank in front. */
static void completion_print_fish_text(const char *option, const char *text) {
  printf(" %s '", option);
  for (; *text; text++) printf(*text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
  printf("'\n");
}

static void completion_print_fish_option(const cli_command *command, const cli_option *o) {
  char words[COMPLETION_WORDS];
  completion_list_words(o->value, words);
  printf("complete -c tenon -n '__fish_seen_subcommand_from %s' -l %s", command->name, o->name);
  if (cli_option_letter(o)) printf(" -s %c", cli_option_letter(o));
  if (o->value) printf(completion_takes_files(o->value) ? " -r -F" : " -x");
  if (words[0]) printf(" -a '%s'", words);
  completion_print_fish_text("-d", o->doc);
}

static void completion_print_fish(const cli_command *const *commands) {
  printf("# Completion of tenon for fish, written by `tenon completion fish`.\ncomplete -c tenon -f\n");
  for (int i = 0; commands[i] != NULL; i++) {
    const cli_command *c = commands[i];
    char words[COMPLETION_WORDS];
    completion_list_words(c->words, words);
    printf("complete -c tenon -n __fish_use_subcommand -a %s", c->name);
    completion_print_fish_text("-d", c->doc);
    if (words[0]) printf("complete -c tenon -n '__fish_seen_subcommand_from %s' -a '%s'\n", c->name, words);
    if (completion_takes_files(c->words))
      printf("complete -c tenon -n '__fish_seen_subcommand_from %s' -F\n", c->name);
    for (const cli_option *o = NULL; (o = cli_next_option(c, o)) != NULL;) completion_print_fish_option(c, o);
  }
}

/* ---- the command ---- */

static int completion_run(tn_context *context, const cli_args *args) {
  (void)context;
  const char *shell = args->words[0];
  if (strcmp(shell, "bash") == 0)
    completion_print_bash(args->commands);
  else if (strcmp(shell, "zsh") == 0)
    completion_print_zsh(args->commands);
  else if (strcmp(shell, "fish") == 0)
    completion_print_fish(args->commands);
  else
    return cli_refuse(args, CLI_USAGE, "expected bash, zsh or fish, not '%s'", shell);
  return CLI_OK;
}

const cli_command command_completion = {.name = "completion",
                                        .words = "bash|zsh|fish",
                                        .doc = "a script that completes commands and options in a shell",
                                        .min_words = 1,
                                        .max_words = 1,
                                        .run = completion_run,
                                        .alone = true};
