#include "core/records/checkpoints/check_place.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/records/checkpoints/checkpoint_files.h"
#include "core/records/checkpoints/stored_states.h"

/* As long as last.new, in which a checkpoint is written. */
static const char place_name[] = "test.new";

/* ---- room ---- */

static tn_status place_count_bytes(tn_run *run, const tn_program_set *set, uint64_t *bytes) {
  tn_arena arena = tn_arena_new(&run->env);
  tn_stored_states states;
  tn_status status =
      tn_stored_states_list(&arena, set->map, TN_STATES_OF_MODEL | TN_STATES_OF_OPTIMIZER, true, &states);
  *bytes = 0;
  for (int32_t i = 0; status == TN_OK && i < states.n; i++) *bytes += tn_type_bytes(&states.v[i].state->type);
  tn_arena_free(&arena);
  return status;
}

/* A checkpoint is written beside the one that it replaces. Some file systems do not tell their room: they
 * have no blocks. */
static tn_status place_check_room(tn_run *run, const tn_program_set *set, const char *parent) {
  struct statvfs room;
  uint64_t bytes;
  TN_TRY(place_count_bytes(run, set, &bytes));
  if (statvfs(parent, &room) != 0 || room.f_blocks == 0) return TN_OK;
  uint64_t left = (uint64_t)room.f_bavail * room.f_frsize;
  if (left >= bytes) return TN_OK;
  return tn_failf(
      &run->env, TN_EIO,
      "%s: a checkpoint has %llu bytes, but %llu are free there; make room, or name another folder", parent,
      (unsigned long long)bytes, (unsigned long long)left);
}

/* ---- a file ---- */

static tn_status place_begin_file(tn_run *run, const char *folder) {
  char *path = tn_path_join(&run->env, folder, tn_checkpoint_files[TN_CHECKPOINT_OPTIMIZER]);
  tn_status status = path != NULL ? tn_file_check_new(&run->env, path) : TN_ENOMEM;
  tn_release(&run->env, path);
  return status;
}

static tn_status place_write(tn_run *run, const char *parent) {
  char *folder = tn_path_join(&run->env, parent, place_name);
  if (folder == NULL) return TN_ENOMEM;
  bool made = mkdir(folder, 0777) == 0 || errno == EEXIST; /* left by a process that was killed here */
  tn_status status = made ? place_begin_file(run, folder) : tn_file_fail(&run->env, folder, "made a folder");
  if (made) (void)rmdir(folder);
  tn_release(&run->env, folder);
  return status;
}

static tn_status place_check(tn_run *run, const tn_program_set *set, const char *parent) {
  TN_TRY(tn_checkpoint_check_parent(run, parent));
  bool made = !tn_file_exists(parent);
  if (made) TN_TRY(tn_folder_make(&run->env, parent));
  tn_status status = place_write(run, parent);
  if (status == TN_OK) status = place_check_room(run, set, parent);
  if (made) (void)rmdir(parent); /* a run without a checkpoint has no such folder */
  return status;
}

tn_status tn_checkpoint_check_place(tn_run *run, const tn_program_set *set, const char *folder) {
  char *parent = tn_path_join(&run->env, folder, "checkpoints");
  tn_status status = parent != NULL ? place_check(run, set, parent) : TN_ENOMEM;
  tn_release(&run->env, parent);
  return tn_wrap(&run->env, status, "a checkpoint of this run cannot be written");
}
