/* tools/cli/cli.h: arguments, log and exit codes of the commands of `tenon`. stdout carries the result,
 * stderr the log and the progress. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "tenon/context.h"
#include "tenon/run.h"
#include "tools/cli/plain_result.h"

/* Exit codes; those from 64 to 78 follow sysexits.h where it has one. docs/guide/results.md has the table. */
enum {
  CLI_OK = 0,
  CLI_USAGE = 2,
  CLI_DIFFERS = 3,
  CLI_DATA = 65,
  CLI_UNAVAILABLE = 69,
  CLI_INTERNAL = 70,
  CLI_UNFINISHED = 71,
  CLI_IO = 74,
  CLI_STOPPED = 75,
  CLI_NONFINITE = 76,
  CLI_COMM = 77
};

enum { CLI_MAX_LIST = 64, CLI_MAX_WORDS = 32 };

/* All options of all commands. */
typedef struct cli_args {
  const char *const *line; /* the command line, n_line words */
  int n_line;
  const char *command;                       /* its name; NULL: none was found */
  const struct cli_command *const *commands; /* all of them, ended by NULL */
  const char *words[CLI_MAX_WORDS];          /* positional */
  int n_words;
  const char *set[CLI_MAX_LIST];
  int n_set;
  char threads[32]; /* --threads as an override of [run] threads */
  const char *plugins[CLI_MAX_LIST];
  int n_plugins;
  const char *inputs[CLI_MAX_LIST];
  int n_inputs;
  const char *resume, *output, *weights, *trace, *mode, *dump_after;
  const char *backend, *only, *after, *unsupported, *device_file, *backends, *repeat;
  const char *hosts, *picture, *show;
  long long restarts, ranks;
  long long batch, steps /* -n; launch: processes */, rounds, warmup, draws, device, timeout, launches, top;
  double from, to; /* learning rates; 0: not given */
  const char *dtype;
  const char *prompt, *prompt_tokens;                    /* of generate */
  const char *tokenizer, *field, *separator, *end_token; /* of tokenize */
  bool pieces, template_ids;
  long long tokens, top_k, seed;
  double temperature, top_p, threshold;
  const char *fold, *external, *preprocess, *precision; /* of export */
  bool source;
  long long opset;
  const char *header;                             /* of reference */
  bool stats, optimizer, greedy, keep_statistics; /* of checkpoint */
  bool flat;                                      /* of import */
  bool json, csv, classes, ops, all, device_json, cases, quick, trust, untrusted, verbose, quiet, help;
} cli_args;

/* Bits for the options of a command, in addition to --help, --plugin, --verbose, --quiet. */
enum {
  CLI_SET = 1,
  CLI_JSON = 2,
  CLI_RESUME = 4,
  CLI_OUTPUT = 8,
  CLI_WEIGHTS = 16,
  CLI_INPUT = 32,
  CLI_MODE = 64,
  CLI_BATCH = 128,
  CLI_STEPS = 256,
  CLI_PLAN = 512,
  CLI_CONFORMANCE = 1024,
  CLI_OPS = 2048,
  CLI_DOCTOR = 4096,
  CLI_COMPARE = 8192,
  CLI_FIND_LR = 16384,
  CLI_LAUNCH = 32768,
  CLI_REFERENCE = 1 << 16,
  CLI_CHECKPOINT = 1 << 20,
  CLI_CLASSES = 1 << 21,
  CLI_GENERATE = 1 << 22,
  CLI_TRACE = 1 << 23,
  CLI_TOKENIZE = 1 << 24,
  CLI_IMPORT = 1 << 25,
  CLI_CONFIG = 1 << 26,
  CLI_TRUST = 1 << 28,
  CLI_REHEARSE = 1 << 27,
  CLI_DATA_COMMAND = 1 << 29,
  CLI_EXPORT = 1 << 25
};

typedef struct cli_command {
  const char *name, *words, *doc;
  int min_words, max_words;
  unsigned options;
  int (*run)(tn_context *context, const cli_args *args);
  bool alone; /* needs no context: it gets NULL */
} cli_command;

/* An option, as --help, the completions and the manual page show it. */
typedef struct cli_option {
  const char *name, *value, *doc; /* value NULL: a flag */
  unsigned bit;                   /* 0: every command takes it */
  char letter;                    /* '\0': it has none */
  enum { CLI_TEXT, CLI_FLAG, CLI_LIST, CLI_NUMBER, CLI_REAL, CLI_THREADS } read;
  size_t member, n_member; /* of cli_args; of a list its array and number */
  double low, high;        /* of numbers */
} cli_option;
/* The options of a command: the one behind `before` (NULL: the first); NULL: there are no more. */
const cli_option *cli_next_option(const cli_command *command, const cli_option *before);
/* The letter of an option, as in -h; '\0': it has none. */
char cli_option_letter(const cli_option *option);

/* The exit codes with their meanings, ended by a text that is NULL. */
typedef struct cli_exit {
  int code;
  const char *text;
} cli_exit;
extern const cli_exit cli_exits[];

/* Parses the arguments behind the command's name into args, whose other members are zero or set. Returns
 * CLI_OK, or CLI_USAGE as cli_refuse. */
int cli_parse(const cli_command *command, int argc, char **argv, cli_args *args);
void cli_help(const cli_command *command, FILE *to);

/* Whether --json is among the arguments. */
bool cli_wants_json(int argc, char **argv);

/* Prints the line "device" of a result with "memory": the device's memory by its use. */
void cli_print_memory(const json_t *result);
/* The table of memory by its use, where a result has it. */
void cli_print_memory_table(const json_t *result);

/* Opens the context with the log on stderr, and loads the plugins of the arguments. */
int cli_open(const cli_args *args, tn_context **context);
/* Reports what the command itself found to be wrong as "tenon COMMAND: text" on stderr, and with --json also
 * as JSON on stdout, and returns the exit code. */
int cli_refuse(const cli_args *args, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Prints the message of `handle` to stderr, a line for each mistake, and returns the exit code of the status.
 */
int cli_report(const void *handle, tn_status status);
/* The same; with --json it also prints the failure as JSON to stdout (docs/guide/results.md). */
int cli_fail(const cli_args *args, const void *handle, tn_status status);
/* The exit code of a command that has printed its result, `json`, or has none (NULL): a result that was
 * printed has no second object for the failure. */
int cli_finish(const cli_args *args, const void *handle, tn_status status, const char *json);

/* Members of a result; NULL, 0 and NaN for one that is missing or null. */
const char *cli_text(const json_t *json, const char *key);
long long cli_integer(const json_t *json, const char *key);
double cli_number(const json_t *json, const char *key);

/* "2026-05-01 09:12" of seconds since 1970, in local time. */
enum { CLI_DATE = 24 };
void cli_format_date(long long seconds, char text[CLI_DATE]);

/* Opens the run of the first word with the options of the arguments. */
int cli_open_run(tn_context *context, const cli_args *args, tn_run **run);
/* The same where the word may be a run folder, which stands for its config.ini with its weights. */
int cli_open_run_or_folder(tn_context *context, const cli_args *args, tn_run **run);
