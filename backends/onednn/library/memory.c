/* backends/onednn/library/memory.c: conversion of types and layouts to and from the descriptions of oneDNN.
 */
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdio.h>
#include <string.h>

#include "backends/onednn/library/primitive_list.h"
#include "tenon/plugin/storage.h"

/* The dtype of the library, or dnnl_data_type_undef. */
static dnnl_data_type_t memory_dtype(int32_t dtype) {
  switch (dtype) {
  case TN_F32: return dnnl_f32;
  case TN_BF16: return dnnl_bf16;
  case TN_F16: return dnnl_f16;
  case TN_I32: return dnnl_s32;
  case TN_U8: return dnnl_u8;
  case TN_I8: return dnnl_s8;
  default: return dnnl_data_type_undef;
  }
}

static tn_status memory_check_type(tn_env *env, const tn_type *type) {
  if (memory_dtype(type->dtype) == dnnl_data_type_undef)
    return tn_fail(env, TN_EUNSUPPORTED, "dtype", "oneDNN has no %s", tn_dtype_name(type->dtype));
  if (type->rank < 1 || tn_type_count(type) == 0)
    return tn_fail(env, TN_EUNSUPPORTED, "shape", "oneDNN has no tensors without dimensions or elements");
  return TN_OK;
}

/* ---- layouts by name ----------------------------------------------------------------------------- */

enum { TAG_TEXT = TN_MAX_RANK + 6 * TN_MAX_BLOCKS + 1 }; /* a block: five digits and a letter */

/* The name of a layout in the library: a letter for each dimension from the outermost on, a capital letter
 * for a dimension in blocks, then the size and the dimension of each block. nChw16c is aBcd16b, OIhw8i16o2i
 * is ABcd8b16a2b. */
static const char *memory_tag_name(const tn_layout *layout, int32_t rank, char text[TAG_TEXT]) {
  bool blocked[TN_MAX_RANK] = {false};
  int32_t n = 0;
  for (int32_t i = 0; i < layout->n_blocks; i++) blocked[layout->block[i].dim] = true;
  for (int32_t i = 0; i < rank; i++) {
    int32_t dim = layout->set ? layout->order[i] : i;
    text[n++] = (char)((blocked[dim] ? 'A' : 'a') + dim);
  }
  for (int32_t i = 0; i < layout->n_blocks; i++)
    n += snprintf(text + n, (size_t)(TAG_TEXT - n), "%u%c", (unsigned)layout->block[i].size,
                  'a' + layout->block[i].dim);
  text[n] = '\0';
  return text;
}

/* The tag of a name, or dnnl_format_tag_undef. */
static dnnl_format_tag_t memory_tag(const char *name) {
  for (int32_t tag = dnnl_a; tag < dnnl_format_tag_last; tag++)
    if (strcmp(dnnl_fmt_tag2str((dnnl_format_tag_t)tag), name) == 0) return (dnnl_format_tag_t)tag;
  return dnnl_format_tag_undef;
}

/* ---- descriptions -------------------------------------------------------------------------------- */

/* By strides, or by tag where strides is NULL. */
static tn_status memory_describe(tn_primitive_list *r, const tn_type *type, dnnl_format_tag_t tag,
                                 const dnnl_dim_t *strides, tn_dnnl_desc *desc) {
  dnnl_memory_desc_t *made = &r->descs[r->n_descs];
  dnnl_data_type_t dtype = memory_dtype(type->dtype);
  dnnl_dims_t dims = {0};
  if (r->n_descs == TN_PRIMITIVE_DESCS)
    return tn_fail(r->env, TN_EINTERNAL, NULL, "a kernel has more than %d descriptions of memory",
                   TN_PRIMITIVE_DESCS);
  for (int32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i];
  if (strides != NULL)
    TN_DNNL_TRY(r->env, tn_dnnl_desc_by_strides(made, type->rank, dims, dtype, strides));
  else
    TN_DNNL_TRY(r->env, tn_dnnl_desc_by_tag(made, type->rank, dims, dtype, tag));
  r->n_descs++;
  *desc = tn_dnnl_desc_of(made);
  return TN_OK;
}

static tn_status memory_describe_strided(tn_primitive_list *r, const tn_type *type, const tn_layout *layout,
                                         tn_dnnl_desc *desc) {
  tn_storage storage = tn_storage_of(type, layout);
  dnnl_dims_t strides = {0};
  for (int32_t i = 0; i < type->rank; i++) strides[storage.axis[i].dim] = storage.axis[i].stride;
  return memory_describe(r, type, dnnl_format_tag_undef, strides, desc);
}

tn_status tn_dnnl_memory(tn_primitive_list *r, const tn_type *type, const tn_layout *layout,
                         tn_dnnl_desc *desc) {
  char text[TAG_TEXT];
  TN_TRY(memory_check_type(r->env, type));
  if (layout->n_blocks == 0) return memory_describe_strided(r, type, layout, desc);
  dnnl_format_tag_t tag = memory_tag(memory_tag_name(layout, type->rank, text));
  if (tag == dnnl_format_tag_undef)
    return tn_fail(r->env, TN_EUNSUPPORTED, "layout", "oneDNN has no layout %s", text);
  return memory_describe(r, type, tag, NULL, desc);
}

tn_status tn_dnnl_memory_any(tn_primitive_list *r, const tn_type *type, tn_dnnl_desc *desc) {
  tn_status status = memory_check_type(r->env, type);
  return status == TN_OK ? memory_describe(r, type, dnnl_format_tag_any, NULL, desc) : status;
}

/* ---- layouts from descriptions ------------------------------------------------------------------- */

/* Outer dimensions by decreasing strides; dimensions of one element keep their position. */
static void memory_order_by_strides(const tn_dnnl_blocks *blocks, int32_t rank, tn_layout *layout) {
  for (int32_t i = 1; i < rank; i++) {
    uint8_t dim = layout->order[i];
    int32_t at = i;
    for (; at > 0 && blocks->strides[layout->order[at - 1]] < blocks->strides[dim]; at--)
      layout->order[at] = layout->order[at - 1];
    layout->order[at] = dim;
  }
}

/* A description may have properties that a layout lacks, such as gaps between rows; the layout is converted
 * back and compared. */
tn_status tn_dnnl_layout(tn_primitive_list *r, const tn_type *type, tn_dnnl_desc desc, tn_layout *layout) {
  tn_dnnl_blocks blocks;
  tn_dnnl_desc again;
  TN_DNNL_TRY(r->env, tn_dnnl_desc_blocks(desc, type->rank, &blocks));
  if (blocks.n > TN_MAX_BLOCKS)
    return tn_fail(r->env, TN_EUNSUPPORTED, "layout", "%d blocks, and a layout has %d at most", blocks.n,
                   TN_MAX_BLOCKS);
  *layout = tn_layout_row_major(type->rank);
  memory_order_by_strides(&blocks, type->rank, layout);
  layout->n_blocks = (uint8_t)blocks.n;
  for (int32_t i = 0; i < blocks.n; i++)
    layout->block[i] = (tn_block){(uint8_t)blocks.dims[i], (uint16_t)blocks.sizes[i]};
  tn_status status = tn_dnnl_memory(r, type, layout, &again);
  if (status != TN_OK || dnnl_memory_desc_equal(again, desc)) return status;
  return tn_fail(r->env, TN_EUNSUPPORTED, "layout", "Tenon has no layout that equals oneDNN's");
}
