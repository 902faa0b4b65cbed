/* tools/launch/connect.c: the launcher's end of the connection to another host: one ssh that runs
 * `tenon launch-remote` there.
 *
 * OpenSSH's client passes no signal on, and its server ends no command when a connection ends, so signals
 * travel as frames, and the remote part ends the processes at the end of its stdin. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch/launch.h"
#include "tools/cli/clock.h"

enum { CLOSE_S = 5, CLOSE_MS = 20, PARTS = 16, SSH_FAILED = 255, REMOTE_COMMAND = 4 * 4096 + 64 };

/* ---- starting ssh ---- */

/* exec 'PROGRAM' launch-remote: any login shell reads it that way. */
static void connect_command(const launch *l, char command[REMOTE_COMMAND]) {
  int n = sprintf(command, "exec '");
  for (const char *p = l->program; *p != '\0' && n < REMOTE_COMMAND - 32; p++)
    n += *p == '\'' ? sprintf(command + n, "'\\''") : sprintf(command + n, "%c", *p);
  sprintf(command + n, "' launch-remote");
}

static pid_t connect_start_ssh(const launch *l, const launch_host *host, int in, int out, int err) {
  char command[REMOTE_COMMAND];
  const char *ssh = getenv("TENON_SSH");
  connect_command(l, command);
  const char *argv[] = {ssh != NULL ? ssh : "ssh",
                        "-T",
                        "-o",
                        "BatchMode=yes",
                        "-o",
                        "ConnectTimeout=15",
                        "-o",
                        "ServerAliveInterval=10",
                        "-o",
                        "ServerAliveCountMax=3",
                        "--",
                        host->name,
                        command,
                        NULL};
  launch_start start = {.argv = argv, .number = -1, .in = in, .out = out, .err = err, .signals = &l->signals};
  return launch_fork(&start);
}

static void connect_close(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* in, out, err: two ends each. */
static int connect_open(launch *l, launch_host *host, int ends[6]) {
  bool opened = launch_pipe(ends, 1) && launch_pipe(ends + 2, 0) && launch_pipe(ends + 4, 0);
  if (opened) host->frames = calloc(1, sizeof *host->frames);
  if (host->frames != NULL) host->ssh = connect_start_ssh(l, host, ends[0], ends[3], ends[5]);
  if (host->frames != NULL && host->ssh > 0) return CLI_OK;
  int error = errno;
  free(host->frames);
  host->frames = NULL;
  host->ssh = 0;
  return cli_refuse(l->args, CLI_UNAVAILABLE, "host %s: %s%s", host->name, strerror(error),
                    launch_remedy(error));
}

int launch_connect(launch *l, launch_host *host) {
  int ends[6] = {-1, -1, -1, -1, -1, -1};
  host->said.pending = 0;
  host->greeted = host->unreached = host->lost = false;
  host->dismissed = 0;
  int code = connect_open(l, host, ends);
  for (int i = 0; i < host->processes; i++) l->processes[host->first + i].ended = code != CLI_OK;
  for (int i = 0; i < 6; i++)
    if (code != CLI_OK || i == 0 || i == 3 || i == 5) connect_close(&ends[i]);
  host->to = ends[1];
  host->from = ends[2];
  host->said.fd = ends[4];
  return code;
}

/* ---- the job ---- */

static bool connect_send_job(const launch *l, const launch_host *host) {
  enum { ORPHANS_S = 60 };
  const char *argv[LAUNCH_WORDS];
  char folder[4096] = "", numbers[64];
  launch_variables v;
  launch_arguments(l, argv);
  launch_set_variables(l, host, &v);
  bool sent =
      getcwd(folder, sizeof folder) != NULL && frame_write_text(host->to, FRAME_FOLDER, FRAME_ALL, folder);
  for (int i = 0; sent && v.list[i] != NULL; i++)
    sent = frame_write_text(host->to, FRAME_VARIABLE, FRAME_ALL, v.list[i]);
  for (int i = 0; sent && argv[i] != NULL; i++)
    sent = frame_write_text(host->to, FRAME_ARGUMENT, FRAME_ALL, argv[i]);
  snprintf(numbers, sizeof numbers, "%d %d %d", host->first, host->processes, ORPHANS_S);
  return sent && frame_write_text(host->to, FRAME_START, FRAME_ALL, numbers);
}

/* Words of login scripts may stand in front of the greeting. */
static void connect_await_greeting(launch *l, launch_host *host) {
  frame_reader *r = host->frames;
  char expected[128];
  size_t n = (size_t)snprintf(expected, sizeof expected, FRAME_GREETING "%s\n", tn_version());
  char *found = memmem(r->bytes, r->n, FRAME_GREETING, strlen(FRAME_GREETING)),
       *end = found != NULL ? memchr(found, '\n', r->n - (size_t)(found - r->bytes)) : NULL;
  if (found == NULL && r->n > sizeof r->bytes / 2) r->used = r->n - strlen(FRAME_GREETING);
  if (end == NULL) return;
  r->used = (size_t)(end + 1 - r->bytes);
  host->greeted = (size_t)(end + 1 - found) == n && memcmp(found, expected, n) == 0;
  if (!host->greeted)
    fprintf(stderr, "tenon: host %s has another version of tenon than %s at %s\n", host->name, tn_version(),
            l->program);
  if (!host->greeted)
    launch_dismiss(host, SIGTERM, CLI_UNAVAILABLE);
  else if (!connect_send_job(l, host))
    launch_dismiss(host, SIGTERM, CLI_COMM);
}

/* ---- reports ---- */

static void connect_end(launch_process *p, int status) {
  p->remote_ended = true;
  p->remote_status = status;
}

/* As of a local process 0, whose stdout and stderr are the launcher's. */
static void connect_pass_output(launch *l, int i, const frame *f) {
  char label[16];
  snprintf(label, sizeof label, "%d", i);
  if (i > 0)
    launch_pass_bytes(&l->processes[i].output, label, f->bytes, f->n);
  else
    fwrite(f->bytes, 1, f->n, f->kind == FRAME_STDOUT ? stdout : stderr);
  if (i == 0) fflush(stdout);
}

static void connect_take_report(launch *l, const launch_host *host, const frame *f) {
  int i = host->first + f->process, number = atoi(frame_text(f));
  if (f->process >= host->processes || l->processes[i].remote_ended) return;
  launch_process *p = &l->processes[i];
  switch (f->kind) {
  case FRAME_PID: p->pid = number; break;
  case FRAME_STOPPED: p->remote_stopped = true; break;
  case FRAME_CONTINUED: p->remote_stopped = false; break;
  case FRAME_EXITED: connect_end(p, (number & 0xff) << 8); break;
  case FRAME_KILLED: connect_end(p, number & 0x7f); break;
  case FRAME_STDOUT:
  case FRAME_STDERR: connect_pass_output(l, i, f); break;
  default: break;
  }
}

static void connect_take_reports(launch *l, launch_host *host) {
  frame f;
  int found = 0;
  if (!host->greeted && host->dismissed == 0) connect_await_greeting(l, host);
  while (host->greeted && (found = frame_next(host->frames, &f)) == 1) connect_take_report(l, host, &f);
  if (found >= 0 || host->dismissed != 0) return;
  fprintf(stderr, "tenon: host %s: its reports cannot be read\n", host->name);
  launch_dismiss(host, SIGTERM, CLI_COMM);
}

/* ---- the end of ssh ---- */

static void connect_tell_end(const launch *l, const launch_host *host, int code) {
  if (host->greeted)
    fprintf(stderr, "tenon: the connection to host %s has ended, before its processes had\n", host->name);
  else
    fprintf(
        stderr,
        "tenon: nothing was started on host %s (exit code %d of ssh); %s has to be there, as it is here\n",
        host->name, code, l->program);
}

/* ssh ends with 255 where it does not reach a host, else with the code of the command; the remote part has
 * told itself why it starts nothing. Where the launcher has ended ssh, the code says nothing of the host. */
static int connect_end_code(const launch *l, launch_host *host, int code) {
  if (host->dismissed != 0) return host->dismissed;
  host->unreached = !host->greeted && code == SSH_FAILED;
  if (host->unreached) return CLI_COMM;
  if (host->greeted && code == CLI_UNAVAILABLE) return code;
  connect_tell_end(l, host, code);
  host->lost = host->greeted;
  return host->greeted ? CLI_COMM : CLI_UNAVAILABLE;
}

static void connect_take_end(launch *l, launch_host *host, int status) {
  int left = 0;
  for (int i = host->first; i < host->first + host->processes; i++) left += !l->processes[i].remote_ended;
  if (left == 0) return;
  int code = connect_end_code(l, host, WIFEXITED(status) ? WEXITSTATUS(status) : SSH_FAILED);
  for (int i = host->first; i < host->first + host->processes; i++)
    if (!l->processes[i].remote_ended) connect_end(&l->processes[i], code << 8);
}

/* A host that prints much does not keep the launcher from the others: it reads a part, and all at the end of
 * ssh. */
static void connect_read(launch *l, launch_host *host, bool all) {
  ssize_t n = 1;
  for (int part = 0; host->from >= 0 && n > 0 && (all || part < PARTS); part++) {
    n = frame_fill(host->frames, host->from);
    if (n > 0) connect_take_reports(l, host);
  }
  if (n == 0 || all) connect_close(&host->from);
}

void launch_hear(launch *l, launch_host *host) {
  int status = 0;
  if (host->ssh == 0) return;
  pid_t ended = waitpid(host->ssh, &status, WNOHANG);
  bool over = ended == host->ssh || (ended < 0 && errno == ECHILD);
  connect_read(l, host, over);
  launch_pass_lines(&host->said, host->name, over);
  if (!over) return;
  host->ssh = 0;
  connect_close(&host->to);
  connect_take_end(l, host, status);
  free(host->frames);
  host->frames = NULL;
}

/* ---- signals, and the end ---- */

void launch_signal_remote(launch *l, int i, int number) {
  const launch_process *p = &l->processes[i];
  const char *name = frame_signal_name(number);
  if (p->remote_ended || name == NULL) return;
  if (p->host->greeted)
    frame_write_text(p->host->to, FRAME_SIGNAL, p->local, name);
  else
    launch_dismiss(p->host, SIGTERM, CLI_STOPPED);
}

void launch_dismiss(launch_host *host, int number, int code) {
  if (host->ssh <= 0) return;
  if (host->dismissed == 0) host->dismissed = code;
  kill(host->ssh, number);
}

void launch_close(launch *l, launch_host *host) {
  double from_s = cli_clock_s();
  connect_close(&host->to);
  while (host->ssh > 0 && cli_clock_s() - from_s < CLOSE_S) {
    poll(NULL, 0, CLOSE_MS);
    launch_hear(l, host);
  }
  launch_dismiss(host, SIGKILL, CLI_COMM);
  while (host->ssh > 0) {
    poll(NULL, 0, CLOSE_MS);
    launch_hear(l, host);
  }
}
