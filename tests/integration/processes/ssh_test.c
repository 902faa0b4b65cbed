/* Trainings on several hosts that ssh reaches: signals, lost connections, killed processes, restarts. A
 * stand-in for ssh behaves as OpenSSH does; the last test uses OpenSSH itself, where it is installed. */
#include "tests/integration/cli/configs.h"
#include "launched.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stand_in.h"
#include "backends/shared/clock.h"

/* Addresses of the loopback device, so that processes of "other hosts" connect to each other. */
#define FAR   "127.0.0.2"
#define FAR_2 "127.0.0.3"

static char self[4096]; /* this program, which stands in for ssh */

static int set_up(void **state) {
  int failed = launched_open(state);
  char folder[4096], log[4200];
  snprintf(log, sizeof log, "%s/hosts", getcwd(folder, sizeof folder));
  setenv("STAND_IN_LOG", log, 1);
  setenv("TENON_SSH", self, 1);
  return failed;
}

/* A training of which 25 steps are done, and which does not end by itself. */
static void start_long(const char *hosts, const char *more) {
  program_start("launch --hosts %s model.ini --output o --set run.save_every=50 --set "
                "run.max_steps=100000000000 " ENDLESS " %s",
                hosts, more);
  program_await_lines("o/model/metrics.jsonl", 26);
}

static void no_process_is_left(int processes) {
  for (int i = 0; i < processes; i++) launched_await_end(i);
}

static void kill_process(int number, int signal_number) {
  pid_t pid = launched_await(number);
  assert_int_equal(kill(pid, signal_number), 0);
}

/* Waits until the launcher has printed it. */
static void await_words(const char *words) {
  program_await(file_exists(".stderr") && strstr(file_read(".stderr", NULL), words) != NULL);
}

/* Waits until the training has gone on for 50 steps. */
static void await_steps(void) {
  program_await_lines("o/model/metrics.jsonl", file_lines("o/model/metrics.jsonl") + 50);
}

/* ---- trainings ---- */

/* One ssh for each host; a host that is named twice is one. The processes of a host are numbered in a row. */
static void hosts_are_reached_by_ssh(void **state) {
  (void)state;
  const json_t *r = program_json(0, "launch --hosts " FAR ",localhost," FAR " model.ini --output p3");
  assert_int_equal(program_number(r, "devices"), 3);
  assert_string_equal(file_read("hosts", NULL), FAR "\n");
  program_json(0, "train model.ini --output p1");
  launched_compare("p1/model/metrics.jsonl", "p3/model/metrics.jsonl", 60);
}

/* "user@" is for ssh alone. */
static void the_user_of_ssh_is_no_part_of_the_address(void **state) {
  (void)state;
  const json_t *r = program_json(0, "launch --hosts me@" FAR ",me@" FAR_2 " model.ini --output o");
  assert_int_equal(program_number(r, "devices"), 2);
  assert_non_null(strstr(file_read("hosts", NULL), "me@" FAR "\n"));
}

static void the_environment_names_the_host_of_process_0(void **state) {
  (void)state;
  setenv("MASTER_ADDR", "127.0.0.4", 1);
  char port[16];
  snprintf(port, sizeof port, "%d", program_ports());
  setenv("MASTER_PORT", port, 1);
  start_long("not.a.host," FAR, "");
  char command[256];
  snprintf(command, sizeof command, "grep -qzx MASTER_PORT=%s /proc/%d/environ", port,
           (int)launched_await(1));
  assert_int_equal(system(command), 0);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  setenv("MASTER_PORT", "x", 1);
  assert_int_equal(program_run("launch --hosts not.a.host," FAR " model.ini"), 2);
  launched_says("MASTER_PORT=x, expected a number from 1");
}

/* ---- signals ---- */

static void a_signal_reaches_the_processes_of_other_hosts(void **state) {
  (void)state;
  static const int signals[] = {SIGTERM, SIGUSR1, SIGINT};
  for (int i = 0; i < 3; i++) {
    start_long(i == 0 ? FAR ":2" : "localhost," FAR, "");
    program_signal(signals[i]);
    assert_int_equal(program_finish(), 75);
    launched_says("go on with --resume o/model");
    assert_true(file_exists("o/model/checkpoints/last/state.json"));
    assert_int_equal(launched_process(0), 0);
    assert_int_equal(launched_process(1), 0);
    assert_int_equal(system("rm -rf o"), 0);
  }
}

/* A stop while ssh has not reached a host yet, which it never does. */
static void a_stop_does_not_wait_for_a_slow_host(void **state) {
  (void)state;
  setenv("STAND_IN_SLOW", FAR, 1);
  program_start("launch --hosts localhost," FAR " model.ini --output o --restarts 3");
  launched_await(0);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
}

/* The processes save a checkpoint and end. */
static void a_killed_launcher_ends_the_processes_of_other_hosts(void **state) {
  (void)state;
  start_long(FAR ":2", "--set run.save_every=0");
  program_kill();
  no_process_is_left(2);
  assert_true(file_exists("o/model/checkpoints/last/state.json"));
}

/* nohup, and a parent that does not wait for children. */
static void ignore_signals(void) {
  signal(SIGHUP, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
}

static void ignored_signals_are_kept(void **state) {
  (void)state;
  program_prepare(ignore_signals);
  start_long("localhost:2", "");
  program_signal(SIGHUP);
  program_await_lines("o/model/metrics.jsonl", file_lines("o/model/metrics.jsonl") + 100);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
}

/* ---- failures ---- */

/* The other processes wait for it at the start, for up to an hour if they were not asked to end. */
static void a_host_that_is_not_reached_ends_all(void **state) {
  (void)state;
  setenv("STAND_IN_REFUSES", FAR, 1);
  assert_int_equal(program_run("launch --hosts localhost:2," FAR " model.ini --output o"), 77);
  launched_says("[" FAR "] ssh: connect to host " FAR " port 22: Connection refused");
}

static void a_restart_leaves_out_a_host_that_is_not_reached(void **state) {
  (void)state;
  setenv("STAND_IN_REFUSES", FAR, 1);
  double from_s = tn_monotonic_s();
  assert_int_equal(program_run("launch --hosts " FAR "," FAR_2 ":2 model.ini --output o --restarts 1"), 0);
  assert_true(tn_monotonic_s() - from_s >= 5); /* the pause, which a slow machine makes longer */
  launched_says("host " FAR " is not reached by ssh, and is left out");
  launched_says("restart 1 of 1");
  program_json(0, "train model.ini --output p1");
  launched_compare("p1/model/metrics.jsonl", "o/model/metrics.jsonl", 60);
}

/* The launcher ends the ssh of the slow host, which says nothing of that host. */
static void a_restart_keeps_a_host_whose_ssh_was_ended(void **state) {
  (void)state;
  setenv("STAND_IN_SLOW", FAR, 1);
  program_start("launch --hosts localhost:2," FAR " model.ini --output o --restarts 1");
  kill_process(1, SIGKILL);
  await_words("restart 1 of 1");
  launched_await(0);
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  launched_says("restart 1 of 1");
  assert_null(strstr(program_err, "left out"));
}

/* Two hosts of one process each and this one, until `signal_number` ends process 1. */
static void killed_far_away(int signal_number) {
  char text[128];
  start_long("localhost," FAR "," FAR_2, "--restarts 1");
  pid_t pid = launched_await(1);
  assert_int_equal(kill(pid, signal_number), 0);
  await_words("restart 1 of 1");
  for (int i = 0; i < 3; i++) launched_await(i);
  await_steps();
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  snprintf(text, sizeof text, "process 1 (id %d on host " FAR ") was ended by signal %d", (int)pid,
           signal_number);
  launched_says("%s", text);
  assert_null(strstr(program_err, "left out"));
}

static void a_killed_process_of_another_host_is_named_and_its_host_kept(void **state) {
  (void)state;
  killed_far_away(SIGKILL);
}

static void a_crashed_process_of_another_host_is_named_and_its_host_kept(void **state) {
  (void)state;
  killed_far_away(SIGABRT);
}

/* Twice in a row. */
static void a_host_that_fails_first_again_is_left_out(void **state) {
  (void)state;
  start_long("localhost:2," FAR, "--restarts 2");
  kill_process(2, SIGKILL);
  await_words("restart 1 of 2");
  kill_process(2, SIGKILL);
  await_words("restart 2 of 2");
  await_steps();
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  launched_says("host " FAR " had the first process that a signal ended, twice in a row, and is left out");
  launched_says("restart 2 of 2");
}

static void a_stopped_process_of_another_host_is_named_and_ends_all(void **state) {
  (void)state;
  start_long("localhost:2," FAR, "");
  pid_t pid = launched_await(2);
  assert_int_equal(kill(pid, SIGSTOP), 0);
  assert_int_equal(program_finish(), 77);
  launched_says("process 2 (id %d on host " FAR ") is stopped, as by SIGSTOP", (int)pid);
  no_process_is_left(3);
}

/* The process id of the stand-in: the parent of the parent of a process. */
static pid_t ssh_of(pid_t pid) {
  char command[256], text[64] = "";
  snprintf(command, sizeof command, "p=$(cut -d' ' -f4 /proc/%d/stat) && cut -d' ' -f4 /proc/$p/stat",
           (int)pid);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  assert_non_null(fgets(text, sizeof text, pipe));
  pclose(pipe);
  return (pid_t)atoi(text);
}

static void a_lost_connection_ends_all_and_its_host_is_kept(void **state) {
  (void)state;
  start_long("localhost," FAR ":2", "--restarts 1");
  assert_int_equal(kill(ssh_of(launched_await(2)), SIGKILL), 0);
  await_words("restart 1 of 1");
  for (int i = 0; i < 3; i++) launched_await(i);
  await_steps();
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  launched_says("the connection to host " FAR " has ended, before its processes had");
  assert_null(strstr(program_err, "left out"));
}

/* The first attempt has failed, and the launcher pauses, or makes the next one. It stands still until the
 * signal is there; one ssh that it has started by then may not have written its line. */
static void a_stop_in_the_pause_starts_nothing(void **state) {
  (void)state;
  setenv("STAND_IN_REFUSES", FAR, 1);
  program_start("launch --hosts " FAR ":2 model.ini --output o --restarts 1000");
  await_words("Connection refused");
  program_pause();
  int started = file_lines("hosts");
  program_signal(SIGTERM);
  program_signal(SIGCONT);
  assert_int_equal(program_finish(), 75);
  assert_true(file_lines("hosts") <= started + 1);
}

/* ---- the remote part alone ---- */

static FILE *frames;

/* As tools/launch/frame.h has it. */
static void add_frame(char kind, const char *text) {
  size_t n = strlen(text) + 1;
  const char head[] = {kind, 0, (char)0xff, (char)0xff, 0, 0, (char)(n >> 8), (char)n};
  assert_int_equal(fwrite(head, 1, sizeof head, frames), sizeof head);
  assert_int_equal(fwrite(text, 1, n, frames), n);
}

static void open_frames(const char *folder, const char *script, const char *start) {
  frames = fopen("frames", "w");
  assert_non_null(frames);
  add_frame('d', folder);
  add_frame('v', "WORD=word");
  add_frame('a', "/bin/sh");
  add_frame('a', "-c");
  add_frame('a', script);
  add_frame('s', start);
  assert_int_equal(fclose(frames), 0);
}

#define UNTIL_IT_ENDS "until [ -e ended ]; do sleep 0.05; done"

/* Runs it with the frames, and its input open for as long as a command runs. Returns its exit code;
 * program_err has its stderr, and the file `reports` its stdout. */
static int serve(const char *meanwhile) {
  char command[512];
  snprintf(command, sizeof command,
           "(cat frames; %s) | (" TENON " launch-remote >reports 2>words; code=$?; touch ended; exit $code)",
           meanwhile);
  int status = system(command);
  snprintf(program_err, sizeof program_err, "%s", file_read("words", NULL));
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static bool reports_have(const char *bytes, size_t n) {
  size_t size;
  const char *text = file_read("reports", &size);
  for (size_t i = 0; i + n <= size; i++)
    if (memcmp(text + i, bytes, n) == 0) return true;
  return false;
}

static void the_remote_part_starts_processes(void **state) {
  (void)state;
  static const char exits[] = "x\0\0\1\0\0\0\2"
                              "7",
                    output[] = "e\0\0\1\0\0\0\x0b"
                               "6 1 2 word\n";
  char folder[4096];
  open_frames(getcwd(folder, sizeof folder),
              "echo $TENON_PROCESS $TENON_LOCAL_PROCESS 2 $WORD; touch here; exit 7", "5 2 60");
  assert_int_equal(serve(UNTIL_IT_ENDS), 0);
  assert_true(file_exists("here"));
  assert_true(reports_have(exits, sizeof exits));
  assert_true(reports_have(output, sizeof output - 1));
}

/* One ignores SIGTERM. */
static void the_remote_part_kills_processes_where_the_launcher_has_gone(void **state) {
  (void)state;
  double from_s = tn_monotonic_s();
  char folder[4096];
  open_frames(
      getcwd(folder, sizeof folder),
      "[ $TENON_LOCAL_PROCESS = 0 ] || trap '' TERM; touch up.$TENON_PROCESS; while :; do sleep 1; done",
      "1 2 2");
  assert_int_equal(serve("until [ -e up.1 ] && [ -e up.2 ]; do sleep 0.05; done"), 0);
  assert_true(tn_monotonic_s() - from_s >= 2); /* its patience, which a slow machine makes longer */
  launched_await_end(1);
  launched_await_end(2);
}

static void the_remote_part_passes_much_output(void **state) {
  (void)state;
  size_t size;
  char folder[4096];
  open_frames(getcwd(folder, sizeof folder), "head -c 3000000 /dev/zero", "0 1 60");
  assert_int_equal(serve(UNTIL_IT_ENDS), 0);
  file_read("reports", &size);
  assert_true(size > 3000000);
}

static void a_folder_that_is_missing_there_is_told(void **state) {
  (void)state;
  open_frames("/not/here", "true", "0 1 60");
  assert_int_equal(serve(UNTIL_IT_ENDS), 69);
  launched_says("the folder /not/here is not on this host");
}

/* ---- mistakes ---- */

static void refused(int code, const char *text, const char *arguments) {
  assert_int_equal(program_run("%s", arguments), code);
  launched_says("%s", text);
}

static void mistakes_are_told(void **state) {
  (void)state;
  refused(2, "expected up to 256 names", "launch --hosts= model.ini");
  refused(2, "expected up to 256 names", "launch --hosts a,,b model.ini");
  refused(2, "expected up to 256 names", "launch --hosts a:4000,a:4000 model.ini");
  refused(2, "5000 processes, expected at most 4096", "launch -n 5000 model.ini");
  refused(2, "expected a number from 1", "launch -n 4294967298 model.ini");
  setenv("TENON_SSH", "/not/here/ssh", 1);
  refused(69, "/not/here/ssh cannot be started: No such file", "launch --hosts a model.ini --restarts 3");
  setenv("TENON_SSH", "/bin/false", 1);
  refused(69, "nothing was started on host a (exit code 1 of ssh)", "launch --hosts a model.ini");
}

/* Programs that are no remote part of this version. */
static void other_programs_are_told(void **state) {
  (void)state;
  char folder[4096], path[4200];
  snprintf(path, sizeof path, "%s/ssh.sh", getcwd(folder, sizeof folder));
  setenv("TENON_SSH", path, 1);
  file_write("ssh.sh", "#!/bin/sh\necho tenon-launch-remote 0.0.0\nexec sleep 3600\n");
  assert_int_equal(chmod("ssh.sh", 0755), 0);
  refused(69, "host a has another version of tenon than", "launch --hosts a model.ini --restarts 3");
  file_write("ssh.sh", "#!/bin/sh\necho tenon-launch-remote $(" TENON " --version | cut -d' ' -f2)\n"
                       "printf '\\377\\377\\377\\377\\377\\377\\377\\377'\nexec sleep 3600\n");
  refused(77, "host a: its reports cannot be read", "launch --hosts a model.ini");
}

/* In a group of its own: the launcher once ended its whole group there. */
static void allow_few_files(rlim_t now, rlim_t most) {
  struct rlimit limit = {now, most};
  setpgid(0, 0);
  setrlimit(RLIMIT_NOFILE, &limit);
}

static void allow_16_files(void) { allow_few_files(16, 16); }

static void allow_16_files_now(void) { allow_few_files(16, 1024); }

static void too_few_files_are_told(void **state) {
  (void)state;
  program_prepare(allow_16_files);
  refused(69, "Too many open files", "launch -n 40 absent.ini");
  program_prepare(allow_16_files_now);
  assert_int_not_equal(program_run("launch -n 40 absent.ini"), 69);
  assert_null(strstr(program_err, "Too many open files"));
  launched_says("absent.ini");
}

/* ---- OpenSSH itself ---- */

static pid_t server;

/* A server with keys of its own on a port of the loopback device. As root it needs the folder /run/sshd,
 * which is then one of its own file system. NULL, or the reason why there is no server. */
static const char *start_sshd(int port) {
  char script[3 * 4096], folder[1024];
  assert_non_null(getcwd(folder, sizeof folder));
  if (system("[ -x /usr/sbin/sshd ] && command -v ssh ssh-keygen >/dev/null") != 0)
    return "there is no OpenSSH";
  snprintf(
      script, sizeof script,
      "ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f key && "
      "cp key.pub authorized && printf '%%s\\n' 'HostKey %s/host_key' 'AuthorizedKeysFile %s/authorized' "
      "'StrictModes no' 'UsePAM no' 'PidFile none' 'ListenAddress 127.0.0.1' 'Port %d' "
      "'PermitRootLogin yes' >sshd_config",
      folder, folder, port);
  if (system(script) != 0) return "ssh-keygen fails";
  server = fork();
  assert_true(server >= 0);
  snprintf(script, sizeof script, "exec /usr/sbin/sshd -D -e -f %s/sshd_config >sshd.log 2>&1", folder);
  if (server == 0 && geteuid() == 0)
    execlp("unshare", "unshare", "-m", "sh", "-c",
           "mount -t tmpfs tmpfs /run && mkdir /run/sshd && eval \"$0\"", script, (char *)NULL);
  if (server == 0) execl("/bin/sh", "sh", "-c", script, (char *)NULL);
  snprintf(script, sizeof script,
           "#!/bin/sh\nexec ssh -F none -p %d -i %s/key -o StrictHostKeyChecking=no -o "
           "UserKnownHostsFile=/dev/null "
           "-o LogLevel=ERROR \"$@\"\n",
           port, folder);
  file_write("ssh.sh", script);
  snprintf(script, sizeof script, "%s/ssh.sh", folder);
  setenv("TENON_SSH", script, 1);
  for (int i = 0; i < 50; i++) {
    if (system("chmod +x ssh.sh && ./ssh.sh -o BatchMode=yes -- 127.0.0.1 true >ssh.log 2>&1") == 0)
      return NULL;
    usleep(100000);
  }
  return file_read("ssh.log", NULL);
}

static int stop_sshd(void **state) {
  if (server > 0) {
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    server = 0;
  }
  return program_close(state);
}

/* A signal, a killed process and a restart, a killed launcher. */
static void openssh_itself_starts_processes(void **state) {
  (void)state;
  char folder[4096];
  const char *reason = start_sshd(22000 + (int)(getpid() % 10000));
  if (reason != NULL) {
    print_message("skipped: no server of ssh: %s\n", reason);
    skip();
  }
  assert_non_null(getcwd(folder, sizeof folder));
  const json_t *r = program_json(0, "launch --hosts 127.0.0.1:2,localhost model.ini --output p3");
  assert_int_equal(program_number(r, "devices"), 3);
  start_long("127.0.0.1:2", "");
  program_signal(SIGTERM);
  assert_int_equal(program_finish(), 75);
  launched_says("go on with --resume o/model");
  no_process_is_left(2);
  start_long("localhost,127.0.0.1:2", "--resume auto --restarts 1");
  pid_t pid = launched_await(1);
  assert_int_equal(kill(pid, SIGKILL), 0);
  await_words("restart 1 of 1");
  for (int i = 0; i < 3; i++) launched_await(i);
  await_steps();
  program_kill();
  no_process_is_left(3);
}

int main(int argc, char **argv) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, program_close)
  const struct CMUnitTest tests[] = {
      TEST(hosts_are_reached_by_ssh),
      TEST(the_user_of_ssh_is_no_part_of_the_address),
      TEST(the_environment_names_the_host_of_process_0),
      TEST(a_signal_reaches_the_processes_of_other_hosts),
      TEST(a_stop_does_not_wait_for_a_slow_host),
      TEST(a_killed_launcher_ends_the_processes_of_other_hosts),
      TEST(ignored_signals_are_kept),
      TEST(a_host_that_is_not_reached_ends_all),
      TEST(a_restart_leaves_out_a_host_that_is_not_reached),
      TEST(a_restart_keeps_a_host_whose_ssh_was_ended),
      TEST(a_killed_process_of_another_host_is_named_and_its_host_kept),
      TEST(a_crashed_process_of_another_host_is_named_and_its_host_kept),
      TEST(a_host_that_fails_first_again_is_left_out),
      TEST(a_stopped_process_of_another_host_is_named_and_ends_all),
      TEST(a_lost_connection_ends_all_and_its_host_is_kept),
      TEST(a_stop_in_the_pause_starts_nothing),
      TEST(the_remote_part_starts_processes),
      TEST(the_remote_part_kills_processes_where_the_launcher_has_gone),
      TEST(the_remote_part_passes_much_output),
      TEST(a_folder_that_is_missing_there_is_told),
      TEST(mistakes_are_told),
      TEST(other_programs_are_told),
      TEST(too_few_files_are_told),
      cmocka_unit_test_setup_teardown(openssh_itself_starts_processes, set_up, stop_sshd)};
  if (argc > 1 && strcmp(argv[1], "-T") == 0) return stand_in_main(argc, argv);
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  return n > 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
