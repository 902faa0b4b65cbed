/* tools/cli.c: arguments, log and exit codes. */
#include "tools/cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "tools/nearest.h"

enum {
  KEY_STATS,
  KEY_AFTER,
  KEY_CASES = 256,
  KEY_OPTIMIZER,
  KEY_DTYPE,
  KEY_PROMPT,
  KEY_PROMPT_TOKENS,
  KEY_TOKENS,
  KEY_TEMPERATURE,
  KEY_TOP_K,
  KEY_TOP_P,
  KEY_SEED,
  KEY_TRACE,
  KEY_FROM,
  KEY_TO,
  KEY_HOSTS,
  KEY_RESTARTS,
  KEY_RANKS,
  KEY_TRUST,
  KEY_HEADER
};

static const cli_option options[] = {
    {"set", "section.key=value", "override a key of the configuration", CLI_SET, 's'},
    {"resume", "auto|FOLDER", "resume an earlier run", CLI_RESUME, 'r'},
    {"output", "PATH", "folder for run folders; predict, report, init: the file to write", CLI_OUTPUT, 'o'},
    {"weights", "PATH",
     "parameters: a safetensors file, a run folder, or the folder of a checkpoint; init: a ResNet of "
     "torchvision to fine-tune",
     CLI_WEIGHTS, 'w'},
    {"trust", NULL, "load the plugins and libraries that the run folder's config.ini names", CLI_TRUST,
     KEY_TRUST},
    {"input", "[NAME=]PATH", "a picture, a folder of them, a text, or a .npy file; may be repeated",
     CLI_INPUT, 'i'},
    {"top", "N", "classes of each prediction (default: 5)", CLI_INPUT, 'k'},
    {"csv", NULL, "print the predictions as CSV", CLI_INPUT, 'C'},
    {"classes", NULL, "precision, recall, F1, AUC of each class, and the confusion matrix", CLI_CLASSES, 'K'},
    {"prompt", "TEXT", "the beginning of the text (default: a new line)", CLI_GENERATE, KEY_PROMPT},
    {"prompt-tokens", "\"N N ...\"", "the beginning as numbers of tokens; the result is numbers, too",
     CLI_GENERATE, KEY_PROMPT_TOKENS},
    {"tokens", "N", "tokens to generate (default: 200)", CLI_GENERATE, KEY_TOKENS},
    {"temperature", "T", "above 1: more surprising; 0: always the most probable token (default: 0.8)",
     CLI_GENERATE, KEY_TEMPERATURE},
    {"top-k", "K", "draw from the K most probable tokens (default: all)", CLI_GENERATE, KEY_TOP_K},
    {"top-p", "P", "draw from the most probable tokens whose probabilities sum to P (default: 1)",
     CLI_GENERATE, KEY_TOP_P},
    {"seed", "N", "another seed gives another text (default: 0)", CLI_GENERATE, KEY_SEED},
    {"mode", "train|infer|load", "the steps or the loader to measure", CLI_MODE, 'm'},
    {"batch", "N", "samples in a step", CLI_BATCH, 'b'},
    {"steps", "N", "steps in a round", CLI_STEPS, 'n'},
    {"rounds", "N", "rounds that are timed", CLI_STEPS, 'R'},
    {"warmup", "N", "steps before the first round", CLI_STEPS, 'W'},
    {"from", "LR", "the first learning rate (default: 1e-7)", CLI_FIND_LR, KEY_FROM},
    {"to", "LR", "the last learning rate (default: 10)", CLI_FIND_LR, KEY_TO},
    {"steps", "N", "steps, at most (default: 100)", CLI_FIND_LR, 'n'},
    {"processes", "N", "processes of this host, also as -n N (default: 1)", CLI_LAUNCH, 'n'},
    {"hosts", "A:4,B:4", "hosts and the processes of each (default: 1), started by ssh", CLI_LAUNCH,
     KEY_HOSTS},
    {"restarts", "N",
     "after the failure of a process, start again from the last checkpoint, so often (default: 0)",
     CLI_LAUNCH, KEY_RESTARTS},
    {"threads", "N", "threads of kernels that run on the host", CLI_OPS, 't'},
    {"ops", NULL, "the time of each launch, and the limits of the machine", CLI_OPS, 'O'},
    {"trace", "FILE", "a timeline of profiled steps, for ui.perfetto.dev or chrome://tracing", CLI_TRACE,
     KEY_TRACE},
    {"dump-after", "PASS", "print the graph after a pass (all: after each)", CLI_PLAN, 'd'},
    {"device", "FILE", "plan for the device that a JSON file describes", CLI_PLAN, 'P'},
    {"ranks", "N", "plan for so many devices, be they there or not", CLI_PLAN, KEY_RANKS},
    {"device", "FILE", "rehearse the device that a JSON file describes: predicted times, nothing is computed",
     CLI_REHEARSE, 'P'},
    {"ranks", "N", "devices that share the batch (default: those of [distributed])", CLI_REHEARSE, KEY_RANKS},
    {"device-json", NULL, "print a device as `tenon plan --device` reads it", CLI_DOCTOR, 'J'},
    {"backend", "NAME", "backend of the device (default: cpu)", CLI_CONFORMANCE, 'B'},
    {"device", "N", "number of the device, from 0 (default)", CLI_CONFORMANCE, 'N'},
    {"set", "OPTION=VALUE", "an option of the backend, also as backend.NAME.OPTION=VALUE", CLI_CONFORMANCE,
     's'},
    {"set", "backend.capture=no", "launch kernels one by one, without replay", CLI_CONFORMANCE, 's'},
    {"case", "OP/DTYPE/DRAW", "run only this op, dtype or draw", CLI_CONFORMANCE, 'c'},
    {"after", "CASE", "begin behind this case: goes on where a case has ended the process", CLI_CONFORMANCE,
     KEY_AFTER},
    {"cases", NULL, "print the name of each case to stderr before it runs", CLI_CONFORMANCE, KEY_CASES},
    {"unsupported", "FILE", "ops that may be missing: lines of OP/DTYPE: reason", CLI_CONFORMANCE, 'u'},
    {"draws", "N", "draws of each op and dtype", CLI_CONFORMANCE, 'D'},
    {"timeout", "SECONDS", "time limit of a case (default: 60)", CLI_CONFORMANCE, 'T'},
    {"backends", "A,B", "the backend that is trusted, and the one that is tested", CLI_COMPARE, 'A'},
    {"steps", "N", "steps of both (default: 12); launches are compared in the first and the last",
     CLI_COMPARE, 'n'},
    {"launches", "N", "launches of each with the same operands (default: 12)", CLI_COMPARE, 'L'},
    {"output", "FILE", "written for the first launch that departs (default: departs.safetensors)",
     CLI_COMPARE, 'o'},
    {"repeat", "FILE", "repeat the launch in a file that an earlier comparison has written", CLI_COMPARE,
     'E'},
    {"all", NULL, "print every launch", CLI_COMPARE, 'a'},
    {"all", NULL, "show: with every key that is not given, at its default", CLI_CONFIG, 'a'},
    {"stats", NULL, "show: smallest, largest and mean element of each tensor", CLI_CHECKPOINT, KEY_STATS},
    {"optimizer", NULL, "diff, convert: optimizer state as well", CLI_CHECKPOINT, KEY_OPTIMIZER},
    {"dtype", "f16|bf16|f32|f64", "convert: the dtype of all floats (default: as they are)", CLI_CHECKPOINT,
     KEY_DTYPE},
    {"header", "PLUGIN", "print a C header with a function for each op of PLUGIN (core: Tenon's own)",
     CLI_REFERENCE, KEY_HEADER},
    {"json", NULL, "print the result as one JSON object", CLI_JSON, 'j'},
    {"plugin", "FILE", "load a plugin", 0, 'p'},
    {"verbose", NULL, "log more", 0, 'v'},
    {"quiet", NULL, "log errors only", 0, 'q'},
    {"help", NULL, "this text", 0, 'h'},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

const cli_exit cli_exits[] = {
    {CLI_OK, "done"},
    {CLI_USAGE, "a wrong command line: command, option, number of arguments"},
    {CLI_DIFFERS, "compare, checkpoint diff: the two differ"},
    {CLI_DATA, "a wrong configuration, input file or checkpoint"},
    {CLI_UNAVAILABLE, "a device, plugin, kernel or memory is missing; the run folder is in use"},
    {CLI_INTERNAL, "a bug of Tenon; failed conformance"},
    {CLI_UNFINISHED, "conformance: a case hung or broke the device, and no later case was run"},
    {CLI_IO, "a file cannot be read or written, also stdout"},
    {CLI_STOPPED, "stopped by a signal, and saved"},
    {CLI_NONFINITE, "the loss, or an output, is not finite"},
    {CLI_COMM, "a rank or a collective failed"},
    {0, NULL}};

const cli_option *cli_next_option(const cli_command *command, const cli_option *before) {
  for (const cli_option *o = before ? before + 1 : options; o < options + N_OPTIONS; o++)
    if (o->bit == 0 || (command->options & o->bit) != 0) return o;
  return NULL;
}

char cli_option_letter(const cli_option *option) {
  return !option->bit && !option->value ? (char)option->key : '\0';
}

void cli_help(const cli_command *command, FILE *to) {
  fprintf(to, "usage: tenon %s%s%s [option]...\n%s.\n\n", command->name, *command->words ? " " : "",
          command->words, command->doc);
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;) {
    char left[48], letter[8] = "";
    if (cli_option_letter(o)) snprintf(letter, sizeof letter, "-%c, ", cli_option_letter(o));
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
    fprintf(to, "  %-28s %s\n", left, o->doc);
  }
}

static int cli_usage(const cli_args *args, const char *text, const char *what) {
  return cli_refuse(args, CLI_USAGE, "%s%s%s%s; see `tenon %s --help`", text, what ? " '" : "",
                    what ? what : "", what ? "'" : "", args->command);
}

/* "unknown option '--weigths', did you mean '--weights'?" */
static int cli_unknown_option(const cli_command *command, const cli_args *args, const char *given) {
  const char *names[N_OPTIONS];
  int n = 0;
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;) names[n++] = o->name;
  size_t length = strcspn(given, "=");
  char word[64], text[128];
  snprintf(word, sizeof word, "%.*s", (int)length, given + strspn(given, "-"));
  const char *nearest = nearest_word(word, names, n);
  if (nearest == NULL || strcmp(nearest, word) == 0)
    return cli_usage(args, "unknown option or missing value:", given);
  snprintf(text, sizeof text, "unknown option; did you mean --%s, not", nearest);
  return cli_usage(args, text, given);
}

static bool cli_is_number(const char *text, long long least, long long *value) {
  char *end = NULL;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return end != text && !*end && !errno && *value >= least && *value <= 1000000000;
}

static int cli_read_number(const cli_args *args, const char *text, long long *value) {
  return cli_is_number(text, 1, value) ? CLI_OK : cli_usage(args, "expected a number from 1, not", text);
}

static int cli_read_index(const cli_args *args, const char *text, long long *value) {
  return cli_is_number(text, 0, value) ? CLI_OK : cli_usage(args, "expected a number from 0, not", text);
}

static int cli_read_real(const cli_args *args, const char *text, double low, double high, double *value) {
  char *end = NULL;
  char range[64];
  *value = strtod(text, &end);
  if (end != text && !*end && *value >= low && *value <= high) return CLI_OK;
  snprintf(range, sizeof range, "expected a number from %g to %g, not", low, high);
  return cli_usage(args, range, text);
}

static int cli_push(const cli_args *args, const char **list, int *n, const char *value) {
  if (*n == CLI_MAX_LIST) return cli_usage(args, "too many of one option:", value);
  list[(*n)++] = value;
  return CLI_OK;
}

static int cli_override_threads(cli_args *args, const char *value) {
  long long threads = 0;
  int code = cli_read_number(args, value, &threads);
  if (code != CLI_OK) return code;
  snprintf(args->threads, sizeof args->threads, "run.threads=%lld", threads);
  return cli_push(args, args->set, &args->n_set, args->threads);
}

static int cli_apply(cli_args *args, int key, const char *value) {
  switch (key) {
  case 's': return cli_push(args, args->set, &args->n_set, value);
  case 'p': return cli_push(args, args->plugins, &args->n_plugins, value);
  case 'r': args->resume = value; break;
  case 'o': args->output = value; break;
  case 'w': args->weights = value; break;
  case 'i': return cli_push(args, args->inputs, &args->n_inputs, value);
  case 'k': return cli_read_number(args, value, &args->top);
  case KEY_TRUST: args->trust = true; break;
  case 'C': args->csv = true; break;
  case 'K': args->classes = true; break;
  case 'm': args->mode = value; break;
  case 'd': args->dump_after = value; break;
  case 'P': args->device_file = value; break;
  case 'J': args->device_json = true; break;
  case 'B': args->backend = value; break;
  case 'c': args->only = value; break;
  case KEY_AFTER: args->after = value; break;
  case KEY_CASES: args->cases = true; break;
  case 'u': args->unsupported = value; break;
  case 'D': return cli_read_number(args, value, &args->draws);
  case 'N': return cli_read_index(args, value, &args->device);
  case 'T': return cli_read_number(args, value, &args->timeout);
  case 'b': return cli_read_number(args, value, &args->batch);
  case 'n': return cli_read_number(args, value, &args->steps);
  case 'R': return cli_read_number(args, value, &args->rounds);
  case 'W': return cli_read_number(args, value, &args->warmup);
  case 't': return cli_override_threads(args, value);
  case 'O': args->ops = true; break;
  case 'A': args->backends = value; break;
  case KEY_FROM: return cli_read_real(args, value, 1e-30, 1e30, &args->from);
  case KEY_TO: return cli_read_real(args, value, 1e-30, 1e30, &args->to);
  case 'L': return cli_read_number(args, value, &args->launches);
  case 'E': args->repeat = value; break;
  case 'a': args->all = true; break;
  case KEY_TRACE: args->trace = value; break;
  case KEY_HOSTS: args->hosts = value; break;
  case KEY_RESTARTS: return cli_read_index(args, value, &args->restarts);
  case KEY_RANKS: return cli_read_number(args, value, &args->ranks);
  case KEY_STATS: args->stats = true; break;
  case KEY_OPTIMIZER: args->optimizer = true; break;
  case KEY_DTYPE: args->dtype = value; break;
  case KEY_PROMPT: args->prompt = value; break;
  case KEY_PROMPT_TOKENS: args->prompt_tokens = value; break;
  case KEY_TOKENS: return cli_read_number(args, value, &args->tokens);
  case KEY_TEMPERATURE: return cli_read_real(args, value, 0, 1000, &args->temperature);
  case KEY_TOP_K: return cli_read_number(args, value, &args->top_k);
  case KEY_TOP_P: return cli_read_real(args, value, 1e-6, 1, &args->top_p);
  case KEY_SEED: return cli_read_index(args, value, &args->seed);
  case KEY_HEADER: args->header = value; break;
  case 'j': args->json = true; break;
  case 'v': args->verbose = true; break;
  case 'q': args->quiet = true; break;
  case 'h': args->help = true; break;
  default: break;
  }
  return CLI_OK;
}

/* --json counts for mistakes that stand before it, too. */
bool cli_wants_json(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--json") == 0) return true;
  return false;
}

int cli_parse(const cli_command *command, int argc, char **argv, cli_args *args) {
  struct option table[N_OPTIONS + 1];
  const char *letters = (command->options & CLI_LAUNCH) != 0 ? "hqvn:" : "hqv";
  int n = 0, found;
  memset(table, 0, sizeof table);
  args->command = command->name;
  args->temperature = 0.8;
  args->json = (command->options & CLI_JSON) != 0 && cli_wants_json(argc, argv);
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;)
    table[n++] = (struct option){o->name, o->value ? required_argument : no_argument, NULL, o->key};
  opterr = 0;
  optind = 1;
  while ((found = getopt_long(argc, argv, letters, table, NULL)) != -1) {
    if (found == '?') return cli_unknown_option(command, args, argv[optind - 1]);
    int code = cli_apply(args, found, optarg);
    if (code != CLI_OK) return code;
  }
  for (; optind < argc; optind++) {
    if (args->n_words == command->max_words) return cli_usage(args, "too many arguments:", argv[optind]);
    args->words[args->n_words++] = argv[optind];
  }
  if (!args->help && args->n_words < command->min_words) return cli_usage(args, "expected", command->words);
  return CLI_OK;
}

static void cli_write_log(void *user, int32_t level, const char *line) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  (void)user;
  fprintf(stderr, "tenon: %s: %s\n", names[level < 0 || level > 3 ? 3 : level], line);
}

int cli_open(const cli_args *args, tn_context **context) {
  tn_context_options settings = {.struct_size = sizeof settings, .log = cli_write_log};
  settings.log_level = args->quiet ? TN_LOG_ERROR : args->verbose ? TN_LOG_DEBUG : TN_LOG_WARN;
  tn_status status = tn_context_open(&settings, context);
  for (int i = 0; status == TN_OK && i < args->n_plugins; i++)
    status = tn_context_load(*context, args->plugins[i]);
  return status == TN_OK ? CLI_OK : cli_fail(args, *context, status);
}

static int cli_exit_code(tn_status status) {
  switch (status) {
  case TN_OK: return CLI_OK;
  case TN_EINVAL: return CLI_DATA;
  case TN_EIO: return CLI_IO;
  case TN_EUNSUPPORTED:
  case TN_EUNAVAILABLE:
  case TN_ENOMEM:
  case TN_EDEVICE:
  case TN_EABI: return CLI_UNAVAILABLE;
  case TN_ESTOPPED: return CLI_STOPPED;
  case TN_ENONFINITE: return CLI_NONFINITE;
  case TN_ECOMM: return CLI_COMM;
  default: return CLI_INTERNAL;
  }
}

static const char *cli_error_text(const void *handle, tn_status status) {
  const char *text = handle ? tn_error_text(handle) : "out of memory";
  return *text ? text : tn_status_name(status);
}

int cli_report(const void *handle, tn_status status) {
  const char *text = cli_error_text(handle, status);
  for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
    n = strcspn(text, "\n");
    fprintf(stderr, "tenon: %.*s\n", (int)n, text);
  }
  return cli_exit_code(status);
}

/* {"status": "failed", "exit": 65, "reason": "invalid", "errors": ["net.ini:3: ..."]} */
static void cli_print_failure(int code, const char *reason, const char *text) {
  json_t *errors = json_array();
  for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
    n = strcspn(text, "\n");
    json_t *one = json_stringn(text, n);
    json_array_append_new(errors, one ? one : json_string("a message that is not UTF-8"));
  }
  json_t *json =
      json_pack("{s:s, s:i, s:s, s:o}", "status", "failed", "exit", code, "reason", reason, "errors", errors);
  char *printed = json ? json_dumps(json, JSON_ENSURE_ASCII) : NULL;
  if (printed) printf("%s\n", printed);
  free(printed);
  json_decref(json);
}

int cli_fail(const cli_args *args, const void *handle, tn_status status) {
  if (args->json)
    cli_print_failure(cli_exit_code(status), tn_status_name(status), cli_error_text(handle, status));
  return cli_report(handle, status);
}

int cli_finish(const cli_args *args, const void *handle, tn_status status, const char *json) {
  if (status == TN_OK) return CLI_OK;
  return json != NULL ? cli_report(handle, status) : cli_fail(args, handle, status);
}

/* The name of the status that gives the exit code; "usage": no status does. */
static const char *cli_reason(int code) {
  static const tn_status statuses[] = {TN_EINVAL, TN_EIO, TN_EUNAVAILABLE, TN_EINTERNAL};
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    if (cli_exit_code(statuses[i]) == code) return tn_status_name(statuses[i]);
  return "usage";
}

int cli_refuse(const cli_args *args, int code, const char *format, ...) {
  char text[8192];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (args->json) cli_print_failure(code, cli_reason(code), text);
  fprintf(stderr, "tenon%s%s: %s\n", args->command ? " " : "", args->command ? args->command : "", text);
  return code;
}

const char *cli_text(const json_t *json, const char *key) {
  return json_string_value(json_object_get(json, key));
}

long long cli_integer(const json_t *json, const char *key) {
  return json_integer_value(json_object_get(json, key));
}

double cli_number(const json_t *json, const char *key) {
  const json_t *value = json_object_get(json, key);
  return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

void cli_format_date(long long seconds, char text[CLI_DATE]) {
  time_t when = (time_t)seconds;
  struct tm parts;
  if (localtime_r(&when, &parts) == NULL || strftime(text, CLI_DATE, "%Y-%m-%d %H:%M", &parts) == 0)
    snprintf(text, CLI_DATE, "?");
}

/* Columns of the terminal on stderr; 0: stderr is not a terminal, or TERM is dumb. */
static int cli_terminal_columns(void) {
  struct winsize size;
  const char *term = getenv("TERM");
  if (!isatty(STDERR_FILENO) || term == NULL || strcmp(term, "dumb") == 0) return 0;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

int cli_open_run(tn_context *context, const cli_args *args, tn_run **run) {
  tn_run_options settings = {.struct_size = sizeof settings,
                             .set = args->set,
                             .n_set = args->n_set,
                             .output = args->output,
                             .resume = args->resume,
                             .weights = args->weights,
                             .trace = args->trace,
                             .terminal = args->quiet ? 0 : cli_terminal_columns(),
                             .quiet = args->quiet,
                             .progress = 1,
                             .untrusted = args->untrusted,
                             .command = args->line,
                             .n_command = args->n_line};
  tn_status status = tn_run_open(context, args->words[0], &settings, run);
  return status == TN_OK ? CLI_OK : cli_fail(args, context, status);
}

int cli_open_run_or_folder(tn_context *context, const cli_args *args, tn_run **run) {
  struct stat info;
  char config[4096];
  cli_args of_folder = *args;
  if (stat(args->words[0], &info) != 0 || !S_ISDIR(info.st_mode)) return cli_open_run(context, args, run);
  snprintf(config, sizeof config, "%s/config.ini", args->words[0]);
  of_folder.words[0] = config;
  of_folder.untrusted = !args->trust;
  if (of_folder.weights == NULL) of_folder.weights = args->words[0];
  return cli_open_run(context, &of_folder, run);
}

static double cli_memory_mib(const json_t *memory, const char *name) {
  return json_number_value(json_object_get(memory, name));
}

void cli_print_memory(const json_t *result) {
  const json_t *m = json_object_get(result, "memory");
  if (m == NULL) return;
  printf("device     %.1f MiB: %.1f allocated, %.1f by libraries, %.1f by the driver and others, %.1f free\n",
         cli_memory_mib(m, "device_mib"), cli_memory_mib(m, "allocated_mib"),
         cli_memory_mib(m, "libraries_mib"), cli_memory_mib(m, "others_mib"), cli_memory_mib(m, "free_mib"));
}
