/* tools/sweep/sweep.c: `tenon sweep FILE.ini`: starts the runs, waits for them, and prints their table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenon/folders.h"
#include "tools/cli/clock.h"
#include "tools/launch/launch.h"
#include "tools/sweep/sweep.h"

/* ---- signals ---- */

static volatile sig_atomic_t sweep_asked; /* the number of the signal that asks for the end; 0: none */

static void sweep_on_signal(int number) {
  sweep_asked = number;
  signal(number, SIG_DFL); /* a second one ends this process at once, and with it the runs */
}

static void sweep_on_child(int number) { (void)number; }

static void sweep_set_handler(int number, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = number == SIGCHLD ? SA_NOCLDSTOP : 0;
  sigaction(number, &action, NULL);
}

/* A signal that is ignored, as under nohup, stays ignored. */
static void sweep_catch_signals(sweep *s) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  struct sigaction now;
  sigemptyset(&s->signals);
  sigaddset(&s->signals, SIGCHLD);
  sweep_set_handler(SIGCHLD, sweep_on_child);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN) continue;
    sigaddset(&s->signals, numbers[i]);
    sweep_set_handler(numbers[i], sweep_on_signal);
  }
}

/* ---- the page ---- */

enum { PAGE_BETWEEN_S = 10, PAGE_SHARE = 20 };

/* Table and page while the sweep goes on: writing takes at most a twentieth of the time. */
static void sweep_write_page(sweep *s, bool last) {
  double now = cli_clock_s(), waited = now - s->page_s;
  if (!last && (waited < PAGE_BETWEEN_S || waited < (PAGE_SHARE - 1) * s->page_took_s)) return;
  if (tn_write_sweep(s->context, s->folder) != TN_OK)
    fprintf(stderr, "tenon: warning: the table of the sweep is not written: %s\n", tn_error_text(s->context));
  s->page_s = cli_clock_s();
  s->page_took_s = s->page_s - now;
}

/* ---- the processes ---- */

static void sweep_stop_all(sweep *s) {
  s->stopped = true;
  for (int i = 0; i < s->n; i++)
    if (s->runs[i].pid > 0) kill(s->runs[i].pid, SIGTERM);
}

/* Returns when a process has ended, or a signal has come. */
static void sweep_wait(sweep *s) {
  sigset_t before;
  int status;
  sigprocmask(SIG_BLOCK, &s->signals, &before);
  pid_t pid = waitpid(-1, &status, WNOHANG);
  if (pid == 0 && (sweep_asked == 0 || s->stopped)) sigsuspend(&before);
  sigprocmask(SIG_SETMASK, &before, NULL);
  for (int i = 0; pid > 0 && i < s->n; i++)
    if (s->runs[i].pid == pid) sweep_take_end(s, &s->runs[i], status);
}

static int sweep_fill(sweep *s) {
  while (!s->stopped && s->running < s->jobs) {
    sweep_run *run = sweep_next(s);
    if (run == NULL) return CLI_OK;
    int code = sweep_start(s, run);
    if (code != CLI_OK) return code;
  }
  return CLI_OK;
}

static int sweep_run_all(sweep *s) {
  int code = sweep_fill(s);
  while (s->running > 0) {
    int before = s->ended;
    sweep_wait(s);
    if ((sweep_asked != 0 || code != CLI_OK) && !s->stopped) sweep_stop_all(s);
    if (s->ended > before && !s->stopped) sweep_write_page(s, false);
    if (code == CLI_OK) code = sweep_fill(s);
  }
  return code;
}

/* ---- before and after ---- */

/* Values that no run could use are told before any run begins. */
static int sweep_check_runs(sweep *s) {
  for (int i = 0; i < s->n; i++) {
    const sweep_run *run = &s->runs[i];
    cli_args args = *s->args;
    tn_run *opened = NULL;
    memcpy(args.set, s->common, sizeof s->common);
    args.n_set = s->n_common;
    for (size_t k = 0; k < json_array_size(run->set) && args.n_set < CLI_MAX_LIST; k++)
      args.set[args.n_set++] = json_string_value(json_array_get(run->set, k));
    args.resume = NULL;
    int code = cli_open_run(s->context, &args, &opened);
    tn_run_close(opened);
    if (code != CLI_OK) return code;
  }
  return CLI_OK;
}

/* Divides the texts of --set into those of all runs, and those with several values. */
static int sweep_divide_set(sweep *s) {
  const cli_args *a = s->args;
  for (int i = 0; i < a->n_set; i++)
    if (sweep_is_list(a->set[i]))
      s->swept[s->n_swept++] = a->set[i];
    else
      s->common[s->n_common++] = a->set[i];
  ssize_t n = readlink("/proc/self/exe", s->program, sizeof s->program - 1);
  if (n > 0) return CLI_OK;
  return cli_refuse(a, CLI_UNAVAILABLE, "the path of this program is not known: %s", strerror(errno));
}

/* The exit code is that of a failure where every run has failed. */
static int sweep_finish(sweep *s, int code) {
  char *text = NULL;
  sweep_write_page(s, true);
  tn_status status = tn_list_sweep(s->context, s->folder, &text);
  if (status != TN_OK) return cli_fail(s->args, s->context, status);
  json_t *result = cli_load_plain(text);
  if (s->args->json) printf("%s\n", text);
  if (!s->args->json) sweep_print(result);
  if (!s->args->json) printf("\nsweep      %s, %s/report.html\n", s->folder, s->folder);
  json_decref(result);
  tn_string_free(s->context, text);
  if (code != CLI_OK) return code;
  if (s->stopped) {
    fprintf(stderr, "tenon: stopped; go on with --resume %s\n", s->folder);
    return CLI_STOPPED;
  }
  if (s->failed > 0)
    fprintf(stderr, "tenon: warning: %d of %d runs failed; --resume %s tries them again\n", s->failed, s->n,
            s->folder);
  return s->failed > 0 && s->failed == s->ended ? s->code : CLI_OK;
}

static int sweep_begin(sweep *s, tn_run **run) {
  cli_args args = *s->args;
  char *text = NULL;
  memcpy(args.set, s->common, sizeof s->common);
  args.n_set = s->n_common;
  int code = cli_open_run(s->context, &args, run);
  if (code != CLI_OK) return code;
  const tn_sweep_options options = {sizeof options, s->swept, s->n_swept};
  tn_status status = tn_run_begin_sweep(*run, &options, &text);
  if (status != TN_OK) return cli_fail(s->args, *run, status);
  s->begun = json_loads(text, 0, NULL);
  tn_string_free(*run, text);
  return s->begun != NULL ? sweep_read(s) : cli_refuse(s->args, CLI_UNAVAILABLE, "no memory for the sweep");
}

static int sweep_command_run(tn_context *context, const cli_args *args) {
  sweep s = {.context = context, .args = args};
  tn_run *run = NULL;
  int code = sweep_divide_set(&s);
  if (code == CLI_OK) code = sweep_begin(&s, &run);
  if (code == CLI_OK) code = sweep_check_runs(&s);
  if (code == CLI_OK) code = sweep_read_earlier(&s);
  if (code == CLI_OK) {
    if (!args->quiet) fprintf(stderr, "tenon: %d runs in %s, %d at a time\n", s.n, s.folder, s.jobs);
    sweep_catch_signals(&s);
    code = sweep_finish(&s, sweep_run_all(&s));
  }
  tn_run_close(run);
  json_decref(s.begun);
  free(s.runs);
  return code;
}

const cli_command command_sweep = {
    .name = "sweep",
    .words = "FILE.ini",
    .doc = "train many runs of a configuration and compare them: --set KEY=A,B or KEY=LOW..HIGH, or [sweep]",
    .min_words = 1,
    .max_words = 1,
    .options = CLI_SET | CLI_JSON | CLI_RESUME | CLI_OUTPUT | CLI_WEIGHTS,
    .run = sweep_command_run};
