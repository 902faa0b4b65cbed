/* tenon/file_names.h: which files the sources take for pictures and for sounds, by the endings of their
 * names. */
#ifndef TENON_FILE_NAMES_H
#define TENON_FILE_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tenon/base.h"

TN_BEGIN_C

/* For messages. */
#define TN_PICTURE_ENDINGS ".jpg, .png, .webp, .tiff or .avif"
#define TN_SOUND_ENDINGS   ".wav, .flac, .ogg, .opus, .mp3, .aiff, .au or .caf"

/* A letter of ASCII as a small one. */
static inline int32_t tn_name_small(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }

/* Whether a name or path ends in one of the endings, small letters and NULL behind them; capitals make no
 * difference. */
static inline int32_t tn_name_has_ending(const char *name, const char *const *endings) {
  const char *dot = strrchr(name, '.');
  for (; dot != NULL && *endings != NULL; endings++) {
    const char *a = dot, *b = *endings;
    while (*a != '\0' && tn_name_small(*a) == *b) a++, b++;
    if (*a == '\0' && *b == '\0') return 1;
  }
  return 0;
}

static inline int32_t tn_name_is_picture(const char *name) {
  static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".avif", NULL};
  return tn_name_has_ending(name, endings);
}

static inline int32_t tn_name_is_sound(const char *name) {
  static const char *const endings[] = {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3",
                                        ".aif", ".aiff", ".au",  ".caf", NULL};
  return tn_name_has_ending(name, endings);
}

TN_END_C
#endif
