/* tools/launch/frame.h: messages between the launcher and its part on another host, over ssh's stdin and
 * stdout. A frame is 8 bytes, its kind, 0, the process (2 bytes) and the length (4 bytes), highest byte
 * first, and then as many bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* An argument of a program has at most 128 KiB on Linux, with its zero byte. A frame to the launcher has at
 * most FRAME_OUTPUT bytes, so that one write to a pipe that is ready does not block. */
enum { FRAME_HEAD = 8, FRAME_MOST = 1 << 17, FRAME_OUTPUT = 4000, FRAME_ALL = 0xffff };

/* The remote part prints this, its version and the end of a line in front of its first frame. */
#define FRAME_GREETING "tenon-launch-remote "

/* To the remote part. All have a text, ended by a zero byte; those of one kind come in their order. */
enum {
  FRAME_FOLDER = 'd',   /* the current folder of processes */
  FRAME_VARIABLE = 'v', /* "NAME=VALUE" for all processes */
  FRAME_ARGUMENT = 'a', /* of the program; the first is its path */
  FRAME_START = 's', /* "FIRST COUNT SECONDS": the number of the first process, their count, and the seconds
                        that they have to end where the launcher has gone */
  FRAME_SIGNAL = 'k' /* "TERM", to one process or FRAME_ALL */
};

/* To the launcher; `process` counts from 0 on each host. */
enum {
  FRAME_PID = 'p',       /* text: its id */
  FRAME_STOPPED = 'h',   /* as by SIGSTOP */
  FRAME_CONTINUED = 'c', /* by SIGCONT */
  FRAME_EXITED = 'x',    /* text: its exit code */
  FRAME_KILLED = 'z',    /* text: the number of the signal */
  FRAME_STDOUT = 'o',    /* bytes that it has printed */
  FRAME_STDERR = 'e'
};

typedef struct frame {
  char kind;
  int process;
  const char *bytes; /* of the reader, until its next call */
  size_t n;
} frame;

typedef struct frame_reader {
  size_t n, used; /* bytes that were read, and those of them that were frames */
  char bytes[FRAME_HEAD + FRAME_MOST];
} frame_reader;

/* Writes a frame; a descriptor that does not block and takes nothing for 5 s counts as closed. False: it was
 * not written. */
bool frame_write(int fd, char kind, int process, const void *bytes, size_t n);
/* A frame with a text and its zero byte. */
bool frame_write_text(int fd, char kind, int process, const char *text);

/* Reads once, into the room behind earlier bytes. Returns as read(2). */
ssize_t frame_fill(frame_reader *r, int fd);
/* 1: a frame; 0: it has not come as a whole; -1: the bytes are no frames. */
int frame_next(frame_reader *r, frame *f);
/* The text of a frame; "" where it has no zero byte at its end. */
const char *frame_text(const frame *f);

/* "TERM", and its number; NULL and 0: no signal that is passed on. */
const char *frame_signal_name(int number);
int frame_signal_number(const char *name);
