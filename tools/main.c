/* tools/main.c: `tenon COMMAND ...`. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli.h"
#include "tools/nearest.h"

static const cli_command *const commands[] = {
    &command_train,       &command_eval,       &command_predict, &command_bench,  &command_plan,
    &command_compare,     &command_inspect,    &command_config,  &command_doctor, &command_index,
    &command_conformance, &command_checkpoint, &command_runs,    &command_report};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int main_print_overview(FILE *to) {
  fprintf(to,
          "tenon %s: deep learning from one INI file\n\nusage: tenon COMMAND [argument]... [option]...\n\n",
          tn_version());
  for (int i = 0; i < N_COMMANDS; i++) fprintf(to, "  %-11s %s\n", commands[i]->name, commands[i]->doc);
  fprintf(to, "\n`tenon COMMAND --help` explains one; -V prints the version.\n");
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

static bool main_is(const char *word, const char *a, const char *b, const char *c) {
  return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int main_unknown_command(const char *word) {
  const char *names[N_COMMANDS];
  for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i]->name;
  const char *nearest = nearest_word(word, names, N_COMMANDS);
  size_t n = strlen(word);
  if (nearest)
    fprintf(stderr, "tenon: there is no command '%s', did you mean `tenon %s`?\n", word, nearest);
  else if (n > 4 && strcmp(word + n - 4, ".ini") == 0)
    fprintf(stderr, "tenon: '%s' is no command; write `tenon train %s`, or another of `tenon --help`\n", word,
            word);
  else
    fprintf(stderr, "tenon: there is no command '%s'; `tenon --help` lists them\n", word);
  return CLI_USAGE;
}

static int main_dispatch(int argc, char **argv) {
  if (argc < 2) return main_print_overview(stderr);
  if (main_is(argv[1], "--help", "-h", "help")) return main_print_overview(stdout);
  if (main_is(argv[1], "--version", "-V", "version")) {
    printf("tenon %s\n", tn_version());
    return CLI_OK;
  }
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp(argv[1], commands[i]->name) == 0) return main_run_command(commands[i], argc - 1, argv + 1);
  return main_unknown_command(argv[1]);
}

int main(int argc, char **argv) {
  main_fill_descriptors();
  main_ignore_file_limit();
  main_set_openmp_spin();
  return main_close_stdout(main_dispatch(argc, argv));
}
