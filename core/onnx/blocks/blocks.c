/* core/onnx/blocks/blocks.c: see blocks.h. */
#include "core/onnx/blocks/blocks.h"

static tn_status blocks_run(blocks *b, onnx_section **sections, int32_t *n) {
  TN_TRY(block_read_tokens(b));
  TN_TRY(block_find_scopes(b));
  TN_TRY(block_find_groups(b));
  TN_TRY(block_find_kinds(b));
  TN_TRY(block_choose(b));
  TN_TRY(block_name_kinds(b));
  return block_write_sections(b, sections, n);
}

static tn_status blocks_open(blocks *b) {
  onnx_import *m = b->m;
  b->n_lines = (int32_t)m->lines.n;
  b->lines = tn_arena_alloc(b->arena, m->lines.n * sizeof *b->lines + 1);
  if (b->lines == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < m->lines.n; i++) b->lines[i].line = &m->lines.v[i];
  return TN_OK;
}

tn_status onnx_find_blocks(onnx_import *m, onnx_section **sections, int32_t *n) {
  blocks b = {.m = m,
              .env = m->env,
              .arena = &m->arena,
              .values = tn_name_index_new(m->env),
              .block_names = tn_name_index_new(m->env)};
  tn_status status = blocks_open(&b);
  if (status == TN_OK) status = blocks_run(&b, sections, n);
  tn_name_index_free(&b.values);
  tn_name_index_free(&b.block_names);
  tn_vec_free(m->env, &b.tokens);
  tn_vec_free(m->env, &b.numbers);
  tn_vec_free(m->env, &b.groups);
  tn_vec_free(m->env, &b.kinds);
  tn_vec_free(m->env, &b.value_of);
  return status;
}
