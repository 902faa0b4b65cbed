/* tests/integration/cli/program.h: runs the built program as a user or a script does. Every test has a
 * temporary current folder. A failure of the harness fails the test. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>
#include <jansson.h>

/* CMocka's set-up and tear-down: create and remove the temporary folder, and unset the variables of
 * launchers. */
int program_open(void **state);
int program_close(void **state);

/* `tenon ARGUMENTS`, split at blanks. Returns the exit code; program_out and program_err hold the printed
 * text until the next call. */
int program_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char program_out[1 << 20], program_err[1 << 16];

/* Waits until an expression is true, which is looked at again and again. A wait for more than PROGRAM_HANG_S
 * fails the test; that ends a hang, and no condition takes a tenth of it on a busy machine. */
enum { PROGRAM_HANG_S = 900 };
typedef struct program_wait {
  double from_s;
  int looks;
} program_wait;
void program_look_again(program_wait *wait, const char *condition);
#define program_await(...)                                                                                   \
  for (program_wait program_wait_ = {0}; !(__VA_ARGS__);) program_look_again(&program_wait_, #__VA_ARGS__)

/* Fails the test with program_err where the exit code is not the expected one. */
void program_expect(int code, int expected);

/* The same with --json and an expected exit code. The result belongs to the harness and lives until the test
 * ends; NULL: nothing was printed. */
const json_t *program_json(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* By path, "train.loss"; the member must be there. */
const json_t *program_member(const json_t *json, const char *path);
double program_number(const json_t *json, const char *path);
const char *program_text(const json_t *json, const char *path);

/* The limit of file sizes for the program, in bytes; 0: no limit. */
void program_limit_files(size_t bytes);

/* A function that the new process calls before it becomes the program; NULL: none. */
void program_prepare(void (*call)(void));

/* The file for stdout; NULL: program_out. */
void program_stdout(const char *path);

/* The folder in which the next programs run, and from which program_finish reads what a program has printed;
 * at first ".". Programs beside each other have folders of their own. */
void program_place(const char *path);

/* The first of PORTS_BLOCK - 1 TCP ports that no other test takes while this process lives. */
int program_ports(void);
/* A token for a job: another one for each call, and for each test of this machine. */
const char *program_token(void);

/* Starts the program without waiting. */
void program_start(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Waits until a file has so many lines; the program may have ended then. A test that acts before the end
 * needs a training without one, or one that is held (hold.c). */
void program_await_lines(const char *path, int lines);
void program_signal(int number);
/* Stops the program (SIGSTOP) and waits until all its threads stand still; SIGCONT lets it go on. */
void program_pause(void);
/* Sets the started program aside, so that another can run beside it, and returns it; `other` takes its place,
 * 0 for none. Both write to the files of program_out and program_err, so one should be --quiet. */
pid_t program_swap(pid_t other);
/* Kills the program (SIGKILL). */
void program_kill(void);
/* Runs another one to its end meanwhile, by the shell, and returns its exit code. Its output goes to the file
 * "beside". */
int program_beside(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Waits for the end of the program that program_start started. Returns its exit code. */
int program_finish(void);

/* Files. */
void file_write(const char *path, const char *text);
void file_write_bytes(const char *path, const void *bytes, size_t n);
/* Owned by the harness until the test ends; NUL-terminated. */
char *file_read(const char *path, size_t *n);
int file_exists(const char *path);
int file_lines(const char *path);
void files_equal(const char *a, const char *b);
/* Model and optimizer of two checkpoints have the same bits. */
void checkpoint_folders_equal(const char *a, const char *b);
/* The same, of FOLDER/run/checkpoints/last. */
void checkpoints_equal(const char *a, const char *b);
const json_t *file_json(const char *path);
