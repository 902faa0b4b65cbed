/* tests/attack/attack.h: attacks on the program, drawn from a seed. A family of attacks is one file: it
 * damages, or limits, or lies in a way of its own, runs commands, and judges what they answer.
 *
 * An attack is (family, seed, number): its draws depend on nothing else, so each can be repeated alone. All
 * paths are relative to the scratch folder, which is the current one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- families ---- */

typedef struct attack_family {
  const char *name, *what;
  int share;             /* of the time */
  void (*prepare)(void); /* once, before the first attack; may be NULL */
  void (*attack)(void);  /* one attack: draws, acts, judges */
} attack_family;

extern const attack_family attack_damage, attack_hostile, attack_values, attack_inputs, attack_limits,
    attack_foreign, attack_squatters, attack_kills;

/* ---- draws (draw.c) ---- */

void attack_draw_from(const char *family, uint64_t seed, uint64_t number);
/* Below `most`, which is above 0. */
uint64_t attack_draw(uint64_t most);
/* From `least` to `most`, both included. */
int attack_draw_between(int least, int most);
#define ATTACK_PICK(list) ((list)[attack_draw(sizeof(list) / sizeof *(list))])

/* The file that a known attack is on, in place of a drawn one (known.h); NULL: it is drawn. */
const char *attack_target(void);

/* ---- findings (main.c) ---- */

typedef enum attack_kind {
  ATTACK_CRASH,   /* a signal, or a report of a sanitizer */
  ATTACK_HANG,    /* no end within the limit */
  ATTACK_WRONG,   /* exit code 0 with another answer, and no warning */
  ATTACK_FOREIGN, /* code of others ran, or a token reached them */
  ATTACK_OTHER,   /* exit codes, messages, control characters, files of others */
  ATTACK_KINDS
} attack_kind;

/* Says what the present attack does; a finding prints it. */
__attribute__((format(printf, 1, 2))) void attack_describe(const char *format, ...);
__attribute__((format(printf, 2, 3))) void attack_find(attack_kind kind, const char *format, ...);
/* The campaign itself cannot go on. */
__attribute__((format(printf, 1, 2), noreturn)) void attack_die(const char *format, ...);
/* Whether one attack is repeated alone, with all that it prints. */
bool attack_is_single(void);

/* ---- commands (command.c) ---- */

typedef struct attack_result {
  int code;        /* exit code; -1: it did not exit */
  int signal;      /* that ended it; 0: none */
  bool hung;       /* ended by the campaign */
  char *out, *err; /* end in a NUL; until the next command */
  size_t n_out, n_err;
} attack_result;

enum { ATTACK_WORDS = 48 };

typedef struct attack_command {
  const char *words[ATTACK_WORDS]; /* behind the program; ends with NULL */
  void (*in_child)(void);          /* before the program begins; may be NULL */
  const char *folder;              /* to run in; NULL: the scratch folder */
  const char *const *variables;    /* NAME=VALUE, ends with NULL; may be NULL */
  bool may_die;                    /* the limits of in_child may end it before it is the program */
  bool is_mute;                    /* they may keep it from writing a message */
  double limit_s;                  /* 0: 300 s */
  int place; /* of commands that run side by side: each has files of its own for its output */
} attack_command;

/* The path of tenon, and seconds that commands may take (a sanitizer makes them slower). */
void attack_set_program(const char *path, double slow);
double attack_slow(void);
/* Runs the command and judges the rules for every command: it ends by itself within the limit, with a
 * documented exit code, a message on stderr where that is not 0, and no control characters in its output. */
const attack_result *attack_run(const attack_command *command);
/* The same without a judgement, for commands that must succeed: the campaign ends otherwise. */
const attack_result *attack_must(const char *const *words);
uint64_t attack_commands(void);
pid_t attack_start(const attack_command *command);
/* Waits for a command that the caller has killed. */
void attack_reap(pid_t pid);
/* Waits for a command that attack_start began and judges it, as attack_run. */
const attack_result *attack_await(pid_t pid, const attack_command *command);
double attack_now_s(void);
void attack_sleep_s(double seconds);

/* ---- files (files.c) ---- */

typedef struct attack_bytes {
  char *v; /* ends in a NUL behind n */
  size_t n;
} attack_bytes;

/* The whole of a regular file; n = 0 and an empty text if the file does not exist. The caller frees v. */
attack_bytes attack_read(const char *path);
void attack_write(const char *path, const void *bytes, size_t n);
void attack_write_text(const char *path, const char *text);
bool attack_exists(const char *path);
bool attack_same_files(const char *a, const char *b);
void attack_folder(const char *path); /* mkdir -p */
void attack_copy(const char *from, const char *to);
void attack_remove(const char *path);
/* Paths of all files and folders below a folder, relative to it, sorted. */
typedef struct attack_paths {
  char **v;
  int n;
} attack_paths;
attack_paths attack_list(const char *folder);
void attack_free_paths(attack_paths *paths);

/* ---- damage (bytes.c) ---- */

/* Changes bytes in one way of many, and describes it. `head`: only the first so many bytes are changed; 0:
 * all. */
void attack_damage_bytes(attack_bytes *bytes, size_t head, char *words, size_t size);
/* Removes the file or folder, and may put a folder, link, FIFO, socket or text in its place. Says which;
 * until the next call. Links point to the file "keep", the folder "base", devices, or nowhere. */
const char *attack_replace(const char *path);
/* A text that no reader expects: numbers, names, brackets, control characters, bytes that are not UTF-8. */
const char *attack_strange_text(void);
/* A number of that kind, as text. */
const char *attack_strange_number(void);
