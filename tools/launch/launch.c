/* tools/launch/launch.c: `tenon launch -n N FILE.ini`: starts the processes of a training, passes on what
 * they print and what they are sent, and ends all when one has failed. docs/guide/many.md. */
#include "tools/launch/launch.h"
#include "tools/cli/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- signals ---- */

static volatile sig_atomic_t launch_signal; /* the last that came, and was not passed on; 0: none */

static void launch_on_signal(int number) { launch_signal = number; }

/* A signal that the parent ignores, as under nohup, stays ignored. waitpid needs SIGCHLD not to be ignored.
 */
static void launch_catch_signals(launch *l) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  struct sigaction action = {.sa_handler = launch_on_signal, .sa_flags = SA_RESTART}, before;
  sigemptyset(&action.sa_mask);
  sigemptyset(&l->signals);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(signals[i], &action, NULL);
    sigaddset(&l->signals, signals[i]);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
}

/* ---- outcomes ---- */

static bool launch_has_lost_host(const launch *l) {
  bool lost = false;
  for (int h = 0; h < l->n_hosts; h++) lost = lost || l->hosts[h].lost;
  return lost;
}

/* The code of process 0, unless it only reports that another one has failed. The remote part of a host whose
 * connection has ended stops the training, which is no stop that was asked for. */
static int launch_outcome(const launch *l) {
  int code = l->processes[0].code;
  for (int i = 1; i < l->n; i++) {
    int other = l->processes[i].code;
    if (other != CLI_OK && (code == CLI_OK || code == CLI_COMM)) code = other;
  }
  return code == CLI_STOPPED && !l->stopped && launch_has_lost_host(l) ? CLI_COMM : code;
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
  return launch_find_master(l);
}

static int launch_spawn(launch *l, int i) {
  launch_process *p = &l->processes[i];
  const char *argv[LAUNCH_WORDS];
  launch_variables v;
  int ends[2] = {-1, -1};
  launch_arguments(l, argv);
  launch_set_variables(l, p->host, &v);
  bool started = i == 0 || launch_pipe(ends, 0);
  launch_start start = {argv, v.list, i, p->local, -1, ends[1], ends[1], &l->signals};
  if (started) p->pid = launch_fork(&start);
  started = started && p->pid > 0;
  int code = started ? CLI_OK
                     : cli_refuse(l->args, CLI_UNAVAILABLE, "process %d: %s%s", i, strerror(errno),
                                  launch_remedy(errno));
  if (ends[1] >= 0) close(ends[1]);
  if (!started && ends[0] >= 0) close(ends[0]);
  if (started) p->output.fd = ends[0];
  p->ended = !started;
  return code;
}

static int launch_start_host(launch *l, launch_host *host) {
  int code = CLI_OK;
  if (host->name[0] != '\0') return launch_connect(l, host);
  for (int local = 0; code == CLI_OK && local < host->processes; local++)
    code = launch_spawn(l, host->first + local);
  return code;
}

static int launch_start_all(launch *l) {
  int code = CLI_OK;
  for (int h = 0; h < l->n_hosts; h++)
    for (int local = 0; local < l->hosts[h].processes; local++) {
      launch_process *p = &l->processes[l->hosts[h].first + local];
      memset(p, 0, sizeof *p);
      p->host = &l->hosts[h];
      p->local = local;
      p->output.fd = -1;
      p->ended = true;
    }
  for (int h = 0; code == CLI_OK && h < l->n_hosts; h++) code = launch_start_host(l, &l->hosts[h]);
  return code;
}

static int launch_run_once(launch *l) {
  int code = launch_prepare(l);
  if (code == CLI_OK) code = launch_start_all(l);
  if (code != CLI_OK) launch_send(l, SIGTERM);
  launch_follow(l, &launch_signal);
  return code != CLI_OK ? code : launch_outcome(l);
}

/* ---- attempts ---- */

/* Attempts begin so far apart at least, so that a host that starts again is not missed by all. */
enum { PAUSE_S = 5, PAUSE_MS = 50 };

static void launch_pause(double began_s) {
  while (launch_signal == 0 && cli_clock_s() - began_s < PAUSE_S) poll(NULL, 0, PAUSE_MS);
}

static bool launch_may_restart(const launch *l, int code) {
  return code == CLI_COMM && l->attempt < l->args->restarts;
}

static int launch_attempts(launch *l) {
  char crashed[sizeof l->crashed] = "";
  for (;;) {
    double began_s = cli_clock_s();
    int code = launch_run_once(l);
    if (!launch_may_restart(l, code)) return code;
    if (l->stopped || launch_signal != 0) return CLI_STOPPED; /* the stop alone keeps it from a restart */
    launch_drop_hosts(l, crashed);
    memcpy(crashed, l->crashed, sizeof crashed);
    launch_pause(began_s);
    if (launch_signal != 0) return CLI_STOPPED;
    l->attempt++;
    fprintf(stderr, "tenon: restart %d of %lld, from the last checkpoint\n", l->attempt, l->args->restarts);
  }
}

static int launch_run(launch *l) {
  l->polls = calloc((size_t)l->n + 2 * LAUNCH_HOSTS, sizeof *l->polls);
  l->processes = calloc((size_t)l->n, sizeof *l->processes);
  int code = l->polls != NULL && l->processes != NULL ? launch_attempts(l)
                                                      : cli_refuse(l->args, CLI_UNAVAILABLE, "out of memory");
  free(l->processes);
  free(l->polls);
  return code;
}

/* The path of this program, also where the file is replaced later; "tenon" where the system does not tell. */
static const char *launch_program(void) {
  static char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? path : "tenon";
}

static int launch_command_run(tn_context *context, const cli_args *args) {
  static launch l;
  (void)context;
  l = (launch){.args = args, .program = launch_program()};
  int code = launch_read_hosts(&l, args->hosts, args->steps);
  if (code == CLI_OK) code = launch_find_master(&l);
  if (code != CLI_OK) return code;
  launch_allow_files();
  launch_catch_signals(&l);
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
