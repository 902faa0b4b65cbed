#include "tests/unit/compile/memory/simulate.h"

#include "core/compile/output/print.h"

#include "core/graph/uses.h"
#include "core/config/options/options.h"
#include "core/graph/input_state.h"
#include "tenon/attributes.h"
#include "tenon/random.h"

/* The symbols of a value, in logical order. */
typedef struct symbols {
  int64_t n;
  uint64_t *v;
} symbols;

typedef struct memory {
  int64_t n;
  uint64_t *v; /* per byte */
} memory;

enum { REGIONS = 16 };

typedef struct machine {
  fixture *f;
  const tn_program *program;
  bool late;    /* collectives end when a step awaits them, else when they begin */
  int32_t open; /* steps before this one have been awaited */
  memory arena, slot, output, host, regions[REGIONS];
} machine;

static symbols new_symbols(int64_t n) {
  symbols s = {n, calloc((size_t)n + 1, sizeof *s.v)};
  assert_non_null(s.v);
  return s;
}

static memory new_memory(int64_t n, uint64_t seed) {
  memory m = {n, calloc((size_t)n + 1, sizeof *m.v)};
  assert_non_null(m.v);
  for (int64_t i = 0; i < n; i++) m.v[i] = tn_hash_mix(seed, (uint64_t)i) | 1;
  return m;
}

/* ---- ops ---- */

static uint64_t hash_attributes(fixture *f, const char *op, const void *attributes) {
  const tn_entry *entry = NULL;
  tn_text text = tn_text_new(&f->env);
  assert_int_equal(tn_registry_find(f->registry, &f->env, TN_OP, op, &entry), TN_OK);
  tn_options_print(&text, entry->item, attributes);
  uint64_t hash = tn_hash_text(TN_HASH_START, op);
  if (text.v != NULL) hash = tn_hash_text(hash, text.v);
  tn_text_free(&text);
  return hash;
}

static uint64_t hash_symbols(const symbols *s) {
  return s->v == NULL ? 7 : tn_hash_bytes(TN_HASH_START, s->v, (size_t)s->n * sizeof *s->v);
}

static bool is(const char *op, const char *name) { return strcmp(op, name) == 0; }

static symbols do_pack(const tn_pack_attributes *a, const symbols *in, int32_t n_in) {
  symbols s = new_symbols(a->count);
  for (int32_t i = 0; i < n_in; i++) memcpy(s.v + a->offsets.v[i], in[i].v, (size_t)in[i].n * sizeof *s.v);
  return s;
}

/* Result `result` of an op, of n elements. Copies keep symbols; zeros are the symbol 0. */
static symbols apply(fixture *f, const char *op, const void *attributes, const symbols *in, int32_t n_in,
                     int32_t result, int64_t n) {
  symbols s;
  if (is(op, "pack")) return do_pack(attributes, in, n_in);
  s = new_symbols(n);
  if (is(op, "copy") || is(op, "reorder") || is(op, "reshape")) {
    memcpy(s.v, in[0].v, (size_t)n * sizeof *s.v);
    return s;
  }
  if (is(op, "full") && ((const tn_full_attributes *)attributes)->value == 0) return s;
  uint64_t hash = hash_attributes(f, op, attributes);
  bool commutes = is(op, "add") || is(op, "mul");
  for (int32_t i = 0; i < n_in; i++)
    hash = commutes ? hash + hash_symbols(&in[i]) : tn_hash_mix(hash, hash_symbols(&in[i]));
  for (int64_t k = 0; k < n; k++) s.v[k] = tn_hash_mix(hash + (uint64_t)result, (uint64_t)k) | 1;
  return s;
}

/* ---- the graph ---- */

static uint64_t entry_symbol(int32_t region, int64_t element) {
  return tn_hash_mix(1000 + (uint64_t)region, (uint64_t)element) | 1;
}

static uint64_t input_symbol(const char *name, int64_t element) {
  return tn_hash_mix(tn_hash_text(TN_HASH_START, name), (uint64_t)element) | 1;
}

static symbols entry_of(fixture *f, const tn_gnode *node, const tn_type *type) {
  symbols s = new_symbols(tn_type_count(type));
  if (tn_node_kind_of(node) == TN_NODE_INPUT) {
    for (int64_t k = 0; k < s.n; k++)
      s.v[k] = input_symbol(((const tn_input_attributes *)node->attributes)->name, k);
    return s;
  }
  const tn_placement *p = tn_state_map_find(f->map, ((const tn_state_attributes *)node->attributes)->path);
  assert_non_null(p);
  for (int64_t k = 0; k < s.n; k++) s.v[k] = entry_symbol(p->region, p->offset + k);
  return s;
}

static symbols *evaluate(fixture *f, const tn_graph *g) {
  symbols *values = calloc(g->values.n, sizeof *values);
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    symbols in[64] = {{0}};
    tn_node_kind kind = tn_node_kind_of(node);
    for (int32_t k = 0; k < node->n_in; k++) in[k] = values[node->in[k]];
    for (int32_t k = 0; k < node->n_out; k++) {
      const tn_type *type = tn_graph_type(g, node->first_out + (tn_val)k);
      values[node->first_out + (tn_val)k] =
          kind == TN_NODE_INPUT || kind == TN_NODE_STATE
              ? entry_of(f, node, type)
              : apply(f, node->op->item.name, node->attributes, in, node->n_in, k, tn_type_count(type));
    }
  }
  return values;
}

/* ---- the program ---- */

static memory *base_of(machine *m, const tn_location *place) {
  switch (place->base) {
  case TN_BASE_ARENA: return &m->arena;
  case TN_BASE_REGION: return &m->regions[place->region];
  case TN_BASE_SLOT: return &m->slot;
  case TN_BASE_OUTPUT: return &m->output;
  case TN_BASE_HOST: return &m->host;
  default: fail_msg("an operand has no base"); return NULL;
  }
}

static int64_t bytes_of(const tn_operand *o) { return tn_layout_bytes(&o->type, &o->layout); }

/* The index of element k in storage. */
static int64_t storage_index(const tn_operand *o, int64_t k) {
  int64_t at[TN_MAX_RANK], size[TN_MAX_RANK], inner[TN_MAX_BLOCKS], index = 0;
  for (int32_t i = o->type.rank; i-- > 0; k /= o->type.dims[i]) at[i] = k % o->type.dims[i];
  for (int32_t i = 0; i < o->type.rank; i++) size[i] = o->type.dims[i];
  for (int32_t i = o->layout.n_blocks; i-- > 0;) {
    const tn_block *b = &o->layout.block[i];
    inner[i] = at[b->dim] % b->size;
    at[b->dim] /= b->size;
    size[b->dim] = (size[b->dim] + b->size - 1) / b->size;
  }
  for (int32_t i = 0; i < o->type.rank; i++)
    index = index * size[o->layout.order[i]] + at[o->layout.order[i]];
  for (int32_t i = 0; i < o->layout.n_blocks; i++) index = index * o->layout.block[i].size + inner[i];
  return index;
}

static symbols read_operand(machine *m, const tn_operand *o) {
  int64_t size = (int64_t)tn_dtype_size(o->type.dtype);
  if (o->location.base == TN_BASE_NONE) return (symbols){0};
  symbols s = new_symbols(tn_type_count(&o->type));
  memory *from = base_of(m, &o->location);
  for (int64_t k = 0; k < s.n; k++) {
    int64_t at = o->location.offset + storage_index(o, k) * size;
    s.v[k] = from->v[at];
    for (int64_t b = 0; b < size; b++)
      if (from->v[at + b] != from->v[at]) s.v[k] = 13; /* torn */
  }
  return s;
}

static void write_result(machine *m, const tn_operand *o, const symbols *s) {
  int64_t size = (int64_t)tn_dtype_size(o->type.dtype);
  memory *to = base_of(m, &o->location);
  for (int64_t k = 0; k < s->n; k++)
    for (int64_t b = 0; b < size; b++) to->v[o->location.offset + storage_index(o, k) * size + b] = s->v[k];
}

static bool overlap(const tn_operand *a, const tn_operand *b) {
  return a->location.base == b->location.base && a->location.region == b->location.region &&
         a->location.offset < b->location.offset + bytes_of(b) &&
         b->location.offset < a->location.offset + bytes_of(a);
}

static bool allows(const tn_group *g, int32_t operand, int32_t result) {
  for (int32_t i = 0; i < g->choice.n_inplace; i++)
    if (g->choice.inplace[i][0] == operand && g->choice.inplace[i][1] == result) return true;
  return false;
}

/* Each side reads and writes its own memory; both read the inputs. */
static void check_side(const tn_step *step, const tn_operand *o) {
  if (o->location.base != TN_BASE_SLOT)
    assert_int_equal(o->location.base == TN_BASE_HOST, step->group->fallback != NULL);
}

static int32_t workspace_base(const tn_step *step) {
  return step->group->fallback != NULL ? TN_BASE_HOST : TN_BASE_ARENA;
}

static void check_ranges(machine *m, const tn_step *step) {
  tn_operand workspace = {{TN_U8, 1, {step->group->choice.workspace_bytes}},
                          tn_layout_row_major(1),
                          {workspace_base(step), 0, step->workspace_offset}};
  for (int32_t i = 0; i < step->n_in + step->n_out; i++) {
    const tn_operand *o = i < step->n_in ? &step->in[i] : &step->out[i - step->n_in];
    if (o->location.base == TN_BASE_NONE) continue;
    assert_true(o->location.offset >= 0 && o->location.offset + bytes_of(o) <= base_of(m, &o->location)->n);
    assert_false(overlap(o, &workspace));
    check_side(step, o);
  }
  for (int32_t k = 0; k < step->n_out; k++) {
    assert_int_not_equal(step->out[k].location.base, TN_BASE_SLOT);
    for (int32_t i = 0; i < step->n_in; i++) {
      if (!overlap(&step->in[i], &step->out[k])) continue;
      assert_true(step->in[i].location.offset == step->out[k].location.offset &&
                  bytes_of(&step->in[i]) == bytes_of(&step->out[k]));
      assert_true(allows(step->group, i, k));
    }
    for (int32_t i = 0; i < k; i++) assert_false(overlap(&step->out[i], &step->out[k]));
  }
}

/* Runs the nodes of the group in the numbering of its kernel. */
static void run_step(machine *m, const tn_step *step) {
  const tn_match *match = step->group->match;
  symbols by_number[512] = {{0}};
  int32_t n = match->n_in;
  check_ranges(m, step);
  for (int32_t i = 0; i < step->n_in; i++) by_number[i] = read_operand(m, &step->in[i]);
  memory *scratch = workspace_base(step) == TN_BASE_HOST ? &m->host : &m->arena;
  for (int64_t b = 0; b < step->group->choice.workspace_bytes; b++)
    scratch->v[step->workspace_offset + b] = 99;
  for (int32_t i = 0; i < match->n_nodes; i++) {
    const tn_match_node *node = &match->nodes[i];
    symbols in[64] = {{0}};
    assert_int_equal(node->first_out, n);
    for (int32_t k = 0; k < node->node->n_in; k++)
      if (node->in[k] >= 0) in[k] = by_number[node->in[k]];
    for (int32_t k = 0; k < node->node->n_out; k++)
      by_number[n++] = apply(m->f, node->node->op, node->node->attributes, in, node->node->n_in, k,
                             tn_type_count(&node->node->out[k]));
  }
  for (int32_t i = 0; i < step->n_out; i++) write_result(m, &step->out[i], &by_number[match->out_number[i]]);
  for (int32_t i = 0; i < n; i++) free(by_number[i].v);
}

static void transfer(machine *m, const tn_transfer *t, bool in) {
  uint64_t *device = base_of(m, &t->device)->v + t->device.offset, *host = m->host.v + t->host;
  assert_true(t->device.offset + t->bytes <= base_of(m, &t->device)->n && t->host + t->bytes <= m->host.n);
  assert_int_not_equal(t->device.base, TN_BASE_HOST);
  memcpy(in ? device : host, in ? host : device, (size_t)t->bytes * sizeof *host);
}

static bool is_collective(const tn_step *step) { return step->group->role == TN_STREAM_COMM; }

/* Collectives up to this one end. */
static void end_collectives(machine *m, int32_t last) {
  for (; m->open <= last; m->open++)
    if (m->late && is_collective(&m->program->steps[m->open])) run_step(m, &m->program->steps[m->open]);
}

/* A collective begins, and ends at once unless it is late; another step first awaits the collective that it
 * must. */
static void begin_step(machine *m, const tn_step *step) {
  if (is_collective(step)) assert_int_equal(step->awaits.of[TN_STREAM_COMM], -1);
  end_collectives(m, step->awaits.of[TN_STREAM_COMM]);
  if (!m->late || !is_collective(step)) run_step(m, step);
}

/* Segments are consecutive, and only segments on the fallback have transfers. */
static void run_segment(machine *m, const tn_segment *s, int32_t *next) {
  assert_int_equal(s->first, *next);
  assert_true(s->n > 0 && (s->fallback || s->n_out + s->n_in == 0));
  for (int32_t i = 0; i < s->n_out; i++) transfer(m, &s->out[i], false);
  for (; *next < s->first + s->n; ++*next) {
    assert_int_equal(m->program->steps[*next].group->fallback != NULL, s->fallback);
    begin_step(m, &m->program->steps[*next]);
  }
  end_collectives(m, s->awaits.of[TN_STREAM_COMM]);
  for (int32_t i = 0; i < s->n_in; i++) transfer(m, &s->in[i], true);
}

/* ---- comparison ---- */

static void disagree(machine *m, const char *what, const char *name) {
  tn_text text = tn_text_new(&m->f->env);
  tn_cover_print(m->program->cover, &text);
  tn_program_print(m->program, true, &text);
  print_error("%s\n", text.v);
  tn_text_free(&text);
  fail_msg("%s %s differs", what, name);
}

static void write_region(memory *region, int64_t offset, int64_t size, const symbols *s) {
  for (int64_t k = 0; k < s->n; k++)
    for (int64_t b = 0; b < size; b++) region->v[(offset + k) * size + b] = s->v[k];
}

static memory entry_region(const tn_region *region, int32_t index) {
  int64_t size = (int64_t)tn_dtype_size(region->dtype);
  memory m = new_memory(region->count * size, 0);
  for (int64_t i = 0; i < m.n; i++) m.v[i] = entry_symbol(index, i / size);
  return m;
}

static symbols committed(fixture *f, const tn_graph *g, const symbols *values, const tn_gcommit *commit) {
  const symbols *now = &values[commit->value];
  if (commit->predicate == 0) {
    symbols copy = new_symbols(now->n);
    memcpy(copy.v, now->v, (size_t)now->n * sizeof *now->v);
    return copy;
  }
  const tn_placement *p = tn_state_map_find(f->map, commit->path);
  symbols in[3] = {values[commit->predicate], *now, new_symbols(now->n)};
  for (int64_t k = 0; k < now->n; k++) in[2].v[k] = entry_symbol(p->region, p->offset + k);
  symbols s = apply(f, "where", NULL, in, 3, 0, now->n);
  free(in[2].v);
  (void)g;
  return s;
}

static void compare_regions(machine *m, const tn_graph *g, const symbols *values) {
  const tn_state_map *map = m->f->map;
  for (size_t r = 0; r < map->regions.n; r++) {
    int64_t size = (int64_t)tn_dtype_size(map->regions.v[r].dtype);
    memory expected = entry_region(&map->regions.v[r], (int32_t)r);
    for (size_t i = 0; i < g->commits.n; i++) {
      const tn_placement *p = tn_state_map_find(map, g->commits.v[i].path);
      if (p->region != (int32_t)r) continue;
      symbols s = committed(m->f, g, values, &g->commits.v[i]);
      write_region(&expected, p->offset, size, &s);
      free(s.v);
    }
    if (memcmp(expected.v, m->regions[r].v, (size_t)expected.n * sizeof *expected.v) != 0)
      disagree(m, "region", map->regions.v[r].name);
    free(expected.v);
  }
}

static void compare_outputs(machine *m, const tn_graph *g, const symbols *values) {
  assert_int_equal(m->program->n_outputs, g->outputs.n);
  for (size_t i = 0; i < g->outputs.n; i++) {
    const tn_binding *b = &m->program->outputs[i];
    tn_operand o = {b->type, tn_layout_row_major(b->type.rank), {TN_BASE_OUTPUT, 0, b->offset}};
    symbols s = read_operand(m, &o), *expected = (symbols *)&values[g->outputs.v[i].value];
    assert_string_equal(b->name, g->outputs.v[i].name);
    if (s.n != expected->n || memcmp(s.v, expected->v, (size_t)s.n * sizeof *s.v) != 0)
      disagree(m, "output", b->name);
    free(s.v);
  }
}

static void fill_slot(machine *m) {
  for (int32_t i = 0; i < m->program->n_inputs; i++) {
    const tn_binding *b = &m->program->inputs[i];
    tn_operand o = {b->type, tn_layout_row_major(b->type.rank), {TN_BASE_SLOT, 0, b->offset}};
    symbols s = new_symbols(tn_type_count(&b->type));
    for (int64_t k = 0; k < s.n; k++) s.v[k] = input_symbol(b->name, k);
    write_result(m, &o, &s);
    free(s.v);
  }
}

static void simulate_once(fixture *f, const tn_graph *graph, const tn_program *program, bool late) {
  machine m = {.f = f, .program = program, .late = late};
  size_t regions = f->map->regions.n;
  assert_true(regions <= REGIONS);
  m.arena = new_memory(program->arena_bytes, 1);
  m.slot = new_memory(program->slot_bytes, 2);
  m.output = new_memory(program->output_bytes, 3);
  m.host = new_memory(program->host_bytes, 4);
  int32_t next = 0;
  for (size_t r = 0; r < regions; r++) m.regions[r] = entry_region(&f->map->regions.v[r], (int32_t)r);
  fill_slot(&m);
  for (int32_t i = 0; i < program->n_segments; i++) run_segment(&m, &program->segments[i], &next);
  assert_int_equal(next, program->n_steps);
  symbols *values = evaluate(f, graph);
  compare_regions(&m, graph, values);
  compare_outputs(&m, graph, values);
  assert_true(program->bound_bytes <= program->arena_bytes);
  for (size_t v = 0; v < graph->values.n; v++) free(values[v].v);
  free(values);
  free(m.arena.v);
  free(m.slot.v);
  free(m.output.v);
  free(m.host.v);
  for (size_t r = 0; r < regions; r++) free(m.regions[r].v);
}

void simulate(fixture *f, const tn_graph *graph, const tn_program *program) {
  simulate_once(f, graph, program, false);
  simulate_once(f, graph, program, true);
}
