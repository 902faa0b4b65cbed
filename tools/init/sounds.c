/* tools/init/sounds.c: the configuration for a folder of sounds, a folder for each class. */
#include "tools/init/sounds.h"

#include <dirent.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "tenon/file_names.h"
#include "tools/cli/cli.h"
#include "tools/init/init.h"

enum { SOUNDS_EXAMINED = 64, SOUNDS_HEAD = 4096 };

/* ---- headers ---- */

bool sounds_has_suffix(const char *name) { return name[0] != '.' && tn_name_is_sound(name); }

static unsigned long sounds_little(const unsigned char *at, int bytes) {
  unsigned long value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

/* Chunks of RIFF: `fmt ` has the rate and the bytes of a second, `data` a length. */
static bool sounds_read_wav(const unsigned char *head, size_t n, double *rate, double *seconds) {
  double second = 0;
  for (size_t at = 12; at + 8 <= n;) {
    size_t length = sounds_little(head + at + 4, 4);
    if (memcmp(head + at, "fmt ", 4) == 0 && at + 24 <= n) {
      *rate = (double)sounds_little(head + at + 12, 4);
      second = (double)sounds_little(head + at + 16, 4);
    }
    if (memcmp(head + at, "data", 4) == 0 && second > 0) {
      *seconds = (double)length / second;
      return *rate > 0;
    }
    at += 8 + length + length % 2;
  }
  return false;
}

/* STREAMINFO: 20 bits of the rate, 8 of others, 36 of the number of samples. */
static bool sounds_read_flac(const unsigned char *head, size_t n, double *rate, double *seconds) {
  if (n < 26) return false;
  const unsigned char *b = head + 18;
  double samples = (double)((unsigned long)(b[3] & 0x0F) << 16 | (unsigned long)b[4] << 8 | b[5]) * 65536.0 +
                   (double)((unsigned long)b[6] << 8 | b[7]);
  *rate = (double)((unsigned long)b[0] << 12 | (unsigned long)b[1] << 4 | b[2] >> 4);
  *seconds = *rate > 0 ? samples / *rate : 0;
  return *rate > 0;
}

sounds_form sounds_form_of(const char *path) {
  unsigned char head[SOUNDS_HEAD];
  double rate = 16000, seconds = 1;
  struct stat info;
  FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rbe") : NULL;
  size_t n = file != NULL ? fread(head, 1, sizeof head, file) : 0;
  if (file != NULL) fclose(file);
  bool known = n > 12 && ((memcmp(head, "RIFF", 4) == 0 && sounds_read_wav(head, n, &rate, &seconds)) ||
                          (memcmp(head, "fLaC", 4) == 0 && sounds_read_flac(head, n, &rate, &seconds)));
  if (!known) rate = 16000, seconds = 1;
  if (rate > 16000 || rate < 1000) rate = 16000;
  seconds = ceil(seconds * 10 - 1e-6) / 10;
  return (sounds_form){(long long)rate, fmin(fmax(seconds, 0.1), 10)};
}

/* ---- spectrograms: windows of 25 ms every 10 ms ---- */

static long long sounds_hop(sounds_form form) { return form.rate / 100; }

long long sounds_frames(sounds_form form) {
  return llrint(form.seconds * (double)form.rate) / sounds_hop(form) + 1;
}

void sounds_write_mel(FILE *to, sounds_form form, const char *field) {
  fprintf(to, "mel(%d, rate=%lld, fft=%lld, hop=%lld, log=db), spec_augment(time=%lld, freq=8) <- %s\n",
          SOUNDS_BINS, form.rate, form.rate / 40, sounds_hop(form),
          sounds_frames(form) / 5 > 0 ? sounds_frames(form) / 5 : 1, field);
}

/* ---- folders ---- */

typedef struct sounds_part {
  long long classes, count;
  sounds_form form; /* of those that were examined: the greatest */
} sounds_part;

static void sounds_add(sounds_part *part, const char *path) {
  if (part->count++ >= SOUNDS_EXAMINED) return;
  sounds_form form = sounds_form_of(path);
  if (form.rate > part->form.rate) part->form.rate = form.rate;
  if (form.seconds > part->form.seconds) part->form.seconds = form.seconds;
}

/* A folder is a class where it has a sound. */
static void sounds_list_class(const char *path, sounds_part *part) {
  char name[PICTURES_PATH];
  long long before = part->count;
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder != NULL && (entry = readdir(folder));)
    if (sounds_has_suffix(entry->d_name) &&
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < PICTURES_PATH)
      sounds_add(part, name);
  if (folder != NULL) closedir(folder);
  part->classes += part->count > before;
}

static void sounds_list(const char *path, sounds_part *part) {
  char name[PICTURES_PATH];
  *part = (sounds_part){.classes = 0};
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder != NULL && (entry = readdir(folder));)
    if (entry->d_name[0] != '.' && snprintf(name, sizeof name, "%s/%s", path, entry->d_name) < PICTURES_PATH)
      sounds_list_class(name, part);
  if (folder != NULL) closedir(folder);
}

/* train/ and valid/, or class folders alone. */
static const char *sounds_find_parts(const char *path, sounds_part *train, sounds_part *valid) {
  static const char *const names[] = {"valid", "val", "test"};
  char name[PICTURES_PATH];
  *valid = (sounds_part){.classes = 0};
  sounds_list(path, train);
  if (train->count > 0 || snprintf(name, sizeof name, "%s/train", path) >= PICTURES_PATH) return NULL;
  sounds_list(name, train);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (snprintf(name, sizeof name, "%s/%s", path, names[i]) < PICTURES_PATH) sounds_list(name, valid);
    if (valid->count > 0) return names[i];
  }
  return NULL;
}

bool init_is_sounds(const char *path) {
  sounds_part train, valid;
  sounds_find_parts(path, &train, &valid);
  return train.classes > 0;
}

int init_survey_sounds(const cli_args *args, const char *path, sounds_survey *found) {
  sounds_part train, valid;
  const char *part = sounds_find_parts(path, &train, &valid);
  char inner[PICTURES_PATH];
  struct stat info;
  *found = (sounds_survey){.classes = train.classes, .count = train.count, .form = train.form};
  snprintf(found->valid, sizeof found->valid, "%s", part != NULL ? part : "");
  int n = snprintf(inner, sizeof inner, "%s/train", path);
  found->parts = n < PICTURES_PATH && stat(inner, &info) == 0 && S_ISDIR(info.st_mode);
  if (train.classes >= 2) return CLI_OK;
  return cli_refuse(args, CLI_DATA,
                    "%s: has %lld folder with sounds, expected a folder for each class, at least two", path,
                    train.classes);
}

void init_write_sounds(const init_file *f, const sounds_survey *found, init_choice *c) {
  long long frames = sounds_frames(found->form);
  *c = (init_choice){found->form.rate, init_choose_batch(found->count), 30};
  fprintf(f->to, "# A small network on mel spectrograms, for %lld sounds of %lld classes.\n", found->count,
          found->classes);
  fprintf(f->to, "[run]\nname = %s\nepochs = %lld\n\n[data]\nsource = audio_folder\n", f->name, c->epochs);
  fprintf(f->to, "folder = %s%s\n", f->path, found->parts ? "/train" : "");
  if (found->valid[0] != '\0')
    fprintf(f->to, "valid = %s/%s\n", f->path, found->valid);
  else
    fprintf(f->to, "split = 0.2\n");
  fprintf(f->to, "rate = %lld\nseconds = %g\nbatch = %lld\ntransforms = ", found->form.rate,
          found->form.seconds, c->batch);
  sounds_write_mel(f->to, found->form, "sound");
  fprintf(f->to, "\n[model]\ninputs = sound: f32[%d, %lld]\nlayers =\n    x:     reshape([1, %d, %lld])\n",
          SOUNDS_BINS, frames, SOUNDS_BINS, frames);
  for (int i = 1, width = 16; i <= 3; i++, width *= 2)
    fprintf(f->to,
            "    conv%d: conv2d(%d, kernel=3, stride=2, padding=1, bias=no)\n    bn%d:   batch_norm\n        "
            "   relu\n",
            i, width, i);
  fprintf(f->to,
          "           global_avg_pool\n    fc:    linear(%lld)\nloss = cross_entropy\nmetrics = accuracy\n",
          found->classes);
  fprintf(f->to, "\n[optimizer]\ntype = adamw\nlr = 2e-3\n\n[schedule]\ntype = cosine\n");
}
