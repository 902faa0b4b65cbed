/* Conditions that a process inherits or is sent: closed descriptors, pipes without a reader, limits, signals,
 * FIFOs among its files. */
#include "configs.h"
#include "program.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAVES ENDLESS " --set run.save_every=5"

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

/* ---- descriptors ---- */

static int closed; /* bit i: descriptor i */

static void close_some(void) {
  for (int fd = 0; fd < 3; fd++)
    if (closed >> fd & 1) close(fd);
}

/* Every line is one that the observer writes. */
static void holds_only_metrics(const char *folder) {
  char path[128];
  snprintf(path, sizeof path, "%s/metrics.csv", folder);
  char *rest = file_read(path, NULL);
  int lines = 0;
  for (char *line; (line = strsep(&rest, "\n"));) {
    if (*line == '\0') continue;
    const char *start = lines++ == 0                     ? "event,epoch,step,"
                        : strncmp(line, "epoch", 5) == 0 ? "epoch,"
                                                         : "step,";
    if (strncmp(line, start, strlen(start)) != 0) fail_msg("%s: %s", path, line);
  }
  assert_int_equal(lines, 20 * 3 + 2 * 6 + 1);
  snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
  assert_int_equal(file_lines(path), 22);
  rest = file_read(path, NULL);
  for (char *line; (line = strsep(&rest, "\n"));) {
    json_t *one = *line ? json_loads(line, 0, NULL) : json_null();
    if (one == NULL) fail_msg("%s: %s", path, line);
    json_decref(one);
  }
}

static void files_of_run_equal(const char *a, const char *b) {
  static const char *const files[] = {"config.ini", "checkpoints/last/model.safetensors",
                                      "checkpoints/last/optimizer.safetensors"};
  for (int i = 0; i < 3; i++) {
    char x[128], y[128];
    snprintf(x, sizeof x, "%s/%s", a, files[i]);
    snprintf(y, sizeof y, "%s/%s", b, files[i]);
    files_equal(x, y);
  }
}

/* The result is lost where stdout is closed; the log is not a result. */
static void closed_descriptors_are_not_those_of_files(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output whole"), 0);
  program_prepare(close_some);
  for (closed = 1; closed < 8; closed++) {
    char output[32], folder[64];
    snprintf(output, sizeof output, "closed%d", closed);
    snprintf(folder, sizeof folder, "%s/noise", output);
    int code = program_run("train noise.ini --verbose --output %s", output);
    if (code != (closed & 2 ? 74 : 0)) fail_msg("descriptors %d closed: exit code %d", closed, code);
    if (closed == 2) says("the result could not be written to stdout");
    if (!(closed & 2)) assert_non_null(strstr(program_out, "status     finished"));
    holds_only_metrics(folder);
    files_of_run_equal("whole/noise", folder);
    assert_true(json_is_object(file_json("whole/noise/plan.json")));
  }
}

static void every_command_reports_a_closed_stdout(void **state) {
  (void)state;
  static const char *const commands[] = {"--version", "--help",        "help",
                                         "inspect",   "train --help",  "config show noise.ini",
                                         "doctor",    "plan noise.ini"};
  file_write("noise.ini", noise_ini);
  closed = 2;
  program_prepare(close_some);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    int code = program_run("%s", commands[i]);
    if (code != 74) fail_msg("%s: exit code %d", commands[i], code);
  }
  closed = 7;
  assert_int_equal(program_run("train none.ini"), 74); /* there is no such file, which is the first failure */
  assert_int_equal(program_run("no-such-command"), 2);
}

/* ---- pipes without a reader ---- */

static int pipe_ends; /* bits 1 and 2: stdout and stderr are such pipes */

static void open_pipes(void) {
  int ends[2];
  signal(SIGPIPE, SIG_DFL);
  if (pipe(ends) != 0) _exit(127);
  close(ends[0]);
  for (int fd = 1; fd < 3; fd++)
    if (pipe_ends >> fd & 1) dup2(ends[1], fd);
  close(ends[1]);
}

/* `tenon train x.ini 2>&1 | head -1` */
static void a_training_goes_on_without_its_output(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --output whole"), 0);
  program_prepare(open_pipes);
  for (pipe_ends = 2; pipe_ends < 8; pipe_ends += 2) {
    char output[32], folder[64];
    snprintf(output, sizeof output, "pipe%d", pipe_ends);
    snprintf(folder, sizeof folder, "%s/noise", output);
    assert_int_equal(program_run("train noise.ini --output %s", output), pipe_ends & 2 ? 74 : 0);
    holds_only_metrics(folder);
    files_of_run_equal("whole/noise", folder);
  }
}

/* ---- limits ---- */

static void limit_files(void) {
  const struct rlimit limit = {2000, 2000};
  signal(SIGXFSZ, SIG_DFL);
  setrlimit(RLIMIT_FSIZE, &limit);
}

static void a_limit_of_file_sizes_is_reported(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_prepare(limit_files);
  assert_int_equal(program_run("train noise.ini --quiet"), 74);
  says("File too large");
  says("ulimit -f");
}

/* ---- signals ---- */

static void ignore_signals(void) {
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
}

static void default_signals(void) {
  signal(SIGINT, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
}

/* As under nohup, or for a job in the background of a script. */
static void ignored_signals_stay_ignored(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  program_prepare(ignore_signals);
  program_start("train noise.ini " SAVES);
  program_await_lines("runs/noise/metrics.jsonl", 20);
  program_signal(SIGINT);
  program_signal(SIGHUP);
  program_await_lines("runs/noise/metrics.jsonl", file_lines("runs/noise/metrics.jsonl") + 500);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
}

static void each_signal_that_ends_a_training_saves(void **state) {
  (void)state;
  static const int signals[] = {SIGHUP, SIGTERM, SIGINT};
  file_write("noise.ini", noise_ini);
  program_prepare(default_signals);
  for (int i = 0; i < 3; i++) {
    char output[16], metrics[64], record[96];
    snprintf(output, sizeof output, "by%d", signals[i]);
    snprintf(metrics, sizeof metrics, "%s/noise/metrics.jsonl", output);
    snprintf(record, sizeof record, "%s/noise/checkpoints/last/state.json", output);
    program_start("train noise.ini --quiet --output %s --set data.samples=8000000 --set data.cache=0",
                  output);
    program_await_lines(metrics, 20);
    program_signal(signals[i]);
    assert_int_equal(program_finish(), 75);
    assert_int_equal(program_number(file_json(record), "step"), file_lines(metrics));
  }
}

static const char slow_ini[] =
    "[run]\nname = slow\n[data]\nsource = holes\nsamples = 64\nlate_from = 12\nbatch = 4\nworkers = 1\n"
    "shuffle = no\n[model]\ninputs = image: f32[2, 4, 4]\nlayers =\n    flatten\n    fc: linear(3)\n"
    "loss = cross_entropy\n";

/* The samples of the fourth batch do not come before the checkpoint is there. */
static void a_slow_sample_does_not_delay_the_checkpoint(void **state) {
  (void)state;
  file_write("slow.ini", slow_ini);
  program_start("train slow.ini --quiet --plugin " HOLES);
  program_await_lines("runs/slow/metrics.jsonl", 3);
  program_signal(SIGTERM);
  program_await(file_exists("runs/slow/checkpoints/last/state.json"));
  file_write("go", "");
  assert_int_equal(program_finish(), 75);
  assert_int_equal(program_number(file_json("runs/slow/checkpoints/last/state.json"), "step"), 3);
  says("stopped after step 3");
  const json_t *r = program_json(0, "train slow.ini --quiet --plugin " HOLES
                                    " --resume auto --set data.late_from=-1 --set run.epochs=1");
  assert_int_equal(program_number(r, "steps"), 16);
  assert_int_equal(file_lines("runs/slow/metrics.jsonl"), 17);
}

/* ---- other kinds of files ---- */

static void put_kind(const char *path, int kind) {
  unlink(path);
  if (kind == 0) assert_int_equal(mkfifo(path, 0600), 0);
  if (kind == 1) assert_int_equal(symlink("/dev/zero", path), 0);
  if (kind == 2) assert_int_equal(symlink("/tmp", path), 0);
}

/* One image of zeros. */
static void write_npy(const char *path) {
  char bytes[128 + 36 * 4] = "\x93NUMPY\x01";
  bytes[8] = 118;
  memset(bytes + 10, ' ', 118);
  const char *head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 6, 6), }";
  memcpy(bytes + 10, head, strlen(head));
  bytes[127] = '\n';
  file_write_bytes(path, bytes, sizeof bytes);
}

/* Each path is a FIFO, a device, a folder. The program neither waits nor reads. */
static void what_is_no_regular_file_is_named(void **state) {
  (void)state;
  static const char *const kinds[] = {"a FIFO", "a device", "a folder"};
  static const struct {
    const char *path, *line;
  } cases[] = {
      {"x.ini", "train x.ini"},
      {"part.ini", "train whole.ini"},
      {"x.safetensors", "eval noise.ini --weights x.safetensors"},
      {"x.npy", "predict noise.ini --weights w.safetensors --input x.npy --output y.npy"},
      {"x.json", "plan noise.ini --device x.json"},
      {"y.npy", "predict noise.ini --weights w.safetensors --input in.npy --output y.npy"},
      {"letters.txt", "train text.ini"},
      {"lacking.txt", "conformance --backend cpu --case matmul --unsupported lacking.txt"},
  };
  file_write("noise.ini", noise_ini);
  file_write("whole.ini", "include = part.ini\n");
  file_write("text.ini", "[data]\nsource = text\nfile = letters.txt\ntokens = 8\nbatch = 4\n[model]\n"
                         "inputs = tokens: i32[8]\ntargets = next: i32[8]\nlayers =\n    e: embedding(9, 4)\n"
                         "    f: linear(9)\nloss = cross_entropy\n");
  write_npy("in.npy");
  assert_int_equal(program_run("train noise.ini"), 0);
  assert_int_equal(rename("runs/noise/checkpoints/last/model.safetensors", "w.safetensors"), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int kind = 0; kind < 3; kind++) {
      put_kind(cases[i].path, kind);
      int code = program_run("%s", cases[i].line);
      if (code != 65 || strstr(program_err, cases[i].path) == NULL ||
          strstr(program_err, kinds[kind]) == NULL)
        fail_msg("%s of %s: exit code %d: %s", cases[i].line, kinds[kind], code, program_err);
    }
}

/* The review's case: a FIFO called x.jpg among the images. */
static void a_fifo_among_images_is_named(void **state) {
  (void)state;
  file_write("images.ini",
             "[data]\nsource = image_folder\nfolder = images\nbatch = 1\ntransforms = "
             "resize(8), center_crop(8), to_float\n[model]\ninputs = image: f32[3, 8, 8]\nlayers =\n"
             "    flatten\n    fc: linear(2)\nloss = cross_entropy\n");
  assert_int_equal(mkdir("images", 0777), 0);
  assert_int_equal(mkdir("images/train", 0777), 0);
  assert_int_equal(mkdir("images/train/a", 0777), 0);
  assert_int_equal(mkfifo("images/train/a/x.jpg", 0600), 0);
  assert_int_equal(program_run("train images.ini"), 65);
  says("a/x.jpg: is not a file of data but a FIFO");
}

#define test(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
int main(void) {
  const struct CMUnitTest tests[] = {
      test(closed_descriptors_are_not_those_of_files),
      test(every_command_reports_a_closed_stdout),
      test(a_training_goes_on_without_its_output),
      test(a_limit_of_file_sizes_is_reported),
      test(ignored_signals_stay_ignored),
      test(each_signal_that_ends_a_training_saves),
      test(a_slow_sample_does_not_delay_the_checkpoint),
      test(what_is_no_regular_file_is_named),
      test(a_fifo_among_images_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
