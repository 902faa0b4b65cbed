/* tools/main.c: `tenon COMMAND ...`. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A file must not get the number of a closed descriptor, or messages would be written into it. Descriptors 0
 * and 1 get the direction in which their use fails as before: a result that cannot be written is an error. */
static void main_fill_descriptors(void) {
  static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd < 3; fd++) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", modes[fd]) < 0) (void)!open("/", O_RDONLY | O_DIRECTORY);
  }
}

/* A file that reaches the limit of `ulimit -f` is reported like a full disk. */
static void main_ignore_file_limit(void) { signal(SIGXFSZ, SIG_IGN); }

static int main_close_stdout(int code) {
  bool written = fflush(stdout) == 0 && !ferror(stdout);
  if (written || code != CLI_OK) return code;
  fprintf(stderr, "tenon: the result could not be written to stdout\n");
  return CLI_IO;
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
  return code;
}

/* OpenMP's threads spin for many milliseconds by default, which takes processors from the device's team of
 * threads, from the loader and from other programs. The user's settings have precedence. libgomp reads the
 * variable when a plugin loads it. */
static void main_set_openmp_spin(void) {
  if (getenv("OMP_WAIT_POLICY") == NULL) setenv("GOMP_SPINCOUNT", "2000", 0);
}

static int main_dispatch(int argc, char **argv) {
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

int main(int argc, char **argv) {
  main_fill_descriptors();
  main_ignore_file_limit();
  main_set_openmp_spin();
  return main_close_stdout(main_dispatch(argc, argv));
}
