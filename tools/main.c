/* tools/main.c: `tenon COMMAND ...`. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"

static const cli_command *const commands[] = {
    &command_train,   &command_eval,   &command_predict, &command_bench, &command_plan,
    &command_inspect, &command_config, &command_doctor,  &command_index, &command_conformance};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int main_print_overview(FILE *to) {
  fprintf(to,
          "tenon %s: deep learning from one INI file\n\nusage: tenon COMMAND [argument]... [option]...\n\n",
          tn_version());
  for (int i = 0; i < N_COMMANDS; i++) fprintf(to, "  %-11s %s\n", commands[i]->name, commands[i]->doc);
  fprintf(to, "\n`tenon COMMAND --help` explains one.\n");
  return to == stdout ? CLI_OK : CLI_USAGE;
}

static int main_run_command(const cli_command *command, int argc, char **argv) {
  cli_args args;
  tn_context *context = NULL;
  int code = cli_parse(command, argc, argv, &args);
  if (code != CLI_OK) return code;
  if (args.help) {
    cli_help(command, stdout);
    return CLI_OK;
  }
  code = cli_open(&args, &context);
  if (code == CLI_OK) code = command->run(context, &args);
  tn_context_close(context);
  if (code == CLI_OK && (fflush(stdout) != 0 || ferror(stdout))) {
    fprintf(stderr, "tenon: the result could not be written to stdout\n");
    return CLI_IO;
  }
  return code;
}

/* OpenMP's threads spin for many milliseconds by default, which takes processors from the device's team of
 * threads, from the loader and from other programs. The user's settings have precedence. libgomp reads the
 * variable when a plugin loads it. */
static void main_set_openmp_spin(void) {
  if (getenv("OMP_WAIT_POLICY") == NULL) setenv("GOMP_SPINCOUNT", "2000", 0);
}

int main(int argc, char **argv) {
  main_set_openmp_spin();
  if (argc < 2) return main_print_overview(stderr);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) return main_print_overview(stdout);
  if (strcmp(argv[1], "--version") == 0) {
    printf("tenon %s\n", tn_version());
    return CLI_OK;
  }
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp(argv[1], commands[i]->name) == 0) return main_run_command(commands[i], argc - 1, argv + 1);
  fprintf(stderr, "tenon: there is no command '%s'; `tenon --help` lists them\n", argv[1]);
  return CLI_USAGE;
}
