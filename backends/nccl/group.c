/* backends/nccl/group.c: see group.h. */
#include "backends/nccl/group.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- enter, leave ---- */

tn_status tn_nccl_group_new(tn_env *env, const tn_comm_place *place, bool alone, tn_nccl_group **group) {
  tn_nccl_group *g = tn_new(env, sizeof *g + (size_t)place->ranks * sizeof g->seats[0]);
  *group = g;
  if (g == NULL) return TN_ENOMEM;
  pthread_mutex_init(&g->lock, NULL);
  g->ranks = place->ranks;
  g->here = alone ? 1 : place->processes == 1 ? place->ranks : -1;
  return TN_OK;
}

void tn_nccl_group_enter(tn_nccl_group *group, int32_t rank, int32_t device, tn_nccl_follow *follow) {
  pthread_mutex_lock(&group->lock);
  group->seats[rank] = (tn_nccl_seat){.came = true, .device = device, .follow = follow};
  group->came++;
  pthread_mutex_unlock(&group->lock);
}

void tn_nccl_group_complete(tn_nccl_group *group) {
  pthread_mutex_lock(&group->lock);
  group->complete = true;
  pthread_mutex_unlock(&group->lock);
}

/* Before all have come the group must stay for those that may still come. */
static bool nccl_group_is_over(const tn_nccl_group *g) {
  return g->left == g->came && (g->complete || g->came == g->here);
}

void tn_nccl_group_leave(tn_env *env, tn_nccl_group *group, int32_t rank) {
  pthread_mutex_lock(&group->lock);
  group->seats[rank].left = true;
  group->seats[rank].follow = NULL;
  group->left++;
  bool over = nccl_group_is_over(group);
  pthread_mutex_unlock(&group->lock);
  if (!over) return;
  pthread_mutex_destroy(&group->lock);
  tn_delete(env, group);
}

/* ---- failure ---- */

void tn_nccl_group_fail(tn_nccl_group *group, const char *text) {
  pthread_mutex_lock(&group->lock);
  if (!atomic_load(&group->failed)) snprintf(group->text, sizeof group->text, "%s", text);
  atomic_store(&group->failed, true);
  pthread_mutex_unlock(&group->lock);
}

tn_status tn_nccl_group_status(tn_env *env, tn_nccl_group *group) {
  if (!atomic_load(&group->failed)) return TN_OK;
  return tn_fail(env, TN_ECOMM, NULL, "nccl: %s", group->text);
}

/* ---- messages ---- */

static void nccl_group_append(char *text, size_t size, const char *format, ...) TN_PRINTF(3, 4);
static void nccl_group_append(char *text, size_t size, const char *format, ...) {
  size_t n = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, size - n, format, args);
  va_end(args);
}

static void nccl_group_describe_seat(const tn_nccl_seat *seat, int32_t rank, char *text, size_t size) {
  char name[TN_NCCL_NAME + 16];
  uint32_t word = tn_nccl_follow_word(seat->follow);
  nccl_group_append(text, size, "%srank %d has not come to it", text[0] != '\0' ? "; " : "", (int)rank);
  if (word == 0) {
    nccl_group_append(text, size, ", nor to any before it");
    return;
  }
  tn_nccl_follow_name(seat->follow, word, name, sizeof name);
  nccl_group_append(text, size, ", and is %s %s", (word & 1) != 0 ? "in" : "behind", name);
}

void tn_nccl_group_explain_wait(tn_nccl_group *group, uint32_t word, char *text, size_t size) {
  text[0] = '\0';
  pthread_mutex_lock(&group->lock);
  for (int32_t r = 0; r < group->ranks; r++) {
    const tn_nccl_seat *seat = &group->seats[r];
    if (seat->follow != NULL && seat->follow->word != NULL && tn_nccl_follow_word(seat->follow) != word)
      nccl_group_describe_seat(seat, r, text, size);
  }
  bool all = group->came == group->ranks;
  pthread_mutex_unlock(&group->lock);
  if (text[0] == '\0')
    snprintf(text, size, "%s",
             all ? "all ranks have come to it, so a device or a link between devices hangs"
                 : "the ranks that this one sees have come to it, so another one has not");
}

void tn_nccl_group_list_devices(tn_nccl_group *group, char *text, size_t size) {
  text[0] = '\0';
  pthread_mutex_lock(&group->lock);
  for (int32_t r = 0; r < group->ranks; r++)
    if (group->seats[r].came)
      nccl_group_append(text, size, "%srank %d on device %d", text[0] != '\0' ? ", " : "", (int)r,
                        (int)group->seats[r].device);
  pthread_mutex_unlock(&group->lock);
}

void tn_nccl_group_explain_open(tn_nccl_group *group, char *text, size_t size) {
  text[0] = '\0';
  pthread_mutex_lock(&group->lock);
  for (int32_t r = 0; r < group->here; r++)
    if (group->here == group->ranks && !group->seats[r].came)
      nccl_group_append(text, size, "%s%d", text[0] != '\0' ? ", " : "rank ", (int)r);
  bool all = group->came == group->ranks;
  pthread_mutex_unlock(&group->lock);
  if (text[0] != '\0')
    nccl_group_append(text, size, " did not come");
  else
    snprintf(text, size, "%s",
             all ? "all ranks of this process have come, so they cannot reach each other"
                 : "another rank did not come, or cannot be reached");
}
