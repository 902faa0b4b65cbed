/* tools/launch/launch.c: `tenon launch -n N FILE.ini`: starts the processes of a training, passes on what
 * they print and what they are sent, and ends all when one has failed. docs/guide/many.md. */
#include "tools/launch/launch.h"

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

static void launch_catch_signals(launch *l) {
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
  struct sigaction action = {.sa_handler = launch_on_signal};
  sigemptyset(&l->signals);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    sigaction(signals[i], &action, NULL);
    sigaddset(&l->signals, signals[i]);
  }
  signal(SIGPIPE, SIG_IGN);
}

/* ---- outcomes ---- */

/* The code of process 0, unless it only reports that another one has failed. */
static int launch_outcome(const launch *l) {
  int code = l->processes[0].code;
  for (int i = 1; i < l->n; i++) {
    int other = l->processes[i].code;
    if (other != CLI_OK && (code == CLI_OK || code == CLI_COMM)) code = other;
  }
  return code;
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

static int launch_run_once(launch *l) {
  int code = launch_prepare(l);
  if (code == CLI_OK) code = launch_start(l);
  if (code != CLI_OK) launch_send(l, SIGTERM);
  launch_follow(l, &launch_signal);
  return code != CLI_OK ? code : launch_outcome(l);
}

/* ---- attempts ---- */

/* A host that ssh does not reach ends with 255; the next attempt goes without it. */
static void launch_drop_hosts(launch *l) {
  int n = 0, processes = 0;
  for (int h = 0; h < l->n_hosts; h++) {
    bool reached = true;
    for (int i = 0; i < l->n; i++)
      if (l->processes[i].host == &l->hosts[h] && l->hosts[h].name[0] && l->processes[i].code == 255)
        reached = false;
    if (!reached) fprintf(stderr, "tenon: host %s is not reached by ssh, and left out\n", l->hosts[h].name);
    if (reached) processes += l->hosts[h].processes;
    if (reached) l->hosts[n++] = l->hosts[h];
  }
  if (n == 0) return; /* all: the next attempt says it again */
  l->n_hosts = n;
  l->n = processes;
}

static bool launch_may_restart(const launch *l, int code) {
  return !l->stopped && launch_signal == 0 && (code == CLI_COMM || code == 255) &&
         l->attempt < l->args->restarts;
}

static int launch_run(launch *l) {
  l->polls = calloc((size_t)l->n, sizeof *l->polls);
  l->processes = calloc((size_t)l->n, sizeof *l->processes);
  int code = l->polls != NULL && l->processes != NULL ? CLI_OK
                                                      : cli_refuse(l->args, CLI_UNAVAILABLE, "out of memory");
  while (code == CLI_OK) {
    code = launch_run_once(l);
    if (!launch_may_restart(l, code)) break;
    launch_drop_hosts(l);
    l->attempt++;
    fprintf(stderr, "tenon: restart %d of %lld, from the last checkpoint\n", l->attempt, l->args->restarts);
    code = CLI_OK;
  }
  free(l->processes);
  free(l->polls);
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
