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
  long long width, height;    /* of the pictures with the middle shorter side */
  bool same;                  /* all that were examined have this size */
  long long unread; /* examined files that are neither PNG nor JPEG, empty, or cut off in the header */
  char first_unread[PICTURES_PATH];
} pictures;

/* Counts the files in the class folders and reads the sizes of those of the training part, without decoding
 * them. Returns an exit code. */
int pictures_survey(const cli_args *args, const char *folder, pictures *found);
