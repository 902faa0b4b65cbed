/* tools/cli/options.c: the options of all commands: as the command line has them, --help, the completions and
 * the manual page. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/nearest.h"

/* How the value of an option is read, and the member of cli_args that gets it, which has that type. */
#define READ(how, member, type) _Generic(((cli_args *)0)->member, type : how), offsetof(cli_args, member)
#define TEXT(member)            READ(CLI_TEXT, member, const char *), 0, 0, 0
#define FLAG(member)            READ(CLI_FLAG, member, bool), 0, 0, 0
#define LIST(member)            READ(CLI_LIST, member, const char **), offsetof(cli_args, n_##member), 0, 0
#define COUNT(member)           READ(CLI_NUMBER, member, long long), 0, 1, 1e9
#define INDEX(member)           READ(CLI_NUMBER, member, long long), 0, 0, 1e9
#define REAL(member, low, high) READ(CLI_REAL, member, double), 0, low, high
#define THREADS                 CLI_THREADS, 0, 0, 1, 1e9

static const cli_option options[] = {
    {"set", "section.key=value", "override a key of the configuration", CLI_SET, 0, LIST(set)},
    {"resume", "auto|FOLDER", "resume an earlier run", CLI_RESUME, 0, TEXT(resume)},
    {"output", "PATH",
     "folder for run folders; report, init, import, export, tokenize, checkpoint average: the file to write, "
     "also "
     "as -o PATH; "
     "predict: a .npy, "
     ".safetensors, .csv "
     "or "
     ".json file, NAME=FILE, or a folder for masks or pictures",
     CLI_OUTPUT, 'o', TEXT(output)},
    {"weights", "PATH",
     "parameters: a safetensors file, a run folder, or the folder of a checkpoint; init: a ResNet of "
     "torchvision to fine-tune",
     CLI_WEIGHTS, 0, TEXT(weights)},
    {"trust", NULL, "load the plugins and libraries that the run folder's config.ini names", CLI_TRUST, 0,
     FLAG(trust)},
    {"input", "[NAME=]PATH",
     "a picture, a folder of them, a text, a .npy or a .safetensors file; may be repeated", CLI_INPUT, 0,
     LIST(inputs)},
    {"constant", "NAME=FILE.npy",
     "the value of an input, which becomes a tensor of the model; may be repeated", CLI_IMPORT, 0,
     LIST(inputs)},
    {"no-blocks", NULL, "a line for each layer, where parts that repeat are blocks otherwise", CLI_IMPORT, 0,
     FLAG(flat)},
    {"top", "N", "classes of each prediction (default: 5)", CLI_INPUT, 0, COUNT(top)},
    {"show", "FOLDER", "write pictures with the predicted masks or boxes over them", CLI_INPUT, 0,
     TEXT(show)},
    {"threshold", "T", "the least score of a box (default: 0.5)", CLI_INPUT, 0, REAL(threshold, 0, 1)},
    {"csv", NULL, "print the predictions as CSV", CLI_INPUT, 0, FLAG(csv)},
    {"classes", NULL, "precision, recall, F1, AUC of each class, and the confusion matrix", CLI_CLASSES, 0,
     FLAG(classes)},
    {"picture", "FILE.png", "write the pictures of the first batch of training", CLI_DATA_COMMAND, 0,
     TEXT(picture)},
    {"prompt", "TEXT", "the beginning of the text (default: a new line)", CLI_GENERATE, 0, TEXT(prompt)},
    {"prompt-tokens", "\"N N ...\"", "the beginning as numbers of tokens; the result is numbers, too",
     CLI_GENERATE, 0, TEXT(prompt_tokens)},
    {"tokens", "N", "tokens to generate (default: 200)", CLI_GENERATE, 0, COUNT(tokens)},
    {"temperature", "T", "above 1: more surprising; 0: always the most probable token (default: 0.8)",
     CLI_GENERATE, 0, REAL(temperature, 0, 1000)},
    {"top-k", "K", "draw from the K most probable tokens (default: all)", CLI_GENERATE, 0, COUNT(top_k)},
    {"top-p", "P", "draw from the most probable tokens whose probabilities sum to P (default: 1)",
     CLI_GENERATE, 0, REAL(top_p, 1e-6, 1)},
    {"seed", "N", "another seed gives another text (default: 0)", CLI_GENERATE, 0, INDEX(seed)},
    {"tokenizer", "FILE|bytes",
     "a Hugging Face tokenizer.json, a SentencePiece .model or a model of GGUF; bytes: each byte is a token",
     CLI_TOKENIZE, 0, TEXT(tokenizer)},
    {"field", "NAME", "files have a document in each line: member NAME of a JSON object", CLI_TOKENIZE, 0,
     TEXT(field)},
    {"separator", "TEXT", "the text between documents (default: a file is one document)", CLI_TOKENIZE, 0,
     TEXT(separator)},
    {"end", "TOKEN", "a token that is written behind every document", CLI_TOKENIZE, 0, TEXT(end_token)},
    {"template", NULL, "with the special tokens that the tokenizer puts around a text", CLI_TOKENIZE, 0,
     FLAG(template_ids)},
    {"pieces", NULL, "print tokens instead of their ids", CLI_TOKENIZE, 0, FLAG(pieces)},
    {"mode", "train|infer|load", "the steps or the loader to measure", CLI_MODE, 0, TEXT(mode)},
    {"batch", "N", "samples in a step", CLI_BATCH, 0, COUNT(batch)},
    {"steps", "N", "steps in a round", CLI_STEPS, 0, COUNT(steps)},
    {"rounds", "N", "rounds that are timed", CLI_STEPS, 0, COUNT(rounds)},
    {"warmup", "N", "steps before the first round", CLI_STEPS, 0, COUNT(warmup)},
    {"from", "LR", "the first learning rate (default: 1e-7)", CLI_FIND_LR, 0, REAL(from, 1e-30, 1e30)},
    {"to", "LR", "the last learning rate (default: 10)", CLI_FIND_LR, 0, REAL(to, 1e-30, 1e30)},
    {"steps", "N", "steps, at most (default: 100)", CLI_FIND_LR, 0, COUNT(steps)},
    {"processes", "N", "processes of this host, also as -n N (default: 1)", CLI_LAUNCH, 'n', COUNT(steps)},
    {"hosts", "A:4,B:4", "hosts and the processes of each (default: 1), started by ssh", CLI_LAUNCH, 0,
     TEXT(hosts)},
    {"restarts", "N",
     "after the failure of a process, start again from the last checkpoint, so often (default: 0)",
     CLI_LAUNCH, 0, INDEX(restarts)},
    {"threads", "N", "threads of kernels that run on the host", CLI_OPS, 0, THREADS},
    {"ops", NULL, "the time of each launch, and the limits of the machine", CLI_OPS, 0, FLAG(ops)},
    {"trace", "FILE", "a timeline of profiled steps, for ui.perfetto.dev or chrome://tracing", CLI_TRACE, 0,
     TEXT(trace)},
    {"dump-after", "PASS", "print the graph after a pass (all: after each)", CLI_PLAN, 0, TEXT(dump_after)},
    {"device", "FILE", "plan for the device that a JSON file describes", CLI_PLAN, 0, TEXT(device_file)},
    {"ranks", "N", "plan for so many devices, be they there or not", CLI_PLAN, 0, COUNT(ranks)},
    {"mode", "train|infer", "the training step, or predictions", CLI_PLAN, 0, TEXT(mode)},
    {"batch", "N", "samples of a prediction (default: 1)", CLI_PLAN, 0, COUNT(batch)},
    {"device", "FILE", "rehearse the device that a JSON file describes: predicted times, nothing is computed",
     CLI_REHEARSE, 0, TEXT(device_file)},
    {"ranks", "N", "devices that share the batch (default: those of [distributed])", CLI_REHEARSE, 0,
     COUNT(ranks)},
    {"device-json", NULL, "print a device as `tenon plan --device` reads it", CLI_DOCTOR, 0,
     FLAG(device_json)},
    {"backend", "NAME", "backend of the device (default: cpu)", CLI_CONFORMANCE, 0, TEXT(backend)},
    {"device", "N", "number of the device, from 0 (default)", CLI_CONFORMANCE, 0, INDEX(device)},
    {"set", "OPTION=VALUE", "an option of the backend, also as backend.NAME.OPTION=VALUE", CLI_CONFORMANCE, 0,
     LIST(set)},
    {"set", "backend.capture=no", "launch kernels one by one, without replay", CLI_CONFORMANCE, 0, LIST(set)},
    {"case", "OP/DTYPE/DRAW", "run only this op, dtype or draw", CLI_CONFORMANCE, 0, TEXT(only)},
    {"after", "CASE", "begin behind this case: goes on where a case has ended the process", CLI_CONFORMANCE,
     0, TEXT(after)},
    {"cases", NULL, "print the name of each case to stderr before it runs", CLI_CONFORMANCE, 0, FLAG(cases)},
    {"unsupported", "FILE", "ops that may be missing: lines of OP/DTYPE: reason", CLI_CONFORMANCE, 0,
     TEXT(unsupported)},
    {"draws", "N", "draws of each op and dtype", CLI_CONFORMANCE, 0, COUNT(draws)},
    {"quick", NULL, "one float and one integer dtype of each op; f32 and i32 too where a kernel names it",
     CLI_CONFORMANCE, 0, FLAG(quick)},
    {"timeout", "SECONDS", "time limit of a case (default: 60)", CLI_CONFORMANCE, 0, COUNT(timeout)},
    {"backends", "A,B", "the backend that is trusted, and the one that is tested", CLI_COMPARE, 0,
     TEXT(backends)},
    {"steps", "N", "steps of both (default: 12); launches are compared in the first and the last",
     CLI_COMPARE, 0, COUNT(steps)},
    {"launches", "N", "launches of each with the same operands (default: 12)", CLI_COMPARE, 0,
     COUNT(launches)},
    {"output", "FILE", "written for the first launch that departs (default: departs.safetensors)",
     CLI_COMPARE, 0, TEXT(output)},
    {"repeat", "FILE", "repeat the launch in a file that an earlier comparison has written", CLI_COMPARE, 0,
     TEXT(repeat)},
    {"all", NULL, "print every launch", CLI_COMPARE, 0, FLAG(all)},
    {"all", NULL, "show: with every key that is not given, at its default", CLI_CONFIG, 0, FLAG(all)},
    {"stats", NULL, "show: smallest, largest and mean element of each tensor", CLI_CHECKPOINT, 0,
     FLAG(stats)},
    {"optimizer", NULL, "diff, convert: optimizer state as well", CLI_CHECKPOINT, 0, FLAG(optimizer)},
    {"greedy", NULL,
     "average: begin with the best weights, and keep of the others those that do not make the mean worse in "
     "validation",
     CLI_CHECKPOINT, 0, FLAG(greedy)},
    {"keep-statistics", NULL,
     "average: the mean of running statistics, in place of new ones by an epoch of the training data",
     CLI_CHECKPOINT, 0, FLAG(keep_statistics)},
    {"dtype", "f16|bf16|f32|f64", "convert: the dtype of all floats (default: as they are)", CLI_CHECKPOINT,
     0, TEXT(dtype)},
    {"c", NULL, "a program in C in the folder --output, for a batch of --batch (default: 1)", CLI_EXPORT, 0,
     FLAG(source)},
    {"opset", "N", "the version of ONNX's operators, 13 to 23 (default: 17)", CLI_EXPORT, 0, COUNT(opset)},
    {"fold", "yes|no", "batch norm becomes part of the convolution in front of it (default: no)", CLI_EXPORT,
     0, TEXT(fold)},
    {"preprocess", "metadata|nodes",
     "the transforms of validation: as text in the file (default), or as nodes", CLI_EXPORT, 0,
     TEXT(preprocess)},
    {"precision", "f32|f16|bf16", "the type of the weights in the file (default: f32)", CLI_EXPORT, 0,
     TEXT(precision)},
    {"external", "yes|no", "weights in FILE.data beside the file (default: above 2 GB)", CLI_EXPORT, 0,
     TEXT(external)},
    {"header", "PLUGIN", "print a C header with a function for each op of PLUGIN (core: Tenon's own)",
     CLI_REFERENCE, 0, TEXT(header)},
    {"json", NULL, "print the result as one JSON object", CLI_JSON, 0, FLAG(json)},
    {"plugin", "FILE", "load a plugin", 0, 0, LIST(plugins)},
    {"verbose", NULL, "log more", 0, 'v', FLAG(verbose)},
    {"quiet", NULL, "log errors only", 0, 'q', FLAG(quiet)},
    {"help", NULL, "this text", 0, 'h', FLAG(help)},
};
enum { N_OPTIONS = sizeof options / sizeof *options, FIRST_LONG = 256 };

const cli_option *cli_next_option(const cli_command *command, const cli_option *before) {
  for (const cli_option *o = before ? before + 1 : options; o < options + N_OPTIONS; o++)
    if (o->bit == 0 || (command->options & o->bit) != 0) return o;
  return NULL;
}

char cli_option_letter(const cli_option *option) { return option->value ? '\0' : option->letter; }

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

static int options_refuse(const cli_args *args, const char *text, const char *what) {
  return cli_refuse(args, CLI_USAGE, "%s%s%s%s; see `tenon %s --help`", text, what ? " '" : "",
                    what ? what : "", what ? "'" : "", args->command);
}

/* "unknown option '--weigths', did you mean '--weights'?" */
static int options_unknown(const cli_command *command, const cli_args *args, const char *given) {
  const char *names[N_OPTIONS];
  int n = 0;
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;) names[n++] = o->name;
  size_t length = strcspn(given, "=");
  char word[64], text[128];
  snprintf(word, sizeof word, "%.*s", (int)length, given + strspn(given, "-"));
  const char *nearest = nearest_word(word, names, n);
  if (nearest == NULL || strcmp(nearest, word) == 0)
    return options_refuse(args, "unknown option or missing value:", given);
  snprintf(text, sizeof text, "unknown option; did you mean --%s, not", nearest);
  return options_refuse(args, text, given);
}

static int options_read_number(const cli_args *args, const cli_option *option, const char *text,
                               long long *value) {
  char *end = NULL;
  errno = 0;
  *value = strtoll(text, &end, 10);
  if (end != text && !*end && !errno && (double)*value >= option->low && (double)*value <= option->high)
    return CLI_OK;
  return options_refuse(
      args, option->low > 0 ? "expected a number from 1, not" : "expected a number from 0, not", text);
}

static int options_read_real(const cli_args *args, const cli_option *option, const char *text,
                             double *value) {
  char *end = NULL;
  char range[64];
  *value = strtod(text, &end);
  if (end != text && !*end && *value >= option->low && *value <= option->high) return CLI_OK;
  snprintf(range, sizeof range, "expected a number from %g to %g, not", option->low, option->high);
  return options_refuse(args, range, text);
}

static int options_push(const cli_args *args, const char **list, int *n, const char *value) {
  if (*n == CLI_MAX_LIST) return options_refuse(args, "too many of one option:", value);
  list[(*n)++] = value;
  return CLI_OK;
}

static int options_override_threads(cli_args *args, const cli_option *option, const char *value) {
  long long threads = 0;
  int code = options_read_number(args, option, value, &threads);
  if (code != CLI_OK) return code;
  snprintf(args->threads, sizeof args->threads, "run.threads=%lld", threads);
  return options_push(args, args->set, &args->n_set, args->threads);
}

static int options_apply(cli_args *args, const cli_option *option, const char *value) {
  void *member = (char *)args + option->member, *n = (char *)args + option->n_member;
  switch (option->read) {
  case CLI_TEXT: *(const char **)member = value; break;
  case CLI_FLAG: *(bool *)member = true; break;
  case CLI_LIST: return options_push(args, member, n, value);
  case CLI_NUMBER: return options_read_number(args, option, value, member);
  case CLI_REAL: return options_read_real(args, option, value, member);
  case CLI_THREADS: return options_override_threads(args, option, value);
  }
  return CLI_OK;
}

/* --json counts for mistakes that stand before it, too. */
bool cli_wants_json(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--json") == 0) return true;
  return false;
}

/* The option that getopt_long has found: a letter, or FIRST_LONG and the number of a row. */
static const cli_option *options_found(const cli_command *command, int found) {
  if (found >= FIRST_LONG) return &options[found - FIRST_LONG];
  const cli_option *o = NULL;
  while ((o = cli_next_option(command, o)) != NULL && o->letter != found) continue;
  return o;
}

/* "hqvn:", and the long options, ended by zeros. */
static void options_describe(const cli_command *command, char *letters, struct option *table) {
  for (const cli_option *o = NULL; (o = cli_next_option(command, o)) != NULL;) {
    *table++ = (struct option){o->name, o->value ? required_argument : no_argument, NULL,
                               FIRST_LONG + (int)(o - options)};
    if (o->letter) *letters++ = o->letter;
    if (o->letter && o->value) *letters++ = ':';
  }
}

int cli_parse(const cli_command *command, int argc, char **argv, cli_args *args) {
  struct option table[N_OPTIONS + 1] = {{0}};
  char letters[2 * N_OPTIONS + 1] = "";
  int found;
  args->command = command->name;
  args->temperature = 0.8;
  args->threshold = 0.5;
  args->json = (command->options & CLI_JSON) != 0 && cli_wants_json(argc, argv);
  options_describe(command, letters, table);
  opterr = 0;
  optind = 1;
  while ((found = getopt_long(argc, argv, letters, table, NULL)) != -1) {
    if (found == '?') return options_unknown(command, args, argv[optind - 1]);
    int code = options_apply(args, options_found(command, found), optarg);
    if (code != CLI_OK) return code;
  }
  for (; optind < argc; optind++) {
    if (args->n_words == command->max_words) return options_refuse(args, "too many arguments:", argv[optind]);
    args->words[args->n_words++] = argv[optind];
  }
  if (!args->help && args->n_words < command->min_words)
    return options_refuse(args, "expected", command->words);
  return CLI_OK;
}
