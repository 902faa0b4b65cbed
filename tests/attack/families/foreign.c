/* tests/attack/families/foreign.c: configurations and run folders that name code: plugins, libraries of GPUs,
 * folders of compiled kernels. The code is in the current folder, in one that everybody may write, in one of
 * another user, or behind a link. Its constructor leaves a marker, which must not be there, unless the user's
 * own configuration names a file that only the user can change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/attack/runs.h"

enum { OTHER_USER = 65534 };

static const char *const foreign_names[] = {"libcuda.so.1",      "libcuda.so",    "libnvrtc.so.12",
                                            "libcublasLt.so.12", "libcudnn.so.9", "libnccl.so.2",
                                            "libnccl.so",        "x.so"};

typedef struct place {
  const char *words, *path; /* as the configuration has it */
  bool is_trusted;          /* a configuration that the user names may load from it */
} place;

/* Relative paths are relative to the configuration's folder, so "lib" of the current one is another. */
static const place places[] = {{"the current folder", "lib", false},
                               {"the current folder", "./lib", false},
                               {"a folder that everybody may write", "%s/open", false},
                               {"files that everybody may write", "%s/files", false},
                               {"another user's folder", "%s/other", false},
                               {"a link to a folder that everybody may write", "%s/link", false},
                               {"a folder within one that everybody may write", "%s/open/within", false},
                               {"the user's own folder", "%s/own", true}};

static char foreign_root[1024], foreign_marker[1100];

static void foreign_fill(const char *folder, mode_t of_folder, mode_t of_files, uid_t owner) {
  char path[256];
  attack_bytes marker = attack_read(MARKER);
  attack_folder(folder);
  for (size_t i = 0; i < sizeof foreign_names / sizeof *foreign_names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, foreign_names[i]);
    attack_write(path, marker.v, marker.n);
    if (chmod(path, of_files) != 0 || (owner != 0 && chown(path, owner, owner) != 0)) continue;
  }
  free(marker.v);
  if (chmod(folder, of_folder) != 0 || (owner != 0 && chown(folder, owner, owner) != 0)) return;
}

/* The user's own file runs where the user names it: otherwise the attacks would find nothing. */
static void foreign_check_marker(void) {
  attack_command c = {.words = {"inspect", "--plugin", "own/x.so"},
                      .variables = (const char *const[]){foreign_marker, NULL}};
  attack_reap(attack_start(&c));
  if (!attack_exists("marker")) attack_die("the marker of code that has run does not appear");
}

static void foreign_prepare(void) {
  runs_make();
  if (getcwd(foreign_root, sizeof foreign_root - 64) == NULL) attack_die("no current folder");
  snprintf(foreign_marker, sizeof foreign_marker, "ATTACK_MARKER=%s/marker", foreign_root);
  foreign_fill("cwd/lib", 0755, 0755, 0);
  foreign_fill("open", 0777, 0755, 0);
  foreign_fill("open/within", 0755, 0755, 0);
  foreign_fill("files", 0755, 0777, 0);
  foreign_fill("own", 0755, 0755, 0);
  foreign_fill("other", 0755, 0755, geteuid() == 0 ? OTHER_USER : 0);
  if (symlink("open", "link") != 0) attack_die("link: no symbolic link");
  foreign_check_marker();
}

/* A section that names the place. */
static void foreign_draw_section(const place *p, char text[2048], char words[64]) {
  static const char *const keys[] = {"[backend.cuda]\nlibraries = %s\n",
                                     "[communicator.nccl]\nlibraries = %s\n",
                                     "[backend.cuda]\nimages = %s\n",
                                     "[backend.cuda]\ncache = %s\n",
                                     "[plugins]\nload = %s/x.so\n",
                                     "[plugins]\nload = %s/x.so?\n",
                                     "[backend.cuda]\nlibraries = /nowhere:%s\n"};
  char path[1200];
  const char *key = ATTACK_PICK(keys);
  snprintf(path, sizeof path, strncmp(p->path, "%s/", 3) == 0 ? "%s/%s" : "%.0s%s", foreign_root,
           strncmp(p->path, "%s/", 3) == 0 ? p->path + 3 : p->path);
  char *at = text;
  for (const char *k = key; *k != '\0'; k++)
    if (k[0] == '%' && k[1] == 's')
      at += sprintf(at, "%s", path), k++;
    else
      *at++ = *k;
  *at = '\0';
  snprintf(words, 64, "%.*s", (int)strcspn(key, " ="), key);
}

static void foreign_append(const char *path, const char *text) {
  FILE *file = fopen(path, "a");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) attack_die("%s: not written", path);
}

static const char *const foreign_commands[][12] = {
    {"eval", "../x/run"},
    {"eval", "../x/run", "--classes"},
    {"predict", "../x/run", "--input", "../rows.npy"},
    {"runs", "../x"},
    {"report", "../x/run"},
    {"checkpoint", "show", "../x/run"},
    {"checkpoint", "verify", "../x/run"},
    {"checkpoint", "convert", "../x/run", "../made.safetensors"},
    {"train", "../picture.ini", "--weights", "../x/run", "--output", "../y", "--quiet"},
    {"eval", "../picture.ini", "--weights", "../x/run"},
    /* the configuration is named from here on */
    {"config", "show", "../x/run/config.ini"},
    {"config", "check", "../x/run/config.ini"},
    {"plan", "../x/run/config.ini"},
    {"compare", "../x/run/config.ini", "--weights", "../x/run", "--steps", "1", "--launches", "1",
     "--backends", "cpu,onednn"},
    {"train", "../x/run/config.ini", "--output", "../y", "--quiet"},
    {"train", "../x/run/config.ini", "--resume", "../x/run", "--quiet"},
    {"bench", "../x/run/config.ini", "--steps", "1", "--rounds", "1"},
    {"find-lr", "../x/run/config.ini", "--steps", "20"},
};
enum { COMMANDS = sizeof foreign_commands / sizeof *foreign_commands, NAMED_FROM = 10 };

static void foreign_one(int i, const place *p) {
  attack_command c = {.folder = "cwd", .variables = (const char *const[]){foreign_marker, NULL}};
  memcpy(c.words, foreign_commands[i], sizeof foreign_commands[i]);
  unlink("marker");
  attack_run(&c);
  bool is_own = p->is_trusted ||
                (geteuid() != 0 && strstr(p->path, "other") != NULL); /* no other user's folder was made */
  if (attack_exists("marker") && !(is_own && i >= NAMED_FROM))
    attack_find(ATTACK_FOREIGN, "%s %s: the code has run", c.words[0], c.words[1]);
}

static void foreign_run(void) {
  static const char *const uses[] = {"[backend]\nuse = auto\nautotune = no\n",
                                     "[backend]\nuse = cuda, cpu\nautotune = no\n"};
  char section[2048], words[64], ini[4096];
  const place *p = &ATTACK_PICK(places);
  attack_remove("x");
  attack_remove("y");
  attack_copy("base/picture/run", "x/run");
  foreign_draw_section(p, section, words);
  for (char *c = words; *c != '\0'; c++)
    if (*c == '\n') *c = ' ';
  attack_bytes config = attack_read("x/run/config.ini");
  char *backend = strstr(config.v, "[backend]");
  snprintf(ini, sizeof ini, "%.*s%s\n%s", backend != NULL ? (int)(backend - config.v) : (int)config.n,
           config.v, ATTACK_PICK(uses), section);
  free(config.v);
  attack_write_text("x/run/config.ini", "");
  foreign_append("x/run/config.ini", ini);
  attack_describe("%s names %s", words, p->words);
  for (int i = 0; i < COMMANDS; i++) foreign_one(i, p);
}

const attack_family attack_foreign = {"foreign", "code that a file names is not loaded", 1, foreign_prepare,
                                      foreign_run};
