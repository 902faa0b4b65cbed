/* tools/main.c: `tenon COMMAND ...`. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/cli.h"
#include "tools/cli/nearest.h"
#include "tools/launch/launch.h"

/* In the order of the overview. */
/* clang-format off */
#define COMMANDS(X) \
  X(train) X(sweep) X(launch) X(eval) X(predict) X(generate) X(tokenize) X(data) X(bench) X(find_lr) X(plan) X(compare) X(runs) \
  X(report) X(checkpoint) X(init) X(import) X(export) X(new_plugin) X(inspect) X(config) X(doctor) X(index) X(conformance) X(reference) \
  X(completion) X(man)
/* clang-format on */
#define MAIN_DECLARE(name) extern const cli_command command_##name;
#define MAIN_ADDRESS(name) &command_##name,
COMMANDS(MAIN_DECLARE)
static const cli_command *const commands[] = {COMMANDS(MAIN_ADDRESS) NULL};
enum { N_COMMANDS = sizeof commands / sizeof *commands - 1 };

static int main_print_overview(FILE *to) {
  fprintf(to,
          "tenon %s: deep learning from one INI file\n\nusage: tenon COMMAND [argument]... [option]...\n\n",
          tn_version());
  for (int i = 0; i < N_COMMANDS; i++) fprintf(to, "  %-12s %s\n", commands[i]->name, commands[i]->doc);
  fprintf(to, "\n`tenon COMMAND --help` explains one; -V prints the version.\n\nexit codes:\n");
  for (const cli_exit *e = cli_exits; e->text; e++) fprintf(to, "  %3d  %s\n", e->code, e->text);
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

static int main_run_parsed(const cli_command *command, const cli_args *args) {
  tn_context *context = NULL;
  if (command->alone) return command->run(NULL, args);
  int code = cli_open(args, &context);
  if (code == CLI_OK) code = command->run(context, args);
  if (tn_context_close(context)) _exit(main_close_stdout(code)); /* beside a thread that was left */
  return code;
}

/* argv[0] is the command, behind the program's name. Parsing moves the options in argv to the front. */
static int main_run_command(const cli_command *command, int argc, char **argv) {
  cli_args args = {.commands = commands};
  const char **line = calloc((size_t)argc + 2, sizeof *line);
  for (int i = 0; line != NULL && i <= argc; i++) line[args.n_line++] = argv[i - 1];
  args.line = line;
  int code = cli_parse(command, argc, argv, &args);
  if (code == CLI_OK && args.help)
    cli_help(command, stdout);
  else if (code == CLI_OK)
    code = main_run_parsed(command, &args);
  free(line);
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

static int main_unknown_command(int argc, char **argv) {
  cli_args args = {.json = cli_wants_json(argc, argv)};
  const char *names[N_COMMANDS], *word = argv[0];
  for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i]->name;
  const char *nearest = nearest_word(word, names, N_COMMANDS);
  size_t n = strlen(word);
  if (nearest)
    return cli_refuse(&args, CLI_USAGE, "there is no command '%s', did you mean `tenon %s`?", word, nearest);
  if (n > 4 && strcmp(word + n - 4, ".ini") == 0)
    return cli_refuse(&args, CLI_USAGE,
                      "'%s' is no command; write `tenon train %s`, or another of `tenon --help`", word, word);
  return cli_refuse(&args, CLI_USAGE, "there is no command '%s'; `tenon --help` lists them", word);
}

static const cli_command *main_find_command(const char *name) {
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp(name, commands[i]->name) == 0) return commands[i];
  return NULL;
}

/* `tenon help train` is `tenon train --help`. */
static int main_help(int argc, char **argv) {
  const cli_command *command = main_find_command(argv[0]);
  if (command == NULL) return main_unknown_command(argc, argv);
  cli_help(command, stdout);
  return CLI_OK;
}

static int main_dispatch(int argc, char **argv) {
  if (argc < 2) return main_print_overview(stderr);
  if (strcmp(argv[1], "help") == 0 && argc == 3) return main_help(1, argv + 2);
  if (main_is(argv[1], "--help", "-h", "help")) return main_print_overview(stdout);
  if (main_is(argv[1], "--version", "-V", "version")) {
    printf("tenon %s\n", tn_version());
    return CLI_OK;
  }
  /* no command of users: `tenon launch` starts it on other hosts */
  if (strcmp(argv[1], "launch-remote") == 0 && argc == 2) return launch_serve();
  const cli_command *command = main_find_command(argv[1]);
  return command ? main_run_command(command, argc - 1, argv + 1) : main_unknown_command(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
  main_fill_descriptors();
  main_ignore_file_limit();
  main_set_openmp_spin();
  return main_close_stdout(main_dispatch(argc, argv));
}
