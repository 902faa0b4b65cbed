/* tools/init/array_files.h: a look at the arrays of a folder, or of a .npz archive. */
#pragma once

#include "tools/cli/cli.h"

enum { ARRAYS_MOST = 64, ARRAYS_NAME = 64, ARRAYS_PATH = 1024, ARRAYS_RANK = 8 };

typedef struct array_look {
  char name[ARRAYS_NAME];  /* of the array, or of its file */
  char place[ARRAYS_PATH]; /* as a configuration names it: "y.npy", "all.npz/y" */
  char kind;               /* 'b', 'i', 'u', 'f' */
  int size;                /* bytes of an element */
  int rank;
  long long dims[ARRAYS_RANK];
  long long greatest; /* of whole numbers of one byte or more, without 255 of masks; -1: not found */
} array_look;

typedef struct array_looks {
  int n;
  array_look v[ARRAYS_MOST];
} array_looks;

/* Whether the path is a .npz archive, or a folder with .npy or .npz files. */
bool array_files_are(const char *path, bool folder);
/* Arrays of numbers alone; others are left out. Returns an exit code. */
int array_files_survey(const cli_args *args, const char *path, bool folder, array_looks *found);
