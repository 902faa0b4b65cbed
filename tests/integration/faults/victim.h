/* tests/integration/faults/victim.h: a short training that is interrupted, and its comparison with one that
 * was not.
 *
 * The model writes a checkpoint after every step, which takes longer than the step. The test works in a
 * folder of its own, which stays where a comparison fails. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes a folder, goes there, and writes victim.ini. `test` is the name in messages, `program` the path of
 * tenon, `seed` that of victim_draw, `backend` the value of backend.use. */
void victim_set_up(const char *test, const char *program, uint64_t seed, const char *backend);
void victim_tear_down(void);
/* Writes a configuration. */
void victim_configure(const char *path, const char *text);
void victim_seed(uint64_t seed);
/* Prints the text, with the folder, and ends the test. */
__attribute__((format(printf, 1, 2), noreturn)) void victim_die(const char *format, ...);

uint64_t victim_draw(void);
void victim_sleep_s(double seconds);
/* All bytes of a file, and a zero byte. The caller frees them. */
char *victim_read_file(const char *path, size_t *n);
int victim_file_exists(const char *path);
/* Removes a folder and all in it, without following links. */
void victim_remove(const char *path);

/* In a child: stdout or stderr goes to a file, opened with O_TRUNC or O_APPEND. */
void victim_redirect(int fd, const char *path, int flags);
/* Starts a training with `--resume auto` in a run folder below `output`. Workers and threads vary with
 * `variant`. `place`, 0 or 1: which of two files gets stdout, and which stderr. */
pid_t victim_start(const char *output, int variant, int place);
const char *victim_stdout(int place);
const char *victim_stderr(int place);
/* The run folder that the program printed. */
void victim_run_folder(int place, char *path, size_t size);
/* Trains in whole/victim without an interruption. Returns the seconds that it takes. */
double victim_train_whole(void);
/* Ends the test where checkpoints or metrics of two run folders differ, apart from times. */
void victim_compare(const char *a, const char *b);
