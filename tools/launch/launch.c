/* tools/launch/launch.c: `tenon launch -n N FILE.ini`: starts the processes of a training, passes on what
 * they print and what they are sent, and ends all when one has failed. docs/guide/many.md. */
#include "tools/launch/launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* After one process has failed, the others have so long to notice and to end; then they are asked to, and
 * last killed. */
enum { NOTICE_S = 35, ASK_S = 10, LOOK_MS = 100 };

/* ---- signals ---- */

static volatile sig_atomic_t launch_signal; /* the last that came, and was not passed on; 0: none */

static void launch_on_signal(int number) { launch_signal = number; }

static void launch_catch_signals(void) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  struct sigaction action = {.sa_handler = launch_on_signal};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
  signal(SIGPIPE, SIG_IGN);
}

static void launch_send(const launch *l, int number) {
  for (int i = 0; i < l->n; i++)
    if (!l->processes[i].ended) kill(l->processes[i].pid, number);
}

static double launch_clock_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- outcomes ---- */

static bool launch_has_failed(const launch_process *p) {
  return p->ended && !(WIFEXITED(p->status) &&
                       (WEXITSTATUS(p->status) == CLI_OK || WEXITSTATUS(p->status) == CLI_STOPPED));
}

static int launch_exit_code(const launch_process *p) {
  return WIFEXITED(p->status) ? WEXITSTATUS(p->status) : CLI_COMM;
}

static void launch_tell_signal(const launch *l, int i) {
  const launch_process *p = &l->processes[i];
  if (!WIFSIGNALED(p->status)) return;
  fprintf(stderr, "tenon: process %d (id %lld%s%s) was ended by signal %d (%s)\n", i, (long long)p->pid,
          p->host->name[0] ? " on host " : "", p->host->name, WTERMSIG(p->status),
          strsignal(WTERMSIG(p->status)));
}

/* The code of process 0, unless it only reports that another one has failed. */
static int launch_outcome(const launch *l) {
  int code = launch_exit_code(&l->processes[0]);
  for (int i = 1; i < l->n; i++) {
    int other = launch_exit_code(&l->processes[i]);
    if (other != CLI_OK && (code == CLI_OK || code == CLI_COMM)) code = other;
  }
  return code;
}

/* ---- waiting ---- */

static void launch_reap(launch *l) {
  for (int i = 0; i < l->n; i++) {
    launch_process *p = &l->processes[i];
    if (p->ended || waitpid(p->pid, &p->status, WNOHANG) != p->pid) continue;
    p->ended = true;
    launch_pass_output(l, i, true);
    launch_tell_signal(l, i);
  }
}

static void launch_look(launch *l, struct pollfd *polls) {
  nfds_t n = 0;
  for (int i = 0; i < l->n; i++)
    if (l->processes[i].output >= 0)
      polls[n++] = (struct pollfd){.fd = l->processes[i].output, .events = POLLIN};
  poll(polls, n, LOOK_MS);
  for (int i = 0; i < l->n; i++) launch_pass_output(l, i, false);
  launch_reap(l);
}

static int launch_count(const launch *l, bool (*is)(const launch_process *p)) {
  int n = 0;
  for (int i = 0; i < l->n; i++) n += is(&l->processes[i]);
  return n;
}

static bool launch_runs(const launch_process *p) { return !p->ended; }

/* Asks, and later kills, the processes that do not end after a failure. */
static void launch_urge(const launch *l, double failed_s, int *urged) {
  double seconds = launch_clock_s() - failed_s;
  if (*urged == 0 && seconds > NOTICE_S) launch_send(l, SIGTERM);
  if (*urged == 1 && seconds > NOTICE_S + ASK_S) launch_send(l, SIGKILL);
  if (seconds > NOTICE_S + *urged * ASK_S) ++*urged;
}

static void launch_follow(launch *l, struct pollfd *polls, bool *stopped) {
  double failed_s = 0;
  int urged = 0;
  while (launch_count(l, launch_runs) > 0) {
    launch_look(l, polls);
    if (launch_signal != 0) {
      launch_send(l, launch_signal);
      launch_signal = 0;
      *stopped = true;
    }
    if (failed_s == 0 && launch_count(l, launch_has_failed) > 0) failed_s = launch_clock_s();
    if (failed_s > 0) launch_urge(l, failed_s, &urged);
  }
}

/* ---- one attempt ---- */

/* A port that is free now, from the range of outgoing connections; process 0 tries those behind it as well.
 */
static int launch_find_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t bytes = sizeof address;
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 29400;
  bool found = s >= 0 && bind(s, (struct sockaddr *)&address, sizeof address) == 0 &&
               getsockname(s, (struct sockaddr *)&address, &bytes) == 0;
  if (found) port = ntohs(address.sin_port);
  if (s >= 0) close(s);
  return port < 65500 ? port : port - 64;
}

static int launch_prepare(launch *l) {
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random)
    return cli_refuse(l->args, CLI_UNAVAILABLE, "no random numbers: %s", strerror(errno));
  for (int i = 0; i < 16; i++) sprintf(l->token + 2 * i, "%02x", random[i]);
  l->port = launch_find_port();
  snprintf(l->master, sizeof l->master, "127.0.0.1");
  if (l->n_hosts == 1 && l->hosts[0].name[0] == '\0') return CLI_OK;
  snprintf(l->master, sizeof l->master, "%s", l->hosts[0].name);
  if (l->master[0] == '\0') gethostname(l->master, sizeof l->master - 1);
  return CLI_OK;
}

static int launch_start(launch *l) {
  int i = 0, code = CLI_OK;
  for (int h = 0; h < l->n_hosts; h++)
    for (int local = 0; local < l->hosts[h].processes; local++, i++) {
      l->processes[i].host = &l->hosts[h];
      l->processes[i].local = local;
      l->processes[i].ended = true;
      l->processes[i].output = -1;
      if (code == CLI_OK) code = launch_spawn(l, i);
    }
  return code;
}

static int launch_run_once(launch *l, struct pollfd *polls, bool *stopped) {
  int code = launch_prepare(l);
  if (code == CLI_OK) code = launch_start(l);
  if (code != CLI_OK) launch_send(l, SIGTERM);
  launch_follow(l, polls, stopped);
  return code != CLI_OK ? code : launch_outcome(l);
}

/* ---- attempts ---- */

/* A host that ssh does not reach ends with 255; the next attempt goes without it. */
static void launch_drop_hosts(launch *l) {
  int n = 0, processes = 0;
  for (int h = 0; h < l->n_hosts; h++) {
    bool reached = true;
    for (int i = 0; i < l->n; i++)
      if (l->processes[i].host == &l->hosts[h] && l->hosts[h].name[0] &&
          launch_exit_code(&l->processes[i]) == 255)
        reached = false;
    if (!reached) fprintf(stderr, "tenon: host %s is not reached by ssh, and left out\n", l->hosts[h].name);
    if (reached) processes += l->hosts[h].processes;
    if (reached) l->hosts[n++] = l->hosts[h];
  }
  if (n == 0) return; /* all: the next attempt says it again */
  l->n_hosts = n;
  l->n = processes;
}

static bool launch_may_restart(const launch *l, int code, bool stopped) {
  return !stopped && (code == CLI_COMM || code == 255) && l->attempt < l->args->restarts;
}

static int launch_run(launch *l) {
  struct pollfd *polls = calloc((size_t)l->n, sizeof *polls);
  l->processes = calloc((size_t)l->n, sizeof *l->processes);
  bool stopped = false;
  int code =
      polls != NULL && l->processes != NULL ? CLI_OK : cli_refuse(l->args, CLI_UNAVAILABLE, "out of memory");
  while (code == CLI_OK) {
    code = launch_run_once(l, polls, &stopped);
    if (!launch_may_restart(l, code, stopped)) break;
    launch_drop_hosts(l);
    l->attempt++;
    fprintf(stderr, "tenon: restart %d of %lld, from the last checkpoint\n", l->attempt, l->args->restarts);
    code = CLI_OK;
  }
  free(l->processes);
  free(polls);
  return code;
}

static int launch_command_run(tn_context *context, const cli_args *args) {
  static launch l;
  (void)context;
  l = (launch){.args = args};
  int code = launch_read_hosts(&l, args->hosts, (int)args->steps);
  if (code == CLI_OK && l.n > LAUNCH_MOST)
    code = cli_refuse(args, CLI_USAGE, "%d processes, expected at most %d", l.n, LAUNCH_MOST);
  if (code != CLI_OK) return code;
  launch_catch_signals();
  return launch_run(&l);
}

const cli_command command_launch = {.name = "launch",
                                    .words = "FILE.ini",
                                    .doc = "train by several processes, on this host or several",
                                    .min_words = 1,
                                    .max_words = 1,
                                    .options = CLI_LAUNCH | CLI_SET | CLI_JSON | CLI_RESUME | CLI_OUTPUT |
                                               CLI_WEIGHTS | CLI_TRACE,
                                    .run = launch_command_run,
                                    .alone = true};
