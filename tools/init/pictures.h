/* tools/init/pictures.h: a look at the pictures of a folder, as the source image_folder sees them. */
#pragma once

#include "tools/cli/cli.h"

typedef struct pictures_part {
  bool there;
  long long classes, count;
} pictures_part;

enum { PICTURES_PATH = 4096 };

typedef struct pictures {
  pictures_part train, valid; /* a folder without train/ is all for training */
  bool parts;                 /* the folder has train/ */
  /* of archives: their paths and those for validation, and the ending of pictures; files "": of folders */
  char files[PICTURES_PATH], valid_files[PICTURES_PATH], ending[16];
  long long width, height; /* of the pictures with the middle shorter side */
  bool same;               /* all that were examined have this size */
  long long unread;        /* examined files that are neither PNG nor JPEG, empty, or cut off in the header */
  char first_unread[PICTURES_PATH];
} pictures;

/* Reads the size in the header of a picture in memory. */
bool pictures_size_in(const void *bytes, size_t n, long long *width, long long *height);
/* Whether a name ends as that of a picture. */
bool pictures_has_suffix(const char *name);
/* Counts the files in the class folders and reads the sizes of those of the training part, without decoding
 * them. Returns an exit code. */
int pictures_survey(const cli_args *args, const char *folder, pictures *found);
