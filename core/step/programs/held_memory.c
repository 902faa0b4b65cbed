/* core/step/programs/held_memory.c: see held_memory.h. */
#include "core/step/programs/held_memory.h"

enum { NAMED = 4 };

static const double held_mib = 1048576.0;

/* A result of a step, or its workspace. */
typedef struct held_block {
  const tn_step *step;
  bool workspace;
  int64_t bytes;
} held_block;

/* Keeps the largest blocks, the largest first. */
static void held_add(held_block *blocks, held_block block) {
  for (int32_t i = 0; i < NAMED && block.bytes > 0; i++) {
    if (blocks[i].bytes >= block.bytes) continue;
    held_block smaller = blocks[i];
    blocks[i] = block;
    block = smaller;
  }
}

/* Results in the bytes of an operand are that operand's. */
static bool held_is_in_place(const tn_step *step, const tn_location *location) {
  for (int32_t i = 0; i < step->n_in; i++)
    if (step->in[i].location.base == TN_BASE_ARENA && step->in[i].location.offset == location->offset)
      return true;
  return false;
}

static void held_add_step(held_block *blocks, const tn_step *step) {
  for (int32_t i = 0; i < step->n_out; i++) {
    const tn_operand *y = &step->out[i];
    if (y->location.base != TN_BASE_ARENA || held_is_in_place(step, &y->location)) continue;
    held_add(blocks, (held_block){step, false, tn_layout_bytes(&y->type, &y->layout)});
  }
  if (step->group->fallback == NULL)
    held_add(blocks, (held_block){step, true, step->group->choice.workspace_bytes});
}

static const tn_program *held_largest_program(const tn_program_set *set) {
  const tn_program *largest = set->list[0];
  for (int32_t i = 1; i < set->n; i++)
    if (set->list[i]->arena_bytes > largest->arena_bytes) largest = set->list[i];
  return largest;
}

int64_t tn_largest_arena(const tn_program_set *set) { return held_largest_program(set)->arena_bytes; }

const char *tn_held_memory_text(tn_arena *arena, const tn_program_set *set, int64_t needed) {
  held_block blocks[NAMED] = {{0}};
  const tn_program *program = held_largest_program(set);
  int64_t state = tn_state_map_bytes(set->map), in_arena = program->arena_bytes;
  for (int32_t i = 0; i < program->n_steps; i++) held_add_step(blocks, &program->steps[i]);
  const char *text = tn_arena_printf(arena, "state %.1f MiB, arena %.1f MiB, inputs and outputs %.1f MiB",
                                     (double)state / held_mib, (double)in_arena / held_mib,
                                     (double)(needed - state - in_arena) / held_mib);
  for (int32_t i = 0; text != NULL && i < NAMED && blocks[i].bytes > 0; i++)
    text = tn_arena_printf(arena, "%s%s%.2f MiB %s%s", text,
                           i > 0 ? ", " : "; the largest in the arena: ", (double)blocks[i].bytes / held_mib,
                           blocks[i].workspace ? "workspace of " : "of ", blocks[i].step->name);
  return text != NULL ? text : "";
}
